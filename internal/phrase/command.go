package phrase

import "strings"

// QuoteCommand returns a command as it is written in a shell.
func QuoteCommand(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n'\"|&;<>()[]{}$`*?~\\") {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
