package gang_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func diff(want, got any) string { return cmp.Diff(want, got) }

func TestChoose(t *testing.T) {
	asks := func(j *mpi.Job) { j.Gang.Wanted = true }
	later := func(j *mpi.Job) { j.Launcher.AfterWorkers = true }
	odd := func(j *mpi.Job) { j.Launcher.Template.Spec.PriorityClassName = "high" }
	own := func(j *mpi.Job) { j.Launcher.Template.Spec.SchedulerName = "mine" }
	placed := func(j *mpi.Job) {
		j.Workers.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/topology"}}
	}
	external := func(j *mpi.Job) { j.External = true }
	gated := func(j *mpi.Job) { j.Gated = true }
	tests := map[string]struct {
		setting string
		has     string
		change  []func(*mpi.Job)
		workers int32
		want    gang.Choice
		wrong   bool
	}{
		"the cluster's own scheduler":                       {setting: gang.Auto, has: gang.PodGroup, workers: 2, want: gang.Choice{Backend: gang.PodGroup}},
		"a job of one pod":                                  {setting: gang.Auto, has: gang.PodGroup},
		"nothing":                                           {setting: gang.None, has: gang.PodGroup, workers: 2},
		"launcher and workers differ":                       {setting: gang.Auto, has: gang.PodGroup, workers: 2, change: []func(*mpi.Job){odd}, want: gang.Choice{Backend: gang.Embedded, ByDefault: true}},
		"schedulers differ":                                 {setting: gang.Auto, has: gang.PodGroup, workers: 2, change: []func(*mpi.Job){own}},
		"launcher and workers differ, and it asks":          {setting: gang.Auto, has: gang.PodGroup, workers: 2, change: []func(*mpi.Job){odd, asks}, want: gang.Choice{Backend: gang.PodGroup}, wrong: true},
		"schedulers differ, and it asks":                    {setting: gang.Auto, has: gang.PodGroup, workers: 2, change: []func(*mpi.Job){own, asks}, want: gang.Choice{Backend: gang.PodGroup}, wrong: true},
		"the launcher comes later":                          {setting: gang.Auto, has: gang.PodGroup, workers: 2, change: []func(*mpi.Job){later}, want: gang.Choice{Backend: gang.Embedded, ByDefault: true}},
		"the launcher comes later, and it asks":             {setting: gang.Auto, has: gang.PodGroup, workers: 2, change: []func(*mpi.Job){later, asks}, want: gang.Choice{Backend: gang.PodGroup}},
		"the launcher comes later, only jobs that ask":      {setting: gang.Requested, has: gang.PodGroup, workers: 2, change: []func(*mpi.Job){later}},
		"only jobs that ask":                                {setting: gang.Requested, workers: 2},
		"only jobs that ask, and it asks":                   {setting: gang.Requested, workers: 2, change: []func(*mpi.Job){asks}, want: gang.Choice{Backend: gang.Embedded}},
		"only jobs that ask, and the cluster's own":         {setting: gang.Requested, has: gang.PodGroup, workers: 2, want: gang.Choice{Backend: gang.PodGroup}},
		"no scheduler does it":                              {setting: gang.Auto, workers: 2, want: gang.Choice{Backend: gang.Embedded, ByDefault: true}},
		"no scheduler does it, launcher and workers differ": {setting: gang.Auto, workers: 2, change: []func(*mpi.Job){odd}, want: gang.Choice{Backend: gang.Embedded, ByDefault: true}},
		"no scheduler does it, the launcher comes later":    {setting: gang.Auto, workers: 2, change: []func(*mpi.Job){later}, want: gang.Choice{Backend: gang.Embedded, ByDefault: true}},
		"a queue of Kueue admits it":                        {setting: gang.Auto, workers: 2, change: []func(*mpi.Job){func(j *mpi.Job) { j.Queue = "team" }}, want: gang.Choice{Backend: gang.Embedded, ByDefault: true}},
		"Kueue assigns its pods to nodes, and it asks":      {setting: gang.Auto, workers: 2, change: []func(*mpi.Job){asks, placed}, want: gang.Choice{Backend: gang.Embedded, ByDefault: true}},
		"a scheduler of its own":                            {setting: gang.Auto, workers: 2, change: []func(*mpi.Job){own}},
		"no scheduler does it, and it asks":                 {setting: gang.Auto, workers: 2, change: []func(*mpi.Job){asks}, want: gang.Choice{Backend: gang.Embedded}},
		"another controller runs it":                        {setting: gang.Auto, workers: 2, change: []func(*mpi.Job){external}},
		"another controller runs it, with a gate":           {setting: gang.Auto, workers: 2, change: []func(*mpi.Job){external, gated}, want: gang.Choice{Backend: gang.Embedded, ByDefault: true}},
		"with a gate, beside the cluster's own scheduler":   {setting: gang.Auto, has: gang.PodGroup, workers: 2, change: []func(*mpi.Job){external, gated}, want: gang.Choice{Backend: gang.Embedded, ByDefault: true}},
		"with a gate, in a queue of Kueue":                  {setting: gang.Auto, workers: 2, change: []func(*mpi.Job){external, gated, func(j *mpi.Job) { j.Queue = "team" }}, want: gang.Choice{Backend: gang.Embedded, ByDefault: true}},
		"with a gate, with a scheduler of its own":          {setting: gang.Auto, workers: 2, change: []func(*mpi.Job){external, gated, own}},
		"with a gate, and only jobs that ask":               {setting: gang.Requested, workers: 2, change: []func(*mpi.Job){external, gated}},
		"with a gate, only jobs that ask, and it asks":      {setting: gang.Requested, workers: 2, change: []func(*mpi.Job){external, gated, asks}, want: gang.Choice{Backend: gang.Embedded, ByDefault: true}},
		"with a gate, and PodGroups":                        {setting: gang.PodGroup, has: gang.PodGroup, workers: 2, change: []func(*mpi.Job){external, gated}, want: gang.Choice{Backend: gang.Embedded, ByDefault: true}},
		"with a gate, and Volcano":                          {setting: gang.Volcano, has: gang.Volcano, workers: 2, change: []func(*mpi.Job){external, gated}},
		"the operator itself":                               {setting: gang.Embedded, has: gang.PodGroup, workers: 2, want: gang.Choice{Backend: gang.Embedded}},
		"named, and not there":                              {setting: gang.PodGroup, workers: 2, want: gang.Choice{Backend: gang.PodGroup}, wrong: true},
		"Volcano":                                           {setting: gang.Volcano, has: gang.Volcano, workers: 2, want: gang.Choice{Backend: gang.Volcano, Scheduler: "volcano"}},
		"Volcano takes pods of any priority":                {setting: gang.Volcano, has: gang.Volcano, workers: 2, change: []func(*mpi.Job){odd, asks}, want: gang.Choice{Backend: gang.Volcano, Scheduler: "volcano"}},
		"a scheduler with coscheduling":                     {setting: "gangs", has: gang.Coscheduling, workers: 2, want: gang.Choice{Backend: gang.Coscheduling, Scheduler: "gangs"}},
		"a scheduler with coscheduling, without PodGroups":  {setting: "gangs", workers: 2, want: gang.Choice{Backend: gang.Coscheduling, Scheduler: "gangs"}, wrong: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(test.workers, test.change...)
			job.Fields.Gang = field.NewPath("spec", "runPolicy", "schedulingPolicy")
			got := gang.Choose(test.setting, func(backend string) bool { return backend == test.has }, job)
			if (got.Wrong != "") != test.wrong {
				t.Errorf("it is told %q", got.Wrong)
			}
			got.Wrong = ""
			if got != test.want {
				t.Errorf("it is %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestBind shows in golden files what pods carry and what their PodGroup says.
func TestBind(t *testing.T) {
	sized := func(j *mpi.Job) {
		j.Launcher.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100m")}
		j.Workers.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse("1")}
		j.Workers.Template.Spec.PriorityClassName, j.Launcher.Template.Spec.PriorityClassName = "high", "high"
	}
	policy := func(j *mpi.Job) {
		j.Gang = mpi.Gang{
			Wanted: true, MinAvailable: new(int32(3)), Queue: "team", PriorityClass: "higher", Timeout: 15 * time.Minute, TimeoutSet: true,
			MinResources: corev1.ResourceList{"cpu": resource.MustParse("7")},
		}
	}
	for _, backend := range []string{gang.PodGroup, gang.Coscheduling, gang.Volcano, gang.Embedded} {
		t.Run(backend, func(t *testing.T) {
			state := &jobstate.GangState{Backend: backend}
			if backend == gang.Coscheduling {
				state.Scheduler = "gangs"
			}
			got := map[string]gang.Binding{}
			for name, job := range map[string]mpi.Job{
				"plain": mpitest.Job(4), "sized": mpitest.Job(4, sized), "policy": mpitest.Job(4, sized, policy),
				"launcher-later": mpitest.Job(4, sized, func(j *mpi.Job) { j.Launcher.AfterWorkers = true }),
			} {
				got[name] = gang.Bind(job, jobstate.Observed{Gang: state})
			}
			job := mpitest.Job(4)
			ended := jobstate.Observed{Gang: state, Workers: []jobstate.Worker{mpitest.Worker(job, 1, corev1.PodSucceeded)}}
			got["worker-has-ended"] = gang.Bind(job, ended)
			mpitest.Golden(t, "bind-"+backend, got)
		})
	}
}

// TestState: what PodGroups say of a job.
func TestState(t *testing.T) {
	tests := map[string]struct{ backend, podGroup, reason, message string }{
		"nothing yet": {backend: gang.PodGroup, podGroup: "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup}"},
		"no room": {
			backend:  gang.PodGroup,
			podGroup: "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, status: {conditions: [{type: PodGroupInitiallyScheduled, status: 'False', reason: Unschedulable, message: 'minCount (3) cannot be satisfied: 1 scheduled'}]}}",
			reason:   "Unschedulable", message: "0/2 nodes are available: 2 Insufficient cpu.",
		},
		"had room once": {
			backend:  gang.PodGroup,
			podGroup: "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, status: {conditions: [{type: PodGroupInitiallyScheduled, status: 'True', reason: Scheduled}]}}",
		},
		"another scheduler's": {
			backend:  gang.PodGroup,
			podGroup: "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, status: {conditions: [{type: Unschedulable, status: 'True', reason: NotEnoughResources, message: no}]}}",
		},
		"Volcano has no room": {
			backend:  gang.Volcano,
			podGroup: "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, status: {conditions: [{type: Unschedulable, status: 'True', reason: NotEnoughResources, message: 3/3 tasks in gang unschedulable}]}}",
			reason:   "NotEnoughResources", message: "3/3 tasks in gang unschedulable",
		},
		"coscheduling waits": {
			backend:  gang.Coscheduling,
			podGroup: "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, status: {phase: Pending}}",
			reason:   codes.PodGroupPending, message: "The scheduler has not placed all pods yet.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			podGroup := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.podGroup), &podGroup.Object); err != nil {
				t.Fatal(err)
			}
			said := func(message string) func(*corev1.Pod) {
				return func(pod *corev1.Pod) {
					pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message}}
				}
			}
			job := mpitest.Job(2)
			seen := jobstate.Observed{PodGroups: []*unstructured.Unstructured{podGroup}, Workers: []jobstate.Worker{
				mpitest.Worker(job, 0, corev1.PodPending, said("pod group is unschedulable, minCount (3) cannot be satisfied: 1 scheduled")),
				mpitest.Worker(job, 1, corev1.PodPending, said("0/2 nodes are available: 2 Insufficient cpu.")),
			}}
			got := gang.State(gang.Choice{Backend: test.backend}, job, seen)
			if got.Reason != test.reason || got.Message != test.message || got.Wanted != 3 {
				t.Errorf("it is %+v", got)
			}
		})
	}
}

// TestFits: the text that people read while a job waits.
func TestFits(t *testing.T) {
	seats := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{"pods": resource.MustParse("100"), "example.com/seat": *resource.NewQuantity(n, resource.DecimalSI)}
	}
	asks := func(j *mpi.Job) {
		for _, template := range []*corev1.PodTemplateSpec{&j.Launcher.Template, &j.Workers.Template} {
			template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/seat": resource.MustParse("1")}
		}
	}
	tests := map[string]struct {
		nodes  []jobstate.Node
		seen   jobstate.Observed
		change func(*mpi.Job)
		want   string
	}{
		"some": {
			nodes: []jobstate.Node{{Ready: true, Free: seats(3)}, {Ready: true, Free: seats(2)}},
			want:  "9 pods requested, 5 fit on 2 of 2 nodes",
		},
		"cordoned and lost nodes do not count": {
			nodes: []jobstate.Node{{Ready: true, Free: seats(3), Unschedulable: true}, {Ready: true, Free: seats(2)}, {Free: seats(4)}},
			want:  "9 pods requested, 2 fit on 1 of 3 nodes",
		},
		"none": {nodes: []jobstate.Node{{Ready: true, Free: seats(0)}}, want: "9 pods requested, 0 fit on 0 of 1 node"},
		"some may not go there": {
			nodes: []jobstate.Node{
				{Name: "a", Ready: true, Free: seats(3), Taints: []corev1.Taint{{Key: "team", Value: "b", Effect: corev1.TaintEffectNoSchedule}}},
				{Name: "b", Ready: true, Free: seats(4)},
			},
			want: "9 pods requested, 4 fit on 1 of 2 nodes",
		},
		"labels": {
			nodes: []jobstate.Node{
				{Name: "a", Ready: true, Free: seats(3), Labels: map[string]string{"zone": "x"}},
				{Name: "b", Ready: true, Free: seats(4)},
			},
			change: func(j *mpi.Job) { j.Workers.Template.Spec.NodeSelector = map[string]string{"zone": "x"} },
			want:   "9 pods requested, 4 fit on 2 of 2 nodes",
		},
		"all in one zone": {
			nodes: []jobstate.Node{
				{Name: "a", Ready: true, Free: seats(6), Labels: map[string]string{"zone": "x"}},
				{Name: "b", Ready: true, Free: seats(7), Labels: map[string]string{"zone": "y"}},
			},
			change: func(j *mpi.Job) { j.Topology.Key, j.Topology.Required = "zone", true },
			want:   "9 pods requested, 7 fit on 1 of 2 nodes",
		},
		"pods wait, of which the cache keeps next to nothing": {
			nodes: []jobstate.Node{{Ready: true, Free: seats(4)}},
			seen: jobstate.Observed{
				LauncherPods: []*corev1.Pod{mpitest.LauncherPod(mpitest.Job(8), 0, corev1.PodPending)},
				Workers:      mpitest.Workers(mpitest.Job(8), corev1.PodPending),
			},
			want: "9 pods requested, 4 fit on 1 of 1 node",
		},
		"some have one": {
			nodes: []jobstate.Node{{Ready: true, Free: seats(1)}},
			seen:  jobstate.Observed{Workers: []jobstate.Worker{mpitest.Worker(mpitest.Job(8), 0, corev1.PodPending, made(0, 0))}},
			want:  "9 pods requested, 1 scheduled, 1 more fit on 1 of 1 node",
		},
		"the launcher of a TrainJob has one": {
			nodes: []jobstate.Node{{Ready: true, Free: seats(3)}},
			seen:  jobstate.Observed{LauncherPods: []*corev1.Pod{mpitest.LauncherPod(mpitest.Job(8), 0, corev1.PodPending, made(0, 0), func(pod *corev1.Pod) { pod.Labels = nil })}},
			// Each worker takes two.
			change: func(j *mpi.Job) {
				j.Workers.Template.Spec.Containers[0].Resources.Limits["example.com/seat"] = resource.MustParse("2")
			},
			want: "9 pods requested, 1 scheduled, 1 more fit on 1 of 1 node",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(8, asks)
			if test.change != nil {
				test.change(&job)
			}
			state := gang.State(gang.Choice{Backend: gang.PodGroup}, job, test.seen)
			gang.Fits(job, test.seen, test.nodes, &state)
			if got := state.Fits(); got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}

// TestFitsNever: a job is said to never fit if all nodes together cannot hold its pods.
func TestFitsNever(t *testing.T) {
	node := func(name string, seats, free int64) jobstate.Node {
		list := func(n int64) corev1.ResourceList {
			return corev1.ResourceList{"pods": resource.MustParse("100"), "example.com/seat": *resource.NewQuantity(n, resource.DecimalSI)}
		}
		return jobstate.Node{Name: name, Ready: true, Allocatable: list(seats), Free: list(free), Labels: map[string]string{corev1.LabelHostname: name}}
	}
	queued := jobstate.Observed{Queue: &jobstate.QueueState{}}
	inOneHost := func(launcher, workers string) func(*mpi.Job) {
		return func(j *mpi.Job) {
			for group, template := range map[*string]*corev1.PodTemplateSpec{&launcher: &j.Launcher.Template, &workers: &j.Workers.Template} {
				template.Annotations = map[string]string{"kueue.x-k8s.io/podset-required-topology": corev1.LabelHostname, "kueue.x-k8s.io/podset-group-name": *group}
			}
		}
	}
	request := func(launcher, worker string) func(*mpi.Job) {
		return func(j *mpi.Job) {
			for seats, template := range map[*string]*corev1.PodTemplateSpec{&launcher: &j.Launcher.Template, &worker: &j.Workers.Template} {
				template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/seat": resource.MustParse(*seats)}
			}
		}
	}
	asks := func(j *mpi.Job) { j.Gang.Wanted = true }
	nodes := []jobstate.Node{node("a", 3, 0), node("b", 2, 0)}
	one := jobstate.Observed{Workers: []jobstate.Worker{mpitest.Worker(mpitest.Job(4), 0, corev1.PodPending, made(0, 0))}}
	tests := map[string]struct {
		workers int32
		change  []func(*mpi.Job)
		seen    jobstate.Observed
		tainted bool
		rests   bool
		want    string
	}{
		"no worker fits, and its pods are gone": {workers: 2, change: []func(*mpi.Job){request("1", "4")}, rests: true, want: "Only 1 of 3 pods fit"},
		"no worker of a TrainJob fits":          {workers: 2, change: []func(*mpi.Job){request("1", "4"), func(j *mpi.Job) { j.External, j.Gated = true, true }}, want: "Only 1 of 3 pods fit"},
		"it fits when others have ended":        {workers: 2, change: []func(*mpi.Job){request("2", "1")}},
		"a part of it fits":                     {workers: 4, change: []func(*mpi.Job){request("2", "1")}, want: "Only 4 of 5 pods fit on the cluster's 2 nodes, even if it is empty: each worker requests 1 of example.com/seat."},
		"the launcher does not":                 {workers: 2, change: []func(*mpi.Job){request("4", "1")}, want: "Only 2 of 3 pods fit on the cluster's 2 nodes, even if it is empty: the launcher requests 4 of example.com/seat, and no node has more than 3."},
		"one of its pods has a node":            {workers: 4, change: []func(*mpi.Job){request("2", "1")}, seen: one},
		"enough of them fit":                    {workers: 4, change: []func(*mpi.Job){request("2", "1"), func(j *mpi.Job) { j.Gang.MinAvailable = new(int32(3)) }}},
		"no worker fits, as pods show":          {workers: 2, change: []func(*mpi.Job){request("1", "4")}},
		"no worker fits, and it asks":           {workers: 2, change: []func(*mpi.Job){request("1", "4"), asks}, want: "Only 1 of 3 pods fit"},
		"one domain of Kueue's is too small": {
			workers: 3, change: []func(*mpi.Job){request("1", "1"), inOneHost("all", "all")}, seen: queued,
			want: "Only 3 of 4 pods fit on the cluster's 2 nodes, even if it is empty: all pods must run on nodes with the same kubernetes.io/hostname, of which a has room for the most; each worker requests 1 of example.com/seat.",
		},
		"one domain of Kueue's holds the workers": {workers: 3, change: []func(*mpi.Job){request("1", "1"), inOneHost("", "")}, seen: queued},
		"Kueue has chosen the domain":             {workers: 3, change: []func(*mpi.Job){request("1", "1"), inOneHost("all", "all")}, seen: jobstate.Observed{Queue: &jobstate.QueueState{Admitted: true}}},
		"no worker fits, in a queue":              {workers: 2, change: []func(*mpi.Job){request("1", "4")}, seen: queued, want: "Only 1 of 3 pods fit"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state, nodes := jobstate.GangState{Hold: test.rests}, slices.Clone(nodes)
			for i := range nodes {
				if test.tainted {
					nodes[i].Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
				}
			}
			gang.FitsNever(mpitest.Job(test.workers, test.change...), test.seen, nodes, &state)
			if state.Never != (test.want != "") || !strings.HasPrefix(state.Message, test.want) {
				t.Errorf("never %t: %s\nwant %s", state.Never, state.Message, test.want)
			}
		})
	}
}
