package loglines

import (
	"regexp"
	"slices"
	"strings"
)

// OwnMessage returns the last line in which a program of a name reports an error as error(3) and most programs in C write it, such as
// "solver: no such mesh", with its usage in parentheses if that follows. Only the last lines of a rank count, before what MPI's launcher prints
// of its end: others are what the program reports while it works. So are lines of which another one differs by its numbers. It returns nil if
// there is none.
func OwnMessage(lines []string, program string) *ErrorLine {
	// most is the number of the last lines of a rank, or of all ranks where no tag tells them apart.
	const most = 5
	if program == "" {
		return nil
	}
	seen := map[string]int{}
	for i, line := range slices.Backward(withoutLauncher(lines)) {
		tag := RankTag.FindStringSubmatch(line)
		text := strings.TrimRight(line[len(RankTag.FindString(line)):], " \r")
		if text == "" {
			continue
		}
		found := &ErrorLine{Line: line}
		if tag != nil {
			found.Rank = tag[1]
		}
		if seen[found.Rank]++; seen[found.Rank] > most {
			continue
		}
		message, is := strings.CutPrefix(text, program+": ")
		if !is || strings.TrimSpace(message) == "" || hasOtherNumbers(lines, text) {
			continue
		}
		found.Message = message
		for _, next := range lines[i+1 : min(len(lines), i+3)] {
			next = strings.TrimSpace(next[len(RankTag.FindString(next)):])
			if strings.HasPrefix(strings.ToLower(next), "usage: ") {
				found.Message += " (" + next + ")"
				break
			}
		}
		return found
	}
	return nil
}

// withoutLauncher returns lines without what MPI's launcher and the agent print: those are empty.
func withoutLauncher(lines []string) []string {
	kept := slices.Clone(lines)
	begun := -1
	for i, line := range lines {
		switch {
		case ruler.MatchString(line):
			// A message of Open MPI is between two rulers.
			if begun >= 0 {
				clear(kept[begun:i])
				begun = -1
			} else {
				begun = i
			}
			kept[i] = ""
		case LauncherWords.MatchString(line), Banner.MatchString(line), Abort.MatchString(line), hydraLine.MatchString(line):
			kept[i] = ""
		}
	}
	return kept
}

// hasOtherNumbers reports whether lines contain a text with other numbers in the same places, as those do that show progress.
func hasOtherNumbers(lines []string, text string) bool {
	form := numbers.ReplaceAllString(text, "0")
	return slices.ContainsFunc(lines, func(line string) bool {
		other := strings.TrimRight(line[len(RankTag.FindString(line)):], " \r")
		return other != text && numbers.ReplaceAllString(other, "0") == form
	})
}

// numbers are those in a line.
var numbers = regexp.MustCompile(`\d+(?:\.\d+)?(?:[eE][-+]?\d+)?`)
