// Command refresh measures what docs/proof.md shows, copies the records to docs/proof, and writes the page: `make proof`.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"opendatahub.io/mpijob/hack/bench/proof"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "proof:", err)
		os.Exit(1)
	}
}

// suite is how a suite of the page is measured.
type suite struct {
	name string
	// minutes is how long it takes on two cores, with the runs that it makes here. full is with FULL=1.
	minutes, full int
	// targets are what make is called with, one after the other.
	targets [][]string
	// once says that a case runs once if nothing else is asked for.
	once bool
}

// bench is a suite of the benchmark.
func bench(name string, minutes int) suite {
	return suite{name: name, minutes: minutes, targets: [][]string{{"bench", "SUITE=" + name}}}
}

// measured says how each suite is measured.
func measured() []suite {
	programs := suite{name: proof.SuitePrograms, minutes: 60, targets: [][]string{{"e2e", "SUITE=Programs"}}}
	// These two measure the operator of the cluster: it has to be that of this commit.
	start, compute := bench("start", 25), bench("compute", 30)
	for _, s := range []*suite{&start, &compute} {
		s.targets = slices.Insert(s.targets, 0, []string{"deploy", "WITH=trainer"})
	}
	agent, scale, reports, queue := bench("agent", 10), bench("scale", 180), bench("report", 18), bench("queue", 40)
	agent.full, scale.full = 90, 600
	for _, s := range []*suite{&scale, &reports, &queue} {
		s.once = true
	}
	return []suite{programs, bench("mpijob", 12), start, compute, agent, scale, reports, queue, bench("gang", 6), bench(proof.SuiteList, 4)}
}

type options struct {
	root, cases      string
	suites           []string
	runs             int
	force, full, dry bool
}

func parse(args []string) (options, error) {
	var o options
	var suites string
	flags := flag.NewFlagSet("proof", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "the folder of the repository")
	flags.StringVar(&suites, "suites", "", "the suites to measure, separated by commas or spaces; empty: all")
	flags.StringVar(&o.cases, "cases", "", "of one suite, only the cases whose names match; the page then has no others of it")
	flags.IntVar(&o.runs, "runs", 0, "how often each case runs; 0: as the suite does, and at least 3 times")
	flags.BoolVar(&o.force, "force", false, "measure suites whose record is of this commit, too")
	flags.BoolVar(&o.full, "full", false, "up to 1,024 hosts in the suite agent, and 3,000 jobs in the suite scale")
	flags.BoolVar(&o.dry, "dry-run", false, "only print what would be measured, and how long it takes")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.suites = strings.FieldsFunc(suites, func(r rune) bool { return r == ',' || r == ' ' })
	for _, name := range o.suites {
		if !slices.Contains(proof.Suites(), name) {
			return o, fmt.Errorf("there is no suite %q; there are %s", name, strings.Join(proof.Suites(), ", "))
		}
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q; every setting is a flag, see --help", flags.Arg(0))
	case o.cases != "" && (len(o.suites) != 1 || o.suites[0] == proof.SuitePrograms || o.suites[0] == proof.SuiteList):
		return o, fmt.Errorf("CASES needs SUITES with one suite of the benchmark that has cases")
	case o.runs != 0 && o.runs < 3:
		return o, fmt.Errorf("RUNS=%d: the page shows medians of at least 3 runs", o.runs)
	}
	return o, nil
}

// step is a suite that was asked for. It is not measured again if its record is current.
type step struct {
	suite
	current bool
}

// plan returns the suites that were asked for, in the order of the page. isCurrent reports whether the record of a
// suite is of this commit, and has what is asked for.
func plan(o options, isCurrent func(s suite) bool) []step {
	var steps []step
	for _, s := range measured() {
		if len(o.suites) == 0 || slices.Contains(o.suites, s.name) {
			steps = append(steps, step{s, !o.force && isCurrent(s)})
		}
	}
	return steps
}

// commands returns what make is called with for a suite.
func (s suite) commands(o options) [][]string {
	var all [][]string
	for _, target := range s.targets {
		target = slices.Clone(target)
		if target[0] == "bench" && s.name != proof.SuiteList {
			switch {
			case o.runs > 0:
				target = append(target, fmt.Sprintf("RUNS=%d", o.runs))
			case s.once:
				target = append(target, "RUNS=3")
			}
			if o.cases != "" {
				// make reads a dollar as the beginning of a variable.
				target = append(target, "CASES="+strings.ReplaceAll(o.cases, "$", "$$"))
			}
			if o.full && s.full > 0 {
				target = append(target, "FULL=1")
			}
		}
		all = append(all, target)
	}
	return all
}

// duration is how long a suite takes, roughly.
func (s suite) duration(o options) time.Duration {
	if o.full && s.full > 0 {
		return time.Duration(s.full) * time.Minute
	}
	return time.Duration(s.minutes) * time.Minute
}

// announce prints what will be measured, and how long that takes.
func announce(out io.Writer, o options, steps []step) {
	var total time.Duration
	for _, s := range steps {
		if s.current {
			_, _ = fmt.Fprintf(out, "%-10s is measured already: its record in .bench/proof is of this commit (FORCE=1 measures it again)\n", s.name)
			continue
		}
		took := s.duration(o)
		total += took
		_, _ = fmt.Fprintf(out, "%-10s about %.0f minutes\n", s.name, took.Minutes())
	}
	_, _ = fmt.Fprintf(out, "%-10s about %.0f minutes on two cores that do nothing else. Each suite is saved when it ends: after an interruption, the same command goes on.\n", "together", total.Minutes())
	if o.cases != "" {
		_, _ = fmt.Fprintln(out, "With CASES, the page has only these cases of the suite.")
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	repository := repository{o.root}
	measured, to := filepath.Join(o.root, ".bench"), filepath.Join(o.root, "docs", "proof")
	complete := filepath.Join(measured, "proof")
	records, err := proof.Load(complete)
	if err != nil {
		return err
	}
	steps := plan(o, func(s suite) bool {
		return o.cases == "" && repository.isCurrent(ctx, records.Measured(s.name)) && readSettings(complete, s.name).include(o, s)
	})
	announce(out, o, steps)
	if o.dry {
		return nil
	}
	switch changed, err := repository.git(ctx, "status", "--porcelain", "--untracked-files=no"); {
	case err != nil:
		return fmt.Errorf("ask git for changes: %w", err)
	case changed != "":
		return fmt.Errorf("records of a tree with changes are refused, because they could not be measured again: commit these first\n%s", changed)
	}
	for _, s := range steps {
		if s.current {
			continue
		}
		if err := measure(ctx, o, s.suite, measured, out); err != nil {
			return err
		}
		if o.cases != "" {
			continue
		}
		if err := keep(measured, complete, s.name, settings{Full: o.full, Runs: o.runs}); err != nil {
			return err
		}
	}
	from := complete
	if o.cases != "" {
		from = measured
	}
	return publish(ctx, repository, steps, from, to, out)
}

// measure calls make for a suite, which writes its record into a folder.
func measure(ctx context.Context, o options, s suite, folder string, out io.Writer) error {
	// Runs of before would be in the record, or be taken for it.
	if err := os.Remove(filepath.Join(folder, s.name+".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete an old record: %w", err)
	}
	for _, target := range s.commands(o) {
		_, _ = fmt.Fprintf(out, "\n== %s: make %s\n", s.name, strings.Join(target, " "))
		command := exec.CommandContext(ctx, "make", append([]string{"-C", o.root}, target...)...) //nolint:gosec // targets of this repository
		command.Stdout, command.Stderr, command.Env = out, os.Stderr, environment()
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		if err := command.Run(); err != nil {
			return fmt.Errorf("make %s: %w; the suites before it are in .bench/proof, and the same command goes on with this one", strings.Join(target, " "), err)
		}
	}
	return nil
}

// settings are those with which a complete record was measured. Runs is 0 if a suite ran its cases as often as it does by itself.
type settings struct {
	Full bool `json:"full"`
	Runs int  `json:"runs"`
}

// settingsField is the field of a record with its settings.
const settingsField = "settings"

// keep copies the record of a suite that ended, which has all of its cases. Records in the folder from may be of a part of them: they are written
// after each case, and also by make bench with CASES, RUNS or BEFORE.
func keep(from, to, suite string, with settings) error {
	text, err := os.ReadFile(filepath.Join(from, suite+".json"))
	if err != nil {
		return fmt.Errorf("keep the record: %w", err)
	}
	record := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &record); err != nil {
		return fmt.Errorf("keep the record of %s: %w", suite, err)
	}
	if record[settingsField], err = json.Marshal(with); err != nil {
		return fmt.Errorf("keep the record of %s: %w", suite, err)
	}
	if text, err = json.MarshalIndent(record, "", "  "); err != nil {
		return fmt.Errorf("keep the record of %s: %w", suite, err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // records
		return fmt.Errorf("keep the record: %w", err)
	}
	file := filepath.Join(to, suite+".json")
	if err := os.WriteFile(file+".new", append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("keep the record: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("keep the record: %w", err)
	}
	return nil
}

// readSettings returns those of a record in a folder; without the record, or if it has none, what a suite does by itself.
func readSettings(folder, suite string) settings {
	var record struct {
		Settings settings `json:"settings"`
	}
	if text, err := os.ReadFile(filepath.Join(folder, suite+".json")); err == nil {
		_ = json.Unmarshal(text, &record)
	}
	return record.Settings
}

// include reports whether what was measured of a suite is at least what is asked for.
func (s settings) include(o options, of suite) bool {
	if o.full && of.full > 0 && !s.Full {
		return false
	}
	return s.Runs >= o.runs || of.name == proof.SuitePrograms || of.name == proof.SuiteList
}

// ownVariables are those of make proof. Its make passes them on, also to suites for which they are not meant.
var ownVariables = []string{"MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "SUITE", "SUITES", "CASES", "RUNS", "FULL", "FORCE", "DRY_RUN", "BEFORE", "LATENCY"}

// environment returns the environment of the suites.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(ownVariables, name)
	})
}

// publish copies the records of the suites to the page, if they are of this commit, and writes it.
func publish(ctx context.Context, repository repository, steps []step, from, to string, out io.Writer) error {
	records, err := proof.Load(from)
	if err != nil {
		return err
	}
	problems := map[string]proof.Problem{}
	for _, problem := range proof.Unrepeatable(records, func(commit string) bool { return repository.has(ctx, commit) }) {
		problems[problem.Record] = problem
	}
	for _, s := range steps {
		if problem, refused := problems[s.name+".json"]; refused {
			return fmt.Errorf("%s is refused: %s", filepath.Join(from, s.name+".json"), problem)
		}
		if err := proof.Copy(from, to, s.name); err != nil {
			return err
		}
	}
	if records, err = proof.Load(to); err != nil {
		return err
	}
	if err := proof.Write(to, records); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "\n%s.md is written: commit it with %s\n", to, to)
	return nil
}

// repository is the checkout that is measured.
type repository struct{ root string }

func (r repository) git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", r.root}, args...)...).Output() //nolint:gosec // git
	return strings.TrimSpace(string(out)), err
}

// isCurrent reports whether a version is this commit, or differs from it only in documents.
func (r repository) isCurrent(ctx context.Context, version string) bool {
	commit := proof.CommitOf(version)
	if commit == "" || strings.HasSuffix(version, "-dirty") || !r.has(ctx, commit) {
		return false
	}
	_, err := r.git(ctx, "diff", "--quiet", commit, "HEAD", "--", ":(top)", ":(top,exclude)docs", ":(top,exclude)*.md")
	return err == nil
}

// has reports whether a commit is in the history.
func (r repository) has(ctx context.Context, commit string) bool {
	_, err := r.git(ctx, "merge-base", "--is-ancestor", commit, "HEAD")
	return err == nil
}
