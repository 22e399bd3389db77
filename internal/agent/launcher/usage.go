package launcher

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"time"

	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agent/protocol"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agent/resolve"
	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

// usage returns what the job used: its workers, and the launcher if ranks ran there; nil if it is unknown.
func (s *supervisor) usage() *agentapi.Usage {
	hosts := records.ReadUsage(s.folder, "")
	for _, r := range records.Read(s.folder) {
		if r.Worker != nil && r.Worker.Usage != nil {
			hosts = addLater(hosts, agentapi.HostUsage{Host: hostfile.Short(r.Host), Usage: *r.Worker.Usage})
		}
	}
	var own agentapi.Summary
	if s.ranks.Tell(&own, 0); own.RanksSeen > 0 || len(hosts) == 0 && s.expected.Others == 0 {
		if used, measured := s.sampler.Usage(); measured {
			used.Profile = s.profiler.Get()
			name, _ := os.Hostname()
			hosts = slices.Insert(hosts, 0, agentapi.HostUsage{Host: hostfile.Short(name), Usage: used})
		}
	}
	if job, measured := usage.Job(hosts); measured {
		return &job
	}
	return nil
}

// addLater adds a host's usage, in place of what is known of the host if it is later.
func addLater(hosts []agentapi.HostUsage, of agentapi.HostUsage) []agentapi.HostUsage {
	i := slices.IndexFunc(hosts, func(h agentapi.HostUsage) bool { return h.Host == of.Host })
	switch {
	case i < 0:
		return append(hosts, of)
	case of.Usage.Until > hosts[i].Usage.Until:
		hosts[i] = of
	}
	return hosts
}

const (
	// launchPoll is how often it is checked whether ranks run on all hosts, for launchTime. Later, the next report of usage has it.
	launchPoll = time.Second
	launchTime = 10 * time.Minute
	// tellTimeout limits a report, and endTimeout the last one, for which the launcher's end waits.
	tellTimeout, endTimeout = 10 * time.Second, 2 * time.Second
)

// tellUsages periodically tells the first worker what the job used so far, until done is closed, and at once that ranks run on all hosts, and that
// they make no progress or do again.
// The worker's agent writes it into its log, where the operator reads it: unlike the launcher's, that log contains no output of the
// program.
func (s *supervisor) tellUsages(done <-chan struct{}) {
	if s.expected.First == "" {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { <-done; cancel() }()
	running := func() bool {
		launch := s.launch()
		return launch != nil && launch.RanksAt > 0
	}
	tellWhenDue(ctx, launchPoll, running, s.stallChanges, func() { s.tellUsage(ctx) })
}

// tellWhenDue calls tell when ranks have begun to run, which it checks periodically, for each value of changes, and whenever a report of usage is due, until
// the context ends.
func tellWhenDue(ctx context.Context, poll time.Duration, running func() bool, changes <-chan struct{}, tell func()) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	start := time.Now()
	due := time.NewTimer(agentapi.UsagePause(0))
	defer due.Stop()
	for ticks := ticker.C; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			if time.Since(start) > launchTime {
				ticks = nil
			}
			if !running() {
				continue
			}
			ticks = nil
		case <-changes:
		case <-due.C:
			due.Reset(agentapi.UsagePause(time.Since(start)))
		}
		tell()
	}
}

// launch returns how the launch began; nil until all hosts are connected.
func (s *supervisor) launch() *agentapi.Launch {
	return outcome.LaunchTimes(records.Read(s.folder), s.expected)
}

// tellUsage tells the first worker what the job used so far. If that fails, the job's end reports it.
func (s *supervisor) tellUsage(ctx context.Context) {
	s.tell(ctx, s.usage(), tellTimeout)
}

// tellEnd tells the first worker what the job used: the termination message has no room for all of a long job.
func (s *supervisor) tellEnd(used *agentapi.Usage) {
	if isWorthTelling(used) && s.expected.First != "" {
		s.tell(context.Background(), used, endTimeout)
	}
}

// isWorthTelling reports whether a job ran for so long that it has reported its usage before.
func isWorthTelling(used *agentapi.Usage) bool {
	return used != nil && time.Duration(used.Until-used.Since)*time.Second >= agentapi.UsagePause(0)
}

// tell tells the first worker what the job used, and how its launch began; used is nil if it is unknown.
func (s *supervisor) tell(ctx context.Context, used *agentapi.Usage, timeout time.Duration) {
	told := agentapi.Usage{}
	if used != nil {
		if short := usage.Within(*used, usage.LineSize-stallSize(s.stall.Load())); short != nil {
			told = *short
		}
	}
	told.Stall = s.stall.Load()
	if told.Launch = s.launch(); told.Launch != nil {
		told.Launch.Binding = s.summary().Binding
	}
	identity, err := protocol.ReadIdentity("")
	if told.Step == 0 && told.Launch == nil && told.Stall == nil || err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	d := protocol.Dialer{Identity: identity, LookUp: resolve.New(resolve.Conf).Check}
	_ = d.TellUsage(ctx, s.expected.First, 0, told)
}

// stallSize is how many bytes of a line with a job's usage a stall takes.
func stallSize(stall *agentapi.Stall) int {
	if stall == nil {
		return 0
	}
	data, _ := json.Marshal(stall)
	return len(data)
}
