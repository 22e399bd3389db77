// Package offline diagnoses jobs in saved objects, events and logs, without a cluster or an operator. It reads files as the
// operator reads the API server, and then judges with the same functions.
package offline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/quota"
	"opendatahub.io/mpijob/internal/report"
)

// Diagnosis is what is known of a job.
type Diagnosis struct {
	// Object is the job; nil if only its report was saved.
	Object *unstructured.Unstructured
	Report v1alpha1.JobReport
	// Missing is what the files lack, and what that leaves open, one a line.
	Missing []string
}

// Time returns the time at which the files were saved: that of a must-gather, else the latest time in them; zero if they
// contain none.
func (s *Saved) Time() time.Time {
	if !s.taken.IsZero() {
		return s.taken
	}
	return s.latest
}

// Jobs returns the saved jobs, by namespace, name and kind.
func (s *Saved) Jobs() []*unstructured.Unstructured {
	found := slices.Concat(s.objects.byKind[schema.GroupKind{Group: kubeflow.GroupName, Kind: kubeflow.Kind}],
		s.objects.byKind[trainjob.GroupVersion.WithKind(trainjob.Kind).GroupKind()])
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()), strings.Compare(a.GetKind(), b.GetKind()))
	})
	return found
}

// Reports returns the saved reports of jobs that were not saved.
func (s *Saved) Reports() ([]v1alpha1.JobReport, error) {
	var list v1alpha1.JobReportList
	if err := s.objects.List(context.Background(), &list); err != nil {
		return nil, err
	}
	jobs := s.Jobs()
	return slices.DeleteFunc(list.Items, func(r v1alpha1.JobReport) bool {
		return slices.ContainsFunc(jobs, func(job *unstructured.Unstructured) bool { return job.GetUID() == r.Spec.JobRef.UID })
	}), nil
}

// Diagnose diagnoses a job of Jobs as of a time.
func (s *Saved) Diagnose(ctx context.Context, object *unstructured.Unstructured, now time.Time, masker logs.Masker) (Diagnosis, error) {
	g := gathering{saved: s, object: object, masker: masker, now: fixed(now)}
	g.live = s.objects
	g.live.byKind = maps.Clone(s.objects.byKind)
	g.live.allPods = s.objects.seesAllPods(s.Jobs())
	g.cached = g.live
	g.cached.cached = &masker
	if err := g.gather(ctx); err != nil {
		return Diagnosis{}, fmt.Errorf("diagnose %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	out := g.judge()
	g.evidence.Mask = masker.Text
	findings, err := diagnose.TryJob(g.job, g.seen, g.evidence, out)
	if err != nil {
		return Diagnosis{}, fmt.Errorf("diagnose %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	made := report.Make(g.job, g.started(), g.evidence, out, findings, g.previous)
	report.MaskCommand(&made.Status, masker.Text)
	return Diagnosis{Object: object, Report: made, Missing: g.missing(out)}, nil
}

// gathering is a job with all that the files have of it.
type gathering struct {
	saved        *Saved
	object       *unstructured.Unstructured
	masker       logs.Masker
	now          clock.PassiveClock
	live, cached objects

	loaded   kinds.Job
	job      mpi.Job
	invalid  bool
	seen     jobstate.Observed
	evidence jobstate.Evidence
	// previous is the report that the operator wrote; nil if it was not saved.
	previous *v1alpha1.JobReport
	// madeLauncher is set if the launcher's Job was not saved, and follows from its pods.
	madeLauncher bool
}

// gather reads what the operator reads of a job.
func (g *gathering) gather(ctx context.Context) error {
	kind := kinds.Kind(mpijob.Kind{})
	if g.object.GetKind() == trainjob.Kind {
		kind = trainjob.NewKind()
	}
	var err error
	g.loaded, err = kind.Load(ctx, kinds.Readers{Cached: g.cached, Live: g.live}, client.ObjectKeyFromObject(g.object))
	if err != nil {
		return err
	}
	job, errs := g.loaded.Convert()
	g.job = job
	g.addLauncher()
	from := cluster.NewReadOnly(g.cached, g.now)
	if g.seen, err = from.Observe(ctx, g.job); err != nil {
		return err
	}
	if len(errs) > 0 {
		if g.invalid = !g.seen.IsStarted() && g.job.Recorded.Finish == nil; g.invalid {
			g.seen = jobstate.Observed{Now: g.now.Now()}
		}
		g.job = jobstate.KeepStarted(g.job, errs, g.seen)
	}
	g.seen = g.loaded.Observe(g.seen)
	g.job = from.SettleRDMA(ctx, g.job, g.seen)
	if err := g.readReport(ctx); err != nil {
		return err
	}
	if err := g.readQueue(ctx); err != nil {
		return err
	}
	g.readShortages(ctx, from)
	pods, err := logServer{g.saved.logs, g.waits}.getter()
	if err != nil {
		return err
	}
	gatherer := cluster.NewGatherer(g.live, pods, g.masker, g.now)
	g.placeTogether(gatherer.Nodes(ctx, time.Time{}))
	g.evidence = gatherer.Gather(ctx, g.job, g.seen, nil)
	g.forgetUnsaved()
	return nil
}

// waits reports whether a container of the job's pods waits, as it does between two tries.
func (g *gathering) waits(namespace, pod, container string) bool {
	return slices.ContainsFunc(g.seen.AllPods(), func(of *corev1.Pod) bool {
		return of.Namespace == namespace && of.Name == pod && slices.ContainsFunc(slices.Concat(of.Status.ContainerStatuses, of.Status.InitContainerStatuses), func(c corev1.ContainerStatus) bool {
			return c.State.Waiting != nil && (container == "" || c.Name == container)
		})
	})
}

// forgetUnsaved leaves out that nodes and claims do not exist if the files have none of their kind: they were not saved.
func (g *gathering) forgetUnsaved() {
	if len(g.live.byKind[schema.GroupKind{Kind: "Node"}]) == 0 {
		g.evidence.Nodes = slices.DeleteFunc(g.evidence.Nodes, func(n jobstate.Node) bool { return n.Missing })
	}
	if len(g.live.byKind[schema.GroupKind{Kind: "PersistentVolumeClaim"}]) == 0 {
		g.evidence.Claims = slices.DeleteFunc(g.evidence.Claims, func(c jobstate.Claim) bool { return c.Missing })
	}
}

// placeTogether sets what the pods of a job wait for that are created only once all of them fit. Without the free capacity of
// nodes, it is unknown.
func (g *gathering) placeTogether(nodes []jobstate.Node) {
	if queue := g.seen.Queue; queue != nil && len(nodes) > 0 && kueue.MayLackNodes(*queue) {
		var state jobstate.GangState
		gang.FitsNever(g.job, g.seen, nodes, &state)
		queue.NeverFits = state.Message
	}
	const soon = 5 * time.Second // the operator creates the pods of a job that fits
	isHeld := g.job.ControlsPods() || g.seen.Gate != nil && g.seen.Gate.Closed
	waitsElsewhere := g.seen.Queue != nil && !g.seen.Queue.Admitted || len(g.seen.Shortages) > 0
	isNew := g.now.Since(g.object.GetCreationTimestamp().Time) < soon
	if len(nodes) == 0 || !isHeld || waitsElsewhere || isNew || g.invalid || g.job.Pods() < 2 || g.job.Recorded.Finish != nil || g.job.Lifecycle.Suspended || len(g.seen.AllPods()) > 0 {
		return
	}
	g.seen.Gang = gang.HeldBy(g.now.Now(), g.job, g.seen, nodes)
}

// readReport reads the report that the operator wrote for the job.
func (g *gathering) readReport(ctx context.Context) error {
	var found v1alpha1.JobReport
	err := g.live.Get(ctx, client.ObjectKey{Namespace: g.job.Namespace, Name: g.job.ReportName()}, &found)
	if err == nil && found.Spec.JobRef.UID == g.job.UID {
		g.previous = &found
	}
	return client.IgnoreNotFound(err)
}

// readQueue reads the job's Workload of Kueue. Its position is unknown.
func (g *gathering) readQueue(ctx context.Context) error {
	if g.job.Queue == "" || g.job.Recorded.Finish != nil {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kueue.WorkloadKind.GroupVersion().WithKind(kueue.WorkloadKind.Kind + "List"))
	if err := g.live.List(ctx, list, client.InNamespace(g.job.Namespace), client.MatchingFields{cluster.ByOwner: string(g.job.UID)}); err != nil || len(list.Items) == 0 {
		return err
	}
	workload := &kueue.Workload{}
	if err := decode(&list.Items[0], workload); err != nil {
		return err
	}
	state := kueue.FromKueue(g.job.Queue, workload)
	g.seen.Queue = &state
	return nil
}

// readShortages compares a job without pods with the quotas of its namespace.
func (g *gathering) readShortages(ctx context.Context, from *cluster.Cluster) {
	if g.job.Recorded.Finish != nil || len(g.seen.Workers) > 0 || len(g.seen.LauncherPods) > 0 {
		return
	}
	pods, have, err := from.Asked(ctx, g.job, func() (launcher, worker corev1.PodTemplateSpec) {
		return g.job.Launcher.Template, g.job.Workers.Template
	})
	if err != nil {
		return
	}
	g.seen.Shortages = quota.Shortages(pods, nil, have)
	if g.job.Lifecycle.Suspended {
		g.seen.Shortages, _ = quota.SplitShortages(g.seen.Shortages)
	}
}

// judge decides the state of the job as the operator does.
func (g *gathering) judge() jobstate.Outcome {
	if g.invalid {
		return jobstate.Invalid(g.job.Ignored)
	}
	out := g.loaded.Judge(g.job, g.seen)
	if out.Phase == v1alpha1.PhaseSuspended && g.job.Queue != "" && g.seen.Queue == nil {
		// On a cluster, it would not have found Kueue.
		out.Message = fmt.Sprintf("Suspended. The job names queue %s. Whether it waits there, and for what, is unknown: the files do not contain its Workload.", g.job.Queue)
	}
	return out
}

// started returns what was observed, with the time at which the operator has first seen the job: just after it was created. In a
// cluster, the job's own objects and the record keep it.
func (g *gathering) started() jobstate.Observed {
	seen := g.seen
	if seen.Service == nil {
		seen.Service = &corev1.Service{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: g.object.GetCreationTimestamp()}}
	}
	return seen
}

// addLauncher adds the launcher's Job of an MPIJob whose pods were saved without it: they name it.
func (g *gathering) addLauncher() {
	if g.job.External {
		return
	}
	name := g.job.LauncherName()
	batchJob := schema.GroupKind{Group: "batch", Kind: "Job"}
	if slices.ContainsFunc(g.live.byKind[batchJob], func(job *unstructured.Unstructured) bool {
		return job.GetName() == name && job.GetNamespace() == g.object.GetNamespace()
	}) {
		return
	}
	for _, pod := range g.live.byKind[schema.GroupKind{Kind: "Pod"}] {
		owner := metav1.GetControllerOf(pod)
		if pod.GetNamespace() != g.object.GetNamespace() || owner == nil || owner.Kind != "Job" || owner.Name != name {
			continue
		}
		launcher := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{}}}}
		launcher.SetGroupVersionKind(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"})
		launcher.SetNamespace(g.object.GetNamespace())
		launcher.SetName(name)
		launcher.SetUID(owner.UID)
		launcher.SetLabels(pod.GetLabels())
		launcher.SetCreationTimestamp(pod.GetCreationTimestamp())
		launcher.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(g.object, g.object.GroupVersionKind())})
		g.live.byKind[batchJob] = append(slices.Clip(g.live.byKind[batchJob]), launcher)
		g.madeLauncher = true
		return
	}
}

// missing returns what the files lack for this job.
func (g *gathering) missing(out jobstate.Outcome) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	pods := g.seen.AllPods()
	namespace := g.job.Namespace
	unassigned := g.unassignedPods(pods)
	switch {
	case len(pods) == 0 && unassigned > 0:
		add("The job's Jobs or its JobSet: %s of the job cannot be assigned to launcher and workers. Save jobs.batch and jobsets, too.", phrase.Count(unassigned, "pod"))
	case len(pods) == 0 && out.PodsMayStart && out.Finish == nil && !out.Suspended():
		add("Pods of the job: either none was created, or they were not saved. A refusal by the API server is unknown.")
		if g.job.Pods() > 1 && (!g.live.allPods || len(g.live.byKind[schema.GroupKind{Kind: "Node"}]) == 0) {
			add("Nodes and the pods of all namespaces: whether the job waits until all of its pods fit is unknown.")
		}
	case len(pods) == 0 && out.Finish != nil && !out.Finish.Succeeded:
		add("Pods of the job: exit codes, ranks and logs are unknown.")
	case g.madeLauncher:
		add("The launcher's Job: whether Kubernetes would start the launcher again is unknown.")
	}
	if g.object.GetKind() == trainjob.Kind && !g.hasRuntime() {
		add("The runtime of the TrainJob (%s): its MPI, its launcher and its image are unknown. Save clustertrainingruntimes, trainingruntimes and configmaps, too.", g.job.Runtime)
	}
	if g.live.eventsIn(namespace) == 0 && (out.Finish == nil || !out.Finish.Succeeded) {
		add("Events of namespace %s: why pods were not scheduled, started or stopped is only known as far as the pods' status shows it.", namespace)
	}
	if without := g.withoutLogs(); len(without) > 0 {
		add("Logs of %s: errors that the program or MPI printed there are unknown. Use --log POD=FILE.", strings.Join(without, ", "))
	}
	if g.job.Queue != "" && g.job.Recorded.Finish == nil && g.seen.Queue == nil {
		add("The Workload of queue %s: whether Kueue has admitted the job is unknown.", g.job.Queue)
	}
	unplaced := slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
		})
	})
	switch nodes := len(g.live.byKind[schema.GroupKind{Kind: "Node"}]); {
	case !unplaced:
	case nodes == 0:
		add("Nodes: what they have left for pods is unknown.")
	case !g.live.allPods:
		add("Pods of other namespaces: what the %s have left is unknown. Save the pods of all namespaces, too.", phrase.Count(nodes, "node"))
	}
	return notes
}

// hasRuntime reports whether the runtime of a TrainJob was saved.
func (g *gathering) hasRuntime() bool {
	loaded, is := g.loaded.(trainjob.Job)
	return is && loaded.Runtime.Name != ""
}

// unassignedPods returns the number of pods with the job's labels that are not among those of the job.
func (g *gathering) unassignedPods(pods []*corev1.Pod) (n int) {
	label := mpi.LabelJob
	if g.job.External {
		label = trainjob.LabelJobSet
	}
	known := map[ktypes.UID]bool{}
	for _, pod := range pods {
		known[pod.UID] = true
	}
	for _, pod := range g.live.byKind[schema.GroupKind{Kind: "Pod"}] {
		if pod.GetNamespace() == g.job.Namespace && pod.GetLabels()[label] == g.job.Name && !known[pod.GetUID()] {
			n++
		}
	}
	return n
}

// withoutLogs returns the pods that failed in a container without a saved log.
func (g *gathering) withoutLogs() (names []string) {
	const most = 4
	for _, pod := range g.seen.AllPods() {
		if at, bad := cluster.EndedBadly(pod); bad && !at.IsZero() && !g.saved.logs.has(pod.Namespace, pod.Name) {
			names = append(names, pod.Name)
		}
	}
	if more := len(names) - most; more > 0 {
		names = append(names[:most:most], fmt.Sprintf("%d more pods", more))
	}
	return names
}

// fixed is a clock that stands still.
type fixed time.Time

func (f fixed) Now() time.Time                  { return time.Time(f) }
func (f fixed) Since(t time.Time) time.Duration { return time.Time(f).Sub(t) }
