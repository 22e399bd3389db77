package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// TestPlanGangs shows in golden files what is made for jobs whose pods are placed together.
func TestPlanGangs(t *testing.T) {
	tests := map[string]jobstate.GangState{
		"gang-podgroup":     {Backend: gang.PodGroup, Wanted: 3},
		"gang-coscheduling": {Backend: gang.Coscheduling, Scheduler: "gangs", Wanted: 3},
		"gang-volcano":      {Backend: gang.Volcano, Scheduler: "volcano", Wanted: 3},
		"gang-pinned":       {Backend: gang.Embedded, Wanted: 3, Nodes: map[string]string{"pi-launcher": "node-2", "pi-worker-0": "node-1", "pi-worker-1": "node-2"}},
	}
	for name, state := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(2, func(j *mpi.Job) {
				j.Workers.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{
						{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gpu", Operator: corev1.NodeSelectorOpExists}}},
						{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "fast", Operator: corev1.NodeSelectorOpExists}}},
					},
				}}}
			})
			seen := jobstate.Observed{Now: mpitest.Now, Gang: &state}
			planned := plan.For(job, seen, jobstate.Judge(job, seen), plan.Settings{})
			got := map[string]any{"Pods": planned.Pods}
			for _, object := range planned.Base {
				if object.GetObjectKind().GroupVersionKind().Kind == "PodGroup" {
					got["PodGroup"] = object
				}
			}
			mpitest.Golden(t, name, got)
		})
	}
}

// group is a PodGroup of Kubernetes' own scheduler for so many pods.
func group(t *testing.T, api string, size string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	text := "{apiVersion: " + api + ", kind: PodGroup, metadata: {name: pi, namespace: ns, uid: uid-group}, spec: {priority: 0, disruptionMode: {all: {}}, schedulingPolicy: {gang: {minCount: " + size + "}}}}"
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestPlanGangChanges(t *testing.T) {
	const native, volcano = "scheduling.k8s.io/v1beta1", "scheduling.volcano.sh/v1beta1"
	placed := &jobstate.GangState{Backend: gang.PodGroup, Wanted: 3, Placed: 3}
	nothing := func(*mpi.Job, *jobstate.Observed) {
	}
	gone := func(_ *mpi.Job, o *jobstate.Observed) { o.Workers, o.Launcher, o.LauncherPods = nil, nil, nil }
	tests := map[string]struct {
		job   func(*mpi.Job)
		seen  func(*mpi.Job, *jobstate.Observed)
		state *jobstate.GangState
		group *unstructured.Unstructured
		want  map[string][]string
	}{
		"all is as it should be":     {seen: nothing, state: placed, group: group(t, native, "3"), want: map[string][]string{}},
		"the PodGroup is gone":       {seen: nothing, state: placed, want: map[string][]string{"create": {"PodGroup/pi"}}},
		"it is for another number":   {seen: nothing, state: placed, group: group(t, native, "2"), want: map[string][]string{"mend": {"PodGroup/pi"}}},
		"it is another scheduler's":  {seen: nothing, state: placed, group: group(t, volcano, "3"), want: map[string][]string{"create": {"PodGroup/pi"}, "delete": {"PodGroup/pi/uid-group"}}},
		"nothing places it together": {seen: nothing, group: group(t, native, "3"), want: map[string][]string{"delete": {"PodGroup/pi/uid-group"}}},
		"it waits for its turn": {
			seen: gone, state: &jobstate.GangState{Backend: gang.Embedded, Hold: true, Wanted: 3},
			want: map[string][]string{"mend": {"ConfigMap/pi-config"}},
		},
		"it is put back": {
			seen: nothing, state: &jobstate.GangState{Backend: gang.PodGroup, Hold: true, Evict: true, Wanted: 3, Placed: 2}, group: group(t, native, "3"),
			want: map[string][]string{"mend": {"Job/pi-launcher"}, "delete": {"Pod/pi-worker-0/uid-pi-worker-0", "Pod/pi-worker-1/uid-pi-worker-1"}},
		},
		"it is tried again": {
			seen: func(_ *mpi.Job, o *jobstate.Observed) {
				o.Workers, o.LauncherPods = nil, nil
				o.Launcher.Spec.Suspend = new(true)
			},
			state: &jobstate.GangState{Backend: gang.PodGroup, Wanted: 3}, group: group(t, native, "3"),
			want: map[string][]string{"mend": {"ConfigMap/pi-config", "Job/pi-launcher"}, "create": {"Pod/pi-worker-0", "Pod/pi-worker-1"}},
		},
		"it is suspended": {
			job: func(j *mpi.Job) { j.Lifecycle.Suspended = true }, seen: nothing, group: group(t, native, "3"),
			want: map[string][]string{"mend": {"Job/pi-launcher"}, "delete": {"PodGroup/pi/uid-group", "Pod/pi-worker-0/uid-pi-worker-0", "Pod/pi-worker-1/uid-pi-worker-1"}},
		},
		"it has ended": {
			seen:  func(j *mpi.Job, o *jobstate.Observed) { o.Launcher = mpitest.Launcher(*j, batchv1.JobComplete) },
			state: placed, group: group(t, native, "3"),
			want: map[string][]string{"delete": {"PodGroup/pi/uid-group"}},
		},
		"its PodGroup is on its way out": {
			seen: gone, state: &jobstate.GangState{Backend: gang.PodGroup, Wanted: 3},
			group: func() *unstructured.Unstructured {
				object := group(t, native, "3")
				object.SetDeletionTimestamp(&metav1.Time{Time: mpitest.Now})
				return object
			}(),
			want: map[string][]string{"mend": {"ConfigMap/pi-config"}, "create": {"PodGroup/pi", "Job/pi-launcher", "Pod/pi-worker-0", "Pod/pi-worker-1"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(2)
			seen := settled(t, job)
			if test.job != nil {
				test.job(&job)
			}
			test.seen(&job, &seen)
			seen.Gang = test.state
			if test.group != nil {
				seen.PodGroups = []*unstructured.Unstructured{test.group}
			}
			if seen.Launcher != nil {
				seen.Launcher.Annotations = launcherAnnotations(job, seen)
			}
			if diff := cmp.Diff(test.want, names(plan.For(job, seen, jobstate.Judge(job, seen), isolating))); diff != "" {
				t.Errorf("the plan differs (-want +got):\n%s", diff)
			}
		})
	}
}
