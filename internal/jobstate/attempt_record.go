package jobstate

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/mpi"
)

// AttemptRecord returns the annotations of a job's ConfigMap that record the attempts of its launcher. Those that it has and does not need are
// "": applying it without them would not remove what others wrote.
func AttemptRecord(job mpi.Job, seen Observed) map[string]string {
	record := attemptRecord(job, seen)
	maps.DeleteFunc(record, func(name, value string) bool {
		if seen.Config != nil {
			_, has := seen.Config.Annotations[name]
			return value == "" && !has
		}
		return value == ""
	})
	return record
}

func attemptRecord(job mpi.Job, seen Observed) map[string]string {
	disrupted := disruptedAttempts(job, seen)
	if seen.Launcher == nil {
		// The next Job counts from the earlier attempts on, also if the last one was deleted for another reason.
		earlier := EarlierAttempts(seen)
		disrupted = slices.DeleteFunc(disrupted, func(attempt int32) bool { return attempt > earlier })
	}
	record := map[string]string{
		mpi.AnnotationDisrupted:       attemptsText(disrupted),
		mpi.AnnotationEarlierAttempts: numberText(EarlierAttempts(seen)),
	}
	record[mpi.AnnotationActiveSince], record[mpi.AnnotationActiveBefore] = activeRecord(job, seen)
	if !IsLauncherReplaced(job, seen) {
		return record
	}
	// Pods of the Job may be gone since the record was written.
	earlier := max(attemptsOfJob(job, seen), numberIn(recorded(seen, mpi.AnnotationEarlierAttempts)))
	record[mpi.AnnotationEarlierAttempts] = numberText(earlier)
	if job.Lifecycle.Deadline != nil {
		record[mpi.AnnotationActiveSince], record[mpi.AnnotationActiveBefore] = timeText(DeadlineFrom(job, seen)), ""
	}
	return record
}

// activeRecord returns the record of the time that a job was active whose launcher's Job was replaced: since when, and while it is suspended
// or evicted for how long. Batch Jobs start their deadline again when they are resumed, but such a job would get more time than it has.
func activeRecord(job mpi.Job, seen Observed) (since, before string) {
	from := activeSince(job, seen)
	if job.Lifecycle.Deadline == nil || EarlierAttempts(seen) == 0 {
		return timeText(from), ""
	}
	if from.IsZero() {
		from = DeadlineFrom(job, seen)
	}
	putBack := job.Lifecycle.Suspended || seen.Gang != nil && seen.Gang.Evict
	// Until its Job is suspended, its pods run.
	if isSuspended(seen.Launcher) || seen.Launcher == nil && putBack || from.IsZero() {
		return "", secondsText(usedTime(job, seen))
	}
	return timeText(from), ""
}

// usedTime returns for how long a job was active whose launcher's Job was replaced, as far as that is recorded.
func usedTime(j mpi.Job, o Observed) time.Duration {
	if since := activeSince(j, o); !since.IsZero() {
		return o.Now.Sub(since)
	}
	return activeBefore(j, o)
}

// activeBefore returns the recorded time that a job was active before it was suspended or evicted, 0 if there is none. Users can write
// annotations: a job was not active for longer than it exists.
func activeBefore(j mpi.Job, o Observed) time.Duration {
	seconds, err := strconv.ParseInt(recorded(o, mpi.AnnotationActiveBefore), 10, 32)
	if err != nil || EarlierAttempts(o) == 0 || seconds < 0 {
		return 0
	}
	return max(0, min(time.Duration(seconds)*time.Second, o.Now.Sub(j.Created)))
}

// IsRecorded reports whether a job's ConfigMap has the record of its launcher's attempts.
func IsRecorded(job mpi.Job, seen Observed) bool {
	for name, value := range AttemptRecord(job, seen) {
		if recorded(seen, name) != value {
			return false
		}
	}
	return true
}

// EarlierAttempts returns the number of attempts of launchers' Jobs that were replaced, before the Job that there is or is to be created.
func EarlierAttempts(seen Observed) int32 {
	if seen.Launcher != nil {
		return numberIn(seen.Launcher.Annotations[mpi.AnnotationEarlierAttempts])
	}
	return numberIn(recorded(seen, mpi.AnnotationEarlierAttempts))
}

// recordedDisruptions returns the attempts that do not count, as the job's ConfigMap and its launcher's Job list them, in order.
func recordedDisruptions(seen Observed) []int32 {
	listed := attemptsIn(recorded(seen, mpi.AnnotationDisrupted))
	if seen.Launcher != nil {
		listed = append(listed, attemptsIn(seen.Launcher.Annotations[mpi.AnnotationDisrupted])...)
	}
	slices.Sort(listed)
	listed = slices.Compact(listed)
	return listed[:min(len(listed), MostDisrupted)]
}

// activeSince returns the recorded time from which the deadline counts over several Jobs of the launcher, zero if there is none. Users can
// write annotations: a time before the job or after now is none.
func activeSince(j mpi.Job, o Observed) time.Time {
	since, err := time.Parse(time.RFC3339, recorded(o, mpi.AnnotationActiveSince))
	if err != nil || EarlierAttempts(o) == 0 || since.Before(j.Created) || since.After(o.Now) {
		return time.Time{}
	}
	return since
}

// recorded returns an annotation of the job's ConfigMap.
func recorded(seen Observed, annotation string) string {
	if seen.Config == nil {
		return ""
	}
	return seen.Config.Annotations[annotation]
}

// attemptsIn returns the numbers in a list of AnnotationDisrupted.
func attemptsIn(list string) (attempts []int32) {
	for text := range strings.SplitSeq(list, ",") {
		if number := numberIn(text); number > 0 {
			attempts = append(attempts, number)
		}
	}
	return attempts
}

// attemptsText returns a list of numbers for AnnotationDisrupted.
func attemptsText(attempts []int32) string {
	texts := make([]string, len(attempts))
	for i, attempt := range attempts {
		texts[i] = strconv.Itoa(int(attempt))
	}
	return strings.Join(texts, ",")
}

// numberIn returns the number of attempts in a text, 0 if it has none. Users can write annotations.
func numberIn(text string) int32 {
	const most = 1_000_000
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil || number < 0 || number > most {
		return 0
	}
	return int32(number)
}

// numberText returns a number of attempts as an annotation, "" for none.
func numberText(number int32) string {
	if number == 0 {
		return ""
	}
	return strconv.Itoa(int(number))
}

// secondsText returns a time as an annotation, rounded up; "" for none.
func secondsText(of time.Duration) string {
	if of <= 0 {
		return ""
	}
	return strconv.FormatInt(int64((of+time.Second-1)/time.Second), 10)
}

// timeText returns a time as an annotation, "" for none.
func timeText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
