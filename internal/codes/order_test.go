package codes_test

import (
	"testing"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
)

// TestOrderOfCauses has the rules of Moment.Outranks one by one.
func TestOrderOfCauses(t *testing.T) {
	of := func(code codes.Code, change ...func(*v1alpha1.Finding)) v1alpha1.Finding {
		f := v1alpha1.Finding{Code: code, Severity: v1alpha1.SeverityError}
		for _, c := range change {
			c(&f)
		}
		return f
	}
	exit := func(code int32) func(*v1alpha1.Finding) { return func(f *v1alpha1.Finding) { f.ExitCode = &code } }
	pod := func(name string) func(*v1alpha1.Finding) { return func(f *v1alpha1.Finding) { f.Pod = name } }
	rank := func(f *v1alpha1.Finding) { f.Rank = new(int32(2)) }
	logged := func(f *v1alpha1.Finding) { f.Evidence = []string{"the error", "the exit code"} }
	warning := func(f *v1alpha1.Finding) { f.Severity = v1alpha1.SeverityWarning }
	var (
		waits       = codes.Moment{}
		runs        = codes.Moment{Ran: true}
		runsAgain   = codes.Moment{Ran: true, Again: true}
		failed      = codes.Moment{Failed: true, Ran: true}
		failedAgain = codes.Moment{Failed: true, Ran: true, Again: true}
		failedEarly = codes.Moment{Failed: true}
		over        = codes.Moment{Failed: true, Ran: true, Over: true}
	)
	for name, test := range map[string]struct {
		at           codes.Moment
		found, known v1alpha1.Finding
		want         bool
	}{
		"1: own exit code after an attempt that lost a pod":    {failedAgain, of(codes.ApplicationFailed, exit(7)), of(codes.Evicted), true},
		"1: own exit code in the attempt that lost a pod":      {failed, of(codes.ApplicationFailed, exit(7)), of(codes.Evicted), false},
		"1: other exit code than that of the known cause":      {failedAgain, of(codes.ApplicationFailed, exit(7)), of(codes.OutOfMemory, exit(137)), true},
		"1: the same exit code, of a log that is not read yet": {failedAgain, of(codes.ApplicationFailed, exit(139)), of(codes.SegmentationFault, exit(139)), false},
		"1: own exit code after a connection was lost":         {failedAgain, of(codes.ApplicationFailed, exit(1)), of(codes.ConnectionLost), false},

		"2: the connection to a worker that was evicted":     {failed, of(codes.ConnectionLost), of(codes.Evicted), false},
		"2: the eviction of a worker that was lost":          {failed, of(codes.Evicted), of(codes.ConnectionLost), true},
		"2: the wrong network, of a worker that was deleted": {failed, of(codes.WrongInterface), of(codes.Preempted), false},
		"2: a rank that failed on a node that was away":      {failed, of(codes.Killed, rank), of(codes.NodeLost), true},
		"2: the deadline, of pods that match no node":        {failedEarly, of(codes.DeadlineExceeded), of(codes.NoMatchingNode), false},
		"2: the deadline, of an image that is missing":       {failedEarly, of(codes.DeadlineExceeded), of(codes.ImagePullFailed), false},
		"2: the deadline, after a slow start":                {failedEarly, of(codes.DeadlineExceeded), of(codes.SlowStart, warning), true},
		"2: the deadline, of a job that ran":                 {failed, of(codes.DeadlineExceeded), of(codes.NoMatchingNode), true},
		"2: the launcher that the deadline deleted":          {waits, of(codes.LauncherDeleted), of(codes.NoMatchingNode), false},
		"2: the deletion of the launcher that was evicted":   {runs, of(codes.LauncherDeleted, pod("l")), of(codes.Evicted, pod("l")), false},
		"2: the eviction of the launcher that was deleted":   {runs, of(codes.Evicted, pod("l")), of(codes.LauncherDeleted, pod("l")), true},
		"2: the deletion of a launcher after a worker's":     {runs, of(codes.LauncherDeleted, pod("l")), of(codes.Evicted, pod("w")), true},
		"2: the connection to a worker that was deleted":     {failed, of(codes.ConnectionLost), of(codes.WorkerDeleted), false},
		"2: the deletion of a worker that was lost":          {failed, of(codes.WorkerDeleted), of(codes.ConnectionLost), true},
		"2: the deletion of a worker that was evicted":       {runs, of(codes.WorkerDeleted, pod("w")), of(codes.Evicted, pod("w")), false},
		"2: a Job's pod after one that was evicted":          {runs, of(codes.WorkerDeleted, pod("pi-node-0-0-x2x4z")), of(codes.Evicted, pod("pi-node-0-0-q9f7b")), false},
		"2: another worker than the one that was evicted":    {runs, of(codes.WorkerDeleted, pod("pi-node-0-1-x2x4z")), of(codes.Evicted, pod("pi-node-0-0-q9f7b")), true},
		"2: daemons that did not start, of refused pods":     {failedEarly, of(codes.DaemonsNotStarted), of(codes.PodSecurityDenied), false},
		"2: no room for pods that were preempted":            {failed, of(codes.InsufficientResources), of(codes.Preempted), false},
		"2: no room for pods that were preempted, as it is":  {runs, of(codes.InsufficientResources), of(codes.Preempted), true},
		"2: no room after the launcher was deleted":          {failed, of(codes.InsufficientResources), of(codes.LauncherDeleted), true},

		"3: an image that is missing, after a lack of room":  {waits, of(codes.ImagePullFailed), of(codes.InsufficientResources), true},
		"3: a crash, after a pod was taken away":             {failed, of(codes.SegmentationFault, rank), of(codes.Evicted), true},
		"3: the deadline, after its warning":                 {failed, of(codes.DeadlineExceeded), of(codes.DeadlineNear, warning), true},
		"3: an eviction, after its node was cordoned":        {runs, of(codes.Evicted), of(codes.NodeCordoned, warning), true},
		"4: another cause in a later attempt":                {runsAgain, of(codes.OutOfMemory), of(codes.SegmentationFault), true},
		"4: another cause in the same attempt":               {runs, of(codes.OutOfMemory), of(codes.SegmentationFault), false},
		"5: a cause, after a consequence":                    {failed, of(codes.OutOfMemory), of(codes.ConnectionLost), true},
		"5: a consequence, after a cause":                    {failed, of(codes.Killed), of(codes.SegmentationFault), false},
		"5: the time limit, after the signal that it sent":   {failed, of(codes.TimeLimitExceeded), of(codes.Killed, rank), true},
		"5: the signal, after the time limit that sent it":   {failed, of(codes.Killed, rank), of(codes.TimeLimitExceeded), false},
		"5: an exit code, after a consequence":               {failed, of(codes.ApplicationFailed, exit(1)), of(codes.Killed), false},
		"5: a crash, after what its peers report":            {failed, of(codes.SegmentationFault), of(codes.WrongInterface), true},
		"5: the missing interpreter, after its exit code":    {failed, of(codes.ProgramMissing, exit(127), logged), of(codes.ProgramMissing, exit(127)), true},
		"5: anything, after nothing":                         {over, of(codes.ApplicationFailed, exit(1)), of(codes.Unknown), true},
		"6: a second cause of the same strength":             {failed, of(codes.BusError), of(codes.SegmentationFault), false},
		"6: the deadline's record stays when its pods go":    {over, of(codes.Unknown), of(codes.DeadlineExceeded), false},
		"6: an eviction's record stays when its pod is back": {over, of(codes.SegmentationFault), of(codes.Evicted), false},
	} {
		if got := test.at.Outranks(test.found, test.known); got != test.want {
			t.Errorf("%s: %s outranks %s: %t, want %t", name, test.found.Code, test.known.Code, got, test.want)
		}
	}
}

// TestOutlivesAttempt: what explains an attempt of a job outlives it, and what concerns its queue, its quota or how it ran does not.
func TestOutlivesAttempt(t *testing.T) {
	for code, want := range map[codes.Code]bool{
		codes.NoMatchingNode: true, codes.InsufficientResources: true, codes.VolumeClaimPending: true, codes.RDMANotOffered: true,
		codes.GangImpossible: true, codes.PodSecurityDenied: true, codes.ImagePullFailed: true, codes.OutOfMemory: true,
		codes.QueueNeverFits: false, codes.QueueGaveUp: false, codes.QuotaTooSmall: false, codes.GangNeverFits: false, codes.GangTimeout: false,
		codes.JobInvalid: false, codes.MemoryGrowing: false, codes.DeadlineExceeded: false, codes.LauncherDeleted: false,
	} {
		if got := codes.OutlivesAttempt(v1alpha1.Finding{Code: code, Severity: v1alpha1.SeverityError}); got != want {
			t.Errorf("%s outlives an attempt: %t, want %t", code, got, want)
		}
	}
	if codes.OutlivesAttempt(v1alpha1.Finding{Code: codes.NoMatchingNode, Severity: v1alpha1.SeverityInfo}) {
		t.Error("a consequence outlives an attempt")
	}
}
