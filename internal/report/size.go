package report

import (
	"encoding/json"
	"slices"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// MaxSize is how many bytes of JSON a record has at most, metadata included: its specification, and 256 KiB for the rest. The logs
// of its pods are not included; they have a limit of their own, MaxLogs.
const MaxSize = 256<<10 + maxSpecification

// MaxLogs is the highest limit for the compressed logs of a job's pods, in bytes. As JSON they take a third more: a report with them is
// half as large as what the API server accepts, 1.5 MiB.
const MaxLogs = 512 << 10

// What is kept of each part; the numbers are those of the API's schema, or less.
const (
	maxReason  = 256
	maxMessage = 2000
	// maxQueueMessage is the schema's limit of messages about a queue, which counts characters, with room for long
	// ones.
	maxQueueMessage = 1000
	maxCode         = 64
	maxPodReason    = 64
	maxDetail       = 500
	maxValue        = 32
	maxLogLines     = 200
	maxLogLine      = 1000
	maxTimeline     = 64
	maxFindings     = 8
	maxPods         = 2048

	// maxManifest is the size of a job's manifest. Quotes and line breaks have two bytes in JSON, and maxSpecification leaves
	// room for them.
	maxManifest      = 32 << 10
	maxSpecification = 40 << 10
	// maxStatus leaves room for metadata and links; maxTail is the share of the logs.
	maxStatus = MaxSize - maxSpecification - 12<<10
	maxTail   = 48 << 10
)

// fit keeps a status within maxStatus: logs get their share, pods the room that is left, those in trouble first. Should
// all the rest be too large by itself, which needs texts that no one writes, its least telling parts go.
func fit(status *v1alpha1.JobReportStatus) {
	pods, specification, logs := status.Pods, status.Specification, status.Logs
	status.Pods, status.Specification, status.Logs = nil, nil, nil // the specification and the logs have limits of their own
	defer func() { status.Specification, status.Logs = specification, logs }()
	if status.Failure != nil {
		status.Failure.LogTail = lastBytes(status.Failure.LogTail, maxTail)
	}
	const rest = 160 << 10
	for _, shrink := range []func(){
		func() {
			for i := range status.Findings {
				status.Findings[i].Evidence = status.Findings[i].Evidence[:min(2, len(status.Findings[i].Evidence))]
			}
		},
		func() {
			status.Timeline = slices.Delete(status.Timeline, min(4, len(status.Timeline)), max(min(4, len(status.Timeline)), len(status.Timeline)-8))
		},
		func() { status.Findings = status.Findings[:min(1, len(status.Findings))] },
		func() {
			if status.Failure != nil {
				status.Failure.LogTail = nil
			}
		},
	} {
		if size(status) <= rest {
			break
		}
		shrink()
	}
	status.Pods = podsWithin(pods, maxStatus-size(status))
	if len(status.Pods) < len(pods) {
		status.Pods = podsWithin(inBrief(pods), maxStatus-size(withoutPods(*status)))
	}
	status.PodsOmitted = int32(len(pods) - len(status.Pods))
}

// podsWithin are as many pods as take so many bytes, in their order.
func podsWithin(pods []v1alpha1.PodStatus, bytes int) []v1alpha1.PodStatus {
	order := make([]int, len(pods))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return worth(pods[a]) - worth(pods[b]) })
	keep := make([]bool, len(pods))
	kept := 0
	for _, i := range order {
		bytes -= podSize(pods[i])
		if bytes < 0 || kept == maxPods {
			break
		}
		keep[i] = true
		kept++
	}
	within := make([]v1alpha1.PodStatus, 0, kept)
	for i := range pods {
		if keep[i] {
			within = append(within, pods[i])
		}
	}
	return within
}

func withoutPods(status v1alpha1.JobReportStatus) v1alpha1.JobReportStatus {
	status.Pods = nil
	return status
}

// inBrief leaves out of pods that are well where they are, and their ranks, which follow from the index. With that
// much less all pods of a large job have room, whatever names its nodes have.
func inBrief(pods []v1alpha1.PodStatus) []v1alpha1.PodStatus {
	brief := slices.Clone(pods)
	for i := range brief {
		if worth(brief[i]) == leastWorth {
			brief[i].Node, brief[i].Ranks = "", ""
		}
	}
	return brief
}

// podSize is how many bytes a pod takes as JSON, at most. Names need no escapes there; a reason may.
func podSize(pod v1alpha1.PodStatus) int {
	const fields = len(`{"role":"launcher","index":1234567890,"name":"","node":"","phase":"Terminating","ready":true,"reason":"","restarts":1234567890,"exitCode":-1234567890,"ranks":""},`)
	return fields + len(pod.Name) + len(pod.Node) + 6*len(pod.Reason) + len(pod.Ranks) - optional(pod)
}

// optional is what podSize counts of fields that this pod does not have.
func optional(pod v1alpha1.PodStatus) (bytes int) {
	if pod.Restarts == 0 {
		bytes += len(`"restarts":1234567890,`)
	}
	if pod.ExitCode == nil {
		bytes += len(`"exitCode":-1234567890,`)
	}
	if pod.Reason == "" {
		bytes += len(`"reason":"",`)
	}
	if pod.Node == "" {
		bytes += len(`"node":"",`)
	}
	if pod.Ranks == "" {
		bytes += len(`,"ranks":""`)
	}
	return bytes
}

// worth is lower for pods that a reader wants to see first.
func worth(pod v1alpha1.PodStatus) int {
	switch {
	case pod.Role == string(mpi.RoleLauncher):
		return 0
	case pod.Phase == "Failed" || pod.ExitCode != nil:
		return 1
	case pod.Reason != "":
		return 2
	}
	return leastWorth
}

const leastWorth = 3

// lastBytes are the last lines of a log that take so many bytes.
func lastBytes(lines []string, bytes int) []string {
	for i, line := range slices.Backward(lines) {
		if bytes -= size(line) + len(","); bytes < 0 {
			return slices.Clone(lines[i+1:])
		}
	}
	return lines
}

// Size returns about how many bytes a report takes, with the manifest and the logs, which the operator's cache does not have.
func Size(r *v1alpha1.JobReport) int {
	// Its metadata are names, labels and the fields that the operator manages.
	const metadata = 2 << 10
	bytes := metadata + size(r.Status)
	if s := r.Status.Specification; s != nil {
		bytes += max(0, int(s.Size)-len(s.Manifest))
	}
	if logs := r.Status.Logs; logs != nil && len(logs.Data) == 0 {
		bytes += LogSize(r)
	}
	return bytes
}

// LogSize returns how many bytes the logs of a job's pods take in its report.
func LogSize(r *v1alpha1.JobReport) int {
	if r.Status.Logs == nil {
		return 0
	}
	// In base64.
	return int(r.Status.Logs.Size) * 4 / 3
}

// size is how many bytes something takes as JSON.
func size(value any) int {
	data, err := json.Marshal(value)
	if err != nil {
		return 0
	}
	return len(data)
}
