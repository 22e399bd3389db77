package loglines

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// usageBegins is the first line of what a program prints about its own arguments (Lib/argparse.py, click), and optionWord an option in it.
	usageBegins = regexp.MustCompile(`^(?i:usage: )`)
	optionWord  = regexp.MustCompile(`--[A-Za-z][\w-]*`)
)

// Options returns the options that a program lists before it reports an error in its arguments; none if it does not.
func Options(lines []string, failure *ErrorLine) (options []string) {
	const most = 60
	at := slices.IndexFunc(lines, func(line string) bool { return strings.TrimRight(line, " \r") == failure.Line })
	tag := RankTag.FindString(failure.Line)
	for i := at - 1; i >= max(0, at-most); i-- {
		text, same := textOf(lines[i], tag)
		if !same {
			continue
		}
		options = append(options, optionWord.FindAllString(text, -1)...)
		if usageBegins.MatchString(text) {
			return options
		}
	}
	return nil
}
