// Package proof makes docs/proof.md from the files in which the suites of the benchmark and the tests of programs recorded
// what they measured. It is pure, but for Load, Copy and Write.
package proof

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/hack/bench/report"
)

// Program is a run of a program that others wrote, as test/e2e records it.
type Program struct {
	// Name is the program and how it was started, Kind that of the job.
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Result is what the program computed, and Seconds is how long its job ran.
	Result  string  `json:"result"`
	Seconds float64 `json:"seconds"`
	// Date and Version are those of the run. Older records have only those of the latest, in Programs.
	Date    time.Time `json:"date,omitzero"`
	Version string    `json:"version,omitempty"`
}

// Programs are the last run of each program.
type Programs struct {
	// Date and Version are those of the latest run in older records.
	Date    time.Time `json:"date,omitzero"`
	Version string    `json:"version,omitempty"`
	Runs    []Program `json:"runs"`
}

// Lists are how long programs took to list many jobs, as the suite list records it.
type Lists struct {
	Date    time.Time `json:"date"`
	Version string    `json:"version"`
	// Machine has no CPUs in older records. Load is how many processes ran or waited on it when the measurement began, on average over a minute.
	Machine report.Machine `json:"machine,omitzero"`
	Load    float64        `json:"load,omitempty"`
	// Jobs is how many jobs of one namespace were listed.
	Jobs int `json:"jobs"`
	// Cases are the programs and the requests that were measured, by name.
	Cases map[string]List `json:"cases"`
}

// List is how long a program took, from its start to its end, or a request.
type List struct {
	Seconds []float64 `json:"seconds"`
	Median  float64   `json:"median"`
	// Bytes is the size of what was printed or received.
	Bytes int `json:"bytes"`
}

// Records are what was measured.
type Records struct {
	// Reports are the files of the benchmark, by suite.
	Reports  map[string]report.Report
	Programs Programs
	Lists    Lists
}

// A section is the part of the page about a suite.
type section struct {
	suite, title, text string
	// groups are parts with a table of their own.
	groups []group
	// wanted are cases of the suite. The page lists those that were not measured.
	wanted []string
	// contestants are the others of the suite. The page lists those that were not measured.
	contestants []string
}

// A group is a part of a section: cases that belong together, by the beginnings of their names.
type group struct {
	title, text string
	cases       []string
}

// has reports whether a case is in the group.
func (g group) has(name string) bool {
	return slices.ContainsFunc(g.cases, func(start string) bool { return strings.HasPrefix(name, start) })
}

// sections are in the order of the page.
var sections = []section{
	{
		suite: "mpijob", title: "How fast jobs are created",
		text:        "From the creation of a job until its launcher and all worker pods exist, compared with mpi-operator and with the fastest way to create the same objects. The ratio is how many times longer the other takes.",
		wanted:      []string{"create/1", "create/16", "create/64", "create/200", "create/1000", "idle-small", "behind-big", "burst/100x64", "cpu/burst", "memory/burst", "requests/64"},
		contestants: []string{"mpi-operator", "mpi-operator-qps1000", "floor"},
	},
	{
		suite: "start", title: "How fast jobs start and end",
		text:        "On a real cluster with real MPI, compared with mpi-operator with OpenSSH and with bare pods (`floor`). In the cases of TrainJobs, `ours` is a TrainJob with a runtime of the operator, and `mpijob` the same program as an MPIJob. `trainer` is a TrainJob that Kubeflow Trainer runs without the operator, with a runtime as its own for DeepSpeed. `cold`: no node has the image.",
		wanted:      []string{"first-line/1", "first-line/4", "first-line/16", "end/4", "first-line-cold/4", "first-line-trainjob/4", "end-trainjob/4"},
		contestants: []string{"mpi-operator", "trainer", "mpijob", "floor"},
	},
	{
		suite: "compute", title: "How fast programs compute",
		text:        "The programs' own times: all ranks in one worker of an MPIJob (`ours`), compared with `mpirun` in a pod without operator or agent (`bare`). The pods request no CPUs. `mpirun` therefore binds the two ranks of `bare` to a core each, while the operator [binds none](decisions/0028-ranks-are-not-bound.md) and has ranks that wait [yield their core](agent.md#what-changes-for-users), since other pods may need it. Ranks of jobs that request a CPU for each do not yield (`requested`). " + unboundText + " With four ranks on two cores, `mpirun` itself binds none and has them yield, so that all contestants do the same. `shared/` are two jobs or two pods with two ranks each at once; the times are the mean. `spread` has a worker for each rank on the same node, whose ranks exchange messages by TCP. `profiled` is the same as ours with a [communication profile](metrics.md#where-the-time-goes), and `unsampled` without the [use over time](metrics.md#see-what-a-job-used-over-time). `cpu` is the CPU time of all containers while the programs run, with that of ranks which wait, and `agent-cpu` the agents' share of it. At least 0.97 of `bare` is at par.",
		wanted:      []string{"lammps/2", "lammps/4", "gromacs/2", "gromacs/4", "hpl/2", "hpl/4", "random-access/2", "random-access/4", "ping-pong/2", "ring/2", "ring/4", "shared/lammps/2", "cpu/2", "agent-cpu/2"},
		contestants: []string{bare, unbound, "requested", "spread", profiled, unsampled},
	},
	{
		suite: "agent", title: "How fast ranks start",
		text:        "On many hosts of one machine, without Kubernetes. `mpirun/N` runs `hostname` on N workers; `flat`, with all daemons started by `mpirun` itself, and `tree`, by a tree of 8 branches. ≥: the run was ended after that time. [Each case](../hack/bench/README.md#the-suite-agent).",
		wanted:      []string{"mpirun/32", "mpirun/256", "flat/32", "flat/256", "flat/1024", "tree/32", "tree/256", "tree/1024"},
		contestants: []string{"openssh", "floor"},
		groups: []group{
			{
				"Workers that are late or die",
				"`late-5s`: half of the workers start 5 s late, and the time since then counts. `dying`: a twentieth of the workers is killed while ranks run, and the time until the launcher fails counts; `dying-named` is the share of runs in which it names the first worker that died, and none that lives.",
				[]string{"late-5s/", "late-30s/", "dying/", "dying-named/"},
			},
			{
				"Slow networks",
				"`slow-network` has 50 ms for a round trip, and `lossy-network` loses 1 % of all packets in addition.",
				[]string{"slow-network/", "lossy-network/"},
			},
			{
				"Memory, file descriptors and processes",
				"Those of `launcher` are of all programs of the launcher while ranks run, and those of `worker` are of the worker that has most. `idle` is a worker's server before anything runs, and `rsh` an ssh that waits for its command. Memory is private memory, but for `idle` resident memory.",
				[]string{"memory/launcher", "memory/worker", "memory/idle", "memory/rsh", "descriptors/launcher", "descriptors/worker", "processes/launcher"},
			},
		},
	},
	{
		suite: "scale", title: "What many jobs cost",
		text:        "Jobs of 1 to 1,000 workers, 10 on average, on 1,000 simulated nodes, with a real API server. The operator writes a JobReport and a NetworkPolicy for each job and schedules it as a gang; mpi-operator does none of these. The growth of a figure is the exponent of the number of jobs: 0 if it does not depend on it, 1 if it is proportional.",
		wanted:      []string{"created/1000/p50", "restart/1000", "moved/300", "away/300", "churn/300/p50", "memory/5000-suspended", "list/5000"},
		contestants: []string{"mpi-operator-fast"},
		groups: []group{{
			"Bytes and watch traffic",
			"All bytes on the operator's connections to the API server, with TLS, until all jobs run. The operator sends its writes, and receives the answers to them and what its watches deliver. The relay that counts them cannot tell answers from what watches deliver; the answer to a write repeats what was written, so that most of what is received beyond `sent` is watch traffic. `ours` also watches all nodes and pods, for gangs, and its own JobReports.",
			[]string{"sent/", "received/", "growth/sent", "growth/received"},
		}},
	},
	{
		suite: "report", title: "What JobReports cost",
		text:        "The operator with JobReports, compared with the operator without.",
		contestants: []string{"without-reports"},
	},
	{
		suite: "queue", title: "What waiting jobs cost",
		text:        "Jobs that wait in a queue.",
		contestants: []string{"without-reports"},
	},
	{
		suite: "gang", title: "What gangs cost",
		text:        "The operator with gang scheduling, compared with the operator without.",
		contestants: []string{"podgroup", "embedded"},
	},
}

// Suites whose records are not reports of the benchmark.
const (
	SuitePrograms = "programs"
	SuiteList     = "list"
)

// Suites returns the suites that the page shows, in its order.
func Suites() []string {
	all := []string{SuitePrograms}
	for _, s := range sections {
		all = append(all, s.suite)
	}
	return append(all, SuiteList)
}

// Names of contestants: ours, and those of the suite compute that the page explains.
const (
	ours      = "ours"
	bare      = "bare"
	unbound   = "unbound"
	profiled  = "profiled"
	unsampled = "unsampled"
)

// unboundText describes the contestant unbound. unboundBefore is what it was in older records.
const (
	unboundText   = "`unbound` is `bare` with both: it differs from `ours` only by operator and agent."
	unboundBefore = "`unbound` is `bare` without binding: its ranks did not yield their core in this run."
)

// textFor returns the text of the section for a report.
func (s section) textFor(r report.Report) string {
	if r.Date.Before(unboundYields) {
		return strings.Replace(s.text, unboundText, unboundBefore, 1)
	}
	return s.text
}

// Page returns the page for what was measured.
func Page(records Records) string {
	programs := records.Programs
	var page strings.Builder
	page.WriteString("# Proof\n\n<!-- question: What was measured, what do 1,000 jobs cost, and which programs ran? -->\n\n" +
		"What was measured, where, compared with what, and how to repeat it. This page is generated from the files in `docs/proof`. `make proof` runs\n" +
		"all suites and writes it; [how to run some of them](../hack/bench/README.md#the-page-of-proof). Times depend on the machine: compare only\n" +
		"figures of one table. `(3)` is the median of three runs; a figure without it is of a single run.\n")
	writePrograms(&page, programs)
	for _, s := range sections {
		if r, measured := records.Reports[s.suite]; measured {
			writeSection(&page, s, r)
		} else {
			fmt.Fprintf(&page, "\n## %s\n\n%s\n\n%s", s.title, s.text, notMeasured(s.suite))
		}
	}
	writeLists(&page, records.Lists)
	writePublished(&page, records.Reports["scale"])
	return page.String()
}

// notMeasured is written in place of a suite without a record.
func notMeasured(suite string) string {
	return fmt.Sprintf("**Not measured.** Measure it: `make proof SUITES=%s`.\n", suite)
}

func writePrograms(page *strings.Builder, programs Programs) {
	page.WriteString("\n## Programs that others wrote\n\n" +
		"They run in two pods, with the agent and without root, SSH or changes to the program. A test compares the result with what it must\n" +
		"be: the accuracy of a training, or the figures of one rank.\n\n")
	if len(programs.Runs) == 0 {
		page.WriteString(notMeasured(SuitePrograms))
		return
	}
	if programs.Version != "" {
		fmt.Fprintf(page, "Latest run without a commit of its own in the table: %s, %s. ", programs.Version, programs.Date.Format(time.DateOnly))
	}
	page.WriteString("Repeat: `make e2e SUITE=Programs`.\n\n| program | kind | result | seconds | commit |\n|---|---|---|---:|---|\n")
	for _, run := range programs.Runs {
		at := ""
		if run.Version != "" {
			at = run.Version + ", " + run.Date.Format(time.DateOnly)
		}
		fmt.Fprintf(page, "| %s | %s | %s | %.0f | %s |\n", run.Name, run.Kind, run.Result, run.Seconds, at)
	}
	if missing := programs.missing(); len(missing) > 0 {
		fmt.Fprintf(page, "\nNot measured: %s.\n", strings.Join(missing, ", "))
	}
}

// kubectlGet is the program with which others are compared, in Lists.
const kubectlGet = "kubectl get"

// conditions describes the machine and its load.
func (l Lists) conditions() string {
	if l.Machine.CPUs == 0 {
		return "the machine and its load were not recorded"
	}
	return fmt.Sprintf("%s; load %s when it began", machineText(l.Machine), short(l.Load))
}

// machineText describes a machine.
func machineText(m report.Machine) string {
	return fmt.Sprintf("%d CPUs (%s), Linux %s", m.CPUs, m.Model, m.Kernel)
}

func writeLists(page *strings.Builder, lists Lists) {
	if len(lists.Cases) == 0 {
		page.WriteString("\n## How long lists take\n\n" + notMeasured(SuiteList))
		return
	}
	fmt.Fprintf(page, "\n## How long lists take\n\n"+
		"%d jobs of one namespace, half of them suspended, on a real API server: from the start of the program to its end. `list` is the command\n"+
		"line. `SDK` is a Python process that imports the SDK and prints `list_jobs()`; `SDK: list_jobs()` is\n"+
		"the call alone. `kubectl get` prints the same jobs without their reports.\n"+
		"The lines of `server` are the API server's answers alone.\n\n"+
		"%s; %s; commit %s. Repeat: `make bench SUITE=list`.\n\n| what | seconds | of `kubectl get` |\n|---|---:|---:|\n",
		lists.Jobs, lists.Date.Format(time.DateOnly), lists.conditions(), lists.Version)
	base := lists.Cases[kubectlGet].Median
	for _, name := range slices.Sorted(maps.Keys(lists.Cases)) {
		each, ratio := lists.Cases[name], ""
		if base > 0 {
			ratio = report.Value{Value: each.Median / base}.String()
		}
		fmt.Fprintf(page, "| `%s` | %s (%d) | %s |\n", name, report.Value{Value: each.Median}, len(each.Seconds), ratio)
	}
}

func writeSection(page *strings.Builder, s section, r report.Report) {
	versions := make([]string, 0, len(r.Version))
	for _, name := range slices.Sorted(maps.Keys(r.Version)) {
		versions = append(versions, name+" "+r.Version[name])
	}
	fmt.Fprintf(page, "\n## %s\n\n%s\n\n%s; %s; %s. Repeat: `make bench SUITE=%s`.\n\n",
		s.title, s.textFor(r), r.Date.Format(time.DateOnly), machineText(r.Machine), strings.Join(versions, ", "), s.suite)
	for _, p := range plots {
		if p.suite == s.suite {
			if lines := p.lines(r); len(lines) > 0 {
				fmt.Fprintf(page, "![%s](proof/%s)\n\n", p.alt(lines), p.file)
			}
		}
	}
	inGroup := func(name string) bool {
		return strings.HasPrefix(name, smallJobCase) || slices.ContainsFunc(s.groups, func(g group) bool { return g.has(name) })
	}
	writeTable(page, slices.DeleteFunc(slices.Clone(r.Cases), func(c report.Case) bool { return inGroup(c.Name) }))
	if missing := s.missing(r); len(missing) > 0 {
		fmt.Fprintf(page, "\nNot measured in this run: %s.\n", strings.Join(missing, ", "))
	}
	if missing := s.missingContestants(r); len(missing) > 0 {
		fmt.Fprintf(page, "\nContestants that were not measured in this run: %s.\n", strings.Join(missing, ", "))
	}
	if text := overheads(r); s.suite == "compute" && text != "" {
		page.WriteString("\n" + text + "\n")
	}
	if below := belowPar(r); s.suite == "compute" && below != "" {
		fmt.Fprintf(page, "\nNot at par with `bare`: %s.", below)
		if !r.Date.Before(unboundYields) {
			page.WriteString(" In brackets: compared with `unbound`, which shares what the operator decides about cores.")
		}
		page.WriteString("\n")
	}
	if s.suite == "mpijob" {
		writeSmallJob(page, r)
		writeRequests(page, r)
	}
	for _, g := range s.groups {
		g.write(page, r)
	}
	writeWaterfalls(page, s.suite, r)
	for _, name := range slices.Sorted(maps.Keys(r.Skipped)) {
		fmt.Fprintf(page, "\n`%s` was not measured: %s.\n", name, r.Skipped[name])
	}
}

// write writes the cases of the group, and the kinds of which there are none.
func (g group) write(page *strings.Builder, r report.Report) {
	fmt.Fprintf(page, "\n### %s\n\n%s\n\n", g.title, g.text)
	found := slices.DeleteFunc(slices.Clone(r.Cases), func(c report.Case) bool { return !g.has(c.Name) })
	if len(found) == 0 {
		page.WriteString("**Not measured in this run.**\n")
		return
	}
	writeTable(page, found)
	var missing []string
	for _, start := range g.cases {
		if !slices.ContainsFunc(found, func(c report.Case) bool { return strings.HasPrefix(c.Name, start) }) {
			missing = append(missing, "`"+start+"`")
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(page, "\nNot measured in this run: %s.\n", strings.Join(missing, ", "))
	}
}

// writeTable writes cases with a column for each contestant.
func writeTable(page *strings.Builder, cases []report.Case) {
	if len(cases) == 0 {
		return
	}
	peers := peersOf(cases)
	page.WriteString("| case | unit | ours |")
	for _, peer := range peers {
		page.WriteString(" " + peer + " | ratio |")
	}
	page.WriteString("\n|---|---|---:|" + strings.Repeat("---:|---:|", len(peers)) + "\n")
	for _, c := range cases {
		fmt.Fprintf(page, "| `%s` | %s | %s |", c.Name, c.Unit, cell(c.Details[ours]))
		for _, peer := range peers {
			ratio := ""
			if value, known := c.Ratios[peer]; known {
				ratio = report.Value{Value: value}.String()
			}
			page.WriteString(" " + cell(c.Details[peer]) + " | " + ratio + " |")
		}
		page.WriteString("\n")
	}
}

// unboundYields is the time since which the ranks of the contestant unbound yield their core, as in our jobs.
var unboundYields = time.Date(2026, 11, 29, 11, 14, 0, 0, time.UTC)

// belowPar lists the cases in which ours is slower than the same program without the operator by more than measurements differ.
func belowPar(r report.Report) string {
	const par = 0.97
	var below []string
	for _, c := range r.Cases {
		if ratio, known := c.Ratios[bare]; known && ratio < par {
			text := fmt.Sprintf("`%s` %s", c.Name, report.Value{Value: ratio})
			if ratio, known := c.Ratios[unbound]; known && !r.Date.Before(unboundYields) {
				text += fmt.Sprintf(" (`unbound` %s)", report.Value{Value: ratio})
			}
			below = append(below, text)
		}
	}
	return strings.Join(below, ", ")
}

// overheads describes what measuring costs: the share of the CPU time that the agents take with their measurements over time and without,
// and by how much programs with a communication profile are slower than those without in the same turn.
func overheads(r report.Report) string {
	percent := func(v float64) string { return fmt.Sprintf("%.2g %%", v) }
	var texts, slower []string
	for _, c := range r.Cases {
		with, without := c.Details[ours], c.Details[unsampled]
		if strings.HasPrefix(c.Name, "agent-cpu/") && with.Runs > 0 && without.Runs > 0 {
			texts = append(texts, fmt.Sprintf(
				"`%s`: the agents took %s of the CPU time (%s to %s), and without their measurements %s (%s to %s). At most 0.5 %% is the goal for measurements.", c.Name,
				percent(with.Median), percent(with.Min), percent(with.Max), percent(without.Median), percent(without.Min), percent(without.Max),
			))
		}
		if ratio, known := c.Paired[profiled]; known && c.Unit == "s" {
			slower = append(slower, fmt.Sprintf("`%s` %.3f (%.3f to %.3f)", c.Name, ratio.Median, ratio.Min, ratio.Max))
		}
	}
	if len(slower) > 0 {
		texts = append(texts, "Time with a communication profile by that without, of runs in the same turn: "+strings.Join(slower, ", ")+". At most 1.03 is the goal.")
	}
	return strings.Join(texts, " ")
}

// cell returns a median with the number of runs; empty if there were none.
func cell(s report.Summary) string {
	if s.Runs == 0 {
		return ""
	}
	text := report.Value{Value: s.Median, Extrapolated: s.Extrapolated, AtLeast: s.AtLeast}.String()
	if s.Runs > 1 {
		text += fmt.Sprintf(" (%d)", s.Runs)
	}
	return text
}

// peersOf returns the other contestants in some cases.
func peersOf(cases []report.Case) []string {
	found := map[string]bool{}
	for _, c := range cases {
		for peer := range c.Peers {
			found[peer] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
