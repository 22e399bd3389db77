package runtimetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// patience is how long what is wrong may still pass by itself, such as a registry that does not answer once, and how
// long the cause of a failed job, or the output of one that went well, may take to be found.
const patience = 30 * time.Second

// Seen is what is known of a test's job.
type Seen struct {
	Now time.Time
	// Ranks is how many ranks the job has, each on a pod of its own.
	Ranks int
	// Report is the job's record; nil while there is none.
	Report *v1alpha1.JobReportStatus
	// Hosts are where ranks told to be, as Hosts finds them in the launcher's output; it is read when the job has ended.
	Hosts []string
}

// order is the one in which a job gets to the checks.
var order = []v1alpha1.CheckName{
	v1alpha1.CheckImagePull, v1alpha1.CheckKeys, v1alpha1.CheckConnection, v1alpha1.CheckProcessStart, v1alpha1.CheckRanksDistinct,
}

// failing are the checks that fail by a finding. One that is not listed fails the start of processes if pods have
// started, and before that none: then the test could not be made.
var failing = map[v1alpha1.CheckName][]mpi.Code{
	v1alpha1.CheckImagePull: {mpi.CodeImageName, mpi.CodeImagePull},
	v1alpha1.CheckKeys:      {mpi.CodeKeysFailed, mpi.CodeKeyRefused, mpi.CodeKeyUnprotected, mpi.CodeKeyModes, mpi.CodeHostKeyMismatch, mpi.CodeNoHostKeys},
	v1alpha1.CheckConnection: {
		mpi.CodeNameUnresolved, mpi.CodeLauncherUnresolved, mpi.CodeConnectionRefused, mpi.CodeConnectionTimeout, mpi.CodeUnreachable,
		mpi.CodeConnectionLost, mpi.CodeSSHDOverloaded, mpi.CodeSSHFailed, mpi.CodeNoUser, mpi.CodeDaemonUnroutable, mpi.CodeServiceMesh, mpi.CodeWrongInterface,
	},
	v1alpha1.CheckRanksDistinct: {mpi.CodeHostfileIgnored, mpi.CodeShortHostNames, mpi.CodeNotEnoughSlots},
}

// Start is the status of a test that begins.
func Start(status v1alpha1.RuntimeTestStatus, now time.Time) v1alpha1.RuntimeTestStatus {
	status.Phase, status.Message = v1alpha1.TestRunning, "The test's job is made."
	status.StartTime = new(metav1.NewTime(now))
	status.Checks = nil
	for _, name := range order {
		status.Checks = append(status.Checks, v1alpha1.RuntimeCheck{Name: name, Result: v1alpha1.CheckPending})
	}
	return status
}

// Wait is the status of a test that cannot begin yet.
func Wait(status v1alpha1.RuntimeTestStatus, why string) v1alpha1.RuntimeTestStatus {
	status.Phase, status.Message = v1alpha1.TestPending, why
	return status
}

// Fail is the status of a test that cannot be made, or not go on. Checks that have passed stay so.
func Fail(status v1alpha1.RuntimeTestStatus, now time.Time, why string) v1alpha1.RuntimeTestStatus {
	status.Phase, status.Message = v1alpha1.TestFailed, cut(why, 2048)
	status.CompletionTime = new(metav1.NewTime(now))
	status.Checks = slices.Clone(status.Checks)
	for i := range status.Checks {
		if c := &status.Checks[i]; c.Result == v1alpha1.CheckPending {
			c.Result, c.Message = v1alpha1.CheckUnknown, "The test ended before this could be told."
		}
	}
	return status
}

// Judge tells how a test stands that has begun. A check that has passed stays so: pods go when the job ends.
func Judge(test v1alpha1.RuntimeTest, seen Seen) v1alpha1.RuntimeTestStatus {
	status := *test.Status.DeepCopy()
	j := judge{Seen: seen}
	if seen.Report != nil {
		j.job = *seen.Report
	}
	for i := range status.Checks {
		if c := &status.Checks[i]; c.Result == v1alpha1.CheckPending {
			j.pass(c)
		}
	}
	if all(status.Checks, v1alpha1.CheckPass) {
		status.Phase = v1alpha1.TestPassed
		status.Message = fmt.Sprintf("The runtime works: %d ranks ran on %d pods, %d s after the test began.", seen.Ranks, seen.Ranks, int(seen.Now.Sub(status.StartTime.Time).Seconds()))
		status.CompletionTime = new(metav1.NewTime(seen.Now))
		return status
	}
	deadline := status.StartTime.Add(time.Duration(test.Spec.TimeoutSeconds) * time.Second)
	late := !seen.Now.Before(deadline)
	cause := j.cause()
	if !late && !j.over(cause, status.StartTime.Time) {
		status.Phase, status.Message = v1alpha1.TestRunning, "The test's job is being made by Kubeflow Trainer."
		if j.job.Message != "" {
			status.Message = cut(fmt.Sprintf("%s: %s", j.job.Phase, j.job.Message), 2048)
		}
		return status
	}
	why := j.fail(status.Checks, cause)
	if why == "" {
		why = j.untold()
		if late {
			why = fmt.Sprintf("Not done after %d s. %s", test.Spec.TimeoutSeconds, why)
		}
	}
	return Fail(status, seen.Now, why)
}

// judge judges one test at one time.
type judge struct {
	Seen
	job v1alpha1.JobReportStatus
}

// pass marks a check as passed if it has.
func (j judge) pass(c *v1alpha1.RuntimeCheck) {
	message, milliseconds := "", int64(0)
	switch c.Name {
	case v1alpha1.CheckImagePull:
		if started := j.started(); started >= Workers+1 || started > 0 && (j.told() || j.reached()) {
			message = fmt.Sprintf("%d of %d pods got the image and started.", started, Workers+1)
		}
	case v1alpha1.CheckKeys:
		if j.told() || j.reached() {
			message = "The pods know each other by the job's key."
		}
	case v1alpha1.CheckConnection:
		if j.told() || j.reached() {
			message, milliseconds = fmt.Sprintf("The launcher reached all %d workers.", Workers), j.job.MPI.ConnectMilliseconds
		}
	case v1alpha1.CheckProcessStart:
		if len(j.Hosts) >= j.Ranks {
			message, milliseconds = fmt.Sprintf("MPI started %d of %d processes (ranks).", len(j.Hosts), j.Ranks), j.job.MPI.InitMilliseconds
		}
	case v1alpha1.CheckRanksDistinct:
		if j.told() {
			message = fmt.Sprintf("Each rank ran on a pod of its own: %s.", strings.Join(j.distinct(), ", "))
		}
	}
	if message != "" {
		c.Result, c.Message, c.Milliseconds = v1alpha1.CheckPass, message, milliseconds
	}
}

// started counts the pods whose containers have started.
func (j judge) started() int {
	n := 0
	for _, pod := range j.job.Pods {
		switch corev1.PodPhase(pod.Phase) {
		case corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed:
			n++
		}
	}
	return n
}

// distinct are the hosts that ranks told to be on, each once.
func (j judge) distinct() []string {
	hosts := slices.Clone(j.Hosts)
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// told is whether each rank told to be on a host of its own: nothing then can have gone wrong before.
func (j judge) told() bool { return j.Ranks > 0 && len(j.distinct()) >= j.Ranks }

// reached is whether the launcher's agent has told that it reached every worker.
func (j judge) reached() bool {
	return j.job.MPI.SlotsExpected > 0 && j.job.MPI.SlotsFound >= j.job.MPI.SlotsExpected
}

func (j judge) ended() bool { return j.job.CompletionTime != nil }

// cause is what is wrong with the job; nil where nothing is that it cannot get over.
func (j judge) cause() *v1alpha1.Finding {
	for i := range j.job.Findings {
		if f := &j.job.Findings[i]; f.Severity == v1alpha1.SeverityError {
			return f
		}
	}
	if j.ended() && len(j.job.Findings) > 0 {
		return &j.job.Findings[0]
	}
	return nil
}

// over is whether a test that has not passed has failed: its job has ended, and the cause is known or will not be; or the
// job cannot go on.
func (j judge) over(cause *v1alpha1.Finding, start time.Time) bool {
	if j.ended() {
		found := cause != nil && cause.Code != string(mpi.CodeUnknown) || j.job.Phase == v1alpha1.Phase(mpi.PhaseSucceeded) && len(j.Hosts) > 0
		return found || j.Now.Sub(j.job.CompletionTime.Time) >= patience
	}
	return cause != nil && j.Now.Sub(start) >= patience
}

// fail marks the check that a cause fails, and returns the test's message; empty where no check can be blamed.
func (j judge) fail(checks []v1alpha1.RuntimeCheck, cause *v1alpha1.Finding) string {
	name, message := j.blame(cause)
	if name == "" {
		return message
	}
	for i := range checks {
		c := &checks[i]
		switch {
		case c.Name == name:
			c.Result, c.Message, c.Milliseconds = v1alpha1.CheckFail, cut(message, 1024), 0
			if cause != nil {
				c.Finding, c.Remedies = cause.Code, remedies(*cause)
			}
		case c.Result != v1alpha1.CheckPending:
		case c.Name == v1alpha1.CheckImagePull && j.started() > 0 && name != v1alpha1.CheckImagePull:
			// It failed of something else before the others had got so far.
			c.Result, c.Message = v1alpha1.CheckPass, fmt.Sprintf("%d of %d pods had got the image and started when the test ended.", j.started(), Workers+1)
		case c.Name == v1alpha1.CheckProcessStart && name == v1alpha1.CheckRanksDistinct && len(j.Hosts) > 0:
			c.Result, c.Message = v1alpha1.CheckPass, fmt.Sprintf("MPI started %d processes (ranks).", len(j.Hosts))
		default:
			c.Result, c.Message = v1alpha1.CheckUnknown, fmt.Sprintf("Not told: the test failed at %s.", name)
		}
	}
	return fmt.Sprintf("%s: %s", name, message)
}

// blame finds the check that fails, and why; none where the job could not begin, with the cause if there is one.
func (j judge) blame(cause *v1alpha1.Finding) (v1alpha1.CheckName, string) {
	if cause != nil {
		if mpi.Code(cause.Code) == mpi.CodeNotEnoughSlots {
			return v1alpha1.CheckRanksDistinct, fmt.Sprintf("MPI did not read the job's list of hosts: it found no room for %d ranks, though there are %d pods for them.", j.Ranks, j.Ranks)
		}
		for _, name := range order {
			if slices.Contains(failing[name], mpi.Code(cause.Code)) {
				return name, cause.Summary
			}
		}
		if j.started() == 0 {
			return "", cause.Summary
		}
		return v1alpha1.CheckProcessStart, cause.Summary
	}
	switch {
	case len(j.Hosts) >= j.Ranks:
		return v1alpha1.CheckRanksDistinct, fmt.Sprintf("The %d ranks ran on %d pods (%s), not on %d.", len(j.Hosts), len(j.distinct()), strings.Join(j.distinct(), ", "), j.Ranks)
	case len(j.Hosts) > 0:
		return v1alpha1.CheckProcessStart, fmt.Sprintf("%d of %d processes (ranks) told where they run.", len(j.Hosts), j.Ranks)
	case j.ended() && j.started() > 0:
		return v1alpha1.CheckProcessStart, fmt.Sprintf("No process (rank) told where it runs. The job is %s: %s", j.job.Phase, j.job.Message)
	case j.started() >= Workers+1:
		return v1alpha1.CheckProcessStart, "All pods run, but MPI has not started the processes (ranks), or they do not end. See the launcher's log of a job of your own, and its JobReport."
	}
	return "", ""
}

// remedies are those of a finding, but for one that means something else here: a test asks for as many ranks as there are
// slots.
func remedies(cause v1alpha1.Finding) []v1alpha1.Remedy {
	if mpi.Code(cause.Code) != mpi.CodeNotEnoughSlots {
		return cause.Remedies
	}
	return []v1alpha1.Remedy{
		{
			Text:   "Use the runtime that was made for the MPI in the image: Open MPI 4 and 5, MPICH and Intel MPI each read the list from another variable.",
			Action: "spec.runtimeRef",
		},
		{
			Text:   "In a runtime of your own have the launcher's variables name the list: OMPI_MCA_orte_default_hostfile for Open MPI 4, PRTE_MCA_prte_default_hostfile for 5, HYDRA_HOST_FILE for MPICH, I_MPI_HYDRA_HOST_FILE for Intel MPI.",
			Action: "PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile",
		},
	}
}

// untold is what the job was last seen to do.
func (j judge) untold() string {
	if j.Report == nil {
		return "Kubeflow Trainer has made nothing of the test's job: see whether its controller runs."
	}
	text := fmt.Sprintf("The job was %s: %s", j.job.Phase, j.job.Message)
	if len(j.job.Findings) > 0 {
		text += " " + j.job.Findings[0].Summary
	}
	return text
}

func all(checks []v1alpha1.RuntimeCheck, result v1alpha1.CheckResult) bool {
	return len(checks) > 0 && !slices.ContainsFunc(checks, func(c v1alpha1.RuntimeCheck) bool { return c.Result != result })
}

// cut keeps a text within what a field holds.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..."
}
