package runtimetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/phrase"
)

// patience is how long a test waits for a problem that may resolve itself, such as a registry that does not respond
// once, and for the cause of a failed job or the output of a successful one.
const patience = 30 * time.Second

// Seen is what was observed of a test's job.
type Seen struct {
	Now time.Time
	// Ranks is the number of ranks of the job, each in its own pod.
	Ranks int
	// Report is the job's report; nil if it does not exist yet.
	Report *v1alpha1.JobReportStatus
	// Hosts are the hosts that ranks printed, as returned by Hosts. The output is read after the job ended.
	Hosts []string
	// Exchange is what ranks printed of their messages, as returned by ParseExchange.
	Exchange Exchange
}

// order is the order in which a job passes the checks.
var order = []v1alpha1.CheckName{
	v1alpha1.CheckImagePull, v1alpha1.CheckKeys, v1alpha1.CheckConnection, v1alpha1.CheckProcessStart, v1alpha1.CheckRanksDistinct,
	v1alpha1.CheckCommunication,
}

// failing lists the findings that fail each check. Other findings fail ProcessStart if pods have started. Otherwise
// they fail no check: the test could not be run.
var failing = map[v1alpha1.CheckName][]codes.Code{
	v1alpha1.CheckImagePull: {codes.InvalidImageName, codes.ImagePullFailed},
	v1alpha1.CheckKeys:      {codes.KeyGenerationFailed, codes.KeyRefused, codes.KeyUnprotected, codes.KeyFileModes, codes.HostKeyMismatch, codes.NoHostKeys},
	v1alpha1.CheckConnection: {
		codes.NameUnresolved, codes.LauncherNameUnresolved, codes.ConnectionRefused, codes.ConnectionTimedOut, codes.WorkerUnreachable,
		codes.ConnectionLost, codes.SSHDOverloaded, codes.SSHFailed, codes.SSHMissing, codes.NoUserEntry, codes.DaemonUnroutable, codes.ServiceMesh, codes.WrongInterface,
	},
	v1alpha1.CheckRanksDistinct: {codes.HostfileIgnored, codes.ShortHostNames, codes.NotEnoughSlots},
}

// Start returns the status of a test that starts.
func Start(status v1alpha1.RuntimeTestStatus, now time.Time) v1alpha1.RuntimeTestStatus {
	status.Phase, status.Message = v1alpha1.TestRunning, "The test's job was created."
	status.StartTime = new(metav1.NewTime(now))
	status.Checks = nil
	for _, name := range order {
		status.Checks = append(status.Checks, v1alpha1.RuntimeCheck{Name: name, Result: v1alpha1.CheckPending})
	}
	return status
}

// Wait returns the status of a test that cannot start yet.
func Wait(status v1alpha1.RuntimeTestStatus, why string) v1alpha1.RuntimeTestStatus {
	status.Phase, status.Message = v1alpha1.TestPending, why
	return status
}

// Fail returns the status of a test that cannot be run or continued. Passed checks stay passed.
func Fail(status v1alpha1.RuntimeTestStatus, now time.Time, why string) v1alpha1.RuntimeTestStatus {
	status.Phase, status.Message = v1alpha1.TestFailed, phrase.Cut(why, 2048)
	status.CompletionTime = new(metav1.NewTime(now))
	status.Checks = slices.Clone(status.Checks)
	for i := range status.Checks {
		if c := &status.Checks[i]; c.Result == v1alpha1.CheckPending {
			c.Result, c.Message = v1alpha1.CheckUnknown, "The test ended before this check had a result."
		}
	}
	return status
}

// Judge returns the status of a started test. Passed checks stay passed, because pods are deleted when the job ends.
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
	if passed(status.Checks) {
		status.Communication = j.Exchange.Measured
		status.Phase = v1alpha1.TestPassed
		status.Message = fmt.Sprintf("The runtime works: %d ranks ran on %d pods, %d s after the test started.", seen.Ranks, seen.Ranks, int(seen.Now.Sub(status.StartTime.Time).Seconds()))
		status.CompletionTime = new(metav1.NewTime(seen.Now))
		return status
	}
	deadline := status.StartTime.Add(time.Duration(test.Spec.TimeoutSeconds) * time.Second)
	late := !seen.Now.Before(deadline)
	cause := j.cause()
	if !late && !j.over(cause, status.StartTime.Time) {
		status.Phase, status.Message = v1alpha1.TestRunning, "Kubeflow Trainer is creating the test's job."
		if j.job.Message != "" {
			status.Message = phrase.Cut(fmt.Sprintf("%s: %s", j.job.Phase, j.job.Message), 2048)
		}
		return status
	}
	why := j.fail(status.Checks, cause)
	if why == "" {
		why = j.untold()
		if late {
			why = fmt.Sprintf("Timed out after %d s. %s", test.Spec.TimeoutSeconds, why)
		}
	}
	return Fail(status, seen.Now, why)
}

// judge judges one test at one time.
type judge struct {
	Seen
	job v1alpha1.JobReportStatus
}

// pass marks a check as passed if it is.
func (j judge) pass(c *v1alpha1.RuntimeCheck) {
	message, milliseconds := "", int64(0)
	switch c.Name {
	case v1alpha1.CheckImagePull:
		if started := j.started(); started >= Workers+1 || started > 0 && (j.told() || j.reached()) {
			message = fmt.Sprintf("%d of %d pods pulled the image and started.", started, Workers+1)
		}
	case v1alpha1.CheckKeys:
		if j.told() || j.reached() {
			message = "The pods accepted the job's key."
		}
	case v1alpha1.CheckConnection:
		if j.told() || j.reached() {
			message, milliseconds = fmt.Sprintf("The launcher connected to all %d workers.", Workers), j.job.MPI.ConnectMilliseconds
		}
	case v1alpha1.CheckProcessStart:
		if len(j.Hosts) >= j.Ranks {
			message, milliseconds = fmt.Sprintf("MPI started %d of %d processes (ranks).", len(j.Hosts), j.Ranks), j.job.MPI.InitMilliseconds
		}
	case v1alpha1.CheckRanksDistinct:
		if j.told() {
			message = fmt.Sprintf("Each rank ran in its own pod: %s.", strings.Join(j.distinct(), ", "))
		}
	case v1alpha1.CheckCommunication:
		j.exchanged(c)
		return
	}
	if message != "" {
		c.Result, c.Message, c.Milliseconds = v1alpha1.CheckPass, message, milliseconds
	}
}

// started returns the number of pods whose containers have started.
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

// distinct returns the hosts that ranks printed, without duplicates.
func (j judge) distinct() []string {
	hosts := slices.Clone(j.Hosts)
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// told reports whether each rank printed a different host. Then all earlier checks passed.
func (j judge) told() bool { return j.Ranks > 0 && len(j.distinct()) >= j.Ranks }

// reached reports whether the launcher's agent connected to every worker.
func (j judge) reached() bool {
	return j.job.MPI.SlotsExpected > 0 && j.job.MPI.SlotsFound >= j.job.MPI.SlotsExpected
}

func (j judge) ended() bool { return j.job.CompletionTime != nil }

// cause returns the finding that the job cannot recover from, or nil.
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

// over reports whether a test that has not passed failed: because its job ended and the time to find a cause is over,
// or because the job cannot continue.
func (j judge) over(cause *v1alpha1.Finding, start time.Time) bool {
	if j.ended() {
		found := cause != nil && cause.Code != codes.Unknown || j.job.Phase == v1alpha1.PhaseSucceeded && len(j.Hosts) > 0
		return found || j.Now.Sub(j.job.CompletionTime.Time) >= patience
	}
	return cause != nil && j.Now.Sub(start) >= patience
}

// fail marks the check that failed because of a cause, and returns the test's message; "" if no check failed.
func (j judge) fail(checks []v1alpha1.RuntimeCheck, cause *v1alpha1.Finding) string {
	name, message := j.blame(cause)
	if name == "" {
		return message
	}
	for i := range checks {
		c := &checks[i]
		switch {
		case c.Name == name:
			c.Result, c.Message, c.Milliseconds = v1alpha1.CheckFail, phrase.Cut(message, 1024), 0
			if cause != nil {
				c.Finding, c.Remedies = cause.Code, remedies(*cause)
			}
		case c.Result != v1alpha1.CheckPending:
		case c.Name == v1alpha1.CheckImagePull && j.started() > 0 && name != v1alpha1.CheckImagePull:
			// It failed because of another problem before the remaining pods started.
			c.Result, c.Message = v1alpha1.CheckPass, fmt.Sprintf("%d of %d pods had pulled the image and started when the test ended.", j.started(), Workers+1)
		case c.Name == v1alpha1.CheckProcessStart && name == v1alpha1.CheckRanksDistinct && len(j.Hosts) > 0:
			c.Result, c.Message = v1alpha1.CheckPass, fmt.Sprintf("MPI started %d processes (ranks).", len(j.Hosts))
		default:
			c.Result, c.Message = v1alpha1.CheckUnknown, fmt.Sprintf("Unknown: the test failed at %s.", name)
		}
	}
	return fmt.Sprintf("%s: %s", name, message)
}

// blame returns the check that failed, and why. If the job could not start, it returns no check, and the cause if
// there is one.
func (j judge) blame(cause *v1alpha1.Finding) (v1alpha1.CheckName, string) {
	if j.told() {
		// The ranks started in different pods, so that all other checks passed.
		why := j.job.Message
		if cause != nil {
			why = cause.Summary
		}
		return v1alpha1.CheckCommunication, "The ranks started, but could not exchange messages. " + why
	}
	if cause != nil {
		if cause.Code == codes.NotEnoughSlots {
			return v1alpha1.CheckRanksDistinct, fmt.Sprintf("MPI did not read the hostfile: it had no slots for %d ranks, although there are %d pods.", j.Ranks, j.Ranks)
		}
		for _, name := range order {
			if slices.Contains(failing[name], cause.Code) {
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
		return v1alpha1.CheckRanksDistinct, fmt.Sprintf("The %d ranks ran on %d pods (%s) instead of %d.", len(j.Hosts), len(j.distinct()), strings.Join(j.distinct(), ", "), j.Ranks)
	case len(j.Hosts) > 0:
		return v1alpha1.CheckProcessStart, fmt.Sprintf("%d of %d processes (ranks) printed their host.", len(j.Hosts), j.Ranks)
	case j.ended() && j.started() > 0:
		return v1alpha1.CheckProcessStart, fmt.Sprintf("No process (rank) printed its host. The job is %s: %s", j.job.Phase, j.job.Message)
	case j.started() >= Workers+1:
		return v1alpha1.CheckProcessStart, "All pods run, but MPI did not start the processes (ranks), or they do not end. Run a job with this runtime, and read its launcher's log and its JobReport."
	}
	return "", ""
}

// remedies returns the remedies of a finding. A finding that means something else in a test has other remedies: a
// test runs as many ranks as there are slots.
func remedies(cause v1alpha1.Finding) []v1alpha1.Remedy {
	if cause.Code != codes.NotEnoughSlots {
		return cause.Remedies
	}
	return []v1alpha1.Remedy{
		{
			Text:   "Use the runtime for the MPI library in the image: Open MPI 4 and 5, MPICH and Intel MPI each read the hostfile from another variable.",
			Action: "spec.runtimeRef",
		},
		{
			Text:   "In your own runtime, set the launcher's variable for the hostfile: OMPI_MCA_orte_default_hostfile for Open MPI 4, PRTE_MCA_prte_default_hostfile for 5, HYDRA_HOST_FILE for MPICH, I_MPI_HYDRA_HOST_FILE for Intel MPI.",
			Action: "PRTE_MCA_prte_default_hostfile=/etc/mpi/hostfile",
		},
	}
}

// untold describes the last observed state of the job.
func (j judge) untold() string {
	if j.Report == nil {
		return "Kubeflow Trainer did not create the test's pods; check that its controller runs."
	}
	text := fmt.Sprintf("The job was %s: %s", j.job.Phase, j.job.Message)
	if len(j.job.Findings) > 0 {
		text += " " + j.job.Findings[0].Summary
	}
	return text
}

// passed reports whether every check passed, or did not apply.
func passed(checks []v1alpha1.RuntimeCheck) bool {
	return len(checks) > 0 && !slices.ContainsFunc(checks, func(c v1alpha1.RuntimeCheck) bool {
		return c.Result != v1alpha1.CheckPass && c.Result != v1alpha1.CheckSkipped
	})
}
