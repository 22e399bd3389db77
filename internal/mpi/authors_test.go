package mpi_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/mpi"
)

type annotations = map[string]string

func written(kind string, generation int64, spec map[string]any, has annotations) *unstructured.Unstructured {
	job := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": spec}}
	job.SetGeneration(generation)
	job.SetAnnotations(has)
	return job
}

func TestAuthored(t *testing.T) {
	type object = map[string]any
	mpiJob := func(suspend any, slots int64) object {
		return object{"slotsPerWorker": slots, "runPolicy": object{"suspend": suspend, "backoffLimit": int64(1)}}
	}
	trainJob := func(suspend any, image string) object {
		return object{"suspend": suspend, "trainer": object{"image": image}}
	}
	ada := annotations{mpi.AnnotationCreator: "ada"}
	with := func(more annotations) annotations {
		all := maps.Clone(ada)
		maps.Copy(all, more)
		return all
	}
	forged := annotations{mpi.AnnotationCreator: "eve", mpi.AnnotationSuspendSetBy: "5 eve", mpi.AnnotationChangedBy: "5 eve", mpi.AnnotationQueueSuspendSetBy: "true eve", "mine": "stays"}
	tests := map[string]struct {
		kind          string
		before, after object
		had           annotations
		want          annotations
	}{
		"created":                 {"MPIJob", nil, mpiJob(true, 1), nil, annotations{mpi.AnnotationCreator: "bob"}},
		"suspended":               {"MPIJob", mpiJob(false, 1), mpiJob(true, 1), ada, with(annotations{mpi.AnnotationSuspendSetBy: "5 bob"})},
		"suspended, never before": {"MPIJob", object{}, object{"runPolicy": object{"suspend": true}}, ada, with(annotations{mpi.AnnotationSuspendSetBy: "5 bob", mpi.AnnotationChangedBy: "5 bob"})},
		"resumed": {
			"MPIJob", mpiJob(true, 1), mpiJob(false, 1), with(annotations{mpi.AnnotationSuspendSetBy: "2 ada", mpi.AnnotationChangedBy: "3 ada"}),
			with(annotations{mpi.AnnotationSuspendSetBy: "5 bob", mpi.AnnotationChangedBy: "3 ada"}),
		},
		"changed":             {"MPIJob", mpiJob(true, 1), mpiJob(true, 2), ada, with(annotations{mpi.AnnotationChangedBy: "5 bob"})},
		"resumed and changed": {"MPIJob", mpiJob(true, 1), mpiJob(false, 2), ada, with(annotations{mpi.AnnotationSuspendSetBy: "5 bob", mpi.AnnotationChangedBy: "5 bob"})},
		"said what holds":     {"MPIJob", object{"runPolicy": object{}}, object{"runPolicy": object{"suspend": false}}, ada, with(annotations{mpi.AnnotationChangedBy: "5 bob"})},
		"nothing changed":     {"MPIJob", mpiJob(true, 1), mpiJob(true, 1), with(annotations{mpi.AnnotationSuspendSetBy: "2 ada"}), with(annotations{mpi.AnnotationSuspendSetBy: "2 ada"})},
		"creator not known":   {"MPIJob", mpiJob(true, 1), mpiJob(true, 1), nil, annotations{}},
		"trainjob suspended":  {"TrainJob", trainJob(false, "a"), trainJob(true, "a"), ada, with(annotations{mpi.AnnotationSuspendSetBy: "5 bob"})},
		"trainjob, forged":    {"TrainJob", trainJob(true, "a"), trainJob(true, "a"), with(annotations{mpi.AnnotationQueueSuspendSetBy: "false ada"}), with(annotations{mpi.AnnotationQueueSuspendSetBy: "false ada"})},
		"trainjob changed":    {"TrainJob", trainJob(true, "a"), trainJob(true, "b"), ada, with(annotations{mpi.AnnotationChangedBy: "5 bob"})},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var before *unstructured.Unstructured
			if test.before != nil {
				before = written(test.kind, 4, test.before, test.had)
			}
			if diff := cmp.Diff(test.want, mpi.AuthorAnnotationsFor("bob", before, written(test.kind, 4, test.after, forged))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestAuthorsInQueues: whoever changes whether a job of either kind is suspended in its queue is recorded, although its generation does
// not change; and Kueue, which then changes the field suspend, does not replace this user.
func TestAuthorsInQueues(t *testing.T) {
	spec := map[string]any{"suspend": true, "runPolicy": map[string]any{"suspend": true}}
	for name, test := range map[string]struct{ before, after, want annotations }{
		"suspended":      {nil, annotations{mpi.AnnotationSuspendInQueue: "true"}, annotations{mpi.AnnotationQueueSuspendSetBy: "true bob"}},
		"resumed":        {annotations{mpi.AnnotationSuspendInQueue: "true", mpi.AnnotationQueueSuspendSetBy: "true ada"}, nil, annotations{mpi.AnnotationQueueSuspendSetBy: "false bob"}},
		"resumed before": {annotations{mpi.AnnotationSuspendInQueue: "false"}, annotations{mpi.AnnotationSuspendInQueue: "true"}, annotations{mpi.AnnotationQueueSuspendSetBy: "true bob"}},
		"no change": {
			annotations{mpi.AnnotationSuspendInQueue: "true", mpi.AnnotationQueueSuspendSetBy: "true ada"},
			annotations{mpi.AnnotationSuspendInQueue: "true", mpi.AnnotationQueueSuspendSetBy: "true eve"},
			annotations{mpi.AnnotationQueueSuspendSetBy: "true ada"},
		},
		"only written in full": {nil, annotations{mpi.AnnotationSuspendInQueue: "false"}, annotations{}},
	} {
		for _, kind := range []string{mpi.KindMPIJob, mpi.KindTrainJob} {
			before, after := written(kind, 4, spec, test.before), written(kind, 4, spec, test.after)
			if diff := cmp.Diff(test.want, mpi.AuthorAnnotationsFor("bob", before, after)); diff != "" {
				t.Errorf("%s of kind %s (-want +got)\n%s", name, kind, diff)
			}
		}
	}
	for value, want := range map[string]string{"true bob c": "bob c", "false ada": "", "": "", "true": "", "x y": ""} {
		has := annotations{mpi.AnnotationSuspendInQueue: "true", mpi.AnnotationQueueSuspendSetBy: value}
		if got := mpi.AuthorsOf(written(mpi.KindMPIJob, 4, nil, has)).SuspendInQueue; got != want {
			t.Errorf("%q names %q, want %q", value, got, want)
		}
	}
}

func TestAuthorsOf(t *testing.T) {
	tests := map[string]struct {
		has  annotations
		want mpi.Authors
	}{
		"none":      {nil, mpi.Authors{}},
		"all known": {annotations{mpi.AnnotationCreator: "ada", mpi.AnnotationSuspendSetBy: "4 bob", mpi.AnnotationChangedBy: "3 system:serviceaccount:a:b c"}, mpi.Authors{Creator: "ada", Suspend: mpi.Change{Generation: 4, User: "bob"}, Change: mpi.Change{Generation: 3, User: "system:serviceaccount:a:b c"}}},
		"changed by one who was not recorded, who may have resumed and suspended it": {
			annotations{mpi.AnnotationSuspendSetBy: "2 bob", mpi.AnnotationChangedBy: "3 bob"}, mpi.Authors{Change: mpi.Change{Generation: 3, User: "bob"}},
		},
		"no such form": {annotations{mpi.AnnotationSuspendSetBy: "bob", mpi.AnnotationChangedBy: "4 "}, mpi.Authors{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, mpi.AuthorsOf(written("MPIJob", 4, nil, test.has))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestUnrecordedAuthors(t *testing.T) {
	created := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	entry := func(manager string, after time.Duration, fields string) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(created.Add(after))
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const all, suspend, suspendTrainJob = `{"f:metadata":{},"f:spec":{".":{},"f:slotsPerWorker":{}}}`, `{"f:spec":{"f:runPolicy":{"f:suspend":{}}}}`, `{"f:spec":{"f:suspend":{}}}`
	status := entry("mpijob-operator", time.Hour, all)
	status.Subresource = "status"
	label := entry("labeler", time.Hour, `{"f:metadata":{"f:labels":{"f:spec":{}}}}`)
	timeless := entry("timeless", 0, all)
	timeless.Time = nil
	creation := entry("kubectl-create", -time.Second, all)
	tests := map[string]struct {
		has        annotations
		generation int64
		managers   []metav1.ManagedFieldsEntry
		want       mpi.Authors
	}{
		"created":             {nil, 1, []metav1.ManagedFieldsEntry{label, status, timeless, creation}, mpi.Authors{CreatedWith: "kubectl-create"}},
		"by the first of two": {nil, 1, []metav1.ManagedFieldsEntry{entry("second", 0, all), creation}, mpi.Authors{CreatedWith: "kubectl-create"}},
		"written again since": {nil, 2, []metav1.ManagedFieldsEntry{entry("kubectl-apply", time.Minute, all)}, mpi.Authors{Unrecorded: mpi.UnrecordedChange{Generation: 2, Manager: "kubectl-apply", At: created.Add(time.Minute)}}},
		"changed twice":       {nil, 3, []metav1.ManagedFieldsEntry{creation, entry("b", time.Hour, all), entry("a", time.Minute, all)}, mpi.Authors{CreatedWith: "kubectl-create", Unrecorded: mpi.UnrecordedChange{Generation: 3, Manager: "b", At: created.Add(time.Hour)}}},
		"suspended":           {nil, 2, []metav1.ManagedFieldsEntry{creation, entry("b", time.Hour, suspend)}, mpi.Authors{CreatedWith: "kubectl-create", Unrecorded: mpi.UnrecordedChange{Generation: 2, Manager: "b", At: created.Add(time.Hour), OnlySuspend: true}}},
		"trainjob suspended":  {nil, 2, []metav1.ManagedFieldsEntry{creation, entry("b", time.Hour, suspendTrainJob)}, mpi.Authors{CreatedWith: "kubectl-create", Unrecorded: mpi.UnrecordedChange{Generation: 2, Manager: "b", At: created.Add(time.Hour), OnlySuspend: true}}},
		"in the same second":  {nil, 2, []metav1.ManagedFieldsEntry{creation, entry("a", time.Hour, all), entry("b", time.Hour, suspend)}, mpi.Authors{CreatedWith: "kubectl-create"}},
		"a field was removed": {nil, 2, []metav1.ManagedFieldsEntry{creation}, mpi.Authors{CreatedWith: "kubectl-create"}},
		"no managers":         {nil, 1, nil, mpi.Authors{}},
		"no fields":           {nil, 1, []metav1.ManagedFieldsEntry{entry("a", 0, `["no object"]`)}, mpi.Authors{}},
		"recorded":            {annotations{mpi.AnnotationCreator: "ada"}, 1, []metav1.ManagedFieldsEntry{creation}, mpi.Authors{Creator: "ada"}},
		"the change is not recorded": {
			annotations{mpi.AnnotationCreator: "ada", mpi.AnnotationChangedBy: "2 bob"},
			3,
			[]metav1.ManagedFieldsEntry{creation, entry("b", time.Hour, all)},
			mpi.Authors{Creator: "ada", Change: mpi.Change{Generation: 2, User: "bob"}, Unrecorded: mpi.UnrecordedChange{Generation: 3, Manager: "b", At: created.Add(time.Hour)}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := written("MPIJob", test.generation, nil, test.has)
			job.SetCreationTimestamp(metav1.NewTime(created))
			job.SetManagedFields(test.managers)
			if diff := cmp.Diff(test.want, mpi.AuthorsOf(job)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			mpi.TrimManagedFields(job)
			if diff := cmp.Diff(test.want, mpi.AuthorsOf(job)); diff != "" {
				t.Errorf("after they were trimmed (-want +got)\n%s", diff)
			}
			needed := test.want.CreatedWith != "" || test.want.Unrecorded.Manager != ""
			if kept := job.GetManagedFields(); (len(kept) > 0) != needed {
				t.Errorf("of the managed fields %+v are left", kept)
			}
			for _, kept := range job.GetManagedFields() {
				if kept.FieldsType != "" || kept.APIVersion != "" {
					t.Errorf("the API server would accept %+v", kept)
				}
			}
		})
	}
}
