package cluster

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
)

func cpus(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
}

func aNode(name string, cpu int64) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Allocatable: cpus(cpu), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// aPod is one of a job of ours that asks for a CPU and has a node.
func aPod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name),
			Labels: map[string]string{mpi.LabelOperator: mpi.OperatorName, mpi.LabelJob: "pi", mpi.LabelRole: string(mpi.RoleWorker)},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: cpus(1)}}}},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func stranger(pod *corev1.Pod) { pod.Labels = nil }

func pinned(node string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
			}}},
		}}}
	}
}

// knows waits for nothing: it compares what is free and whose it is now.
func knows(t *testing.T, n *Nodes, used map[string]int64, leaving map[string]int64, ours []string) {
	t.Helper()
	snapshot, pods, known := n.Snapshot(time.Time{})
	if !known {
		t.Fatal("nothing is known")
	}
	cpu := n.Resources.Amounts(cpus(1))[0].Resource
	got, gone := map[string]int64{}, map[string]int64{}
	for _, node := range snapshot.Nodes {
		for into, totals := range map[*map[string]int64]gang.Totals{&got: node.Used, &gone: node.Leaving} {
			if cpu < len(totals) && totals[cpu] != 0 {
				(*into)[node.Name] = totals[cpu] / 1000
			}
		}
	}
	var names []string
	for _, pod := range pods[mpi.ID{Kind: mpi.KindMPIJob, Namespace: "ns", Name: "pi"}] {
		name := fmt.Sprintf("%s on %s", pod.Name, pod.Node)
		if pod.Node == "" {
			name = fmt.Sprintf("%s for %s", pod.Name, pod.Assigned)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	if leaving == nil {
		leaving = map[string]int64{}
	}
	if diff := cmp.Diff([]any{used, leaving, ours}, []any{got, gone, names}); diff != "" {
		t.Errorf("it knows something else (-want +got):\n%s", diff)
	}
}

func TestNodesFollowWhatChanges(t *testing.T) {
	t.Parallel()
	n := NewNodes(&typedcore.CoreV1Client{})
	nodes, pods := nodeStore{n}, podStore{n}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(nodes.Replace([]any{aNode("a", 4), aNode("b", 4)}, ""))
	if _, _, known := n.Snapshot(time.Time{}); known {
		t.Error("room is known before pods are")
	}
	do(pods.Replace([]any{aPod("w-0", "a"), aPod("other", "b", stranger), aPod("w-1", "", pinned("b")), aPod("nowhere", "", stranger)}, ""))
	knows(t, n, map[string]int64{"a": 1, "b": 1}, nil, []string{"w-0 on a", "w-1 for b"})

	// The scheduler binds one elsewhere, one is deleted, and one ends.
	do(pods.Update(aPod("w-1", "a", pinned("b"))))
	do(pods.Update(aPod("w-0", "a", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })))
	knows(t, n, map[string]int64{"a": 2, "b": 1}, map[string]int64{"a": 1}, []string{"w-0 on a", "w-1 on a"})
	do(pods.Delete(aPod("w-0", "a")))
	do(pods.Update(aPod("other", "b", stranger, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })))
	knows(t, n, map[string]int64{"a": 1}, nil, []string{"w-1 on a"})

	// Nodes come and go, and their pods count all the same.
	do(nodes.Delete(aNode("a", 4)))
	knows(t, n, map[string]int64{}, nil, []string{"w-1 on a"})
	do(nodes.Add(aNode("a", 8)))
	knows(t, n, map[string]int64{"a": 1}, nil, []string{"w-1 on a"})

	// After a watch was lost all of it comes again.
	do(pods.Replace([]any{aPod("w-2", "b")}, ""))
	knows(t, n, map[string]int64{"b": 1}, nil, []string{"w-2 on b"})
}

// TestOthers: what pods have that belong to none of the scheduler's jobs follows them, by priority.
func TestOthers(t *testing.T) {
	t.Parallel()
	n := NewNodes(&typedcore.CoreV1Client{})
	of := func(priority int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &priority } }
	others := func() map[int32]int64 {
		t.Helper()
		isJob := func(job mpi.ID) bool { return job.Kind == mpi.KindMPIJob }
		sums := map[int32]int64{}
		for priority, has := range n.Others(isJob)["a"] {
			sums[priority] = has[n.Resources.Amounts(cpus(1))[0].Resource] / 1000
		}
		return sums
	}
	ofJobSet := func(p *corev1.Pod) { p.Labels = map[string]string{mpi.LabelJobSet: "torch"} }
	pods := podStore{n}
	for i, step := range []struct {
		do   func() error
		want map[int32]int64
	}{
		{func() error {
			return errors.Join(nodeStore{n}.Replace([]any{aNode("a", 8)}, ""), pods.Replace([]any{
				aPod("w-0", "a", of(5)), aPod("x", "a", stranger, of(5)), aPod("y", "a", stranger), aPod("z", "a", stranger), aPod("unbound", "", stranger),
			}, ""))
		}, map[int32]int64{0: 2, 5: 1}},
		{func() error { return pods.Add(aPod("torch-node-0-0", "a", ofJobSet, of(7))) }, map[int32]int64{0: 2, 5: 1, 7: 1}},
		{func() error { return pods.Delete(aPod("torch-node-0-0", "a", ofJobSet)) }, map[int32]int64{0: 2, 5: 1}},
		{func() error { return pods.Add(aPod("unbound", "a", stranger)) }, map[int32]int64{0: 3, 5: 1}},
		{func() error { return pods.Update(aPod("y", "a", stranger, of(5))) }, map[int32]int64{0: 2, 5: 2}},
		{func() error { return errors.Join(pods.Delete(aPod("x", "a", stranger)), pods.Delete(aPod("w-0", "a"))) }, map[int32]int64{0: 2, 5: 1}},
		{func() error { return pods.Replace([]any{aPod("x", "a", stranger, of(-1))}, "") }, map[int32]int64{-1: 1}},
	} {
		err := step.do()
		if diff := cmp.Diff(step.want, others()); err != nil || diff != "" {
			t.Errorf("step %d: %v (-want +got):\n%s", i, err, diff)
		}
	}
}

// TestUnboundPodsUseNothing: anybody can create pods with the labels of a job that ask for a node and are never bound.
func TestUnboundPodsUseNothing(t *testing.T) {
	t.Parallel()
	n := NewNodes(&typedcore.CoreV1Client{})
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	if err := errors.Join(
		nodeStore{n}.Replace([]any{aNode("a", 4)}, ""),
		podStore{n}.Replace([]any{aPod("forged", "", pinned("a")), aPod("leaving", "", pinned("a"), leaving)}, ""),
	); err != nil {
		t.Fatal(err)
	}
	knows(t, n, map[string]int64{}, nil, []string{"forged for a", "leaving for a"})
	if err := (podStore{n}).Delete(aPod("forged", "")); err != nil {
		t.Fatal(err)
	}
	knows(t, n, map[string]int64{}, nil, []string{"leaving for a"})
}

// TestRelistIsTakenOverAtOnce: who looks while the lists are read anew sees no node that is missing, and none that is free.
func TestRelistIsTakenOverAtOnce(t *testing.T) {
	t.Parallel()
	const many = 200
	n := NewNodes(&typedcore.CoreV1Client{})
	var nodes, pods []any
	for i := range many {
		name := fmt.Sprintf("node-%d", i)
		nodes, pods = append(nodes, aNode(name, 1)), append(pods, aPod("on-"+name, name))
	}
	relist := func() error {
		return errors.Join(nodeStore{n}.Replace(nodes, ""), podStore{n}.Replace(pods, ""))
	}
	if err := relist(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		var err error
		for range 50 {
			err = errors.Join(err, relist())
		}
		done <- err
	}()
	for {
		seen, _, known := n.Snapshot(time.Time{})
		free := slices.ContainsFunc(seen.Nodes, func(node gang.Node) bool { return len(node.Used) == 0 })
		if !known || len(seen.Nodes) != many || free {
			t.Fatalf("%d of %d nodes are seen, some of them free: %t", len(seen.Nodes), many, free)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func TestNodesTellOfNewsAlone(t *testing.T) {
	t.Parallel()
	n := NewNodes(&typedcore.CoreV1Client{})
	told := func() bool {
		select {
		case <-n.Changed():
			return true
		default:
			return false
		}
	}
	nodes, pods := nodeStore{n}, podStore{n}
	beat := aNode("a", 4)
	for i, step := range []struct {
		do   func() error
		news bool
	}{
		{func() error { return nodes.Add(aNode("a", 4)) }, true},
		{func() error {
			beat.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
			return nodes.Update(beat)
		}, false},
		{func() error { return nodes.Update(aNode("a", 5)) }, true},
		{func() error { return pods.Add(aPod("w-0", "a")) }, true},
		{func() error {
			return pods.Update(aPod("w-0", "a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }))
		}, false},
		{func() error { return pods.Delete(aPod("w-0", "a")) }, true},
		{func() error { return pods.Delete(aPod("w-0", "a")) }, false},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := told(); got != step.news {
			t.Errorf("step %d: told %v, want %v", i, got, step.news)
		}
	}
}

// BenchmarkNodes is what it takes to know 1,000 nodes and 20,000 pods, and to make a snapshot of them.
func BenchmarkNodes(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	n := NewNodes(&typedcore.CoreV1Client{})
	nodes, pods := nodeStore{n}, podStore{n}
	n.listed["nodes"], n.listed["pods"] = true, true
	for i := range 1000 {
		if err := nodes.Add(aNode(fmt.Sprintf("node-%04d", i), 64)); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 20000 {
		if err := pods.Add(aPod(fmt.Sprintf("pod-%05d", i), fmt.Sprintf("node-%04d", i%1000))); err != nil {
			b.Fatal(err)
		}
	}
	after := heap()
	b.ReportAllocs()
	for b.Loop() {
		n.Snapshot(time.Time{})
	}
	b.ReportMetric(float64(after-before)/(1<<20), "MiB")
	runtime.KeepAlive(n)
}
