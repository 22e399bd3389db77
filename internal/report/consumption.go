package report

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/podstatus"
	"opendatahub.io/mpijob/internal/times"
)

// consumption adds to what was counted before what pods have held since. A pod that has vanished since held it until
// now: passes follow what happens to pods, so that it went just now. After a time without an operator, vanishedBy bounds it.
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
		if isSetBack(since, m.now) && (m.outcome.Finish == nil || holds(m.before.Consumption)) {
			total.Until = *at(m.now)
			total.Steps = slices.DeleteFunc(total.Steps, func(s v1alpha1.ConsumptionStep) bool { return !s.Time.Time.Before(m.now) })
			total.Steps = append(total.Steps, stepOf(total, m.now))
		}
		return &total
	}
	if len(total.Steps) == 0 && !isNone(stepOf(total, since)) {
		// An earlier version counted without steps.
		total.Steps = []v1alpha1.ConsumptionStep{{Time: *at(times.Earlier(m.firstHeld(), since))}}
	}
	groups := m.heldSince(since)
	steps := total.Steps
	if !since.IsZero() {
		steps = append(steps, stepOf(total, since))
	}
	for _, when := range changes(groups, since, m.now) {
		until := total
		until.GPUSeconds = maps.Clone(total.GPUSeconds)
		for _, group := range groups {
			group.addTo(&until, group.secondsUntil(when))
		}
		steps = append(steps, stepOf(until, when))
	}
	total.Held = corev1.ResourceList{}
	for _, group := range groups {
		group.addTo(&total, group.secondsUntil(m.now))
		group.addHeld(total.Held)
	}
	if before := m.before.Consumption; before != nil && m.outcome.Finish != nil && sameTotals(*before, total) {
		// A finished job that holds nothing any more is not one of later periods.
		kept := *before.DeepCopy()
		kept.Held = total.Held
		return &kept
	}
	total.Until, total.Steps = *at(m.now), fewerSteps(append(steps, stepOf(total, m.now)))
	return &total
}

// Holds reports whether the pods of a job held something when its record was written. The pods of a finished job may.
func Holds(record *v1alpha1.JobReport) bool { return holds(record.Status.Consumption) }

func holds(c *v1alpha1.Consumption) bool { return c != nil && len(c.Held) > 0 }

// sameTotals reports whether nothing was added to what was consumed. Totals do not shrink.
func sameTotals(old, now v1alpha1.Consumption) bool {
	for name, seconds := range now.GPUSeconds {
		if old.GPUSeconds[name] != seconds {
			return false
		}
	}
	return old.CPUCoreSeconds == now.CPUCoreSeconds && old.MemoryGiBSeconds == now.MemoryGiBSeconds
}

// heldSince returns what the pods of the job, initializers included, have held since a time, by what each of them requests.
func (m maker) heldSince(since time.Time) []held {
	var groups []held
	launcher, worker := podspec.Requests(m.job.Launcher.Template.Spec), podspec.Requests(m.job.Workers.Template.Spec)
	// rest is what was held at the time, less what the pods hold that have been there since.
	rest := corev1.ResourceList{}
	if before := m.before.Consumption; before != nil {
		podspec.Add(rest, before.Held, 1)
	}
	hadEnded := map[string]bool{}
	for _, old := range m.before.Pods {
		hadEnded[old.Name] = old.Phase == string(corev1.PodSucceeded) || old.Phase == string(corev1.PodFailed)
	}
	there := map[string]bool{}
	add := func(pod *corev1.Pod, template corev1.ResourceList) {
		requests := podspec.Held(pod)
		if len(requests) == 0 {
			requests = template
		}
		i := slices.IndexFunc(groups, func(h held) bool { return maps.EqualFunc(h.requests, requests, sameQuantity) })
		if i < 0 {
			i, groups = len(groups), append(groups, held{requests: requests})
		}
		groups[i].addPod(m, pod, since)
		if started := pod.Status.StartTime; started != nil && !started.After(since) && !hadEnded[pod.Name] {
			there[pod.Name] = true
			podspec.Add(rest, requests, -1)
		}
	}
	for _, pod := range m.seen.LauncherPods {
		add(pod, launcher)
	}
	for _, workers := range [][]jobstate.Worker{m.seen.Workers, m.seen.Replaced} {
		for _, w := range workers {
			add(w.Pod, worker)
		}
	}
	for _, pod := range m.seen.Initializers {
		add(pod, nil)
	}
	hasVanished := slices.ContainsFunc(m.before.Pods, func(old v1alpha1.PodStatus) bool {
		return !there[old.Name] && (old.Phase == string(corev1.PodRunning) || old.Phase == terminating)
	})
	if !since.IsZero() && hasVanished {
		maps.DeleteFunc(rest, func(_ corev1.ResourceName, quantity resource.Quantity) bool { return quantity.Sign() <= 0 })
		vanished := held{requests: rest}
		vanished.add(since, m.vanishedBy(since))
		groups = append(groups, vanished)
	}
	return groups
}

func sameQuantity(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }

// vanishedBy returns until when pods held resources at most that have vanished since a time: until the job or its batch Jobs ended or
// were suspended, or for an hour. A leader writes the record of a job at least once an hour: of a longer time nothing is known.
func (m maker) vanishedBy(since time.Time) time.Time {
	until := times.Earlier(m.now, since.Add(time.Hour))
	bound := func(when time.Time) {
		if when.After(since) {
			until = times.Earlier(until, when)
		}
	}
	if m.outcome.Finish != nil {
		bound(m.outcome.Finish.At)
	}
	for _, owner := range []*batchv1.Job{m.seen.Launcher, m.seen.WorkerJob} {
		if owner == nil {
			continue
		}
		for _, c := range owner.Status.Conditions {
			if c.Status == corev1.ConditionTrue && slices.Contains([]batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed, batchv1.JobSuspended}, c.Type) {
				bound(c.LastTransitionTime.Time)
			}
		}
	}
	return until
}

// firstHeld returns when the job first held resources, as far as a record without steps has it.
func (m maker) firstHeld() time.Time {
	for _, when := range []*metav1.Time{m.before.RunningTime, m.before.StartTime} {
		if when != nil {
			return when.Time
		}
	}
	return m.now
}

// closedConsumption returns what a job has consumed that was deleted while its pods held resources, before its end or after it.
// A leader writes the record of such a job at least once an hour: of a longer time nothing is known.
func (m maker) closedConsumption() *v1alpha1.Consumption {
	before := m.before.Consumption
	if !holds(before) {
		return before
	}
	total := *before.DeepCopy()
	until := times.Earlier(m.now, before.Until.Add(time.Hour))
	if !until.After(before.Until.Time) {
		total.Held = nil
		return &total
	}
	if total.GPUSeconds == nil {
		total.GPUSeconds = map[string]int64{}
	}
	held{requests: total.Held}.addTo(&total, until.Sub(before.Until.Time).Seconds())
	total.Steps = fewerSteps(append(total.Steps, stepOf(*before, before.Until.Time), stepOf(total, until)))
	total.Until, total.Held = *at(until), nil
	return &total
}

// held is what pods have held that request the same.
type held struct {
	requests corev1.ResourceList
	// spans are from when until when each pod held it.
	spans [][2]time.Time
	// pods is how many pods hold it now.
	pods int64
}

func (h *held) addPod(m maker, pod *corev1.Pod, since time.Time) {
	if pod.Status.StartTime != nil && !podstatus.HasEnded(pod) {
		h.pods++
	}
	h.add(m.heldBy(pod, since))
}

func (h *held) add(from, until time.Time) {
	if until.After(from) {
		h.spans = append(h.spans, [2]time.Time{from, until})
	}
}

// secondsUntil returns for how many seconds the pods together have held it up to a time.
func (h held) secondsUntil(when time.Time) (seconds float64) {
	for _, span := range h.spans {
		seconds += max(0, times.Earlier(span[1], when).Sub(span[0]).Seconds())
	}
	return seconds
}

// addTo adds what is held for a number of seconds.
func (h held) addTo(total *v1alpha1.Consumption, seconds float64) {
	total.CPUCoreSeconds = plus(total.CPUCoreSeconds, h.requests.Cpu().AsApproximateFloat64()*seconds)
	total.MemoryGiBSeconds = plus(total.MemoryGiBSeconds, h.requests.Memory().AsApproximateFloat64()/(1<<30)*seconds)
	for _, name := range devices(h.requests) {
		if _, known := total.GPUSeconds[name]; !known && len(total.GPUSeconds) >= maxDevices {
			continue
		}
		quantity := h.requests[corev1.ResourceName(name)]
		total.GPUSeconds[name] = plus(total.GPUSeconds[name], quantity.AsApproximateFloat64()*seconds)
	}
}

// addHeld adds what the pods hold now to a list.
func (h held) addHeld(list corev1.ResourceList) {
	if h.pods == 0 {
		return
	}
	names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	for i, name := range devices(h.requests) {
		if i < maxDevices {
			names = append(names, corev1.ResourceName(name))
		}
	}
	for _, name := range names {
		quantity, found := h.requests[name]
		if !found || quantity.IsZero() {
			continue
		}
		sum := list[name]
		quantity = quantity.DeepCopy() // the pods in a cache share it
		quantity.Mul(h.pods)
		sum.Add(quantity)
		if _, known := list[name]; known || len(list) < maxDevices+2 {
			list[name] = sum
		}
	}
}

const (
	// maxDevices is how many kinds of devices are counted.
	maxDevices = 16
	// maxSteps is how many steps a record has, and maxStepBytes is how many bytes they take: names of devices may be long.
	maxSteps     = 64
	maxStepBytes = 8 << 10
)

// changes returns when pods began or ended to hold resources between two times, in order.
func changes(groups []held, since, now time.Time) []time.Time {
	var all []time.Time
	for _, group := range groups {
		for _, span := range group.spans {
			for _, when := range span {
				if when.After(since) && when.Before(now) {
					all = append(all, when)
				}
			}
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return slices.CompactFunc(all, time.Time.Equal)
}

func stepOf(total v1alpha1.Consumption, when time.Time) v1alpha1.ConsumptionStep {
	step := v1alpha1.ConsumptionStep{Time: *at(when), CPUCoreSeconds: total.CPUCoreSeconds, MemoryGiBSeconds: total.MemoryGiBSeconds}
	for name, seconds := range total.GPUSeconds {
		if seconds == 0 {
			continue
		}
		if step.GPUSeconds == nil {
			step.GPUSeconds = map[string]int64{}
		}
		step.GPUSeconds[name] = seconds
	}
	return step
}

// fewerSteps returns the steps without the last one, the current totals, and without those that are on the line between their
// neighbors, and as few as a record may have.
func fewerSteps(steps []v1alpha1.ConsumptionStep) []v1alpha1.ConsumptionStep {
	// rounding is the distance from the line that the rounding of totals causes.
	const rounding = 1
	bytes := 0
	for _, step := range steps {
		bytes += stepSize(step)
	}
	for len(steps) > 2 {
		least, distance := 1, math.Inf(1)
		for i := 1; i < len(steps)-1; i++ {
			if d := distanceFromLine(steps[i-1], steps[i], steps[i+1]); d < distance {
				least, distance = i, d
			}
		}
		if distance > rounding && len(steps)-1 <= maxSteps && bytes <= maxStepBytes {
			break
		}
		bytes -= stepSize(steps[least])
		steps = slices.Delete(steps, least, least+1)
	}
	if !slices.ContainsFunc(steps, func(s v1alpha1.ConsumptionStep) bool { return !isNone(s) }) {
		return nil
	}
	return steps[:len(steps)-1]
}

// isNone reports whether nothing was consumed up to a step.
func isNone(step v1alpha1.ConsumptionStep) bool {
	return step.CPUCoreSeconds == 0 && step.MemoryGiBSeconds == 0 && len(step.GPUSeconds) == 0
}

// stepSize returns about how many bytes of JSON a step takes.
func stepSize(step v1alpha1.ConsumptionStep) int {
	bytes := len(`{"time":"2006-01-02T15:04:05Z","cpuCoreSeconds":1234567,"memoryGiBSeconds":1234567,"gpuSeconds":{}},`)
	for name := range step.GPUSeconds {
		bytes += len(name) + len(`"":1234567,`)
	}
	return bytes
}

// distanceFromLine returns how far the totals of a step are from the line between two others, at most.
func distanceFromLine(a, b, c v1alpha1.ConsumptionStep) float64 {
	share := 0.0
	if length := c.Time.Sub(a.Time.Time); length > 0 {
		share = float64(b.Time.Sub(a.Time.Time)) / float64(length)
	}
	distance := 0.0
	compare := func(a, b, c int64) {
		distance = max(distance, math.Abs(float64(b-a)-share*float64(c-a)))
	}
	compare(a.CPUCoreSeconds, b.CPUCoreSeconds, c.CPUCoreSeconds)
	compare(a.MemoryGiBSeconds, b.MemoryGiBSeconds, c.MemoryGiBSeconds)
	for name, seconds := range c.GPUSeconds {
		compare(a.GPUSeconds[name], b.GPUSeconds[name], seconds)
	}
	return distance
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

// heldBy returns from when until when a pod had its place on a node since a time. The times are equal if it had none.
func (m maker) heldBy(pod *corev1.Pod, since time.Time) (from, until time.Time) {
	if pod.Status.StartTime == nil {
		return from, until
	}
	from, until = times.Later(pod.Status.StartTime.Time, since), m.now
	if podstatus.HasEnded(pod) {
		until = from
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Terminated != nil {
				until = times.Later(until, c.State.Terminated.FinishedAt.Time)
			}
		}
	}
	return from, times.Earlier(m.now, until)
}
