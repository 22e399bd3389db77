package dashboard

import (
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/logstream"
)

// logPosition is how far the log of each pod was sent: the time of the last line, and how many lines of that time. It is the ID
// of a log event, so that a stream continues after a lost connection, also on another replica: no line twice, and none lost.
type logPosition map[string]podPosition

type podPosition struct {
	Time  int64 `json:"t"` // in nanoseconds
	Count int   `json:"n"`
}

// maxPosition is the maximum size of a position before it is compressed.
const maxPosition = 1 << 20

func parsePosition(id string) logPosition {
	var position logPosition
	data := flate.NewReader(base64.NewDecoder(base64.RawURLEncoding, strings.NewReader(id)))
	if err := json.NewDecoder(io.LimitReader(data, maxPosition)).Decode(&position); err != nil || position == nil {
		return logPosition{}
	}
	return position
}

// id is compressed: the positions of all pods of a large job must fit into a header of a request.
func (p logPosition) id() string {
	var id strings.Builder
	encoded := base64.NewEncoder(base64.RawURLEncoding, &id)
	compressed, err := flate.NewWriter(encoded, flate.BestSpeed)
	if err != nil {
		return ""
	}
	if err := errors.Join(json.NewEncoder(compressed).Encode(p), compressed.Close(), encoded.Close()); err != nil {
		return ""
	}
	return id.String()
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
