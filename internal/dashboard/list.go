package dashboard

import "context"

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
