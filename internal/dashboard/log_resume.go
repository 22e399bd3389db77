package dashboard

import (
	"encoding/base64"
	"encoding/json"
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

func parsePosition(id string) logPosition {
	data, err := base64.RawURLEncoding.DecodeString(id)
	var position logPosition
	if err != nil || json.Unmarshal(data, &position) != nil || position == nil {
		return logPosition{}
	}
	return position
}

func (p logPosition) id() string {
	data, err := json.Marshal(p)
	if err != nil {
		return ""
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
