package runtimetest

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// The script of each rank, and the programs with which it exchanges messages: one for Python with mpi4py, one for mpicc.
var (
	//go:embed ranks/rank.sh
	rankScript string
	//go:embed ranks/exchange.py
	pythonExchange string
	//go:embed ranks/exchange.c
	cExchange string
)

// Exchange is what the ranks printed of the messages that they exchanged; the zero value if they printed nothing.
type Exchange struct {
	// Measured is nil if no messages were exchanged.
	Measured *v1alpha1.RuntimeCommunication
	// Hosts are those of ranks 0 and 1, which exchange the messages; empty if unknown.
	Hosts [2]string
	// NotMeasured says why the ranks did not exchange messages.
	NotMeasured string
}

var (
	measured    = regexp.MustCompile(`(?m)mpi-runtime-test: latency ([0-9]{1,15}) ns, bandwidth ([0-9]{1,15}) B/s, by (mpi4py|mpicc)\b`)
	notMeasured = regexp.MustCompile(`(?m)mpi-runtime-test: not measured: ([a-z-]{1,16})\b`)
)

// reasons are why the ranks did not exchange messages, by the word that they print.
var reasons = map[string]string{
	"tools":     "the image has neither python3 with mpi4py nor mpicc",
	"compiler":  "mpicc could not compile a program; it needs a compiler, the headers of MPI, and a directory for temporary files that is writable and not noexec",
	"other-mpi": "mpi4py or mpicc of the image belongs to another MPI than its mpirun",
	"images":    "the launcher and the workers have different images",
}

// ParseExchange returns what the ranks of a test printed. The output is a container's, which can print anything.
func ParseExchange(log string) Exchange {
	if match := measured.FindStringSubmatch(log); match != nil {
		latency, _ := strconv.ParseInt(match[1], 10, 64)
		bandwidth, _ := strconv.ParseInt(match[2], 10, 64)
		if latency > 0 && bandwidth > 0 {
			exchange := Exchange{Measured: &v1alpha1.RuntimeCommunication{LatencyNanoseconds: latency, BytesPerSecond: bandwidth, Method: match[3]}}
			for _, rank := range output.FindAllStringSubmatch(log, mostRanks) {
				if rank[1] == "0" || rank[1] == "1" {
					exchange.Hosts[rank[1][0]-'0'] = rank[2]
				}
			}
			return exchange
		}
	}
	if match := notMeasured.FindStringSubmatch(log); match != nil {
		return Exchange{NotMeasured: reasons[match[1]]}
	}
	return Exchange{}
}

// exchanged marks the check of communication as passed or skipped if it is. It needs the job's end: a rank that cannot
// finish has not communicated well.
func (j judge) exchanged(c *v1alpha1.RuntimeCheck) {
	if !j.told() || !j.ended() || j.job.Phase != v1alpha1.PhaseSucceeded {
		return
	}
	switch {
	case j.Exchange.Measured != nil:
		c.Result = v1alpha1.CheckPass
		c.Message = fmt.Sprintf("Latency %s, bandwidth %s between two pods%s, measured with %s.",
			latencyText(j.Exchange.Measured.LatencyNanoseconds), bandwidthText(j.Exchange.Measured.BytesPerSecond), j.where(), j.Exchange.Measured.Method)
	case j.Exchange.NotMeasured != "":
		c.Result, c.Message = v1alpha1.CheckSkipped, fmt.Sprintf("Latency and bandwidth were not measured: %s.", j.Exchange.NotMeasured)
	default:
		c.Result, c.Message = v1alpha1.CheckSkipped, "Latency and bandwidth were not measured: the ranks printed no result."
	}
}

// where says whether the messages passed the network between nodes.
func (j judge) where() string {
	var nodes []string
	for _, host := range j.Exchange.Hosts {
		for _, pod := range j.job.Pods {
			// The host name of a JobSet's pod is its name without the random suffix.
			if host != "" && pod.Node != "" && strings.HasPrefix(pod.Name+"-", host+"-") {
				nodes = append(nodes, pod.Node)
				break
			}
		}
	}
	switch {
	case len(nodes) < 2:
		return ""
	case nodes[0] == nodes[1]:
		return " on one node"
	}
	return " on different nodes"
}

// latencyText returns a duration with three digits, such as 1.23µs.
func latencyText(nanoseconds int64) string {
	latency, unit := time.Duration(nanoseconds), time.Duration(1)
	for latency >= 1000*unit {
		unit *= 10
	}
	return latency.Round(unit).String()
}

// bandwidthText returns a bandwidth in units of a thousand, such as 1.2 GB/s.
func bandwidthText(bytesPerSecond int64) string {
	value := float64(bytesPerSecond)
	for _, unit := range []string{"B/s", "kB/s", "MB/s"} {
		if value < 1000 {
			return fmt.Sprintf("%.4g %s", value, unit)
		}
		value /= 1000
	}
	return fmt.Sprintf("%.4g GB/s", value)
}
