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
	// late is how many of the workers are started later, by measure.
	late int
	// link is how far hosts are from each other.
	link link
	// floor is whether the floor takes part.
	floor   bool
	measure func(context.Context, *arena) (map[string]float64, error)
}

// share is the unit of what is 1 in a run or 0: the figure is that of all runs.
const share = "share"

// isLate reports whether a worker is started later: every second one, so that late ones are everywhere in a tree.
func (b bout) isLate(n int) bool { return n%2 == 1 && n/2 < b.late }

// bouts returns all cases. Those of full have hundreds of hosts, and need up to 12 GiB of memory.
func bouts(full bool) []bout {
	sizes, crowds, trees, late, dying, slow, held := []int{2, 4, 8, 16, 32}, []int{32}, []int{32}, []int{16}, []int{16}, []int{16}, []int{32}
	waits := []time.Duration{soonLate}
	if full {
		sizes, crowds, trees = append(sizes, 64, 128, 256), append(crowds, 256, 1024), append(trees, 256, 1024)
		late, dying, slow, held = append(late, 64, 256), append(dying, 64, 256), append(slow, 64), append(held, 256)
		waits = append(waits, longLate)
	}
	var all []bout
	for _, workers := range sizes {
		all = append(all, mpirun(workers))
	}
	for _, workers := range trees {
		all = append(all, flat(workers), tree(workers))
	}
	for _, workers := range late {
		for _, after := range waits {
			all = append(all, lateHalf(workers, after))
		}
	}
	for _, workers := range dying {
		all = append(all, dyingSome(workers))
	}
	for _, workers := range slow {
		all = append(all, slowNetwork(workers), lossyNetwork(workers))
	}
	all = append(all, execs(200))
	for _, workers := range crowds {
		all = append(all, connect(workers))
	}
	all = append(all, startup(200), memory())
	for _, workers := range held {
		all = append(all, holding(workers))
	}
	return all
}

// mpirun measures a program of no length over so many workers, one rank on each.
func mpirun(workers int) bout {
	b := hostnames(fmt.Sprintf("mpirun/%d", workers), workers, nil)
	b.floor = true
	if workers < 16 {
		b.often = 3
	}
	return b
}

// flat is mpirun with all daemons started by mpirun itself.
func flat(workers int) bout {
	return hostnames(fmt.Sprintf("flat/%d", workers), workers, []string{"OMPI_MCA_plm_rsh_no_tree_spawn=1"})
}

// tree is mpirun with a tree in which each daemon starts up to eight others. Open MPI's own has 64 branches.
func tree(workers int) bout {
	return hostnames(fmt.Sprintf("tree/%d", workers), workers, []string{"OMPI_MCA_plm_rsh_no_tree_spawn=0", "OMPI_MCA_routed=radix", "OMPI_MCA_routed_radix=8"})
}

// hostnames measures a program of no length over so many workers, with settings of mpirun.
func hostnames(name string, workers int, env []string) bout {
	return bout{
		results: []result{{name, "s"}}, workers: workers, often: 1,
		measure: func(ctx context.Context, a *arena) (map[string]float64, error) {
			reply, err := a.run(ctx, a.mpirun(workers, env, "hostname"))
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
			took, err := repeat(times, func() (host.Reply, error) { return a.reach(ctx, 0) })
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
			all := make([]int, workers)
			for n := range all {
				all[n] = n
			}
			reply, err := a.reach(ctx, all...)
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

// run makes the runs of a bout: each contestant one, and again. skipped is why contestants have no figures.
func (b bout) run(ctx context.Context, s stage, runs int, contestants []contestant, progress func(string)) (lines []report.Case, skipped map[string]string, err error) {
	all := tally{bout: b, values: map[string]map[string][]report.Value{}, over: map[string]bool{}, skipped: map[string]string{}}
	for _, r := range b.results {
		all.values[r.name] = map[string][]report.Value{}
	}
	for turn := range runs * b.often {
		for _, c := range b.order(turn, contestants) {
			if all.over[c.name] {
				continue
			}
			measured, err := b.once(ctx, s, c, turn)
			if ctx.Err() != nil {
				return nil, nil, err
			}
			progress(told(b.results[0].name, turn+1, runs*b.often, c.name, all.add(c.name, measured, err)))
		}
	}
	return all.lines(), all.skipped, nil
}

// tally is what the runs of a bout have measured.
type tally struct {
	bout
	// values are by the name of a result and that of a contestant.
	values map[string]map[string][]report.Value
	// over are contestants that make no further runs: one that has failed, and one that has reached the limit, as it would do so again.
	over map[string]bool
	// skipped is why contestants have no figures.
	skipped map[string]string
}

// add adds a run of a contestant, and returns it as text.
func (t *tally) add(contestant string, measured map[string]float64, err error) string {
	isCut := errors.Is(err, errLimit)
	if isCut {
		measured = t.cut()
	}
	t.over[contestant] = err != nil
	if err != nil && len(measured) == 0 {
		t.skipped[contestant] = firstLine(err)
		return "failed: " + err.Error()
	}
	var figures []string
	for _, r := range t.results {
		if figure, known := measured[r.name]; known {
			value := report.Value{Value: figure, AtLeast: isCut}
			t.values[r.name][contestant] = append(t.values[r.name][contestant], value)
			figures = append(figures, value.String()+" "+r.unit)
		}
	}
	return strings.Join(figures, ", ")
}

// lines are the figures of all runs. Those of a contestant that has failed in one of its runs are left out.
func (t *tally) lines() (lines []report.Case) {
	for _, r := range t.results {
		of := t.values[r.name]
		for contestant, values := range of {
			switch {
			case t.skipped[contestant] != "":
				delete(of, contestant)
			case r.unit == share:
				of[contestant] = []report.Value{mean(values)}
			}
		}
		if len(of) > 0 {
			lines = append(lines, report.NewCase(r.name, r.unit, Ours, of))
		}
	}
	return lines
}

// cut are the figures of a run that has reached the limit: its times are at least as long.
func (b bout) cut() map[string]float64 {
	measured := map[string]float64{}
	for _, r := range b.results {
		if r.unit == "s" {
			measured[r.name] = limit.Seconds()
		}
	}
	return measured
}

func mean(values []report.Value) report.Value {
	sum := 0.0
	for _, v := range values {
		sum += v.Value
	}
	return report.Value{Value: sum / float64(len(values))}
}

// told is a line about a run.
func told(name string, run, runs int, contestant, figures string) string {
	return fmt.Sprintf("%-16s run %d/%d  %-13s %s", name, run, runs, contestant, figures)
}

func (b bout) once(ctx context.Context, s stage, c contestant, turn int) (measured map[string]float64, err error) {
	a, err := s.open(ctx, c, b)
	if err != nil {
		return nil, err
	}
	a.turn = turn
	measured, err = b.measure(ctx, a)
	if closed := a.close(); err == nil {
		err = closed
	}
	return measured, err
}
