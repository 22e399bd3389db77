package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// tenant is a user with the role mpijob-user in a namespace of his own.
type tenant struct {
	name, namespace string
	api             client.WithWatch
	clientset       kubernetes.Interface
	warnings        *warnings
}

func newTenant(t *testing.T, name string) tenant {
	t.Helper()
	made := tenant{name: name, namespace: newNamespace(t), warnings: &warnings{}}
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: made.namespace, Name: "users"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mpijob-user"},
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}, {Kind: rbacv1.ServiceAccountKind, Namespace: made.namespace, Name: "default"},
		},
	})
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = made.warnings
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	if made.api, err = client.NewWithWatch(config, client.Options{Scheme: api.Scheme(), Mapper: api.RESTMapper()}); err != nil {
		t.Fatal(err)
	}
	if made.clientset, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return made
}

// token returns a token of the service account of the tenant's pods, which has the tenant's rights.
func (u tenant) token(t *testing.T) string {
	t.Helper()
	made, err := logs.CoreV1().ServiceAccounts(u.namespace).CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Status.Token
}

// tenantKinds are what users read of jobs.
var tenantKinds = []schema.GroupVersionKind{
	{Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"},
	{Group: "mpi.opendatahub.io", Version: "v1alpha1", Kind: "JobReport"},
	{Group: "mpi.opendatahub.io", Version: "v1alpha1", Kind: "RuntimeTest"},
	{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"},
	{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainingRuntime"},
	{Version: "v1", Kind: "Pod"},
	{Version: "v1", Kind: "Event"},
	{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "Service"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
}

// listOfKind is an empty list of a kind.
func listOfKind(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// seatJob is a job of a launcher and a worker with agents, each on one seat.
func seatJob(namespace, name string, seat corev1.ResourceName) *kubeflow.MPIJob {
	job := agentJob(namespace, name, "openmpi", kubeflow.MPIImplementationOpenMPI, 1, "sleep", "600")
	for _, container := range []*corev1.Container{launcher(job), worker(job)} {
		container.Resources.Limits[seat] = resource.MustParse("1")
	}
	for _, role := range job.Spec.MPIReplicaSpecs {
		role.Template.Spec.TerminationGracePeriodSeconds = new(int64(0))
	}
	return job
}

// spyScript asks the agents of another tenant's worker and launcher what they tell, and the operator for its metrics.
const spyScript = `
import os, ssl, urllib.error, urllib.request
def get(what, url, headers={}):
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=1, context=ssl._create_unverified_context() if url.startswith("https") else None) as answer:
            print(what, answer.status, answer.headers, answer.read().decode())
    except urllib.error.HTTPError as error:
        print(what, error.code, error.headers, error.read().decode())
    except OSError as error:
        print(what, error)
for ip in os.environ["WORKER"], os.environ["LAUNCHER"]:
    for path in "status", "metrics", "healthz", "":
        get("agent", f"http://{ip}:2223/{path}")
get("metrics", "https://mpijob-operator-metrics.mpijob-system.svc:8443/metrics", {"Authorization": "Bearer " + os.environ["TOKEN"]})
`

// spyOn returns a job of a tenant whose launcher tries to log in to another tenant's worker with its own key, and runs
// spyScript.
func spyOn(by tenant, workerIP, launcherIP, token string) *kubeflow.MPIJob {
	job := agentJob(by.namespace, "spy", "openmpi", kubeflow.MPIImplementationOpenMPI, 1,
		"sh", "-c", `MPI_AGENT_WAIT=5s MPI_AGENT_FOREIGN_HOSTS=true ssh -o StrictHostKeyChecking=no "$WORKER" hostname; echo ssh $?; exec python3 -c "$SCRIPT"`)
	for name, value := range map[string]string{"WORKER": workerIP, "LAUNCHER": launcherIP, "TOKEN": token, "SCRIPT": spyScript} {
		launcher(job).Env = append(launcher(job).Env, corev1.EnvVar{Name: name, Value: value})
	}
	return job
}

// forbidden checks that a tenant can neither get, list nor watch what belongs to a job of another tenant, read its logs, nor
// reach its pods through the API server.
func forbidden(t *testing.T, by tenant, job *kubeflow.MPIJob) {
	t.Helper()
	check := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s may %s of another tenant: %v", by.name, what, err)
		}
	}
	for _, kind := range tenantKinds {
		list := listOfKind(kind)
		if err := api.List(t.Context(), list, client.InNamespace(job.Namespace)); meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		for _, namespace := range []string{job.Namespace, ""} {
			check(fmt.Sprintf("list %s in %q", kind.Kind, namespace), by.api.List(t.Context(), listOfKind(kind), client.InNamespace(namespace)))
			watched, err := by.api.Watch(t.Context(), listOfKind(kind), client.InNamespace(namespace))
			if err == nil {
				watched.Stop()
			}
			check(fmt.Sprintf("watch %s in %q", kind.Kind, namespace), err)
		}
		for i := range list.Items {
			check("get "+kind.Kind, by.api.Get(t.Context(), client.ObjectKeyFromObject(&list.Items[i]), list.Items[i].DeepCopy()))
		}
	}
	pods := by.clientset.CoreV1().Pods(job.Namespace)
	for _, pod := range append(podsOf(t, job, mpi.RoleLauncher), podsOf(t, job, mpi.RoleWorker)...) {
		check("read logs", pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).Do(t.Context()).Error())
		_, err := pods.ProxyGet("http", pod.Name, "2223", "status", nil).DoRaw(t.Context())
		check("reach pods", err)
	}
	check("create jobs", by.api.Create(t.Context(), openMPI(job.Namespace, 1, "true"), client.DryRunAll))
	_, err := by.clientset.CoreV1().Services("mpijob-system").ProxyGet("https", "mpijob-operator-metrics", "8443", "metrics", nil).DoRaw(t.Context())
	check("read metrics", err)
}

// learns checks that neither what a tenant can read in his own namespace, nor the API server's warnings, nor what his pods
// printed name another tenant, his namespace or his job.
func learns(t *testing.T, by tenant, printed string, other tenant, job string) {
	t.Helper()
	texts := map[string]string{"output": printed, "warnings": strings.Join(by.warnings.texts, "\n")}
	for _, kind := range tenantKinds {
		list := listOfKind(kind)
		switch err := by.api.List(t.Context(), list, client.InNamespace(by.namespace)); {
		case meta.IsNoMatchError(err), apierrors.IsForbidden(err):
			continue
		case err != nil:
			t.Fatal(err)
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		texts[kind.Kind+"s"] = string(text)
	}
	if !strings.Contains(texts["JobReports"], by.namespace) || !strings.Contains(texts["Events"], by.namespace) {
		t.Errorf("%s cannot read his own reports and events", by.name)
	}
	for what, text := range texts {
		for _, secret := range []string{other.name, other.namespace, job} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("the %s of %s name %s of another tenant: ...%s", what, by.name, secret, text[max(at-200, 0):min(at+200, len(text))])
			}
		}
	}
}

// TestTenantsLearnNothing: two users run jobs at the same time, one of which waits for the other's room. Neither learns the name
// of the other, of his namespace or of his job: not from the API server, not from what is written about his own waiting job,
// not from the operator's metrics, and not from the agents of the other's pods.
func TestTenantsLearnNothing(t *testing.T) {
	t.Parallel()
	const seat = "example.com/seat-tenants"
	seats(t, seat, 2)
	ada, bob := newTenant(t, "ada-lovelace"), newTenant(t, "bob-noyce")
	first, second := seatJob(ada.namespace, "analytical-engine", seat), seatJob(bob.namespace, "planar-process", seat)
	eventually(t, "ada creates a job", 20*time.Second, func() error { return ada.api.Create(t.Context(), first) })
	waitFor(t, first, "it runs", runs)
	eventually(t, "bob creates a job", 20*time.Second, func() error { return bob.api.Create(t.Context(), second) })

	workers := podsOf(t, first, mpi.RoleWorker)
	launchers := podsOf(t, first, mpi.RoleLauncher)
	if len(workers) != 1 || len(launchers) != 1 {
		t.Fatalf("ada's job has %d workers and %d launchers", len(workers), len(launchers))
	}
	spy := spyOn(bob, workers[0].Status.PodIP, launchers[0].Status.PodIP, bob.token(t))
	if err := bob.api.Create(t.Context(), spy); err != nil {
		t.Fatal(err)
	}
	// A dry run is how users estimate; the warnings of all creations are kept.
	if err := bob.api.Create(t.Context(), seatJob(bob.namespace, second.Name+"-2", seat), client.DryRunAll); err != nil {
		t.Logf("a second job of bob: %v", err)
	}
	waitFor(t, spy, "it has tried", succeeded)
	reported(t, kubeflow.Kind, bob.namespace, second.Name, "bob's job waits", inPhase(v1alpha1.PhaseGangScheduling))

	forbidden(t, ada, second)
	forbidden(t, bob, first)
	learns(t, bob, output(t, spy), ada, first.Name)
	learns(t, ada, "", bob, second.Name)
	// Where the network enforces NetworkPolicies, nothing answers. Otherwise the agent and the operator refuse.
	printed := output(t, spy)
	t.Logf("bob's pod printed: %s", printed)
	if !strings.Contains(printed, "does not accept this job's key") && !strings.Contains(printed, "does not answer") ||
		!strings.Contains(printed, "ssh 255") || !strings.Contains(printed, "metrics ") || strings.Contains(printed, "metrics 200") {
		t.Error("bob's pod was not refused")
	}
}
