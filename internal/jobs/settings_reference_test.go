package jobs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/mpitest"
)

const settingsIntro = `# Settings of a job

<!-- question: Which settings has a job, and how does each interface name them? -->

What can be set of a new job: on the command line, in Python, in the dashboard's wizard, and where the job has it. All of them create the
same job. What is not here can be set in YAML, with ` + "`create -f`, `MPIJob.from_yaml` or the wizard's step YAML" + `.

` + "`clone`" + ` and ` + "`update`" + ` change a copy by the same flags: what can be listed is added to the original's, ` + "`--command`" + ` is the launcher's
whole command, and ` + "`--grace-period`" + ` of ` + "`update`" + ` is that of the pods that it ends. The dashboard's clone is the wizard. In Python, ` + "`clone`" + `
takes the same arguments as ` + "`MPIJob`" + `, ` + "`cpu`, `memory` and `gpu`" + `, and the path of any field.

With a runtime the job is a TrainJob, otherwise an MPIJob. *All pods*, *workers* and *launcher* are the pod templates of an MPIJob. Of a
TrainJob they are ` + "`spec.runtimePatches`" + `, which change the pods of the runtime; with Kubeflow Trainer v2.1, ` + "`spec.podTemplateOverrides`" + `. Its
containers and volumes are those of the pods with the container ` + "`node`" + `; all else applies to initializers, too.

An MPI runtime of the operator has the annotation ` + "`mpi.opendatahub.io/mpi-implementation`" + `, as those have that ` + "`runtimes create`" + ` creates. MPI
runtimes of Kubeflow Trainer do not have it. A setting that a runtime does not apply is refused.

This page is generated from the library's table: ` + "`go test ./internal/jobs -run TestSettingsReference -update`" + `. Tests compare the table with the
flags, arguments and fields, and with the jobs that are created.
`

// TestSettingsReference: docs/settings.md and the file by which the SDK's tests know the table are current; -update writes them
// anew.
func TestSettingsReference(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(settingsIntro)
	code := func(text string) string {
		if text == "" {
			return "–"
		}
		return "`" + text + "`"
	}
	for _, group := range Settings() {
		fmt.Fprintf(&b, "\n## %s\n\n| setting | command line | Python | wizard |\n|---|---|---|---|\n", group.Title)
		for _, s := range group.Settings {
			sentences := []string{s.Text}
			for _, detail := range []struct{ text, form string }{{s.Default, "Default: %s"}, {s.Limits, "Limits: %s"}, {s.Absent, "%s"}, {s.Differs, "%s"}} {
				if detail.text != "" {
					sentences = append(sentences, fmt.Sprintf(detail.form, detail.text))
				}
			}
			flag := code("--" + s.Flag)
			if s.Flag == strings.ToUpper(s.Flag) {
				flag = code(s.Flag)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.ReplaceAll(strings.Join(sentences, ". "), "|", `\|`), flag, code(s.Python), map[bool]string{true: "yes", false: "–"}[s.Form != ""])
		}
		b.WriteString("\n| setting | MPIJob | TrainJob |\n|---|---|---|\n")
		for _, s := range group.Settings {
			name := s.Flag
			if name == "" {
				name = s.Name
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, s.MPIJob.text(), s.TrainJob.text())
		}
	}
	compareFile(t, filepath.Join("..", "..", "docs", "settings.md"), b.String())
	type row struct {
		Name, Python     string
		MPIJob, TrainJob Expression
	}
	var table []row
	for _, s := range allSettings() {
		table = append(table, row{s.Name, s.Python, s.MPIJob, s.TrainJob})
	}
	rows, err := json.MarshalIndent(table, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	compareFile(t, filepath.Join("..", "..", "sdk", "python", "tests", "unit", "settings.json"), string(rows)+"\n")
}

// compareFile compares a generated file, or writes it with -update.
func compareFile(t *testing.T, file, got string) {
	t.Helper()
	if mpitest.Updates() {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // it is read by all
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not current (-want +got); write it anew with -update:\n%s", file, diff)
	}
}

// text describes an expression in the reference.
func (e Expression) text() string {
	text := "`" + e.Field + "`"
	if e.Field == "" {
		text = "– It " + e.Reason + "."
	}
	if e.In != inJob {
		text = string(e.In) + ": " + text
	}
	if e.Only != "" {
		text += "; " + e.Only
	}
	return text
}
