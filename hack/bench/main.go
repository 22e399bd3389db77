// Command bench compares our operator with mpi-operator, and our agent with OpenSSH. See README.md.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"opendatahub.io/mpijob/hack/bench/agent"
	"opendatahub.io/mpijob/hack/bench/agent/host"
	"opendatahub.io/mpijob/hack/bench/cases"
	"opendatahub.io/mpijob/hack/bench/compute"
	"opendatahub.io/mpijob/hack/bench/contestant"
	"opendatahub.io/mpijob/hack/bench/programs"
	"opendatahub.io/mpijob/hack/bench/report"
	"opendatahub.io/mpijob/hack/bench/start"
)

func main() {
	host.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("interrupted; all that ran has been ended")
		}
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// Suites.
const (
	suiteMPIJob  = "mpijob"
	suiteReport  = "report"
	suiteQueue   = "queue"
	suiteGang    = "gang"
	suiteAgent   = "agent"
	suiteStart   = "start"
	suiteCompute = "compute"
	suiteScale   = "scale"
)

// suites are all of them.
var suites = []string{suiteMPIJob, suiteReport, suiteQueue, suiteGang, suiteAgent, suiteStart, suiteCompute, suiteScale}

// suitesOnRequest take as long as all others, or need an image of 280 MB.
var suitesOnRequest = []string{suiteCompute, suiteScale}

// suitesBefore are those that compare with an earlier commit.
var suitesBefore = []string{suiteMPIJob, suiteAgent, suiteStart}

type options struct {
	suite, names, out, assets string
	// runs is how often each contestant runs each case, and onceRuns those whose runs have an API server each; 0: as the suite does.
	runs, onceRuns int
	limit, latency time.Duration
	full, smallest bool
	// before is a commit that is compared with ours; empty: mpi-operator and OpenSSH are.
	before string
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.suite, "suite", "", "which suite to run: "+strings.Join(suites, ", ")+"; empty: all but "+strings.Join(suitesOnRequest, " and "))
	flags.StringVar(&o.names, "cases", "", "run the cases whose names match this regular expression; empty: all")
	flags.IntVar(&o.runs, "runs", 0, "how often each contestant runs each case; 0: 3 times, 5 times in the suite start, and once where a case has an API server of its own for each run (report, queue and scale)")
	flags.DurationVar(&o.limit, "limit", 45*time.Second, "cut create/* and burst/* short after this time, and extrapolate")
	flags.DurationVar(&o.latency, "latency", 0, "have the API server's answers to the contestants take so much longer, as if it were far away")
	flags.BoolVar(&o.full, "full", false, "cut nothing short, which takes an hour more; 3,000 jobs in the suite scale and up to 1,024 hosts in the suite agent in addition")
	flags.BoolVar(&o.smallest, "smallest", false, "run the smallest case once, without mpi-operator's second setting, to see that the bench works")
	flags.StringVar(&o.before, "before", "", "suites mpijob, agent and start: compare with the operator and agent of this commit instead of mpi-operator and OpenSSH")
	flags.StringVar(&o.out, "out", "", "the folder for results, logs and built programs; empty: .bench at the repository's root")
	flags.StringVar(&o.assets, "assets", os.Getenv("KUBEBUILDER_ASSETS"), "the folder with etcd and Kubernetes' programs; by default $KUBEBUILDER_ASSETS")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; every setting is a flag, see --help", flags.Arg(0))
	case o.suite != "" && !slices.Contains(suites, o.suite):
		return o, fmt.Errorf("there is no suite %q; there are %s", o.suite, strings.Join(suites, ", "))
	case o.before != "" && o.suite != "" && !slices.Contains(suitesBefore, o.suite):
		return o, fmt.Errorf("--before is not allowed with the suite %q; use %s", o.suite, strings.Join(suitesBefore, " or "))
	case o.runs < 0:
		return o, fmt.Errorf("--runs is %d, and must be at least 1, or 0 for the default", o.runs)
	case o.suite != suiteAgent && o.suite != suiteStart && o.suite != suiteCompute && o.assets == "":
		return o, fmt.Errorf("no kube-apiserver: set KUBEBUILDER_ASSETS=$(go run -C hack/cluster . binaries), or use `make bench`")
	}
	if o.full {
		o.limit = 0
	}
	if o.smallest {
		o.runs = 1
	}
	o.onceRuns = o.runs
	return o, nil
}

// records is the folder of the results. Those of the smallest cases are no results of a suite.
func (o options) records() string {
	if o.smallest {
		return filepath.Join(o.out, "smallest")
	}
	return o.out
}

// wants reports whether a suite is to be run.
func (o options) wants(suite string) bool {
	if o.suite == "" {
		return !slices.Contains(suitesOnRequest, suite) && (o.before == "" || slices.Contains(suitesBefore, suite))
	}
	return o.suite == suite
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := regexp.Compile(o.names)
	if err != nil {
		return fmt.Errorf("--cases: %w", err)
	}
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	root, err := findRoot()
	if err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join(root, ".bench")
	}
	if err := os.MkdirAll(o.records(), 0o755); err != nil { //nolint:gosec // results
		return fmt.Errorf("folder of the results: %w", err)
	}
	matched := false
	for _, suite := range []struct {
		name string
		runs int
		run  func(context.Context, options, string, *regexp.Regexp) (bool, error)
	}{
		{suiteMPIJob, 3, benchMPIJob},
		{suiteReport, 3, benchReport},
		{suiteQueue, 3, benchQueue},
		{suiteGang, 3, benchGang},
		{suiteAgent, 3, benchAgent},
		{suiteStart, 5, benchStart},
		{suiteCompute, 3, benchCompute},
		{suiteScale, 1, benchScale},
	} {
		if !o.wants(suite.name) {
			continue
		}
		options := o
		options.runs = cmp.Or(o.runs, suite.runs)
		some, err := suite.run(ctx, options, root, names)
		if err != nil {
			return err
		}
		matched = matched || some
	}
	if !matched {
		return fmt.Errorf("no case matches %q", o.names)
	}
	return nil
}

// benchMPIJob runs the suite mpijob; it reports whether any of its cases was asked for.
func benchMPIJob(ctx context.Context, o options, root string, names *regexp.Regexp) (bool, error) {
	chosen := cases.Matching(cases.MPIJob(), names)
	if o.smallest {
		chosen = cases.Smallest()
	}
	if len(chosen) == 0 {
		return false, nil
	}
	if err := contestant.Ready(); err != nil {
		return true, err
	}
	if o.before != "" {
		return true, benchBefore(ctx, o, root, chosen)
	}
	contestants := func(built programs.Paths) []contestant.Contestant {
		all := contestant.All(root, built)
		if o.smallest {
			all = slices.DeleteFunc(all, func(c contestant.Contestant) bool { return c.Name() == contestant.MPIOperatorQPS1000 })
		}
		return all
	}
	return true, bench(ctx, o, root, suiteMPIJob, chosen, contestants)
}

// benchBefore runs cases of the suite mpijob with our operator and that of an earlier commit.
func benchBefore(ctx context.Context, o options, root string, chosen []cases.Case) error {
	earlier, err := programs.Checkout(ctx, root, o.before, filepath.Join(o.out, "before"))
	if err != nil {
		return err
	}
	before, err := programs.BuildOperator(ctx, earlier, filepath.Join(o.out, "bin", "operator-before"))
	if err != nil {
		return err
	}
	return bench(ctx, o, root, suiteMPIJob, chosen, func(built programs.Paths) []contestant.Contestant {
		return contestant.Before(root, built, earlier, before)
	})
}

// benchReport runs the suite report; it reports whether any of its cases was asked for.
func benchReport(ctx context.Context, o options, root string, names *regexp.Regexp) (bool, error) {
	chosen := cases.Matching(cases.Report(), names)
	if o.smallest || len(chosen) == 0 {
		return false, nil
	}
	return true, bench(ctx, o, root, suiteReport, chosen, func(built programs.Paths) []contestant.Contestant { return contestant.Reports(root, built) })
}

// benchQueue runs the suite queue; it reports whether any of its cases was asked for.
func benchQueue(ctx context.Context, o options, root string, names *regexp.Regexp) (bool, error) {
	chosen := cases.Matching(cases.Queue(), names)
	if o.smallest || len(chosen) == 0 {
		return false, nil
	}
	return true, bench(ctx, o, root, suiteQueue, chosen, func(built programs.Paths) []contestant.Contestant { return contestant.Reports(root, built) })
}

// benchGang runs the suite gang; it reports whether any of its cases was asked for.
func benchGang(ctx context.Context, o options, root string, names *regexp.Regexp) (bool, error) {
	chosen := cases.Matching(cases.Gang(), names)
	if o.smallest || len(chosen) == 0 {
		return false, nil
	}
	return true, bench(ctx, o, root, suiteGang, chosen, func(built programs.Paths) []contestant.Contestant { return contestant.Gangs(root, built) })
}

// benchScale runs the suite scale; it reports whether any of its cases was asked for.
func benchScale(ctx context.Context, o options, root string, names *regexp.Regexp) (bool, error) {
	chosen := cases.Matching(cases.Scale(o.full), names)
	if o.smallest || len(chosen) == 0 {
		return false, nil
	}
	if err := contestant.Ready(); err != nil {
		return true, err
	}
	return true, bench(ctx, o, root, suiteScale, chosen, func(built programs.Paths) []contestant.Contestant { return contestant.Scale(root, built) })
}

// bench runs cases of a suite whose contestants are operators.
func bench(ctx context.Context, o options, root, suite string, chosen []cases.Case, between func(programs.Paths) []contestant.Contestant) error {
	begun := time.Now()
	fmt.Println("building the operators")
	podsRun := slices.ContainsFunc(chosen, func(c cases.Case) bool { return c.PodsRun })
	built, err := programs.Build(ctx, root, filepath.Join(o.out, "bin"), podsRun)
	if err != nil {
		return err
	}
	versions, err := programs.Versions(ctx, root, o.assets)
	if err != nil {
		return err
	}
	workload, err := programs.WorkloadCRD(ctx, root)
	if err != nil {
		return err
	}
	if o.before != "" {
		if versions[contestant.BeforeName], err = programs.Describe(ctx, root, o.before); err != nil {
			return err
		}
	}
	contestants := between(built)
	result := func(lines []report.Case) report.Report {
		if suite == suiteScale {
			lines = append(slices.Clone(lines), report.Growth(lines, cases.ScaleFigures(), contestant.Ours)...)
		}
		return report.Report{Suite: suite, Date: begun.UTC().Truncate(time.Second), Machine: machine(), Version: versions, Latency: o.latency.Seconds(), Cases: lines}
	}
	lines, err := cases.Run(ctx, cases.Settings{
		Assets: o.assets, CRD: filepath.Join(root, "config", "crd", "kubeflow.org_mpijobs.yaml"),
		ReportCRD: filepath.Join(root, "config", "crd", "mpi.opendatahub.io_jobreports.yaml"), WorkloadCRD: workload, KWOK: built.KWOK, CLI: built.CLI,
		Logs: filepath.Join(o.out, "logs"), Runs: o.runs, OnceRuns: o.onceRuns, Limit: o.limit, Latency: o.latency, Progress: os.Stdout,
		Save: func(lines []report.Case) error {
			_, err := result(lines).Write(o.records())
			return err
		},
	}, chosen, contestants)
	if err != nil {
		return err
	}
	var peers []string
	for _, c := range contestants {
		if c.Name() != contestant.Ours {
			peers = append(peers, c.Name())
		}
	}
	return finish(o, begun, result(lines), peers)
}

// benchAgent runs the suite agent; it reports whether any of its cases was asked for.
func benchAgent(ctx context.Context, o options, root string, names *regexp.Regexp) (bool, error) {
	begun := time.Now()
	if o.smallest {
		names = agent.Smallest
	}
	result := func(of agent.Results) report.Report {
		return report.Report{
			Suite: suiteAgent, Date: begun.UTC().Truncate(time.Second), Machine: machine(), Version: of.Versions, Cases: of.Cases, Skipped: of.Skipped,
		}
	}
	results, err := agent.Run(ctx, agent.Settings{
		Root: root, Out: o.out, Names: names, Full: o.full, Runs: o.runs, Before: o.before, Strict: o.smallest, Progress: os.Stdout,
		Save: func(of agent.Results) error {
			_, err := result(of).Write(o.records())
			return err
		},
	})
	if err != nil || len(results.Cases)+len(results.Skipped) == 0 {
		return false, err
	}
	return true, finish(o, begun, result(results), agent.Peers(o.before))
}

// benchStart runs the suite start; it reports whether any of its cases was asked for.
func benchStart(ctx context.Context, o options, root string, names *regexp.Regexp) (bool, error) {
	begun := time.Now()
	if o.smallest {
		return false, nil
	}
	results, err := start.Run(ctx, start.Settings{Root: root, Out: o.out, Names: names, Runs: o.runs, Before: o.before, Progress: os.Stdout})
	if err != nil || len(results.Cases)+len(results.Skipped) == 0 {
		return false, err
	}
	result := report.Report{Suite: suiteStart, Version: results.Versions, Cases: results.Cases, Skipped: results.Skipped}
	return true, finish(o, begun, result, start.Peers(o.before))
}

// benchCompute runs the suite compute; it reports whether any of its cases was asked for.
func benchCompute(ctx context.Context, o options, root string, names *regexp.Regexp) (bool, error) {
	begun := time.Now()
	if o.smallest {
		return false, nil
	}
	results, err := compute.Run(ctx, compute.Settings{Root: root, Out: o.out, Names: names, Runs: o.runs, Progress: os.Stdout})
	if err != nil || len(results.Cases)+len(results.Skipped) == 0 {
		return false, err
	}
	result := report.Report{Suite: suiteCompute, Version: results.Versions, Cases: results.Cases, Skipped: results.Skipped}
	return true, finish(o, begun, result, compute.Peers())
}

// finish shows a report and writes it down.
func finish(o options, begun time.Time, result report.Report, peers []string) error {
	result.Date, result.Machine = begun.UTC().Truncate(time.Second), machine()
	fmt.Println()
	if err := report.Table(os.Stdout, result.Cases, contestant.Ours, peers); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(result.Skipped)) {
		fmt.Printf("%s: skipped: %s\n", name, result.Skipped[name])
	}
	file, err := result.Write(o.records())
	if err != nil {
		return err
	}
	runs := fmt.Sprintf("Medians of %d runs", o.runs)
	if o.onceRuns == 0 && (result.Suite == suiteReport || result.Suite == suiteQueue || result.Suite == suiteScale) {
		runs = "One run each"
	}
	fmt.Printf("\n%s; × is how many times as much as ours; ~ extrapolated, ≥ at least.\n%s, after %s\n", runs, file, time.Since(begun).Round(time.Second))
	return nil
}

// findRoot finds the checkout that the working directory is in.
func findRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for at := folder; ; at = filepath.Dir(at) {
		module, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && bytes.HasPrefix(module, []byte("module opendatahub.io/mpijob\n")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in a checkout of opendatahub.io/mpijob", folder)
		}
	}
}

func machine() report.Machine {
	m := report.Machine{CPUs: runtime.NumCPU()}
	// Unknown facts are left out.
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(release))
	}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, model, found := strings.Cut(string(info), "model name\t: "); found {
			m.Model, _, _ = strings.Cut(model, "\n")
		}
	}
	return m
}
