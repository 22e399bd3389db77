package cli

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/phrase"
)

type explainOptions struct {
	*Factory
	saved  savedFlags
	apply  int
	yes    bool
	output valueOutput
}

func newExplain(f *Factory) *cobra.Command {
	o := &explainOptions{Factory: f}
	c := &cobra.Command{
		Use:     "explain (NAME | -f FILE...)",
		Aliases: []string{"why"},
		Short:   "Explain why a job fails or waits, and what to do",
		Long: `Explain why a job fails or waits: the cause, the evidence, and remedies, the most promising first. MPI terms are explained
at the end.

If a remedy is a change of the job, the command that runs the job again with the change is shown. --apply N runs that
command, after showing the changes and asking for confirmation. Other remedies are only shown.

-f explains saved files, without a cluster or an operator: a JobReport printed by describe -o yaml, or the objects, events
and logs of jobs. The rules are the operator's, the time is the latest one in the files, and the report lists what the files
lack. A JobReport contains only the last lines of the logs, in status.logs.data (base64 of gzip). Other files are lists of
objects as YAML or JSON, folders of oc adm inspect or must-gather, and logs named POD.log or POD_CONTAINER.log, which these
commands save:

  kubectl get mpijobs,trainjobs,jobs,jobsets,pods,events,configmaps,services,resourcequotas,workloads -o yaml > objects.yaml
  kubectl logs pi-launcher-abcde --timestamps > pi-launcher-abcde.log

With NAME, only this job is explained.

The explanation ends with the address of the page that explains the code of the finding. Set MPIJOB_DOCS_URL to the address of
a copy of the documentation site, if the default, on GitHub, cannot be reached.`,
		Example: `# Show the cause and the remedies
{{name}} train

# Apply the second remedy
{{name}} train --apply 2

# Print the findings as JSON
{{name}} train -o json

# Explain a saved report
{{name}} -f report.yaml

# Diagnose saved objects and a log
{{name}} -f objects.yaml -f pi-launcher-abcde.log

# Diagnose one job of a folder that oc adm inspect has written
{{name}} train -f inspect.local.123`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.IntVar(&o.apply, "apply", 0, "Number of the remedy to apply; runs the job again with its change")
	flags.BoolVarP(&o.yes, "yes", "y", false, "With --apply: do not ask for confirmation")
	o.saved.add(c)
	o.output.add(c)
	return c
}

func (o *explainOptions) run(ctx context.Context, args []string) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	switch {
	case !o.saved.isSet() && len(args) == 0:
		return usagef("set NAME or -f FILE")
	case o.saved.isSet() && o.apply > 0:
		return usagef("--apply cannot be combined with -f: it changes a job in a cluster")
	case o.apply < 0:
		return usagef("--apply: %d is not allowed; use the number of a remedy, 1 or more", o.apply)
	case o.yes && o.apply == 0:
		return usagef("--yes requires --apply")
	}
	if err := o.saved.validate(); err != nil {
		return err
	}
	if o.saved.isSet() {
		return o.runSaved(ctx, args)
	}
	job, err := o.Find(ctx, args[0])
	if err != nil {
		return err
	}
	switch {
	case o.apply > 0:
		return o.applyRemedy(ctx, job)
	case o.output.structured():
		return o.printValue(job)
	}
	return o.printText(job)
}

// explanation is the output of -o json.
type explanation struct {
	Job       string             `json:"job"`
	Namespace string             `json:"namespace"`
	Phase     string             `json:"phase"`
	Message   string             `json:"message,omitempty"`
	Failure   *v1alpha1.Failure  `json:"failure,omitempty"`
	Findings  []explainedFinding `json:"findings"`
	// Missing is what saved files lack; see offline.Diagnosis.
	Missing []string `json:"missing,omitempty"`
}

type explainedFinding struct {
	v1alpha1.Finding
	// Commands apply the remedies, in the same order; empty for a remedy that cannot be applied automatically.
	Commands []string `json:"commands,omitempty"`
	// Documentation is the address of the page that explains the code.
	Documentation string `json:"documentation,omitempty"`
}

func (o *explainOptions) printValue(job jobs.Job) error {
	return o.output.print(o.Out, o.explain(job))
}

func (o *explainOptions) explain(job jobs.Job) explanation {
	status := job.Status()
	e := explanation{Job: job.String(), Namespace: job.Namespace, Phase: string(status.Phase), Message: status.Message, Failure: status.Failure, Findings: []explainedFinding{}}
	for _, finding := range status.Findings {
		with := explainedFinding{Finding: finding, Documentation: docsPage(finding)}
		for _, remedy := range finding.Remedies {
			with.Commands = append(with.Commands, o.command(job, remedy))
		}
		e.Findings = append(e.Findings, with)
	}
	return e
}

// printText prints the explanation as text.
func (o *explainOptions) printText(job jobs.Job) error {
	s := newDescribePrinter(o.Factory, o.Out)
	s.cells("", cell{job.String(), bold}, cell{text: ": "}, cell{job.Headline(o.Now()), phaseColour(job.Phase())})
	s.estimate(job)
	status := job.Status()
	if len(status.Findings) == 0 {
		o.noFindings(s, job)
		return s.err
	}
	first := status.Findings[0]
	s.heading("WHY")
	s.cells("  ", cell{first.Code, severityColour(first.Severity)}, cell{text: ": " + first.Summary})
	if where := jobs.FailureText(status); where != "" {
		s.text("  ", where)
	}
	if len(first.Affected) > 0 {
		s.text("  ", "Affected: "+strings.Join(first.Affected, ", "))
	}
	if len(first.Evidence) > 0 {
		s.heading("EVIDENCE")
		for _, evidence := range first.Evidence {
			s.text("  - ", evidence)
		}
	}
	o.remedies(s, job, first.Remedies)
	s.documentation(first)
	if len(status.Findings) > 1 {
		s.heading("OTHER FINDINGS")
		for _, finding := range status.Findings[1:] {
			s.text("  - ", finding.Code+": "+finding.Summary)
		}
	}
	o.glossary(s, status.Findings)
	s.line("")
	s.line("For details, run %s describe %s -n %s; for its output, %s logs %s -n %s.", o.name, job.Name, job.Namespace, o.name, job.Name, job.Namespace)
	return s.err
}

// remedies prints the remedies with their commands.
func (o *explainOptions) remedies(s *describePrinter, job jobs.Job, remedies []v1alpha1.Remedy) {
	if len(remedies) == 0 {
		return
	}
	s.heading("WHAT TO DO")
	applicable := 0
	for i, remedy := range remedies {
		s.text(fmt.Sprintf("  %d. ", i+1), remedy.Text)
		command := o.command(job, remedy)
		switch {
		case command != "":
			applicable++
			s.line("     $ %s", o.paint(cyan, command))
		case strings.HasPrefix(remedy.Action, "kubectl "):
			s.line("     $ %s", o.paint(cyan, oneLine(remedy.Action)))
		case remedy.Action != "":
			s.line("     %s", o.paint(cyan, oneLine(remedy.Action)))
		}
	}
	if applicable > 0 {
		s.line("")
		s.text("  ", fmt.Sprintf("A running job cannot be changed: clone runs it again under a new name, with the change. To apply remedy N, run %s explain %s --apply N.", o.name, job.Name))
	}
}

// noFindings prints what a job without findings does or waits for.
func (o *explainOptions) noFindings(s *describePrinter, job jobs.Job) {
	status := job.Status()
	s.line("")
	switch job.Phase() {
	case "":
		s.text("", fmt.Sprintf("The job has no report yet. If it stays like this, the operator is not running or does not watch this namespace; run %s doctor.", o.name))
	case v1alpha1.PhaseSucceeded:
		s.text("", "The job succeeded.")
	case v1alpha1.PhaseRunning:
		s.text("", fmt.Sprintf("No problems found: %s workers are ready.", status.Workers.Summary))
		if training := jobs.TrainingText(status.Training); training != "" {
			s.text("", "Training: "+training+".")
		}
	default:
		if progress := job.Progress() + "."; !strings.HasPrefix(status.Message, progress) {
			s.text("", progress)
		}
		if status.Message != "" {
			s.text("", status.Message)
		}
		if w := status.Scheduling; w != nil && w.Message != "" && w.Message != status.Message {
			s.text("", w.Message)
		}
		if status.Phase == v1alpha1.PhaseSuspended {
			s.text("", fmt.Sprintf("To run it, run %s resume %s -n %s.", o.name, job.Name, job.Namespace))
		}
	}
}

// glossary has MPI terms, in the order in which they build on each other.
var glossary = []struct {
	word    *regexp.Regexp
	name    string
	meaning string
}{
	{regexp.MustCompile(`(?i)\branks?\b`), "rank", "a process of your program, numbered from 0. The ranks of an MPI program exchange messages."},
	{regexp.MustCompile(`(?i)\bworkers?\b`), "worker", "a pod that runs ranks."},
	{regexp.MustCompile(`(?i)\blauncher('s)?\b`), "launcher", "the pod that runs mpirun, which starts the ranks on the workers and collects their output."},
	{regexp.MustCompile(`(?i)\bslots?\b`), "slot", "a place for one rank. A worker usually has one slot per GPU."},
	{regexp.MustCompile(`(?i)\bhost ?file\b|list of hosts`), "hostfile", "the list of workers and their slots; mpirun starts ranks on these."},
	{regexp.MustCompile(`\bmpirun\b`), "mpirun", "the program that starts the ranks; it is part of MPI in your image."},
	{regexp.MustCompile(`(?i)\bsshd?\b`), "ssh", "the protocol by which mpirun starts ranks on workers."},
	{regexp.MustCompile(`(?i)\bthe agent\b`), "agent", "the operator's program in each pod, which starts ranks without sshd in the image."},
	{regexp.MustCompile(`\bNCCL\b`), "NCCL", "the library by which GPUs exchange data."},
	{regexp.MustCompile(`\bRDMA\b`), "RDMA", "fast communication between nodes that bypasses the CPU; requires special network adapters."},
	{regexp.MustCompile(`(?i)\bquota\b`), "quota", "the resources that a namespace or a queue may use at once."},
	{regexp.MustCompile(`(?i)\bqueues?\b`), "queue", "where jobs wait until there is capacity for all of their pods."},
}

// glossary explains the terms that occur in findings.
func (o *explainOptions) glossary(s *describePrinter, findings []v1alpha1.Finding) {
	var text strings.Builder
	for _, finding := range findings {
		text.WriteString(finding.Summary + "\n")
		for _, remedy := range finding.Remedies {
			text.WriteString(remedy.Text + "\n" + remedy.Action + "\n")
		}
	}
	var terms [][2]string
	for _, entry := range glossary {
		if entry.word.MatchString(text.String()) {
			terms = append(terms, [2]string{entry.name, entry.meaning})
		}
	}
	s.fields("GLOSSARY", terms)
}

// command returns the command that runs a job again with a remedy's change; empty if the remedy is not a change of the job.
func (o *explainOptions) command(job jobs.Job, remedy v1alpha1.Remedy) string {
	changes, can := jobs.RemedyChanges(job, remedy)
	if !can {
		return ""
	}
	words := []string{"clone", job.Name, "-n", job.Namespace}
	for _, change := range changes {
		words = append(words, "--set", change.String())
	}
	return o.name + " " + phrase.QuoteCommand(words)
}

// applyRemedy runs a job again with the change of a remedy, after confirmation.
func (o *explainOptions) applyRemedy(ctx context.Context, job jobs.Job) error {
	findings := job.Status().Findings
	if len(findings) == 0 {
		return exitf(ExitError, "%s has no findings, so there is no remedy to apply", job)
	}
	remedies := findings[0].Remedies
	if o.apply > len(remedies) {
		return usagef("--apply: %d is not allowed; %s has %d remedies", o.apply, job, len(remedies))
	}
	remedy := remedies[o.apply-1]
	changes, can := jobs.RemedyChanges(job, remedy)
	if !can {
		return exitf(ExitError, "remedy %d cannot be applied automatically: %s %s", o.apply, remedy.Text, remedy.Action)
	}
	args := []string{"clone", job.String(), "--namespace", job.Namespace}
	for _, change := range changes {
		args = append(args, "--set", change.String())
	}
	say(o.ErrOut, "%d. %s\n%s", o.apply, remedy.Text, o.command(job, remedy))
	if !o.yes {
		if err := o.call(ctx, append(slices.Clone(args), "--dry-run=server")...); err != nil {
			return err
		}
		if err := o.ask("Apply?", "nothing was changed; use --yes to skip the confirmation"); err != nil {
			return err
		}
	}
	return o.call(ctx, args...)
}
