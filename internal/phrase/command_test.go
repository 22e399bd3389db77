package phrase_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/phrase"
)

// TestShellSplitsQuotedCommand: a real shell splits a quoted command into its words, and executes nothing in them.
func TestShellSplitsQuotedCommand(t *testing.T) {
	t.Parallel()
	words := append([]string{"", "plain", "a=b,c=d", "user@host:/path/x.y_z-1", "50%", "+1"}, mpitest.Hostile...)
	called := mpitest.RunInShell(t, phrase.QuoteCommand(append([]string{"kubectl"}, words...)))[0]
	if diff := cmp.Diff(words, called["kubectl"]); diff != "" || len(called) != 1 {
		t.Errorf("called %v (-want +got)\n%s", called, diff)
	}
}

// TestQuoteCommand: what needs no quotes is easy to read, and all else is quoted.
func TestQuoteCommand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"mpirun", "-np", "4", "-x", "A=b", "/opt/a.out"}, "mpirun -np 4 -x A=b /opt/a.out"},
		{[]string{"sh", "-c", "a; b"}, "sh -c 'a; b'"},
		{[]string{"it's", ""}, `'it'\''s' ''`},
		{[]string{"a!", "#b", "~", "=c"}, "'a!' '#b' '~' '=c'"},
		{[]string{"NAME", "<name>"}, "NAME '<name>'"},
	} {
		if got := phrase.QuoteCommand(test.words); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}
