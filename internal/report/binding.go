package report

import (
	"fmt"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
)

// binding describes how ranks are bound to cores, by the latest report of the launcher's agent about its latest run; "" if none reported it.
func (m maker) binding() string {
	if used := m.evidence.Usage; used != nil && used.Launch != nil && used.Launch.Binding != nil && used.Launch.ConnectedAt >= m.runStart().UnixMilli() {
		return bindingText(*used.Launch.Binding, m.job.Workers.Count)
	}
	for summary := range m.launcherSummaries() {
		if summary.Binding != nil {
			return bindingText(*summary.Binding, m.job.Workers.Count)
		}
		break // earlier runs are over
	}
	return ""
}

// runStart returns when the launcher's container started last; zero if that is unknown.
func (m maker) runStart() time.Time {
	if pods := m.seen.LauncherPods; len(pods) > 0 {
		return podstatus.LatestStart(pods[len(pods)-1])
	}
	return time.Time{}
}

// bindingText describes a binding. Programs of the job can write what agents report.
func bindingText(b agentapi.Binding, workers int32) string {
	switch b.Policy {
	case agentapi.BindCore:
		if b.Hosts > 0 && b.Hosts < workers {
			return fmt.Sprintf("each rank to a core of its pod on %d of %s, others share cores", b.Hosts, phrase.Count(workers, "worker"))
		}
		return "each rank to a core of its pod"
	case agentapi.BindShared:
		return "none, cores are shared"
	case agentapi.BindHidden:
		return "none, MPI does not find the cores of its pod"
	case agentapi.BindSeveral:
		return "none, a rank may use several cores"
	case agentapi.BindVersion:
		return "none, this version of Open MPI cannot do it per pod"
	case agentapi.BindUser:
		return "as set: " + phrase.Limit(phrase.OneLine(b.By), agentapi.MaxBoundBy)
	}
	return ""
}
