package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/mpi"
)

// queued returns an MPIJob in a queue and its Workload with a specification and conditions.
func queued(t *testing.T, suspended bool, spec, conditions string) (*unstructured.Unstructured, *unstructured.Unstructured) {
	t.Helper()
	job := object(t, fmt.Sprintf(`{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: q, labels: {kueue.x-k8s.io/queue-name: team}}, spec: {runPolicy: {suspend: %t}}}`, suspended))
	workload := object(t, `{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {name: w, labels: {kueue.x-k8s.io/job-uid: q-uid}, ownerReferences: [{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, name: q, uid: q-uid, controller: true}]}, spec: `+spec+`, status: {conditions: `+conditions+`}}`)
	return job, workload
}

func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	const givenUp = `[{type: Evicted, status: "True", reason: DeactivatedDueToRequeuingLimitExceeded, message: x}]`
	for name, test := range map[string]struct {
		suspended, held           bool
		spec, conditions, manager string
		// suspend and resume are the results.
		suspend, resume SuspendResult
		// patched is what is patched by each; empty for nothing.
		suspendPatch, resumePatch string
	}{
		"admitted":                           {spec: "{queueName: team}", conditions: `[{type: Admitted, status: "True", reason: x}]`, suspend: Suspended, resume: NotSuspended, suspendPatch: `"mpi.opendatahub.io/suspend-in-queue":"true"`},
		"suspended by its user":              {held: true, suspended: true, spec: "{queueName: team, active: false}", conditions: "[]", suspend: AlreadySuspended, resume: Resumed, resumePatch: `"mpi.opendatahub.io/suspend-in-queue":null`},
		"suspended, not by the operator yet": {held: true, spec: "{queueName: team}", conditions: "[]", suspend: AlreadySuspended, resume: Resumed, resumePatch: `"mpi.opendatahub.io/suspend-in-queue":null`},
		"suspended, and without a Workload":  {held: true, suspended: true, suspend: AlreadySuspended, resume: Resumed, resumePatch: `"mpi.opendatahub.io/suspend-in-queue":null`},
		"for MultiKueue":                     {manager: "kueue.x-k8s.io/multikueue", spec: "{queueName: team}", conditions: "[]", suspend: Suspended, resume: NotSuspended, suspendPatch: `"active":false`},
		"waiting":                            {suspended: true, spec: "{queueName: team}", conditions: "[]", suspend: Suspended, resume: WaitsInQueue, suspendPatch: `"mpi.opendatahub.io/suspend-in-queue":"true"`},
		"stopped by a user":                  {suspended: true, spec: "{queueName: team, active: false}", conditions: "[]", suspend: AlreadySuspended, resume: Resumed, resumePatch: `"active":true`},
		"given up by Kueue":                  {suspended: true, spec: "{queueName: team, active: false}", conditions: givenUp, suspend: QueueGaveUp, resume: QueueGaveUp},
		"no Workload":                        {suspend: Suspended, resume: NotSuspended, suspendPatch: `"suspend":true`},
		"no Workload yet":                    {suspended: true, suspend: Suspended, resume: Resumed, suspendPatch: `"mpi.opendatahub.io/suspend-in-queue":"true"`, resumePatch: `"suspend":false`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object, workload := queued(t, test.suspended, test.spec, test.conditions)
			if test.held {
				object.SetAnnotations(map[string]string{mpi.AnnotationSuspendInQueue: "true"})
			}
			if test.manager != "" {
				if err := unstructured.SetNestedField(object.Object, test.manager, "spec", "runPolicy", "managedBy"); err != nil {
					t.Fatal(err)
				}
			}
			objects := []client.Object{object}
			if test.spec != "" {
				objects = append(objects, workload)
			}
			for _, resume := range []bool{false, true} {
				c, s := newServer(t, objects...)
				call, result, patch := c.Suspend, test.suspend, test.suspendPatch
				if resume {
					call, result, patch = c.Resume, test.resume, test.resumePatch
				}
				report, err := call(t.Context(), FromObject(object), DryRunNone)
				if err != nil || report.Result != result || report.Queue != "team" {
					t.Errorf("resume %t: %+v, %v; want %s", resume, report, err, result)
				}
				if test.spec == "" && report.Note != NoWorkload {
					t.Errorf("resume %t: the note is %q", resume, report.Note)
				}
				if patch == "" {
					if len(s.patches) > 0 {
						t.Errorf("resume %t: patched %v", resume, s.patches)
					}
					continue
				}
				kind := "MPIJob"
				if strings.Contains(patch, "active") {
					kind = "Workload"
				}
				if len(s.patches) != 1 || !strings.HasPrefix(s.patches[0], kind+" ") || !strings.Contains(s.patches[0], patch) || !strings.Contains(s.patches[0], `"uid"`) {
					t.Errorf("resume %t: patched %v, want %s in a %s with its UID", resume, s.patches, patch, kind)
				}
			}
		})
	}
}

// TestSuspendWithoutWorkload reads cases that the tests of the Python SDK read, too.
func TestSuspendWithoutWorkload(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/suspend.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tests []struct {
		Name                 string
		Job, Suspend, Resume map[string]any
	}
	if err := yaml.Unmarshal(text, &tests); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{"MPIJob": "kubeflow.org/v2beta1", "TrainJob": "trainer.kubeflow.org/v1alpha1"}
	for note, refusal := range map[QueueNote]error{NoWorkload: nil, NoKueue: missing("Workload"), WorkloadsForbidden: forbidden("workloads")} {
		for _, test := range tests {
			t.Run(string(note)+"/"+test.Name, func(t *testing.T) {
				t.Parallel()
				job := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(decodedJSON(t, test.Job).(map[string]any))}
				job.SetAPIVersion(versions[job.GetKind()])
				job.SetNamespace("ns")
				job.SetName("q")
				job.SetUID("q-uid")
				for _, resume := range []bool{false, true} {
					c, s := newServer(t, job.DeepCopy())
					s.refuse = func(_, kind string) error { return map[string]error{"WorkloadList": refusal}[kind] }
					call, want, changed, unchanged := c.Suspend, test.Suspend, Suspended, AlreadySuspended
					if resume {
						call, want, changed, unchanged = c.Resume, test.Resume, Resumed, NotSuspended
					}
					report, err := call(t.Context(), FromObject(job), DryRunNone)
					if err != nil {
						t.Fatal(err)
					}
					if want == nil {
						if report.Result != unchanged || len(s.patches) > 0 {
							t.Errorf("resume %t: %s, patched %v", resume, report.Result, s.patches)
						}
						continue
					}
					if report.Result != changed || report.Queue != "" && report.Note != note || len(s.patches) != 1 {
						t.Fatalf("resume %t: %+v, patched %v", resume, report, s.patches)
					}
					var patch map[string]any
					if err := json.Unmarshal([]byte(strings.TrimPrefix(s.patches[0], job.GetKind()+" ")), &patch); err != nil {
						t.Fatal(err)
					}
					if uid, _, _ := unstructured.NestedString(patch, "metadata", "uid"); uid != "q-uid" {
						t.Errorf("resume %t: the patch is for the UID %q", resume, uid)
					}
					unstructured.RemoveNestedField(patch, "metadata", "uid")
					if len(patch["metadata"].(map[string]any)) == 0 {
						delete(patch, "metadata")
					}
					if diff := cmp.Diff(want, patch); diff != "" {
						t.Errorf("resume %t (-want +got)\n%s", resume, diff)
					}
				}
			})
		}
	}
}

func TestSuspendOutsideQueues(t *testing.T) {
	t.Parallel()
	ended := object(t, `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: a}, status: {conditions: [{type: Failed, status: "True"}]}}`)
	train := object(t, trainJobText)
	c, s := newServer(t, ended, train)
	for _, call := range []func() (SuspendReport, error){
		func() (SuspendReport, error) { return c.Suspend(t.Context(), FromObject(ended), DryRunNone) },
		func() (SuspendReport, error) { return c.Resume(t.Context(), FromObject(ended), DryRunNone) },
	} {
		if report, err := call(); err != nil || report.Result != AlreadyEnded {
			t.Errorf("an ended job: %+v, %v", report, err)
		}
	}
	if report, err := c.Suspend(t.Context(), FromObject(train), DryRunClient); err != nil || report.Result != Suspended || len(s.patches) > 0 {
		t.Errorf("client dry run: %+v, %v, patched %v", report, err, s.patches)
	}
	if report, err := c.Suspend(t.Context(), FromObject(train), DryRunServer); err != nil || report.Result != Suspended || report.InQueue || report.Note != "" {
		t.Errorf("a TrainJob: %+v, %v", report, err)
	}
	var patch struct {
		Spec     struct{ Suspend bool }
		Metadata struct{ UID string }
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(s.patches[0], "TrainJob ")), &patch); err != nil || !patch.Spec.Suspend || patch.Metadata.UID != "pi-uid" {
		t.Errorf("the patch is %s: %v", s.patches[0], err)
	}
}

func TestSuspendWithoutRights(t *testing.T) {
	t.Parallel()
	job, workload := queued(t, false, "{queueName: team}", "[]")
	for name, test := range map[string]struct {
		refuse func(verb, kind string) error
		note   QueueNote
		patch  string
		fails  bool
	}{
		"no Kueue":                 {func(_, kind string) error { return map[string]error{"WorkloadList": missing("Workload")}[kind] }, NoKueue, "MPIJob", false},
		"Workloads cannot be read": {func(_, kind string) error { return map[string]error{"WorkloadList": forbidden("workloads")}[kind] }, WorkloadsForbidden, "MPIJob", false},
		"Workloads cannot be changed": {func(verb, kind string) error {
			return map[string]error{"patch Workload": forbidden("workloads")}[verb+" "+kind]
		}, "", "MPIJob", false},
		"a broken API": {func(_, kind string) error { return map[string]error{"WorkloadList": errors.New("broken")}[kind] }, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s := newServer(t, job.DeepCopy(), workload.DeepCopy())
			s.refuse = test.refuse
			report, err := c.Suspend(t.Context(), FromObject(job), DryRunNone)
			if report.Note != test.note || (err != nil) != test.fails {
				t.Errorf("%+v, %v", report, err)
			}
			if len(s.patches) != min(1, len(test.patch)) || len(s.patches) == 1 && !strings.HasPrefix(s.patches[0], test.patch+" ") {
				t.Errorf("patched %v", s.patches)
			}
		})
	}
}

// TestSuspendAfterConflict: the Workload is read again, once it was changed meanwhile.
func TestSuspendAfterConflict(t *testing.T) {
	t.Parallel()
	job, workload := queued(t, true, "{queueName: team, active: false}", "[]")
	c, s := newServer(t, job, workload)
	conflicts := 1
	s.refuse = func(verb, _ string) error {
		if verb == "patch" && conflicts > 0 {
			conflicts--
			return apierrors.NewConflict(schema.GroupResource{Resource: "workloads"}, "w", errors.New("changed"))
		}
		return nil
	}
	if report, err := c.Resume(t.Context(), FromObject(job), DryRunNone); err != nil || report.Result != Resumed || len(s.patches) != 2 {
		t.Errorf("%+v, %v, %d patches", report, err, len(s.patches))
	}
	conflicts = 1
	if err := s.api.Delete(t.Context(), workload); err != nil {
		t.Fatal(err)
	}
	if report, err := c.Resume(t.Context(), FromObject(job), DryRunNone); err != nil && !strings.Contains(err.Error(), "changed") || report.Note != NoWorkload {
		t.Errorf("without its Workload: %+v, %v", report, err)
	}
}
