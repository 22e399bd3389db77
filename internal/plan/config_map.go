package plan

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// config returns the ConfigMap with the hostfile and discover_hosts.sh, or nil if it is up to date.
func config(job mpi.Job, seen jobstate.Observed, settings Settings) Object {
	data := map[string]string{
		mpi.HostfileKey:      implementation.For(job.Implementation).Hostfile(job.Hosts(settings.ClusterDomain)),
		mpi.DiscoverHostsKey: discoverHosts(job, seen, settings),
	}
	if have := seen.Config; have != nil && maps.Equal(have.Data, data) && jobstate.IsRecorded(job, seen) {
		return nil
	}
	return configOf(job, seen, data)
}

// attemptRecord returns the change of the ConfigMap that only updates the record of the launcher's attempts, or nil.
func attemptRecord(job mpi.Job, seen jobstate.Observed) Object {
	if seen.Config == nil || jobstate.IsRecorded(job, seen) {
		return nil
	}
	return configOf(job, seen, seen.Config.Data)
}

func configOf(job mpi.Job, seen jobstate.Observed, data map[string]string) Object {
	var uid types.UID
	if seen.Config != nil {
		uid = seen.Config.UID
	}
	object := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: meta(job, job.ConfigName(), uid),
		Data:       data,
	}
	if record := jobstate.AttemptRecord(job, seen); len(record) > 0 {
		object.Annotations = record
	}
	return object
}

// discoverHosts returns the script that elastic programs run to list the current hosts (Elastic Horovod's
// --host-discovery-script): the hosts of running workers, by index.
func discoverHosts(job mpi.Job, seen jobstate.Observed, settings Settings) string {
	var script strings.Builder
	script.WriteString("#!/bin/sh\n")
	if job.Launcher.RunsRanks {
		script.WriteString("echo " + job.HostName(job.LauncherHost(), settings.ClusterDomain) + "\n")
	}
	for _, worker := range seen.Workers {
		if worker.Index < int(job.Workers.Count) && podstatus.IsRunning(worker.Pod) {
			script.WriteString("echo " + job.HostName(worker.Pod.Name, settings.ClusterDomain) + "\n")
		}
	}
	return script.String()
}
