package codes

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// Moment is when a finding is compared with one that the record of its job has from before.
type Moment struct {
	// Failed is set if the job has failed, and Over if its record was complete already.
	Failed, Over bool
	// Ran is set if the job's launcher has run, and Again if it was started again since the finding of the record.
	Ran, Again bool
}

// Outranks reports whether a finding is the cause, although the record has another one. This is the order of causes, and the first
// rule that applies decides:
//
//  1. A later attempt: the program ended by itself, and not as it did for the known cause.
//  2. Who acted: what follows from the known cause never replaces it, and what the known cause follows from always does.
//  3. What passes: a known cause that neither ended an attempt nor led to what is found now is over.
//  4. A later attempt that has a cause of its own.
//  5. What explains more: see [Strength]. Of equally strong ones, what the pod of a problem shows precedes what other pods
//     report of it, and what a log shows precedes what an exit code suggests.
//  6. When it began: what was known first.
//
// Logs, statuses and pods disappear, but not what they have shown.
func (at Moment) Outranks(found, known v1alpha1.Finding) bool {
	switch {
	case at.Again && endedOtherwise(found, known):
		return true
	case at.follows(found, known):
		return false
	case !at.Over && !Has(known.Code, EndsAttempt):
		return true
	case at.follows(known, found):
		return true
	case at.Again && StrengthOf(found.Code) == Cause && StrengthOf(known.Code) == Cause:
		return true
	}
	return precision(found) > precision(known)
}

// follows reports whether a finding is what another one leads to.
func (at Moment) follows(effect, cause v1alpha1.Finding) bool {
	switch {
	case cause.Code == NodeLost && effect.Rank != nil:
		// A busy node may not respond for a while. That does not explain a rank that failed.
		return false
	case isDeletion(effect) && !isDeletion(cause) && Has(cause.Code, RemovesPods) && isOfSamePlace(effect.Pod, cause.Pod):
		// The pod that was evicted or preempted is deleted a moment later.
		return true
	case Has(effect.Code, FollowsPodLoss) && (Has(cause.Code, RemovesPods) || at.Failed && Has(cause.Code, BlocksPods)):
		return true
	case Has(effect.Code, BlocksScheduling) && Has(cause.Code, RemovesPods):
		// Pods that had to go find no room when they come back. That keeps a job that has not failed.
		return at.Failed && cause.Code != LauncherDeleted
	case effect.Code == DeadlineExceeded || effect.Code == LauncherDeleted || effect.Code == Unknown:
		return !at.Ran && keepsFromStarting(cause)
	}
	return false
}

// randomSuffix is the part of a pod's name that its Job appends (k8s.io/apimachinery/pkg/util/rand, the alphabet of String).
var randomSuffix = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

// isOfSamePlace reports whether two names are of one pod, or of a Job's pod with an index and of the one that replaced it.
func isOfSamePlace(a, b string) bool {
	place := randomSuffix.ReplaceAllString(a, "")
	return a == b || place != a && place == randomSuffix.ReplaceAllString(b, "")
}

// isDeletion reports whether a finding is that something else deleted a pod.
func isDeletion(f v1alpha1.Finding) bool { return f.Code == LauncherDeleted || f.Code == WorkerDeleted }

// keepsFromStarting reports whether a finding explains that a job has not started.
func keepsFromStarting(f v1alpha1.Finding) bool {
	return f.Code != LauncherDeleted && f.Code != DeadlineExceeded &&
		(Has(f.Code, BlocksScheduling) || Has(f.Code, BlocksPods) || f.Severity == v1alpha1.SeverityError && StrengthOf(f.Code) == Cause)
}

// OutlivesAttempt reports whether a finding explains why an attempt of a job did not get further: what kept its pods from being created,
// scheduled or started, or what ended its launcher. It stays of use while the job waits in its queue for another attempt, without the
// pods that showed it. What is found of a job in a queue at any time is no such finding.
func OutlivesAttempt(f v1alpha1.Finding) bool {
	if f.Severity == v1alpha1.SeverityInfo {
		return false
	}
	if f.Code == GangImpossible || Has(f.Code, EndsAttempt) || Has(f.Code, BlocksScheduling) || Has(f.Code, BlocksPods) {
		return true
	}
	return table[f.Code].Phase == v1alpha1.PhaseInitializing && keepsFromStarting(f)
}

// endedOtherwise reports whether the program ended by itself, and not as it did for the cause that is known: a pod was taken away, or the
// exit code was another one. If it was the same, the log may only not have been read yet.
func endedOtherwise(found, known v1alpha1.Finding) bool {
	if found.Code != ApplicationFailed || found.ExitCode == nil || StrengthOf(known.Code) != Cause {
		return false
	}
	return Has(known.Code, RemovesPods) || known.ExitCode != nil && *known.ExitCode != *found.ExitCode
}

// precision orders findings by what they explain: the higher, the more.
func precision(f v1alpha1.Finding) int {
	value := -4 * int(StrengthOf(f.Code))
	if IsEcho(f.Code) {
		value -= 2
	}
	if isGuess(f) {
		value--
	}
	return value
}

// IsEcho reports whether a code is mostly what other pods report of one where it began. A program's own error mostly is not, if
// nothing else is known by the time the job has failed.
func IsEcho(code Code) bool { return Has(code, FollowsPodLoss) && code != ApplicationFailed }

// isGuess reports whether an exit code is all that a cause is known from. A program that is missing has 127, and so has one that starts
// a script which lacks its interpreter: the log shows which.
func isGuess(f v1alpha1.Finding) bool {
	return f.Code == ProgramMissing && f.ExitCode != nil && len(f.Evidence) <= 1
}
