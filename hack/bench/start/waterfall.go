package start

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/cluster"
	"opendatahub.io/mpijob/hack/bench/report"
	"opendatahub.io/mpijob/hack/bench/wait"
)

var (
	jobSets    = schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSetList"}
	jobReports = schema.GroupVersionKind{Group: "mpi.opendatahub.io", Version: "v1alpha1", Kind: "JobReport"}
)

// podTimes are when a watch returned what happened to a pod. Kubernetes itself reports whole seconds.
type podTimes struct{ created, scheduled, pulling, pulled, started time.Time }

// observation is what a watch returned of one job.
type observation struct {
	mu sync.Mutex
	// jobSet is when the JobSet of a TrainJob existed, resumed when it was not suspended, and jobs when the last of its Jobs was not.
	jobSet, resumed, jobs time.Time
	pods                  map[types.UID]*podTimes
}

// observe watches what is created from now on until stop is called. Objects of a TrainJob are watched if withJobSets is set.
func (f *field) observe(ctx context.Context, withJobSets bool) (o *observation, stop func(), err error) {
	o = &observation{pods: map[types.UID]*podTimes{}}
	lists := []client.ObjectList{&corev1.PodList{}, &corev1.EventList{}}
	if withJobSets {
		sets := &unstructured.UnstructuredList{}
		sets.SetGroupVersionKind(jobSets)
		lists = append(lists, sets, &batchv1.JobList{})
	}
	var stops []func()
	stop = func() {
		for _, each := range stops {
			each()
		}
	}
	for _, list := range lists {
		changes, err := f.Client.Watch(ctx, list, client.InNamespace(cluster.Namespace))
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("watch %T: %w", list, err)
		}
		stops = append(stops, changes.Stop)
		go func() {
			for change := range changes.ResultChan() {
				o.add(change.Object, time.Now())
			}
		}()
	}
	return o, stop, nil
}

// add records that an object was as it is at a time.
func (o *observation) add(object any, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch of := object.(type) {
	case *corev1.Pod:
		pod := o.pods[of.UID]
		if pod == nil {
			pod = &podTimes{created: at}
			o.pods[of.UID] = pod
		}
		if of.Spec.NodeName != "" {
			once(&pod.scheduled, at)
		}
	case *corev1.Event:
		o.addEvent(of, at)
	case *batchv1.Job:
		if !ptr.Deref(of.Spec.Suspend, false) && of.Status.StartTime == nil {
			o.jobs = at
		}
	case *unstructured.Unstructured:
		once(&o.jobSet, at)
		if suspended, _, _ := unstructured.NestedBool(of.Object, "spec", "suspend"); !suspended {
			once(&o.resumed, at)
		}
	}
}

// addEvent records an event about the main container of a pod. Those of earlier jobs are about unknown pods.
func (o *observation) addEvent(event *corev1.Event, at time.Time) {
	pod := o.pods[event.InvolvedObject.UID]
	if pod == nil || !strings.HasPrefix(event.InvolvedObject.FieldPath, "spec.containers{") {
		return
	}
	switch event.Reason {
	case "Pulling":
		once(&pod.pulling, at)
	case "Pulled":
		once(&pod.pulled, at)
	case "Started":
		once(&pod.started, at)
	}
}

func once(t *time.Time, at time.Time) {
	if t.IsZero() {
		*t = at
	}
}

// launch is what the JobReport contains of the start of ranks.
type launch struct {
	since time.Time
	steps []reportedStep
}

type reportedStep struct {
	name         string
	start, taken time.Duration
}

// reportedParts are parts of a start in the JobReport, with their names in a waterfall. Those before are observed here.
var reportedParts = [][2]string{
	{"Launch", "mpirun: until it connects"}, {"Connected", "agent: all workers connected"}, {"MPIInit", "MPI's daemons: until ranks run"},
}

// steps returns the parts of the start of a job that was created at a time, and wrote its first line at another.
func (o *observation) steps(created, firstLine time.Time, reported launch) []report.Step {
	o.mu.Lock()
	defer o.mu.Unlock()
	var steps []report.Step
	add := func(name string, from, to time.Time) {
		if !from.IsZero() && !to.IsZero() && to.After(from) {
			steps = append(steps, report.Step{Name: name, Start: from.Sub(created).Seconds(), Seconds: to.Sub(from).Seconds()})
		}
	}
	pods := slices.Collect(maps.Values(o.pods))
	first := func(of func(*podTimes) time.Time) (at time.Time) { return bound(pods, of, time.Time.Before) }
	last := func(of func(*podTimes) time.Time) (at time.Time) { return bound(pods, of, time.Time.After) }
	podCreated := func(p *podTimes) time.Time { return p.created }
	scheduled := func(p *podTimes) time.Time { return p.scheduled }
	pulling := func(p *podTimes) time.Time { return p.pulling }
	pulled := func(p *podTimes) time.Time { return p.pulled }
	ready := func(p *podTimes) time.Time {
		if p.pulling.IsZero() {
			return p.pulled
		}
		return p.pulling
	}
	started := func(p *podTimes) time.Time { return p.started }
	if o.jobSet.IsZero() {
		add("operator: pods created", created, last(podCreated))
	} else {
		add("Trainer: JobSet created", created, o.jobSet)
		add("operator: JobSet resumed", o.jobSet, o.resumed)
		add("JobSet: Jobs created", o.resumed, o.jobs)
		add("Job controller: pods created", o.jobs, last(podCreated))
	}
	add("scheduler", first(podCreated), last(scheduled))
	add("kubelet: volumes and network", first(scheduled), last(ready))
	add("kubelet: image pulled", first(pulling), last(pulled))
	add("containerd: containers started", first(pulled), last(started))
	ranks := last(started)
	for _, part := range reportedParts {
		for _, step := range reported.steps {
			if step.name == part[0] {
				from := reported.since.Add(step.start)
				add(part[1], from, from.Add(step.taken))
				ranks = from.Add(step.taken)
			}
		}
	}
	name := "ssh, MPI and the program: first line"
	switch {
	case reported.has("MPIInit"):
		name = "MPI_Init and the program: first line"
	case reported.has("Connected"):
		// The ranks ended before the agent saw them.
		name = "MPI's daemons and the program: first line"
	}
	add(name, ranks, firstLine)
	return steps
}

// bound returns the time of all pods that is before or after the others; unknown ones do not count.
func bound(pods []*podTimes, of func(*podTimes) time.Time, is func(a, b time.Time) bool) (found time.Time) {
	for _, pod := range pods {
		if at := of(pod); !at.IsZero() && (found.IsZero() || is(at, found)) {
			found = at
		}
	}
	return found
}

// reportWait is how long the report of a job that has ended may take to be complete.
const reportWait = 5 * time.Second

// launchOf reads the start of ranks from the JobReport of a job, which is complete a moment after the job has ended. What is missing then
// is left out.
func (f *field) launchOf(ctx context.Context, job client.Object) (found launch, err error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(jobReports)
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: fmt.Sprintf("%s-%.8s", job.GetName(), job.GetUID())}
	for deadline := time.Now().Add(reportWait); time.Now().Before(deadline); {
		if err := f.Client.Get(ctx, key, object); client.IgnoreNotFound(err) != nil {
			return found, fmt.Errorf("get the report of %s: %w", job.GetName(), err)
		}
		found, err = readLaunch(object.Object)
		if ended, _, _ := unstructured.NestedString(object.Object, "status", "completionTime"); err != nil || ended != "" {
			return found, err
		}
		if err := wait.For(ctx, 100*time.Millisecond); err != nil {
			return found, err
		}
	}
	return found, nil
}

func (l launch) has(name string) bool {
	return slices.ContainsFunc(l.steps, func(step reportedStep) bool { return step.name == name })
}

// readLaunch reads the start of a JobReport.
func readLaunch(object map[string]any) (found launch, err error) {
	since, _, _ := unstructured.NestedString(object, "status", "startup", "since")
	if since == "" {
		return found, nil
	}
	if found.since, err = time.Parse(time.RFC3339, since); err != nil {
		return found, fmt.Errorf("read status.startup.since: %w", err)
	}
	steps, _, err := unstructured.NestedSlice(object, "status", "startup", "steps")
	if err != nil {
		return found, fmt.Errorf("read status.startup.steps: %w", err)
	}
	for _, each := range steps {
		step, is := each.(map[string]any)
		if !is {
			return found, errors.New("read status.startup.steps: not an object")
		}
		name, _ := step["name"].(string)
		start, _ := step["startMilliseconds"].(int64)
		taken, _ := step["milliseconds"].(int64)
		found.steps = append(found.steps, reportedStep{name, time.Duration(start) * time.Millisecond, time.Duration(taken) * time.Millisecond})
	}
	return found, nil
}
