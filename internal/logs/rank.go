package logs

import (
	"strconv"
	"strings"
)

// Rank reads the tag that MPI's launchers and training libraries put before a rank's line where they are asked to, and
// returns the line without it:
//
//	[1,5]<stdout>: text        mpirun --tag-output (Open MPI 4), horovodrun
//	[prterun-x@1,5]<stdout>: … mpirun --output tag (Open MPI 5)
//	[5] text                   mpirun -prepend-rank (Intel MPI, MPICH)
//	[rank5]: text              PyTorch
//
// A program may mean something else by the third; whoever knows how many ranks there are should check.
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
		// No blank is the tag's.
		return rank, strings.TrimPrefix(rest, ":"), true
	case stream != "", byName:
		rest = strings.TrimPrefix(rest, ":")
	case rest != "" && rest[0] != ' ':
		return 0, line, false
	}
	return rank, strings.TrimPrefix(rest, " "), true
}
