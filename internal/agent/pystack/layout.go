package pystack

import (
	"encoding/binary"
	"fmt"
)

// layout is where the structures of a version of CPython hold what a stack consists of: offsets in bytes, in the order of the way from
// the runtime to a line. They are those of 64-bit builds, and did not change within a minor version.
type layout struct {
	// minor is the minor version of Python 3.
	minor int
	// interpreters is the offset of the list of interpreters in the runtime; nextInterpreter and threads, the list of threads, are those
	// in an interpreter.
	interpreters, nextInterpreter, threads uint64
	// nextThread and nativeThread are offsets in the state of a thread. nativeThread is 0 if the version does not keep the kernel's id.
	nextThread, nativeThread uint64
	// frame is the offset of the innermost frame in a thread's state; with hasCFrame, that of a structure that holds it at cframe.
	frame     uint64
	hasCFrame bool
	cframe    uint64
	// previous, code and instruction are offsets in a frame; frameSize is how much of a frame is read. owner is the offset of a byte with
	// the kind of the frame's owner: from firstInternal on, it is the interpreter itself.
	previous, code, instruction, owner, frameSize uint64
	firstInternal                                 byte
	// file, function, lines, firstLine and instructions are offsets in a code object.
	file, function, lines, firstLine, instructions uint64
	// table is the form of the table of lines.
	table tableForm
	// asciiSize is the size of the head of an ASCII string, compactSize that of another one.
	asciiSize, compactSize uint64
}

// tableForm is the form in which a code object maps instructions to lines.
type tableForm int

const (
	// lnotab has pairs of an increment of the address and one of the line (Objects/lnotab_notes.txt of 3.9).
	lnotab tableForm = iota
	// ranges has pairs of the length of a range and the difference of its line (PEP 626, 3.10).
	ranges
	// locations has entries of variable length (Objects/locations.md, from 3.11 on).
	locations
)

// Offsets that no version has changed: those of the head of an object, of strings and of bytes.
const (
	typeAt        = 8
	sizeAt        = 16
	stringStateAt = 32
	bytesAt       = 32
)

// layouts are those of the versions that do not publish them, by their minor version: from Include/internal/pycore_runtime.h,
// pycore_interp.h and pycore_frame.h, and Include/cpython/pystate.h, code.h, frameobject.h and unicodeobject.h.
var layouts = map[int]layout{
	9: {
		minor: 9, interpreters: 32, threads: 8, nextThread: 8, frame: 24,
		previous: 24, code: 32, instruction: 104, frameSize: 112,
		file: 104, function: 112, lines: 120, firstLine: 40, table: lnotab, asciiSize: 48, compactSize: 72,
	},
	10: {
		minor: 10, interpreters: 32, threads: 8, nextThread: 8, frame: 24,
		previous: 24, code: 32, instruction: 96, frameSize: 104,
		file: 104, function: 112, lines: 120, firstLine: 40, table: ranges, asciiSize: 48, compactSize: 72,
	},
	11: {
		minor: 11, interpreters: 40, threads: 16, nextThread: 8, nativeThread: 160, frame: 56, hasCFrame: true, cframe: 8,
		previous: 48, code: 32, instruction: 56, owner: 69, frameSize: 72, firstInternal: 3,
		file: 112, function: 128, lines: 136, firstLine: 72, instructions: 184, table: locations, asciiSize: 48, compactSize: 72,
	},
	12: {
		minor: 12, interpreters: 40, threads: 72, nextThread: 8, nativeThread: 144, frame: 56, hasCFrame: true, cframe: 0,
		previous: 8, code: 0, instruction: 56, owner: 70, frameSize: 72, firstInternal: 3,
		file: 112, function: 128, lines: 136, firstLine: 68, instructions: 192, table: locations, asciiSize: 40, compactSize: 56,
	},
}

// From 3.13 on, the runtime begins with its own offsets (struct _Py_DebugOffsets): a mark, the version, whether it is a build without the
// global lock, and numbers of 64 bits.
const (
	mark          = "xdebugpy"
	publishedSize = 8 * 64
)

// The positions of offsets among the numbers of _Py_DebugOffsets, by minor version.
var published = map[int]struct {
	interpreters, nextInterpreter, threads, nextThread, frame, nativeThread, previous, code, instruction, owner int
	file, function, lines, firstLine, instructions                                                              int
	firstInternal                                                                                               byte
}{
	13: {
		interpreters: 5, nextInterpreter: 8, threads: 9, nextThread: 21, frame: 23, nativeThread: 25, previous: 29, code: 30, instruction: 31, owner: 33,
		file: 35, function: 37, lines: 38, firstLine: 39, instructions: 43, firstInternal: 3,
	},
	14: {
		interpreters: 5, nextInterpreter: 8, threads: 9, nextThread: 24, frame: 26, nativeThread: 28, previous: 32, code: 33, instruction: 34, owner: 36,
		file: 40, function: 42, lines: 43, firstLine: 44, instructions: 48, firstInternal: 3,
	},
}

// unsupported is the error for a version whose layout is unknown.
type unsupported struct {
	minor int
	build string
}

func (u unsupported) Error() string {
	return fmt.Sprintf("Python 3.%d%s is not supported", u.minor, u.build)
}

// parsePublished returns the layout that a runtime publishes at its beginning.
func parsePublished(runtime []byte) (layout, error) {
	number := func(i int) uint64 { return binary.LittleEndian.Uint64(runtime[8*i:]) }
	minor := int(number(1) >> 16 & 0xff)
	if major := number(1) >> 24; major != 3 {
		return layout{}, fmt.Errorf("the runtime is none of Python 3 (%d)", major)
	}
	if number(2) != 0 {
		return layout{}, unsupported{minor, " without its global lock"}
	}
	at, known := published[minor]
	if !known {
		return layout{}, unsupported{minor: minor}
	}
	l := layout{
		minor: minor, interpreters: number(at.interpreters), nextInterpreter: number(at.nextInterpreter), threads: number(at.threads), nextThread: number(at.nextThread), frame: number(at.frame),
		nativeThread: number(at.nativeThread), previous: number(at.previous), code: number(at.code), instruction: number(at.instruction), owner: number(at.owner),
		file: number(at.file), function: number(at.function), lines: number(at.lines), firstLine: number(at.firstLine), instructions: number(at.instructions),
		firstInternal: at.firstInternal, table: locations, asciiSize: 40, compactSize: 56,
	}
	// most is larger than any offset in the runtime and its interpreters.
	const most = 1 << 20
	for _, offset := range []uint64{l.interpreters, l.nextInterpreter, l.threads, l.nextThread, l.frame, l.nativeThread, l.instructions} {
		if offset > most {
			return layout{}, errInvalid
		}
	}
	for _, offset := range []uint64{l.previous, l.code, l.instruction, l.owner, l.file, l.function, l.lines, l.firstLine} {
		if offset > mostStructure-8 {
			return layout{}, errInvalid
		}
	}
	l.frameSize = max(l.previous, l.code, l.instruction, l.owner) + 8
	return l, nil
}

// codeSize is how much of a code object is read.
func (l layout) codeSize() uint64 {
	return max(typeAt, l.file, l.function, l.lines, l.firstLine) + 8
}
