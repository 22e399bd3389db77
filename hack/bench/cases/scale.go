package cases

import (
	"context"
	"errors"
	"fmt"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/apiserver"
	"opendatahub.io/mpijob/hack/bench/contestant"
	"opendatahub.io/mpijob/hack/bench/nodes"
	"opendatahub.io/mpijob/hack/bench/observer"
	"opendatahub.io/mpijob/hack/bench/report"
	"opendatahub.io/mpijob/hack/bench/wait"
)

// Scale are the cases of the suite "scale": many jobs of 1 to 1,000 workers. With full there are 3,000 jobs, too.
func Scale(full bool) []Case {
	var all []Case
	numbers := []int{30, 100, 300, 1000}
	if full {
		numbers = append(numbers, 3000)
	}
	for _, jobs := range numbers {
		all = append(all, grow(jobs))
	}
	for _, jobs := range []int{30, 300} {
		all = append(all, moved(jobs), away(jobs), churn(jobs))
	}
	return append(all, suspended(500), suspended(5000))
}

// ScaleFigures are the figures of the suite "scale" whose growth is fitted.
func ScaleFigures() []report.Figure {
	return []report.Figure{
		{Name: "created/p50"},
		{Name: "created/p99"},
		{Name: "running"},
		{Name: "cpu"},
		{Name: "memory-more"},
		{Name: "requests", Each: true},
		{Name: "sent", Each: true},
		{Name: "received", Each: true},
		{Name: "idle-cpu"},
		{Name: "restart"},
		{Name: "restart-cpu"},
	}
}

const (
	// scaleNodes is how many nodes there are.
	scaleNodes = 1000
	// followLimit is how long a contestant may take to create all objects; then the run is cut short.
	followLimit = 8 * time.Minute
	// idleFor is how long an operator is watched that has nothing to do.
	idleFor = 30 * time.Second
	// ended is how many jobs end one after another, and endedEvery after what time the next one does.
	ended, endedEvery = 100, 100 * time.Millisecond
)

// grow creates many jobs at once, waits until all run, watches the idle operator, has jobs end, and restarts the operator.
func grow(jobs int) Case {
	name := func(figure string) string { return fmt.Sprintf("%s/%d", figure, jobs) }
	return Case{
		Results: []Result{
			{name("created") + "/p50", "s"},
			{name("created") + "/p99", "s"},
			{name("running"), "s"},
			{name("cpu"), "s"},
			{name("memory"), "MiB"},
			{name("memory-more"), "MiB"},
			{name("requests"), "requests/job"},
			{name("writes"), "writes/job"},
			{name("sent"), "kB/job"},
			{name("received"), "kB/job"},
			{name("idle-cpu"), "%"},
			{name("idle-requests"), "requests/s"},
			{name("ended") + "/p50", "s"},
			{name("ended") + "/p99", "s"},
			{name("reported") + "/p50", "s"},
			{name("reported") + "/p99", "s"},
			{name("restart"), "s"},
			{name("restart-cpu"), "s"},
			{name("restart-requests"), "requests"},
			{name("restart-writes"), "writes"},
		},
		PodsRun: true,
		Nodes:   scaleNodes,
		Counts:  true,
		Relayed: true,
		Alone:   true,
		Once:    true,
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			values := map[string]report.Value{}
			set := func(figure string, value float64) { values[figure] = report.Value{Value: value} }
			m := newMix(jobs)
			before, err := a.consumed()
			if err != nil {
				return nil, err
			}
			start := time.Now()
			if err := a.submitMix(ctx, m); err != nil {
				return nil, err
			}
			err = within(ctx, followLimit, func(ctx context.Context) error { return a.seen.WaitForAll(ctx, m.objects()) })
			p50, p99 := m.created(a.seen)
			if errors.Is(err, errLimit) {
				values[name("created")+"/p50"] = report.Value{Value: p50, AtLeast: true}
				values[name("created")+"/p99"] = report.Value{Value: p99, AtLeast: true}
				return values, nil
			}
			if err != nil {
				return nil, err
			}
			set(name("created")+"/p50", p50)
			set(name("created")+"/p99", p99)
			if err := a.reachedWithin(ctx, patience, jobs, kubeflow.JobRunning); err != nil {
				return nil, err
			}
			set(name("running"), time.Since(start).Seconds())
			if _, err := a.quiet(ctx); err != nil {
				return nil, err
			}
			after, err := a.consumed()
			if err != nil {
				return nil, err
			}
			a.requests = after.requests.Since(before.requests)
			writes, _ := countWrites(a.requests)
			set(name("cpu"), (after.cpu - before.cpu).Seconds())
			set(name("memory"), float64(after.memory)/(1<<20))
			set(name("memory-more"), float64(after.memory-before.memory)/(1<<20))
			set(name("requests"), float64(a.requests.Total())/float64(jobs))
			set(name("writes"), float64(writes)/float64(jobs))
			set(name("sent"), float64(after.sent-before.sent)/1000/float64(jobs))
			set(name("received"), float64(after.received-before.received)/1000/float64(jobs))

			if err := a.watchIdle(ctx, func(cpu, requests float64) {
				set(name("idle-cpu"), cpu)
				set(name("idle-requests"), requests)
			}); err != nil {
				return nil, err
			}
			took, err := a.restart(ctx)
			if err != nil {
				return nil, err
			}
			a.addRequests("after the restart: ", took.requests)
			set(name("restart"), took.until.Seconds())
			set(name("restart-cpu"), took.cpu.Seconds())
			set(name("restart-requests"), float64(took.requests.Total()))
			writes, _ = countWrites(took.requests)
			set(name("restart-writes"), float64(writes))
			return values, a.endSome(ctx, m, values, name("ended"), name("reported"))
		},
	}
}

// mix are jobs of many sizes.
type mix struct {
	// name begins their names.
	name    string
	workers []int
	// submitted is when each was.
	submitted []time.Time
}

func newMix(jobs int) *mix {
	return &mix{name: "job", workers: sizes(jobs), submitted: make([]time.Time, jobs)}
}

// job is the name of one of them.
func (m *mix) job(i int) string { return fmt.Sprintf("%s-%d", m.name, i) }

// objects are how many launchers and workers they have.
func (m *mix) objects() int { return len(m.workers) + sum(m.workers) }

// created returns how long it took from the creation of a job until all of its objects existed: of half of the jobs, and of 99
// of 100. A job that is not complete has taken until now.
func (m *mix) created(seen *observer.Observer) (p50, p99 float64) {
	var took []time.Duration
	for i, workers := range m.workers {
		at, complete := seen.Completed(m.job(i), workers)
		if !complete {
			at = time.Now()
		}
		took = append(took, at.Sub(m.submitted[i]))
	}
	return report.Percentile(took, 0.5).Seconds(), report.Percentile(took, 0.99).Seconds()
}

// submitMix creates the jobs at once. Their pods have nodes already, and run until they are deleted.
func (a *arena) submitMix(ctx context.Context, m *mix) error {
	var submits errgroup.Group
	submits.SetLimit(16)
	for i, workers := range m.workers {
		job := a.placedJob(m.job(i), workers, i)
		submits.Go(func() error {
			m.submitted[i] = time.Now()
			return a.runner.Submit(ctx, job)
		})
	}
	return submits.Wait()
}

// placedJob is a job whose pods have a node already, and run until they are deleted.
func (a *arena) placedJob(name string, workers, node int) *kubeflow.MPIJob {
	job := a.job(name, workers)
	for role, spec := range job.Spec.MPIReplicaSpecs {
		spec.Template.Spec.NodeName = fmt.Sprintf("fake-%d", node%scaleNodes)
		if role == kubeflow.MPIReplicaTypeLauncher {
			spec.Template.Labels = map[string]string{nodes.RunsOn: ""}
		}
	}
	return job
}

// consumption is what an operator has used so far.
type consumption struct {
	cpu            time.Duration
	memory         int64
	requests       apiserver.Requests
	sent, received int64
}

func (a *arena) consumed() (consumption, error) {
	usage, _, err := a.runner.Usage()
	if err != nil {
		return consumption{}, err
	}
	requests, err := a.server.Requests(a.runner.User())
	c := consumption{cpu: usage.CPU, memory: usage.PeakMemory, requests: requests}
	c.sent, c.received = a.server.Traffic()
	return c, err
}

// watchIdle measures the CPU time of an operator that has nothing to do, in percent of a CPU, and its requests a second.
func (a *arena) watchIdle(ctx context.Context, found func(cpu, requests float64)) error {
	before, err := a.consumed()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := wait.For(ctx, idleFor); err != nil {
		return err
	}
	after, err := a.consumed()
	if err != nil {
		return err
	}
	took, requests := time.Since(start).Seconds(), after.requests.Since(before.requests)
	a.addRequests("idle: ", requests)
	found(100*(after.cpu-before.cpu).Seconds()/took, float64(requests.Total())/took)
	return nil
}

// addRequests adds requests that are not those of a job's start to those in the report.
func (a *arena) addRequests(when string, requests apiserver.Requests) {
	for what, n := range requests {
		a.requests[when+what] = n
	}
}

// restarted is what a restart of an operator cost until it was idle again.
type restarted struct {
	until, cpu time.Duration
	requests   apiserver.Requests
}

const (
	// idleShare of a CPU is what an idle operator uses at most, and idleAfter is how long it must not have used more. It may
	// send requests meanwhile.
	idleShare = 0.05
	idleAfter = 5 * time.Second
	// idlePoll is how often that is looked at.
	idlePoll = 250 * time.Millisecond
)

// restart kills the operator, starts another one, and waits until that is idle.
func (a *arena) restart(ctx context.Context) (restarted, error) {
	process, ok := a.runner.(contestant.Restarter)
	if !ok {
		return restarted{}, fmt.Errorf("it has no process to restart")
	}
	before, err := a.server.Requests(a.runner.User())
	if err != nil {
		return restarted{}, err
	}
	if err := process.Restart(ctx, true); err != nil {
		return restarted{}, err
	}
	start := time.Now()
	busy, last := start, restarted{}
	for time.Since(busy) < idleAfter {
		if err := wait.For(ctx, idlePoll); err != nil {
			return restarted{}, err
		}
		now := time.Now()
		usage, _, err := a.runner.Usage()
		if err != nil {
			return restarted{}, err
		}
		if usage.CPU-last.cpu > time.Duration(idleShare*float64(idlePoll)) {
			busy = now
			last.until = now.Sub(start)
		}
		last.cpu = usage.CPU
		if now.Sub(start) > patience {
			return restarted{}, fmt.Errorf("it is not idle %s after its restart", patience)
		}
	}
	after, err := a.server.Requests(a.runner.User())
	last.requests = after.Since(before)
	return last, err
}

var (
	mpiJobs    = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v2beta1", Resource: "mpijobs"}
	jobReports = schema.GroupVersionResource{Group: "mpi.opendatahub.io", Version: "v1alpha1", Resource: "jobreports"}
)

// endSome has launchers of some jobs succeed, and measures until their status shows it, and until their reports do if the
// operator writes some.
func (a *arena) endSome(ctx context.Context, m *mix, values map[string]report.Value, inStatus, inReport string) error {
	inJobs, err := observer.WatchTransitions(ctx, a.server.Admin(), a.namespace, mpiJobs, func(job *unstructured.Unstructured) (string, bool) {
		conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == string(kubeflow.JobSucceeded) && c["status"] == "True" {
				return job.GetName(), true
			}
		}
		return "", false
	})
	if err != nil {
		return err
	}
	defer inJobs.Stop()
	inReports, err := observer.WatchTransitions(ctx, a.server.Admin(), a.namespace, jobReports, func(report *unstructured.Unstructured) (string, bool) {
		job, _, _ := unstructured.NestedString(report.Object, "spec", "jobRef", "name")
		phase, _, _ := unstructured.NestedString(report.Object, "status", "phase")
		return job, phase == "Succeeded"
	})
	if err != nil {
		return err
	}
	defer inReports.Stop()
	at, err := a.endLaunchers(ctx, m, min(ended, len(m.workers)))
	if err != nil {
		return err
	}
	if err := latencies(ctx, inJobs, at, values, inStatus); err != nil {
		return err
	}
	sizes, err := reportSizes(ctx, a.server, a.namespace)
	if err != nil || len(sizes) == 0 {
		return err
	}
	return latencies(ctx, inReports, at, values, inReport)
}

// latencies waits until jobs have reached a state, and adds how long half of them took since the times at, and 99 of 100.
func latencies(ctx context.Context, of *observer.Transitions, at map[string]time.Time, values map[string]report.Value, name string) error {
	var reached map[string]time.Time
	err := within(ctx, patience, func(ctx context.Context) (err error) {
		reached, err = of.Wait(ctx, len(at))
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var took []time.Duration
	for job, when := range reached {
		took = append(took, when.Sub(at[job]))
	}
	values[name+"/p50"] = report.Value{Value: report.Percentile(took, 0.5).Seconds()}
	values[name+"/p99"] = report.Value{Value: report.Percentile(took, 0.99).Seconds()}
	return nil
}

// endLaunchers has the launchers of the first jobs succeed, one after another, and returns when each did.
func (a *arena) endLaunchers(ctx context.Context, m *mix, number int) (map[string]time.Time, error) {
	pods, err := a.launcherPods(ctx)
	if err != nil {
		return nil, err
	}
	at := map[string]time.Time{}
	for i := range number {
		job := m.job(i)
		pod, found := pods[job]
		if !found {
			return nil, fmt.Errorf("%s has no launcher's pod", job)
		}
		at[job] = time.Now()
		if err := a.succeed(ctx, &pod); err != nil {
			return nil, err
		}
		if err := wait.For(ctx, endedEvery); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// launcherPods returns the launchers' pods by job.
func (a *arena) launcherPods(ctx context.Context) (map[string]corev1.Pod, error) {
	var list corev1.PodList
	err := a.admin.List(ctx, &list, client.InNamespace(a.namespace), client.MatchingLabels{kubeflow.JobRoleLabel: "launcher"})
	if err != nil {
		return nil, fmt.Errorf("list launchers' pods: %w", err)
	}
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		pods[pod.Labels[kubeflow.JobNameLabel]] = pod
	}
	return pods, nil
}

// succeed has all containers of a pod end with exit code 0, as a kubelet reports it.
func (a *arena) succeed(ctx context.Context, pod *corev1.Pod) error {
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.Ready, status.Started = false, new(false)
		status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: *pod.Status.StartTime, FinishedAt: metav1.Now()}}
	}
	if err := a.admin.Status().Patch(ctx, pod, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("end %s: %w", pod.Name, err)
	}
	return nil
}
