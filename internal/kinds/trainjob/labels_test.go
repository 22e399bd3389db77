package trainjob_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// TestPodLabelsOfPatches: a TrainJob cannot give its pods the labels by which NetworkPolicies select the pods of a job,
// with any runtime. What was admitted before stays changeable.
func TestPodLabelsOfPatches(t *testing.T) {
	const labels = "metadata: {labels: {jobset.sigs.k8s.io/jobset-name: other, mine: stays, training.kubeflow.org/job-name: other, trainer.kubeflow.org/a: b, training.kubeflow.org/team: a}}"
	want := func(at string) []string {
		return []string{
			at + ".metadata.labels[jobset.sigs.k8s.io/jobset-name]: Forbidden: is set by controllers", "metadata.labels[training.kubeflow.org/job-name]",
		}
	}
	for name, test := range map[string]struct {
		more string
		want []string
	}{
		"patches": {
			more: "  runtimePatches: [{manager: me}, {manager: you, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node}, {name: launcher, template: {spec: {template: {" + labels + "}}}}]}}}}]",
			want: want("spec.runtimePatches[1].trainingRuntimeSpec.template.spec.replicatedJobs[1].template.spec.template"),
		},
		"overrides": {
			more: "  podTemplateOverrides: [{targetJobs: [{name: launcher}], " + labels + "}]",
			want: want("spec.podTemplateOverrides[0]"),
		},
		"others": {more: "  podTemplateOverrides: [{targetJobs: [{name: launcher}], metadata: {labels: {kueue.x-k8s.io/podset: launcher, team: a}}}]"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, change := range [][]string{nil, {"    mpi:\n", "    torch:\n"}} {
				from := job(t, "{numNodes: 4, command: [mpirun, pi]}", test.more)
				errs, _ := trainjob.Check(from, base(t, change...))
				wants(t, errs, test.want...)
				errs, _ = trainjob.CheckChange(job(t, "{numNodes: 4, command: [mpirun, pi]}", "  suspend: true"), from, base(t, change...))
				wants(t, errs, test.want...)
				errs, _ = trainjob.CheckChange(job(t, "{numNodes: 4, command: [mpirun, pi]}", "  suspend: true", test.more), from, base(t, change...))
				wants(t, errs)
			}
		})
	}
}

// TestPodsKeepTheirPolicy: the pod templates of a JobSet have no labels of another job, wherever they come from, when it is
// made and when it is changed. JobSet would give them to the pods when it resumes a Job.
func TestPodsKeepTheirPolicy(t *testing.T) {
	const foreign = `labels: {a: b, jobset.sigs.k8s.io/jobset-name: other, training.kubeflow.org/job-name: other, batch.kubernetes.io/job-name: other, mpi.opendatahub.io/job-name: other`
	labelled := func(text string) string { return strings.Replace(text, "labels: {a: b", foreign, 1) }
	suspended := func(text string) string { return strings.Replace(text, "suspend: false", "suspend: true", 1) }
	jobSet := tree(t, labelled(made))
	from := job(t, "{image: jobs, command: [mpirun, pi], env: [{name: BOTH, value: jobs}, {name: THEIRS, valueFrom: {secretKeyRef: {name: s, key: k}}}]}")
	if err := trainjob.Wire(jobSet, from, ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(t, tree(t, wired)), text(t, jobSet)); diff != "" {
		t.Errorf("made: want -, got +\n%s", diff)
	}
	for name, test := range map[string]struct{ before, applied, want string }{
		"while it is suspended":               {suspended(wired), labelled(suspended(made)), suspended(wired)},
		"when it is resumed":                  {suspended(wired), labelled(made), wired},
		"while it runs":                       {wired, labelled(made), wired},
		"made without operator, and runs":     {labelled(wired), labelled(made), labelled(wired)},
		"made without operator, when resumed": {labelled(suspended(wired)), labelled(made), wired},
	} {
		t.Run(name, func(t *testing.T) {
			applied := tree(t, test.applied)
			trainjob.Keep(applied, tree(t, test.before), false)
			if diff := cmp.Diff(text(t, tree(t, test.want)), text(t, applied)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}
