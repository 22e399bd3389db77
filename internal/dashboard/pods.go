package dashboard

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/podstatus"
)

// Pods are the pods of a job.
type Pods struct {
	Pods []Pod `json:"pods"`
	// Omitted is the number of pods that the report does not list.
	Omitted int32 `json:"omitted"`
	// NoUsage is why there is no current usage; empty if there is.
	NoUsage string `json:"noUsage,omitempty"`
}

// Pod is a pod of a job.
type Pod struct {
	Role   string `json:"role"`
	Index  int32  `json:"index"`
	Name   string `json:"name"`
	Node   string `json:"node,omitempty"`
	Phase  string `json:"phase"`
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	// Message explains the reason, as the kubelet or the scheduler reports it.
	Message  string     `json:"message,omitempty"`
	Restarts int32      `json:"restarts"`
	ExitCode *int32     `json:"exitCode,omitempty"`
	Ranks    string     `json:"ranks,omitempty"`
	Created  *time.Time `json:"created,omitempty"`
	IP       string     `json:"ip,omitempty"`
	Image    string     `json:"image,omitempty"`
	Requests string     `json:"requests,omitempty"`
	// CPU is used cores, Memory used bytes; null if unknown.
	CPU    *float64 `json:"cpu,omitempty"`
	Memory *int64   `json:"memory,omitempty"`
	// CPULimit and MemoryLimit are the limits, else the requests; 0 if there are none.
	CPULimit    float64 `json:"cpuLimit,omitempty"`
	MemoryLimit int64   `json:"memoryLimit,omitempty"`
}

// pods returns the pods of a job, from its report and as they are now.
func (s *Server) pods(c *call) (any, error) {
	job, err := c.findOrUID()
	if err != nil {
		return nil, err
	}
	status := job.Status()
	found := Pods{Pods: []Pod{}, Omitted: status.PodsOmitted}
	byName := map[string]int{}
	for _, pod := range status.Pods {
		byName[pod.Name] = len(found.Pods)
		found.Pods = append(found.Pods, Pod{
			Role: pod.Role, Index: pod.Index, Name: pod.Name, Node: pod.Node, Phase: pod.Phase, Ready: pod.Ready, Reason: pod.Reason,
			Restarts: pod.Restarts, ExitCode: pod.ExitCode, Ranks: pod.Ranks,
		})
	}
	if job.Object != nil {
		var live corev1.PodList
		// Without the right to read pods, the report is shown alone.
		err = c.api.List(c.ctx, &live, client.InNamespace(job.Namespace), client.MatchingLabels(job.PodLabels()))
		own := c.jobs.OwnPlace(c.ctx, job)
		for i := range live.Items {
			addLivePod(&found, byName, own, &live.Items[i])
		}
		if err != nil {
			found.NoUsage = unreadPods(err)
		} else {
			found.NoUsage = c.addUsage(&found, job)
		}
	}
	slices.SortStableFunc(found.Pods, func(a, b Pod) int { return cmp.Or(strings.Compare(a.Role, b.Role), cmp.Compare(a.Index, b.Index)) })
	return found, nil
}

// unreadPods describes why the pods are those of the report.
func unreadPods(err error) string {
	if apierrors.IsForbidden(err) {
		return "You may not read pods in this namespace. The pods are those of the job's report."
	}
	return phrase.Sentence("The pods are those of the job's report, because others cannot be read: " + err.Error())
}

// addUsage adds the current usage of pods from the metrics API. It returns why there is none.
func (c *call) addUsage(found *Pods, job jobs.Job) string {
	usage, err := c.jobs.PodUsage(c.ctx, job)
	if err != nil {
		if apierrors.IsForbidden(err) {
			return "You may not read the metrics of pods in this namespace."
		}
		if _, none := errors.AsType[*jobs.NoMetricsError](err); none {
			return "The cluster has no metrics API (metrics.k8s.io), so the usage of pods is unknown."
		}
		return phrase.Sentence("The metrics of pods cannot be read: " + err.Error())
	}
	for i := range found.Pods {
		pod := &found.Pods[i]
		if load, measured := usage[pod.Name]; measured {
			pod.CPU, pod.Memory = new(load.CPU.AsApproximateFloat64()), new(load.Memory.Value())
		}
	}
	return ""
}

func addLivePod(found *Pods, byName map[string]int, own func(*corev1.Pod) (logstream.Place, bool), live *corev1.Pod) {
	place, is := own(live)
	if !is {
		return
	}
	at, known := byName[live.Name]
	if !known {
		at = len(found.Pods)
		found.Pods = append(found.Pods, Pod{Role: string(place.Role), Index: int32(place.Index), Name: live.Name, Phase: string(live.Status.Phase), Ready: podstatus.IsReady(live)}) //nolint:gosec // an index of pods
	}
	pod := &found.Pods[at]
	created := live.CreationTimestamp.UTC()
	pod.Created, pod.IP, pod.Node = &created, live.Status.PodIP, cmp.Or(live.Spec.NodeName, pod.Node)
	pod.Message = podMessage(live)
	if len(live.Spec.Containers) > 0 {
		pod.Image = live.Spec.Containers[0].Image
		pod.Requests = jobs.ResourcesText(live.Spec.Containers[0].Resources)
	}
	requests := podspec.Requests(live.Spec)
	limits := live.Spec.Containers[0].Resources.Limits
	pod.CPULimit, pod.MemoryLimit = requests.Cpu().AsApproximateFloat64(), requests.Memory().Value()
	if cpu, set := limits[corev1.ResourceCPU]; set {
		pod.CPULimit = cpu.AsApproximateFloat64()
	}
	if memory, set := limits[corev1.ResourceMemory]; set {
		pod.MemoryLimit = memory.Value()
	}
}

// maxPodMessage is the maximum length of what a pod's status reports about a problem, in bytes.
const maxPodMessage = 600

// podMessage returns what the status of a pod reports about its problem; empty if it has none. A program can write the message
// with which its container ended, so that secrets are masked.
func podMessage(pod *corev1.Pod) string {
	message := pod.Status.Message
	if unschedulable, is := podstatus.Unschedulable(pod); is {
		message = cmp.Or(message, unschedulable)
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		text := ""
		switch state := status.State; {
		case state.Waiting != nil:
			text = state.Waiting.Message
		case state.Terminated != nil && state.Terminated.ExitCode != 0:
			text = state.Terminated.Message
		}
		if last := status.LastTerminationState.Terminated; text == "" && last != nil && last.ExitCode != 0 {
			text = "The run before ended with exit code " + strconv.Itoa(int(last.ExitCode)) + " (" + last.Reason + "). " + last.Message
		}
		message = cmp.Or(message, strings.TrimSpace(text))
	}
	return phrase.Cut(logs.Masker{}.Text(phrase.Limit(message, 4*maxPodMessage)), maxPodMessage)
}
