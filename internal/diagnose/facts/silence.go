package facts

import (
	"time"

	"opendatahub.io/mpijob/internal/podstatus"
)

// QuietSince reports whether a pod that runs has said nothing for long, as far as its log was read.
func (f *Facts) QuietSince(pod Pod) bool {
	last := f.LastWord(pod)
	return !last.IsZero() && f.Seen.Now.Sub(last) >= f.Job.Lifecycle.SilentAfter
}

// LastWord is when a pod that runs has last said something, or began to run; zero where its log was not read.
func (f *Facts) LastWord(pod Pod) time.Time {
	if _, read := f.Evidence.Logs[pod.Name]; !read || !podstatus.IsRunning(pod.Pod) {
		return time.Time{}
	}
	last := pod.Log.LastAt
	for _, c := range pod.Status.ContainerStatuses {
		if running := c.State.Running; running != nil && running.StartedAt.After(last) {
			last = running.StartedAt.Time
		}
	}
	return last
}
