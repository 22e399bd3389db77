package logstream_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/logstream"
	"opendatahub.io/mpijob/internal/logstream/podserver"
)

// flood makes pods that write so many lines each, so many a second (0: as fast as they are read), and then end.
func flood(server *podserver.Server, workers, lines, perSecond int) {
	const text = " epoch=3 step=120 loss=0.5123 throughput=1810 images/s lr=0.0010 node=gpu-17 line "
	for i := range workers {
		name := fmt.Sprintf("job-worker-%d", i)
		server.Put(pod(name, running(), 0))
		written := new(atomic.Int64)
		server.Log(name, false).Source = func(done <-chan struct{}) []byte {
			batch := 256
			if perSecond > 0 {
				batch = max(1, perSecond/20)
				select {
				case <-time.After(time.Duration(batch) * time.Second / time.Duration(perSecond)):
				case <-done:
					return nil
				}
			}
			var b []byte
			for range batch {
				n := written.Add(1)
				if n > int64(lines) {
					break
				}
				b = time.Now().UTC().AppendFormat(b, time.RFC3339Nano)
				b = fmt.Appendf(append(b, text...), "%d/%d\n", i, n)
			}
			return b
		}
	}
}

// counted counts lines and checks that none of a pod is missing or comes twice.
type counted struct {
	next  map[string]int
	lines int
}

func (c *counted) add(text string) error {
	_, number, found := strings.Cut(text, " line ")
	if !found {
		return nil
	}
	if c.next == nil {
		c.next = map[string]int{}
	}
	who, n, _ := strings.Cut(number, "/")
	if c.next[who]++; n != fmt.Sprint(c.next[who]) {
		return fmt.Errorf("pod %s: line %s came where %d was to come", who, n, c.next[who])
	}
	c.lines++
	return nil
}

// BenchmarkFollow is how many lines a second come through, of 64 pods that write as fast as they are read.
func BenchmarkFollow(b *testing.B) {
	for _, workers := range []int{1, 64} {
		b.Run(fmt.Sprintf("pods=%d", workers), func(b *testing.B) {
			const lines = 400_000
			for b.Loop() {
				server := podserver.New(b)
				flood(server, workers, lines/workers, 0)
				var got counted
				start := time.Now()
				_, err := logstream.Run(b.Context(), pods(b, server), newReader().options(), func(batch []logstream.Line) error {
					for _, line := range batch {
						if err := got.add(line.Text); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil || got.lines != lines {
					b.Fatalf("%d of %d lines came: %v", got.lines, lines, err)
				}
				b.ReportMetric(float64(lines)/time.Since(start).Seconds(), "lines/s")
			}
		})
	}
}

func Test64PodsWith50000LinesASecondLoseNone(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of two processors")
	}
	server := podserver.New(t)
	const workers, perPod, seconds = 64, 782, 4
	flood(server, workers, perPod*seconds, perPod)
	var got counted
	var late time.Duration
	var most uint64
	start := time.Now()
	options, all := newReader().options(), errors.New("all have come")
	options.Follow = true
	_, err := logstream.Run(t.Context(), pods(t, server), options, func(batch []logstream.Line) error {
		for _, line := range batch {
			late = max(late, time.Since(line.Time))
			if err := got.add(line.Text); err != nil {
				return err
			}
		}
		if got.lines%50_000 < len(batch) {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
		if got.lines == workers*perPod*seconds {
			return all
		}
		return nil
	})
	if !errors.Is(err, all) || got.lines != workers*perPod*seconds {
		t.Fatalf("%d of %d lines came: %v", got.lines, workers*perPod*seconds, err)
	}
	t.Logf("%d lines in %s, %.0f a second; the latest %s after it was written; heap %d MiB with the server's", got.lines, time.Since(start).Round(time.Millisecond),
		float64(got.lines)/time.Since(start).Seconds(), late.Round(time.Millisecond), most>>20)
	if most > 512<<20 {
		t.Errorf("the heap has grown to %d MiB", most>>20)
	}
}

// TestBesideKubectl measures the command line and kubectl on the same pods. FOLLOW_COMPARE names both binaries:
// FOLLOW_COMPARE=bin/kubectl-odh-mpijob:bin/kubectl go test ./internal/logstream -run TestBesideKubectl -v
func TestBesideKubectl(t *testing.T) {
	ours, kubectl, given := strings.Cut(os.Getenv("FOLLOW_COMPARE"), ":")
	if !given {
		t.Skip("FOLLOW_COMPARE names no binaries")
	}
	const workers = 64
	arguments := map[string][]string{
		ours:    {"logs", "job", "--follow"},
		kubectl: {"logs", "--follow", "--prefix", "--timestamps", "-l", "job=job", "--max-log-requests", fmt.Sprint(workers), "--tail", "-1"},
	}
	for _, perPod := range []int{782, 0} {
		for _, program := range []string{ours, kubectl, ours, kubectl} {
			server := podserver.New(t)
			lines := 782 * 5
			if perPod == 0 {
				lines = 6250
			}
			flood(server, workers, lines, perPod)
			serveJob(server)
			compare(t, server, program, arguments[program], workers*lines, perPod*workers)
		}
	}
}

func compare(t *testing.T, server *podserver.Server, program string, arguments []string, lines, rate int) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, []byte(server.Kubeconfig(namespace)), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+config)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var got counted
	var wrong error
	var last time.Time
	var reading sync.WaitGroup
	reading.Go(func() {
		reader := bufio.NewReaderSize(out, 1<<20)
		for {
			text, err := reader.ReadString('\n')
			if err != nil {
				_, _ = io.Copy(io.Discard, reader)
				return
			}
			if err := got.add(strings.TrimSuffix(text, "\n")); err != nil && wrong == nil {
				wrong = err
			}
			last = time.Now()
			if got.lines == lines {
				_ = command.Process.Signal(os.Interrupt)
			}
		}
	})
	reading.Wait()
	_ = command.Wait()
	usage, _ := command.ProcessState.SysUsage().(*syscall.Rusage)
	took := last.Sub(start)
	t.Logf("%-20s %6d lines/s written (0: no limit): %d of %d lines in %.2f s, %.0f lines/s; CPU %.2f s; memory %d MiB; %v", filepath.Base(program), rate,
		got.lines, lines, took.Seconds(), float64(got.lines)/took.Seconds(), (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds(), usage.Maxrss>>10, wrong)
}

// serveJob serves the MPIJob of the pods, and no record of it.
func serveJob(server *podserver.Server) {
	server.Serve("/apis/kubeflow.org/v2beta1/namespaces/"+namespace+"/mpijobs/job", map[string]any{
		"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": map[string]any{"name": "job", "namespace": namespace, "uid": "1"},
		"spec": map[string]any{"slotsPerWorker": 1, "mpiReplicaSpecs": map[string]any{"Launcher": map[string]any{}, "Worker": map[string]any{"replicas": 64}}},
	})
	server.Serve("/apis/mpi.opendatahub.io/v1alpha1/namespaces/"+namespace+"/jobreports", map[string]any{
		"apiVersion": "mpi.opendatahub.io/v1alpha1", "kind": "JobReportList", "metadata": map[string]any{}, "items": []any{},
	})
}
