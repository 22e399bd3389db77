package dashboard

import (
	"net/http"
	"time"
)

// events writes server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// writeTimeout is how long a client may take to receive a response, an event of a stream, or a part of a download.
const writeTimeout = 30 * time.Second

// heartbeat is the time between two heartbeats of a stream, which keep its connection open through proxies.
const heartbeat = 15 * time.Second

func newEvents(w http.ResponseWriter) *events {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	e := &events{w, http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	_ = e.beat()
	return e
}

func (e *events) send(name, id string, value any) error {
	data, err := encode(value)
	if err != nil {
		return err
	}
	buffer := make([]byte, 0, len(data)+len(id)+32)
	buffer = append(buffer, "event: "+name+"\n"...)
	if id != "" {
		buffer = append(buffer, "id: "+id+"\n"...)
	}
	buffer = append(append(append(buffer, "data: "...), data...), "\n\n"...)
	return e.write(buffer)
}

// beat keeps the connection open through proxies.
func (e *events) beat() error { return e.write([]byte(": \n\n")) }

// fail ends the stream with an error.
func (e *events) fail(err error) error {
	_, problem := problemOf(err)
	_ = e.send("problem", "", problem)
	return nil
}

func (e *events) write(data []byte) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := e.w.Write(data); err != nil {
		return err
	}
	return e.control.Flush()
}
