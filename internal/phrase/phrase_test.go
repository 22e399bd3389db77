package phrase_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"opendatahub.io/mpijob/internal/phrase"
)

func TestPhrases(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		phrase.Count(1, "worker"):            "1 worker",
		phrase.Count(int64(4), "worker"):     "4 workers",
		phrase.Count(int32(0), "pod"):        "0 pods",
		phrase.Times(1):                      "once",
		phrase.Times(2):                      "twice",
		phrase.Times(3):                      "3 times",
		phrase.Sentence("  no room "):        "no room.",
		phrase.Sentence("no room."):          "no room.",
		phrase.Sentence(" "):                 "",
		phrase.Cut("short", 5):               "short",
		phrase.Cut("too long", 6):            "too…",
		phrase.Cut("größer", 6):              "gr…",
		phrase.Printable("a\x1b[31mb\xff\n"): "a[31mb?\n",
		phrase.Printable("größer\u202e"):     "größer",
		phrase.Capital("no room"):            "No room",
		phrase.Capital(""):                   "",
		phrase.OneLine(" a\n\tb\x1b "):       "a  b",
		phrase.Limit("a\x1bbcdef", 5):        "ab…",
		phrase.Limit("ab", 5):                "ab",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSentenceLimitsTheLength(t *testing.T) {
	t.Parallel()
	got := phrase.Sentence(strings.Repeat("ö", 1000))
	if len(got) > 610 || !utf8.ValidString(got) || !strings.HasSuffix(got, " ….") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
