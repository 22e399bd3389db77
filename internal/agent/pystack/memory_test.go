package pystack

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/agentapi"
)

// memory is that of a process: what is not written cannot be read.
type memory struct {
	blocks map[uint64][]byte
	next   uint64
	reads  int
}

func (m *memory) ReadAt(p []byte, at int64) (int, error) {
	m.reads++
	for start, data := range m.blocks {
		if from := uint64(at) - start; uint64(at) >= start && from < uint64(len(data)) {
			if n := copy(p, data[from:]); n < len(p) {
				return n, io.EOF
			}
			return len(p), nil
		}
	}
	return 0, io.EOF
}

// add adds a block, and returns its address.
func (m *memory) add(size int) (uint64, []byte) {
	if m.next == 0 {
		m.next = 0x7f0000000000
	}
	at, data := m.next, make([]byte, size)
	m.next += uint64(size+0xfff) &^ 0xfff
	m.blocks[at] = data
	return at, data
}

func put(data []byte, at, value uint64) { binary.LittleEndian.PutUint64(data[at:], value) }

// call is a call of a stack that is written: owner is who the frame belongs to.
type written struct {
	file, function string
	line           int
	owner          byte
}

// fake is a process that is written as its version's layout has it.
type fake struct {
	*memory
	layout
	maps                                     string
	runtime, codeType, textType, interpreter uint64
	state                                    []byte
	frames                                   []uint64
}

// newFake returns a process of a version with the stack of one thread, the innermost call first.
func newFake(minor int, calls ...written) *fake {
	f := &fake{memory: &memory{blocks: map[uint64][]byte{}}}
	runtimeAt, runtime := f.add(1024)
	if l, known := layouts[minor]; known {
		f.layout = l
	} else {
		at := published[minor]
		copy(runtime, mark)
		put(runtime, 8, 3<<24|uint64(minor)<<16|0xf0)
		for i, offset := range map[int]uint64{
			at.interpreters: 640, at.nextInterpreter: 48, at.threads: 56, at.nextThread: 16, at.frame: 72, at.nativeThread: 160, at.previous: 8,
			at.instruction: 56, at.owner: 70, at.file: 112, at.function: 128, at.lines: 136, at.firstLine: 68, at.instructions: 200,
		} {
			put(runtime, uint64(8*i), offset)
		}
		f.layout, _ = parsePublished(runtime)
	}
	f.runtime = runtimeAt
	f.codeType, _ = f.add(8)
	f.textType, _ = f.add(8)
	versionAt, version := f.add(8)
	put(version, 0, 3<<24|uint64(minor)<<16)
	interpreterAt, interpreter := f.add(4096)
	f.interpreter = interpreterAt
	put(runtime, f.interpreters, interpreterAt)
	stateAt, state := f.add(1024)
	f.state = state
	put(interpreter, f.threads, stateAt)
	if f.nativeThread > 0 {
		put(state, f.nativeThread, 77)
	}
	link := func(frame uint64) { put(state, f.frame, frame) }
	if f.hasCFrame {
		at, data := f.add(32)
		put(state, f.frame, at)
		link = func(frame uint64) { put(data, f.cframe, frame) }
	}
	for _, c := range calls {
		at, frame := f.add(256)
		link(at)
		link = func(next uint64) { put(frame, f.previous, next) }
		code := f.addCode(c)
		put(frame, f.code, code)
		if f.owner > 0 {
			frame[f.owner] = c.owner
		}
		put(frame, f.instruction, map[bool]uint64{true: code + f.instructions, false: 0}[f.table == locations])
		f.frames = append(f.frames, at)
	}
	f.addModule(map[string]uint64{"_PyRuntime": runtimeAt, "Py_Version": versionAt, "PyCode_Type": f.codeType, "PyUnicode_Type": f.textType})
	return f
}

// addCode adds a code object whose first instruction is at a line.
func (f *fake) addCode(c written) uint64 {
	at, code := f.add(256)
	put(code, typeAt, f.codeType)
	put(code, f.file, f.addText(c.file, 1))
	put(code, f.function, f.addText(c.function, 1))
	binary.LittleEndian.PutUint32(code[f.firstLine:], uint32(c.line-1))
	table := map[tableForm][]byte{lnotab: {0, 1, 4, 1}, ranges: {4, 1, 4, 1}, locations: {0x80 | noColumns<<3, 2}}[f.table]
	linesAt, lines := f.add(int(bytesAt) + len(table))
	put(lines, sizeAt, uint64(len(table)))
	copy(lines[bytesAt:], table)
	put(code, f.lines, linesAt)
	return at
}

// addText adds a string with characters of a width.
func (f *fake) addText(text string, width int) uint64 {
	characters := []rune(text)
	at, data := f.add(int(f.compactSize) + width*len(characters))
	put(data, typeAt, f.textType)
	put(data, sizeAt, uint64(len(characters)))
	state, start := uint32(width)<<2|1<<5, f.compactSize
	if width == 1 && strings.Trim(text, "\x00") == text && isASCII(text) {
		state, start = state|1<<6, f.asciiSize
	}
	binary.LittleEndian.PutUint32(data[stringStateAt:], state)
	for i, r := range characters {
		for b := range width {
			data[int(start)+i*width+b] = byte(r >> (8 * b))
		}
	}
	return at
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > 127 }) < 0
}

// addModule adds the image of a library that exports symbols.
func (f *fake) addModule(symbols map[string]uint64) {
	const (
		programs, dynamic, table, names, hash = 64, 0x200, 0x300, 0x500, 0x700
		buckets                               = 1
	)
	at, image := f.add(0x1000)
	copy(image, "\x7fELF\x02\x01")
	put(image, 32, programs)
	binary.LittleEndian.PutUint16(image[56:], 2)
	binary.LittleEndian.PutUint32(image[programs:], typeLoad)
	binary.LittleEndian.PutUint32(image[programs+programHeaderSize:], typeDynamic)
	put(image, programs+programHeaderSize+16, dynamic)
	put(image, programs+programHeaderSize+40, 3*tagSize)
	for i, tag := range [][2]uint64{{tagStrings, at + names}, {tagSymbols, table}, {tagGNUHash, at + hash}} {
		put(image, uint64(dynamic+i*tagSize), tag[0])
		put(image, uint64(dynamic+i*tagSize+8), tag[1])
	}
	binary.LittleEndian.PutUint32(image[hash:], buckets)
	binary.LittleEndian.PutUint32(image[hash+4:], 1)
	binary.LittleEndian.PutUint32(image[hash+8:], 1)
	binary.LittleEndian.PutUint32(image[hash+24:], 1)
	name, i := 1, 1
	for _, symbol := range []string{"PyCode_Type", "_PyRuntime", "PyUnicode_Type", "Py_Version"} {
		value := symbols[symbol]
		copy(image[names+name:], symbol)
		binary.LittleEndian.PutUint32(image[table+i*symbolSize:], uint32(name))
		put(image, uint64(table+i*symbolSize+8), value-at)
		h := uint32(5381)
		for _, c := range []byte(symbol) {
			h = h*33 + uint32(c)
		}
		h &^= 1
		if i == len(symbols) {
			h |= 1
		}
		binary.LittleEndian.PutUint32(image[hash+28+4*(i-1):], h)
		name, i = name+len(symbol)+1, i+1
	}
	f.maps = strings.Join([]string{
		"400000-401000 r--p 00000000 fd:00 11 /usr/bin/train", "401000-402000 r-xp 00001000 fd:00 11 /usr/bin/train",
		hex(at) + "-" + hex(at+0x1000) + " r--p 00000000 fd:00 12 /usr/lib64/libpython3." + "x.so.1.0", "7ffd0000-7ffe0000 rw-p 00000000 00:00 0 [stack]",
	}, "\n")
}

func hex(n uint64) string {
	const digits = "0123456789abcdef"
	text := ""
	for ; n > 0; n /= 16 {
		text = string(digits[n%16]) + text
	}
	return text
}

var calls = []written{{"/app/train.py", "main.<locals>.load_batch", 42, 0}, {"<string>", "shim", 1, 3}, {"/app/train.py", "main", 60, 1}}

// TestVersions: a stack is read from the structures of every version.
func TestVersions(t *testing.T) {
	t.Parallel()
	for minor := 9; minor <= 14; minor++ {
		f := newFake(minor, calls...)
		want := []agentapi.Frame{{File: "/app/train.py", Line: 42, Function: "load_batch"}, {File: "/app/train.py", Line: 60, Function: "main"}}
		if minor < 11 {
			want = []agentapi.Frame{want[0], {File: "<string>", Line: 1, Function: "shim"}, want[1]}
		}
		got, err := Read(f, f.maps, 77)
		if err != nil || len(got.Threads) != 1 {
			t.Errorf("Python 3.%d: %+v, %v", minor, got, err)
			continue
		}
		if diff := cmp.Diff(want, got.Threads[0].Frames); diff != "" {
			t.Errorf("Python 3.%d: %s", minor, diff)
		}
	}
}

// TestHostileMemory: what a program writes into its memory ends the reading early, with an error or a bounded result.
func TestHostileMemory(t *testing.T) {
	t.Parallel()
	deep := make([]written, 3*mostFrames)
	internal := make([]written, mostInternal+1)
	for i := range deep {
		deep[i] = written{"/app/train.py", "f", 7, 0}
	}
	for i := range internal {
		internal[i] = written{"/app/train.py", "f", 7, 3}
	}
	frameOf := func(f *fake, i int) []byte { return f.blocks[f.frames[i]] }
	codeOf := func(f *fake) []byte { return f.blocks[binary.LittleEndian.Uint64(frameOf(f, 0)[f.code:])] }
	textOf := func(f *fake) []byte { return f.blocks[binary.LittleEndian.Uint64(codeOf(f)[f.function:])] }
	tests := map[string]struct {
		minor  int
		calls  []written
		change func(f *fake)
		// want is the error, or else the innermost call.
		want string
	}{
		"nothing":                {13, calls, func(*fake) {}, "load_batch (/app/train.py:42)"},
		"frames in a circle":     {12, calls, func(f *fake) { put(frameOf(f, 2), f.previous, f.frames[0]) }, errInvalid.Error()},
		"a frame nowhere":        {12, calls, func(f *fake) { put(frameOf(f, 0), f.previous, 1<<63) }, errInvalid.Error()},
		"many frames":            {12, deep, func(*fake) {}, "f (/app/train.py:7)"},
		"many frames of its own": {12, internal, func(*fake) {}, errInvalid.Error()},
		"threads in a circle": {12, calls, func(f *fake) {
			put(f.state, f.nextThread, binary.LittleEndian.Uint64(f.blocks[f.interpreter][f.threads:]))
		}, "load_batch (/app/train.py:42)"},
		"interpreters in a circle":   {12, calls, func(f *fake) { put(f.blocks[f.interpreter], f.nextInterpreter, f.interpreter) }, "load_batch (/app/train.py:42)"},
		"no thread":                  {12, calls, func(f *fake) { put(f.blocks[f.interpreter], f.threads, 0) }, "it runs no Python code"},
		"no frame":                   {13, nil, func(*fake) {}, "it runs no Python code"},
		"a code object of no code":   {12, calls, func(f *fake) { put(codeOf(f), typeAt, f.textType) }, errInvalid.Error()},
		"a name that is no string":   {12, calls, func(f *fake) { put(textOf(f), typeAt, f.codeType) }, errInvalid.Error()},
		"a name without an end":      {12, calls, func(f *fake) { put(textOf(f), sizeAt, 1<<62) }, errInvalid.Error()},
		"a name that is elsewhere":   {12, calls, func(f *fake) { textOf(f)[stringStateAt] = 1<<2 | 1<<6 }, errInvalid.Error()},
		"characters of three bytes":  {12, calls, func(f *fake) { textOf(f)[stringStateAt] = 3<<2 | 1<<5 }, errInvalid.Error()},
		"a state of 16 bits":         {14, calls, func(f *fake) { binary.LittleEndian.PutUint32(textOf(f)[stringStateAt:], 1<<16|1<<19|1<<20) }, "load_batch (/app/train.py:42)"},
		"a table without an end":     {12, calls, func(f *fake) { put(f.blocks[binary.LittleEndian.Uint64(codeOf(f)[f.lines:])], sizeAt, 1<<40) }, "load_batch (/app/train.py)"},
		"a line that is none":        {12, calls, func(f *fake) { binary.LittleEndian.PutUint32(codeOf(f)[f.firstLine:], 1<<31) }, "load_batch (/app/train.py)"},
		"instructions of other code": {13, calls, func(f *fake) { put(frameOf(f, 0), f.instruction, 8) }, "load_batch (/app/train.py)"},
		"a name of other characters": {12, calls, func(f *fake) { put(codeOf(f), f.function, f.addText("größe\x1b[1m\U0001f600", 4)) }, "größe?[1m😀 (/app/train.py:42)"},
		"a name with a surrogate": {12, calls, func(f *fake) {
			at := f.addText("ab", 2)
			put(codeOf(f), f.function, at)
			f.blocks[at][f.compactSize+1] = 0xd8
		}, "?b (/app/train.py:42)"},
		"a name of Latin-1":          {12, calls, func(f *fake) { put(codeOf(f), f.function, f.addText("größe", 1)) }, "größe (/app/train.py:42)"},
		"a name that is long":        {12, calls, func(f *fake) { put(codeOf(f), f.function, f.addText(strings.Repeat("a", 1000)+"b", 1)) }, "…" + strings.Repeat("a", mostName-1) + "b (/app/train.py:42)"},
		"an unknown version":         {12, calls, func(f *fake) { f.setVersion(8) }, "Python 3.8 is not supported"},
		"a newer version":            {13, calls, func(f *fake) { put(f.blocks[f.runtime], 8, 3<<24|15<<16) }, "Python 3.15 is not supported"},
		"no global lock":             {13, calls, func(f *fake) { put(f.blocks[f.runtime], 16, 1) }, "Python 3.13 without its global lock is not supported"},
		"another runtime":            {13, calls, func(f *fake) { put(f.blocks[f.runtime], 8, 4<<24) }, "the runtime is none of Python 3 (4)"},
		"offsets that are too large": {13, calls, func(f *fake) { put(f.blocks[f.runtime], 8*uint64(published[13].threads), 1<<40) }, errInvalid.Error()},
		"a frame that is too large":  {13, calls, func(f *fake) { put(f.blocks[f.runtime], 8*uint64(published[13].instruction), 1<<30) }, errInvalid.Error()},
		"offsets that wrap around":   {13, calls, func(f *fake) { put(f.blocks[f.runtime], 8*uint64(published[13].lines), ^uint64(0)-3) }, errInvalid.Error()},
		"offsets of nothing":         {13, calls, func(f *fake) { clear(f.blocks[f.runtime][24:512]) }, errInvalid.Error()},
		"a file that is no program":  {12, calls, func(f *fake) { f.image()[0] = 'x' }, ErrNoPython.Error()},
		"a huge section":             {12, calls, func(f *fake) { put(f.image(), 64+programHeaderSize+40, 1<<40) }, ErrNoPython.Error()},
		"headers elsewhere":          {12, calls, func(f *fake) { put(f.image(), 32, 1<<40) }, ErrNoPython.Error()},
		"no buckets":                 {12, calls, func(f *fake) { put(f.image(), 0x700, 0) }, ErrNoPython.Error()},
		"a chain without an end":     {12, calls, func(f *fake) { clear(f.image()[0x71c:0x72c]) }, ErrNoPython.Error()},
		"maps that are none":         {12, calls, func(f *fake) { f.maps = strings.Repeat("x y z 1 2 /usr/lib/libpython3.12.so\n9-8 r 0 0 0 /a\n", 100) }, ErrNoPython.Error()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(test.minor, test.calls...)
			test.change(f)
			got, err := Read(f, f.maps, 77)
			text := ""
			switch {
			case err != nil:
				text = err.Error()
			case len(got.Threads) == 1:
				text = got.Threads[0].Frames[0].String()
			}
			if text != test.want {
				t.Errorf("got %q, want %q", text, test.want)
			}
			if f.reads > mostReads {
				t.Errorf("%d reads", f.reads)
			}
			for _, thread := range got.Threads {
				if len(thread.Frames) > mostFrames || thread.More != (len(test.calls) > mostFrames) {
					t.Errorf("%d frames, more: %t", len(thread.Frames), thread.More)
				}
			}
		})
	}
}

func (f *fake) setVersion(minor uint64) {
	for at := range f.blocks {
		if data := f.blocks[at]; len(data) == 8 && binary.LittleEndian.Uint64(data) != 0 {
			put(data, 0, 3<<24|minor<<16)
		}
	}
}

// image is that of the library.
func (f *fake) image() []byte {
	for _, data := range f.blocks {
		if len(data) == 0x1000 && (string(data[1:4]) == "ELF") {
			return data
		}
	}
	return nil
}

// TestReadsAreLimited: a process whose threads lead to ever more to read is given up.
func TestReadsAreLimited(t *testing.T) {
	t.Parallel()
	endless := readerFunc(func(p []byte, at int64) (int, error) {
		for i := range p {
			p[i] = 0
		}
		// Every pointer leads on.
		for i := 0; i+8 <= len(p); i += 8 {
			put(p, uint64(i), uint64(at)+64)
		}
		return len(p), nil
	})
	m := &image{memory: endless}
	p := python{image: m, layout: layouts[12]}
	threads, err := p.readThreads(4096)
	if err != nil && !errors.Is(err, errTooMuch) || len(threads) > mostThreads {
		t.Errorf("%d threads, %v", len(threads), err)
	}
	for err == nil {
		_, err = m.read(4096, mostStructure)
	}
	if !errors.Is(err, errTooMuch) || m.bytes > mostBytes+mostStructure {
		t.Errorf("%d bytes were read, %v", m.bytes, err)
	}
}

type readerFunc func(p []byte, at int64) (int, error)

func (f readerFunc) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

func TestLines(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		got, want int
	}{
		"lnotab, the first":             {lineOfLnotab([]byte{4, 1, 4, 0xfe}, 10, 0), 10},
		"lnotab, the second":            {lineOfLnotab([]byte{4, 1, 4, 0xfe}, 10, 4), 11},
		"lnotab, backwards":             {lineOfLnotab([]byte{4, 1, 4, 0xfe}, 10, 100), 9},
		"lnotab, not begun":             {lineOfLnotab([]byte{4, 1}, 10, -1), 10},
		"lnotab, cut":                   {lineOfLnotab([]byte{4}, 10, 8), 10},
		"ranges, the first":             {lineOfRanges([]byte{4, 1, 4, 0xfe}, 10, 0), 11},
		"ranges, the second":            {lineOfRanges([]byte{4, 1, 4, 0xfe}, 10, 4), 9},
		"ranges, none":                  {lineOfRanges([]byte{4, 1, 4, 0x80, 4, 1}, 10, 6), 0},
		"ranges, after none":            {lineOfRanges([]byte{4, 1, 4, 0x80, 4, 1}, 10, 8), 12},
		"ranges, the end":               {lineOfRanges([]byte{4, 1}, 10, 4), 0},
		"locations, not begun":          {lineOfLocations([]byte{0xf0, 0}, 10, -1), 10},
		"locations, before":             {lineOfLocations([]byte{0xf0, 0}, 10, -2), 0},
		"locations, short":              {lineOfLocations([]byte{0x80 | 3<<3 | 1, 7, 0x80 | 11<<3, 1, 2}, 10, 1), 10},
		"locations, one line":           {lineOfLocations([]byte{0x80 | 3<<3 | 1, 7, 0x80 | 11<<3, 1, 2}, 10, 2), 11},
		"locations, long":               {lineOfLocations([]byte{0x80 | 14<<3, 0x40 | 2, 1, 0, 1, 1}, 10, 0), 10 + 33},
		"locations, backwards":          {lineOfLocations([]byte{0x80 | 13<<3, 7}, 10, 0), 7},
		"locations, none":               {lineOfLocations([]byte{0x80 | 15<<3, 0x80 | 12<<3, 0, 0}, 10, 0), 0},
		"locations, after none":         {lineOfLocations([]byte{0x80 | 15<<3, 0x80 | 12<<3, 0, 0}, 10, 1), 12},
		"locations, the end":            {lineOfLocations([]byte{0x80 | 15<<3}, 10, 8), 0},
		"locations, no entry":           {lineOfLocations([]byte{0x10, 0x20}, 10, 0), 0},
		"locations, a number that ends": {lineOfLocations([]byte{0x80 | 14<<3, 0x40}, 10, 0), 10},
	}
	for name, test := range tests {
		if test.got != test.want {
			t.Errorf("%s: line %d, want %d", name, test.got, test.want)
		}
	}
}
