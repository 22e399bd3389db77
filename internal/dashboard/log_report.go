package dashboard

import (
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/mpi"
)

// recall returns the lines in a job's report.
func recall(job jobs.Job, options logstream.Options) []logstream.Line {
	failure := job.Status().Failure
	if failure == nil {
		return nil
	}
	options.Hosts = job.Hosts()
	places := map[string]logstream.Place{}
	for _, pod := range job.Status().Pods {
		places[pod.Name] = logstream.Place{Role: mpi.Role(pod.Role), Index: int(pod.Index)}
	}
	return logstream.Recall(failure.LogTail, places, options)
}
