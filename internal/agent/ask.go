package agent

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// askTime is how long a launcher's end may be delayed to ask workers; askAtOnce is how many are asked at once.
const (
	askTime   = 3 * time.Second
	askAtOnce = 32
)

// askWorkers asks the workers whose rsh was ended before it could report: MPI kills its rsh's as soon as one host has failed, and
// another host may be where the failure began.
func (s *supervisor) askWorkers() {
	silent := slices.DeleteFunc(readRecords(s.folder), func(r record) bool {
		return r.Over || r.Reached.IsZero() || countAlive([]int{r.Process}) > 0
	})
	identity, err := readIdentity(keyFile())
	if len(silent) == 0 || err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	d := dialer{identity: identity, lookUp: newNames().check}
	var all errgroup.Group
	all.SetLimit(askAtOnce)
	for _, r := range silent {
		all.Go(func() error {
			if told, err := d.askEnds(ctx, r.Host, r.Port); err == nil {
				r.add(told)
				r.write(s.folder)
			}
			return nil
		})
	}
	_ = all.Wait()
}
