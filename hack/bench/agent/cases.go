package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/hack/bench/agent/host"
	"opendatahub.io/mpijob/hack/bench/report"
	"opendatahub.io/mpijob/hack/bench/wait"
)

// result is the name and the unit of one figure.
type result struct{ name, unit string }

// bout is one thing that contestants do on hosts of a stage, and the figures it yields.
type bout struct {
	results []result
	workers int
	// often is how many runs are made for each that is asked for: what takes milliseconds varies more.
	often int
	// floor is whether the floor takes part.
	floor   bool
	measure func(context.Context, *arena) (map[string]float64, error)
}

// bouts returns all cases. Those of full have hundreds of hosts, and need up to 12 GiB of memory.
func bouts(full bool) []bout {
	sizes, crowds := []int{2, 4, 8, 16, 32}, []int{32}
	if full {
		sizes, crowds = append(sizes, 64, 128, 256), append(crowds, 256, 1024)
	}
	var all []bout
	for _, workers := range sizes {
		all = append(all, mpirun(workers))
	}
	all = append(all, execs(200))
	for _, workers := range crowds {
		all = append(all, connect(workers))
	}
	return append(all, startup(200), memory())
}

// mpirun measures a program of no length over so many workers, one rank on each.
func mpirun(workers int) bout {
	name := fmt.Sprintf("mpirun/%d", workers)
	often := 1
	if workers < 16 {
		often = 3
	}
	return bout{
		results: []result{{name, "s"}}, workers: workers, often: often, floor: true,
		measure: func(ctx context.Context, a *arena) (map[string]float64, error) {
			command := append(slices.Clone(a.launch), "/usr/bin/mpirun", "--map-by", "node", "-n", fmt.Sprint(workers), "hostname")
			reply, err := a.run(ctx, host.Request{Commands: [][]string{command}, Env: a.mpi()})
			if err != nil {
				return nil, err
			}
			if err := a.everyWorker(reply.Outputs[0], workers); err != nil {
				return nil, err
			}
			return map[string]float64{name: reply.Took.Seconds()}, nil
		},
	}
}

// everyWorker checks that every worker ran one rank.
func (a *arena) everyWorker(output string, workers int) error {
	want := make([]string, workers)
	for n := range want {
		want[n] = "launcher"
		if a.serve != nil {
			want[n] = worker(n)
		}
	}
	got := strings.Fields(output)
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return fmt.Errorf("the ranks ran on %s, and not on %s", strings.Join(got, ", "), strings.Join(want, ", "))
	}
	return nil
}

// execs measures the time from starting a program that connects to a worker until it has ended, having run true
// there, one after another.
func execs(times int) bout {
	return bout{
		results: []result{{"exec/p50", "s"}, {"exec/p99", "s"}}, workers: 1, often: 1,
		measure: func(ctx context.Context, a *arena) (map[string]float64, error) {
			took, err := repeat(times, func() (host.Reply, error) { return a.reach(ctx, 1) })
			if err != nil {
				return nil, err
			}
			return map[string]float64{"exec/p50": percentile(took, 50), "exec/p99": percentile(took, 99)}, nil
		},
	}
}

// connect measures the same with so many workers at once.
func connect(workers int) bout {
	name := fmt.Sprintf("connect-%d", workers)
	often := 3
	if workers > 32 {
		often = 1
	}
	return bout{
		results: []result{{name, "s"}}, workers: workers, often: often,
		measure: func(ctx context.Context, a *arena) (map[string]float64, error) {
			reply, err := a.reach(ctx, workers)
			return map[string]float64{name: reply.Took.Seconds()}, err
		},
	}
}

// startup measures the time from starting the program until it has ended without doing anything, one after another.
func startup(times int) bout {
	const name = "startup"
	return bout{
		results: []result{{name, "s"}}, often: 3,
		measure: func(ctx context.Context, a *arena) (map[string]float64, error) {
			took, err := repeat(times, func() (host.Reply, error) { return a.run(ctx, host.Request{Commands: [][]string{a.idle}}) })
			if err != nil {
				return nil, err
			}
			return map[string]float64{name: percentile(took, 50)}, nil
		},
	}
}

// repeat runs something so many times, one after another, and returns how long each took, in seconds.
func repeat(times int, run func() (host.Reply, error)) (took []float64, err error) {
	for range times {
		reply, err := run()
		if err != nil {
			return nil, err
		}
		took = append(took, reply.Took.Seconds())
	}
	return took, nil
}

// percentile returns the value below which so many percent of the values are.
func percentile(values []float64, percent int) float64 {
	return slices.Sorted(slices.Values(values))[len(values)*percent/100]
}

// memory measures what a worker's server holds while nothing runs, and what a program holds that waits for its
// command on a worker, of which a launcher has one for each worker.
func memory() bout {
	const idle, rsh, settled = "memory/idle", "memory/rsh", time.Second
	return bout{
		results: []result{{idle, "MiB"}, {rsh, "MiB"}}, workers: 1, often: 1,
		measure: func(ctx context.Context, a *arena) (map[string]float64, error) {
			if err := wait.For(ctx, settled); err != nil {
				return nil, err
			}
			server, err := a.workers[0].Memory()
			if err != nil {
				return nil, err
			}
			reply, err := a.run(ctx, host.Request{Commands: [][]string{{a.rsh, worker(0), "sleep", "60"}}, Weigh: settled})
			if err != nil {
				return nil, err
			}
			return map[string]float64{idle: mebibytes(server.Resident), rsh: mebibytes(reply.Memory[0].Private)}, nil
		},
	}
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// order returns the contestants that take part in a turn. Every second turn has them in reverse, so that none always runs after
// the same other one.
func (b bout) order(turn int, contestants []contestant) []contestant {
	taking := slices.DeleteFunc(slices.Clone(contestants), func(c contestant) bool { return c.name == Floor && !b.floor })
	if turn%2 == 1 {
		slices.Reverse(taking)
	}
	return taking
}

// run makes the runs of a bout: each contestant one, and again.
func (b bout) run(ctx context.Context, s stage, runs int, contestants []contestant, progress func(string)) ([]report.Case, error) {
	values := map[string]map[string][]report.Value{}
	for _, r := range b.results {
		values[r.name] = map[string][]report.Value{}
	}
	for turn := range runs * b.often {
		for _, c := range b.order(turn, contestants) {
			measured, err := b.once(ctx, s, c)
			isCut := errors.Is(err, errLimit) && len(b.results) == 1
			if isCut {
				measured = map[string]float64{b.results[0].name: limit.Seconds()}
			} else if err != nil {
				return nil, fmt.Errorf("%s, %s, run %d: %w", b.results[0].name, c.name, turn+1, err)
			}
			var figures []string
			for _, r := range b.results {
				value := report.Value{Value: measured[r.name], AtLeast: isCut}
				values[r.name][c.name] = append(values[r.name][c.name], value)
				figures = append(figures, value.String()+" "+r.unit)
			}
			progress(told(b.results[0].name, turn+1, runs*b.often, c.name, strings.Join(figures, ", ")))
		}
	}
	var lines []report.Case
	for _, r := range b.results {
		lines = append(lines, report.NewCase(r.name, r.unit, Ours, values[r.name]))
	}
	return lines, nil
}

// told is a line about a run.
func told(name string, run, runs int, contestant, figures string) string {
	return fmt.Sprintf("%-13s run %d/%d  %-13s %s", name, run, runs, contestant, figures)
}

func (b bout) once(ctx context.Context, s stage, c contestant) (measured map[string]float64, err error) {
	a, err := s.open(ctx, c, b.workers)
	if err != nil {
		return nil, err
	}
	measured, err = b.measure(ctx, a)
	if closed := a.close(); err == nil {
		err = closed
	}
	return measured, err
}
