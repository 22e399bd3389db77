package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
)

// sidecars reports containers that keep a launcher's pod running after its program has ended.
func sidecars(p *input) []Finding {
	launcher := p.Launcher()
	spec := p.Template(mpi.RoleLauncher)
	if launcher == nil || p.Failed() || launcher.Status.Phase != corev1.PodRunning || len(spec.Containers) == 0 {
		return nil
	}
	var main *corev1.ContainerStateTerminated
	var running []string
	for _, c := range launcher.Status.ContainerStatuses {
		switch {
		case c.Name == spec.Containers[0].Name:
			main = c.State.Terminated
		case c.State.Running != nil:
			running = append(running, c.Name)
		}
	}
	const patience = 15 * time.Second
	if main == nil || len(running) == 0 || p.Seen.Now.Sub(main.FinishedAt.Time) < patience {
		return nil
	}
	figures := map[string]string{"container": strings.Join(running, ", ")}
	if slices.Contains(running, "istio-proxy") {
		figures["sidecarAction"] = p.field(mpi.RoleLauncher) + `.metadata.labels: {sidecar.istio.io/inject: "false"}`
	}
	f := p.find(codes.SidecarRunning, []facts.Pod{*launcher}, figures, fmt.Sprintf("Container %s ended with exit code %d at %s; %s is still running.", spec.Containers[0].Name, main.ExitCode, facts.TimeText(main.FinishedAt.Time), figures["container"]))
	f.ExitCode = &main.ExitCode
	return []Finding{f}
}

// failedSidecars reports sidecars that failed while the container of MPI ran, or so that the pod failed although
// this had ended well.
func failedSidecars(p *input) []Finding {
	var found []Finding
	for _, pod := range p.Pods {
		main := pod.MainStatus()
		if main == nil || pod.DeletionTimestamp != nil || !pod.Latest {
			continue
		}
		endedWell := main.State.Terminated != nil && main.State.Terminated.ExitCode == 0
		if main.State.Running == nil && (!endedWell || pod.Status.Phase != corev1.PodFailed) {
			continue
		}
		for _, c := range facts.ContainersOf(pod) {
			ended := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated)
			if !pod.IsSidecar(c.Name) || ended == nil || ended.ExitCode == 0 || endedWell && ended.ExitCode == facts.Terminated {
				continue
			}
			f := p.find(codes.SidecarFailed, []facts.Pod{pod}, map[string]string{"container": c.Name, "code": fmt.Sprint(ended.ExitCode), "whoLower": lower(pod.Title())})
			f.ExitCode = &ended.ExitCode
			f.Evidence = []string{fmt.Sprintf("Pod %s: container %s ended with exit code %d (%s), restarted %d times.", pod.Name, c.Name, ended.ExitCode, endReason(ended), c.RestartCount)}
			found = append(found, f)
		}
	}
	return found
}
