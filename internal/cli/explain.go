package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

type explainOptions struct {
	*Factory
	apply int
	yes   bool
	form  string
}

func newExplain(f *Factory) *cobra.Command {
	o := &explainOptions{Factory: f}
	c := &cobra.Command{
		Use:     "explain NAME",
		Aliases: []string{"why"},
		Short:   "Say why a job fails or waits, and what to do about it",
		Long: `Say why a job fails or waits, what that is known from, and what to do about it, the most promising first. No knowledge of
MPI is needed: words of the field are explained at the end.

Where a remedy is a change of the job, the command is printed that runs the job again with it; --apply N does that, after
showing what changes and asking. Everything else is only said.`,
		Example: `# Why does it not run?
{{name}} explain train

# Do what the second remedy says
{{name}} explain train --apply 2

# For a program
{{name}} explain train -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	flags := c.Flags()
	flags.IntVar(&o.apply, "apply", 0, "Run the job again with the change of this remedy")
	flags.BoolVarP(&o.yes, "yes", "y", false, "With --apply: do not ask")
	flags.StringVarP(&o.form, "output", "o", "", "json: the findings for a program")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *explainOptions) run(ctx context.Context, arg string) error {
	switch {
	case o.form != "" && o.form != "json":
		return usagef("-o %s: must be json", o.form)
	case o.apply < 0:
		return usagef("--apply %d: must be the number of a remedy, from 1", o.apply)
	case o.yes && o.apply == 0:
		return usagef("--yes goes with --apply")
	}
	job, err := o.Find(ctx, arg)
	if err != nil {
		return err
	}
	switch {
	case o.apply > 0:
		return o.applyRemedy(ctx, job)
	case o.form == "json":
		return o.print(job)
	}
	return o.tell(job)
}

// explanation is what -o json prints.
type explanation struct {
	Job       string             `json:"job"`
	Namespace string             `json:"namespace"`
	Phase     string             `json:"phase"`
	Message   string             `json:"message,omitempty"`
	Failure   *v1alpha1.Failure  `json:"failure,omitempty"`
	Findings  []explainedFinding `json:"findings"`
}

type explainedFinding struct {
	v1alpha1.Finding
	// Commands apply the remedies, in their order; empty where one has none that is safe.
	Commands []string `json:"commands,omitempty"`
}

func (o *explainOptions) print(job Job) error {
	status := statusOf(job)
	e := explanation{Job: job.String(), Namespace: job.Namespace, Phase: string(status.Phase), Message: status.Message, Failure: status.Failure, Findings: []explainedFinding{}}
	for _, finding := range status.Findings {
		with := explainedFinding{Finding: finding}
		for _, remedy := range finding.Remedies {
			with.Commands = append(with.Commands, o.command(job, remedy))
		}
		e.Findings = append(e.Findings, with)
	}
	out := json.NewEncoder(o.Out)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(e)
}

// tell writes the explanation for people.
func (o *explainOptions) tell(job Job) error {
	s := &story{Factory: o.Factory, to: o.Out}
	s.line("%s: %s", o.paint(bold, job.String()), o.paint(phaseColour(job.Phase()), headline(job, o.Now())))
	status := statusOf(job)
	if len(status.Findings) == 0 {
		o.well(s, job)
		return s.err
	}
	first := status.Findings[0]
	s.heading("WHY")
	s.text("  ", o.paint(severityColour(first.Severity), first.Code)+": "+first.Summary)
	if where := whereOf(status); where != "" {
		s.text("  ", where)
	}
	if len(first.Affected) > 0 {
		s.text("  ", "It is about "+strings.Join(first.Affected, ", ")+".")
	}
	if len(first.Evidence) > 0 {
		s.heading("HOW THIS IS KNOWN")
		for _, evidence := range first.Evidence {
			s.text("  - ", evidence)
		}
	}
	o.remedies(s, job, first.Remedies)
	if len(status.Findings) > 1 {
		s.heading("ALSO SEEN")
		for _, finding := range status.Findings[1:] {
			s.text("  - ", finding.Code+": "+finding.Summary)
		}
	}
	o.words(s, status.Findings)
	s.line("")
	s.line("%s logs %s -n %s shows what it wrote, and %s describe %s -n %s all that is known.", o.name, job.Name, job.Namespace, o.name, job.Name, job.Namespace)
	return s.err
}

// whereOf says where a job failed.
func whereOf(status v1alpha1.JobReportStatus) string {
	failure := status.Failure
	if failure == nil || failure.Pod == "" {
		return ""
	}
	text := "It began in pod " + failure.Pod
	if failure.Rank != nil {
		text += fmt.Sprintf(", with rank %d", *failure.Rank)
	}
	at := slices.IndexFunc(status.Pods, func(pod v1alpha1.PodStatus) bool { return pod.Name == failure.Pod && pod.Node != "" })
	if at >= 0 {
		text += ", on node " + status.Pods[at].Node
	}
	if failure.ExitCode != nil {
		text += fmt.Sprintf("; it ended with code %d", *failure.ExitCode)
		if signal := *failure.ExitCode - 128; signal > 0 && signal < 64 {
			text += fmt.Sprintf(", which is signal %d", signal)
		}
	}
	return text + "."
}

// remedies writes what to do, and with what command.
func (o *explainOptions) remedies(s *story, job Job, remedies []v1alpha1.Remedy) {
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
		s.text("  ", fmt.Sprintf("A job that has begun cannot be changed: clone runs it again under a new name, with the change. --apply N of %s explain %s does that for you.", o.name, job.Name))
	}
}

// well says of a job in which nothing is wrong what it does or waits for.
func (o *explainOptions) well(s *story, job Job) {
	status := statusOf(job)
	s.line("")
	switch job.Phase() {
	case "":
		s.text("", fmt.Sprintf("Whether anything is wrong is not known. If this stays so, the operator does not run, or does not see this namespace: %s doctor says which.", o.name))
	case mpi.PhaseSucceeded:
		s.text("", "It went well. There is nothing to explain.")
	case mpi.PhaseRunning:
		s.text("", fmt.Sprintf("Nothing seems wrong: %s workers are ready.", status.Workers.Summary))
		if training := progressOf(status.Training); training != "" {
			s.text("", "It tells of its training: "+training+".")
		}
	default:
		s.text("", stage(job)+".")
		if status.Message != "" {
			s.text("", status.Message)
		}
		if w := status.Scheduling; w != nil && w.Message != "" && w.Message != status.Message {
			s.text("", w.Message)
		}
	}
}

// glossary are words of the field, in the order in which they build on each other, and what they mean.
var glossary = []struct {
	word    *regexp.Regexp
	name    string
	meaning string
}{
	{regexp.MustCompile(`(?i)\branks?\b`), "rank", "one process of your program, with a number from 0. An MPI program runs as many at once, which exchange messages."},
	{regexp.MustCompile(`(?i)\bworkers?\b`), "worker", "a pod in which ranks run."},
	{regexp.MustCompile(`(?i)\blauncher('s)?\b`), "launcher", "the pod that runs mpirun, which starts the ranks on the workers and collects what they print."},
	{regexp.MustCompile(`(?i)\bslots?\b`), "slot", "room for one rank. A worker has as many slots as it can run ranks, mostly one for each GPU."},
	{regexp.MustCompile(`(?i)\bhost ?file\b|list of hosts`), "hostfile", "the list of workers with their slots, from which mpirun knows where to start ranks."},
	{regexp.MustCompile(`\bmpirun\b`), "mpirun", "the program that starts the ranks; it comes with MPI in your image."},
	{regexp.MustCompile(`(?i)\bsshd?\b`), "ssh", "how mpirun reaches the workers to start ranks there."},
	{regexp.MustCompile(`(?i)\bthe agent\b`), "agent", "what the operator puts into the pods to start ranks without ssh in the image."},
	{regexp.MustCompile(`\bNCCL\b`), "NCCL", "the library by which GPUs exchange data among each other."},
	{regexp.MustCompile(`\bRDMA\b`), "RDMA", "a fast way between machines that goes around the processor; needs special network cards."},
	{regexp.MustCompile(`(?i)\bquota\b`), "quota", "how much a namespace or a queue may use at once."},
	{regexp.MustCompile(`(?i)\bqueues?\b`), "queue", "where jobs wait until there is room for all of their pods."},
}

// words explains those that occur.
func (o *explainOptions) words(s *story, findings []v1alpha1.Finding) {
	var text strings.Builder
	for _, finding := range findings {
		text.WriteString(finding.Summary + "\n")
		for _, remedy := range finding.Remedies {
			text.WriteString(remedy.Text + "\n" + remedy.Action + "\n")
		}
	}
	var said [][2]string
	for _, entry := range glossary {
		if entry.word.MatchString(text.String()) {
			said = append(said, [2]string{entry.name, entry.meaning})
		}
	}
	s.fields("WORDS", said)
}

// command is what runs a job again with a remedy's change; empty where the remedy is no change of the job that is certain
// to apply.
func (o *explainOptions) command(job Job, remedy v1alpha1.Remedy) string {
	sets, can := changesOf(job, remedy)
	if !can {
		return ""
	}
	words := []string{"clone", job.Name, "-n", job.Namespace}
	for _, set := range sets {
		words = append(words, "--set", set)
	}
	return o.name + " " + quoted(words)
}

// applyRemedy runs a job again with the change of a remedy, if the user wants that once he has seen it.
func (o *explainOptions) applyRemedy(ctx context.Context, job Job) error {
	findings := statusOf(job).Findings
	if len(findings) == 0 {
		return exitf(ExitError, "nothing is known to be wrong with %s: there is no remedy to apply", job)
	}
	remedies := findings[0].Remedies
	if o.apply > len(remedies) {
		return usagef("--apply %d: %s has %d remedies", o.apply, job, len(remedies))
	}
	remedy := remedies[o.apply-1]
	sets, can := changesOf(job, remedy)
	if !can {
		return exitf(ExitError, "remedy %d is nothing that can be done for you: %s %s", o.apply, remedy.Text, remedy.Action)
	}
	args := []string{"clone", job.String(), "--namespace", job.Namespace}
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	say(o.ErrOut, "%d. %s\n%s", o.apply, remedy.Text, o.command(job, remedy))
	if !o.yes {
		if err := o.call(ctx, append(slices.Clone(args), "--dry-run=server")...); err != nil {
			return err
		}
		fmt.Fprint(o.ErrOut, "Do that? [y/N] ")
		answer, _ := bufio.NewReader(o.In).ReadString('\n')
		if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
			return exitf(ExitError, "nothing was done; with --yes it is done without asking")
		}
	}
	return o.call(ctx, args...)
}

var (
	// fieldAndValue is an action that names a field of the job and what to set it to. Other words than these stand for what
	// the user has to know.
	fieldAndValue = regexp.MustCompile(`^(spec[\w.\[\]/-]*): (\d+|true|false|WaitForWorkersReady)$`)
	// annotation is one that sets an annotation or a label.
	annotation = regexp.MustCompile(`^(metadata\.(?:annotations|labels)): \{([\w./-]+): "?([\w./-]+)"?\}$`)
	variable   = regexp.MustCompile(`^([A-Z][A-Z0-9_]*)=([\w.,:/-]+)$`)
	// memoryField is an action that names a limit of memory, and goodStart the figure in its text.
	memoryField = regexp.MustCompile(`^spec\S*\.memory$`)
	goodStart   = regexp.MustCompile(`for a start (\d+(?:\.\d+)?) ([GM]iB)`)
)

// changesOf are the changes of a job that a remedy comes to, as clone takes them; false where it comes to none, or where
// one does not fit this job.
func changesOf(job Job, remedy v1alpha1.Remedy) (sets []string, can bool) {
	if job.Object == nil {
		return nil, false
	}
	action := strings.TrimSpace(remedy.Action)
	switch found := annotation.FindStringSubmatch(action); {
	case action == "":
		return nil, strings.HasPrefix(remedy.Text, "Start the job again")
	case found != nil:
		sets = []string{found[1] + "[" + found[2] + "]=" + found[3]}
	case memoryField.MatchString(action):
		figure := goodStart.FindStringSubmatch(remedy.Text)
		if figure == nil {
			return nil, false
		}
		sets = []string{action + "=" + figure[1] + strings.TrimSuffix(figure[2], "B")}
	case strings.HasPrefix(action, "env: "):
		for part := range strings.SplitSeq(strings.TrimPrefix(action, "env: "), " and ") {
			if !variable.MatchString(part) {
				return nil, false
			}
			sets = append(sets, "env."+part)
		}
	default:
		pair := fieldAndValue.FindStringSubmatch(action)
		if pair == nil {
			return nil, false
		}
		sets = []string{pair[1] + "=" + pair[2]}
	}
	copied := &unstructured.Unstructured{Object: job.Object.DeepCopy().Object}
	for _, set := range sets {
		if change(copied, set) != nil {
			return nil, false
		}
	}
	return sets, true
}
