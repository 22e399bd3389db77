package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestCreateFlags creates jobs with all flags of create that fit together, and looks at their pods, their output and the
// results that they leave.
func TestCreateFlags(t *testing.T) {
	leave := parallel(t, 4)
	if _, err := exec.LookPath("kubectl-odh-mpijob"); err != nil {
		t.Skip("SKIPPED: kubectl-odh-mpijob is not in PATH; make e2e puts it there")
	}
	namespace := newNamespace(t)
	folder := claim(t, namespace)
	create(t, configMap(namespace, "settings", "rate", "0.1"))
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"}, StringData: map[string]string{"user": "me"}})
	create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "trainer"}})
	s := shell{t, namespace}

	const program = `echo "rate $(cat /settings/rate) user $(cat /keys/user) data $(cat /data/input) in $(pwd) LR $LR shm $(df -m /dev/shm | tail -1 | tr -s ' ')"
echo x 2>/dev/null >/data/no || echo "data is read-only"
touch here /fast/here && echo "rank $OMPI_COMM_WORLD_RANK" > $OUTPUT_DIR/rank-$OMPI_COMM_WORLD_RANK
while [ -n "$WAIT" ] && ! [ -e $OUTPUT_DIR/go ]; do sleep 0.2; done`
	flags := func(name string, more ...string) []string {
		return append([]string{
			"create", name, "--image", image, "--run-as-user", "1000", "--workers", "2", "--slots", "2", "--cpu", "50m", "--memory", "128Mi",
			"--volume", "data:/data:ro", "--volume", "configmap/settings:/settings", "--volume", "secret/keys:/keys:ro", "--volume", "scratch/16Mi:/scratch",
			"--volume", "memory/8Mi:/fast", "--shm", "32Mi", "--output-dir", "data:/results", "--workdir", "/scratch",
			"--node-selector", "kubernetes.io/os=linux", "--toleration", "example.com/gpu:NoSchedule", "--topology", corev1.LabelHostname, "--gang-timeout", "5m",
			"--image-pull-secret", "keys", "--service-account", "trainer", "--launcher-cpu", "60m", "--launcher-memory", "96Mi", "--grace-period", "7s",
			"--label", "team=a", "--env", "LR=1", "--retries", "1", "--deadline", "1h",
		}, append(more, "--", "sh", "-c", program)...)
	}
	// The output is tagged, follows until the end, and the result is printed once.
	shown := s.run(0, []string{"mpijob/first created", "mpijob/first: Succeeded"}, flags("first", "--logs")...)
	s.run(0, []string{"mpijob/second created"}, flags("second", "--env", "WAIT=1", "--quiet")...)
	s.run(0, []string{"Running"}, "wait", "second", "--for", "phase=Running", "--timeout", "4m")
	for _, want := range []string{"[worker-1 r3] rate 0.1 user me data computed in /scratch LR 1 shm tmpfs 32 0 32 0% /dev/shm\n", "[worker-0 r0] data is read-only\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the output does not contain %q", want)
		}
	}
	if strings.Contains(shown, `"logger":`) || strings.Contains(shown, "<stdout>") {
		t.Error("the output contains lines of the agent, or tags of mpirun")
	}

	var pods corev1.PodList
	eventually(t, "the launcher and both workers of the second job have nodes", time.Minute, func() error {
		err := api.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{mpi.LabelJob: "second"})
		if err == nil && len(pods.Items) != 3 {
			err = fmt.Errorf("there are %d pods", len(pods.Items))
		}
		return err
	})
	for _, pod := range pods.Items {
		checkCreatedPod(t, pod, pods.Items[0].Spec.NodeName)
	}
	var job kubeflow.MPIJob
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "second"}, &job); err != nil {
		t.Fatal(err)
	}
	policy := job.Spec.RunPolicy
	if *policy.BackoffLimit != 1 || *policy.ActiveDeadlineSeconds != 3600 || policy.SchedulingPolicy == nil || *policy.SchedulingPolicy.ScheduleTimeoutSeconds != 300 || job.Labels["team"] != "a" {
		t.Errorf("the job has the labels %v and the run policy %+v", job.Labels, policy)
	}

	// Each job has a folder of its own in the claim, with the results of all ranks.
	if err := os.WriteFile(filepath.Join(folder, "second", "go"), nil, 0o644); err != nil { //nolint:gosec // ranks of another user read it
		t.Fatal(err)
	}
	s.run(0, []string{"mpijob/second: Succeeded"}, "wait", "second", "--timeout", "4m")
	leave()
	for _, name := range []string{"first", "second"} {
		for rank := range 4 {
			text, err := os.ReadFile(filepath.Join(folder, name, fmt.Sprintf("rank-%d", rank))) //nolint:gosec // a folder of this test
			if want := fmt.Sprintf("rank %d\n", rank); err != nil || string(text) != want {
				t.Errorf("the result of rank %d of job %s is %q (%v), want %q", rank, name, text, err, want)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "no")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a volume that is mounted with :ro can be written to: %v", err)
	}
}

// checkCreatedPod checks a pod of TestCreateFlags, which must be on a node.
func checkCreatedPod(t *testing.T, pod corev1.Pod, node string) {
	t.Helper()
	spec := pod.Spec
	got := map[string]any{
		"node": spec.NodeName, "service account": spec.ServiceAccountName, "grace period": *spec.TerminationGracePeriodSeconds,
		"node selector": spec.NodeSelector["kubernetes.io/os"], "pull secret": spec.ImagePullSecrets, "working folder": spec.Containers[0].WorkingDir,
	}
	want := map[string]any{
		"node": node, "service account": "trainer", "grace period": int64(7), "node selector": "linux", "pull secret": []corev1.LocalObjectReference{{Name: "keys"}}, "working folder": "/scratch",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pod %s (-want +got)\n%s", pod.Name, diff)
	}
	if !strings.Contains(fmt.Sprint(spec.Tolerations), "example.com/gpu") {
		t.Errorf("pod %s has the tolerations %v", pod.Name, spec.Tolerations)
	}
	cpu, memory := "50m", "128Mi"
	if pod.Labels[mpi.LabelRole] == string(mpi.RoleLauncher) {
		cpu, memory = "60m", "96Mi"
	}
	if r := spec.Containers[0].Resources; r.Requests.Cpu().String() != cpu || r.Limits.Memory().String() != memory {
		t.Errorf("pod %s has the resources %v, want %s and %s", pod.Name, r, cpu, memory)
	}
}
