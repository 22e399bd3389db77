package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/logstream/podserver"
)

// BenchmarkStart measures commands from their start to their end as people run them, as processes, with a server on this
// machine that has 50 jobs with reports. The binary is that in the PATH; make bench SUITE=cli builds it.
func BenchmarkStart(b *testing.B) {
	binary, err := exec.LookPath("kubectl-odh-mpijob")
	if err != nil {
		b.Skip("SKIPPED: kubectl-odh-mpijob is not in the PATH")
	}
	const namespace = "team"
	server := podserver.New(b)
	var mpiJobs, reports []any
	for i := range 50 {
		name := fmt.Sprintf("train-%d", i)
		job := map[string]any{
			"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob",
			"metadata": map[string]any{"name": name, "namespace": namespace, "uid": name, "creationTimestamp": "2026-01-02T10:00:00Z"},
		}
		report := map[string]any{
			"metadata": map[string]any{"name": name, "namespace": namespace},
			"spec":     map[string]any{"jobRef": map[string]any{"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": name, "uid": name}},
			"status":   map[string]any{"phase": "Running", "workers": map[string]any{"summary": "8/8"}},
		}
		mpiJobs, reports = append(mpiJobs, job), append(reports, report)
		server.Serve("/apis/kubeflow.org/v2beta1/namespaces/"+namespace+"/mpijobs/"+name, job)
	}
	list := func(path, kind, version, group string, items []any) {
		server.Serve("/apis/"+group+"/namespaces/"+namespace+"/"+path, map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{}, "items": items})
	}
	const metadata = "meta.k8s.io/v1"
	list("mpijobs", "PartialObjectMetadataList", metadata, "kubeflow.org/v2beta1", mpiJobs)
	list("trainjobs", "PartialObjectMetadataList", metadata, "trainer.kubeflow.org/v1alpha1", []any{})
	list("jobreports", "JobReportList", "mpi.opendatahub.io/v1alpha1", "mpi.opendatahub.io/v1alpha1", reports)
	config := filepath.Join(b.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, []byte(server.Kubeconfig(namespace)), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, args := range [][]string{{"version", "--client"}, {"list"}, {"get", "train-7"}, {"describe", "train-7"}} {
		b.Run(args[0], func(b *testing.B) {
			var cpu time.Duration
			for b.Loop() {
				run := exec.CommandContext(b.Context(), binary, args...) //nolint:gosec // our own program
				run.Env = append(os.Environ(), "KUBECONFIG="+config)
				if out, err := run.CombinedOutput(); err != nil {
					b.Fatalf("%v: %v: %s", args, err, out)
				}
				cpu += run.ProcessState.UserTime() + run.ProcessState.SystemTime()
			}
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/command")
			b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "CPU-ms/command")
			b.ReportMetric(0, "ns/op")
		})
	}
}
