package runtimetest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
)

func TestParseExchange(t *testing.T) {
	t.Parallel()
	const line = "mpi-runtime-test: latency 45123 ns, bandwidth 1210000000 B/s, by Open MPI v5.0.7, package: a"
	good := Exchange{Measured: &v1alpha1.RuntimeCommunication{LatencyNanoseconds: 45123, BytesPerSecond: 1210000000, Method: "Open MPI 5.0.7"}}
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
		"measured after all":   {"mpi-runtime-test: not measured: library\n" + line, good},
		"no library":           {"mpi-runtime-test: not measured: library\nmpi-runtime-test: not measured: library", Exchange{NotMeasured: reasons["library"]}},
		"a reason of its own":  {"mpi-runtime-test: not measured: <b>your cluster is broken</b>", Exchange{}},
		"an unknown reason":    {"mpi-runtime-test: not measured: because", Exchange{}},
		"a latency of nothing": {strings.Replace(line, "45123", "0", 1), Exchange{}},
		"negative":             {strings.Replace(line, "45123", "-1", 1), Exchange{}},
		"overflowing":          {strings.Replace(line, "45123", strings.Repeat("9", 40), 1), Exchange{}},
		"not a number":         {strings.Replace(line, "1210000000", "NaN", 1), Exchange{}},
		"infinite":             {strings.Replace(line, "1210000000", "inf", 1), Exchange{}},
		"cut off":              {line[:len(line)-40], Exchange{}},
		"binary":               {"\x00\xff\x1b[31m" + strings.Repeat("mpi-runtime-test: latency ", 1000), Exchange{}},
	} {
		if diff := cmp.Diff(test.want, ParseExchange(test.log)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestMethod: the MPI library is named as reports of images name it, and nothing else is taken from its text.
func TestMethod(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4": "Open MPI 4.1.4",
		"Open MPI v5.1.0a1":                            "Open MPI 5.1.0a1",
		"MPICH Version:      4.2.1":                    "MPICH 4.2.1",
		"MPICH Version:\t3.4.1":                        "MPICH 3.4.1",
		"Intel(R) MPI Library 2021.19.0 for Linux* OS": "Intel MPI 2021.19.0",
		"MVAPICH Version      :\t3.0":                  "an unknown MPI library",
		"Open MPI v<b>":                                "an unknown MPI library",
		"Open MPI v4" + strings.Repeat("0", 100):       "Open MPI 4" + strings.Repeat("0", 15),
		"":                                             "an unknown MPI library",
	} {
		if got := methodOf(version); got != want || len(got) > 32 {
			t.Errorf("%q is %q, want %q", version, got, want)
		}
	}
}

// TestRanksSayWhy: a rank that lacks the means to exchange messages says so.
func TestRanksSayWhy(t *testing.T) {
	t.Parallel()
	for want, arguments := range map[string][]string{
		"images": {},
		"agent":  {"sh", "/does/not/exist.so", "mpirun"},
		// What is no library is not loaded, as one for another CPU.
		"load": {"sh", "/proc/self/status", "mpirun"},
	} {
		text, err := exec.CommandContext(t.Context(), "sh", append([]string{"-c", rankScript}, arguments...)...).Output()
		if got := ParseExchange(string(text)); err != nil || got.NotMeasured != reasons[want] {
			t.Errorf("for %s they print %s: %v", want, text, err)
		}
	}
}

// compile compiles a library of C.
func compile(t *testing.T, arguments ...string) {
	t.Helper()
	for _, tool := range []string{"sh", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	if out, err := exec.CommandContext(t.Context(), arguments[0], arguments[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", arguments, err, out)
	}
}

// TestLibraryFindsMPI: three ranks exchange messages with the MPI library of their launcher, wherever it is and whatever else there is; and
// say what they found if they have none.
func TestLibraryFindsMPI(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	library, pointers, integers := filepath.Join(folder, "libmpi-exchange.so"), filepath.Join(folder, "pointers.so"), filepath.Join(folder, "integers.so")
	compile(t, "sh", "../agent/library/build.sh", library)
	compile(t, "gcc", "-shared", "-fPIC", "-o", pointers, "testdata/mpi.c")
	compile(t, "gcc", "-shared", "-fPIC", "-DINTEGERS", "-o", integers, "testdata/mpi.c")
	const openMPI, mpich, text = "OMPI_COMM_WORLD", "PMI", "/proc/self/status"
	for name, test := range map[string]struct {
		launcher string
		// files are libraries in the image, by their paths; env is the environment of all ranks.
		files  map[string]string
		env    []string
		method string
		prints string
	}{
		"next to mpirun": {
			openMPI, map[string]string{"mpi/lib/libmpi.so.40": pointers, "other/libmpi.so.40": integers}, []string{"LD_LIBRARY_PATH=other"}, "Open MPI 5.0.7", "finalized",
		},
		"Intel's folder": {mpich, map[string]string{"mpi/lib/release/libmpi.so.12": integers}, nil, "MPICH 4.2.1", "finalized"},
		"where programs find it": {
			mpich, map[string]string{"mpi/lib64/libmpi.so": pointers, "other/libmpich.so.12": integers}, []string{"LD_LIBRARY_PATH=other"}, "MPICH 4.2.1", "finalized",
		},
		"named by Intel": {mpich, map[string]string{"intel/lib/libmpi.so.12": integers}, []string{"I_MPI_ROOT=intel"}, "MPICH 4.2.1", "finalized"},
		// No case takes a library of this machine.
		"of another MPI": {
			openMPI,
			map[string]string{"other/libmpi.so.40": integers, "other/libmpi.so": integers},
			[]string{"LD_LIBRARY_PATH=other", "I_MPI_ROOT=other"},
			"",
			"mpi-runtime-test: libmpi.so.40: belongs to another MPI than the launcher; libmpi.so: belongs",
		},
		"cannot be loaded": {
			mpich,
			map[string]string{"mpi/lib/libmpi.so.12": text, "other/libmpi.so.12": text, "other/libmpich.so.12": text, "other/libmpi.so": text},
			[]string{"LD_LIBRARY_PATH=other"},
			"", "/mpi/lib/libmpi.so.12: invalid ELF header; ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			image := t.TempDir()
			for path, from := range test.files {
				place(t, from, filepath.Join(image, path))
			}
			// Launchers have several names.
			place(t, "/bin/sh", filepath.Join(image, "mpi/bin/launcher"))
			if err := errors.Join(os.Mkdir(filepath.Join(image, "bin"), 0o755), os.Symlink("../mpi/bin/launcher", filepath.Join(image, "bin/mpirun"))); err != nil {
				t.Fatal(err)
			}
			for from := range 3 {
				for to := range 3 {
					if err := unix.Mkfifo(filepath.Join(image, fmt.Sprintf("%d-%d", from, to)), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			var ranks []*exec.Cmd
			var outputs [3]bytes.Buffer
			for rank := range outputs {
				cmd := exec.CommandContext(t.Context(), "sh", "-c", rankScript, "sh", library, "mpirun")
				cmd.Dir, cmd.Stdout, cmd.Stderr = image, &outputs[rank], &outputs[rank]
				cmd.Env = append([]string{
					"FIFOS=" + image, "PATH=" + filepath.Join(image, "bin") + ":" + os.Getenv("PATH"), test.launcher + "_SIZE=3", fmt.Sprintf("%s_RANK=%d", test.launcher, rank),
				}, test.env...)
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ranks = append(ranks, cmd)
			}
			var all strings.Builder
			for rank, cmd := range ranks {
				if err := cmd.Wait(); err != nil || !strings.Contains(outputs[rank].String(), test.prints) {
					t.Errorf("rank %d ends with %v and prints %s", rank, err, &outputs[rank])
				}
				all.Write(outputs[rank].Bytes())
			}
			got := ParseExchange(all.String())
			if test.method == "" && got.NotMeasured != reasons["library"] || test.method != "" && (got.Measured == nil || got.Measured.Method != test.method) {
				t.Errorf("the ranks print %s", &all)
			}
			if hosts := Hosts(all.String()); len(hosts) != 3 {
				t.Errorf("the ranks print the hosts %q", hosts)
			}
		})
	}
	t.Run("no test", func(t *testing.T) {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "exit 3")
		cmd.Env = []string{"LD_PRELOAD=" + library}
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 3 || len(out) > 0 {
			t.Errorf("%s: %s", cmd.ProcessState, out)
		}
	})
}

// place copies a file.
func place(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o755)); err != nil {
		t.Fatal(err)
	}
}

// TestRanksExchange measures with the MPI of this machine, if it has one. End-to-end tests do with each of the sample images.
func TestRanksExchange(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("mpiexec"); err != nil {
		t.Skip("this machine has no mpiexec")
	}
	library := filepath.Join(t.TempDir(), "libmpi-exchange.so")
	compile(t, "sh", "../agent/library/build.sh", library)
	text, err := exec.CommandContext(t.Context(), "mpiexec", "-n", "3", "sh", "-c", rankScript, "sh", library, "mpiexec").CombinedOutput()
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
	exchange := Exchange{Measured: &v1alpha1.RuntimeCommunication{LatencyNanoseconds: 45123, BytesPerSecond: 1215000000, Method: "Open MPI 5.0.7"}, Hosts: [2]string{"j-node-0-0", "j-node-0-1"}}
	succeeded, failed := ended(v1alpha1.PhaseSucceeded, 9*time.Second), ended(v1alpha1.PhaseFailed, 9*time.Second)
	for name, test := range map[string]struct {
		report   *v1alpha1.JobReportStatus
		exchange Exchange
		phase    v1alpha1.TestPhase
		result   v1alpha1.CheckResult
		says     string
	}{
		"different nodes": {report(on("a", "b"), succeeded), exchange, v1alpha1.TestPassed, v1alpha1.CheckPass, "Latency 45.1µs, bandwidth 1.215 GB/s between two pods on different nodes, measured with Open MPI 5.0.7."},
		"one node":        {report(on("a", "a"), succeeded), exchange, v1alpha1.TestPassed, v1alpha1.CheckPass, "between two pods on one node, measured"},
		"unknown nodes":   {report(on("a", ""), succeeded), exchange, v1alpha1.TestPassed, v1alpha1.CheckPass, "between two pods, measured"},
		"no library":      {report(on("a", "b"), succeeded), Exchange{NotMeasured: reasons["library"]}, v1alpha1.TestPassed, v1alpha1.CheckSkipped, "were not measured: the image has no shared library of the MPI"},
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
