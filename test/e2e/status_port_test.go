package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// untilEnough is a program that runs for at least 30 s, in which the agents take samples, and ends when /tmp/enough exists.
const untilEnough = "import os, time; time.sleep(30)\nwhile not os.path.exists('/tmp/enough'): time.sleep(0.5)"

// readPortScript asks the agents at some addresses for everything that they serve, without a token and with a wrong one, and prints a line
// of JSON for each answer. It waits until the agents listen.
const readPortScript = `
import json, sys, time, urllib.error, urllib.request
def get(address, path, token):
    request = urllib.request.Request(f"http://{address}:2223/{path}", headers={"Authorization": "Bearer " + token} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)
for address in sys.argv[1:]:
    deadline = time.time() + 60
    while get(address, "healthz", "")[0] != 200 and time.time() < deadline:
        time.sleep(0.5)
    for path in "healthz", "metrics", "status", "stacks":
        for token in "", "0" * 64:
            code, body = get(address, path, token)
            print(json.dumps({"address": address, "path": path, "code": code, "body": body}), flush=True)
`

// portAnswer is a line of readPortScript.
type portAnswer struct {
	Address, Path, Body string
	Code                int
}

// TestStatusPortIsClosed: where nothing isolates the pods of a job, a pod of another namespace reaches the port of its agents. It gets
// their health and numbers. The status is refused, also to clients in the pods that do not have the job's key, and the record has the usage
// nevertheless: the operator does not use the port.
func TestStatusPortIsClosed(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{kubeflow.Kind, trainjob.Kind} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			namespace, other, name := newNamespace(t), newNamespace(t), "job"
			openNetwork(t, namespace)
			var podsByRole func() (launchers, workers []corev1.Pod)
			if kind == kubeflow.Kind {
				job := openMPI(namespace, 2, "mpirun", "-n", "2", "--map-by", "node", "python3", "-c", untilEnough)
				create(t, job)
				podsByRole = func() (launchers, workers []corev1.Pod) {
					return podsOf(t, job, mpi.RoleLauncher), podsOf(t, job, mpi.RoleWorker)
				}
			} else {
				name = "pi"
				runtimeIn(t, namespace, "mpi-openmpi")
				job := trainJob(t, namespace, fmt.Sprintf("{numNodes: 2, numProcPerNode: 1, command: [mpirun, -n, '2', python3, -c, %q]}", untilEnough))
				createTrainJob(t, job)
				podsByRole = func() (launchers, workers []corev1.Pod) {
					return trainerPods(t, job, "launcher"), trainerPods(t, job, "node")
				}
			}
			reported(t, kind, namespace, name, "the job runs", inPhase(v1alpha1.PhaseRunning))
			launchers, workers := podsByRole()
			if len(launchers) != 1 || len(workers) == 0 {
				t.Fatalf("it has %d launchers and %d workers", len(launchers), len(workers))
			}
			pods := append(launchers, workers...)
			names := []string{namespace, name + "-launcher", name + "-worker", name + "-node"}

			command := []string{"python3", "-c", readPortScript}
			for _, pod := range pods {
				command = append(command, pod.Status.PodIP)
			}
			intruder := plainPod(t, other, "intruder", command...)
			eventually(t, "the pod of the other namespace has asked all agents", 2*time.Minute, func() error {
				if err := api.Get(t.Context(), client.ObjectKeyFromObject(intruder), intruder); err != nil {
					return err
				}
				if intruder.Status.Phase != corev1.PodSucceeded {
					return fmt.Errorf("it is %s", intruder.Status.Phase)
				}
				return nil
			})
			printed, err := logs.CoreV1().Pods(other).GetLogs(intruder.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			checkPort(t, string(printed), launchers[0].Status.PodIP, len(pods), names)

			for i, pod := range pods {
				// As port-forward, a program without the key connects from the pod's own loopback interface.
				checkPort(t, inPodOf(t, pod, "python3", "-c", readPortScript, "127.0.0.1"), map[bool]string{true: "127.0.0.1"}[i == 0], 1, names)
				var own agentapi.Summary
				role := map[bool]string{true: agentapi.RoleLauncher, false: agentapi.RoleWorker}[i == 0]
				text := inPodOf(t, pod, "/opt/mpi-agent/mpi-agent", "status", "-o", "json")
				if err := json.Unmarshal([]byte(text), &own); err != nil || own.Role != role {
					t.Errorf("a client of pod %s with the job's key gets %s: %v", pod.Name, text, err)
				}
			}
			for _, pod := range pods {
				inPodOf(t, pod, "touch", "/tmp/enough")
			}
			reported(t, kind, namespace, name, "the record of the job that ended shows what it used", func(status v1alpha1.JobReportStatus) error {
				if status.Phase != v1alpha1.PhaseSucceeded || status.Usage == nil || status.Usage.Pods != 2 {
					return fmt.Errorf("it is %s: %s, and used %+v", status.Phase, status.Message, status.Usage)
				}
				return nil
			})
		})
	}
}

// metricLine is a line of an agent's metrics: a comment, or a number without labels.
var metricLine = regexp.MustCompile(`^(# (HELP|TYPE) .*|mpi_agent_[a-z_]+ [-+.e0-9]+)$`)

// checkPort checks what readPortScript printed of the agents of a job's pods: it contains none of some names. Only the agent of the launcher
// serves stacks.
func checkPort(t *testing.T, printed, launcher string, agents int, names []string) {
	t.Helper()
	asked := map[string]bool{}
	for line := range strings.Lines(printed) {
		var answer portAnswer
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		asked[answer.Address] = true
		want := map[string]int{"healthz": 200, "metrics": 200, "status": 401, "stacks": 404}[answer.Path]
		if answer.Path == "stacks" && answer.Address == launcher {
			want = 401
		}
		if answer.Code != want {
			t.Errorf("%s of %s is %d %s, want %d", answer.Path, answer.Address, answer.Code, answer.Body, want)
		}
		for _, name := range names {
			if strings.Contains(answer.Body, name) {
				t.Errorf("%s of %s contains %s: %s", answer.Path, answer.Address, name, answer.Body)
			}
		}
		for text := range strings.Lines(answer.Body) {
			if answer.Path == "metrics" && !metricLine.MatchString(strings.TrimSpace(text)) {
				t.Errorf("the metrics of %s contain %q", answer.Address, text)
			}
		}
	}
	if len(asked) != agents {
		t.Errorf("%d agents were asked, want %d:\n%s", len(asked), agents, printed)
	}
}

// inPodOf runs a program in a pod of a job, and returns its output.
func inPodOf(t *testing.T, pod corev1.Pod, command ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "kubectl", append([]string{"exec", "-n", pod.Namespace, pod.Name, "--"}, command...)...)
	var complaints strings.Builder
	c.Stderr = &complaints
	printed, err := c.Output()
	if err != nil {
		t.Fatalf("run %s in pod %s: %v: %s%s", command[0], pod.Name, err, printed, complaints.String())
	}
	return string(printed)
}
