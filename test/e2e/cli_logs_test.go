package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestCommandLineFollowsLogs follows a job's ranks from before its pods are there to its end, looks into its pods
// meanwhile, and reads what is left of one that failed.
func TestCommandLineFollowsLogs(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const steps = 20
	job := sample(t, "pi", namespace, func(job *kubeflow.MPIJob) {
		job.Name, job.Spec.SlotsPerWorker = "steps", new(int32(2))
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(2))
		launcher(job).Command = []string{
			"mpirun", "--tag-output", "-n", "4", "sh", "-c", fmt.Sprintf("for i in $(seq %d); do echo step $i of $OMPI_COMM_WORLD_RANK; sleep 1; done", steps),
		}
		launcher(job).Args = nil
	})
	create(t, job)
	type result struct {
		code            int
		out, complaints string
	}
	followed := make(chan result, 1)
	go func() {
		var r result
		r.code, r.out, r.complaints = plugin(t, namespace, "", "logs", "steps", "--follow")
		followed <- r
	}()
	waitFor(t, job, "the job runs", func(now *kubeflow.MPIJob) error {
		if c := condition(now, kubeflow.JobRunning); c.Status == corev1.ConditionTrue {
			return nil
		}
		return fmt.Errorf("conditions are %+v", now.Status.Conditions)
	})
	if code, out := inPod(t, namespace, "", "--rank", "3", "--", "hostname"); code != 0 || strings.TrimSpace(out) != "steps-worker-1" {
		t.Errorf("rank 3 is on %q, code %d", out, code)
	}
	if code, _ := inPod(t, namespace, "", "--worker", "0", "--", "sh", "-c", "exit 7"); code != 7 {
		t.Errorf("exec ended with %d, want 7", code)
	}
	if code, out := inPod(t, namespace, "a word", "--worker", "0", "-i", "--", "cat"); code != 0 || out != "a word" {
		t.Errorf("cat says %q, code %d", out, code)
	}
	forwarded(t, namespace, "steps", "--worker", "1")

	r := <-followed
	if r.code != 0 || !strings.Contains(r.complaints, "mpijob/steps: Succeeded") {
		t.Errorf("logs -f ended with %d: %s", r.code, r.complaints)
	}
	for rank := range 4 {
		for step := 1; step <= steps; step++ {
			line := fmt.Sprintf("[worker-%d r%d] step %d of %d\n", rank/2, rank, step, rank)
			if n := strings.Count(r.out, line); n != 1 {
				t.Errorf("%q came %d times", line, n)
			}
		}
	}

	failing := sample(t, "pi", namespace, func(job *kubeflow.MPIJob) {
		job.Name, job.Spec.RunPolicy.BackoffLimit = "broken", new(int32(0))
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(1))
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].RestartPolicy = kubeflow.RestartPolicyNever
		launcher(job).Command, launcher(job).Args = []string{"sh", "-c", "echo api_key=0123456789abcdef; echo ValueError: no data >&2; exit 3"}, nil
	})
	create(t, failing)
	if code, out, complaints := plugin(t, namespace, "", "logs", "broken", "-f"); code != 3 || !strings.Contains(out, "[launcher] api_key=****\n") || !strings.Contains(complaints, "mpijob/broken: Failed") {
		t.Errorf("logs -f of a job that fails ended with %d", code)
	}
	if err := api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(namespace), client.MatchingLabels{mpi.LabelJob: "broken"}, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pods are gone", time.Minute, func() error {
		var pods corev1.PodList
		if err := api.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{mpi.LabelJob: "broken", mpi.LabelRole: string(mpi.RoleLauncher)}); err != nil || len(pods.Items) == 0 {
			return err
		}
		return fmt.Errorf("%d pods are there", len(pods.Items))
	})
	if code, out, complaints := plugin(t, namespace, "", "logs", "broken", "--launcher"); code != 0 || !strings.Contains(out, "[launcher] ValueError: no data\n") || !strings.Contains(complaints, "are deleted") {
		t.Errorf("logs of a job whose pods are gone ended with %d", code)
	}
	if code, out, _ := plugin(t, namespace, "", "explain", "broken"); code != 0 || !strings.Contains(out, "WHY") || !strings.Contains(out, "WHAT TO DO") || !strings.Contains(out, "code 3") {
		t.Errorf("explain ended with %d", code)
	}
	if code, out, _ := plugin(t, namespace, "", "doctor"); code != 0 || !strings.Contains(out, "ok    Operator") || !strings.Contains(out, "invalid jobs are rejected") || !strings.Contains(out, "Pod Security restricted") {
		t.Errorf("doctor ended with %d", code)
	}
}

// inPod runs a command in one of the pods of the job steps.
func inPod(t *testing.T, namespace, stdin string, args ...string) (code int, out string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "kubectl", append([]string{"odh", "mpijob", "exec", "steps", "-n", namespace}, args...)...)
	var complaints bytes.Buffer
	c.Stdin, c.Stderr = strings.NewReader(stdin), &complaints
	printed, err := c.Output()
	exit := new(exec.ExitError)
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	t.Logf("$ %s\n%s%s(%d)", strings.Join(c.Args, " "), printed, complaints.String(), code)
	return code, string(printed)
}

// forwarded asks the agent of one of a job's pods for its health, through port-forward.
func forwarded(t *testing.T, namespace, job string, pick ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := exec.CommandContext(ctx, "kubectl", append([]string{"odh", "mpijob", "port-forward", job, ":2223", "-n", namespace}, pick...)...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	found := regexp.MustCompile(`127\.0\.0\.1:(\d+) -> 2223`).FindStringSubmatch(line)
	if found == nil {
		t.Fatalf("port-forward says %q", line)
	}
	response, err := (&http.Client{Timeout: time.Minute}).Get("http://127.0.0.1:" + found[1] + "/healthz")
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("the agent of %s does not answer: %v", strings.Join(pick, " "), err)
	} else {
		_ = response.Body.Close()
	}
	cancel()
	_ = c.Wait()
}
