package proof_test

import (
	"encoding/json"
	"encoding/xml"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/hack/bench/proof"
	"opendatahub.io/mpijob/hack/bench/report"
)

var update = flag.Bool("update", false, "write docs/proof.md anew")

const folder = "../../../docs/proof"

// recorded reads the files in docs/proof.
func recorded(t *testing.T) proof.Records {
	t.Helper()
	records := proof.Records{Reports: map[string]report.Report{}}
	files, err := filepath.Glob(folder + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no records in %s: %v", folder, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		switch filepath.Base(file) {
		case "programs.json":
			err = json.Unmarshal(text, &records.Programs)
		case "list.json":
			err = json.Unmarshal(text, &records.Lists)
		default:
			var r report.Report
			err = json.Unmarshal(text, &r)
			records.Reports[r.Suite] = r
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return records
}

// TestPageIsCurrent: docs/proof.md and its pictures are what the records say; go test ./proof -update writes them.
func TestPageIsCurrent(t *testing.T) {
	records := recorded(t)
	files := map[string]string{folder + ".md": proof.Page(records)}
	for name, picture := range proof.Plots(records.Reports) {
		files[filepath.Join(folder, name)] = picture
	}
	old, err := filepath.Glob(folder + "/*.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range old {
		if _, is := files[file]; is {
			continue
		}
		if !*update {
			t.Errorf("%s is in no record: run go test ./proof -update in hack/bench", file)
		} else if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	// These were recorded before the test refused what cannot be repeated.
	known := []string{"99319e73-dirty", "f0ae039-dirty"}
	for suite, r := range records.Reports {
		for name, version := range r.Version {
			if strings.HasSuffix(version, "-dirty") && !slices.Contains(known, version) {
				t.Errorf("%s: %s is %s, which nobody can repeat: record a commit", suite, name, version)
			}
		}
	}
	for file, want := range files {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is out of date (%v): run go test ./proof -update in hack/bench", file, err)
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
	compute := report.Report{Suite: "compute", Cases: []report.Case{
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
	if strings.Contains(page, "How long lists") || strings.Contains(page, "How fast") || strings.Contains(page, "Programs that others") {
		t.Errorf("the page shows what was not recorded: %s", page)
	}
}
