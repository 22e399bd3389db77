package proof

import (
	"fmt"
	"slices"
	"strings"

	"opendatahub.io/mpijob/hack/bench/report"
)

// smallJobCase begins the names of the cases that show when the steps of a job of one worker are done.
const smallJobCase = "steps/1/"

// smallJobSteps are the steps of the suite mpijob, in order, each from the end of the one before.
var smallJobSteps = []struct{ name, what, need string }{
	{
		"1-created", "The MPIJob is created",
		"Needed by every operator: the API server validates the job and answers when etcd has stored it.",
	},
	{
		"2-first-write", "The operator's first write arrives",
		"Needed: a watch delivers the job, and the operator computes the objects of the job.",
	},
	{
		"3-base-written", "Service, ConfigMap, Secret and NetworkPolicy are written",
		"Needed before pods: they mount the ConfigMap and the Secret, and without the NetworkPolicy they would not be isolated from the start. The four are written at once and take as long as the slowest.",
	},
	{
		"4-pods-sent", "The first pod or launcher Job arrives",
		"What is left between two groups of writes, in the operator and on the way.",
	},
	{
		"5-pods-written", "Launcher and worker are written",
		"Needed by every operator: the two are written at once.",
	},
	{
		"6-pods-seen", "A watch has returned both",
		"Needed by anyone who waits for the pods, and no work of the operator.",
	},
}

// writeSmallJob writes where the time of a job of one worker goes, and which of it is needed.
func writeSmallJob(page *strings.Builder, r report.Report) {
	page.WriteString("\n### Where the time of a small job goes\n\n")
	find := func(name string) (report.Case, bool) {
		at := slices.IndexFunc(r.Cases, func(c report.Case) bool { return c.Name == name })
		if at < 0 {
			return report.Case{}, false
		}
		return r.Cases[at], true
	}
	var cases []report.Case
	for _, step := range smallJobSteps {
		c, measured := find(smallJobCase + step.name)
		if !measured || c.Details[ours].Runs == 0 {
			page.WriteString("**Not measured in this run.**\n")
			return
		}
		cases = append(cases, c)
	}
	peers := peersOf(cases)
	page.WriteString("The steps from the creation of a job of one worker, in milliseconds since the step before: differences between medians.")
	if c, measured := find("create/1"); measured && c.Details["floor"].Runs > 0 {
		fmt.Fprintf(page, " `floor`, which creates the same objects but for the MPIJob and the NetworkPolicy, all at once, takes %s ms (`create/1`).", short(1000*c.Details["floor"].Median))
	}
	page.WriteString("\n\n| step | ours |")
	for _, peer := range peers {
		page.WriteString(" " + peer + " |")
	}
	page.WriteString(" is it needed? |\n|---|---:|" + strings.Repeat("---:|", len(peers)) + "---|\n")
	for i, step := range smallJobSteps {
		page.WriteString("| " + step.what + " |")
		for _, who := range append([]string{ours}, peers...) {
			since := 0.0
			if i > 0 {
				since = cases[i-1].Details[who].Median
			}
			text := ""
			if cases[i].Details[who].Runs > 0 {
				text = short(1000 * (cases[i].Details[who].Median - since))
			}
			page.WriteString(" " + text + " |")
		}
		page.WriteString(" " + step.need + " |\n")
	}
	last := cases[len(cases)-1]
	page.WriteString("| Together |")
	for _, who := range append([]string{ours}, peers...) {
		page.WriteString(" " + short(1000*last.Details[who].Median) + " |")
	}
	page.WriteString(" Three of the steps wait for etcd to write to disk: the first, the third and the fifth. `floor` waits once, as it creates no MPIJob and pods at the same time as what they mount. |\n")
}
