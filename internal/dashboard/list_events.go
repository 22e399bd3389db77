package dashboard

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// Changes is an event of the stream of changes.
type Changes struct {
	Rows    []Row    `json:"rows"`
	Removed []string `json:"removed"`
	Stale   string   `json:"stale,omitempty"`
}

// batch is how long changes are collected, so that a burst is one event.
const batch = 100 * time.Millisecond

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
