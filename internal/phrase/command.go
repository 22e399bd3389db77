package phrase

import (
	"regexp"
	"strings"
)

// QuoteCommand returns a command as it is written in a shell.
func QuoteCommand(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = QuoteWord(word)
	}
	return strings.Join(words, " ")
}

// plainWord matches words that mean themselves in every shell. zsh replaces a word that begins with an equals sign.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9@%+:,./_-][A-Za-z0-9@%+=:,./_-]*$`)

// QuoteWord returns a text as it is written as one word in a shell.
func QuoteWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
