package dashboard

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// list returns a page of the jobs that the user may see.
func (s *Server) list(c *call) (any, error) {
	q, err := parseQuery(c.URL.Query())
	if err != nil {
		return nil, err
	}
	visible, partial, cursor, err := s.visible(c.ctx, c.user)
	if err != nil {
		return nil, err
	}
	found := q.run(visible, s.now())
	found.Cursor, found.NoReports, found.Stale = cursor, partial, s.stale()
	return found, nil
}

// visible returns the rows that a user may see.
func (s *Server) visible(ctx context.Context, u *user) (visible []*Row, partial bool, cursor string, err error) {
	entries, cursor := s.rows.snapshot()
	namespaces := map[string]bool{}
	for _, e := range entries {
		namespaces[e.full.Namespace] = true
	}
	seen, err := u.view(ctx, keys(namespaces))
	if err != nil {
		return nil, false, "", err
	}
	for _, e := range entries {
		if row := seen.row(e.full.Kind, e.full.Namespace, e.full, e.bare); row != nil {
			visible = append(visible, row)
		}
	}
	return visible, seen.partial, cursor, nil
}

func keys[V any](set map[string]V) []string {
	all := make([]string, 0, len(set))
	for key := range set {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}

const (
	heartbeat = 15 * time.Second
	// batch is how long changes are collected, so that a burst is one event.
	batch = 100 * time.Millisecond
)

// streamList sends the changes of the jobs that the user may see, from a cursor on. The event "reset" asks the client to load
// its page again, because the changes since its cursor are no longer available.
func (s *Server) streamList(c *call, w http.ResponseWriter) error {
	if _, err := c.identify(c.ctx); err != nil {
		return err
	}
	values := c.URL.Query()
	stream := &listStream{Server: s, call: c, cursor: cmp.Or(c.Header.Get("Last-Event-ID"), values.Get("cursor")), namespaces: list(values, "namespace"), ids: list(values, "id"), beaten: s.now()}
	stream.out = newEvents(w)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		changed, err := stream.sendChanges()
		if err != nil {
			return nil //nolint:nilerr // the client has left, or was told why the stream ends
		}
		select {
		case <-c.ctx.Done():
			return nil
		case <-tick.C:
			if err := stream.beat(); err != nil {
				return nil //nolint:nilerr // as above
			}
		case <-changed:
			select {
			case <-c.ctx.Done():
				return nil
			case <-time.After(batch):
			}
		}
	}
}

// listStream is a stream of changes to a client.
type listStream struct {
	*Server
	*call
	out             *events
	cursor, stale   string
	namespaces, ids []string
	// beaten is when the last heartbeat was sent.
	beaten time.Time
}

// errEnded ends a stream after its client received the reason.
var errEnded = errors.New("the stream has ended")

// sendChanges sends the changes since the cursor, and why the rows may be out of date if that changed. It returns a channel
// that is closed at the next change.
func (l *listStream) sendChanges() (<-chan struct{}, error) {
	changes, next, changed, known := l.rows.since(l.cursor)
	if !known {
		l.cursor = next
		return changed, l.out.send("reset", next, struct{}{})
	}
	shown, err := l.shown(l.ctx, changes, l.namespaces, l.ids)
	if err == nil {
		l.cursor = next
	} else if status, _ := problemOf(err); status != http.StatusServiceUnavailable {
		return changed, errors.Join(errEnded, l.out.fail(err))
	}
	// Rights cannot be reviewed while the API server is away: the changes are then sent when it answers.
	stale := l.Server.stale()
	if len(shown.Rows)+len(shown.Removed) == 0 && l.stale == stale {
		return changed, nil
	}
	l.stale, shown.Stale = stale, stale
	return changed, l.out.send("rows", l.cursor, shown)
}

// beat sends a heartbeat if it is time, and ends the stream if the login has expired.
func (l *listStream) beat() error {
	if l.now().Sub(l.beaten) < heartbeat {
		return nil
	}
	l.beaten = l.now()
	l.touch(l.beaten)
	if _, err := l.identify(l.ctx); err != nil {
		if status, _ := problemOf(err); status == http.StatusUnauthorized {
			return errors.Join(errEnded, l.out.fail(err))
		}
	}
	return l.out.beat()
}

// shown returns the last change of each row that the user may see.
func (u *user) shown(ctx context.Context, changes []change, namespaces, ids []string) (Changes, error) {
	found := Changes{Rows: []Row{}, Removed: []string{}}
	changes = slices.DeleteFunc(changes, func(ch change) bool { return !among(namespaces, ch.namespace) || !among(ids, ch.id) })
	touched := map[string]bool{}
	for _, ch := range changes {
		touched[ch.namespace] = true
	}
	if len(touched) == 0 {
		return found, nil
	}
	seen, err := u.view(ctx, keys(touched))
	if err != nil {
		return found, err
	}
	done := map[string]bool{}
	for _, ch := range slices.Backward(changes) {
		if done[ch.id] {
			continue
		}
		done[ch.id] = true
		gone := &Row{ID: ch.id}
		row := seen.row(ch.kind, ch.namespace, orRow(ch.full, gone), orRow(ch.bare, gone))
		switch {
		case row == gone:
			found.Removed = append(found.Removed, ch.id)
		case row != nil:
			found.Rows = append(found.Rows, *row)
		}
	}
	return found, nil
}

func orRow(row, other *Row) *Row {
	if row != nil {
		return row
	}
	return other
}

// events writes server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// writeTimeout is how long a client may take to receive an event.
const writeTimeout = 30 * time.Second

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
