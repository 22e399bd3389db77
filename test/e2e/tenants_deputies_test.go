package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// kubeconfig writes a kubeconfig with the tenant's token, and returns its path.
func (u tenant) kubeconfig(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: u.token(t)}
	}
	for _, c := range config.Contexts {
		c.Namespace = u.namespace
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// commandLineDenies runs read and write commands of the command line in another tenant's namespace, and checks that each is
// denied and prints neither the name of the other tenant nor what the job prints.
func commandLineDenies(t *testing.T, by, other tenant, job string) {
	t.Helper()
	if _, err := exec.LookPath("kubectl-odh-mpijob"); err != nil {
		t.Log("kubectl-odh-mpijob is not in PATH; make e2e puts it there")
		return
	}
	config := by.kubeconfig(t)
	for _, args := range [][]string{
		{"list"},
		{"list", "-A"},
		{"describe", job},
		{"logs", job},
		{"events", job},
		{"wait", job, "--timeout", "2s"},
		{"suspend", job},
		{"resume", job},
		{"scale", job, "--workers", "2"},
		{"delete", job, "--yes"},
		{"clone", job, "mine"},
		{"exec", job, "--", "env"},
		{"create", "guest", "--image", image, "--command", "pi"},
	} {
		all := append([]string{"odh", "mpijob", args[0], "-n", other.namespace}, args[1:]...)
		command := exec.CommandContext(t.Context(), "kubectl", all...)
		command.Env = append(os.Environ(), "KUBECONFIG="+config)
		out, err := command.CombinedOutput()
		if err == nil {
			t.Errorf("%s may %v in %s:\n%s", by.name, args, other.namespace, out)
		}
		if strings.Contains(string(out), other.name) || strings.Contains(string(out), "computing-in-secret") {
			t.Errorf("%v tells %s of %s:\n%s", args, by.name, other.name, out)
		}
	}
}

// deputies are objects that ask somebody with more rights to act for a tenant: the operator, Trainer or the API server. Each of
// them must be refused.
func deputies(t *testing.T, by, other tenant, victim string) map[string]client.Object {
	t.Helper()
	job := func(namespace, name string, annotations map[string]string) *kubeflow.MPIJob {
		made := agentJob(namespace, name, "openmpi", kubeflow.MPIImplementationOpenMPI, 1, "true")
		made.Annotations = annotations
		return made
	}
	report := &v1alpha1.JobReport{ObjectMeta: metav1.ObjectMeta{Namespace: by.namespace, Name: "forged"}}
	report.Spec.JobRef.Kind, report.Spec.JobRef.Name = kubeflow.Kind, victim
	return map[string]client.Object{
		"read a Secret of another namespace by a connection": job(by.namespace, "connection", map[string]string{mpi.AnnotationConnections: other.namespace + "/secret"}),
		"write a report":                           report,
		"create a job in another namespace":        job(other.namespace, "guest", nil),
		"use a runtime of another namespace":       trainJob(t, by.namespace, "{numNodes: 2, command: [env]}"),
		"create a pod where the operator runs":     &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: operatorKey.Namespace, Name: "guest"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}},
		"give herself the operator's role":         roleOfOperator(by),
		"set a label by which policies select":     patchedTrainJob(t, by.namespace, "jobset.sigs.k8s.io/jobset-name"),
		"set a label by which the operator counts": patchedTrainJob(t, by.namespace, mpi.LabelOperator),
	}
}

func roleOfOperator(by tenant) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: by.namespace, Name: "operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mpijob-operator"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: by.name}},
	}
}

// patchedTrainJob is a TrainJob that sets a label of the launcher's pod by runtimePatches.
func patchedTrainJob(t *testing.T, namespace, label string) client.Object {
	t.Helper()
	return trainJob(t, namespace, "{numNodes: 2, command: [env]}", fmt.Sprintf(`  runtimePatches:
  - manager: example.com/attack
    trainingRuntimeSpec:
      template:
        spec:
          replicatedJobs:
          - name: launcher
            template:
              spec:
                template:
                  metadata: {labels: {%s: other}}`, label))
}

// TestTenantsBorrowNoRights: of two tenants, neither reads or changes the other's job by the command line, and neither gets more
// rights by an object that the operator, Trainer or the API server acts on.
func TestTenantsBorrowNoRights(t *testing.T) {
	parallel(t, 2)
	keepOperators(t)
	first, second := newTenant(t, "grace-hopper"), newTenant(t, "ken-thompson")
	for _, u := range []tenant{first, second} {
		job := agentJob(u.namespace, "engine", "openmpi", kubeflow.MPIImplementationOpenMPI, 1, "sh", "-c", "echo computing-in-secret; sleep 600")
		job.Annotations = map[string]string{"example.com/owner": u.name}
		create(t, job)
		waitFor(t, job, "it runs", runs)
	}
	for _, pair := range [][2]tenant{{first, second}, {second, first}} {
		by, other := pair[0], pair[1]
		commandLineDenies(t, by, other, "engine")
		for what, object := range deputies(t, by, other, "engine") {
			if err := by.api.Create(t.Context(), object); err == nil {
				t.Errorf("%s may %s", by.name, what)
			} else if strings.Contains(err.Error(), other.name) {
				t.Errorf("what forbids %s to %s names %s: %v", by.name, what, other.name, err)
			}
		}
	}
}
