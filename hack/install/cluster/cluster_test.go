package cluster

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	jobs       = "install-test"
	jobTimeout = 90 * time.Second
)

// connect returns the cluster of a kubeconfig.
func connect(t *testing.T, kubeconfig string) api {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return api{t, c}
}

// TestCluster installs the operator on a real cluster with Helm, and upgrades, removes and installs it again under a job that runs.
// At the end neither the operator nor its CRDs are installed.
func TestCluster(t *testing.T) {
	kubeconfig, operatorImage := os.Getenv("KUBECONFIG"), os.Getenv("IMG")
	if kubeconfig == "" || operatorImage == "" {
		t.Skip("KUBECONFIG and IMG name no cluster and no image of the operator; make install-e2e does")
	}
	a := connect(t, kubeconfig)
	h := newHelm(t, kubeconfig, namespace, kube.StatusWatcherStrategy, fmt.Sprintf("{image: %s, agent: {image: %s}}", imageValues(t, operatorImage), imageValues(t, os.Getenv("AGENT_IMG"))))
	sample := os.Getenv("SAMPLE_IMG")

	// An operator that make deploy installed is taken over.
	h.mustInstall("", true)
	a.wantCRDs(true)
	restrict(a, namespace)
	wantCheck(h)

	restrict(a, jobs)
	t.Cleanup(func() { _ = a.Delete(t.Context(), object("v1", "Namespace", "", jobs)) })
	pi := readYAML(t, "config/samples/pi.yaml", "odh/mpi-sample-openmpi:dev", sample)
	pi.SetNamespace(jobs)
	if err := a.Create(t.Context(), pi); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	wantCondition(a, "pi", "Succeeded")
	t.Logf("%-15s %5.1f s", "pi", time.Since(start).Seconds())
	wantReport(a, "pi", "Succeeded")

	long := readYAML(t, "config/samples/pi.yaml", "odh/mpi-sample-openmpi:dev", sample, "name: pi", "name: long", "job-name: pi", "job-name: long", `"4", pi]`, `"4", sleep, "1000"]`)
	long.SetNamespace(jobs)
	if err := a.Create(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	wantCondition(a, "long", "Running")
	before := stateOf(a)
	report := wantReport(a, "long", "Running")

	h.mustUpgrade(load(t), "{replicas: 1, settings: {logLevel: debug}}", true)
	wantArguments(a, "[--log-level=debug]")
	wantUnchanged(a, "helm upgrade", before, report)

	h.mustRollback(1)
	wantArguments(a, "<nil>")
	wantUnchanged(a, "helm rollback", before, report)

	h.mustUninstall()
	a.wantCRDs(true)
	a.eventually("the operator's pods are gone", time.Minute, func() bool {
		return len(a.list("v1", "Pod", namespace, client.MatchingLabels{"app.kubernetes.io/name": "mpijob-operator"})) == 0
	})
	wantUnchanged(a, "helm uninstall", before, report)

	h.mustInstall("", false)
	wantCheck(h)
	wantCondition(a, "long", "Running")
	wantUnchanged(a, "the second helm install", before, report)

	h.mustUpgrade(load(t), "crds: {keep: false}", true)
	h.mustUninstall()
	a.wantCRDs(false)
	a.eventually("the pods of jobs are gone with the CRDs", time.Minute, func() bool { return len(a.list("v1", "Pod", jobs)) == 0 })
}

// imageValues returns the values of an image name:tag. Its name is complete, so that the registry is empty.
func imageValues(t *testing.T, reference string) string {
	t.Helper()
	i := strings.LastIndex(reference, ":")
	if i < 0 {
		t.Fatalf("the image %q has no tag", reference)
	}
	return fmt.Sprintf("{registry: '', repository: %q, tag: %q}", reference[:i], reference[i+1:])
}

// restrict makes a namespace, if there is none, which enforces the Pod Security standard restricted.
func restrict(a api, name string) {
	a.t.Helper()
	o := object("v1", "Namespace", "", name)
	o.SetLabels(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	if err := a.Apply(a.t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("install-test"), client.ForceOwnership); err != nil {
		a.t.Fatal(err)
	}
}

// wantCheck runs helm test.
func wantCheck(h helm) {
	h.t.Helper()
	output, err := h.check()
	if err != nil {
		h.t.Fatalf("helm test: %v\n%s", err, output)
	}
	for _, line := range []string{"ok    Admission        invalid jobs are rejected", "ok    Users of jobs    the user who creates a job is recorded, here system:serviceaccount:" + h.namespace + ":mpijob-operator-test"} {
		if !strings.Contains(output, line) {
			h.t.Errorf("helm test prints\n%s\nwant the line %q", output, line)
		}
	}
}

func wantCondition(a api, name, condition string) {
	a.t.Helper()
	a.eventually(fmt.Sprintf("the job %s is %s", name, condition), jobTimeout, func() bool {
		conditions, _, _ := unstructured.NestedSlice(a.get(job(jobs, name)).Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool {
			return c.(map[string]any)["type"] == condition && c.(map[string]any)["status"] == "True"
		})
	})
}

// wantReport returns the UID of a job's report, once it has a phase.
func wantReport(a api, name, phase string) string {
	a.t.Helper()
	var uid string
	a.eventually(fmt.Sprintf("the report of the job %s has the phase %s", name, phase), 30*time.Second, func() bool {
		for _, o := range a.list("mpi.opendatahub.io/v1alpha1", "JobReport", jobs, client.MatchingLabels{"mpi.opendatahub.io/job-name": name}) {
			if got, _, _ := unstructured.NestedString(o.Object, "status", "phase"); got == phase {
				uid = string(o.GetUID())
			}
		}
		return uid != ""
	})
	return uid
}

// stateOf describes the job that runs: its pods, and how often their containers were restarted.
func stateOf(a api) string {
	a.t.Helper()
	var lines []string
	for _, pod := range a.list("v1", "Pod", jobs, client.MatchingLabels{"training.kubeflow.org/job-name": "long"}) {
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		line := fmt.Sprint(pod.GetName(), " ", pod.GetUID(), " ", phase)
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
		for _, status := range statuses {
			line += fmt.Sprint(" restarts ", status.(map[string]any)["restartCount"])
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// wantUnchanged fails if a rank was restarted, or if the report of the job is another one.
func wantUnchanged(a api, after, state, report string) {
	a.t.Helper()
	if got := stateOf(a); got != state {
		a.t.Errorf("after %s the pods of the job are\n%s\nwant\n%s", after, got, state)
	}
	if got := wantReport(a, "long", "Running"); got != report {
		a.t.Errorf("after %s the report of the job is another one", after)
	}
}
