package jobs

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"opendatahub.io/mpijob/api/v1alpha1"
)

func TestFind(t *testing.T) {
	t.Parallel()
	older, newer := reportFor("MPIJob", "gone", "old", v1alpha1.JobReportStatus{}), reportFor("MPIJob", "gone", "new", v1alpha1.JobReportStatus{})
	older.CreationTimestamp, newer.CreationTimestamp = *ago(2), *ago(1)
	c, s := newServer(t, object(t, mpiJobText), object(t, "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: pi}}"),
		object(t, "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: tune}}"),
		reportFor("TrainJob", "tune", "tune-uid", v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseRunning}), reportFor("TrainJob", "tune", "before", v1alpha1.JobReportStatus{}), older, newer)
	for reference, want := range map[string]struct {
		uid   string
		phase v1alpha1.Phase
		gone  bool
	}{
		"mpijob/pi":    {uid: "pi-uid"},
		"TrainJobs/pi": {uid: "pi-uid"},
		"tune":         {uid: "tune-uid", phase: v1alpha1.PhaseRunning},
		"gone":         {uid: "new", gone: true},
	} {
		job, err := c.Find(t.Context(), "ns", reference)
		if err != nil {
			t.Errorf("%s: %v", reference, err)
			continue
		}
		if string(job.UID) != want.uid || job.Phase() != want.phase || (job.Object == nil) != want.gone {
			t.Errorf("%s is %s (phase %q, gone %t), want %+v", reference, job.UID, job.Phase(), job.Object == nil, want)
		}
	}
	for reference, want := range map[string]string{
		"pi":          `several jobs are named "pi"; use mpijob/pi or trainjob/pi`,
		"pod/pi":      "name: pod/pi is not a job; use NAME, mpijob/NAME or trainjob/NAME",
		"":            "name: \"\" is not a job; use NAME, mpijob/NAME or trainjob/NAME",
		"mpijob/":     "name: mpijob/ is not a job; use NAME, mpijob/NAME or trainjob/NAME",
		"tun":         `job "tun" not found in namespace ns; did you mean tune?`,
		"mpijob/tune": `MPIJob "tune" not found in namespace ns; did you mean gone?`,
		"xyz":         `job "xyz" not found in namespace ns`,
	} {
		if _, err := c.Find(t.Context(), "ns", reference); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", reference, err, want)
		}
	}
	s.refuse = func(verb, kind string) error {
		if verb == "get" && kind == "MPIJob" {
			return forbidden("mpijobs")
		}
		return nil
	}
	if job, err := c.Find(t.Context(), "ns", "tune"); err != nil || job.UID != "tune-uid" {
		t.Errorf("a job of a kind that the user may read: %v, %v", job, err)
	}
	if _, err := c.Find(t.Context(), "ns", "xyz"); !apierrors.IsForbidden(err) {
		t.Errorf("a kind that the user may not read: %v", err)
	}
	s.refuse = func(_, kind string) error {
		if kind == "TrainJob" || kind == "TrainJobList" {
			return missing("TrainJob")
		}
		return nil
	}
	if job, err := c.Find(t.Context(), "ns", "pi"); err != nil || job.Kind != "MPIJob" {
		t.Errorf("without Trainer: %v, %v", job, err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	labelled := object(t, "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: b, labels: {team: x}}}")
	other := object(t, "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: a, uid: other}}")
	other.SetNamespace("other")
	c, s := newServer(t, labelled, other, object(t, trainJobText), reportFor("MPIJob", "b", "b-uid", v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseRunning}), reportFor("MPIJob", "gone", "g", v1alpha1.JobReportStatus{}))
	selector, err := labels.Parse("team=x")
	if err != nil {
		t.Fatal(err)
	}
	names := func(s Selection) (found []string) {
		t.Helper()
		list, err := c.List(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range list.Jobs {
			name := job.Namespace + "/" + job.String()
			if job.Report != nil {
				name += " with report"
			}
			found = append(found, name)
		}
		return found
	}
	for name, test := range map[string]struct {
		selection Selection
		want      []string
	}{
		"a namespace":     {Selection{Namespace: "ns"}, []string{"ns/mpijob/b with report", "ns/trainjob/pi"}},
		"all namespaces":  {Selection{}, []string{"ns/mpijob/b with report", "ns/trainjob/pi", "other/mpijob/a"}},
		"a kind":          {Selection{Namespace: "ns", Kinds: Kinds()[1:]}, []string{"ns/trainjob/pi"}},
		"labels":          {Selection{Labels: selector}, []string{"ns/mpijob/b with report"}},
		"deleted ones":    {Selection{Namespace: "ns", Deleted: true}, []string{"ns/mpijob/b with report", "ns/mpijob/gone with report", "ns/trainjob/pi"}},
		"deleted of kind": {Selection{Namespace: "ns", Deleted: true, Kinds: Kinds()[1:]}, []string{"ns/trainjob/pi"}},
		"without reports": {Selection{Namespace: "ns", WithoutReports: true}, []string{"ns/mpijob/b", "ns/trainjob/pi"}},
	} {
		if diff := cmp.Diff(test.want, names(test.selection)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}

	s.refuse = func(_, kind string) error {
		if kind == "TrainJobList" || kind == "JobReportList" {
			return forbidden(kind)
		}
		return nil
	}
	list, err := c.List(t.Context(), Selection{Namespace: "ns"})
	if err != nil || len(list.Jobs) != 1 || len(list.Omitted) != 2 || list.Omitted[0].Kind != "TrainJob" || list.Omitted[1].Kind != "JobReport" {
		t.Errorf("without rights: %+v, %v", list, err)
	}
	s.refuse = func(_, kind string) error {
		if kind == "TrainJobList" {
			return missing("TrainJob")
		}
		return nil
	}
	if list, err = c.List(t.Context(), Selection{Namespace: "ns"}); err != nil || len(list.Jobs) != 1 || len(list.Omitted) != 0 {
		t.Errorf("without Trainer: %+v, %v", list, err)
	}
	s.refuse = func(_, kind string) error {
		if kind == "MPIJobList" {
			return forbidden(kind)
		}
		return missing(kind)
	}
	if _, err = c.List(t.Context(), Selection{Namespace: "ns"}); err == nil || IsNotInstalled(err) {
		t.Errorf("if nothing can be listed, the missing right is reported, not %v", err)
	}
	for _, failing := range []string{"TrainJobList", "JobReportList"} {
		s.refuse = func(_, kind string) error {
			if kind == failing {
				return context.DeadlineExceeded
			}
			return nil
		}
		if _, err = c.List(t.Context(), Selection{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s fails: %v", failing, err)
		}
	}
}

// resources stands in for discovery.
type resources struct {
	discovery.ServerResourcesInterface
	err error
}

func (r resources) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return nil, r.err
}

// TestNotInstalled: RBAC forbids reading a kind that is not installed, so discovery decides.
func TestNotInstalled(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}
	notFound := statusError(404, "the server could not find the requested resource")
	for name, test := range map[string]struct {
		err       error
		discovery discovery.ServerResourcesInterface
		want      bool
	}{
		"no match":                    {missing("K"), nil, true},
		"forbidden":                   {forbidden("ks"), nil, false},
		"forbidden and installed":     {forbidden("ks"), resources{}, false},
		"forbidden and not installed": {forbidden("ks"), resources{err: notFound}, true},
		"another error":               {context.Canceled, resources{err: notFound}, false},
	} {
		c := NewClient(nil, test.discovery, nil)
		if got := c.NotInstalled(test.err, kind); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
