// Package phrase builds what messages for people share: counts, sentences, printable text.
package phrase

import (
	"fmt"
	"strings"
)

// Times returns how often something happened: "once", "twice", "3 times".
func Times(n int32) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// Count returns a number of things: "1 worker", "4 workers".
func Count[N int | int32 | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// First joins the first names, at most so many, and counts the others.
func First(most int, names []string) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Existing returns a clause about the names that a user can choose from, where another one does not exist.
func Existing(names []string) string {
	const most = 10
	return "those that exist: " + First(most, names)
}

// Capital returns a text with its first letter, if that is ASCII, in upper case.
func Capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// Cut shortens a text to a number of bytes, between characters, and marks the end with an ellipsis.
func Cut(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxBytes-len("…")], "") + "…"
}

// Sentence trims a text, limits its length and ends it with a full stop. An empty text stays empty.
func Sentence(text string) string {
	const most = 600
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " …"
	}
	if text != "" && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}
