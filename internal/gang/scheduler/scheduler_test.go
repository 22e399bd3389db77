package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/quota"
)

// TestState: where a job stands is read without changing the queue.
func TestState(t *testing.T) {
	job := mpitest.Job(2)
	seen := jobstate.Observed{Now: mpitest.Now}
	e := &Scheduler{jobs: map[mpi.ID]*candidate{}, refused: map[mpi.ID]refusedJob{}}
	if state := e.State(job, seen); state == nil || !state.Hold || len(e.jobs) > 0 {
		t.Errorf("a new job: %+v, queue %v", state, e.jobs)
	}
	short := jobstate.Observed{Now: mpitest.Now, Shortages: []quota.Shortage{{Quota: "team"}}}
	if state := e.State(job, short); state != nil {
		t.Errorf("a job without quota: %+v", state)
	}

	admitted := newCandidate(job, mpitest.Now)
	admitted.admitted = mpitest.Now
	admitted.assignments[job.WorkerName(0)], admitted.assignments[job.WorkerName(1)] = "a", "b"
	admitted.unassigned[job.LauncherName()] = true
	e.jobs[job.ID()] = admitted
	state := e.State(job, seen)
	if state.Hold || state.Backend != gang.Embedded || state.Nodes[job.WorkerName(1)] != "b" {
		t.Errorf("an admitted job: %+v", state)
	}
	later := jobstate.Observed{Now: mpitest.Now.Add(2 * admissionTimeout)}
	if state := e.State(job, later); !state.Hold {
		t.Errorf("an admitted job without pods after the timeout: %+v", state)
	}
	if admitted.admitted.IsZero() || len(admitted.assignments) != 2 {
		t.Error("reading the state of a job put it back into the queue")
	}
	present := jobstate.Observed{Now: mpitest.Now, Launcher: mpitest.Launcher(job), Workers: mpitest.Workers(job, corev1.PodRunning)}
	if e.State(job, present); !admitted.unassigned[job.LauncherName()] {
		t.Error("reading the state of a job changed its pods to place")
	}
}

// TestNoPods: a job whose launcher's Job exists but has no pods releases its capacity, and is examined again.
func TestNoPods(t *testing.T) {
	job := mpitest.Job(2)
	c := newCandidate(job, mpitest.Now)
	c.admitted, c.generation = mpitest.Now, 3
	c.assignments[job.WorkerName(0)] = "a"
	launcher := mpitest.Launcher(job)
	launcher.Spec.Suspend = nil
	c.syncPods(job, jobstate.Observed{Now: mpitest.Now.Add(admissionTimeout), Launcher: launcher})
	if c.evicted || len(c.assignments) != 1 {
		t.Fatalf("within the time: %+v", c)
	}
	c.syncPods(job, jobstate.Observed{Now: mpitest.Now.Add(admissionTimeout + 1), Launcher: launcher})
	if !c.evicted || len(c.assignments) != 0 || c.generation != 0 {
		t.Fatalf("after the time: %+v", c)
	}
	if state := c.gangState(job); !state.Evict || !state.Hold || state.Reason != codes.CapacityUnknown || state.Message == "" {
		t.Errorf("its state: %+v", state)
	}
	stopped := launcher.DeepCopy()
	stopped.Spec.Suspend = new(true)
	if c.syncPods(job, jobstate.Observed{Now: mpitest.Now.Add(admissionTimeout + 2), Launcher: stopped}); c.evicted || !c.admitted.IsZero() {
		t.Errorf("after its launcher was stopped it does not wait again: %+v", c)
	}
}

// TestRest: cycles take a tenth of the time at most, but new jobs do not wait long for the next one.
func TestRest(t *testing.T) {
	for name, test := range map[string]struct{ took, want time.Duration }{
		"short":          {20 * time.Millisecond, 200 * time.Millisecond},
		"on a busy node": {time.Second, 2 * time.Second},
	} {
		if got := restAfter(test.took); got != test.want {
			t.Errorf("%s: the pause is %s, want %s", name, got, test.want)
		}
	}
}

// waitingJob puts a job of a namespace into the queue, by default or because it asks for it.
func waitingJob(e *Scheduler, name string, byDefault bool, priority int32, since time.Time) *candidate {
	job := mpitest.Job(1, func(j *mpi.Job) { j.Name, j.UID = name, types.UID(name) })
	c := newCandidate(job, since)
	c.byDefault, c.priority, c.preempts = byDefault, priority, true
	c.syncPending(job, jobstate.Observed{Now: since}, false)
	e.jobs[job.ID()] = c
	return c
}

// TestLetThrough: which jobs have their pods created although they do not fit.
func TestLetThrough(t *testing.T) {
	noRoom, never := gang.Held{Reason: codes.InsufficientCapacity}, gang.Held{Reason: codes.GangNeverFits, Never: true}
	partly := gang.Held{Reason: codes.GangNeverFits, Never: true, Partly: true}
	type waiting struct {
		held      gang.Held
		byDefault bool
		inQueue   bool
		gated     bool
		priority  int32
		probedAt  time.Time
	}
	// other is the priority of a pod of no job that has all of the cluster; ours are jobs that run.
	type pods struct {
		other int32
		ours  []gang.Entry
	}
	tests := map[string]struct {
		autoscaled, empty bool
		running           pods
		jobs              map[string]waiting
		want              string
	}{
		"nothing adds nodes":                         {jobs: map[string]waiting{"a": {held: noRoom, byDefault: true}, "b": {held: noRoom}}, want: "[]"},
		"a cluster without nodes":                    {empty: true, jobs: map[string]waiting{"a": {held: never, byDefault: true}, "b": {held: never}}, want: "[a b]"},
		"never fits":                                 {jobs: map[string]waiting{"a": {held: never, byDefault: true}, "b": {held: never}}, want: "[a]"},
		"never fits, and a queue has admitted it":    {jobs: map[string]waiting{"a": {held: never, byDefault: true, inQueue: true}}, want: "[]"},
		"never fits, and its launcher comes with it": {jobs: map[string]waiting{"a": {held: never, byDefault: true, gated: true}}, want: "[]"},
		"a TrainJob, an autoscaler":                  {autoscaled: true, jobs: map[string]waiting{"a": {held: never, byDefault: true, gated: true}}, want: "[a]"},
		"a part of it fits":                          {jobs: map[string]waiting{"a": {held: partly, byDefault: true}, "b": {held: partly}}, want: "[]"},
		"a part of it fits, an autoscaler":           {autoscaled: true, jobs: map[string]waiting{"a": {held: partly, byDefault: true}}, want: "[a]"},
		"an autoscaler, one at a time":               {autoscaled: true, jobs: map[string]waiting{"a": {held: noRoom, byDefault: true}, "b": {held: never, byDefault: true}}, want: "[a]"},
		"an autoscaler, and it asks":                 {autoscaled: true, jobs: map[string]waiting{"a": {held: never}}, want: "[a]"},
		"an autoscaler, the next one's turn":         {autoscaled: true, jobs: map[string]waiting{"a": {held: noRoom, probedAt: mpitest.Now}, "b": {held: noRoom}}, want: "[b]"},
		"an autoscaler, the higher priority":         {autoscaled: true, jobs: map[string]waiting{"a": {held: noRoom}, "b": {held: noRoom, priority: 10}}, want: "[b]"},
		"an autoscaler, capacity is kept for others": {autoscaled: true, jobs: map[string]waiting{"a": {held: gang.Held{Reason: codes.CapacityReserved}}}, want: "[]"},
		"a higher priority than another pod":         {jobs: map[string]waiting{"a": {held: noRoom, byDefault: true, priority: 10}, "b": {held: noRoom, byDefault: true}}, want: "[a]"},
		"the same priority as another pod":           {running: pods{other: 10}, jobs: map[string]waiting{"a": {held: noRoom, byDefault: true, priority: 10}}, want: "[]"},
		"a higher priority, and it asks":             {jobs: map[string]waiting{"a": {held: noRoom, priority: 10}}, want: "[]"},
		"a higher priority than a job":               {running: pods{ours: []gang.Entry{{Priority: 5, Holds: []gang.Hold{{Node: "a", Amount: gang.Totals{1000, 1}}}}}}, jobs: map[string]waiting{"a": {held: noRoom, byDefault: true, priority: 10}}, want: "[]"},
		"a job that has nothing of what lacks":       {running: pods{ours: []gang.Entry{{Priority: 5, Holds: []gang.Hold{{Node: "b", Amount: gang.Totals{1000, 1}}}}}}, jobs: map[string]waiting{"a": {held: noRoom, byDefault: true, priority: 10}}, want: "[a]"},
		"a job of the same priority":                 {running: pods{ours: []gang.Entry{{Priority: 10, Holds: []gang.Hold{{Node: "a", Amount: gang.Totals{1000, 1}}}}}}, jobs: map[string]waiting{"a": {held: noRoom, byDefault: true, priority: 10}}, want: "[a]"},
		"a higher priority, the last turn is over":   {jobs: map[string]waiting{"a": {held: noRoom, byDefault: true, priority: 10, probedAt: mpitest.Now.Add(-preemptPause + 1)}}, want: "[]"},
		"a higher priority, after a pause":           {jobs: map[string]waiting{"a": {held: noRoom, byDefault: true, priority: 10, probedAt: mpitest.Now.Add(-preemptPause)}}, want: "[a]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := &Scheduler{jobs: map[mpi.ID]*candidate{}, refused: map[mpi.ID]refusedJob{}, autoscaled: func() bool { return test.autoscaled }}
			resources := gang.NewResources()
			all := resources.Totals(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("9")})
			snapshot := &gang.Snapshot{At: mpitest.Now, Resources: resources}
			if !test.empty {
				snapshot.Nodes = []gang.Node{{Name: "a", Ready: true, Allocatable: all, Used: all}}
			}
			e.others = func(isJob func(mpi.ID) bool) gang.Others {
				if len(e.jobs) > 0 && !isJob(slices.Collect(maps.Keys(e.jobs))[0]) {
					t.Error("the scheduler's own jobs are others")
				}
				return gang.Others{"a": {test.running.other: all}}
			}
			shape := resources.ShapeOf(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("400m")}},
			}}}})
			decision := gang.Decision{Held: map[types.UID]gang.Held{}}
			keys := map[types.UID]mpi.ID{}
			for name, w := range test.jobs {
				c := waitingJob(e, name, w.byDefault, w.priority, mpitest.Now)
				c.probedAt, c.inQueue, c.gated = w.probedAt, w.inQueue, w.gated
				c.whole.Worker, c.whole.Launcher, c.whole.Workers = &shape, &shape, 1
				decision.Held[c.uid] = w.held
				keys[c.uid] = mpi.ID{Kind: mpi.KindMPIJob, Namespace: mpitest.Job(1).Namespace, Name: name}
			}
			e.letThrough(mpitest.Now, keys, snapshot, decision, test.running.ours)
			var got []string
			for _, name := range []string{"a", "b"} {
				c := e.jobs[keys[types.UID(name)]]
				if c == nil || c.admitted.IsZero() {
					continue
				}
				got = append(got, name)
				if state := c.gangState(mpitest.Job(1)); state.WorkersFirst != (!test.autoscaled && !test.empty && test.jobs[name].held.Never) {
					t.Errorf("%s: its launcher waits until a worker has a node: %t", name, state.WorkersFirst)
				}
			}
			if fmt.Sprint(got) != test.want {
				t.Errorf("the jobs whose pods are created are %v, want %v", got, test.want)
			}
			// While one is tried, no other is.
			e.letThrough(mpitest.Now, keys, snapshot, decision, test.running.ours)
			tried := 0
			for _, c := range e.jobs {
				if c.probe {
					tried++
				}
			}
			if tried > 1 {
				t.Errorf("%d jobs are tried at once", tried)
			}
		})
	}
}

// TestProbe: a job whose pods wait for an autoscaler has its turn until all of them have a node, or for a time.
func TestProbe(t *testing.T) {
	c := newCandidate(mpi.Job{UID: "uid"}, mpitest.Now)
	c.whole.Least, c.admitted, c.probe = 3, mpitest.Now, true
	if c.updateProbe(mpitest.Now.Add(probeTimeout), 2); !c.probe || c.evicted {
		t.Errorf("within the time: %+v", c)
	}
	if c.updateProbe(mpitest.Now.Add(probeTimeout+1), 2); c.probe || !c.evicted || c.evictionReason != codes.InsufficientCapacity {
		t.Errorf("after the time: %+v", c)
	}
	preempting := newCandidate(mpi.Job{UID: "uid"}, mpitest.Now)
	preempting.whole.Least, preempting.admitted, preempting.probe, preempting.preempting = 3, mpitest.Now, true, true
	if preempting.updateProbe(mpitest.Now.Add(preemptTimeout), 2); !preempting.probe || preempting.evicted {
		t.Errorf("while pods that are preempted end: %+v", preempting)
	}
	if preempting.updateProbe(mpitest.Now.Add(preemptTimeout+1), 2); preempting.probe || !preempting.evicted || !strings.Contains(preempting.evictionMessage, "did not make room") {
		t.Errorf("after they had the time to end: %+v", preempting)
	}
	placed := newCandidate(mpi.Job{UID: "uid"}, mpitest.Now)
	placed.whole.Least, placed.admitted, placed.probe = 3, mpitest.Now, true
	if placed.updateProbe(mpitest.Now.Add(time.Hour), 3); placed.probe || placed.evicted {
		t.Errorf("with all pods placed: %+v", placed)
	}
}

// TestByDefault: the pods of a job that has not asked for it are not pinned, and their room is kept until they have a node.
func TestByDefault(t *testing.T) {
	job := mpitest.Job(2)
	c := newCandidate(job, mpitest.Now)
	c.byDefault = true
	c.syncPods(job, jobstate.Observed{Now: mpitest.Now})
	resources := gang.NewResources()
	shape := resources.ShapeOf(&corev1.Pod{})
	c.whole.Worker, c.whole.Launcher, c.whole.Workers = &shape, &shape, 2
	c.assign(mpitest.Now, c.pending, gang.Placement{Launcher: "a", Workers: []string{"a", "b"}})
	c.admitted = mpitest.Now
	if state := c.gangState(job); len(state.Nodes) > 0 || state.Hold {
		t.Errorf("its state is %+v", state)
	}
	snapshot := func(after time.Duration) *gang.Snapshot {
		return &gang.Snapshot{At: mpitest.Now.Add(after), Resources: resources, Nodes: []gang.Node{{Name: "a"}, {Name: "b"}}}
	}
	c.entry(job.ID(), snapshot(0), []cluster.GangPod{{Name: job.WorkerName(0)}})
	if len(c.reserved) != 3 {
		t.Errorf("with a pod that has no node yet, room is kept for %v", c.reserved)
	}
	c.entry(job.ID(), snapshot(0), []cluster.GangPod{{Name: job.WorkerName(0), Node: "b"}, {Name: "x", Role: mpi.RoleLauncher, Node: "a"}})
	if len(c.reserved) != 1 || c.reserved[job.WorkerName(1)] != "b" {
		t.Errorf("with two bound pods, room is kept for %v", c.reserved)
	}
	if c.entry(job.ID(), snapshot(admissionTimeout+1), nil); len(c.reserved) != 0 {
		t.Errorf("after the timeout, room is kept for %v", c.reserved)
	}
}

// TestEndedPodsOfGatedJobs: a pod that has ended, which a suspended Job keeps, does not show that a job was admitted.
func TestEndedPodsOfGatedJobs(t *testing.T) {
	job := mpitest.Job(2)
	ended := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(mpitest.Now.Add(-time.Minute))}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	for name, test := range map[string]struct {
		gate *jobstate.Gate
		hold bool
	}{
		"a TrainJob": {gate: &jobstate.Gate{Closed: true}, hold: true},
		"an MPIJob":  {},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCandidate(job, mpitest.Now)
			c.syncPods(job, jobstate.Observed{Now: mpitest.Now, Gate: test.gate, Workers: []jobstate.Worker{{Index: 0, Pod: ended}}})
			if waits := c.admitted.IsZero(); waits != test.hold {
				t.Errorf("it waits: %t, want %t", waits, test.hold)
			}
		})
	}
}

// TestForgedPods: pods that somebody created with the labels of a job take no more room than the job's own pods that have no
// node yet, and none that is not free.
func TestForgedPods(t *testing.T) {
	resources := gang.NewResources()
	pod := func(cpu int64) *corev1.Pod {
		requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)}
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}}}
	}
	huge := resources.Amounts(gang.PodRequests(pod(1000)))
	tests := map[string]struct {
		requests int64
		waits    bool
		pods     []cluster.GangPod
		want     map[string]int64
	}{
		"the job's own":              {requests: 2, pods: []cluster.GangPod{{Name: "pi-worker-0", Assigned: "a"}, {Name: "pi-worker-1", Assigned: "b"}}, want: map[string]int64{"a": 2, "b": 2}},
		"larger than the template":   {requests: 2, pods: []cluster.GangPod{{Name: "pi-worker-0", Assigned: "a", Amounts: huge}}, want: map[string]int64{"a": 2}},
		"more than the job has":      {requests: 2, pods: []cluster.GangPod{{Name: "pi-worker-7", Assigned: "a"}, {Name: "forged", Assigned: "a"}}, want: map[string]int64{}},
		"more than the node has":     {requests: 1000, pods: []cluster.GangPod{{Name: "pi-worker-0", Assigned: "a"}}, want: map[string]int64{}},
		"many tries of the launcher": {requests: 2, pods: []cluster.GangPod{{Name: "x", Role: mpi.RoleLauncher, Assigned: "a"}, {Name: "y", Role: mpi.RoleLauncher, Assigned: "a"}}, want: map[string]int64{"a": 2}},
		"the job waits":              {requests: 2, waits: true, pods: []cluster.GangPod{{Name: "pi-worker-0", Assigned: "a"}}, want: map[string]int64{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(2, func(j *mpi.Job) { j.Name = "pi" })
			c := newCandidate(job, mpitest.Now)
			shape := resources.ShapeOf(pod(test.requests))
			c.whole.Worker, c.whole.Launcher, c.whole.Workers = &shape, &shape, 2
			if !test.waits {
				c.admitted = mpitest.Now
			}
			room := resources.Totals(gang.PodRequests(pod(8)))
			room = room.Plus(resources.Amounts(corev1.ResourceList{corev1.ResourcePods: resource.MustParse("9")}))
			nodes := &gang.Snapshot{At: mpitest.Now, Resources: resources, Nodes: []gang.Node{{Name: "a", Allocatable: room}, {Name: "b", Allocatable: room}}}
			c.entry(job.ID(), nodes, test.pods)
			got := map[string]int64{}
			cpu := resources.Amounts(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")})[0].Resource
			for _, node := range nodes.Nodes {
				if cpu < len(node.Used) && node.Used[cpu] > 0 {
					got[node.Name] = node.Used[cpu] / 1000
				}
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("it takes %v CPUs of the nodes, want %v", got, test.want)
			}
		})
	}
}

// TestLauncherOfJobWithoutNodes: after a restart, the operator does not create the launcher of a job whose workers have no nodes.
func TestLauncherOfJobWithoutNodes(t *testing.T) {
	job := mpitest.Job(2)
	created := func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(mpitest.Now) }
	workers := []jobstate.Worker{mpitest.Worker(job, 0, corev1.PodPending, created), mpitest.Worker(job, 1, corev1.PodPending, created)}
	launcher := mpitest.Launcher(job)
	tests := map[string]struct {
		seen  jobstate.Observed
		holds []gang.Hold
		want  bool
	}{
		"its workers have no nodes": {seen: jobstate.Observed{Now: mpitest.Now, Workers: workers}, want: true},
		"a worker has a node":       {seen: jobstate.Observed{Now: mpitest.Now, Workers: workers}, holds: []gang.Hold{{Node: "a"}}},
		"its launcher exists":       {seen: jobstate.Observed{Now: mpitest.Now, Workers: workers, Launcher: launcher}},
		"a worker is missing":       {seen: jobstate.Observed{Now: mpitest.Now, Workers: workers[:1]}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCandidate(job, mpitest.Now)
			c.byDefault = true
			c.syncPods(job, test.seen)
			if got := c.mayLackNodes(gang.Entry{Holds: test.holds}); got != test.want {
				t.Errorf("its launcher waits for a worker's node: %t, want %t", got, test.want)
			}
		})
	}
}
