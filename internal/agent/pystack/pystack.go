// Package pystack reads the call stacks of Python programs from their memory, while they run: the file, line and function of each call,
// and no values of variables.
package pystack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"opendatahub.io/mpijob/internal/agentapi"
)

// The memory belongs to the job's user, who can write anything into it. These limits bound what is read of it, and returned.
const (
	// mostReads is the number of reads, and mostBytes that of bytes, for all attempts on a process.
	mostReads, mostBytes = 20000, 16 << 20
	// attempts is how often the stacks are read, if they change meanwhile.
	attempts = 3
	// mostThreads is the number of threads that are looked at, and mostStacks the number of those that are returned.
	mostThreads, mostStacks = 512, 16
	mostInterpreters        = 8
	// mostFrames is the number of calls of a thread that are returned.
	mostFrames = 20
	// mostInternal is the number of the interpreter's own frames that are skipped.
	mostInternal = 200
	// mostName is the length of a file's or a function's name, in characters.
	mostName = 300
	// mostLines is the size of a table of lines, in bytes.
	mostLines = 256 << 10
	// mostStructure is the size of a structure that is read at once.
	mostStructure = 4096
)

// The errors of Read. A caller does not need to tell others from errInvalid.
var (
	// ErrNoPython means that the process contains no Python.
	ErrNoPython = errors.New("it is no Python program")
	errInvalid  = errors.New("the memory is none of a Python program, or it changes")
	errTooMuch  = errors.New("there is too much to read")
)

// Stacks are the call stacks of a process.
type Stacks struct {
	// Python is the version, such as "3.11".
	Python string
	// Threads are those that run Python code, the main thread first.
	Threads []agentapi.ThreadStack
}

// Read reads the call stacks of a process, of which memory is the memory by address, and maps the text of /proc/PID/maps. The main
// thread has the id of the process.
func Read(memory io.ReaderAt, maps string, process int) (Stacks, error) {
	m := &image{memory: memory}
	err := ErrNoPython
	for _, candidate := range modules(maps) {
		symbols, found := m.symbols(candidate, "_PyRuntime", "Py_Version", "PyCode_Type", "PyUnicode_Type")
		if found != nil || symbols["_PyRuntime"] == 0 {
			continue
		}
		var result Stacks
		for range attempts {
			if result, err = m.readStacks(candidate, symbols, process); err == nil || !errors.Is(err, errInvalid) {
				break
			}
		}
		return result, err
	}
	return Stacks{}, err
}

// image is the memory of a process, of which a limited amount is read.
type image struct {
	memory       io.ReaderAt
	reads, bytes int
	// codes are the code objects that were read, and texts the strings.
	codes map[uint64]code
	texts map[uint64]string
}

// read reads bytes at an address.
func (m *image) read(address, size uint64) ([]byte, error) {
	m.reads++
	m.bytes += int(size)
	switch {
	case m.reads > mostReads || m.bytes > mostBytes:
		return nil, errTooMuch
	case address == 0 || address > 1<<62 || size > mostLines+mostStructure:
		return nil, errInvalid
	}
	buffer := make([]byte, size)
	if n, err := m.memory.ReadAt(buffer, int64(address)); n < len(buffer) {
		if errors.Is(err, errTooMuch) {
			return nil, err
		}
		return nil, errInvalid
	}
	return buffer, nil
}

// pointer reads a pointer.
func (m *image) pointer(address uint64) (uint64, error) {
	data, err := m.read(address, 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(data), nil
}

// python is the interpreter of a process.
type python struct {
	*image
	layout
	// codeType and textType are the addresses of the types of code objects and of strings.
	codeType, textType uint64
}

// readStacks reads the stacks of all threads.
func (m *image) readStacks(of module, symbols map[string]uint64, process int) (Stacks, error) {
	m.codes, m.texts = map[uint64]code{}, map[uint64]string{}
	p := python{image: m, codeType: symbols["PyCode_Type"], textType: symbols["PyUnicode_Type"]}
	var err error
	if p.layout, err = m.readLayout(of, symbols); err != nil {
		return Stacks{}, err
	}
	found := Stacks{Python: "3." + strconv.Itoa(p.minor)}
	threads, err := p.readThreads(symbols["_PyRuntime"])
	if err != nil {
		return found, err
	}
	// New threads are put before others: the last one is the first that was started.
	slices.Reverse(threads)
	if main := slices.IndexFunc(threads, func(t thread) bool { return t.id == process }); main > 0 {
		first := threads[main]
		threads = slices.Insert(slices.Delete(threads, main, main+1), 0, first)
	}
	for _, t := range threads[:min(len(threads), mostStacks)] {
		stack, err := p.readStack(t)
		if err != nil {
			return found, err
		}
		if len(stack.Frames) > 0 {
			found.Threads = append(found.Threads, stack)
		}
	}
	if len(found.Threads) == 0 {
		return found, errors.New(agentapi.NoPythonCode)
	}
	return found, nil
}

// readLayout returns the layout of the process's version of Python.
func (m *image) readLayout(of module, symbols map[string]uint64) (layout, error) {
	runtime, err := m.read(symbols["_PyRuntime"], publishedSize)
	switch {
	case err != nil:
		return layout{}, err
	case bytes.HasPrefix(runtime, []byte(mark)):
		return parsePublished(runtime)
	}
	minor := of.minor
	if at := symbols["Py_Version"]; at != 0 {
		version, err := m.pointer(at)
		if err != nil {
			return layout{}, err
		}
		minor = int(version >> 16 & 0xff)
	}
	l, known := layouts[minor]
	switch {
	case known:
		return l, nil
	case minor < 0:
		return layout{}, errors.New("its version of Python is unknown")
	}
	return layout{}, unsupported{minor: minor}
}

// thread is a thread of the interpreter: the address of its state, and its id in the kernel, 0 if unknown.
type thread struct {
	state uint64
	id    int
}

// readThreads returns the threads of all interpreters, the newest first.
func (p python) readThreads(runtime uint64) ([]thread, error) {
	var all []thread
	seen := map[uint64]bool{}
	interpreter, err := p.pointer(runtime + p.interpreters)
	for i := 0; err == nil && interpreter != 0 && i < mostInterpreters; i++ {
		var state uint64
		state, err = p.pointer(interpreter + p.threads)
		for err == nil && state != 0 && !seen[state] && len(all) < mostThreads {
			seen[state] = true
			t := thread{state: state}
			if p.nativeThread > 0 {
				var id uint64
				if id, err = p.pointer(state + p.nativeThread); err != nil {
					return nil, err
				}
				if id < 1<<31 {
					t.id = int(id)
				}
			}
			all = append(all, t)
			state, err = p.pointer(state + p.nextThread)
		}
		if err == nil {
			interpreter, err = p.pointer(interpreter + p.nextInterpreter)
		}
	}
	return all, err
}

// readStack reads the stack of a thread. A thread that runs no Python code has no frames.
func (p python) readStack(t thread) (agentapi.ThreadStack, error) {
	stack := agentapi.ThreadStack{Thread: t.id}
	frame, err := p.pointer(t.state + p.frame)
	if err == nil && p.hasCFrame && frame != 0 {
		frame, err = p.pointer(frame + p.cframe)
	}
	if err != nil {
		return stack, err
	}
	seen := map[uint64]bool{}
	for internal := 0; frame != 0; {
		if seen[frame] {
			return stack, errInvalid
		}
		seen[frame] = true
		data, err := p.read(frame, p.frameSize)
		if err != nil {
			return stack, err
		}
		at := func(offset uint64) uint64 { return binary.LittleEndian.Uint64(data[offset:]) }
		frame = at(p.previous)
		if p.firstInternal > 0 && data[p.owner] >= p.firstInternal {
			if internal++; internal > mostInternal {
				return stack, errInvalid
			}
			continue
		}
		if len(stack.Frames) == mostFrames {
			stack.More = true
			return stack, nil
		}
		call, err := p.readCall(at(p.code), at(p.instruction))
		if err != nil {
			return stack, err
		}
		stack.Frames = append(stack.Frames, call)
	}
	return stack, nil
}

// code is what is read of a code object.
type code struct {
	file, function string
	firstLine      int
	lines          []byte
}

// readCall describes a call by its code object and what its frame knows of its instruction.
func (p python) readCall(address, instruction uint64) (agentapi.Frame, error) {
	// The lowest bits of a reference in a frame are marks (3.14).
	const marks = 3
	address &^= marks
	c, err := p.readCode(address)
	if err != nil {
		return agentapi.Frame{}, err
	}
	line := 0
	switch p.table {
	case lnotab:
		line = lineOfLnotab(c.lines, c.firstLine, int(int32(instruction)))
	case ranges:
		line = lineOfRanges(c.lines, c.firstLine, 2*int(int32(instruction)))
	case locations:
		line = lineOfLocations(c.lines, c.firstLine, int(int64(instruction-address-p.instructions)/2))
	}
	if line < 0 || line > 1<<30 {
		line = 0
	}
	return agentapi.Frame{File: c.file, Line: int32(line), Function: c.function}, nil
}

// readCode reads a code object.
func (p python) readCode(address uint64) (code, error) {
	if known, found := p.codes[address]; found {
		return known, nil
	}
	data, err := p.read(address, p.codeSize())
	if err != nil {
		return code{}, err
	}
	at := func(offset uint64) uint64 { return binary.LittleEndian.Uint64(data[offset:]) }
	if p.codeType != 0 && at(typeAt) != p.codeType {
		return code{}, errInvalid
	}
	c := code{firstLine: int(int32(binary.LittleEndian.Uint32(data[p.firstLine:])))}
	if c.file, err = p.readText(at(p.file)); err != nil {
		return code{}, err
	}
	if c.function, err = p.readText(at(p.function)); err != nil {
		return code{}, err
	}
	if at := strings.LastIndex(c.function, "<locals>."); at >= 0 {
		c.function = c.function[at+len("<locals>."):]
	}
	size, err := p.pointer(at(p.lines) + sizeAt)
	if err != nil {
		return code{}, err
	}
	if size > 0 && size <= mostLines {
		if c.lines, err = p.read(at(p.lines)+bytesAt, size); err != nil {
			return code{}, err
		}
	}
	p.codes[address] = c
	return c, nil
}

// readText reads a string, and makes it printable. A long one is cut at its start, where the names of files are least specific.
func (p python) readText(address uint64) (string, error) {
	if known, found := p.texts[address]; found {
		return known, nil
	}
	head, err := p.read(address, stringStateAt+4)
	if err != nil {
		return "", err
	}
	if p.textType != 0 && binary.LittleEndian.Uint64(head[typeAt:]) != p.textType {
		return "", errInvalid
	}
	length, state := binary.LittleEndian.Uint64(head[sizeAt:]), binary.LittleEndian.Uint32(head[stringStateAt:])
	// The state has 2 bits about interning, 3 for the size of a character, and one each for strings whose characters follow the head and
	// for those of ASCII. Some versions use 16 bits about interning.
	bits := state >> 2
	if bits&(1<<14-1) == 0 {
		bits = state >> 16
	}
	width, isCompact, isASCII := uint64(bits&7), bits>>3&1 == 1, bits>>4&1 == 1
	if width != 1 && width != 2 && width != 4 || !isCompact || length > 1<<20 {
		return "", errInvalid
	}
	start := address + p.compactSize
	if isASCII {
		start = address + p.asciiSize
	}
	skipped := uint64(0)
	if length > mostName {
		skipped = length - mostName
	}
	data, err := p.read(start+skipped*width, (length-skipped)*width)
	if err != nil {
		return "", err
	}
	text := printable(data, width)
	if skipped > 0 {
		text = "…" + text
	}
	p.texts[address] = text
	return text, nil
}

// printable returns characters of a width in bytes as text. Those that cannot be printed become "?".
func printable(data []byte, width uint64) string {
	var text strings.Builder
	for at := uint64(0); at+width <= uint64(len(data)); at += width {
		var r rune
		switch width {
		case 1:
			r = rune(data[at])
		case 2:
			r = rune(binary.LittleEndian.Uint16(data[at:]))
		default:
			r = rune(binary.LittleEndian.Uint32(data[at:]))
		}
		if !unicode.IsPrint(r) || utf16.IsSurrogate(r) {
			r = '?'
		}
		text.WriteRune(r)
	}
	return text.String()
}
