package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"opendatahub.io/mpijob/hack/bench/proof"
)

// TestEverySuiteIsMeasured: the page shows no suite that the command does not measure, and both have one order.
func TestEverySuiteIsMeasured(t *testing.T) {
	t.Parallel()
	var names []string
	for _, s := range measured() {
		names = append(names, s.name)
		if s.minutes == 0 || len(s.targets) == 0 {
			t.Errorf("%s has no duration or no command", s.name)
		}
	}
	if !slices.Equal(names, proof.Suites()) {
		t.Errorf("measured are %v, the page shows %v", names, proof.Suites())
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args    []string
		current []string
		// want are the calls of make; failure is part of the error.
		want    []string
		failure string
	}{
		"one suite":                 {args: []string{"--suites", "mpijob"}, want: []string{"bench SUITE=mpijob"}},
		"two, in the page's order":  {args: []string{"--suites", "scale, mpijob"}, want: []string{"bench SUITE=mpijob", "bench SUITE=scale RUNS=3"}},
		"the cluster's operator":    {args: []string{"--suites", "start"}, want: []string{"deploy WITH=trainer", "bench SUITE=start"}},
		"more runs":                 {args: []string{"--suites", "mpijob,list", "--runs", "9"}, want: []string{"bench SUITE=mpijob RUNS=9", "bench SUITE=list"}},
		"measured already":          {args: []string{"--suites", "mpijob,agent"}, current: []string{"agent"}, want: []string{"bench SUITE=mpijob"}},
		"measured again":            {args: []string{"--suites", "agent", "--force"}, current: []string{"agent"}, want: []string{"bench SUITE=agent"}},
		"full":                      {args: []string{"--suites", "agent,gang", "--full"}, want: []string{"bench SUITE=agent FULL=1", "bench SUITE=gang"}},
		"some cases":                {args: []string{"--suites", "mpijob", "--cases", "create/1$"}, want: []string{"bench SUITE=mpijob CASES=create/1$$"}},
		"too few runs":              {args: []string{"--runs", "1"}, failure: "RUNS=1: the page shows medians of at least 3 runs"},
		"cases of many suites":      {args: []string{"--cases", "create"}, failure: "CASES needs SUITES with one suite"},
		"a suite that is not there": {args: []string{"--suites", "pods"}, failure: `there is no suite "pods"; there are programs, mpijob, start`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := parse(test.args)
			if test.failure != "" {
				if err == nil || !strings.Contains(err.Error(), test.failure) {
					t.Fatalf("got the error %v, want %q", err, test.failure)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range plan(o, func(s suite) bool { return slices.Contains(test.current, s.name) }) {
				if s.current {
					continue
				}
				for _, target := range s.commands(o) {
					got = append(got, strings.Join(target, " "))
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestRun: a run measures what is not of this commit, copies the records and writes the page; run again it measures nothing. Records with
// changes are refused, as is a tree with changes.
func TestRun(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(file, text string) {
		t.Helper()
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// It records the commit and counts its calls. As the benchmark, it also has a record of some cases if it fails in another one.
	write("Makefile", `bench:
	@echo called $(SUITE) $(RUNS) $(FULL) $(CASES) >>.bench/calls
	@test '$(SUITE)' = agent || test -z '$(FULL)'
	@printf '{"suite":"%s","versions":{"ours":"%s"},"cases":[]}' '$(SUITE)' "$$(git describe --always --dirty)" >.bench/$(SUITE).json
	@test -z '$(FAIL)'
`)
	write(".gitignore", "/.bench/\n")
	write("docs/proof/README", "")
	write(".bench/sdk.json", `{"of":"no suite of the page"}`)
	git("init", "--quiet")
	git("add", ".")
	git("commit", "--quiet", "--message", "first")
	calls := func() int {
		text, _ := os.ReadFile(filepath.Join(root, ".bench", "calls"))
		return bytes.Count(text, []byte("called"))
	}
	refresh := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"--root", root, "--suites", "mpijob,gang"}, args...), &out)
		return out.String(), err
	}

	// As in a recipe of make proof FULL=1, which is only meant for the suites agent and scale.
	t.Setenv("MAKEFLAGS", " -- FULL=1")
	t.Setenv("FULL", "1")
	if out, err := refresh("--dry-run"); err != nil || calls() != 0 || !strings.Contains(out, "mpijob     about 12 minutes") || !strings.Contains(out, "together   about 18 minutes") {
		t.Fatalf("a dry run has made %d runs, and printed %s: %v", calls(), out, err)
	}
	t.Setenv("FAIL", "1")
	if _, err := refresh(); err == nil || calls() != 1 || !strings.Contains(err.Error(), "make bench SUITE=mpijob") {
		t.Fatalf("after a suite that failed there are %d runs, and the error is %v", calls(), err)
	}
	t.Setenv("FAIL", "")
	// Others write records of parts of a suite: make bench with CASES, and make test.
	write(".bench/gang.json", `{"suite":"gang","versions":{"ours":"`+git("describe", "--always", "--dirty")+`"},"cases":[]}`)
	if out, err := refresh(); err != nil || calls() != 3 {
		t.Fatalf("there are %d runs: %v: %s", calls(), err, out)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "proof.md"))
	if err != nil || !strings.Contains(string(page), "## How fast jobs are created") {
		t.Fatalf("the page is %q: %v", page, err)
	}
	// The page is committed; that is no reason to measure again.
	git("add", ".")
	git("commit", "--quiet", "--message", "page")
	if out, err := refresh(); err != nil || calls() != 3 || !strings.Contains(out, "mpijob     is measured already") {
		t.Fatalf("there are %d runs: %v: %s", calls(), err, out)
	}
	// More is asked for than was measured, and then less. Some cases are on the page, and are no record of the suite.
	for _, call := range []struct {
		args string
		want int
	}{
		{"--runs 9", 5},
		{"--runs 5", 5},
		{"--suites agent", 6},
		{"--suites agent --full", 7},
		{"--suites agent --full", 7},
		{"--suites agent", 7},
		{"--suites gang --cases create", 8},
	} {
		if out, err := refresh(strings.Fields(call.args)...); err != nil || calls() != call.want {
			t.Fatalf("after %s there are %d runs, want %d: %v: %s", call.args, calls(), call.want, err, out)
		}
		git("add", ".")
		git("commit", "--quiet", "--allow-empty", "--message", "records")
	}
	if out, err := refresh("--suites", "gang", "--dry-run"); err != nil || !strings.Contains(out, "gang       is measured already") {
		t.Fatalf("%v: %s", err, out)
	}
	write("program", "changed")
	git("add", ".")
	if _, err := refresh(); err == nil || !strings.Contains(err.Error(), "commit these first") {
		t.Fatalf("a tree with changes is measured: %v", err)
	}
	git("commit", "--quiet", "--message", "program")
	if out, err := refresh(); err != nil || calls() != 10 {
		t.Fatalf("there are %d runs of a new commit: %v: %s", calls(), err, out)
	}

	// A record that was made otherwise.
	git("reset", "--quiet", "--hard")
	text, err := json.Marshal(map[string]any{"suite": "gang", "versions": map[string]string{"ours": "f0ae039-dirty"}})
	if err != nil {
		t.Fatal(err)
	}
	write(".bench/gang.json", string(text))
	repository := repository{root}
	if err := publish(t.Context(), repository, []step{{suite: suite{name: "gang"}}}, filepath.Join(root, ".bench"), filepath.Join(root, "docs", "proof"), io.Discard); err == nil || !strings.Contains(err.Error(), "f0ae039-dirty has changes") {
		t.Errorf("a record with changes is published: %v", err)
	}
}
