package jobs

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// jobPods returns the pods of the MPIJob pi: a launcher and two workers with a grace period, and a pod of another job.
func jobPods(grace int64) []client.Object {
	pod := func(name, job, role string) *corev1.Pod {
		labels := mpi.Job{Name: job}.Selector()
		labels[mpi.LabelRole] = role
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}, Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace}}
	}
	return []client.Object{pod("pi-launcher", "pi", "launcher"), pod("pi-worker-0", "pi", "worker"), pod("pi-worker-1", "pi", "worker"), pod("tune-worker-0", "tune", "worker")}
}

func TestDeleteWithGrace(t *testing.T) {
	t.Parallel()
	pods := []string{"Pod pi-launcher", "Pod pi-worker-0", "Pod pi-worker-1"}
	for name, test := range map[string]struct {
		grace  *time.Duration
		dryRun DryRun
		want   []string
		// jobFirst is whether the job is deleted before its pods.
		jobFirst bool
	}{
		"the pods' own":   {want: []string{"MPIJob pi"}},
		"longer":          {grace: new(2 * time.Minute), want: append(slices.Clone(pods), "MPIJob pi")},
		"shorter":         {grace: new(5 * time.Second), want: append([]string{"MPIJob pi"}, pods...), jobFirst: true},
		"at once":         {grace: new(time.Duration(0)), want: append([]string{"MPIJob pi"}, pods...), jobFirst: true},
		"a dry run":       {grace: new(time.Minute), dryRun: DryRunClient},
		"a dry run there": {grace: new(time.Minute), dryRun: DryRunServer, want: append(slices.Clone(pods), "MPIJob pi")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := object(t, mpiJobText)
			c, s := newServer(t, append(jobPods(30), job)...)
			if err := c.DeleteWithGrace(t.Context(), FromObject(job), test.grace, test.dryRun); err != nil {
				t.Fatal(err)
			}
			got := slices.Clone(s.deleted)
			if at := slices.Index(got, "MPIJob pi"); len(got) > 1 && (at == 0) != test.jobFirst {
				t.Errorf("deleted in the order %v", got)
			}
			slices.Sort(got)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t)
	ended := FromObject(object(t, `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: a}, status: {conditions: [{type: Succeeded, status: "True"}]}}`))
	reported := FromObject(object(t, mpiJobText))
	reported.Report = &v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{CompletionTime: ago(time.Hour)}}
	for _, job := range []Job{ended, reported} {
		if _, is := errors.AsType[*EndedError](c.Cancel(t.Context(), job, nil, DryRunNone)); !is {
			t.Errorf("%s has ended and was cancelled", job)
		}
	}
	if _, is := errors.AsType[*DeletedError](c.Cancel(t.Context(), Job{Kind: "MPIJob", Name: "gone"}, nil, DryRunNone)); !is {
		t.Error("a deleted job was cancelled")
	}
	job := object(t, trainJobText)
	c, s := newServer(t, job)
	if err := c.Cancel(t.Context(), FromObject(job), nil, DryRunNone); err != nil || !slices.Equal(s.deleted, []string{"TrainJob pi"}) {
		t.Errorf("deleted %v: %v", s.deleted, err)
	}
	// A job that is gone meanwhile is no error.
	if err := c.Cancel(t.Context(), FromObject(job), nil, DryRunNone); err != nil {
		t.Error(err)
	}
}

func TestDeleteFails(t *testing.T) {
	t.Parallel()
	job := object(t, mpiJobText)
	for _, refused := range []string{"list PodList", "delete Pod", "delete MPIJob"} {
		c, s := newServer(t, append(jobPods(30), job.DeepCopy())...)
		s.refuse = func(verb, kind string) error {
			if verb+" "+kind == refused {
				return forbidden(kind)
			}
			return nil
		}
		for _, grace := range []time.Duration{time.Second, time.Hour} {
			if err := c.DeleteWithGrace(t.Context(), FromObject(job), &grace, DryRunNone); err == nil {
				t.Errorf("%s is forbidden, and deleting with %s does not fail", refused, grace)
			}
		}
	}
}

func TestAwaitDeletion(t *testing.T) {
	t.Parallel()
	job := object(t, mpiJobText)
	newer := job.DeepCopy()
	newer.SetUID("newer")
	for name, object := range map[string]client.Object{"deleted": nil, "a new job of the name": newer} {
		var objects []client.Object
		if object != nil {
			objects = append(objects, object)
		}
		c, _ := newServer(t, objects...)
		if err := c.AwaitDeletion(t.Context(), FromObject(job)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, s := newServer(t, job)
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	s.refuse = func(string, string) error {
		if asked++; asked == 2 {
			cancel()
		}
		return statusError(500, "x")
	}
	if err := c.AwaitDeletion(ctx, FromObject(job)); err == nil {
		t.Error("an error that is not about the connection is ignored")
	}
	c, s = newServer(t, job)
	s.refuse = func(string, string) error { cancel(); return nil }
	if err := c.AwaitDeletion(ctx, FromObject(job)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
