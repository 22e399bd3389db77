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

// rankScript is what each rank runs.
//
//go:embed ranks/rank.sh
var rankScript string

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
	measured    = regexp.MustCompile(`(?m)mpi-runtime-test: latency ([0-9]{1,15}) ns, bandwidth ([0-9]{1,15}) B/s, by (.*)`)
	notMeasured = regexp.MustCompile(`(?m)mpi-runtime-test: not measured: ([a-z-]{1,16})\b`)
)

// reasons are why the ranks did not exchange messages, by the word that they print.
var reasons = map[string]string{
	"agent":     "the pods lack the library that measures; use the agent's image of the operator's version in the runtime",
	"load":      "the image's shell does not load the agent's library; it is a static program, or the image is for another CPU than the agent's",
	"library":   "the image has no shared library of the MPI of its mpirun, or it cannot be loaded; the launcher's log has the error",
	"other-mpi": "the shared library of MPI that was loaded belongs to another MPI than the image's mpirun",
	"images":    "the launcher and the workers have different images",
}

// libraryVersion matches what MPI libraries report as their version (MPI_Get_library_version).
var libraryVersion = regexp.MustCompile(`^(Open MPI v|MPICH Version:[ \t]{1,9}|Intel\(R\) MPI Library )([0-9][0-9a-z.]{1,15})`)

// methodOf returns the MPI library with which the ranks measured.
func methodOf(version string) string {
	match := libraryVersion.FindStringSubmatch(version)
	switch {
	case match == nil:
		return "an unknown MPI library"
	case match[1][0] == 'M':
		return "MPICH " + match[2]
	case match[1][0] == 'I':
		return "Intel MPI " + match[2]
	}
	return "Open MPI " + match[2]
}

// ParseExchange returns what the ranks of a test printed. The output is a container's, which can print anything.
func ParseExchange(log string) Exchange {
	if match := measured.FindStringSubmatch(log); match != nil {
		latency, _ := strconv.ParseInt(match[1], 10, 64)
		bandwidth, _ := strconv.ParseInt(match[2], 10, 64)
		if latency > 0 && bandwidth > 0 {
			exchange := Exchange{Measured: &v1alpha1.RuntimeCommunication{LatencyNanoseconds: latency, BytesPerSecond: bandwidth, Method: methodOf(match[3])}}
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
