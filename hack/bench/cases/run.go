package cases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/hack/bench/apiserver"
	"opendatahub.io/mpijob/hack/bench/contestant"
	"opendatahub.io/mpijob/hack/bench/nodes"
	"opendatahub.io/mpijob/hack/bench/report"
)

// Settings say how cases are run.
type Settings struct {
	// Assets is the folder with Kubernetes' programs, CRD the file with MPIJob's definition, ReportCRD that with
	// JobReport's, WorkloadCRD that with Kueue's Workload's, KWOK its program.
	Assets, CRD, ReportCRD, WorkloadCRD, KWOK string
	// CLI is our command line.
	CLI string
	// Logs is a folder for the logs of all that runs.
	Logs string
	// Runs is how often each contestant runs each case, and OnceRuns those with Once, 0 being one.
	Runs, OnceRuns int
	// Limit is the time after which a run is cut short and extrapolated, where it can be; 0 is none.
	Limit time.Duration
	// Latency is how much farther than this machine the API server is for contestants.
	Latency time.Duration
	// Progress receives a line per run.
	Progress io.Writer
	// Save receives all results so far after each case, so that those of a long suite are not lost if it is interrupted; nil: nobody.
	Save func([]report.Case) error
}

// Run runs the cases one after another, each on an API server of its own on which the contestants take turns.
func Run(ctx context.Context, settings Settings, all []Case, contestants []contestant.Contestant) ([]report.Case, error) {
	var lines []report.Case
	for _, c := range all {
		some, err := run(ctx, settings, c, contestants)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name(), err)
		}
		lines = append(lines, some...)
		if settings.Save == nil {
			continue
		}
		if err := settings.Save(lines); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

func run(ctx context.Context, settings Settings, c Case, contestants []contestant.Contestant) (lines []report.Case, err error) {
	logs := filepath.Join(settings.Logs, strings.ReplaceAll(c.name(), "/", "-"))
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, fmt.Errorf("make folder for logs: %w", err)
	}
	all := newResults(c)
	for _, turn := range turnsOf(settings, c, contestants) {
		if err := together(ctx, settings, c, turn, logs, all); err != nil {
			return nil, err
		}
	}
	for _, result := range c.Results {
		line := report.NewCase(result.Name, result.Unit, contestant.Ours, all.values[result.Name])
		line.Requests = all.requests
		lines = append(lines, line)
	}
	return lines, nil
}

// turn is a number of runs on one API server, and the contestants that make them.
type turn struct {
	contestants []contestant.Contestant
	// first is how many runs there were before, runs is how many there are, and of is how many there are in all turns.
	first, runs, of int
}

// turnsOf returns the turns of a case. With Once, each run of each contestant is one.
func turnsOf(settings Settings, c Case, contestants []contestant.Contestant) []turn {
	if !c.Once {
		runs := settings.Runs * max(1, c.Often)
		return []turn{{contestants, 0, runs, runs}}
	}
	var turns []turn
	runs := max(1, settings.OnceRuns)
	for first := range runs {
		for alone := range slices.Chunk(contestants, 1) {
			turns = append(turns, turn{alone, first, 1, runs})
		}
	}
	return turns
}

// together makes the runs of a turn, on an API server of their own.
func together(ctx context.Context, settings Settings, c Case, turn turn, logs string, all results) (err error) {
	crds := []string{settings.CRD}
	if turn.contestants[0].Name() != contestant.WithoutReports {
		crds = append(crds, settings.ReportCRD)
	}
	if c.Queued {
		crds = append(crds, settings.WorkloadCRD)
	}
	server, err := apiserver.Start(apiserver.Options{Assets: settings.Assets, CRDs: crds, Audit: c.Counts, Gangs: c.Gangs, Latency: settings.Latency, Relay: c.Relayed})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if c.PodsRun {
		fakes, err := nodes.Start(ctx, server, nodes.Options{
			Assets: settings.Assets, KWOK: settings.KWOK, Logs: logs, Gangs: c.Gangs, Count: c.Nodes, Collects: c.Collects,
		})
		if err != nil {
			return err
		}
		// Before the API server: with clients that watch it takes its time to stop.
		defer func() { err = errors.Join(err, fakes.Stop()) }()
	}
	return takeTurns(ctx, settings, c, server, turn, logs, all)
}

// results are what all runs of a case measured.
type results struct {
	// values are by the name of the result and by contestant.
	values map[string]map[string][]report.Value
	// requests are by contestant.
	requests map[string]map[string]int
}

func newResults(c Case) results {
	all := results{values: map[string]map[string][]report.Value{}, requests: map[string]map[string]int{}}
	for _, result := range c.Results {
		all.values[result.Name] = map[string][]report.Value{}
	}
	return all
}

// takeTurns makes the runs of a turn: each contestant one, and again.
func takeTurns(ctx context.Context, settings Settings, c Case, server *apiserver.Server, turn turn, logs string, all results) error {
	for number := turn.first; number < turn.first+turn.runs; number++ {
		for at, who := range turn.contestants {
			if c.OperatorsOnly && who.Name() == contestant.FloorName {
				continue
			}
			namespace := fmt.Sprintf("run-%d-%d", number, at)
			log := filepath.Join(logs, fmt.Sprintf("%s-%d.log", who.Name(), number+1))
			measured, requests, err := measure(ctx, c, server, who, namespace, log, settings)
			if err != nil {
				return fmt.Errorf("%s, run %d: %w", who.Name(), number+1, err)
			}
			if c.Counts {
				all.requests[who.Name()] = requests
			}
			for name, value := range measured {
				all.values[name][who.Name()] = append(all.values[name][who.Name()], value)
			}
			_, _ = fmt.Fprintf(settings.Progress, "%-13s run %d/%d  %-21s %s\n", c.name(), number+1, turn.of, who.Name(), told(c.Results, measured))
		}
	}
	return nil
}

// told is what a run measured, for a progress line.
func told(results []Result, measured map[string]report.Value) string {
	var parts []string
	for _, result := range results {
		if value, ok := measured[result.Name]; ok {
			parts = append(parts, value.String()+" "+result.Unit)
		}
	}
	return strings.Join(parts, ", ")
}
