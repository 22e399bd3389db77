package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/test/hostile"
)

const (
	// hostileJobs is how many jobs TestHostile creates without HOSTILE, hostileAtOnce how many of them exist at a time, and
	// hostileBatch how many share a namespace: fewer than a namespace keeps reports.
	hostileJobs, hostileAtOnce, hostileBatch = 60, 12, 200
	// hostileWithin is how long a job has until it has ended or shows its cause, on a quiet machine.
	hostileWithin = 30 * time.Second
	// hostileSeed makes the same jobs each time. HOSTILE_SEED is another one.
	hostileSeed = 1
)

// outcome is what came of a hostile job.
type outcome string

const (
	// cameRefused is an error that names a field; cameRefusedByOthers is one of the API server or Trainer that names none.
	cameRefused, cameRefusedByOthers outcome = "refused", "refused by others without a field"
	// cameEnded is a job that succeeded or failed, with a report, cameWaiting one whose report has a cause, and cameRunning one
	// whose launcher still runs. cameElsewhere is one that names another controller.
	cameEnded, cameWaiting, cameRunning, cameElsewhere outcome = "ended", "waiting with a cause", "running", "left to another controller"
	// These fail the test: an error of the operator without a field, or one that is not a refusal; a job without a report; one
	// whose report has no cause; one with a pod that no NetworkPolicy selects.
	cameRefusedWrongly, cameSilent, cameStuck, cameExposed outcome = "refused wrongly", "silent", "stuck", "without isolation"
)

// fails reports whether no job may come to this.
func (o outcome) fails() bool {
	return slices.Contains([]outcome{cameRefusedWrongly, cameSilent, cameStuck, cameExposed}, o)
}

// hostileTally counts outcomes.
type hostileTally struct {
	mu     sync.Mutex
	counts map[outcome]int
	slow   int
}

func (c *hostileTally) add(o outcome, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[o]++
	if took > hostileWithin {
		c.slow++
	}
}

func (c *hostileTally) String() string {
	text := "hostile jobs:"
	for _, o := range []outcome{cameRefused, cameRefusedByOthers, cameEnded, cameWaiting, cameRunning, cameElsewhere, cameRefusedWrongly, cameSilent, cameStuck, cameExposed} {
		text += fmt.Sprintf("\n  %6d %s", c.counts[o], o)
	}
	return text + fmt.Sprintf("\n  %6d of them took more than %s", c.slow, hostileWithin)
}

// TestHostile creates odd and hostile jobs (test/hostile). Each is refused with an error that names a field, or ends, or waits
// with a cause; its pods are isolated. Nothing is left of them, and the operator is as it was before. HOSTILE is the number of
// jobs, HOSTILE_SEED chooses others. It does not run beside other tests: it compares the operator before and after.
func TestHostile(t *testing.T) {
	number, seed := numberOf(t, "HOSTILE", hostileJobs), numberOf(t, "HOSTILE_SEED", hostileSeed)
	by := quietClient(t)
	read := usageReader(t)
	restarted, before := restarts(t, operatorKey.Namespace), read()
	total := &hostileTally{counts: map[outcome]int{}}
	tried := 0
	for batch := range slices.Chunk(hostile.Generate(uint64(seed), number), hostileBatch) {
		tried += tryBatch(t, by, batch, total)
	}
	t.Logf("seed %d, %d jobs tried\n%s", seed, tried, total)
	for name, count := range restarts(t, operatorKey.Namespace) {
		if was, known := restarted[name]; !known || count > was {
			t.Errorf("the operator's pod %s has restarted, %d times in all", name, count)
		}
	}
	if len(before) == 0 {
		t.Log("the operator's metrics cannot be read from here, so that its goroutines and memory are not compared")
		return
	}
	eventually(t, "the operator uses no more than before", time.Minute, func() error { return read().within(before) })
}

// numberOf returns a number from the environment.
func numberOf(t *testing.T, name string, unset int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unset
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%s: must be a number", name, text)
	}
	return n
}

// quietClient is a client that prints no warnings of the API server: hostile jobs have many.
func quietClient(t *testing.T) client.WithWatch {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	made, err := client.NewWithWatch(config, client.Options{Scheme: api.Scheme(), Mapper: api.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return patient(made)
}

// tryBatch creates jobs in a namespace of their own, and returns how many. TrainJobs are left out if Trainer is not installed.
func tryBatch(t *testing.T, by client.Client, batch []hostile.Case, total *hostileTally) (tried int) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-hostile-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	create(t, namespace)
	t.Cleanup(func() { _ = api.Delete(context.Background(), namespace) })
	_, err := api.RESTMapper().RESTMapping(schema.GroupKind{Group: trainjob.GroupVersion.Group, Kind: trainjob.Kind})
	withTrainer := err == nil
	if withTrainer {
		runtimeIn(t, namespace.Name, "mpi-openmpi", "runAsUser: 1000\n", "runAsUser: 1000650000\n")
	} else if !apimeta.IsNoMatchError(err) {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	room := make(chan struct{}, hostileAtOnce)
	for _, c := range batch {
		if c.Kind == mpi.KindTrainJob && !withTrainer {
			continue
		}
		tried++
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			start := time.Now()
			came, detail := tryHostile(t.Context(), by, namespace.Name, c)
			total.add(came, time.Since(start))
			switch {
			case came.fails():
				t.Errorf("%s: %s: %s", c, came, detail)
			case came == cameRefusedByOthers:
				t.Logf("%s: %s: %s", c, came, detail)
			}
		})
	}
	group.Wait()
	nothingIsLeft(t, namespace.Name)
	_ = api.Delete(t.Context(), namespace)
	return tried
}

// nothingIsLeft waits until no object of jobs exists but their reports.
func nothingIsLeft(t *testing.T, namespace string) {
	t.Helper()
	kinds := []schema.GroupVersionKind{{Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"}, trainjob.GroupVersion.WithKind(trainjob.Kind), trainjob.JobSetKind}
	eventually(t, "nothing is left of the deleted jobs", time.Minute, func() error {
		left := children(t, namespace)
		for _, kind := range kinds {
			list := listOfKind(kind)
			switch err := api.List(t.Context(), list, client.InNamespace(namespace)); {
			case apimeta.IsNoMatchError(err):
			case err != nil:
				return err
			}
			for i := range list.Items {
				left = append(left, kind.Kind+" "+list.Items[i].GetName())
			}
		}
		left = slices.DeleteFunc(left, func(name string) bool { return strings.HasSuffix(name, " openshift-service-ca.crt") })
		if len(left) > 0 {
			return fmt.Errorf("%d objects are left: %.500s", len(left), strings.Join(left, ", "))
		}
		return nil
	})
}

// tryHostile creates a job, waits for what comes of it, and deletes it.
func tryHostile(ctx context.Context, by client.Client, namespace string, c hostile.Case) (outcome, string) {
	object := &unstructured.Unstructured{Object: c.Object}
	object.SetNamespace(namespace)
	if err := useImage(object); err != nil {
		return cameRefusedWrongly, err.Error()
	}
	if err := createWithRuntime(ctx, by, object); err != nil {
		return refusal(err)
	}
	came, detail := follow(ctx, by, object, c)
	if name, err := unisolated(ctx, object); err != nil {
		came, detail = cameStuck, err.Error()
	} else if name != "" {
		came, detail = cameExposed, "no NetworkPolicy selects its pod "+name
	}
	if err := client.IgnoreNotFound(by.Delete(ctx, object)); err != nil {
		return cameStuck, "it cannot be deleted: " + err.Error()
	}
	return came, detail
}

// useImage replaces the image of the generated jobs by that of this cluster.
func useImage(object *unstructured.Unstructured) error {
	text, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	return object.UnmarshalJSON([]byte(strings.ReplaceAll(string(text), hostile.Image, image)))
}

// createWithRuntime creates a job, and tries again while Trainer's webhook does not know the runtime that was just created.
func createWithRuntime(ctx context.Context, by client.Client, object *unstructured.Unstructured) error {
	name, _, _ := unstructured.NestedString(object.Object, "spec", "runtimeRef", "name")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(pause) {
		err := by.Create(ctx, object)
		if err == nil || name != hostile.Runtime || time.Now().After(deadline) || !strings.Contains(err.Error(), "must be created before the TrainJob") {
			return err
		}
	}
}

// namesField matches errors that name a field.
var namesField = regexp.MustCompile(`\b(metadata|spec|name)\b[.:\[" ]`)

// refusal judges the error of a creation or change.
func refusal(err error) (outcome, string) {
	text := err.Error()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError || passing(err) {
		return cameRefusedWrongly, text
	}
	isClear := namesField.MatchString(text)
	if details := status.Status().Details; details != nil {
		isClear = isClear || slices.ContainsFunc(details.Causes, func(cause metav1.StatusCause) bool { return cause.Field != "" })
	}
	switch {
	case isClear:
		return cameRefused, text
	case strings.Contains(text, mpi.Group) || strings.Contains(text, "mpijob-"):
		return cameRefusedWrongly, text
	}
	return cameRefusedByOthers, text
}

// follow waits until a job has ended or shows why it waits, and gives it its later annotations once it runs.
func follow(ctx context.Context, by client.Client, object *unstructured.Unstructured, c hostile.Case) (outcome, string) {
	if c.Elsewhere {
		return cameElsewhere, ""
	}
	changed := len(c.Later) == 0
	start := time.Now()
	for ; ; time.Sleep(pause) {
		has, err := hasEnded(ctx, by, object)
		report, reportErr := latestReport(ctx, object)
		if err := errors.Join(err, reportErr); err != nil {
			return cameStuck, err.Error()
		}
		var seen v1alpha1.JobReportStatus
		if report != nil {
			seen = report.Status
		}
		if !changed && (has || seen.Phase == v1alpha1.PhaseRunning || time.Since(start) > hostileWithin) {
			changed = true
			if err := annotate(ctx, by, object, c.Later); err != nil && !apierrors.IsNotFound(err) {
				if came, detail := refusal(err); came != cameRefused {
					return came, "change of annotations: " + detail
				}
			}
		}
		finished := seen.Phase == v1alpha1.PhaseSucceeded || seen.Phase == v1alpha1.PhaseFailed && (seen.Reason != "" || len(seen.Findings) > 0)
		switch why := causeOf(seen); {
		case changed && has && finished:
			return cameEnded, seen.Reason
		case changed && !has && !c.Ends && why != "":
			return cameWaiting, why
		case time.Since(start) < hostileWithin*patience:
			continue
		case report == nil:
			return cameSilent, "it has no report"
		case !c.Ends && seen.Phase == v1alpha1.PhaseRunning && launcherRuns(seen):
			return cameRunning, ""
		}
		return cameStuck, fmt.Sprintf("ended: %t, phase %s, reason %s: %s; %d findings", has, seen.Phase, seen.Reason, seen.Message, len(seen.Findings))
	}
}

// hasEnded reports whether a job has one of its ends. One that was deleted at its end has.
func hasEnded(ctx context.Context, by client.Client, object *unstructured.Unstructured) (bool, error) {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(object.GroupVersionKind())
	if err := by.Get(ctx, client.ObjectKeyFromObject(object), now); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		fields, _ := c.(map[string]any)
		kind, _ := fields["type"].(string)
		return fields["status"] == "True" && slices.Contains([]string{"Succeeded", "Complete", "Failed"}, kind)
	}), nil
}

func latestReport(ctx context.Context, object *unstructured.Unstructured) (*v1alpha1.JobReport, error) {
	var list v1alpha1.JobReportList
	of := mpi.Job{Kind: object.GetKind(), Name: object.GetName()}.ReportLabels()
	if err := api.List(ctx, &list, client.InNamespace(object.GetNamespace()), client.MatchingLabels(of)); err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[len(list.Items)-1], nil
}

func annotate(ctx context.Context, by client.Client, object *unstructured.Unstructured, annotations map[string]string) error {
	base := &unstructured.Unstructured{}
	base.SetGroupVersionKind(object.GroupVersionKind())
	base.SetNamespace(object.GetNamespace())
	base.SetName(object.GetName())
	changed := base.DeepCopy()
	changed.SetAnnotations(annotations)
	return by.Patch(ctx, changed, client.MergeFrom(base))
}

// causeOf returns the code of what a job waits for or suffers from; empty if its report names none.
func causeOf(seen v1alpha1.JobReportStatus) string {
	for _, finding := range seen.Findings {
		if codes.StrengthOf(finding.Code) < codes.Unexplained {
			return finding.Code
		}
	}
	switch seen.Phase {
	case v1alpha1.PhaseQueued, v1alpha1.PhaseGangScheduling, v1alpha1.PhaseSuspended:
		return seen.Reason
	}
	if slices.Contains([]codes.Code{codes.ValidationError, codes.ErrResourceExists, codes.WaitingForEarlierJob, codes.WaitingForQuota}, seen.Reason) {
		return seen.Reason
	}
	return ""
}

func launcherRuns(seen v1alpha1.JobReportStatus) bool {
	return slices.ContainsFunc(seen.Pods, func(pod v1alpha1.PodStatus) bool {
		return pod.Role == string(mpi.RoleLauncher) && pod.Phase == string(corev1.PodRunning)
	})
}

// unisolated returns a pod of a job that no NetworkPolicy selects; empty if there is none. Pods that have ended are ignored.
func unisolated(ctx context.Context, object *unstructured.Unstructured) (string, error) {
	var pods corev1.PodList
	var policies networkingv1.NetworkPolicyList
	if err := errors.Join(api.List(ctx, &pods, client.InNamespace(object.GetNamespace())), api.List(ctx, &policies, client.InNamespace(object.GetNamespace()))); err != nil {
		return "", err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !strings.HasPrefix(pod.Name, object.GetName()+"-") || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if !slices.ContainsFunc(policies.Items, func(policy networkingv1.NetworkPolicy) bool {
			selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
			return err == nil && selector.Matches(labels.Set(pod.Labels))
		}) {
			return pod.Name, nil
		}
	}
	return "", nil
}

// usage is what the operator's pods use, by their names.
type usage map[string]struct{ goroutines, bytes float64 }

// within returns where usage is clearly above an earlier one. A heap may be twice as large before it is collected.
func (u usage) within(before usage) error {
	for name, was := range before {
		is, found := u[name]
		if !found {
			return fmt.Errorf("the metrics of %s cannot be read", name)
		}
		if most := 1.2*was.goroutines + 50; is.goroutines > most {
			return fmt.Errorf("%s has %.0f goroutines, and had %.0f before", name, is.goroutines, was.goroutines)
		}
		if most := 2*was.bytes + 64<<20; is.bytes > most {
			return fmt.Errorf("%s has a heap of %.0f MiB, and had %.0f before", name, is.bytes/(1<<20), was.bytes/(1<<20))
		}
	}
	return nil
}

// usageReader returns a function that reads the operator's metrics from its pods. It returns nothing where pods cannot be
// reached, as on a cluster on other machines.
func usageReader(t *testing.T) func() usage {
	t.Helper()
	namespace := newNamespace(t)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-metrics"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mpijob-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "metrics"}},
	}
	create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "metrics"}})
	create(t, binding)
	t.Cleanup(func() { _ = api.Delete(context.Background(), binding) })
	made, err := logs.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "metrics", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	insecure := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // the certificate is the operator's own
	return func() usage {
		found := usage{}
		var pods corev1.PodList
		if err := api.List(t.Context(), &pods, client.InNamespace(operatorKey.Namespace), client.MatchingLabels{"app.kubernetes.io/name": "mpijob-operator"}); err != nil {
			t.Fatal(err)
		}
		for i := range pods.Items {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+pods.Items[i].Status.PodIP+":8443/metrics", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+made.Status.Token)
			response, err := insecure.Do(request)
			if err != nil {
				t.Logf("read the metrics of %s: %v", pods.Items[i].Name, err)
				continue
			}
			values := metricValues(response.Body)
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Logf("read the metrics of %s: %s", pods.Items[i].Name, response.Status)
				continue
			}
			found[pods.Items[i].Name] = struct{ goroutines, bytes float64 }{values["go_goroutines"], values["go_memstats_heap_inuse_bytes"]}
		}
		return found
	}
}

// metricValues reads metrics without labels.
func metricValues(from io.Reader) map[string]float64 {
	values := map[string]float64{}
	for lines := bufio.NewScanner(from); lines.Scan(); {
		if name, text, found := strings.Cut(lines.Text(), " "); found {
			if value, err := strconv.ParseFloat(text, 64); err == nil {
				values[name] = value
			}
		}
	}
	return values
}
