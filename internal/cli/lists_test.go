package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// TestLists measures how long it takes to list many jobs with their reports, from start to end: by the command line, by the SDK, by
// kubectl get, and what the API server alone takes for the same requests. They take turns, and the result is the median. make bench
// SUITE=list runs it. Variables name what is measured: LIST_BENCH is the file of the result, LIST_JOBS the number of jobs,
// LIST_CLI and LIST_BEFORE programs of the command line, and LIST_PYTHON an interpreter that has the SDK; what is not named is left out.
func TestLists(t *testing.T) {
	file := os.Getenv("LIST_BENCH")
	if file == "" {
		t.Skip("SKIPPED: LIST_BENCH names no file; `make bench SUITE=list` does")
	}
	if api == nil {
		t.Fatal("KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd")
	}
	jobs, rounds := 5000, 5
	if text := os.Getenv("LIST_JOBS"); text != "" {
		var err error
		if jobs, err = strconv.Atoi(text); err != nil {
			t.Fatalf("LIST_JOBS: %v", err)
		}
	}
	load := loadOfMachine(t)
	const namespace = "many"
	createMany(t, namespace, jobs)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(config, server, namespace); err != nil {
		t.Fatal(err)
	}

	// run returns how many bytes were printed or read.
	type contestant struct {
		name string
		run  func() (int, error)
	}
	took, sizes := map[string][]float64{}, map[string]int{}
	command := func(name string, args ...string) contestant {
		return contestant{name, func() (int, error) {
			run := exec.CommandContext(t.Context(), args[0], args[1:]...) //nolint:gosec // our own program
			run.Env = append(os.Environ(), "KUBECONFIG="+config)
			out, err := run.Output()
			if err != nil {
				return 0, fmt.Errorf("%v: %w: %s", args, err, out)
			}
			if lines := strings.Count(string(out), "\n"); lines < jobs {
				return 0, fmt.Errorf("%v printed %d lines for %d jobs", args, lines, jobs)
			}
			if _, text, has := strings.Cut(string(out), "\n"+callTook); has {
				seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
				if err != nil {
					return 0, fmt.Errorf("%v: %w", args, err)
				}
				took[sdkCall] = append(took[sdkCall], seconds)
			}
			return len(out), nil
		}}
	}
	all := []contestant{command("kubectl get", filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "get", "mpijobs")}
	for name, variable := range map[string]string{"list": "LIST_CLI", "list of the earlier commit": "LIST_BEFORE"} {
		if program := os.Getenv(variable); program != "" {
			all = append(all, command(name, program, "list"))
		}
	}
	if python := os.Getenv("LIST_PYTHON"); python != "" {
		all = append(all, command("SDK", python, "-c", listInPython))
	}
	mpiJobs, reports := "/apis/kubeflow.org/v2beta1/namespaces/"+namespace+"/mpijobs", "/apis/mpi.opendatahub.io/v1alpha1/namespaces/"+namespace+"/jobreports"
	const metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	const table = "application/json;as=Table;g=meta.k8s.io;v=v1"
	for _, request := range []struct{ name, path, accept string }{
		{"server: jobs", mpiJobs + "?limit=500", "application/json"},
		{"server: jobs, one page", mpiJobs, "application/json"},
		{"server: jobs, metadata", mpiJobs + "?limit=500", metadata},
		{"server: jobs, metadata, one page", mpiJobs, metadata},
		{"server: jobs, table", mpiJobs + "?limit=500", table},
		{"server: jobs, table without objects", mpiJobs + "?limit=500&includeObject=None", table},
		{"server: reports", reports + "?limit=500", "application/json"},
		{"server: reports, one page", reports, "application/json"},
		{"server: reports, table", reports + "?limit=500", table},
		{"server: reports, table without objects", reports + "?limit=500&includeObject=None", table},
		{"server: reports, table without objects, one page", reports + "?includeObject=None", table},
	} {
		all = append(all, contestant{request.name, func() (int, error) { return readPages(t.Context(), request.path, request.accept) }})
	}
	for range rounds {
		for _, each := range all {
			began := time.Now()
			size, err := each.run()
			if err != nil {
				t.Fatalf("%s: %v", each.name, err)
			}
			took[each.name] = append(took[each.name], time.Since(began).Seconds())
			sizes[each.name] = size
		}
	}
	type figure struct {
		Seconds []float64 `json:"seconds"`
		Median  float64   `json:"median"`
		Bytes   int       `json:"bytes"`
	}
	figures := map[string]figure{}
	for _, name := range slices.Sorted(maps.Keys(took)) {
		sorted := slices.Sorted(slices.Values(took[name]))
		figures[name] = figure{took[name], sorted[len(sorted)/2], sizes[name]}
		t.Logf("%-50s %.2f s (%.2f to %.2f), %.1f MB", name, figures[name].Median, sorted[0], sorted[len(sorted)-1], float64(figures[name].Bytes)/1e6)
	}
	version, err := exec.CommandContext(t.Context(), "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		t.Fatal(err)
	}
	record := map[string]any{
		"date": time.Now().UTC().Truncate(time.Second), "version": strings.TrimSpace(string(version)), "jobs": jobs, "cases": figures,
		"machine": machine(t), "load": load,
	}
	text, err := json.MarshalIndent(record, "", "  ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// loadOfMachine returns how many processes ran or waited, on average over the last minute.
func loadOfMachine(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		t.Fatal(err)
	}
	return load
}

// machine returns what the benchmark's own records have of the machine.
func machine(t *testing.T) map[string]any {
	t.Helper()
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	_, model, _ := strings.Cut(string(info), "model name\t: ")
	model, _, _ = strings.Cut(model, "\n")
	return map[string]any{"cpus": goruntime.NumCPU(), "model": model, "kernel": strings.TrimSpace(string(kernel))}
}

// sdkCall is the time of the SDK's call, without Python's start and imports; the program prints it after callTook.
const sdkCall, callTook = "SDK: list_jobs()", "list_jobs() took "

// listInPython prints a line for each job, and how long the call took.
const listInPython = `
import time
from openshift_ai_sdk.training import TrainingClient
client = TrainingClient()
began = time.monotonic()
jobs = client.list_jobs()
took = time.monotonic() - began
for job in jobs:
    print(job.name, job)
print("` + callTook + `" + str(took))
`

// readPages reads a list to its end without decoding it, uncompressed, and returns its size.
func readPages(ctx context.Context, path, accept string) (int, error) {
	http, err := rest.HTTPClientFor(server)
	if err != nil {
		return 0, err
	}
	size, next := 0, ""
	for {
		body, err := readPage(ctx, http, strings.TrimSuffix(server.Host, "/")+path+next, accept)
		if err != nil {
			return 0, err
		}
		size += len(body)
		token, err := continueIn(body, strings.Contains(accept, "protobuf"))
		if err != nil || token == "" {
			return size, err
		}
		next = "&continue=" + token
	}
}

func readPage(ctx context.Context, client *http.Client, url, accept string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Accept-Encoding", "identity")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", url, response.Status, body)
	}
	return body, err
}

// continueIn returns the token of the next page; "" if there is none.
func continueIn(body []byte, isProtobuf bool) (string, error) {
	if isProtobuf {
		var wrapped runtime.Unknown
		var list metav1.PartialObjectMetadataList
		if err := wrapped.Unmarshal(bytes.TrimPrefix(body, []byte("k8s\x00"))); err != nil {
			return "", err
		}
		err := list.Unmarshal(wrapped.Raw)
		return list.Continue, err
	}
	// No job or report contains this text.
	_, token, found := bytes.Cut(body, []byte(`"continue":"`))
	if !found {
		return "", nil
	}
	token, _, _ = bytes.Cut(token, []byte(`"`))
	return string(token), nil
}

// createMany creates jobs of 8 workers with their reports: half are suspended, and half have run.
func createMany(t *testing.T, namespace string, jobs int) {
	t.Helper()
	ctx := t.Context()
	if err := api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("..", "report", "testdata", "succeeded.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var ended v1alpha1.JobReport
	if err := yaml.UnmarshalStrict(text, &ended); err != nil {
		t.Fatal(err)
	}
	var all errgroup.Group
	all.SetLimit(16)
	for i := range jobs {
		all.Go(func() error { return createListed(ctx, namespace, i, ended) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

func createListed(ctx context.Context, namespace string, i int, ended v1alpha1.JobReport) error {
	name := fmt.Sprintf("job-%05d", i)
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "quay.io/team/train:1.2", Command: []string{"mpirun", "python", "train.py"}}}}}
	job := &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"team": "a"}}}
	job.Spec.RunPolicy.Suspend = new(i%2 == 0)
	job.Spec.MPIReplicaSpecs = map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{
		kubeflow.MPIReplicaTypeLauncher: {Template: pod}, kubeflow.MPIReplicaTypeWorker: {Replicas: new(int32(8)), Template: pod},
	}
	if err := api.Create(ctx, job); err != nil {
		return err
	}
	now := metav1.Now()
	for _, condition := range []kubeflow.JobConditionType{kubeflow.JobCreated, kubeflow.JobSuspended} {
		job.Status.Conditions = append(job.Status.Conditions, kubeflow.JobCondition{
			Type: condition, Status: corev1.ConditionTrue, Reason: "MPIJob" + string(condition), Message: "MPIJob " + namespace + "/" + name + " is " + string(condition) + ".", LastTransitionTime: now, LastUpdateTime: now,
		})
	}
	if err := api.Status().Update(ctx, job); err != nil {
		return err
	}
	manifest, err := yaml.Marshal(map[string]any{"labels": job.Labels, "spec": job.Spec})
	if err != nil {
		return err
	}
	report := &v1alpha1.JobReport{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-" + string(job.UID[:8]), Labels: ended.Labels}, Status: v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseSuspended, Reason: "Suspended", Message: "The job is suspended: its user has set spec.runPolicy.suspend.", StartTime: &now,
		MPI: v1alpha1.MPIStatus{Implementation: "OpenMPI", SlotsPerWorker: 1, Ranks: 8}, Workers: v1alpha1.WorkersStatus{Wanted: 8, Summary: "0/8"},
		PhaseTimes: []v1alpha1.PhaseTime{{Phase: v1alpha1.PhaseSuspended, Since: now}},
		Timeline:   []v1alpha1.TimelineEntry{{Time: now, Event: "Created", Detail: "MPIJob " + name + " with 8 workers."}, {Time: now, Event: "Suspended", Detail: "The job is suspended."}},
	}}
	if i%2 != 0 {
		report.Status = *ended.Status.DeepCopy()
	}
	report.Spec.JobRef = v1alpha1.JobReference{APIVersion: kubeflow.SchemeGroupVersion.String(), Kind: "MPIJob", Name: name, UID: job.UID}
	report.Status.Specification = &v1alpha1.Specification{Manifest: string(manifest), Size: int32(len(manifest)), Version: "1"}
	return api.Create(ctx, report)
}
