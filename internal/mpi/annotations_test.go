package mpi_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestEveryAnnotationIsDefined: the table has each of the constants once.
func TestEveryAnnotationIsDefined(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, is := n.(*ast.ValueSpec); is && strings.HasPrefix(spec.Names[0].Name, "Annotation") {
			constants++
		}
		return true
	})
	names := map[string]bool{}
	for _, a := range mpi.Annotations() {
		names[a.Name] = true
		if a.Values == "" || !strings.HasSuffix(a.Description, ".") || len(a.On) == 0 || (a.Default == "") != (a.SetBy != "") {
			t.Errorf("%s is not defined completely: %+v", a.Name, a)
		}
	}
	if len(names) != constants || len(mpi.Annotations()) != constants {
		t.Errorf("%d definitions of %d names for %d constants", len(mpi.Annotations()), len(names), constants)
	}
}

// TestCheckAnnotations: a job's errors name the annotation, and those that have no effect on its kind are not checked.
func TestCheckAnnotations(t *testing.T) {
	t.Parallel()
	bad := map[string]string{}
	for _, a := range mpi.Annotations() {
		bad[a.Name] = "x y"
	}
	delete(bad, mpi.AnnotationPreferredTopology)
	for kind, want := range map[string][]string{
		mpi.KindMPIJob:   {mpi.AnnotationLaunch, mpi.AnnotationConnections, mpi.AnnotationRDMA, mpi.AnnotationRequiredTopology, mpi.AnnotationWaitForQuota, mpi.AnnotationSuspendInQueue, mpi.AnnotationRequeues, mpi.AnnotationSilence, mpi.AnnotationLinks, mpi.AnnotationProfile, mpi.AnnotationTraceParent},
		mpi.KindTrainJob: {mpi.AnnotationConnections, mpi.AnnotationRDMA, mpi.AnnotationRequiredTopology, mpi.AnnotationWaitForQuota, mpi.AnnotationSuspendInQueue, mpi.AnnotationScheduleTimeout, mpi.AnnotationPriorityClass, mpi.AnnotationSilence, mpi.AnnotationLinks, mpi.AnnotationProfile, mpi.AnnotationTraceParent, mpi.AnnotationMaxRestarts, mpi.AnnotationTTL},
	} {
		var got []string
		for _, err := range mpi.CheckAnnotations(kind, "ns", bad) {
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(err.Field, "metadata.annotations["), "]"))
			if err.BadValue != "x y" || err.Detail == "" {
				t.Errorf("%s: %v", kind, err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: errors differ (-want +got):\n%s", kind, diff)
		}
	}
	if errs := mpi.CheckAnnotations(mpi.KindMPIJob, "ns", map[string]string{mpi.AnnotationRequiredTopology: "a/b", mpi.AnnotationPreferredTopology: "a/b"}); len(errs) != 1 {
		t.Errorf("errors of both topologies are %v", errs)
	}
}

func TestSplitIgnorable(t *testing.T) {
	t.Parallel()
	at := field.NewPath("metadata", "annotations")
	ignorable, others := mpi.SplitIgnorable(field.ErrorList{
		field.Invalid(at.Key(mpi.AnnotationSilence), "", ""), field.Invalid(at.Key(mpi.AnnotationLaunch), "", ""),
		field.Invalid(field.NewPath("spec"), "", ""), field.Invalid(at.Key(mpi.AnnotationConnections), "", ""),
	})
	if len(ignorable) != 1 || len(others) != 3 {
		t.Errorf("ignorable are %v, others %v", ignorable, others)
	}
}

// TestWarnAnnotations: what has no effect on a job of a kind causes a warning that says what to do, once.
func TestWarnAnnotations(t *testing.T) {
	t.Parallel()
	const at = "metadata.annotations[mpi.opendatahub.io/%s]: "
	tests := []struct{ kind, name, want string }{
		{mpi.KindMPIJob, "launch", ""},
		{mpi.KindMPIJob, "created-by", ""},
		{mpi.KindMPIJob, "max-restarts", "has no effect on a job of kind MPIJob: set spec.runPolicy.backoffLimit, by which the launcher is restarted"},
		{mpi.KindMPIJob, "ttl-seconds-after-finished", "has no effect on a job of kind MPIJob: set spec.runPolicy.ttlSecondsAfterFinished"},
		{mpi.KindMPIJob, "gate", "has no effect on a job: the operator sets it on objects of kind JobSet"},
		{mpi.KindMPIJob, "max-workers", "has no effect on a job: it is set on objects of kind Namespace, ClusterTrainingRuntime, TrainingRuntime"},
		{mpi.KindMPIJob, "allow-egress", "has no effect on a job: it is set on objects of kind Namespace, ClusterTrainingRuntime, TrainingRuntime"},
		{mpi.KindMPIJob, "mpi-implementation", "has no effect on a job of kind MPIJob: set spec.mpiImplementation"},
		{mpi.KindTrainJob, "max-restarts", ""},
		{mpi.KindTrainJob, "schedule-timeout-seconds", ""},
		{mpi.KindMPIJob, "schedule-timeout-seconds", "has no effect on a job of kind MPIJob: set spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds"},
		{mpi.KindTrainJob, "priority-class", ""},
		{mpi.KindMPIJob, "priority-class", "has no effect on a job of kind MPIJob: set spec.runPolicy.schedulingPolicy.priorityClass"},
		{mpi.KindTrainJob, "launch", "has no effect on a job of kind TrainJob: its runtime decides what starts ranks"},
		{mpi.KindTrainJob, "gang-requeues", "has no effect on a job of kind TrainJob: a TrainJob waits until all of its pods can be placed"},
		{mpi.KindTrainJob, "gate", "has no effect on a job: the operator sets it on objects of kind JobSet"},
		{mpi.KindTrainJob, "mpi-implementation", "has no effect on a job: it is set on objects of kind ClusterTrainingRuntime, TrainingRuntime"},
		{mpi.KindTrainJob, "max-workers", "has no effect on a job: it is set on objects of kind Namespace, ClusterTrainingRuntime, TrainingRuntime"},
		{mpi.KindTrainJob, "allow-egress", "has no effect on a job: it is set on objects of kind Namespace, ClusterTrainingRuntime, TrainingRuntime"},
		{mpi.KindMPIJob, "gang-requeue", "does not exist and has no effect; did you mean mpi.opendatahub.io/gang-requeues?"},
		{mpi.KindMPIJob, "slient-after", "does not exist and has no effect; did you mean mpi.opendatahub.io/silent-after?"},
		{mpi.KindMPIJob, "something-else", "does not exist and has no effect"},
	}
	for _, test := range tests {
		after := map[string]string{"mpi.opendatahub.io/" + test.name: "1", "example.com/launch": "1", "opendatahub.io/other": "1"}
		var want []string
		if test.want != "" {
			want = []string{fmt.Sprintf(at, test.name) + test.want}
		}
		if diff := cmp.Diff(want, mpi.WarnAnnotations(test.kind, nil, after)); diff != "" {
			t.Errorf("%s of %s: warnings differ (-want +got):\n%s", test.name, test.kind, diff)
		}
		if got := mpi.WarnAnnotations(test.kind, after, after); got != nil {
			t.Errorf("%s of %s, which it had before: %q", test.name, test.kind, got)
		}
	}
}

func TestSameAnnotations(t *testing.T) {
	t.Parallel()
	before := map[string]string{mpi.AnnotationSilence: "1h", "other": "1"}
	for name, test := range map[string]struct {
		after map[string]string
		want  bool
	}{
		"another's":           {map[string]string{mpi.AnnotationSilence: "1h"}, true},
		"the author":          {map[string]string{mpi.AnnotationSilence: "1h", mpi.AnnotationCreator: "eve"}, true},
		"one without effect":  {map[string]string{mpi.AnnotationSilence: "1h", mpi.AnnotationTTL: "1"}, true},
		"changed":             {map[string]string{mpi.AnnotationSilence: "2h"}, false},
		"removed":             {nil, false},
		"added, but is empty": {map[string]string{mpi.AnnotationSilence: "1h", mpi.AnnotationRDMA: ""}, false},
	} {
		if got := mpi.SameAnnotations(mpi.KindMPIJob, before, test.after); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

const annotationsHead = `# Annotations

<!-- question: Which annotations change how a job runs? -->

Annotations configure what the API of a job has no field for. An invalid value is rejected, and an annotation without an
effect causes a warning. A job that was started goes on if its annotation becomes invalid while the operator's webhook
does not answer: the default applies. Pods are created by ` + "`launch` and `connections`" + `: if one of these becomes invalid, the pods go
on, and no others are created. The job's report has the finding [InvalidChange](troubleshooting.md#invalidchange).

This page is generated: ` + "`go test ./internal/mpi -run TestAnnotationReference -update`" + `.
`

// TestAnnotationReference: docs/annotations.md has all annotations; -update writes it anew.
func TestAnnotationReference(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(annotationsHead)
	write := func(title, intro string, which func(mpi.Annotation) bool) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", title, intro)
		for _, a := range mpi.Annotations() {
			if !which(a) {
				continue
			}
			fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| | |\n|---|---|\n| on | %s |\n| values | %s |\n", a.Name, a.Description, strings.Join(a.On, ", "), a.Values)
			if a.SetBy == "" {
				fmt.Fprintf(&b, "| default | %s |\n", a.Default)
			} else {
				fmt.Fprintf(&b, "| set by | %s |\n", a.SetBy)
			}
		}
	}
	onJob := func(a mpi.Annotation) bool {
		return slices.Contains(a.On, mpi.KindMPIJob) || slices.Contains(a.On, mpi.KindTrainJob)
	}
	write("On jobs", "Users set these.", func(a mpi.Annotation) bool { return a.SetBy == "" && onJob(a) })
	write("On runtimes and namespaces", "Administrators set these. Users of runtimes and namespaces cannot change them.", func(a mpi.Annotation) bool { return a.SetBy == "" && !onJob(a) })
	write("Set by the operator", "Do not set these.", func(a mpi.Annotation) bool { return a.SetBy != "" })
	file := filepath.Join("..", "..", "docs", "annotations.md")
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil { //nolint:gosec // it is read by all
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s does not match the definitions (-want +got); write it anew with -update:\n%s", file, diff)
	}
}
