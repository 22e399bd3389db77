package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/launch"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

const (
	// patience is how long evidence is waited for; what has not come by then is left out.
	patience = 5 * time.Second
	// page and pages bound lists of what is not the job's own.
	page, pages = 500, 20
	// nodesFor is how long the free room on nodes is taken as it was read: reading it means to read all pods.
	nodesFor = 15 * time.Second
)

// Gatherer asks the API server for what a diagnosis rests on beyond what is cached.
type Gatherer struct {
	live   client.Reader
	logs   typedcore.PodsGetter
	masker logs.Masker
	clock  clock.PassiveClock

	mu        sync.Mutex
	nodesAt   time.Time
	nodes     []mpi.Node
	nodesLeft int
}

// NewGatherer returns a Gatherer that reads objects and logs from the API server itself. The masker takes secrets out
// of texts before anybody else sees them.
func NewGatherer(live client.Reader, pods typedcore.PodsGetter, masker logs.Masker, clock clock.PassiveClock) *Gatherer {
	return &Gatherer{live: live, logs: pods, masker: masker, clock: clock}
}

// Gather reads what may tell why a job does not get on, in parallel and within 5 s. What cannot be read is left out.
func (g *Gatherer) Gather(ctx context.Context, job mpi.Job, seen mpi.Observed, refusals []mpi.Refusal) mpi.Evidence {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	evidence := mpi.Evidence{Refusals: refusals}
	var all sync.WaitGroup
	all.Go(func() { evidence.Events = g.events(ctx, job, seen) })
	all.Go(func() {
		evidence.Logs, evidence.Training = g.words(ctx, job, seen, amount{lines: mpi.MaxLogLines, bytes: 32 << 20})
	})
	unplaced, pending := waiting(seen)
	if unplaced {
		all.Go(func() { evidence.Nodes, evidence.NodesLeft = g.room(ctx) })
	} else if names := doubtful(seen); len(names) > 0 {
		all.Go(func() { evidence.Nodes = g.named(ctx, names) })
	}
	if pending {
		all.Go(func() { evidence.Claims = g.claims(ctx, job) })
	}
	if slices.ContainsFunc(refusals, func(r mpi.Refusal) bool { return !r.Taken }) {
		all.Go(func() { evidence.Quotas, _ = Quotas(ctx, g.live, job.Namespace) })
	}
	all.Wait()
	return evidence
}

// Listen reads the last that a job that is well says, within 5 s, and nothing else.
func (g *Gatherer) Listen(ctx context.Context, job mpi.Job, seen mpi.Observed) (evidence mpi.Evidence) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	evidence.Logs, evidence.Training = g.words(ctx, job, seen, amount{lines: 100, bytes: 4 << 20})
	return evidence
}

// amount is how much of the end of a log is read at most.
type amount struct{ lines, bytes int64 }

// words are the ends of the logs worth reading, in parallel, and the progress that they tell of.
func (g *Gatherer) words(ctx context.Context, job mpi.Job, seen mpi.Observed, most amount) (map[string]mpi.Log, mpi.Training) {
	read := map[string]mpi.Log{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, source := range sources(job, seen) {
		all.Go(func() {
			log, err := g.log(ctx, job.Namespace, source, most)
			if err != nil && len(log.Lines) == 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			read[source.pod.Name] = log
		})
	}
	all.Wait()
	if speaker := speaker(job, seen); speaker != nil {
		log := read[speaker.Name]
		if training, told := logs.LastTraining(log.Lines); told {
			training.At = log.LastAt
			return read, training
		}
	}
	return read, mpi.Training{}
}

// speaker is the pod whose output is the program's: the launcher's latest try, or rank 0's of a job without a launcher;
// nil where there is none.
func speaker(job mpi.Job, seen mpi.Observed) *corev1.Pod {
	switch n := len(seen.LauncherPods); {
	case n > 0:
		return seen.LauncherPods[n-1]
	case job.Launcher.None && len(seen.Workers) > 0:
		return seen.Workers[0].Pod
	}
	return nil
}

// doubtful are the nodes of pods that run and yet are not ready: so Kubernetes marks them when a node does not answer.
func doubtful(seen mpi.Observed) []string {
	const most = 16
	var names []string
	for pod := range podsIn(seen) {
		if Unready(pod) && pod.Spec.NodeName != "" && !slices.Contains(names, pod.Spec.NodeName) && len(names) < most {
			names = append(names, pod.Spec.NodeName)
		}
	}
	slices.Sort(names)
	return names
}

// Unready tells whether a pod is said to run and not to be ready.
func Unready(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse
	})
}

// named reads some nodes, without what is free on them. One that is gone does not answer either.
func (g *Gatherer) named(ctx context.Context, names []string) []mpi.Node {
	var nodes []mpi.Node
	for _, name := range names {
		var node corev1.Node
		switch err := g.live.Get(ctx, client.ObjectKey{Name: name}, &node); {
		case apierrors.IsNotFound(err):
			nodes = append(nodes, mpi.Node{Name: name})
		case err == nil:
			nodes = append(nodes, nodeOf(&node, nil))
		}
	}
	return nodes
}

func nodeOf(node *corev1.Node, free corev1.ResourceList) mpi.Node {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return mpi.Node{
		Name: node.Name, Allocatable: node.Status.Allocatable, Free: free, Labels: node.Labels, Taints: node.Spec.Taints,
		Ready: ready, Unschedulable: node.Spec.Unschedulable,
	}
}

// waiting tells whether pods find no node, and whether any have not started.
func waiting(seen mpi.Observed) (unplaced, pending bool) {
	for pod := range podsIn(seen) {
		if pod.Status.Phase != corev1.PodPending {
			continue
		}
		pending = true
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				unplaced = true
			}
		}
	}
	return unplaced, pending
}

// podsIn are the launcher's tries, the latest first, and the workers.
func podsIn(seen mpi.Observed) func(func(*corev1.Pod) bool) {
	return func(yield func(*corev1.Pod) bool) {
		for _, pod := range slices.Backward(seen.LauncherPods) {
			if !yield(pod) {
				return
			}
		}
		for _, worker := range seen.Workers {
			if !yield(worker.Pod) {
				return
			}
		}
	}
}

// EndedBadly tells whether a container of a pod has failed, in this run or the one before, and when the first did.
func EndedBadly(pod *corev1.Pod) (time.Time, bool) {
	at, bad := time.Time{}, pod.Status.Phase == corev1.PodFailed
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range list {
			for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
				if ended == nil || ended.ExitCode == 0 {
					continue
				}
				if bad = true; at.IsZero() || ended.FinishedAt.Time.Before(at) {
					at = ended.FinishedAt.Time
				}
			}
		}
	}
	return at, bad
}

// source is a log to read.
type source struct {
	pod       *corev1.Pod
	container string
	// previous is set where the run before the present one has failed.
	previous bool
	// message is the termination message of the run.
	message string
}

// sources are the logs worth reading: that of the launcher's latest try that failed, or of its latest, and then those
// of workers that failed, the first first.
func sources(job mpi.Job, seen mpi.Observed) []source {
	var pods []*corev1.Pod
	for _, try := range slices.Backward(seen.LauncherPods) {
		if _, bad := EndedBadly(try); bad {
			pods = append(pods, try)
			break
		}
	}
	if n := len(seen.LauncherPods); n > 0 && len(pods) == 0 {
		pods = append(pods, seen.LauncherPods[n-1])
	}
	launchers := len(pods)
	if job.Launcher.None && len(seen.Workers) > 0 {
		// Rank 0 speaks for a job without a launcher.
		pods = append(pods, seen.Workers[0].Pod)
	}
	for _, worker := range seen.Workers[min(len(pods)-launchers, len(seen.Workers)):] {
		if _, bad := EndedBadly(worker.Pod); bad {
			pods = append(pods, worker.Pod)
		}
	}
	slices.SortStableFunc(pods[launchers:], func(a, b *corev1.Pod) int {
		first, _ := EndedBadly(a)
		second, _ := EndedBadly(b)
		return first.Compare(second)
	})
	var found []source
	for i, pod := range pods[:min(len(pods), mpi.MaxLogPods)] {
		containers := job.Workers.Template.Spec.Containers
		if i < launchers {
			containers = job.Launcher.Template.Spec.Containers
		}
		if len(containers) == 0 {
			continue
		}
		if s, has := sourceOf(pod, containers[0].Name); has {
			found = append(found, s)
		}
	}
	return found
}

// sourceOf picks the run of a container whose log says most; false where it has not run.
func sourceOf(pod *corev1.Pod, container string) (source, bool) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != container {
			continue
		}
		now, last := c.State.Terminated, c.LastTerminationState.Terminated
		switch {
		case now != nil && (now.ExitCode != 0 || last == nil || last.ExitCode == 0):
			return source{pod: pod, container: container, message: now.Message}, true
		case last != nil && last.ExitCode != 0:
			return source{pod: pod, container: container, previous: true, message: last.Message}, true
		}
		return source{pod: pod, container: container}, c.State.Running != nil
	}
	return source{}, false
}

// log reads the end of a log, masked. Where it is gone, the termination message stands for it, if it is no agent's. A
// program that has said nothing has no lines, and no error.
func (g *Gatherer) log(ctx context.Context, namespace string, s source, most amount) (mpi.Log, error) {
	stream, err := g.logs.Pods(namespace).GetLogs(s.pod.Name, &corev1.PodLogOptions{
		Container: s.container, Previous: s.previous, TailLines: &most.lines, LimitBytes: &most.bytes, Timestamps: true,
	}).Stream(ctx)
	var text []byte
	var last time.Time
	if err == nil {
		text, last = stripTimes(readEnd(io.LimitReader(stream, most.bytes)))
		_ = stream.Close()
		if last.IsZero() && bytes.HasPrefix(text, []byte(logGone)) {
			text, err = nil, errors.New(logGone+s.pod.Name)
		}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		if _, agents := launch.ParseSummary(s.message); agents {
			return mpi.Log{}, err
		}
		text = []byte(s.message)
	}
	return mpi.Log{Lines: g.masker.Lines(logs.Tail(text, mpi.MaxLogLines)), LastAt: last}, err
}

// logGone begins what a kubelet answers in place of the log of a container that was removed, and as if it were one
// (k8s.io/kubernetes/pkg/kubelet/kuberuntime/kuberuntime_container.go).
const logGone = "unable to retrieve container logs for "

// readEnd reads a stream and returns its end, from the beginning of a line. Lines may be of any length.
func readEnd(stream io.Reader) []byte {
	const keep = 1 << 20
	var end []byte
	cut := false
	chunk := make([]byte, 64<<10)
	for {
		n, err := stream.Read(chunk)
		end = append(end, chunk[:n]...)
		if len(end) > 2*keep {
			end, cut = append([]byte(nil), end[len(end)-keep:]...), true
		}
		if err != nil {
			break
		}
	}
	if _, whole, found := bytes.Cut(end, []byte("\n")); cut && found {
		return whole
	}
	return end
}

// stripTimes takes from each line the time that the kubelet has put before it, and returns the last one.
func stripTimes(log []byte) ([]byte, time.Time) {
	var last time.Time
	var text bytes.Buffer
	for line := range bytes.Lines(log) {
		stamp, rest, found := bytes.Cut(line, []byte(" "))
		if at, err := time.Parse(time.RFC3339Nano, string(bytes.TrimSpace(stamp))); err == nil {
			last, line = at, rest
			if !found {
				line = []byte("\n")
			}
		}
		text.Write(line)
	}
	return text.Bytes(), last
}

// events reads what Kubernetes has said of the job's objects. What the operator itself has said is no evidence.
func (g *Gatherer) events(ctx context.Context, job mpi.Job, seen mpi.Observed) []mpi.Event {
	uids := map[string]types.UID{}
	for pod := range podsIn(seen) {
		uids["Pod/"+pod.Name] = pod.UID
	}
	uids[job.Kind+"/"+job.Name] = job.UID
	about := []client.MatchingFields{{"involvedObject.kind": job.Kind, "involvedObject.name": job.Name}, {"involvedObject.kind": "Pod"}}
	for _, made := range []*batchv1.Job{seen.Launcher, seen.WorkerJob} {
		if made != nil {
			uids["Job/"+made.Name] = made.UID
			about = append(about, client.MatchingFields{"involvedObject.kind": "Job", "involvedObject.name": made.Name})
		}
	}
	var found []mpi.Event
	for _, about := range about {
		g.eachEvent(ctx, job.Namespace, about, func(e *corev1.Event) {
			uid, ours := uids[e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name]
			if ours && uid == e.InvolvedObject.UID && e.Source.Component != mpi.EventSource && e.Source.Component != mpi.StepSource {
				found = append(found, g.event(e))
			}
		})
	}
	slices.SortFunc(found, func(a, b mpi.Event) int {
		return cmp.Or(a.Last.Compare(b.Last), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name),
			strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	return found[max(0, len(found)-mpi.MaxEvents):]
}

// eachEvent reads events of a namespace page by page, as far as it gets.
func (g *Gatherer) eachEvent(ctx context.Context, namespace string, about client.MatchingFields, use func(*corev1.Event)) {
	next := ""
	for range pages {
		var list corev1.EventList
		if err := g.live.List(ctx, &list, client.InNamespace(namespace), about, client.Limit(page), client.Continue(next)); err != nil {
			return
		}
		for i := range list.Items {
			use(&list.Items[i])
		}
		if next = list.Continue; next == "" {
			return
		}
	}
}

func (g *Gatherer) event(e *corev1.Event) mpi.Event {
	event := mpi.Event{
		Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name, Warning: e.Type == corev1.EventTypeWarning,
		Reason: e.Reason, Message: g.masker.Line(e.Message), Count: max(e.Count, 1), Last: e.LastTimestamp.Time,
	}
	if e.Series != nil {
		event.Count, event.Last = max(e.Series.Count, event.Count), e.Series.LastObservedTime.Time
	}
	if event.Last.IsZero() {
		event.Last = e.EventTime.Time
	}
	if event.Last.IsZero() {
		event.Last = e.CreationTimestamp.Time
	}
	return event
}

// room reads the nodes and what is free on them; nothing where that cannot be read as a whole.
func (g *Gatherer) room(ctx context.Context) ([]mpi.Node, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clock.Since(g.nodesAt) < nodesFor {
		return g.nodes, g.nodesLeft
	}
	var list corev1.NodeList
	if err := g.live.List(ctx, &list, client.Limit(mpi.MaxNodes)); err != nil {
		return nil, 0
	}
	free := map[string]corev1.ResourceList{}
	for i := range list.Items {
		free[list.Items[i].Name] = list.Items[i].Status.Allocatable.DeepCopy()
	}
	if !g.take(ctx, free) {
		return nil, 0
	}
	nodes := make([]mpi.Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, nodeOf(&list.Items[i], free[list.Items[i].Name]))
	}
	slices.SortFunc(nodes, func(a, b mpi.Node) int { return strings.Compare(a.Name, b.Name) })
	g.nodes, g.nodesLeft, g.nodesAt = nodes, 0, g.clock.Now()
	if list.RemainingItemCount != nil {
		g.nodesLeft = int(*list.RemainingItemCount)
	}
	return g.nodes, g.nodesLeft
}

// take takes from what nodes have what pods on them have asked for; false where not all pods could be read.
func (g *Gatherer) take(ctx context.Context, free map[string]corev1.ResourceList) bool {
	next := ""
	for range pages {
		var pods corev1.PodList
		if err := g.live.List(ctx, &pods, client.Limit(page), client.Continue(next)); err != nil {
			return false
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			room := free[pod.Spec.NodeName]
			if room == nil || mpi.HasEnded(pod) {
				continue
			}
			asked := mpi.Requests(pod.Spec)
			asked[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
			for name, quantity := range asked {
				if left, has := room[name]; has {
					left.Sub(quantity)
					room[name] = left
				}
			}
		}
		if next = pods.Continue; next == "" {
			return true
		}
	}
	return false
}

// claims reads the PersistentVolumeClaims that the job's templates name.
func (g *Gatherer) claims(ctx context.Context, job mpi.Job) []mpi.Claim {
	const most = 16
	var names []string
	for _, spec := range []corev1.PodSpec{job.Launcher.Template.Spec, job.Workers.Template.Spec} {
		for _, volume := range spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				names = append(names, volume.PersistentVolumeClaim.ClaimName)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var claims []mpi.Claim
	for _, name := range names[:min(len(names), most)] {
		var claim corev1.PersistentVolumeClaim
		switch err := g.live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, &claim); {
		case apierrors.IsNotFound(err):
			claims = append(claims, mpi.Claim{Name: name, Missing: true})
		case err == nil:
			found := mpi.Claim{Name: name, Phase: claim.Status.Phase, AccessModes: claim.Spec.AccessModes}
			if claim.Spec.StorageClassName != nil {
				found.Class = *claim.Spec.StorageClassName
			}
			claims = append(claims, found)
		}
	}
	return claims
}
