package proof_test

import (
	"encoding/xml"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/hack/bench/proof"
	"opendatahub.io/mpijob/hack/bench/report"
)

var update = flag.Bool("update", false, "write docs/proof.md anew")

const folder = "../../../docs/proof"

// known are the records on the page that nobody can measure again, because they are older than the test that refuses them. Remove those
// that were measured again, and add none.
var known = []string{
	"programs.json: c3133e5 is not in the history",
	"scale.json: f0ae039-dirty has changes that were not committed",
}

// TestPageIsCurrent: docs/proof.md and its pictures are what the records say; go test ./proof -update writes them.
func TestPageIsCurrent(t *testing.T) {
	records, err := proof.Load(folder)
	if err != nil || len(records.Reports) == 0 {
		t.Fatalf("no records in %s: %v", folder, err)
	}
	if *update {
		if err := proof.Write(folder, records); err != nil {
			t.Fatal(err)
		}
	}
	files := proof.Files(folder, records)
	pictures, err := filepath.Glob(folder + "/*.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range pictures {
		if _, is := files[file]; !is {
			t.Errorf("%s is in no record: run go test ./proof -update in hack/bench", file)
		}
	}
	for _, file := range jsonFiles(t) {
		if suite := strings.TrimSuffix(filepath.Base(file), ".json"); !slices.Contains(proof.Suites(), suite) {
			t.Errorf("%s is of no suite of the page", file)
		}
	}
	for file, want := range files {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is out of date (%v): run go test ./proof -update in hack/bench", file, err)
		}
	}
}

// jsonFiles returns the files of records on the page.
func jsonFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no records in %s: %v", folder, err)
	}
	return files
}

// TestRecordsCanBeRepeated: each record on the page is of a commit of this repository.
func TestRecordsCanBeRepeated(t *testing.T) {
	records, err := proof.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", folder}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	// A shallow clone, as in CI, or a release without git, has no history.
	shallow, err := git("rev-parse", "--is-shallow-repository")
	whole := err == nil && shallow == "false"
	if !whole {
		t.Log("this checkout has no history: whether it has the commits is not checked")
	}
	var found []string
	for _, problem := range proof.Unrepeatable(records, func(commit string) bool {
		if !whole {
			return true
		}
		_, err := git("merge-base", "--is-ancestor", commit, "HEAD")
		return err == nil
	}) {
		found = append(found, problem.String())
		if !slices.Contains(known, problem.String()) {
			t.Errorf("%s: measure it again at a commit, by make proof", problem)
		}
	}
	for _, problem := range known {
		if whole && !slices.Contains(found, problem) {
			t.Errorf("%q is no longer so: remove it from the list", problem)
		}
	}
}

// TestUnrepeatable: a record is refused whose version is no commit, has changes, or is unknown to the history.
func TestUnrepeatable(t *testing.T) {
	t.Parallel()
	of := func(version string) proof.Records {
		return proof.Records{Reports: map[string]report.Report{"scale": {Suite: "scale", Version: map[string]string{"ours": version, "kubernetes": "v1.37.1"}}}}
	}
	tests := map[string]struct {
		records proof.Records
		want    string
	}{
		"a commit":                     {of("abc1234"), ""},
		"a tag":                        {of("v0.1.0"), ""},
		"a commit after a tag":         {of("v0.1.0-12-gabc1234"), ""},
		"changes":                      {of("abc1234-dirty"), "scale.json: abc1234-dirty has changes that were not committed"},
		"changes after a tag":          {of("v0.1.0-12-gabc1234-dirty"), "scale.json: v0.1.0-12-gabc1234-dirty has changes that were not committed"},
		"another history":              {of("def5678"), "scale.json: def5678 is not in the history"},
		"another history, after a tag": {of("v0.1.0-12-gdef5678"), "scale.json: v0.1.0-12-gdef5678 is not in the history"},
		"no commit":                    {of("dev"), "scale.json: dev names no commit"},
		"no version":                   {of(""), "scale.json:  names no commit"},
		"an earlier commit": {
			proof.Records{Reports: map[string]report.Report{"start": {Suite: "start", Version: map[string]string{"ours": "abc1234", "before": "def5678"}}}},
			"start.json: def5678 is not in the history",
		},
		"lists": {
			proof.Records{Lists: proof.Lists{Version: "abc1234-dirty", Cases: map[string]proof.List{"list": {}}}},
			"list.json: abc1234-dirty has changes that were not committed",
		},
		"one of the programs": {
			proof.Records{Programs: proof.Programs{Runs: []proof.Program{{Name: "a", Version: "abc1234"}, {Name: "b", Version: "def5678"}}}},
			"programs.json: def5678 is not in the history",
		},
		"a program without a commit": {proof.Records{Programs: proof.Programs{Runs: []proof.Program{{Name: "a"}}}}, "programs.json:  names no commit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, problem := range proof.Unrepeatable(test.records, func(commit string) bool { return commit == "abc1234" || commit == "v0.1.0" }) {
				got = append(got, problem.String())
			}
			if strings.Join(got, "\n") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestSmallJob: the page shows how long each step took since the one before, in milliseconds, and says so if they were not measured.
func TestSmallJob(t *testing.T) {
	t.Parallel()
	values := func(ours, peer float64) map[string][]report.Value {
		return map[string][]report.Value{"ours": {{Value: ours}}, "mpi-operator": {{Value: peer}}}
	}
	var cases []report.Case
	for i, step := range []string{"1-created", "2-first-write", "3-base-written", "4-pods-sent", "5-pods-written", "6-pods-seen"} {
		cases = append(cases, report.NewCase("steps/1/"+step, "s", "ours", values(0.002*float64(i+1), 0.05*float64(i+1))))
	}
	small := values(0.018, 0.3)
	small["floor"] = []report.Value{{Value: 0.005}}
	cases = append(cases, report.NewCase("create/1", "s", "ours", small))
	of := func(cases []report.Case) string {
		return proof.Page(proof.Records{Reports: map[string]report.Report{"mpijob": {Suite: "mpijob", Cases: cases}}})
	}
	page := of(cases)
	for _, want := range []string{"| The MPIJob is created | 2 | 50 |", "| Launcher and worker are written | 2 | 50 |", "| Together | 12 | 300 |", "takes 5 ms (`create/1`)", "Not measured in this run: `create/16`, "} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q: %s", want, page)
		}
	}
	if strings.Contains(page, "| `steps/1/") {
		t.Error("the table of cases has the steps, too")
	}
	if page := of(cases[2:]); !strings.Contains(page, "### Where the time of a small job goes\n\n**Not measured in this run.**") {
		t.Errorf("the page does not say that a step is missing: %s", page)
	}
}

// TestRequests: each request of a job is in the table with what it is for, also those that are in the records.
func TestRequests(t *testing.T) {
	t.Parallel()
	c := report.NewCase("requests/64", "requests", "ours", map[string][]report.Value{"ours": {{Value: 65}}, "mpi-operator": {{Value: 69}}})
	c.Requests = map[string]map[string]int{"ours": {"create pods": 64, "create networkpolicies": 1}, "mpi-operator": {"create pods": 64, "update mpijobs/status": 5}}
	page := proof.Page(proof.Records{Reports: map[string]report.Report{"mpijob": {Suite: "mpijob", Cases: []report.Case{c}}}})
	for _, want := range []string{
		"| request | ours | mpi-operator | what it is for |", "| `create pods` | 64 | 64 | The workers. |",
		"| `create networkpolicies` | 1 | 0 | Isolation", "| `update mpijobs/status` | 0 | 5 | The status",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q: %s", want, page)
		}
	}
	records, err := proof.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range records.Reports["mpijob"].Cases {
		if c.Name != "requests/64" {
			continue
		}
		for what := range c.Requests["ours"] {
			if _, table, _ := strings.Cut(proof.Page(records), "| `"+strings.TrimSpace(what)+"` |"); strings.Contains(strings.SplitN(table, "\n", 2)[0], "|  |") {
				t.Errorf("the page does not say what %q is for", what)
			}
		}
	}
}

// TestGroups: cases of a group have a table of their own, and what was not measured is said.
func TestGroups(t *testing.T) {
	t.Parallel()
	values := map[string][]report.Value{"ours": {{Value: 1}}, "openssh": {{Value: 2}}}
	page := proof.Page(proof.Records{Reports: map[string]report.Report{"agent": {Suite: "agent", Cases: []report.Case{
		report.NewCase("mpirun/256", "s", "ours", values), report.NewCase("memory/launcher-32", "MiB", "ours", values), report.NewCase("dying/16", "s", "openssh", values),
	}}}})
	_, agent, _ := strings.Cut(page, "## How fast ranks start\n")
	main, memory, found := strings.Cut(agent, "### Memory, file descriptors and processes\n")
	if !found || strings.Contains(main, "memory/launcher-32") || !strings.Contains(memory, "| `memory/launcher-32` | MiB | 1 | 2 | 2 |") {
		t.Errorf("the memory has no table of its own: %s", agent)
	}
	for _, want := range []string{
		"Not measured in this run: `mpirun/32`, `flat/32`, ", "### Slow networks\n", "**Not measured in this run.**",
		"Not measured in this run: `memory/worker`, `memory/idle`, `memory/rsh`, `descriptors/launcher`, ", "Not measured in this run: `late-5s/`, `late-30s/`, `dying-named/`.",
	} {
		if !strings.Contains(agent, want) {
			t.Errorf("the page does not contain %q: %s", want, agent)
		}
	}
}

// TestPlots: a picture is well-formed, says in words what it shows, draws each point of each contestant within its axes, and is
// drawn only for what was measured at two sizes or more.
func TestPlots(t *testing.T) {
	t.Parallel()
	values := func(ours, peer float64) map[string][]report.Value {
		return map[string][]report.Value{"ours": {{Value: ours}}, "mpi-operator": {{Value: peer}}}
	}
	r := report.Report{Suite: "scale", Cases: []report.Case{
		report.NewCase("cpu/10", "s", "ours", values(1, 2)), report.NewCase("cpu/100", "s", "ours", values(10, 40)), report.NewCase("cpu/1000", "s", "ours", values(100, 800)),
		report.NewCase("requests/10", "requests/job", "ours", values(30, 60)), report.NewCase("requests/1000", "requests/job", "ours", values(30, 60)),
		report.NewCase("memory/10", "MiB", "ours", values(3, 6)),
	}}
	reports := map[string]report.Report{"scale": r}
	files := proof.Plots(reports)
	if len(files) != 2 {
		t.Fatalf("%d pictures were drawn, not those of cpu and requests: %v", len(files), files)
	}
	page := proof.Page(proof.Records{Reports: reports})
	for name, picture := range files {
		var drawn struct {
			Title string `xml:"title"`
			Marks []struct {
				X float64 `xml:"cx,attr"`
				Y float64 `xml:"cy,attr"`
			} `xml:"circle"`
		}
		if err := xml.Unmarshal([]byte(picture), &drawn); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want := "![" + drawn.Title + "](proof/" + name + ")"; !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q: %s", want, page)
		}
		for _, at := range drawn.Marks {
			if at.X < 70 || at.X > 700 || at.Y > 345 || at.Y < 40 {
				t.Errorf("%s: a point is at %v, outside of the axes", name, at)
			}
		}
	}
	for _, want := range []string{"(s), by the number of jobs: ours 1 at 10, 10 at 100, 100 at 1,000; mpi-operator 2 at 10, 40 at 100, 800 at 1,000", "ours (exponent 1)", "mpi-operator (exponent 1.3)", "prefers-color-scheme: dark"} {
		if !strings.Contains(files["scale-cpu.svg"], want) {
			t.Errorf("the picture of CPU times does not contain %q: %s", want, files["scale-cpu.svg"])
		}
	}
	// A figure for each job is drawn for all jobs.
	if want := "ours 300 at 10, 30,000 at 1,000"; !strings.Contains(files["scale-requests.svg"], want) {
		t.Errorf("the picture of requests does not contain %q: %s", want, files["scale-requests.svg"])
	}
}

// TestWaterfalls: a picture has a bar for each part of our run within its axis, and says all figures in words. The table has those of
// others, too.
func TestWaterfalls(t *testing.T) {
	t.Parallel()
	values := map[string][]report.Value{"ours": {{Value: 1.5}}, "mpi-operator": {{Value: 2}}}
	shown := report.NewCase("first-line/4", "s", "ours", values)
	shown.Steps = map[string][]report.Step{
		"ours":         {{Name: "pods created", Start: 0, Seconds: 0.125}, {Name: "scheduler & co", Start: 0.1, Seconds: 0.4}, {Name: "first line", Start: 0.5, Seconds: 1}},
		"mpi-operator": {{Name: "pods created", Start: 0, Seconds: 0.25}, {Name: "ssh", Start: 0.25, Seconds: 1.75}},
	}
	others := report.NewCase("first-line/1", "s", "ours", values)
	others.Steps = map[string][]report.Step{"mpi-operator": {{Name: "ssh", Seconds: 2}}}
	reports := map[string]report.Report{"start": {Suite: "start", Cases: []report.Case{others, shown}}}
	files := proof.Plots(reports)
	if len(files) != 1 {
		t.Fatalf("%d pictures were drawn: %v", len(files), files)
	}
	var drawn struct {
		Title string `xml:"title"`
		Bars  []struct {
			X     float64 `xml:"x,attr"`
			Width float64 `xml:"width,attr"`
		} `xml:"rect"`
		Texts []string `xml:"text"`
	}
	if err := xml.Unmarshal([]byte(files["start-4.svg"]), &drawn); err != nil {
		t.Fatal(err)
	}
	// The first one is the background.
	if len(drawn.Bars) != 4 || drawn.Bars[1].X != 300 || drawn.Bars[3].X+drawn.Bars[3].Width != 650 {
		t.Errorf("the bars are %v", drawn.Bars)
	}
	if !slices.Contains(drawn.Texts, "scheduler & co") {
		t.Errorf("the texts are %q", drawn.Texts)
	}
	const alt = "An MPIJob of 4 workers: its first line after 1.5 s. pods created 0.125 s, from 0 to 0.125; scheduler & co 0.4 s, from 0.1 to 0.5; first line 1 s, from 0.5 to 1.5."
	if drawn.Title != alt {
		t.Errorf("the picture is described as %q", drawn.Title)
	}
	page := proof.Page(proof.Records{Reports: reports})
	for _, want := range []string{
		"### Where the time goes", "![" + alt + "](proof/start-4.svg)", "| `first-line/4` | ours | from | mpi-operator | from |", "| pods created | 0.125 | 0 | 0.25 | 0 |",
		"| ssh |  |  | 1.75 | 0.25 |", "| first line | 1 | 0.5 |  |  |", "| first line after | 1.5 |  | 2 |  |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q: %s", want, page)
		}
	}
	if strings.Contains(page, "1 worker") {
		t.Errorf("the page shows a case without our parts: %s", page)
	}
}

// TestPage: the page shows medians and ratios, and no suite that was not recorded.
func TestPage(t *testing.T) {
	t.Parallel()
	values := func(ours, peer float64) map[string][]report.Value {
		return map[string][]report.Value{"ours": {{Value: ours}}, "mpi-operator": {{Value: peer}}}
	}
	r := report.Report{Suite: "scale", Date: time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC), Version: map[string]string{"ours": "v1"}, Cases: []report.Case{
		report.NewCase("cpu/10", "s", "ours", values(1, 2)), report.NewCase("cpu/100", "s", "ours", values(10, 20)), report.NewCase("requests/10", "requests", "ours", values(3, 6)),
	}}
	page := proof.Page(proof.Records{Reports: map[string]report.Report{"scale": r}})
	for _, want := range []string{"| `cpu/100` | s | 10 | 20 | 2 |", "## What many jobs cost", "ours v1"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q: %s", want, page)
		}
	}
	lists := proof.Lists{Jobs: 5000, Cases: map[string]proof.List{"list": {Seconds: []float64{2, 3, 4}, Median: 3}, "kubectl get": {Seconds: []float64{2, 2, 2}, Median: 2}}}
	if page := proof.Page(proof.Records{Lists: lists}); !strings.Contains(page, "\n5000 jobs") || !strings.Contains(page, "| `list` | 3 (3) | 1.5 |") {
		t.Errorf("the page does not contain the times of lists: %s", page)
	}
	programs := proof.Programs{Runs: []proof.Program{{Name: "LAMMPS", Kind: "MPIJob", Result: "12 figures", Seconds: 4, Version: "c1", Date: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)}}}
	if page := proof.Page(proof.Records{Programs: programs}); !strings.Contains(page, "| LAMMPS | MPIJob | 12 figures | 4 | c1, 2026-11-27 |") || strings.Contains(page, "Latest run") {
		t.Errorf("the page does not contain the commit of the run: %s", page)
	}
	compute := report.Report{Suite: "compute", Date: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), Cases: []report.Case{
		report.NewCase("hpl/2", "s", "ours", map[string][]report.Value{"ours": {{Value: 1}}, "bare": {{Value: 0.98}}, "unbound": {{Value: 0.5}}}),
		report.NewCase("ring/2", "s", "ours", map[string][]report.Value{"ours": {{Value: 1}}, "bare": {{Value: 0.9}}, "unbound": {{Value: 1.1}}}),
		report.NewCase("ring/4", "s", "ours", map[string][]report.Value{"ours": {{Value: 1}}, "bare": {{Value: 0.8}}}),
	}}
	if page := proof.Page(proof.Records{Reports: map[string]report.Report{"compute": compute}}); !strings.Contains(page, "\nNot at par with `bare`: `ring/2` 0.9 (`unbound` 1.1), `ring/4` 0.8. ") {
		t.Errorf("the page does not say what is not at par: %s", page)
	}
	values = func(ours, peer float64) map[string][]report.Value {
		return map[string][]report.Value{"ours": {{Value: ours}, {Value: 2 * ours}}, "unsampled": {{Value: peer}, {Value: peer}}, "profiled": {{Value: 2 * ours}, {Value: 6 * ours}}}
	}
	compute.Cases = []report.Case{report.NewCase("lammps/2", "s", "ours", values(8, 8)), report.NewCase("agent-cpu/2", "%", "ours", values(0.2, 0.1))}
	compute.Cases[0].Paired = report.Pair("ours", values(8, 8))
	for _, want := range []string{
		"`agent-cpu/2`: the agents took 0.3 % of the CPU time (0.2 % to 0.4 %), and without their measurements 0.1 % (0.1 % to 0.1 %).", ": `lammps/2` 2.500 (2.000 to 3.000). At most 1.03",
	} {
		if page := proof.Page(proof.Records{Reports: map[string]report.Report{"compute": compute}}); !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q: %s", want, page)
		}
	}
	for _, want := range []string{
		"## Programs that others wrote\n", "**Not measured.** Measure it: `make proof SUITES=programs`.", "SUITES=list`", "SUITES=start`", "SUITES=mpijob`",
		"## Figures that others published\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q: %s", want, page)
		}
	}
	if strings.Contains(page, "SUITES=scale`") || strings.Contains(page, "Here, all of") {
		t.Errorf("the page has what is not in the record: %s", page)
	}
	r.Cases = append(r.Cases, report.NewCase("running/1000", "s", "ours", map[string][]report.Value{"ours": {{Value: 200}}}))
	page = proof.Page(proof.Records{Reports: map[string]report.Report{"scale": r}})
	if want := "all of 1,000 jobs with 10,000 workers together run after 200 s, which is 50 pods a second"; !strings.Contains(page, want) {
		t.Errorf("the page does not contain %q: %s", want, page)
	}
}

// TestMissing: the page lists the contestants and the runs of programs that a record lacks, and says nothing of a contestant that was measured
// otherwise.
func TestMissing(t *testing.T) {
	t.Parallel()
	compute := func(day int) proof.Records {
		values := map[string][]report.Value{"ours": {{Value: 1}}, "bare": {{Value: 0.9}}, "unbound": {{Value: 1.1}}}
		return proof.Records{Reports: map[string]report.Report{"compute": {
			Suite: "compute", Date: time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC), Cases: []report.Case{report.NewCase("ring/2", "s", "ours", values)},
		}}}
	}
	lists := func(l proof.Lists) proof.Records {
		l.Version, l.Cases = "abc1234", map[string]proof.List{"list": {}}
		return proof.Records{Lists: l}
	}
	const contestants, yields = "Contestants that were not measured in this run: `requested`, `spread`, `profiled`, `unsampled`.", "it differs from `ours` only by operator and agent"
	for name, test := range map[string]struct {
		records    proof.Records
		want, none []string
	}{
		"unbound yields":        {compute(30), []string{contestants, yields, "`ring/2` 0.9 (`unbound` 1.1)", "`cpu/2`"}, []string{"did not yield"}},
		"unbound did not yield": {compute(28), []string{contestants, "its ranks did not yield", "`ring/2` 0.9.\n"}, []string{yields, "shares what the operator decides"}},
		"programs": {
			proof.Records{Programs: proof.Programs{Runs: []proof.Program{{Name: "LAMMPS", Kind: "TrainJob"}, {Name: "GROMACS", Kind: "MPIJob"}, {Name: "GROMACS", Kind: "TrainJob"}}}},
			[]string{"\nNot measured: `DeepSpeed", "`LAMMPS` (MPIJob), ", "`mpi4py` (MPIJob, TrainJob), "},
			[]string{"Each runs", "`GROMACS`"},
		},
		"lists":                    {lists(proof.Lists{Machine: report.Machine{CPUs: 2, Model: "A", Kernel: "6"}, Load: 10}), []string{"; 2 CPUs (A), Linux 6; load 10 when it began; commit abc1234"}, nil},
		"lists of unknown machine": {lists(proof.Lists{}), []string{"; the machine and its load were not recorded; commit abc1234"}, []string{"0 CPUs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := proof.Page(test.records)
			for _, want := range test.want {
				if !strings.Contains(page, want) {
					t.Errorf("the page does not contain %q: %s", want, page)
				}
			}
			for _, none := range test.none {
				if strings.Contains(page, none) {
					t.Errorf("the page contains %q: %s", none, page)
				}
			}
		})
	}
}

// TestWantedPrograms: the list of programs has all that the tests record.
func TestWantedPrograms(t *testing.T) {
	t.Parallel()
	records, err := proof.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range records.Programs.Runs {
		if !slices.Contains(proof.WantedPrograms(), run.Name) {
			t.Errorf("%q has a record, and is not wanted", run.Name)
		}
	}
	recorded := regexp.MustCompile(`(?:asBothKinds|recordRun)\(t, "([^"]+)"`)
	named := 0
	for _, file := range []string{"programs_test.go", "small_programs_test.go"} {
		text, err := os.ReadFile(filepath.Join(folder, "../../test/e2e", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range recorded.FindAllStringSubmatch(string(text), -1) {
			named++
			// Of some, the rest of the name is how they are started.
			if !slices.ContainsFunc(proof.WantedPrograms(), func(name string) bool { return strings.HasPrefix(name, found[1]) }) {
				t.Errorf("%s records %q, which is not wanted", file, found[1])
			}
		}
	}
	if named < 5 {
		t.Errorf("%d names of programs were found in the tests", named)
	}
}

// TestCopy: programs that did not run this time keep their record, with its commit.
func TestCopy(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	for file, text := range map[string]string{
		from + "/programs.json": `{"runs":[{"name":"b","kind":"MPIJob","result":"new","version":"abc1234"}]}`,
		to + "/programs.json":   `{"version":"def5678","runs":[{"name":"a","kind":"MPIJob","result":"kept"},{"name":"b","kind":"MPIJob","result":"old"},{"name":"c","kind":"MPIJob","version":"abc0000"}]}`,
		from + "/list.json":     `{"version":"abc1234","jobs":5,"cases":{"list":{}}}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, suite := range []string{proof.SuitePrograms, proof.SuiteList} {
		if err := proof.Copy(from, to, suite); err != nil {
			t.Fatal(err)
		}
	}
	if err := proof.Copy(from, to, "scale"); err == nil {
		t.Error("a record was copied that does not exist")
	}
	records, err := proof.Load(to)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, run := range records.Programs.Runs {
		got = append(got, run.Name+" "+run.Result+" "+run.Version)
	}
	if want := []string{"a kept def5678", "b new abc1234", "c  abc0000"}; !slices.Equal(got, want) || records.Programs.Version != "" {
		t.Errorf("the programs are %q of %q, want %q", got, records.Programs.Version, want)
	}
	if got := records.Measured(proof.SuiteList) + records.Measured(proof.SuitePrograms); got != "abc1234" {
		t.Errorf("the lists and the programs are of %q, want those of abc1234 and different ones", got)
	}
}
