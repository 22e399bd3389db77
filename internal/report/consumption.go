package report

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/podstatus"
	"opendatahub.io/mpijob/internal/times"
)

// consumption adds to what was counted before what pods have held since. A pod that has vanished since held it until
// now: passes follow what happens to pods, so that it went just now.
func (m maker) consumption() *v1alpha1.Consumption {
	total := v1alpha1.Consumption{GPUSeconds: map[string]int64{}}
	var since time.Time
	if before := m.before.Consumption; before != nil {
		total, since = *before.DeepCopy(), before.Until.Time
		if total.GPUSeconds == nil {
			total.GPUSeconds = map[string]int64{}
		}
	}
	if !m.now.After(since) {
		// The clock went back: what was counted stays. After a large step, counting goes on from the new time.
		if isSetBack(since, m.now) {
			total.Until = *at(m.now)
		}
		return &total
	}
	launcher, worker := held{requests: podspec.Requests(m.job.Launcher.Template.Spec)}, held{requests: podspec.Requests(m.job.Workers.Template.Spec)}
	there := map[string]bool{}
	for _, pod := range m.seen.LauncherPods {
		there[pod.Name] = true
		launcher.seconds += m.ranFor(pod, since)
	}
	for _, w := range m.seen.Workers {
		there[w.Pod.Name] = true
		worker.seconds += m.ranFor(w.Pod, since)
	}
	for _, old := range m.before.Pods {
		if there[old.Name] || since.IsZero() || old.Phase != string(corev1.PodRunning) && old.Phase != terminating {
			continue
		}
		if old.Role == string(mpi.RoleLauncher) {
			launcher.seconds += m.now.Sub(since).Seconds()
		} else {
			worker.seconds += m.now.Sub(since).Seconds()
		}
	}
	launcher.addTo(&total)
	worker.addTo(&total)
	total.Until = *at(m.now)
	return &total
}

// held is what pods of one role have held for how many seconds, all of them together.
type held struct {
	requests corev1.ResourceList
	seconds  float64
}

func (h held) addTo(total *v1alpha1.Consumption) {
	const most = 16
	total.CPUCoreSeconds = plus(total.CPUCoreSeconds, h.requests.Cpu().AsApproximateFloat64()*h.seconds)
	total.MemoryGiBSeconds = plus(total.MemoryGiBSeconds, h.requests.Memory().AsApproximateFloat64()/(1<<30)*h.seconds)
	for _, name := range devices(h.requests) {
		if _, known := total.GPUSeconds[name]; !known && len(total.GPUSeconds) >= most {
			continue
		}
		quantity := h.requests[corev1.ResourceName(name)]
		total.GPUSeconds[name] = plus(total.GPUSeconds[name], quantity.AsApproximateFloat64()*h.seconds)
	}
}

// plus adds an amount, rounded, to a total. Totals stop growing at 2^60.
func plus(total int64, amount float64) int64 {
	const most = 1 << 60
	if !(amount < most) { // or NaN
		return most
	}
	return min(total+int64(max(0, amount)+0.5), most)
}

// devices are the resources that are no part of every machine, by name, such as nvidia.com/gpu.
func devices(list corev1.ResourceList) []string {
	var names []string
	for name := range list {
		if strings.Contains(string(name), "/") {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names
}

// ranFor is how many seconds of the time since a pod had its place on a machine.
func (m maker) ranFor(pod *corev1.Pod, since time.Time) float64 {
	if pod.Status.StartTime == nil {
		return 0
	}
	from, until := times.Later(pod.Status.StartTime.Time, since), m.now
	if podstatus.HasEnded(pod) {
		until = from
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Terminated != nil {
				until = times.Later(until, c.State.Terminated.FinishedAt.Time)
			}
		}
	}
	until = times.Earlier(m.now, until)
	return max(0, until.Sub(from).Seconds())
}
