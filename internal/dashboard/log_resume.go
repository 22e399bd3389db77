package dashboard

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"opendatahub.io/mpijob/internal/logstream"
)

// logPosition is how far the log of each pod was sent: the time of the last line, and how many lines of that time. It is the ID
// of a log event, so that a stream continues after a lost connection, also on another replica: no line twice, and none lost.
type logPosition map[string]podPosition

type podPosition struct {
	Time  int64 // in nanoseconds
	Count int
}

// maxPodName is the maximum length of a pod's name, which is that of a DNS subdomain.
const maxPodName = 253

// parsePosition reads what id returns; the result is empty for any other text.
func parsePosition(id string) logPosition {
	data, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return logPosition{}
	}
	position, in := logPosition{}, bytes.NewReader(data)
	var name []byte
	var at int64
	for in.Len() > 0 {
		shared, err1 := binary.ReadUvarint(in)
		length, err2 := binary.ReadUvarint(in)
		if errors.Join(err1, err2) != nil || shared > uint64(len(name)) || length > maxPodName-shared { //nolint:gosec // a length
			return logPosition{}
		}
		rest := make([]byte, length)
		_, err1 = io.ReadFull(in, rest)
		name = append(name[:shared], rest...)
		after, err2 := binary.ReadVarint(in)
		count, err3 := binary.ReadUvarint(in)
		if errors.Join(err1, err2, err3) != nil || count > math.MaxInt32 {
			return logPosition{}
		}
		at += after
		position[string(name)] = podPosition{at, int(count)}
	}
	return position
}

// id is short, so that the positions of all pods of a large job fit into a header of a request: of each pod it has how many
// bytes of its name are those of the pod before, the others, the time after that of the pod before, and the count.
func (p logPosition) id() string {
	var data []byte
	var last string
	var at int64
	for _, name := range slices.Sorted(maps.Keys(p)) {
		shared := 0
		for shared < min(len(last), len(name)) && last[shared] == name[shared] {
			shared++
		}
		data = binary.AppendUvarint(data, uint64(shared))           //nolint:gosec // a length
		data = binary.AppendUvarint(data, uint64(len(name)-shared)) //nolint:gosec // a length
		data = append(data, name[shared:]...)
		data = binary.AppendVarint(data, p[name].Time-at)
		data = binary.AppendUvarint(data, uint64(p[name].Count)) //nolint:gosec // a count
		last, at = name, p[name].Time
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// start returns from when on logs have to be read again; zero for the beginning. The API takes whole seconds.
func (p logPosition) start() time.Time {
	var first int64
	for _, pod := range p {
		if first == 0 || pod.Time < first {
			first = pod.Time
		}
	}
	if first == 0 {
		return time.Time{}
	}
	return time.Unix(0, first).Add(-time.Second).Truncate(time.Second)
}

// advance records a line as sent.
func (p logPosition) advance(line logstream.Line) {
	at := line.Time.UnixNano()
	switch last := p[line.Pod]; {
	case at == last.Time:
		p[line.Pod] = podPosition{at, last.Count + 1}
	case at > last.Time:
		p[line.Pod] = podPosition{at, 1}
	}
}

// resumption leaves out the lines that were sent before.
type resumption struct {
	sent logPosition
	// again counts the lines at the last time of each pod that were read again.
	again map[string]int
}

// isNew reports whether a line was not sent before.
func (r *resumption) isNew(line logstream.Line) bool {
	before, known := r.sent[line.Pod]
	if !known {
		return true
	}
	switch at := line.Time.UnixNano(); {
	case at < before.Time:
		return false
	case at == before.Time:
		r.again[line.Pod]++
		return r.again[line.Pod] > before.Count
	}
	return true
}
