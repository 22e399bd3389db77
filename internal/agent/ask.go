package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"opendatahub.io/mpijob/internal/agentapi"
)

// requestEnds asks a worker how its ranks have ended. The answer is an agentapi.Summary as JSON. Other servers refuse unknown
// requests (RFC 4254, 4).
const requestEnds = "ends@mpi.opendatahub.io"

// answer answers the requests of a connection that belong to no session.
func (s *server) answer(requests <-chan *ssh.Request) {
	for request := range requests {
		if !request.WantReply {
			continue
		}
		if request.Type != requestEnds {
			_ = request.Reply(false, nil)
			continue
		}
		s.ranks.settle()
		data, err := json.Marshal(s.sessionSummary(0))
		_ = request.Reply(err == nil, data)
	}
}

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
	d := dialer{identity: identity, names: newNames(resolvConf)}
	var all errgroup.Group
	all.SetLimit(askAtOnce)
	for _, r := range silent {
		all.Go(func() error {
			if told, err := d.askEnds(ctx, target{host: r.Host, port: r.Port}); err == nil {
				r.add(told)
				r.write(s.folder)
			}
			return nil
		})
	}
	_ = all.Wait()
}

// askEnds asks one worker how its ranks have ended.
func (d dialer) askEnds(ctx context.Context, of target) (told agentapi.Summary, err error) {
	client, err := d.dial(ctx, of, 0)
	if err != nil {
		return told, err
	}
	defer client.Close()
	stop := context.AfterFunc(ctx, func() { client.Close() })
	defer stop()
	known, data, err := client.SendRequest(requestEnds, true, nil)
	switch {
	case err != nil:
		return told, err
	case !known:
		return told, errors.New("it is no agent, or one that cannot be asked")
	}
	return told, json.Unmarshal(data, &told)
}

// add adds a worker's answer, which came after the session's end. Ranks of earlier launches are left out.
func (r *record) add(told agentapi.Summary) {
	told.Ranks = slices.DeleteFunc(told.Ranks, func(end agentapi.RankEnd) bool { return end.At < r.Since.UnixMilli() })
	if r.Worker != nil {
		told.InitSeconds, told.Through = r.Worker.InitSeconds, r.Worker.Through
	}
	r.Worker = &told
}
