package profile

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

// record is what the library counts of a rank. internal/agent/library/profile.c writes it, in the byte order of the machine. Times are in
// nanoseconds.
type record struct {
	process uint32
	rank    int32
	// start and end are times of the monotonic clock; end is 0 until MPI_Finalize. last is when a call began or ended last, and entered
	// when the one began in which the rank is, or 0.
	start, end, last, entered uint64
	communication             uint64
	// launch identifies the run of MPI's launcher; "" if it is unknown.
	launch string
	calls  []agentapi.CallProfile
	sizes  [len(agentapi.MessageSizes) + 1]uint64
}

// The layout of a record's file.
const (
	magic      = "MPIPROF2"
	pageSize   = 4096
	headerSize = 24 + 5*8 + 8*(len(agentapi.MessageSizes)+1)
	callSize   = 48
	nameSize   = 22
	mostCalls  = 80
	launchSize = 64
	// mostRank is more than the number of any rank.
	mostRank = 1 << 24
	// longest is longer than a rank runs, 36 years, so that the sum of two does not overflow. The other figures have the same limit.
	longest = 1 << 60
)

// readRecord reads the record of a rank; false if the file has none. Programs of the job can make anything in its place that would take
// long to open: a FIFO, or a symbolic link to a server that does not answer.
func readRecord(path string) (record, bool) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return record{}, false
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return record{}, false
	}
	data := make([]byte, pageSize)
	if _, err := io.ReadFull(file, data); err != nil {
		return record{}, false
	}
	return parseRecord(data)
}

// parseRecord parses a page. Programs of the job can write anything.
func parseRecord(data []byte) (record, bool) {
	if len(data) < pageSize || string(data[:len(magic)]) != magic {
		return record{}, false
	}
	short := func(at int) uint32 { return binary.NativeEndian.Uint32(data[at:]) }
	long := func(at int) uint64 { return min(binary.NativeEndian.Uint64(data[at:]), longest) }
	r := record{
		process: short(8), rank: int32(min(short(12), mostRank)),
		start: long(24), end: long(32), last: long(40), entered: long(48), communication: long(56),
	}
	if r.start == 0 || r.rank == mostRank {
		return record{}, false
	}
	launch := data[headerSize+mostCalls*callSize:]
	launch, _, _ = bytes.Cut(launch[:launchSize], []byte{0})
	if strings.Trim(string(launch), "0123456789.") == "" {
		r.launch = string(launch)
	}
	for i := range r.sizes {
		r.sizes[i] = long(64 + 8*i)
	}
	for i := range min(int(short(20)), mostCalls) {
		at := headerSize + i*callSize
		name, _, _ := bytes.Cut(data[at:at+nameSize], []byte{0})
		if complete := data[at+nameSize] == 1; !complete || !isCall(string(name)) {
			continue
		}
		r.calls = append(r.calls, agentapi.CallProfile{
			Call: string(name), Count: int64(long(at + 24)), Time: int64(long(at + 32)), Bytes: int64(long(at + 40)),
		})
	}
	return r, true
}

// isCall reports whether a text is the name of a function of MPI without "MPI_".
func isCall(name string) bool {
	const allowed = "_abcdefghijklmnopqrstuvwxyz"
	return name != "" && len(name) <= agentapi.MaxCallName && name[0] >= 'A' && name[0] <= 'Z' && strings.Trim(name[1:], allowed) == ""
}

// until returns how long the rank ran until a time of the monotonic clock, or until its last call if that is 0, and how much of that it
// was in functions of MPI.
func (r record) until(now uint64) (elapsed, communication uint64) {
	until := r.last
	switch {
	case r.end > 0:
		until = r.end
	case now > 0:
		until = now
	}
	if until < r.start {
		return 0, 0
	}
	elapsed, communication = until-r.start, r.communication
	if r.end == 0 && r.entered > r.start && until > r.entered {
		communication += until - r.entered
	}
	// Threads can be in functions at the same time.
	return elapsed, min(communication, elapsed)
}
