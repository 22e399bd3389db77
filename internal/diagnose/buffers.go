package diagnose

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
)

var (
	// begun is a call of mpi4py that only begins to send or receive an array, which is its first argument.
	begun = regexp.MustCompile(`\.(I[bsr]?send|Irecv|Ibcast|Ireduce|Iallreduce|Igatherv?|Iallgatherv?|Iscatterv?|Ialltoall[vw]?)\(\s*[\[(]?\s*([A-Za-z_]\w*)`)
	// awaitsRequest is a line that waits for requests, or asks whether they are done.
	awaitsRequest = regexp.MustCompile(`\.(?:Wait|wait|Test|test)(?:all|any|some)?\(`)
	// keepsRequest is the begin of a line that keeps a request in variables, or in a list; nameInLine is a name in it.
	keepsRequest = regexp.MustCompile(`^\s*([\w\s,.[\]]+?)\s*\+?=[^=]|(\w+)\.append\(`)
	nameInLine   = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// bufferChanged returns the first remedies for a program in the launcher's command that uses the array of a call before it has waited for it, and adds figures
// for that: it changes one that MPI may still read, or uses one that a message may not have reached. It returns nil if it has no such lines, or the
// program is not in the command.
func (p *input) bufferChanged(figures map[string]string) []v1alpha1.Remedy {
	lines := strings.Split(p.inlineProgram(), "\n")
	for i, line := range lines {
		call := begun.FindStringSubmatch(line)
		if call == nil || awaitsRequest.MatchString(line[begun.FindStringIndex(line)[1]:]) {
			continue
		}
		uses, remedies := changesOf(call[2]), codes.BufferChanged
		if call[1] == "Irecv" {
			uses, remedies = regexp.MustCompile(`\b`+regexp.QuoteMeta(call[2])+`\b`), codes.BufferRead
		}
		if at := beforeWait(lines, i+1, uses); at >= 0 {
			figures["call"], figures["object"], figures["script"] = call[1], call[2], quotedText(p.mask(strings.TrimSpace(lines[at])))
			figures["first"], figures["line"] = strconv.Itoa(i+1), strconv.Itoa(at+1)
			return remedies
		}
	}
	return nil
}

// changesOf matches lines that change the elements of an array. One that gives its name to another array changes none.
func changesOf(array string) *regexp.Regexp {
	name := regexp.QuoteMeta(array)
	return regexp.MustCompile(`^\s*` + name + `(?:\[[^=]*\]\s*(?:[-+*/%&|^]|//|\*\*)?=[^=]|\s*(?:[-+*/%&|^]|//|\*\*)=)|\b` + name + `\.(?:fill|sort|partition|put|resize)\(|\bcopyto\(\s*` + name + `\s*,|\bout\s*=\s*` + name + `\b|\.(?:Recv|Bcast)\(\s*[\[(]?\s*` + name + `\b`)
}

// beforeWait returns the index of the first line from an index on that matches, before one that waits for requests, uses that of the call, begins another
// call or is no longer in the same block; -1 if there is none.
func beforeWait(lines []string, from int, matches *regexp.Regexp) int {
	block, requests := indentOf(lines[from-1]), namesOfRequest(lines[from-1])
	for i := from; i < len(lines); i++ {
		text := strings.TrimSpace(lines[i])
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if indentOf(lines[i]) < block || awaitsRequest.MatchString(text) || begun.MatchString(text) || usesAny(text, requests) {
			return -1
		}
		if matches.MatchString(lines[i]) {
			return i
		}
	}
	return -1
}

// namesOfRequest returns the names in which a line keeps the request of the call that it begins.
func namesOfRequest(line string) []string {
	found := keepsRequest.FindStringSubmatch(line)
	if found == nil {
		return nil
	}
	return nameInLine.FindAllString(found[1]+found[2], -1)
}

// usesAny reports whether a line has one of some names: what it calls may wait for the request of that name.
func usesAny(text string, names []string) bool {
	return slices.ContainsFunc(nameInLine.FindAllString(text, -1), func(name string) bool { return slices.Contains(names, name) })
}

// indentOf returns the number of blanks and tabs with which a line begins.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
