// Package e2e tests the installed operator on a real cluster with real MPI. `make e2e` runs it.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

var (
	api  client.WithWatch
	logs kubernetes.Interface
	// image is the sample's, in which the tests' ranks run.
	image = "odh/mpi-sample-openmpi:dev"
)

// operatorKey names the installed operator's Deployment, and the Lease of its leader.
var operatorKey = client.ObjectKey{Namespace: "mpijob-system", Name: "mpijob-operator"}

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.list").Value.String() != "" {
		os.Exit(m.Run())
	}
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		if err := skipClusterTests(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("SKIPPED most of test/e2e: KUBECONFIG names no cluster; `make e2e` makes one")
		os.Exit(m.Run())
	}
	if from := os.Getenv("SAMPLE_IMG"); from != "" {
		image = from
	}
	if err := skipOthers(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	mend()
	log.SetLogger(logr.Discard())
	if err := connect(path); err != nil {
		fmt.Fprintln(os.Stderr, "connect to the cluster:", err)
		os.Exit(1)
	}
	code := m.Run()
	if refused, err := refusedWrites(context.Background()); err != nil || len(refused) > 0 {
		fmt.Fprintf(os.Stderr, "FAIL: the policies for the operator's service account (config/webhook/operator.yaml) refused what it writes: %v %s\n", err, strings.Join(refused, "\n"))
		code = max(code, 1)
	}
	os.Exit(code)
}

// refusedWrites returns the lines of the operator's log about writes that the policies for its own account refuse, other than in namespaces
// where no job may run.
func refusedWrites(ctx context.Context) (lines []string, err error) {
	var pods corev1.PodList
	if err := api.List(ctx, &pods, client.InNamespace(operatorKey.Namespace), client.MatchingLabels{"app.kubernetes.io/name": operatorKey.Name}); err != nil {
		return nil, err
	}
	for _, pod := range pods.Items {
		text, err := logs.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err) {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "ValidatingAdmissionPolicy 'mpijob-operator") && !strings.Contains(line, "run the job in another namespace") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines, nil
}

func connect(path string) error {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return err
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	plain, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	api = patient(plain)
	logs, err = kubernetes.NewForConfig(config)
	return err
}

// patient tries again what a machine was too busy for: an API server or a webhook that did not answer in time.
func patient(plain client.WithWatch) client.WithWatch {
	try := func(ctx context.Context, call func() error) error {
		for deadline := time.Now().Add(maxWait); ; {
			err := call()
			if err == nil || !passing(err) || time.Now().After(deadline) {
				return err
			}
			select {
			case <-ctx.Done():
				return err
			case <-time.After(time.Second):
			}
		}
	}
	return interceptor.NewClient(plain, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return try(ctx, func() error { return c.Get(ctx, key, object, options...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return try(ctx, func() error { return c.List(ctx, list, options...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return try(ctx, func() error { return c.Create(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return try(ctx, func() error { return c.Patch(ctx, object, patch, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return try(ctx, func() error { return c.Delete(ctx, object, options...) })
		},
	})
}

// passing reports whether an error is of a server that is too busy or starting, before it has done anything.
func passing(err error) bool {
	text := err.Error()
	for _, part := range []string{"TLS handshake timeout", "connection refused", "failed calling webhook", "http2: client connection lost"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}

// reportOf is the record of a job, found as people find it: by the job's kind and name; nil while there is none.
func reportOf(t *testing.T, kind, namespace, name string) *v1alpha1.JobReport {
	t.Helper()
	var list v1alpha1.JobReportList
	labels := mpi.Job{Kind: kind, Name: name}.ReportLabels()
	if err := api.List(t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[len(list.Items)-1]
}

// reported waits until a job's record meets a check, and returns it.
func reported(t *testing.T, kind, namespace, name, what string, check func(v1alpha1.JobReportStatus) error) *v1alpha1.JobReport {
	t.Helper()
	var found *v1alpha1.JobReport
	eventually(t, what, 2*time.Minute, func() error {
		if found = reportOf(t, kind, namespace, name); found == nil {
			return errors.New("there is no report")
		}
		return check(found.Status)
	})
	return found
}

// newNamespace makes a namespace that lets only restricted pods in, and removes it at the end of the test. Its jobs are placed as QUEUED and
// GANGS say.
func newNamespace(t *testing.T) string {
	t.Helper()
	name := bareNamespace(t)
	queueAll(t, name)
	placeNatively(t, name)
	return name
}

// bareNamespace is newNamespace without regard to QUEUED and GANGS.
func bareNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := api.Create(t.Context(), namespace); err != nil {
		t.Fatalf("create namespace: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			dump(t, namespace.Name)
		}
		_ = api.Delete(context.Background(), namespace)
	})
	return namespace.Name
}

// sample reads a job of config/samples.
func sample(t *testing.T, name, namespace string, change ...func(*kubeflow.MPIJob)) *kubeflow.MPIJob {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	job := &kubeflow.MPIJob{}
	if err := yaml.UnmarshalStrict(data, job); err != nil {
		t.Fatalf("read the sample %s: %v", name, err)
	}
	job.Namespace = namespace
	for _, role := range job.Spec.MPIReplicaSpecs {
		role.Template.Spec.Containers[0].Image = image
	}
	for _, c := range change {
		c(job)
	}
	return job
}

func launcher(job *kubeflow.MPIJob) *corev1.Container {
	return &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.Containers[0]
}

func worker(job *kubeflow.MPIJob) *corev1.Container {
	return &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0]
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := api.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

const (
	// patience is how many times longer than on a quiet machine anything may take: a small one that is shared may have no
	// processor for a minute.
	patience = 4
	// maxWait is how long a test waits at most for anything that has no time of its own, such as a deadline of the job. A
	// failed test prints what is left of it (dump).
	maxWait = 2 * time.Minute
)

// pause is between two looks at what is waited for, and what is waited for long is looked at every longestPause. Looking is a good part
// of what the API server has to do in these tests.
const pause, longestPause = 250 * time.Millisecond, time.Second

// eventually waits until a check finds nothing wrong: patience times as long as it takes on a quiet machine, and no longer
// than maxWait.
func eventually(t *testing.T, what string, within time.Duration, check func() error) {
	t.Helper()
	eventuallyAfter(t, what, 0, within, check)
}

// eventuallyAfter is eventually for what cannot be so before some time has passed.
func eventuallyAfter(t *testing.T, what string, first, within time.Duration, check func() error) {
	t.Helper()
	within = first + min(within*patience, maxWait)
	start := time.Now()
	deadline := start.Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, within, err)
		}
		time.Sleep(min(max(time.Since(start)/20, pause), longestPause))
	}
}

// condition is a job's condition of a type, empty where it has none.
func condition(job *kubeflow.MPIJob, kind kubeflow.JobConditionType) kubeflow.JobCondition {
	for _, c := range job.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return kubeflow.JobCondition{}
}

// waitFor waits until a job meets a check, and returns it. A job that fails against expectation ends the wait.
func waitFor(t *testing.T, job *kubeflow.MPIJob, what string, check func(*kubeflow.MPIJob) error) *kubeflow.MPIJob {
	t.Helper()
	var now kubeflow.MPIJob
	eventually(t, what, time.Minute, func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), &now); err != nil {
			return err
		}
		err := check(&now)
		if failed := condition(&now, kubeflow.JobFailed); err != nil && failed.Status == corev1.ConditionTrue {
			t.Fatalf("%s: the job has failed: %s", what, failed.Message)
		}
		return err
	})
	return &now
}

func succeeded(job *kubeflow.MPIJob) error {
	if condition(job, kubeflow.JobSucceeded).Status == corev1.ConditionTrue {
		return nil
	}
	return fmt.Errorf("conditions are %+v", job.Status.Conditions)
}

// output is all that the launcher has printed, in its last attempt.
func output(t *testing.T, job *kubeflow.MPIJob) string {
	t.Helper()
	pods := podsOf(t, job, mpi.RoleLauncher)
	if len(pods) == 0 {
		t.Fatal("the launcher has no pod")
	}
	// Kubernetes keeps the pods of earlier attempts.
	last := slices.MaxFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	stream, err := logs.CoreV1().Pods(job.Namespace).GetLogs(last.Name, &corev1.PodLogOptions{}).Stream(t.Context())
	if err != nil {
		t.Fatalf("read the launcher's log: %v", err)
	}
	defer func() { _ = stream.Close() }()
	data, err := io.ReadAll(stream)
	if err != nil {
		t.Fatalf("read the launcher's log: %v", err)
	}
	return string(data)
}

func podsOf(t *testing.T, job *kubeflow.MPIJob, role mpi.Role) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	err := api.List(t.Context(), &pods, client.InNamespace(job.Namespace), client.MatchingLabels{mpi.LabelJob: job.Name, mpi.LabelRole: string(role)})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// children are all objects that an operator or a controller may have made for jobs of a namespace.
func children(t *testing.T, namespace string) []string {
	t.Helper()
	var names []string
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}, &networkingv1.NetworkPolicyList{}, &batchv1.JobList{}} {
		if err := api.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if name := item.(client.Object).GetName(); name != "kube-root-ca.crt" {
				names = append(names, fmt.Sprintf("%T %s", item, name))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// dump prints what is left of a failed test.
func dump(t *testing.T, namespace string) {
	t.Helper()
	ctx := context.Background()
	var jobs kubeflow.MPIJobList
	_ = api.List(ctx, &jobs, client.InNamespace(namespace))
	for i := range jobs.Items {
		status, _ := yaml.Marshal(jobs.Items[i].Status)
		t.Logf("MPIJob %s\n%s", jobs.Items[i].Name, status)
	}
	var reports v1alpha1.JobReportList
	_ = api.List(ctx, &reports, client.InNamespace(namespace))
	for i := range reports.Items {
		status, _ := yaml.Marshal(reports.Items[i].Status)
		t.Logf("JobReport %s\n%s", reports.Items[i].Name, status)
	}
	var pods corev1.PodList
	_ = api.List(ctx, &pods, client.InNamespace(namespace))
	for i := range pods.Items {
		pod := &pods.Items[i]
		tail := int64(30)
		text, _ := logs.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: &tail}).DoRaw(ctx)
		status, _ := yaml.Marshal(pod.Status.ContainerStatuses)
		t.Logf("Pod %s on %s: %s\n%s%s", pod.Name, pod.Spec.NodeName, pod.Status.Phase, status, text)
	}
	var events corev1.EventList
	_ = api.List(ctx, &events, client.InNamespace(namespace))
	for i := range events.Items {
		e := &events.Items[i]
		t.Logf("event %s %s/%s %s: %s", e.Type, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, strings.TrimSpace(e.Message))
	}
}
