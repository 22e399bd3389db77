package logs

import (
	"strconv"
	"strings"
)

// Rank reads the tag that MPI's launchers and training libraries can put before a rank's line, and
// returns the line without it:
//
//	[1,5]<stdout>: text        mpirun --tag-output (Open MPI 4), horovodrun
//	[1,5]<stdout>: text        mpirun --tag-output or --output tag (Open MPI 5); some versions write [prterun-x@1,5]
//	[5] text                   mpirun -prepend-rank (Intel MPI, MPICH)
//	[rank5]: text              PyTorch
//
// A program may use the third form for something else; compare the rank with the number of ranks.
func Rank(line string) (rank int, text string, tagged bool) {
	const longest = 96
	if !strings.HasPrefix(line, "[") {
		return 0, line, false
	}
	end := strings.IndexByte(line[:min(len(line), longest)], ']')
	if end < 0 {
		return 0, line, false
	}
	number, rest := line[1:end], line[end+1:]
	stream := ""
	if strings.HasPrefix(rest, "<std") {
		if at := strings.IndexByte(rest[:min(len(rest), longest)], '>'); at > 0 {
			stream, rest = rest[:at+1], rest[at+1:]
		}
	}
	byName := strings.HasPrefix(number, "rank")
	if comma := strings.LastIndexByte(number, ','); comma >= 0 && stream != "" {
		number = number[comma+1:]
	}
	number = strings.TrimPrefix(number, "rank")
	rank, err := strconv.Atoi(number)
	if err != nil || rank < 0 || number[0] == '+' {
		return 0, line, false
	}
	switch {
	case stream != "" && !strings.Contains(line[:end], "@"):
		// Open MPI 5 adds a blank, version 4 does not. Programs indent by an even number of blanks.
		rest = strings.TrimPrefix(rest, ":")
		if blanks := len(rest) - len(strings.TrimLeft(rest, " ")); blanks%2 == 1 {
			rest = rest[1:]
		}
		return rank, rest, true
	case stream != "", byName:
		rest = strings.TrimPrefix(rest, ":")
	case rest != "" && rest[0] != ' ':
		return 0, line, false
	}
	return rank, strings.TrimPrefix(rest, " "), true
}

// joinParts removes the tag of a line of a rank within the line. Open MPI's mpirun reads the output of a rank in blocks, and puts the tag
// before each of them: a secret with a tag within would not be recognized.
func joinParts(line string) string {
	if !strings.HasPrefix(line, "[") {
		return line
	}
	end := strings.Index(line, ">:")
	if end < 0 || !strings.Contains(line[:end], "]<std") || strings.ContainsAny(line[:end], " \t") {
		return line
	}
	tag, text := line[:end+2], line[end+2:]
	if !strings.Contains(text, tag) {
		return line
	}
	if blanks := len(text) - len(strings.TrimLeft(text, " ")); blanks%2 == 1 {
		// The tag of Open MPI 5 ends with a blank.
		tag, text = tag+" ", text[1:]
	}
	return tag + strings.ReplaceAll(text, tag, "")
}
