package runtimetest

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
)

func TestParseExchange(t *testing.T) {
	t.Parallel()
	const line = "mpi-runtime-test: latency 45123 ns, bandwidth 1210000000 B/s, by mpi4py"
	good := Exchange{Measured: &v1alpha1.RuntimeCommunication{LatencyNanoseconds: 45123, BytesPerSecond: 1210000000, Method: "mpi4py"}}
	for name, test := range map[string]struct {
		log  string
		want Exchange
	}{
		"nothing":             {"", Exchange{}},
		"measured":            {"rank 1\n" + line + "\nbye", good},
		"behind another rank": {"x" + line + "\r\n", good},
		"with hosts": {
			"mpi-runtime-test: rank 1 on b\nmpi-runtime-test: rank 0 on a\nmpi-runtime-test: rank 2 on c\n" + line, Exchange{Measured: good.Measured, Hosts: [2]string{"a", "b"}},
		},
		"twice":                {line + "\n" + strings.ReplaceAll(line, "45123", "1"), good},
		"by C":                 {strings.Replace(line, "mpi4py", "mpicc", 1), Exchange{Measured: &v1alpha1.RuntimeCommunication{LatencyNanoseconds: 45123, BytesPerSecond: 1210000000, Method: "mpicc"}}},
		"measured after all":   {"mpi-runtime-test: not measured: tools\n" + line, good},
		"no tools":             {"mpi-runtime-test: not measured: tools\nmpi-runtime-test: not measured: tools", Exchange{NotMeasured: reasons["tools"]}},
		"a reason of its own":  {"mpi-runtime-test: not measured: <b>your cluster is broken</b>", Exchange{}},
		"an unknown reason":    {"mpi-runtime-test: not measured: because", Exchange{}},
		"a latency of nothing": {strings.Replace(line, "45123", "0", 1), Exchange{}},
		"negative":             {strings.Replace(line, "45123", "-1", 1), Exchange{}},
		"overflowing":          {strings.Replace(line, "45123", strings.Repeat("9", 40), 1), Exchange{}},
		"not a number":         {strings.Replace(line, "1210000000", "NaN", 1), Exchange{}},
		"infinite":             {strings.Replace(line, "1210000000", "inf", 1), Exchange{}},
		"another program":      {strings.Replace(line, "mpi4py", "me", 1), Exchange{}},
		"cut off":              {line[:len(line)-20], Exchange{}},
		"binary":               {"\x00\xff\x1b[31m" + strings.Repeat("mpi-runtime-test: latency ", 1000), Exchange{}},
	} {
		if diff := cmp.Diff(test.want, ParseExchange(test.log)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestRanksSayWhy: a rank that lacks the means to exchange messages says so.
func TestRanksSayWhy(t *testing.T) {
	t.Parallel()
	for want, test := range map[string][]string{
		"images": {"-c", rankScript},
		"tools":  {"-c", "PATH=/nowhere\n" + rankScript, "sh", pythonExchange, cExchange},
	} {
		text, err := exec.CommandContext(t.Context(), "sh", test...).CombinedOutput()
		if got := ParseExchange(string(text)); err != nil || got.NotMeasured != reasons[want] {
			t.Errorf("for %s they print %s: %v", want, text, err)
		}
	}
}

// TestRanksExchange measures on this machine, where it has an MPI with a compiler.
func TestRanksExchange(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"mpiexec", "mpicc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("this machine has no %s", tool)
		}
	}
	text, err := exec.CommandContext(t.Context(), "mpiexec", "-n", "3", "sh", "-c", rankScript, "sh", pythonExchange, cExchange).CombinedOutput()
	if got := ParseExchange(string(text)); err != nil || got.Measured == nil || len(Hosts(string(text))) != 3 {
		t.Errorf("the ranks print %s: %v", text, err)
	}
}

func TestJudgeExchange(t *testing.T) {
	t.Parallel()
	on := func(nodes ...string) func(*v1alpha1.JobReportStatus) {
		return func(s *v1alpha1.JobReportStatus) {
			for i, node := range nodes {
				s.Pods = append(s.Pods, v1alpha1.PodStatus{Name: fmt.Sprintf("j-node-0-%d-abcde", i), Node: node, Phase: string(corev1.PodRunning)})
			}
		}
	}
	exchange := Exchange{Measured: &v1alpha1.RuntimeCommunication{LatencyNanoseconds: 45123, BytesPerSecond: 1215000000, Method: "mpi4py"}, Hosts: [2]string{"j-node-0-0", "j-node-0-1"}}
	succeeded, failed := ended(v1alpha1.PhaseSucceeded, 9*time.Second), ended(v1alpha1.PhaseFailed, 9*time.Second)
	for name, test := range map[string]struct {
		report   *v1alpha1.JobReportStatus
		exchange Exchange
		phase    v1alpha1.TestPhase
		result   v1alpha1.CheckResult
		says     string
	}{
		"different nodes": {report(on("a", "b"), succeeded), exchange, v1alpha1.TestPassed, v1alpha1.CheckPass, "Latency 45.1µs, bandwidth 1.215 GB/s between two pods on different nodes, measured with mpi4py."},
		"one node":        {report(on("a", "a"), succeeded), exchange, v1alpha1.TestPassed, v1alpha1.CheckPass, "between two pods on one node, measured"},
		"unknown nodes":   {report(on("a", ""), succeeded), exchange, v1alpha1.TestPassed, v1alpha1.CheckPass, "between two pods, measured"},
		"no tools":        {report(on("a", "b"), succeeded), Exchange{NotMeasured: reasons["tools"]}, v1alpha1.TestPassed, v1alpha1.CheckSkipped, "were not measured: the image has neither python3 with mpi4py nor mpicc."},
		"no result":       {report(on("a", "b"), succeeded), Exchange{}, v1alpha1.TestPassed, v1alpha1.CheckSkipped, "the ranks printed no result"},
		"failed": {
			report(on("a", "b"), failed, found(codes.WrongInterface, v1alpha1.SeverityError)),
			Exchange{},
			v1alpha1.TestFailed, v1alpha1.CheckFail,
			"The ranks started, but could not exchange messages. This is wrong.",
		},
		"measured, then failed": {report(on("a", "b"), failed, found(codes.RankFailed, v1alpha1.SeverityError)), exchange, v1alpha1.TestFailed, v1alpha1.CheckFail, "could not exchange messages"},
	} {
		object := newTest()
		object.Status = Start(object.Status, began)
		got := Judge(object, Seen{Now: began.Add(12 * time.Second), Ranks: 3, Report: test.report, Hosts: []string{"x", "y", "z"}, Exchange: test.exchange})
		last := got.Checks[len(got.Checks)-1]
		if got.Phase != test.phase || last.Result != test.result || !strings.Contains(last.Message, test.says) {
			t.Errorf("%s: it is %s, with %s: %s", name, got.Phase, last.Result, last.Message)
		}
		if (got.Communication != nil) != (test.result == v1alpha1.CheckPass) {
			t.Errorf("%s: the figures are %+v", name, got.Communication)
		}
	}
}

func TestFiguresText(t *testing.T) {
	t.Parallel()
	for nanoseconds, want := range map[int64]string{1: "1ns", 850: "850ns", 1234: "1.23µs", 45123: "45.1µs", 1234567: "1.23ms", 999999999999999: "277h46m40s"} {
		if got := latencyText(nanoseconds); got != want {
			t.Errorf("%d ns is %s, want %s", nanoseconds, got, want)
		}
	}
	for bytes, want := range map[int64]string{1: "1 B/s", 85300000: "85.3 MB/s", 12345678901: "12.35 GB/s", 999999999999999: "1e+06 GB/s"} {
		if got := bandwidthText(bytes); got != want {
			t.Errorf("%d B/s is %s, want %s", bytes, got, want)
		}
	}
}
