package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/times"
)

// Why there is no estimate of a job's end.
const (
	tooEarly    = "TooEarly"
	standsStill = "StandsStill"
	wentBack    = "WentBack"
)

// What an estimate of a job's end needs.
const (
	// whole is a share of the work that is all of it.
	whole = 1_000_000
	// leastShare is how much of the work was done, in leastSteps steps and leastTime, since the progress was first read.
	leastShare = whole / 50
	leastSteps = 3
	leastTime  = time.Minute
	// longestEstimate is the longest time that is estimated.
	longestEstimate = 366 * 24 * time.Hour
)

// endEstimate returns when a running job is expected to end, from the progress in its report: nil if there is none.
func (m maker) endEstimate(status v1alpha1.JobReportStatus) *v1alpha1.EndEstimate {
	if status.Phase != v1alpha1.PhaseRunning || status.Training == nil {
		return nil
	}
	printed := times.Earlier(m.now, status.Training.At.Time)
	done, _, known := curves.ShareDone(*status.Training)
	share := int32(math.Round(done * whole))
	if !known || slices.ContainsFunc(status.PhaseTimes, func(t v1alpha1.PhaseTime) bool {
		// What was printed before the job was suspended and resumed is no progress of this run.
		return t.Phase == v1alpha1.PhaseRunning && printed.Before(t.Since.Time)
	}) {
		return nil
	}
	isNew := m.before.Training == nil || status.Training.At.After(m.before.Training.At.Time)
	estimate := m.before.EndEstimate.DeepCopy()
	switch {
	case estimate != nil && estimate.Attempt != status.Run.Attempts && !isNew:
		// The progress is that of the attempt before.
		estimate.From, estimate.By, estimate.Reason = nil, nil, tooEarly
		estimate.Message = endText(*estimate)
		return estimate
	case estimate == nil || estimate.Attempt != status.Run.Attempts:
		estimate = &v1alpha1.EndEstimate{First: share, FirstAt: *at(printed), Reached: share, ReachedAt: *at(printed), Attempt: status.Run.Attempts}
	case share < estimate.Reached:
		estimate.Reason = wentBack
	case share > estimate.Reached:
		step := max(printed.Sub(estimate.ReachedAt.Time), 0)
		estimate.LongestStepSeconds = max(estimate.LongestStepSeconds, int64(step.Seconds()))
		estimate.Reached, estimate.ReachedAt, estimate.Steps = share, *at(printed), min(estimate.Steps, math.MaxInt32-1)+1
	}
	estimate.From, estimate.By = nil, nil
	if estimate.Reason != wentBack {
		from, by, reason := endOf(*estimate, m.now)
		if estimate.Reason = reason; reason == "" {
			estimate.From, estimate.By = at(from), at(by)
		}
	}
	estimate.Message = phrase.Limit(endText(*estimate), maxEstimateMessage)
	return estimate
}

// endOf returns the limits of the time at which work ends that goes on at its average pace, or why that is unknown. The limits are a
// tenth of the remaining time apart from the average pace, and the later one allows for one more step: programs print an epoch at its
// begin or at its end.
func endOf(e v1alpha1.EndEstimate, now time.Time) (from, by time.Time, reason string) {
	done, took := float64(e.Reached-e.First), e.ReachedAt.Sub(e.FirstAt.Time)
	if e.Steps < leastSteps || done < leastShare || took < leastTime {
		return from, by, tooEarly
	}
	left := float64(whole-e.Reached) / done * took.Seconds()
	if left > longestEstimate.Seconds() {
		return from, by, tooEarly
	}
	step := time.Duration(e.LongestStepSeconds) * time.Second
	remaining := time.Duration(left * float64(time.Second))
	from, by = e.ReachedAt.Add(remaining-remaining/10), e.ReachedAt.Add(remaining+remaining/10+step)
	if now.Sub(e.ReachedAt.Time) > max(2*step, leastTime) || now.After(by) {
		return from, by, standsStill
	}
	return times.Later(from, now), by, ""
}

// endText describes an estimate of a job's end.
func endText(e v1alpha1.EndEstimate) string {
	percent := strconv.FormatFloat(math.Floor(float64(e.Reached)/whole*1000)/10, 'f', -1, 64) + "%"
	switch e.Reason {
	case tooEarly:
		return fmt.Sprintf("No estimate of the end: the progress is too short to extrapolate (%s).", percent)
	case standsStill:
		return fmt.Sprintf("No estimate of the end: no progress since %s UTC (%s).", e.ReachedAt.UTC().Format("2006-01-02 15:04:05"), percent)
	case wentBack:
		return "No estimate of the end: the program printed less progress than before, so that it is not that of the whole job."
	}
	return fmt.Sprintf("Expected end: %s UTC, by the average pace so far (%s).", period(e.From.Time, e.By.Time), percent)
}
