package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/hack/bench/agent/host"
	"opendatahub.io/mpijob/hack/bench/wait"
)

// How late late workers are: for as long as ssh tries, and longer.
const soonLate, longLate = 5 * time.Second, 30 * time.Second

// lateHalf measures mpirun while half of the workers start late: from the start of the last one until mpirun has ended.
func lateHalf(workers int, after time.Duration) bout {
	name := fmt.Sprintf("late-%.0fs/%d", after.Seconds(), workers)
	b := bout{results: []result{{name, "s"}}, workers: workers, often: 1, late: workers / 2}
	b.measure = func(ctx context.Context, a *arena) (map[string]float64, error) {
		end := a.start(ctx, a.mpirun(workers, nil, "hostname"))
		select {
		case ended := <-end:
			return nil, fmt.Errorf("mpirun ended before the late workers had started: %s", cause(ended))
		case <-time.After(after):
		}
		if err := a.startWorkers(b.isLate); err != nil {
			return nil, err
		}
		last := time.Now()
		ended := <-end
		if ended.err != nil {
			return nil, ended.err
		}
		return map[string]float64{name: ended.at.Sub(last).Seconds()}, a.everyWorker(ended.reply.Outputs[0], workers)
	}
	return b
}

// cause is why something has ended.
func cause(e ended) string {
	if e.err != nil {
		return firstLine(e.err)
	}
	return "without an error"
}

// dyingSome measures how soon the launcher ends after a worker has died with all of its processes, while ranks run on all. Others die at
// random moments after it. The launcher has to name the first one, and none that lives.
func dyingSome(workers int) bout {
	name, named := fmt.Sprintf("dying/%d", workers), fmt.Sprintf("dying-named/%d", workers)
	return bout{
		results: []result{{name, "s"}, {named, share}}, workers: workers, often: 1,
		measure: func(ctx context.Context, a *arena) (map[string]float64, error) {
			ctx, cancel := context.WithCancel(ctx)
			end, err := a.sleep(ctx, workers)
			defer func() { cancel(); <-end }()
			if err != nil {
				return nil, err
			}
			deaths := deathsOf(workers, a.turn)
			first := time.Now()
			var errs []error
			for _, d := range deaths {
				errs = append(errs, wait.For(ctx, time.Until(first.Add(d.after))), a.workers[d.worker].Stop())
			}
			if err := errors.Join(errs...); err != nil {
				return nil, err
			}
			e := <-end
			end = closed
			switch {
			case e.err != nil:
				return nil, e.err
			case e.reply.Failure == "":
				return nil, errors.New("mpirun reported success although workers had died")
			}
			printed := e.reply.Outputs[0] + "\n" + e.reply.Errors[0]
			log := filepath.Join(a.stage.logs, strings.ReplaceAll(name, "/", "-")+"-"+a.name+".log")
			if err := os.WriteFile(log, fmt.Appendf(nil, "died: %v\n%s", deaths, printed), 0o644); err != nil {
				return nil, err
			}
			return map[string]float64{name: e.at.Sub(first).Seconds(), named: a.judge(printed, deaths)}, nil
		},
	}
}

// closed is of something that has ended and was waited for.
var closed = func() <-chan ended { c := make(chan ended); close(c); return c }()

// death is that of a worker, some time after the first.
type death struct {
	worker int
	after  time.Duration
}

// deathsOf are those of one in twenty workers, and of one at least: the same in a turn for each contestant.
func deathsOf(workers, turn int) []death {
	// The first death is noticed before the others, also on a busy machine.
	const oneIn, within, ahead = 20, time.Second, 200 * time.Millisecond
	random := rand.New(rand.NewPCG(uint64(workers), uint64(turn))) //nolint:gosec // no secret
	deaths := make([]death, max(1, workers/oneIn))
	for i, n := range random.Perm(workers)[:len(deaths)] {
		deaths[i].worker = n
		if i > 0 {
			deaths[i].after = ahead + time.Duration(random.Int64N(int64(within)))
		}
	}
	slices.SortFunc(deaths, func(a, b death) int { return int(a.after - b.after) })
	return deaths
}

var workerName = regexp.MustCompile(`\bworker-(\d+)\b`)

// judge returns 1 if what the launcher printed about its end names the worker that died first before others, and none that lives, and
// otherwise 0.
func (c contestant) judge(printed string, deaths []death) float64 {
	if c.verdict != nil {
		printed = c.verdict(printed)
	}
	var found []string
	for _, match := range workerName.FindAllStringSubmatch(printed, -1) {
		found = append(found, match[1])
	}
	if len(found) == 0 || found[0] != strconv.Itoa(deaths[0].worker) {
		return 0
	}
	for _, n := range found {
		if !slices.ContainsFunc(deaths, func(d death) bool { return strconv.Itoa(d.worker) == n }) {
			return 0
		}
	}
	return 1
}

// sleep starts ranks that sleep on so many workers, and waits until all run. They sleep until the context ends, or mpirun ends them. The
// channel yields how mpirun has ended, also after an error.
func (a *arena) sleep(ctx context.Context, workers int) (<-chan ended, error) {
	const pause = 100 * time.Millisecond
	// The length identifies them among the processes of this machine.
	program := []string{"sleep", strconv.Itoa(1_000_000 + os.Getpid())}
	request := a.mpirun(workers, nil, program...)
	request.MayFail = true
	end := a.start(ctx, request)
	for {
		n, err := host.Count(program...)
		if err != nil || n == workers {
			return end, err
		}
		select {
		case e := <-end:
			if e.err == nil {
				e.err = errors.New(strings.TrimSpace(e.reply.Failure))
			}
			return closed, e.err
		case <-time.After(pause):
		}
	}
}

// The slow network: that of hosts a continent apart.
const (
	roundTrip = 50 * time.Millisecond
	loss      = 0.01
)

// slowNetwork and lossyNetwork are mpirun over a network with long round trips, and over one that loses packets, too.
func slowNetwork(workers int) bout {
	b := hostnames(fmt.Sprintf("slow-network/%d", workers), workers, nil)
	b.link = link{roundTrip: roundTrip}
	return b
}

func lossyNetwork(workers int) bout {
	b := hostnames(fmt.Sprintf("lossy-network/%d", workers), workers, nil)
	b.link = link{roundTrip: roundTrip, loss: loss}
	return b
}

// holding measures what the launcher holds while ranks sleep on so many workers, and the worker that holds most. Open MPI's tree makes some
// workers start others.
func holding(workers int) bout {
	const settled = 2 * time.Second
	name := func(what, who string) string { return fmt.Sprintf("%s/%s-%d", what, who, workers) }
	return bout{
		results: []result{
			{name("memory", "launcher"), "MiB"},
			{name("memory", "worker"), "MiB"},
			{name("descriptors", "launcher"), "descriptors"},
			{name("descriptors", "worker"), "descriptors"},
			{name("processes", "launcher"), "processes"},
		},
		workers: workers, often: 1,
		measure: func(ctx context.Context, a *arena) (map[string]float64, error) {
			ctx, cancel := context.WithCancel(ctx)
			end, err := a.sleep(ctx, workers)
			defer func() { cancel(); <-end }()
			if err != nil {
				return nil, err
			}
			if err := wait.For(ctx, settled); err != nil {
				return nil, err
			}
			uses, err := host.Uses(append([]*host.Host{a.launcher.Host}, a.workers...)...)
			if err != nil {
				return nil, err
			}
			var most host.Use
			for _, use := range uses[1:] {
				most.Private, most.Descriptors = max(most.Private, use.Private), max(most.Descriptors, use.Descriptors)
			}
			return map[string]float64{
				name("memory", "launcher"):      mebibytes(uses[0].Private),
				name("memory", "worker"):        mebibytes(most.Private),
				name("descriptors", "launcher"): float64(uses[0].Descriptors),
				name("descriptors", "worker"):   float64(most.Descriptors),
				name("processes", "launcher"):   float64(uses[0].Processes),
			}, nil
		},
	}
}
