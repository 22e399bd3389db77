package operator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestOptionalRDMA: a job whose annotation allows it runs without the RDMA that no node offers, with a warning, and its pods
// stay alike when a node offers it later. Other jobs keep their requests.
func TestOptionalRDMA(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	stop := start(t, namespace)
	device := "example.com/rdma-" + namespace
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	create(t, node)
	t.Cleanup(func() { _ = api.Delete(context.Background(), node) })
	offer := func(devices string) {
		t.Helper()
		node.Status.Allocatable = amounts("cpu=64 memory=64Gi pods=110 " + device + "=" + devices)
		if err := api.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	offer("0")
	job := func(name string, change ...func(*kubeflow.MPIJob)) *kubeflow.MPIJob {
		change = append(change, func(job *kubeflow.MPIJob) {
			job.Name = name
			job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Resources.Limits = amounts("cpu=1 " + device + "=1")
		})
		return mpitest.MPIJob(namespace, 2, change...)
	}
	limits := func(pod string) corev1.ResourceList {
		t.Helper()
		return exists(t, namespace, pod, &corev1.Pod{}).Spec.Containers[0].Resources.Limits
	}
	hasDevice := func(list corev1.ResourceList) bool { _, has := list[corev1.ResourceName(device)]; return has }
	optional := annotated(mpi.AnnotationRDMA, mpi.RDMAOptional)

	create(t, job("falls-back", optional))
	for _, pod := range []string{"falls-back-worker-0", "falls-back-worker-1"} {
		if got := limits(pod); hasDevice(got) || got.Cpu().String() != "1" {
			t.Errorf("%s has the limits %v", pod, got)
		}
	}
	eventually(t, "the report warns", func() error {
		var reports v1alpha1.JobReportList
		if err := api.List(t.Context(), &reports, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, report := range reports.Items {
			for _, finding := range report.Status.Findings {
				if finding.Code == codes.RDMAFallback && report.Spec.JobRef.Name == "falls-back" && finding.Severity == v1alpha1.SeverityWarning && strings.Contains(finding.Summary, device) {
					return nil
				}
			}
		}
		return fmt.Errorf("%d reports, none with the finding", len(reports.Items))
	})
	create(t, job("by-default"))
	if hasDevice(limits("by-default-worker-0")) {
		t.Error("a job without the annotation waits")
	}
	create(t, job("waits", annotated(mpi.AnnotationRDMA, mpi.RDMARequired)))
	if !hasDevice(limits("waits-worker-0")) {
		t.Error("a job that insists on RDMA has lost its request")
	}

	offer("8")
	create(t, job("has-it", optional))
	eventually(t, "a new job requests what a node offers now", func() error {
		// The operator may not know of the node's devices at once.
		if hasDevice(limits("has-it-worker-0")) {
			return nil
		}
		found := get(t, namespace, "has-it", &kubeflow.MPIJob{})
		if err := api.Delete(t.Context(), found); err != nil {
			return err
		}
		return fmt.Errorf("its worker has the limits %v", limits("has-it-worker-0"))
	})
	// Also by another operator.
	stop()
	start(t, namespace)
	replaced := get(t, namespace, "falls-back-worker-1", &corev1.Pod{})
	if err := api.Delete(t.Context(), replaced, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	if anew := exists(t, namespace, "falls-back-worker-1", &corev1.Pod{}, string(replaced.UID)); hasDevice(anew.Spec.Containers[0].Resources.Limits) {
		t.Error("a worker that was replaced differs from its siblings")
	}
}

// TestRDMARemovedInAQueue: a suspended job that leaves its queue stays without the RDMA that no node offers, also if it is applied again,
// and its report says so.
func TestRDMARemovedInAQueue(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	guarded(t, namespace)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	create(t, node)
	t.Cleanup(func() { _ = api.Delete(context.Background(), node) })
	node.Status.Allocatable = amounts("cpu=64 memory=64Gi pods=110")
	if err := api.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	device := "example.com/rdma-" + namespace
	request := func(o *kubeflow.MPIJob) {
		o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Resources.Limits = amounts("cpu=1 " + device + "=1")
	}
	isWithout := func(job *kubeflow.MPIJob) error {
		limits := job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Resources.Limits
		if _, has := limits[corev1.ResourceName(device)]; has || !strings.Contains(job.Annotations[mpi.AnnotationRemovedRDMA], namespace) {
			return fmt.Errorf("it has the limits %v and the annotations %v", limits, job.Annotations)
		}
		return nil
	}
	// The webhook fails open, and may not answer at once.
	queued := func() *kubeflow.MPIJob {
		return mpitest.MPIJob(namespace, 2, request, func(o *kubeflow.MPIJob) {
			o.Labels, o.Spec.RunPolicy.Suspend = map[string]string{mpi.LabelQueue: "team"}, new(true)
		})
	}
	eventually(t, "the webhook answers", func() error {
		job := queued()
		if err := api.Create(t.Context(), job, client.DryRunAll); err != nil {
			return err
		}
		return isWithout(job)
	})
	create(t, queued())
	for _, edit := range []func(*kubeflow.MPIJob){func(o *kubeflow.MPIJob) { o.Labels = nil }, request} {
		change(t, namespace, edit)
		if err := isWithout(get(t, namespace, "pi", &kubeflow.MPIJob{})); err != nil {
			t.Error(err)
		}
	}
	change(t, namespace, func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.Suspend = new(false) })
	if labels := exists(t, namespace, "pi-worker-0", &corev1.Pod{}).Labels; labels[mpi.LabelWithoutRDMA] != "true" {
		t.Errorf("its worker has the labels %v", labels)
	}
	eventually(t, "the report warns", func() error {
		report := reported(t, namespace, "Initializing")
		if !slices.ContainsFunc(report.Status.Findings, func(f v1alpha1.Finding) bool {
			return f.Code == codes.RDMAFallback && strings.Contains(f.Summary, device)
		}) {
			return fmt.Errorf("its findings are %+v", report.Status.Findings)
		}
		return nil
	})
}

// warnings are those of the API server's answers.
type warnings []string

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) { *w = append(*w, text) }

// TestAdmissionOfOptionalRDMA: the webhook warns of RDMA that no node offers and names the annotation, and refuses other values
// of it.
func TestAdmissionOfOptionalRDMA(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	guarded(t, namespace)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"pool": namespace}}}
	create(t, node)
	t.Cleanup(func() { _ = api.Delete(context.Background(), node) })
	node.Status.Allocatable = amounts("cpu=64 memory=64Gi pods=110")
	if err := api.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	device := "example.com/rdma-" + namespace
	warned := func(value string) ([]string, error) {
		var recorded warnings
		config := rest.CopyConfig(restConfig)
		config.WarningHandler, config.Impersonate = &recorded, rest.ImpersonationConfig{}
		recording, err := client.New(config, client.Options{Scheme: api.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		job := mpitest.MPIJob(namespace, 2, func(job *kubeflow.MPIJob) {
			job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Resources.Limits = amounts("cpu=1 " + device + "=1")
		})
		if value != "" {
			annotated(mpi.AnnotationRDMA, value)(job)
		}
		err = recording.Create(t.Context(), job, client.DryRunAll)
		return recorded, err
	}
	for value, want := range map[string]string{
		mpi.RDMARequired: "no node that the pod may run on offers " + device + "; set metadata.annotations[mpi.opendatahub.io/rdma] to optional",
		mpi.RDMAOptional: "metadata.annotations[mpi.opendatahub.io/rdma]: no node offers the " + device + " that the pods request: the job runs over TCP",
		"":               "metadata.annotations[mpi.opendatahub.io/rdma]: no node offers the " + device + " that the pods request: the job runs over TCP",
	} {
		eventually(t, "the webhook warns with "+value, func() error {
			warnings, err := warned(value)
			if err != nil || !slices.ContainsFunc(warnings, func(text string) bool { return strings.Contains(text, want) }) {
				return fmt.Errorf("warnings %q (%w)", warnings, err)
			}
			return nil
		})
	}
	if _, err := warned("never"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `metadata.annotations[mpi.opendatahub.io/rdma]: Unsupported value: "never"`) {
		t.Errorf("the answer to another value is %v", err)
	}
}

// TestOptionalRDMAOfTrainJobs: a TrainJob whose JobSet has no requests for RDMA, as the webhook marks it, is placed without them,
// and its report warns and contains what ran.
func TestOptionalRDMAOfTrainJobs(t *testing.T) {
	t.Parallel()
	server := newTrainerServer(t)
	node := server.node(t, "one")
	server.runtime(t, "mpi")
	defer server.start(t)()
	optional := server.gatedJob(t, "optional", func(g *gatedJob) {
		limits := map[string]any{"cpu": "1", "rdma/hca": "1"}
		g.job.Object["spec"].(map[string]any)["trainer"] = map[string]any{"numNodes": int64(3), "resourcesPerNode": map[string]any{"limits": limits}}
		g.job.SetAnnotations(map[string]string{mpi.AnnotationRDMA: mpi.RDMAOptional})
		trainjob.RemoveRDMA(g.set.Object)
	})
	eventually(t, "the pods without RDMA fit", func() error {
		if !optional.isOpen(t) {
			return fmt.Errorf("the gate is closed")
		}
		return nil
	})
	optional.start(t, node.Name)
	status := optional.told(t, "the report warns", func(status v1alpha1.JobReportStatus) error {
		if !slices.ContainsFunc(status.Findings, func(f v1alpha1.Finding) bool {
			return f.Code == codes.RDMAFallback && strings.Contains(f.Summary, "rdma/hca")
		}) {
			return fmt.Errorf("it is %s with the findings %+v", status.Phase, status.Findings)
		}
		return nil
	})
	if _, has := status.Run.Limits["rdma/hca"]; has {
		t.Errorf("the record contains the limits %v", status.Run.Limits)
	}
}
