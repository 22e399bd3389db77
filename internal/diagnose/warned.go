package diagnose

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// warned is what a warning about the specification, which the job got when it was created, explains.
type warned struct {
	// text is the part of the warning that no other one has.
	text string
	// explains are the codes of the findings that can follow; none if the job runs as it would without the cause of the warning.
	explains []codes.Code
	// certain is set if nothing else can be the cause of these findings, so that their own remedies do not help.
	certain bool
	// errors match the evidence of a program's own error that can follow; nil: ApplicationFailed is explained only if no rank has run.
	errors *regexp.Regexp
	// ofLimits is set if only a warning about the limits of the pods of a finding explains it.
	ofLimits bool
	// told are parts of the summaries and remedies of findings that state it already.
	told []string
	// neverBegin is set if what it explains is not seen once the program has printed progress.
	neverBegin bool
	// named is set if it explains only what names the value that the warning has in quotation marks.
	named bool
}

var (
	// notLaunched are how commands end that start no rank.
	notLaunched = []codes.Code{codes.WorkersIdle, codes.LaunchRefused, codes.ProgramMissing, codes.ApplicationFailed, codes.HostfileIgnored, codes.Unknown}
	// notReached are how workers appear that the launcher has not reached.
	notReached = []codes.Code{codes.WorkerUnreachable, codes.NameUnresolved, codes.LauncherNameUnresolved, codes.UnknownHost, codes.DaemonsNotStarted, codes.DaemonUnroutable, codes.ConnectionRefused, codes.ConnectionTimedOut}
	// hanging are how jobs appear whose ranks wait for each other.
	hanging = []codes.Code{codes.RanksWaiting, codes.RanksIdle, codes.NoAnswer, codes.CollectiveTimeout, codes.NoOutput, codes.DeadlineExceeded, codes.ApplicationFailed}
)

// warnedOf has each warning of package mpi about a job.
var warnedOf = []warned{
	{text: "a part of a batch system that pods do not have", explains: slices.Concat(notReached, []codes.Code{codes.WorkersIdle, codes.LaunchRefused}), told: []string{"batch system"}},
	{text: "begins with a typographic character", explains: notLaunched, told: []string{"typographic"}},
	{text: "MPI is never started, because its launcher is an argument of", explains: notLaunched, certain: true, told: []string{"mpirun is an argument of"}},
	{text: "because a script is one word after -c", explains: notLaunched, certain: true, told: []string{"only the first word after -c"}},
	{text: "the last command of the script runs in the background", explains: []codes.Code{codes.MPINotAwaited, codes.WorkersIdle, codes.Terminated}, told: []string{"in the background"}},
	{text: "and nothing in the script waits for it", explains: []codes.Code{codes.MPINotAwaited, codes.WorkersIdle, codes.Terminated}, told: []string{"in the background"}},
	{text: "closes the pipe when it has read enough", explains: []codes.Code{codes.RankFailed, codes.WorkersIdle, codes.Terminated, codes.Killed, codes.ApplicationFailed}, errors: regexp.MustCompile(`(?i)broken ?pipe|SIGPIPE|exit code 141`), told: []string{"closed the pipe"}},
	{text: "the exit code of MPI is lost in the pipe", explains: []codes.Code{codes.RankFailed}, told: []string{"pipefail"}},
	{text: "is one word, which MPI takes as one option", explains: notLaunched, told: []string{"is one word of its command"}},
	{text: "is not expanded, because no shell runs this command", explains: notLaunched, errors: regexp.MustCompile(`\$\{?\w`), told: []string{"that nothing has replaced", "which Kubernetes replaces", "Kubernetes replaces only"}},
	{text: "takes %q as the program, because", explains: notLaunched, told: []string{"takes fewer values", "as the program", "is a value of"}},
	{text: "is none of this job, whose hosts are", explains: slices.Concat(notLaunched, notReached, []codes.Code{codes.NotEnoughSlots}), told: []string{"none of the job's hosts", "whose hosts are"}},
	{text: "runs once, in the launcher, and nothing runs on the workers", explains: []codes.Code{codes.WorkersIdle, codes.MixedMPI, codes.ApplicationFailed}, told: []string{"ran as one process", "called no launcher of MPI"}},
	{text: "leaves Open MPI without a transport between the pods", explains: []codes.Code{codes.NoTransport, codes.ApplicationFailed, codes.Aborted}, errors: regexp.MustCompile(`MPI_ERR_INTERN|unreachable|MPI_Init`), told: []string{"without a transport", "btl"}},
	{text: "is not expanded, because no such variable is defined before it", explains: notLaunched, errors: regexp.MustCompile(`\$\(`), told: []string{"Kubernetes replaces $("}},
	{text: "is not expanded, because env has no such variable", explains: notLaunched, errors: regexp.MustCompile(`\$\(`), told: []string{"that nothing has replaced", "which Kubernetes replaces", "Kubernetes replaces only"}},
	{text: "PATH replaces that of the image, because", explains: []codes.Code{codes.ProgramMissing, codes.MPINotInPath}, told: []string{"sets PATH in place of"}},
	{text: "PATH replaces that of the image, and has", explains: []codes.Code{codes.ProgramMissing, codes.MPINotInPath}, told: []string{"sets PATH in place of"}},
	{text: "MASTER_ADDR is", explains: hanging, errors: regexp.MustCompile(`(?i)DistNetworkError|DistStoreError|timed? ?out|connection refused|clients joined`), neverBegin: true},
	{text: "a rank that takes the device of its local rank finds none", explains: []codes.Code{codes.NoGPUVisible, codes.WrongGPU, codes.MoreSlotsThanGPUs, codes.GPUOutOfMemory, codes.ApplicationFailed}, errors: regexp.MustCompile(`(?i)invalid device|device ordinal|IndexError`), told: []string{"list as many devices"}},
	{text: "with 0 slots mpirun cannot start ranks", explains: slices.Concat(notLaunched, []codes.Code{codes.NotEnoughSlots}), certain: true},
	{text: "most MPI programs for GPUs need one rank per GPU", explains: []codes.Code{codes.GPUIdle, codes.MoreSlotsThanGPUs, codes.GPUOutOfMemory}, told: []string{"slots", "slot for each GPU"}},
	{text: "two workers on one node cannot both use port", explains: []codes.Code{codes.PortInUse, codes.WorkerUnreachable, codes.WorkersNotReady, codes.CrashLoop, codes.HostKeyMismatch}, told: []string{"hostNetwork"}},
	{text: "runs in place of the agent, and starts no ranks", explains: notReached, certain: true, told: []string{"no SSH server"}},
	{text: "starts this job's ranks without the container's environment variables", explains: []codes.Code{codes.ApplicationFailed}, errors: regexp.MustCompile(`(?i)KeyError|credential|\bAWS_|\bS3\b`), told: []string{"environment variables"}},
	{text: "the launcher is not one of the", explains: nil},
	{text: "the agent does not start the ranks of this job", explains: nil},
	{text: "runs this job, and not this operator", explains: nil},
	{text: "set restartPolicy next to replicas", explains: nil},
	{text: "the operator sets the host names of all pods", explains: []codes.Code{codes.NameUnresolved, codes.LauncherNameUnresolved, codes.UnknownHost}, named: true},
	{text: "with the name servers of the node instead of those of the cluster", explains: []codes.Code{codes.NameUnresolved, codes.LauncherNameUnresolved}, told: []string{"dnsPolicy"}},
	{text: "with which no container starts; write Mi", explains: []codes.Code{codes.OutOfMemory, codes.ContainerCreateFailed, codes.CrashLoop, codes.ApplicationFailed}, certain: true, ofLimits: true, errors: regexp.MustCompile(`(?i)memory`), told: []string{"too small for any process"}},
	{text: "the job can see and signal the processes of other pods", explains: nil},
}

// considerWarnings has a finding name what the job was warned about at its creation, if that explains it: as its cause, and as the first remedy, or
// the only one.
func (p *input) considerWarnings(f *Finding) {
	if f.Severity == v1alpha1.SeverityInfo {
		return
	}
	for _, warning := range mpi.Warnings(p.Job) {
		of := decisionOn(warning)
		if of == nil || !p.explains(*of, warning, *f) {
			continue
		}
		at, text, _ := strings.Cut(p.mask(warning), ": ")
		remedy := v1alpha1.Remedy{Text: "As the warning at the job's creation says: " + text + ".", Action: at}
		if problem, todo := text[:problemEnd(text)], strings.TrimLeft(text[problemEnd(text):], ":; "); of.certain && todo != "" {
			f.Summary, f.Remedies = f.Summary+" The cause: "+problem+".", nil
			remedy.Text = phrase.Capital(todo) + "."
		}
		written := at
		if p.Job.Kind == mpi.KindTrainJob {
			written = trainJobPlaces.Replace(at)
		}
		f.Evidence = slices.Insert(slices.Clone(f.Evidence), 0, "Warning at the job's creation: "+written+": "+text)
		f.Remedies = slices.Insert(slices.Clone(f.Remedies), 0, remedy)
		return
	}
}

// explains reports whether a warning explains a finding that does not state it already.
func (p *input) explains(of warned, warning string, f Finding) bool {
	switch {
	case !slices.Contains(of.explains, f.Code), of.isTold(f),
		of.ofLimits && !p.limits(warning, f),
		f.Code == codes.ApplicationFailed && !p.noRankRan() && !of.matchesError(f),
		of.neverBegin && p.Evidence.Training != v1alpha1.Training{},
		of.named && !isNamed(f, quotedIn(warning)):
		return false
	}
	return true
}

// decisionOn returns what a warning explains; nil if it is unknown.
func decisionOn(warning string) *warned {
	for i := range warnedOf {
		if first, last, _ := strings.Cut(warnedOf[i].text, "%q"); strings.Contains(warning, first) && strings.Contains(warning, last) {
			return &warnedOf[i]
		}
	}
	return nil
}

// limits reports whether a warning is about the limits of a pod that a finding names.
func (p *input) limits(warning string, f Finding) bool {
	for _, name := range append([]string{f.Pod}, f.Affected...) {
		pod := p.Known(name)
		if pod == nil {
			continue
		}
		for i, container := range p.Template(pod.Role).Containers {
			at := field.NewPath(p.field(pod.Role), "spec", "containers").Index(i).Child("resources")
			if slices.Contains(mpi.WarnMemory(corev1.ResourceRequirements{Limits: container.Resources.Limits}, at), warning) {
				return true
			}
		}
	}
	return false
}

// isTold reports whether a finding states already what the warning does.
func (w warned) isTold(f Finding) bool {
	return slices.ContainsFunc(w.told, func(part string) bool {
		return strings.Contains(f.Summary, part) || len(f.Remedies) > 0 && strings.Contains(f.Remedies[0].Text, part)
	})
}

// quotedIn returns the first text in quotation marks; "" if there is none.
func quotedIn(text string) string {
	_, after, _ := strings.Cut(text, `"`)
	quoted, _, _ := strings.Cut(after, `"`)
	return quoted
}

// isNamed reports whether a finding has a host name, or a part of one, in its summary or evidence.
func isNamed(f Finding, name string) bool {
	is := regexp.MustCompile(`(?:^|[^\w-])` + regexp.QuoteMeta(name) + `(?:$|[^\w-])`)
	return name != "" && slices.ContainsFunc(append([]string{f.Summary}, f.Evidence...), is.MatchString)
}

// matchesError reports whether a program's own error is one that follows from what the warning is about.
func (w warned) matchesError(f Finding) bool {
	return w.errors != nil && (w.errors.MatchString(f.Summary) || slices.ContainsFunc(f.Evidence, w.errors.MatchString))
}

// problemEnd returns where the problem ends in a warning without its field: at the first colon or semicolon outside of quotation marks, after which
// it has what to do.
func problemEnd(text string) int {
	quoted := false
	for i := range len(text) {
		switch {
		case text[i] == '"' && (i == 0 || text[i-1] != '\\'):
			quoted = !quoted
		case !quoted && (text[i] == ':' || text[i] == ';') && i+1 < len(text) && text[i+1] == ' ':
			return i
		}
	}
	return len(text)
}
