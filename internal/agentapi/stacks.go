package agentapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// HostStacks are the call stacks of the ranks of a host.
type HostStacks struct {
	Host string `json:"host"`
	// Ranks are those that run, by number.
	Ranks []RankStack `json:"ranks"`
	// Error is why the host cannot be asked; empty if it could.
	Error string `json:"error,omitempty"`
}

// RankStack is where a rank is in its Python code.
type RankStack struct {
	Rank int32 `json:"rank"`
	// Process is the process whose stacks these are: the rank's, or the first one of those that it started that runs Python.
	Process int `json:"process"`
	// Doing is what the rank does, and For what it waits for; both are empty if unknown.
	Doing Doing  `json:"doing,omitempty"`
	For   string `json:"for,omitempty"`
	// Python is the version of the interpreter, such as "3.11".
	Python string `json:"python,omitempty"`
	// Inline is the program that Python got as an argument, whose file is InlineFile, as one line; "" if there is none.
	Inline string `json:"inline,omitempty"`
	// Threads are those that run Python code, the main thread first.
	Threads []ThreadStack `json:"threads,omitempty"`
	// Error is why there are no stacks, such as "it is no Python program"; empty if there are.
	Error string `json:"error,omitempty"`
}

// ThreadStack is the call stack of a thread.
type ThreadStack struct {
	// Thread is its id in the kernel; 0 if unknown.
	Thread int `json:"thread,omitempty"`
	// Frames are its calls, the innermost first.
	Frames []Frame `json:"frames"`
	// More is set if there are more calls, further out.
	More bool `json:"more,omitempty"`
}

// Frame is a call in Python code.
type Frame struct {
	File string `json:"file"`
	// Line is 0 if it is unknown.
	Line     int32  `json:"line,omitempty"`
	Function string `json:"function"`
	// Source is the text of the line, of the innermost call in the program's own files of the main thread; "" if it is unknown.
	Source string `json:"source,omitempty"`
}

// InlineFile is the name that Python gives to the file of a program that is an argument (python -c).
const InlineFile = "<string>"

// InlineProgram names a program that is an argument by its begin, such as python -c 'import time; time.sleep(1)'.
func InlineProgram(program string) string {
	const most = 40
	if text := []rune(program); len(text) > most {
		program = string(text[:most-1]) + "…"
	}
	return inlineBegin + "'" + program + "'"
}

const inlineBegin = "python -c "

// IsInlineProgram reports whether the name of a file is one of InlineProgram.
func IsInlineProgram(file string) bool { return strings.HasPrefix(file, inlineBegin+"'") }

// String returns the frame as text, such as "load_batch (/app/train.py:42)".
func (f Frame) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s (%s)", f.Function, f.File)
	}
	return fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line)
}

// OwnFrames returns the calls in the program's own files. If there are none, it returns all: the program is a module of a library.
func (t ThreadStack) OwnFrames() []Frame {
	var own []Frame
	for _, f := range t.Frames {
		if !IsLibraryFile(f.File) {
			own = append(own, f)
		}
	}
	if len(own) == 0 {
		return t.Frames
	}
	return own
}

// IsLibraryFile reports whether a file of Python code is one of the interpreter's or of an installed package. Those of Cython show the
// paths of their build.
func IsLibraryFile(file string) bool {
	for _, suffix := range []string{".pyx", ".pxi", ".pxd"} {
		if strings.HasSuffix(file, suffix) {
			return true
		}
	}
	return isGenerated(file) || strings.Contains(file, "/site-packages/") || strings.Contains(file, "/dist-packages/") || inStandardLibrary(file)
}

// isGenerated reports whether a name such as "<frozen runpy>" or "<__array_function__ internals>" is of code that a library has compiled. The
// program's own are of python -c, of standard input and of notebooks.
func isGenerated(file string) bool {
	return strings.HasPrefix(file, "<") && file != "<string>" && file != "<stdin>" && !strings.HasPrefix(file, "<ipython-input-") && !strings.HasPrefix(file, "<cell ")
}

// inStandardLibrary reports whether a file is in a folder such as /usr/lib64/python3.12.
func inStandardLibrary(file string) bool {
	for _, folder := range []string{"/lib/python", "/lib64/python"} {
		for rest := file; ; {
			_, after, found := strings.Cut(rest, folder)
			if !found {
				break
			}
			if version, _, inside := strings.Cut(after, "/"); inside && version != "" && strings.Trim(version, ".0123456789") == "" {
				return true
			}
			rest = after
		}
	}
	return false
}

// NoPythonCode is the Error of a rank whose interpreter is at its beginning or end: all of its Python code has returned, and the process is
// within what it runs at its exit, such as MPI_Finalize.
const NoPythonCode = "it runs no Python code"

// ProgramEnded is the place of such a rank in the lines of a launcher's agent.
const ProgramEnded = "its program has ended"

// StackPrefix begins the lines of a launcher's agent about where ranks are in their Python code. They follow a line with StallPrefix,
// one for the ranks that are at the same place. Such a line is StackPrefix and, with the innermost call in the program's own files first,
//
//	rank 1: load_batch (/app/train.py:42) < main (/app/train.py:60)
//	ranks 0, 2, 3: main (/app/train.py:61) < <module> (/app/train.py:70) | comm.Barrier()
//
// where the text after the bar is the line of the innermost call, after that of the loop around it if it only sleeps.
const StackPrefix = LinePrefix + "stack of "

// MaxStacks is the most bytes of a host's stacks as JSON. SSH breaks a connection at 256 KiB.
const MaxStacks = 128 << 10

// LimitStacks shortens stacks until they take at most some bytes as JSON: first the threads but the main one, then the last ranks are
// left out.
func LimitStacks(ranks []RankStack, most int) []RankStack {
	size := func() int {
		data, err := json.Marshal(ranks)
		if err != nil {
			return most + 1
		}
		return len(data)
	}
	if size() > most {
		ranks = slices.Clone(ranks)
		for i := range ranks {
			ranks[i].Threads = ranks[i].Threads[:min(1, len(ranks[i].Threads))]
		}
	}
	for len(ranks) > 0 && size() > most {
		ranks = ranks[:len(ranks)/2]
	}
	return ranks
}

// StackGroup are ranks that are at the same place.
type StackGroup struct {
	Ranks []int32
	// Frames are the calls in the program's own files, the innermost first.
	Frames []Frame
}

// GroupStacks puts ranks together whose main threads are at the same place in the program's own files: small groups first, then by the
// number of the first rank. Ranks without a stack are left out. If ranks run several programs that are arguments of Python, these are named.
func GroupStacks(hosts []HostStacks) []StackGroup {
	groups, programs := map[string]*StackGroup{}, map[string]bool{}
	for _, host := range hosts {
		for _, r := range host.Ranks {
			if r.Inline != "" {
				programs[r.Inline] = true
			}
		}
	}
	for _, host := range hosts {
		for _, r := range host.Ranks {
			if len(r.Threads) == 0 {
				continue
			}
			frames := r.Threads[0].OwnFrames()
			key := fmt.Sprint(frames)
			if len(programs) > 1 && r.Inline != "" {
				frames = nameInline(frames, r.Inline)
				key = fmt.Sprint(frames, r.Inline)
			}
			if groups[key] == nil {
				groups[key] = &StackGroup{Frames: frames}
			}
			groups[key].Ranks = append(groups[key].Ranks, r.Rank)
		}
	}
	var all []StackGroup
	for _, group := range groups {
		slices.Sort(group.Ranks)
		all = append(all, *group)
	}
	slices.SortFunc(all, func(a, b StackGroup) int {
		return cmp.Or(len(a.Ranks)-len(b.Ranks), int(a.Ranks[0]-b.Ranks[0]))
	})
	return all
}

// nameInline returns calls with the name of the program that is an argument in place of InlineFile.
func nameInline(frames []Frame, program string) []Frame {
	frames = slices.Clone(frames)
	for i := range frames {
		if frames[i].File == InlineFile {
			frames[i].File = InlineProgram(program)
		}
	}
	return frames
}

// String returns the group as a line of a launcher's agent, without StackPrefix.
func (g StackGroup) String() string {
	// mostFrames is the number of calls in a line, and mostLine its length in bytes: the operator keeps 1000 of each line.
	const mostFrames, mostLine = 6, 800
	var text strings.Builder
	text.WriteString(RanksText(g.Ranks, 4) + ": ")
	for i, f := range g.Frames[:min(len(g.Frames), mostFrames)] {
		call := strings.ReplaceAll(strings.ReplaceAll(f.String(), stackSeparator, " ? "), sourceSeparator, " ? ")
		if i > 0 {
			call = stackSeparator + call
			if text.Len()+len(call) > mostLine {
				break
			}
		}
		text.WriteString(call)
	}
	if len(g.Frames) > 0 && g.Frames[0].Source != "" {
		text.WriteString(sourceSeparator + g.Frames[0].Source)
	}
	return text.String()
}

// stackSeparator is between a call and its caller.
const stackSeparator = " < "

// sourceSeparator is between the calls and the line of source code.
const sourceSeparator = " | "

// RanksText names ranks, such as "rank 1" or "ranks 0, 2, 3, 4 and 12 more".
func RanksText(ranks []int32, most int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	var numbers []string
	for _, rank := range ranks[:min(len(ranks), most)] {
		numbers = append(numbers, strconv.Itoa(int(rank)))
	}
	text := "ranks " + strings.Join(numbers, ", ")
	if more := len(ranks) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
