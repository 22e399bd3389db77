package loglines

import "strings"

// OwnMessage returns the first line in which a program of a name reports an error as error(3) and most programs in C write it, such as
// "solver: no such mesh", with its usage in parentheses if that follows; nil if there is none.
func OwnMessage(lines []string, program string) *ErrorLine {
	if program == "" {
		return nil
	}
	for i, line := range lines {
		tag := RankTag.FindStringSubmatch(line)
		text := strings.TrimRight(line[len(RankTag.FindString(line)):], " \r")
		message, is := strings.CutPrefix(text, program+": ")
		if !is || strings.TrimSpace(message) == "" {
			continue
		}
		found := &ErrorLine{Line: line, Message: message}
		if tag != nil {
			found.Rank = tag[1]
		}
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
