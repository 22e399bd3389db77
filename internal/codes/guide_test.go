package codes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpitest"
)

// phaseTitles are the headings of the guide, in the order of the phases.
var phaseTitles = []struct {
	phase v1alpha1.Phase
	title string
}{
	{v1alpha1.PhasePending, "Before pods are created"},
	{v1alpha1.PhaseQueued, "In a queue"},
	{v1alpha1.PhaseGangScheduling, "While all pods are scheduled together"},
	{v1alpha1.PhaseInitializing, "While pods start and MPI connects"},
	{v1alpha1.PhaseRunning, "While the program runs"},
	{v1alpha1.PhaseFailed, "When the job has failed"},
	{v1alpha1.PhaseSucceeded, "When the job has succeeded"},
}

const guideHead = `# Solve a problem of a job

<!-- question: My job does not start, fails or hangs: why? -->

<!-- not run: the commands name jobs, pods and programs of the reader; TestFailures checks the reports of jobs that fail -->

The JobReport of a job names its problems by codes, such as ` + "`OutOfMemory`" + `. This page explains each code and lists what
to do, the most likely first. The dashboard shows the same under Troubleshooting.

To see the problems of a job, with the names and figures of this job:

` + "```sh" + `
kubectl odh mpijob explain JOB -n NAMESPACE     # the cause, its evidence, and remedies
kubectl odh mpijob events JOB -n NAMESPACE      # Kubernetes' events of the job and its pods
kubectl odh mpijob logs JOB -n NAMESPACE        # the output of all ranks
` + "```" + `

For saved files, no cluster and no operator is necessary
([cli.md](cli.md#diagnose-saved-files)):

` + "```" + `sh
kubectl odh mpijob explain -f objects.yaml -f POD.log   # or a folder of oc adm inspect or must-gather
` + "```" + `

A step names the field to change, or the line to add. Fields are those of an MPIJob. A TrainJob has them in
` + "`spec.trainer`" + ` or in its runtime; the remedies of its report name them. This page is generated:
` + "`go test ./internal/codes -run TestGuide -update`" + `.
`

// TestGuide: docs/troubleshooting.md has a section for each code; -update writes it anew.
func TestGuide(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(guideHead)
	for _, group := range phaseTitles {
		fmt.Fprintf(&b, "\n## %s\n", group.title)
		for _, topic := range codes.Guide() {
			if topic.Phase != group.phase {
				continue
			}
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", topic.Code, topic.Meaning)
			for i, step := range topic.Steps {
				fmt.Fprintf(&b, "%d. %s", i+1, step.Text)
				if step.Setting != "" {
					fmt.Fprintf(&b, " `%s`", step.Setting)
				}
				b.WriteString("\n")
				if step.Command != "" {
					fmt.Fprintf(&b, "\n   ```sh\n   %s\n   ```\n\n", step.Command)
				}
			}
		}
	}
	text := regexp.MustCompile(`\n{3,}`).ReplaceAllString(b.String(), "\n\n")
	text = strings.TrimRight(text, "\n") + "\n"
	file := filepath.Join("..", "..", "docs", "troubleshooting.md")
	if mpitest.Updates() {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // it is read by all
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s does not match the definitions of codes: write it anew with -update", file)
	}
}

func TestGuideReadsWellWithoutAJob(t *testing.T) {
	t.Parallel()
	gap := regexp.MustCompile(`  |\{[a-z]+[|}]| [.,:;)]|[:,;]\.$|^\W|\( *\)`)
	explained := map[string]bool{}
	for _, topic := range codes.Guide() {
		explained[topic.Code] = true
		if gap.MatchString(topic.Meaning) || topic.Meaning == "" || len(topic.Meaning) > 170 {
			t.Errorf("%s: %q", topic.Code, topic.Meaning)
		}
		if len(topic.Steps) == 0 {
			t.Errorf("%s has no steps", topic.Code)
		}
		for _, step := range topic.Steps {
			if gap.MatchString(step.Text) || regexp.MustCompile(`\{[a-z][a-zA-Z]*(\|[^}]*)?\}`).MatchString(step.Command+step.Setting) || strings.HasPrefix(step.Setting, "kubectl") {
				t.Errorf("%s: %+v", topic.Code, step)
			}
		}
	}
	for _, e := range codes.Entries() {
		if explained[e.Code] != e.IsFinding() || codes.IsExplained(e.Code) != e.IsFinding() {
			t.Errorf("%s is explained: %t", e.Code, explained[e.Code])
		}
	}
	if codes.IsExplained("Odd") {
		t.Error("an unknown code is explained")
	}
}
