package pystack

import (
	"bytes"
	"encoding/binary"
	"path"
	"strconv"
	"strings"
)

// module is a file with code in the memory of a process, such as libpython3.11.so.1.0.
type module struct {
	// start is the address of the file's first byte, end that after its last mapping.
	start, end uint64
	// minor is the minor version of Python 3 in the name of the file; -1 if it has none.
	minor int
}

// mostMaps is the number of lines of /proc/PID/maps that are looked at.
const mostMaps = 20000

// modules returns the files in the text of /proc/PID/maps that may contain Python's runtime: libraries of its name first, then the
// executable, which is the first file.
func modules(maps string) []module {
	var libraries, programs []module
	current, name := (*module)(nil), ""
	lines := 0
	for line := range strings.Lines(maps) {
		if lines++; lines > mostMaps {
			break
		}
		// An address range, permissions, the offset in the file, its device, its inode and its name.
		fields := strings.Fields(line)
		if len(fields) < 6 || !strings.HasPrefix(fields[5], "/") {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err := strconv.ParseUint(from, 16, 64)
		end, errEnd := strconv.ParseUint(to, 16, 64)
		if err != nil || errEnd != nil || end <= start {
			continue
		}
		switch {
		case fields[5] == name && current != nil:
			current.end = max(current.end, end)
			continue
		case strings.Trim(fields[2], "0") != "":
			continue
		}
		name, current = fields[5], nil
		found := module{start: start, end: end, minor: minorOf(path.Base(name))}
		if strings.HasPrefix(path.Base(name), "libpython") {
			libraries = append(libraries, found)
			current = &libraries[len(libraries)-1]
		} else if len(programs) == 0 {
			programs = append(programs, found)
			current = &programs[0]
		}
	}
	return append(libraries, programs...)
}

// minorOf returns the minor version of Python 3 in the name of a file, such as 11 for python3.11 or libpython3.11.so.1.0; -1 if it has
// none.
func minorOf(name string) int {
	_, rest, found := strings.Cut(name, "python3.")
	if !found {
		return -1
	}
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	if minor, err := strconv.Atoi(digits); err == nil {
		return minor
	}
	return -1
}

// The parts of the ELF format that are read (elf(5)): sizes, types of program headers, and tags of the dynamic section.
const (
	headerSize, programHeaderSize, symbolSize, tagSize = 64, 56, 24, 16

	typeLoad, typeDynamic = 1, 2

	tagStrings, tagSymbols, tagGNUHash = 5, 6, 0x6ffffef5
)

// symbols returns the addresses of symbols that a module exports, from its image in memory: the program headers lead to its dynamic
// section, which a stripped file has, too. Symbols that it does not export are missing.
func (m *image) symbols(of module, names ...string) (map[string]uint64, error) {
	tags, shift, err := m.readDynamic(of)
	if err != nil {
		return nil, err
	}
	t := symbolTable{image: m}
	for ; len(tags) >= tagSize; tags = tags[tagSize:] {
		value := binary.LittleEndian.Uint64(tags[8:])
		// Some loaders replace the addresses of the file by those in memory.
		if value < of.start {
			value += shift
		}
		switch binary.LittleEndian.Uint64(tags) {
		case tagStrings:
			t.strings = value
		case tagSymbols:
			t.symbols = value
		case tagGNUHash:
			t.hash = value
		}
	}
	found := map[string]uint64{}
	for _, name := range names {
		value, err := t.lookUp(name)
		if err != nil {
			return nil, err
		}
		if value != 0 {
			found[name] = value + shift
		}
	}
	return found, nil
}

// readDynamic reads the dynamic section of a module. shift is how many bytes a part of the file is away from its address in the file.
func (m *image) readDynamic(of module) (tags []byte, shift uint64, err error) {
	header, err := m.read(of.start, headerSize)
	if err != nil {
		return nil, 0, err
	}
	// 64 bits, little-endian.
	if !bytes.HasPrefix(header, []byte("\x7fELF\x02\x01")) {
		return nil, 0, errInvalid
	}
	offset, count := binary.LittleEndian.Uint64(header[32:]), uint64(binary.LittleEndian.Uint16(header[56:]))
	if offset > mostStructure || count*programHeaderSize > mostStructure {
		return nil, 0, errInvalid
	}
	programs, err := m.read(of.start+offset, count*programHeaderSize)
	if err != nil {
		return nil, 0, err
	}
	var dynamic, size uint64
	for ; len(programs) > 0; programs = programs[programHeaderSize:] {
		field := func(at int) uint64 { return binary.LittleEndian.Uint64(programs[at:]) }
		switch binary.LittleEndian.Uint32(programs) {
		case typeLoad:
			if field(8) == 0 {
				shift = of.start - field(16)
			}
		case typeDynamic:
			dynamic, size = field(16), field(40)
		}
	}
	if dynamic == 0 || size > mostStructure {
		return nil, 0, errInvalid
	}
	tags, err = m.read(dynamic+shift, size)
	return tags, shift, err
}

// symbolTable is a table of symbols in memory, with its hash table (the section .gnu.hash).
type symbolTable struct {
	*image
	strings, symbols, hash uint64
}

// lookUp returns the value of a symbol; 0 if there is none of this name.
func (t symbolTable) lookUp(name string) (uint64, error) {
	// longest is the number of symbols with the same bucket.
	const longest = 1000
	hash := uint32(5381)
	for i := range len(name) {
		hash = hash*33 + uint32(name[i])
	}
	// The numbers of buckets, of the first symbol that has a hash, and of words of the filter.
	head, err := t.read(t.hash, 16)
	if err != nil {
		return 0, err
	}
	buckets, first, words := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
	if buckets == 0 {
		return 0, errInvalid
	}
	bucketsAt := t.hash + 16 + 8*uint64(words)
	index, err := t.number(bucketsAt + 4*uint64(hash%buckets))
	if err != nil || index < first {
		return 0, err
	}
	chain := bucketsAt + 4*uint64(buckets)
	for range longest {
		value, err := t.number(chain + 4*uint64(index-first))
		if err != nil {
			return 0, err
		}
		if value|1 == hash|1 {
			if found, err := t.valueOf(index, name); found != 0 || err != nil {
				return found, err
			}
		}
		if value&1 == 1 {
			return 0, nil
		}
		index++
	}
	return 0, errInvalid
}

// valueOf returns the value of the symbol with an index; 0 if it has another name.
func (t symbolTable) valueOf(index uint32, name string) (uint64, error) {
	symbol, err := t.read(t.symbols+symbolSize*uint64(index), symbolSize)
	if err != nil {
		return 0, err
	}
	text, err := t.read(t.strings+uint64(binary.LittleEndian.Uint32(symbol)), uint64(len(name))+1)
	if err != nil || string(text) != name+"\x00" {
		return 0, err
	}
	return binary.LittleEndian.Uint64(symbol[8:]), nil
}

// number reads a number of 32 bits.
func (t symbolTable) number(address uint64) (uint32, error) {
	data, err := t.read(address, 4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(data), nil
}
