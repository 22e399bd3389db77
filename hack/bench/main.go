// Command bench measures our operator beside mpi-operator. See README.md.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
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

	"opendatahub.io/mpijob/hack/bench/cases"
	"opendatahub.io/mpijob/hack/bench/contestant"
	"opendatahub.io/mpijob/hack/bench/programs"
	"opendatahub.io/mpijob/hack/bench/report"
)

func main() {
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

type options struct {
	suite, names, out, assets string
	runs                      int
	limit, latency            time.Duration
	full, smallest            bool
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.suite, "suite", "", "which suite to run; empty: all (there is one, mpijob)")
	flags.StringVar(&o.names, "cases", "", "run the cases whose names match this regular expression; empty: all")
	flags.IntVar(&o.runs, "runs", 3, "how often each contestant runs each case")
	flags.DurationVar(&o.limit, "limit", 45*time.Second, "cut create/* and burst/* short after this time, and extrapolate")
	flags.DurationVar(&o.latency, "latency", 0, "have the API server's answers to the contestants take so much longer, as if it were far away")
	flags.BoolVar(&o.full, "full", false, "cut nothing short, which takes an hour more")
	flags.BoolVar(&o.smallest, "smallest", false, "run the smallest case once, without mpi-operator's second setting, to see that the bench works")
	flags.StringVar(&o.out, "out", "", "the folder for results, logs and built programs; empty: .bench at the repository's root")
	flags.StringVar(&o.assets, "assets", os.Getenv("KUBEBUILDER_ASSETS"), "the folder with etcd and Kubernetes' programs; by default $KUBEBUILDER_ASSETS")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; every setting is a flag, see --help", flags.Arg(0))
	case o.suite != "" && o.suite != "mpijob":
		return o, fmt.Errorf("there is no suite %q; there is mpijob", o.suite)
	case o.runs < 1:
		return o, fmt.Errorf("--runs is %d, and must be at least 1", o.runs)
	case o.assets == "":
		return o, fmt.Errorf("no kube-apiserver: set KUBEBUILDER_ASSETS=$(go run -C hack/cluster . binaries), or use `make bench`")
	}
	if o.full {
		o.limit = 0
	}
	return o, nil
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
	chosen := cases.Matching(cases.MPIJob(), names)
	if o.smallest {
		chosen, o.runs = cases.Smallest(), 1
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no case matches %q", o.names)
	}
	return bench(ctx, o, root, chosen)
}

func bench(ctx context.Context, o options, root string, chosen []cases.Case) error {
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
	contestants := contestant.All(root, built)
	if o.smallest {
		contestants = slices.DeleteFunc(contestants, func(c contestant.Contestant) bool { return c.Name() == contestant.MPIOperatorQPS1000 })
	}
	lines, err := cases.Run(ctx, cases.Settings{
		Assets: o.assets, CRD: filepath.Join(root, "config", "crd", "kubeflow.org_mpijobs.yaml"), KWOK: built.KWOK,
		Logs: filepath.Join(o.out, "logs"), Runs: o.runs, Limit: o.limit, Latency: o.latency, Progress: os.Stdout,
	}, chosen, contestants)
	if err != nil {
		return err
	}
	result := report.Report{Suite: "mpijob", Date: begun.UTC().Truncate(time.Second), Machine: machine(), Version: versions, Latency: o.latency.Seconds(), Cases: lines}
	var peers []string
	for _, c := range contestants {
		if c.Name() != contestant.Ours {
			peers = append(peers, c.Name())
		}
	}
	fmt.Println()
	if err := report.Table(os.Stdout, lines, contestant.Ours, peers); err != nil {
		return err
	}
	file, err := result.Write(o.out)
	if err != nil {
		return err
	}
	fmt.Printf("\nMedians of %d runs; × is how many times as much as ours; ~ extrapolated, ≥ at least.\n%s, after %s\n", o.runs, file, time.Since(begun).Round(time.Second))
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
	// What is not known is left out.
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
