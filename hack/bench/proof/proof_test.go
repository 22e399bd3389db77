package proof_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/hack/bench/proof"
	"opendatahub.io/mpijob/hack/bench/report"
)

var update = flag.Bool("update", false, "write docs/proof.md anew")

const folder = "../../../docs/proof"

// recorded reads the files in docs/proof.
func recorded(t *testing.T) (map[string]report.Report, proof.Programs) {
	t.Helper()
	reports, programs := map[string]report.Report{}, proof.Programs{}
	files, err := filepath.Glob(folder + "/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no records in %s: %v", folder, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == "programs.json" {
			err = json.Unmarshal(text, &programs)
		} else {
			var r report.Report
			err = json.Unmarshal(text, &r)
			reports[r.Suite] = r
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return reports, programs
}

// TestPageIsCurrent: docs/proof.md is what the records say; go test ./proof -update writes it.
func TestPageIsCurrent(t *testing.T) {
	reports, programs := recorded(t)
	const file = "../../../docs/proof.md"
	want := proof.Page(reports, programs)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s is out of date (%v): run go test ./proof -update in hack/bench", file, err)
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
	page := proof.Page(map[string]report.Report{"scale": r}, proof.Programs{})
	for _, want := range []string{"| `cpu/100` | s | 10 | 20 | 2 |", "## What many jobs cost", "ours v1"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q: %s", want, page)
		}
	}
	if strings.Contains(page, "How fast") || strings.Contains(page, "Programs that others") {
		t.Errorf("the page shows what was not recorded: %s", page)
	}
}
