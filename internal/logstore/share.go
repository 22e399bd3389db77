package logstore

// share divides a number of places among namespaces. One namespace takes three quarters of them at most, so that others find free ones, and
// the last quarter goes to those that have less than a quarter. Its methods are not safe for concurrent use.
type share struct {
	most, taken int
	of          map[string]int
}

func newShare(most int) *share { return &share{most: most, of: map[string]int{}} }

// take takes a place for a namespace, and reports whether there was one.
func (s *share) take(namespace string) bool {
	const parts = 4
	isScarce := s.taken >= s.most-s.most/parts
	if s.taken >= s.most || isScarce && s.of[namespace] >= s.most/parts {
		return false
	}
	s.taken++
	s.of[namespace]++
	return true
}

func (s *share) free(namespace string) {
	s.taken--
	if s.of[namespace]--; s.of[namespace] == 0 {
		delete(s.of, namespace)
	}
}
