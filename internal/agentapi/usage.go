package agentapi

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Usage is what a container, or the containers of a job, used over time.
type Usage struct {
	// Start is when the first point begins, in seconds since 1970 and a multiple of Step. Step is the length of a point in seconds.
	Start int64 `json:"start"`
	Step  int64 `json:"step"`
	// Since and Until are the times of the first and the last measurement, in seconds since 1970.
	Since int64 `json:"since"`
	Until int64 `json:"until"`
	// Metrics are what was measured, in the order of Metrics. Those that the kernel does not count are left out, and those of a job
	// that were always 0, except MetricCPU, MetricMemory and MetricGPU.
	Metrics []MetricUsage `json:"metrics"`
	// Pods are the containers of a job, at most MaxUsagePods, and PodCount is the number of those that were measured. Launchers report
	// them, and workers report the PodCount of hosts that they have added up (usage.Fit).
	Pods     []PodUsage `json:"pods,omitempty"`
	PodCount int32      `json:"podCount,omitempty"`
	// Ranks are the ranks of a container, or some of a job, at most MaxUsageRanks.
	Ranks []RankUse `json:"ranks,omitempty"`
	// Launch is how the job's first launch began; nil until all hosts are connected. Only launchers report it, also before anything
	// was measured: then Step is 0.
	Launch *Launch `json:"launch,omitempty"`
	// Stall is what the launcher's agent has written last about ranks that make no progress; nil if they do. Only launchers report it, at once, and
	// also before anything was measured.
	Stall *Stall `json:"stall,omitempty"`
	// Profile is where the time of the ranks goes; nil if the job does not ask for that.
	Profile *Profile `json:"profile,omitempty"`
}

// Launch is how MPI reached the hosts of a job and started ranks there.
type Launch struct {
	// ConnectedAt is when all hosts of the hostfile were connected, in milliseconds since 1970, and ConnectSeconds is the time from the
	// first attempt on.
	ConnectedAt    int64   `json:"connectedAt"`
	ConnectSeconds float64 `json:"connectSeconds"`
	// RanksAt is when ranks ran on all hosts that the launcher connected to itself, in milliseconds since 1970; 0 until then. InitSeconds
	// is the time from the start of the command there, on the slowest host.
	RanksAt     int64   `json:"ranksAt,omitempty"`
	InitSeconds float64 `json:"initSeconds,omitempty"`
	// Binding is how the job's ranks are bound to cores; nil if it is unknown.
	Binding *Binding `json:"binding,omitempty"`
}

// Stall is what a launcher's agent writes about ranks that make no progress. A program that prints much has other lines at the end of its log.
type Stall struct {
	// At is when it was written, in seconds since 1970, by the clock of the launcher's node.
	At int64 `json:"at"`
	// Lines begin with StallPrefix, and those about places in the code with StackPrefix. They have at most MaxStallBytes.
	Lines []string `json:"lines"`
}

// MaxStallBytes is the most bytes of the lines of a Stall.
const MaxStallBytes = 2 << 10

// NewStall returns what an agent has written at a time, whole lines of it within MaxStallBytes; nil if that is not about ranks that make no progress,
// or that they do again.
func NewStall(at time.Time, lines []string) *Stall {
	if len(lines) == 0 || !strings.HasPrefix(lines[0], StallPrefix) || lines[0] == StallPrefix+StallOver {
		return nil
	}
	stall, left := &Stall{At: at.Unix()}, MaxStallBytes
	for i, line := range lines {
		if left -= len(line); left < 0 || i > 0 && !strings.HasPrefix(line, StackPrefix) {
			break
		}
		stall.Lines = append(stall.Lines, line)
	}
	if len(stall.Lines) == 0 {
		return nil
	}
	return stall
}

// Limits of a Usage.
const (
	MaxUsagePoints = 120
	MaxUsagePods   = 32
	MaxUsageRanks  = 32
	// MaxLatestPoints is how many points a Window has, of LatestStep each.
	MaxLatestPoints = 60
	LatestStep      = time.Minute
)

// Window is a part of a series: points of Step seconds, of which the first begins at Start, in seconds since 1970.
type Window struct {
	Start int64 `json:"start"`
	Step  int64 `json:"step"`
	// Points are means, oldest first, NoPoint where nothing was measured.
	Points []int64 `json:"points"`
}

// MetricUsage is what was measured of a metric. All figures are whole numbers in the metric's unit.
type MetricUsage struct {
	Metric Metric `json:"metric"`
	Mean   int64  `json:"mean"`
	P95    int64  `json:"p95"`
	Max    int64  `json:"max"`
	// Limit is the most that can be used, 0 for no limit.
	Limit int64 `json:"limit,omitempty"`
	// Recent is the mean of the last RecentTime, of RecentMetrics. It is nil if much less was measured, and of hosts that report no more.
	Recent *int64 `json:"recent,omitempty"`
	// Points are means, oldest first, NoPoint where nothing was measured.
	Points []int64 `json:"points,omitempty"`
	// Latest are the points of the last hour of MetricMemory: those of a long job are coarse. It is nil if less was measured, and of agents of
	// earlier versions.
	Latest *Window `json:"latest,omitempty"`
}

// RecentTime is the time of which MetricUsage.Recent is the mean: what began hours after the start of a job, or is over, hardly changes the
// mean of all samples.
const RecentTime = 10 * time.Minute

// NoPoint is the value of a point for which nothing was measured.
const NoPoint = -1

// PodUsage is what a pod of a job used.
type PodUsage struct {
	// Host is the pod's host name.
	Host string `json:"host"`
	// Metrics have no points, but for MetricMemory of one pod of several: the one that reaches its limit first. They begin at the start
	// of the job's, and are as long. Only this pod has Latest.
	Metrics []MetricUsage `json:"metrics"`
}

// RankUse is what a rank used, with the processes that it started.
type RankUse struct {
	Rank int32 `json:"rank"`
	// CPU is the mean in thousandths of a core, and Memory the maximum of its resident set in MiB.
	CPU    int64 `json:"cpu"`
	Memory int64 `json:"memory"`
}

// HostUsage is what the container of a host used.
type HostUsage struct {
	Host  string `json:"host"`
	Usage Usage  `json:"usage"`
}

// Metric is something that is measured over time.
type Metric string

// The metrics.
const (
	// MetricCPU is in thousandths of a core.
	MetricCPU Metric = "CPU"
	// MetricMemory is the working set in MiB: without cached files that the kernel can drop.
	MetricMemory Metric = "Memory"
	// MetricThrottled is the share, in thousandths, of the time that processes needed a CPU in which the kernel stopped them because of the
	// CPU limit. Agents of earlier versions count the limit's periods in which it stopped any, which are far more. They report no Recent.
	MetricThrottled Metric = "Throttled"
	// MetricMajorFaults is the number of page faults per minute that read from a disk.
	MetricMajorFaults Metric = "MajorFaults"
	// MetricCPUPressure, MetricMemoryPressure and MetricIOPressure are the share of time in thousandths in which a process waited for
	// the resource (Linux, Documentation/accounting/psi.rst).
	MetricCPUPressure    Metric = "CPUPressure"
	MetricMemoryPressure Metric = "MemoryPressure"
	MetricIOPressure     Metric = "IOPressure"
	// MetricNetwork and MetricIO are the KiB per second that were received and sent, and read from and written to disks.
	MetricNetwork Metric = "Network"
	MetricIO      Metric = "IO"
	// MetricGPU is in thousandths of a GPU, and MetricGPUMemory in MiB.
	MetricGPU       Metric = "GPU"
	MetricGPUMemory Metric = "GPUMemory"
)

// Metrics returns all metrics, in the order in which they are shown.
func Metrics() []Metric {
	return []Metric{
		MetricCPU, MetricMemory, MetricThrottled, MetricMajorFaults, MetricCPUPressure, MetricMemoryPressure, MetricIOPressure,
		MetricNetwork, MetricIO, MetricGPU, MetricGPUMemory,
	}
}

// RecentMetrics returns the metrics with MetricUsage.Recent.
func RecentMetrics() []Metric { return []Metric{MetricThrottled, MetricGPU} }

// IsShare reports whether a metric is a share of time: that of several pods is their mean, and not their sum.
func (m Metric) IsShare() bool {
	return slices.Contains([]Metric{MetricThrottled, MetricCPUPressure, MetricMemoryPressure, MetricIOPressure}, m)
}

// UsagePause returns the time between two reports of a job's usage that has run for a time. The operator reads them as often: the record
// of a long job changes less often.
func UsagePause(running time.Duration) time.Duration {
	return min(max(time.Minute, running/10), MaxUsagePause)
}

// MaxUsagePause is the longest pause between two reports of a job's usage.
const MaxUsagePause = 5 * time.Minute

// UsageMessage is the message of the log lines in which a worker's agent reports the job's usage. Their field UsageMessage is a Usage.
const UsageMessage = "usage"

// ParseUsageLine parses a line of a worker's log. It returns false if the line does not report the job's usage.
func ParseUsageLine(line string) (Usage, bool) {
	if len(line) > maxUsageLine || !strings.HasPrefix(line, `{"time":"`) || !strings.Contains(line, `"msg":"`+UsageMessage+`"`) {
		return Usage{}, false
	}
	var parsed struct {
		Message string `json:"msg"`
		Logger  string `json:"logger"`
		Usage   *Usage `json:"usage"`
	}
	if json.Unmarshal([]byte(line), &parsed) != nil || parsed.Message != UsageMessage || parsed.Logger != Logger || parsed.Usage == nil {
		return Usage{}, false
	}
	used := parsed.Usage
	used.Metrics, used.Pods, used.Ranks = first(used.Metrics, len(Metrics())), first(used.Pods, MaxUsagePods), first(used.Ranks, MaxUsageRanks)
	for i, pod := range used.Pods {
		used.Pods[i].Metrics = first(pod.Metrics, len(Metrics()))
	}
	if used.Stall != nil {
		used.Stall = NewStall(time.Unix(used.Stall.At, 0), used.Stall.Lines)
	}
	return *used, true
}

// maxUsageLine is more bytes than a line with a usage has.
const maxUsageLine = 32 << 10

// first returns the first elements of a list, at most a number of them, and keeps no memory for others.
func first[T any](list []T, most int) []T { return slices.Clone(list[:min(len(list), most)]) }
