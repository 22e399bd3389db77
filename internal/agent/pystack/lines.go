package pystack

// lineOfLnotab returns the line of the instruction at an address, in bytes, by a table of the form lnotab.
func lineOfLnotab(table []byte, first, address int) int {
	line, at := first, 0
	for i := 0; i+1 < len(table); i += 2 {
		if at += int(table[i]); at > address {
			break
		}
		line += int(int8(table[i+1]))
	}
	return line
}

// lineOfRanges returns the line of the instruction at an address, in bytes, by a table of the form ranges; 0 if it has none.
func lineOfRanges(table []byte, first, address int) int {
	// none marks a range without a line.
	const none = -128
	line, end := first, 0
	for i := 0; i+1 < len(table); i += 2 {
		difference := int(int8(table[i+1]))
		if difference != none {
			line += difference
		}
		if end += int(table[i]); address < end {
			if difference == none {
				return 0
			}
			return line
		}
	}
	return 0
}

// The codes of entries of the form locations that say more than columns.
const (
	oneLine     = 10 // to 12: the difference of the line is 0 to 2
	noColumns   = 13
	longForm    = 14
	noLocation  = 15
	entryStarts = 0x80
)

// lineOfLocations returns the line of the instruction with an index by a table of the form locations; 0 if it has none. A function
// that has not begun is at its first line.
func lineOfLocations(table []byte, first, index int) int {
	switch {
	case index == -1:
		return first
	case index < 0:
		return 0
	}
	line, end := first, 0
	for i := 0; i < len(table); {
		if table[i]&entryStarts == 0 {
			return 0
		}
		kind := table[i] >> 3 & 15
		end += int(table[i]&7) + 1
		i++
		switch {
		case kind == longForm || kind == noColumns:
			line += signed(table[i:])
		case kind >= oneLine && kind < noColumns:
			line += int(kind) - oneLine
		}
		if index < end {
			if kind == noLocation {
				return 0
			}
			return line
		}
		for i < len(table) && table[i]&entryStarts == 0 {
			i++
		}
	}
	return 0
}

// signed reads a signed number of variable length: 6 bits in a byte, the lowest first, and one for the sign.
func signed(data []byte) int {
	const longest = 6
	value := 0
	for i, b := range data[:min(len(data), longest)] {
		value |= int(b&63) << (6 * i)
		if b&64 == 0 {
			break
		}
	}
	if value&1 == 1 {
		return -(value >> 1)
	}
	return value >> 1
}
