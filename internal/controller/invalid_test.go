package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// gatherer returns a reconciler of jobs that sees objects, and writes none.
func gatherer(t *testing.T, kind kinds.Kind, objects ...client.Object) *reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kubeflow.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	if err := cluster.AddIndexes(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	fakes := builder.Build()
	seen := cluster.New(fakes, fakes, nil, clock.RealClock{})
	return &reconciler{
		kind: kind, readers: kinds.Readers{Cached: fakes, Live: fakes}, cluster: seen, clock: clock.RealClock{},
		queues: &queues{}, quotas: &quotas{cluster: seen, jobs: map[string]claims{}}, gangs: &Gangs{setting: gang.None},
		deliveries: cluster.NewDeliveries(seen, plan.InitContainer),
	}
}

// indexer adds indexes to a fake client.
type indexer struct{ builder *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, of client.Object, name string, by client.IndexerFunc) error {
	i.builder.WithIndex(of, name, by)
	return nil
}

// badValues are values that some or all annotations of a job do not allow.
var badValues = []string{"x y", "", "-1", "99999999999", "ja", "1h30"}

// isBad reports whether a value of an annotation is invalid on a kind of job.
func isBad(kind, name, value string) bool {
	return len(mpi.CheckAnnotations(kind, "ns", map[string]string{name: value})) > 0
}

// jobAnnotations returns the annotations that users set on a kind of job.
func jobAnnotations(kind string) []string {
	var names []string
	for _, a := range mpi.Annotations() {
		if a.SetBy == "" && slices.Contains(a.On, kind) {
			names = append(names, a.Name)
		}
	}
	return names
}

// jobState is a state in which a job becomes invalid.
type jobState struct {
	// objects are those of the job, and change what its user or its status contains.
	objects func(job mpi.Job) []client.Object
	change  func(*kubeflow.MPIJob)
	// started is whether the job goes on, and phase that of the job then.
	started bool
	phase   v1alpha1.Phase
}

func workersOf(job mpi.Job) []client.Object {
	all := []client.Object{serviceOf(job)}
	for _, worker := range mpitest.Workers(job, corev1.PodRunning) {
		all = append(all, worker.Pod)
	}
	return all
}

func serviceOf(job mpi.Job) *corev1.Service {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi", OwnerReferences: []metav1.OwnerReference{job.Owner()}}}
	service.Spec.PublishNotReadyAddresses, service.Spec.Selector = true, job.Selector()
	return service
}

func launcherOf(job mpi.Job, conditions ...batchv1.JobConditionType) *batchv1.Job {
	launcher := mpitest.Launcher(job, conditions...)
	launcher.Spec.BackoffLimit = new(int32(6))
	// The operator created it, so that it has the digest of its template.
	for _, object := range plan.For(job, jobstate.Observed{}, jobstate.Outcome{PodsMayStart: true, LauncherMayStart: true}, plan.Settings{}).Pods {
		if created, is := object.(*batchv1.Job); is {
			launcher.Annotations = created.Annotations
		}
	}
	return launcher
}

var jobStates = map[string]jobState{
	"pending": {},
	"waiting for its gang": {objects: func(job mpi.Job) []client.Object {
		return []client.Object{serviceOf(job)}
	}},
	"running": {started: true, phase: v1alpha1.PhaseRunning, objects: func(job mpi.Job) []client.Object {
		return append(workersOf(job), launcherOf(job), mpitest.LauncherPod(job, 0, corev1.PodRunning))
	}},
	"suspended": {
		started: true, phase: v1alpha1.PhaseSuspended, change: func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.Suspend = new(true) },
		objects: func(job mpi.Job) []client.Object {
			launcher := launcherOf(job)
			launcher.Spec.Suspend = new(true)
			return []client.Object{launcher}
		},
	},
	"restarting": {started: true, phase: v1alpha1.PhaseInitializing, objects: func(job mpi.Job) []client.Object {
		return append(workersOf(job), launcherOf(job), mpitest.LauncherPod(job, 0, corev1.PodFailed))
	}},
	"ended": {started: true, phase: v1alpha1.PhaseSucceeded, objects: func(job mpi.Job) []client.Object {
		return append(workersOf(job), launcherOf(job, batchv1.JobComplete), mpitest.LauncherPod(job, 0, corev1.PodSucceeded))
	}},
	"finished": {
		started: true, phase: v1alpha1.PhaseSucceeded,
		change: func(o *kubeflow.MPIJob) {
			o.Status.Conditions = []kubeflow.JobCondition{{Type: kubeflow.JobSucceeded, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(mpitest.Now)}}
		},
		objects: func(job mpi.Job) []client.Object { return workersOf(job) },
	},
}

// TestInvalidAnnotationsOfMPIJobs: whatever the annotation, its value and the state of the job when it becomes invalid, a job that
// was started goes on and ends, and one that was not reports the error and starts nothing.
func TestInvalidAnnotationsOfMPIJobs(t *testing.T) {
	for state, test := range jobStates {
		for _, name := range jobAnnotations(mpi.KindMPIJob) {
			for _, value := range badValues {
				if !isBad(mpi.KindMPIJob, name, value) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s=%s", state, name, value), func(t *testing.T) {
					object := mpitest.MPIJob("ns", 2, func(o *kubeflow.MPIJob) {
						o.APIVersion, o.Kind, o.UID = "kubeflow.org/v2beta1", "MPIJob", "uid-pi"
						o.Annotations = map[string]string{name: value}
						o.Spec.RunPolicy.CleanPodPolicy = new(kubeflow.CleanPodPolicyRunning)
						if test.change != nil {
							test.change(o)
						}
					})
					objects := []client.Object{object}
					if test.objects != nil {
						objects = append(objects, test.objects(mpitest.Job(2))...)
					}
					r := gatherer(t, mpijob.Kind{}, objects...)
					g, d := gatherAndDecide(t, r, keyOf("ns", "pi"))
					if !test.started {
						if d.out.Reason != codes.ValidationError || len(d.plan.Base)+len(d.plan.Pods)+len(d.plan.Delete) > 0 {
							t.Errorf("it is %s of %s, and the plan is %+v", d.out.Phase, d.out.Reason, d.plan)
						}
						if g.gang.place != leaveQueue || g.quota.change != dropClaim {
							t.Error("it keeps reservations")
						}
						return
					}
					if d.out.Phase != test.phase {
						t.Errorf("it is %s of %s: %s", d.out.Phase, d.out.Reason, d.out.Message)
					}
					wantDeleted := 0
					if test.phase == v1alpha1.PhaseSucceeded {
						wantDeleted = 2
					} else if len(g.job.Ignored) == 0 {
						t.Error("nothing is reported as ignored")
					}
					if len(d.plan.Delete) != wantDeleted {
						t.Errorf("the plan deletes %+v, want %d workers", d.plan.Delete, wantDeleted)
					}
					if len(d.plan.Pods) > 0 && (g.job.IsFrozen() || state != "suspended") {
						t.Errorf("the plan creates %+v", d.plan.Pods)
					}
				})
			}
		}
	}
}

func gatherAndDecide(t *testing.T, r *reconciler, key types.NamespacedName) (gathered, decision) {
	t.Helper()
	loaded, err := r.kind.Load(t.Context(), r.readers, key)
	if err != nil || loaded == nil {
		t.Fatalf("load: %v, %v", loaded, err)
	}
	return decideOn(t, r, loaded)
}

func decideOn(t *testing.T, r *reconciler, loaded kinds.Job) (gathered, decision) {
	t.Helper()
	g, err := r.gather(t.Context(), loaded)
	if err != nil {
		t.Fatal(err)
	}
	d := decide(g)
	if !r.reserve(t.Context(), g, d) {
		t.Error("the reservations change the decision")
	}
	return g, d
}

// TestInvalidFieldsOfMPIJobs: a job whose specification became invalid while no webhook answered goes on without new pods, and
// can be suspended. As many workers as it asks for, or fewer than none, are not looked for.
func TestInvalidFieldsOfMPIJobs(t *testing.T) {
	changes := map[string]func(*kubeflow.MPIJob){
		"billions of workers": func(o *kubeflow.MPIJob) {
			o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(2147483647))
		},
		"less than no workers": func(o *kubeflow.MPIJob) {
			o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(int32(-1))
		},
		"negative slots": func(o *kubeflow.MPIJob) { o.Spec.SlotsPerWorker = new(int32(-1)) },
		"no launcher":    func(o *kubeflow.MPIJob) { delete(o.Spec.MPIReplicaSpecs, kubeflow.MPIReplicaTypeLauncher) },
		"no containers": func(o *kubeflow.MPIJob) {
			for _, role := range o.Spec.MPIReplicaSpecs {
				role.Template.Spec.Containers = nil
			}
		},
		"a negative TTL": func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.TTLSecondsAfterFinished = new(int32(-1)) },
		"another MPI":    func(o *kubeflow.MPIJob) { o.Spec.MPIImplementation = "LAM" },
	}
	suspend := func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.Suspend = new(true) }
	job := mpitest.Job(2)
	running := jobStates["running"].objects(job)
	for name, change := range changes {
		decided := func(t *testing.T, state []client.Object, more ...func(*kubeflow.MPIJob)) decision {
			t.Helper()
			object := mpitest.MPIJob("ns", 2, append(more, change)...)
			object.APIVersion, object.Kind, object.UID = "kubeflow.org/v2beta1", "MPIJob", "uid-pi"
			_, d := gatherAndDecide(t, gatherer(t, mpijob.Kind{}, append([]client.Object{object}, state...)...), keyOf("ns", "pi"))
			return d
		}
		t.Run(name, func(t *testing.T) {
			d := decided(t, nil)
			if d.out.Reason != codes.ValidationError || len(d.plan.Base)+len(d.plan.Pods)+len(d.plan.Delete) > 0 {
				t.Errorf("new: it is %s of %s, and the plan is %+v", d.out.Phase, d.out.Reason, d.plan)
			}
			d = decided(t, running)
			if d.out.Phase != v1alpha1.PhaseRunning || len(d.plan.Base)+len(d.plan.Pods)+len(d.plan.Delete) > 0 {
				t.Errorf("running: it is %s of %s, and the plan is %+v", d.out.Phase, d.out.Reason, d.plan)
			}
			d = decided(t, running[1:])
			if d.out.Phase != v1alpha1.PhaseRunning || len(d.plan.Base) != 1 || len(d.plan.Pods) > 0 {
				t.Errorf("without its Service: it is %s of %s, and the plan is %+v", d.out.Phase, d.out.Reason, d.plan)
			}
			d = decided(t, slices.Concat(running[:1], running[2:]))
			if d.out.Finish != nil || len(d.plan.Pods) > 0 {
				t.Errorf("without a worker: it is %s of %s, and the plan is %+v", d.out.Phase, d.out.Reason, d.plan)
			}
			d = decided(t, running, suspend)
			if d.out.Phase != v1alpha1.PhaseSuspended || len(d.plan.Base) != 1 || len(d.plan.Delete) != 2 {
				t.Errorf("suspended: it is %s of %s, and the plan is %+v", d.out.Phase, d.out.Reason, d.plan)
			}
			d = decided(t, jobStates["ended"].objects(job), func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.CleanPodPolicy = new(kubeflow.CleanPodPolicyAll) })
			if d.out.Phase != v1alpha1.PhaseSucceeded || len(d.plan.Delete) != 2 || d.isExpired() {
				t.Errorf("ended: it is %s of %s, and the plan is %+v", d.out.Phase, d.out.Reason, d.plan)
			}
			leaving := decided(t, jobStates["finished"].objects(job), jobStates["finished"].change)
			if leaving.out.Phase != v1alpha1.PhaseSucceeded || leaving.isExpired() {
				t.Errorf("finished: it is %s of %s", leaving.out.Phase, leaving.out.Reason)
			}
		})
	}
}

// trainJobWith returns a TrainJob with a runtime of ours, its annotations, and the objects that Trainer and JobSet created.
func trainJobWith(annotations map[string]string, change ...func(*trainjob.Job)) trainjob.Job {
	var loaded trainjob.Job
	loaded.Namespace, loaded.Name, loaded.UID, loaded.Annotations = "ns", "pi", "uid-pi", annotations
	loaded.Runtime.Annotations = map[string]string{mpi.AnnotationImplementation: "OpenMPI"}
	loaded.Runtime.Spec.MLPolicy = &trainjob.MLPolicy{NumNodes: new(int32(1)), MPI: &trainjob.MPIPolicy{RunLauncherAsNode: true}}
	for _, name := range []string{"launcher", "node"} {
		var part trainjob.ReplicatedJob
		part.Name = name
		part.Template.Spec.Template = corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "node", Image: "mpi"}}}}
		if name == "launcher" {
			part.Template.Labels = map[string]string{"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
		}
		loaded.Runtime.Spec.Template.Spec.ReplicatedJobs = append(loaded.Runtime.Spec.Template.Spec.ReplicatedJobs, part)
	}
	for _, c := range change {
		c(&loaded)
	}
	return loaded
}

// withJobSet adds a JobSet with running pods, or suspended Jobs.
func withJobSet(phase corev1.PodPhase) func(*trainjob.Job) {
	return func(loaded *trainjob.Job) {
		set := &unstructured.Unstructured{}
		set.SetGroupVersionKind(trainjob.JobSetKind)
		set.SetName("pi")
		set.SetUID("uid-set")
		loaded.JobSet = set
		for _, name := range []string{"launcher", "node"} {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "pi-" + name + "-0", UID: types.UID("uid-" + name), Labels: map[string]string{mpi.LabelJobSetJob: name},
				OwnerReferences: []metav1.OwnerReference{{Kind: "JobSet", Name: "pi", UID: "uid-set", Controller: new(true)}},
			}}
			job.Spec.Suspend = new(phase == "")
			loaded.Jobs = append(loaded.Jobs, job)
			if phase == "" {
				continue
			}
			loaded.Pods = append(loaded.Pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: job.Name + "-0-abcde", UID: types.UID("uid-pod-" + name), Labels: maps.Clone(job.Labels),
					OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)}},
				},
				Status: corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
			})
		}
	}
}

// TestInvalidAnnotationsOfTrainJobs: like TestInvalidAnnotationsOfMPIJobs. Trainer decides what is started.
func TestInvalidAnnotationsOfTrainJobs(t *testing.T) {
	suspended := func(loaded *trainjob.Job) { loaded.Spec.Suspend = new(true) }
	complete := func(loaded *trainjob.Job) {
		loaded.TrainJob.Status.Conditions = []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(mpitest.Now)}}
	}
	restarted := func(loaded *trainjob.Job) {
		for _, pod := range loaded.Pods {
			pod.Labels["jobset.sigs.k8s.io/restart-attempt"] = "1"
		}
	}
	gated := func(loaded *trainjob.Job) {
		loaded.JobSet.(*unstructured.Unstructured).SetAnnotations(map[string]string{mpi.AnnotationGate: mpi.GateClosed})
	}
	states := map[string]struct {
		change []func(*trainjob.Job)
		phase  v1alpha1.Phase
	}{
		"pending":              {nil, v1alpha1.PhasePending},
		"waiting for its gang": {[]func(*trainjob.Job){withJobSet(""), gated}, v1alpha1.PhasePending},
		"running":              {[]func(*trainjob.Job){withJobSet(corev1.PodRunning)}, v1alpha1.PhaseRunning},
		"suspended":            {[]func(*trainjob.Job){withJobSet(""), suspended}, v1alpha1.PhaseSuspended},
		"restarting":           {[]func(*trainjob.Job){withJobSet(corev1.PodFailed), restarted}, v1alpha1.PhaseInitializing},
		"finished":             {[]func(*trainjob.Job){withJobSet(corev1.PodSucceeded), complete}, v1alpha1.PhaseSucceeded},
	}
	// Without these, Trainer's JobSet is refused.
	refused := []string{mpi.AnnotationConnections, mpi.AnnotationMaxRestarts, mpi.AnnotationRequiredTopology, mpi.AnnotationPreferredTopology, mpi.AnnotationPriorityClass}
	for state, test := range states {
		for _, name := range jobAnnotations(mpi.KindTrainJob) {
			for _, value := range badValues {
				if !isBad(mpi.KindTrainJob, name, value) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s=%s", state, name, value), func(t *testing.T) {
					loaded := trainJobWith(map[string]string{name: value}, test.change...)
					g, d := decideOn(t, gatherer(t, trainjob.NewKind()), loaded)
					if d.out.Phase != test.phase {
						t.Errorf("it is %s of %s: %s", d.out.Phase, d.out.Reason, d.out.Message)
					}
					if isInvalid := d.out.Reason == codes.ValidationError; isInvalid != (state == "pending" && slices.Contains(refused, name)) {
						t.Errorf("its reason is %s: %s", d.out.Reason, d.out.Message)
					}
					if isReported := len(g.job.Ignored) > 0; len(g.errs) > 0 || isReported == (state == "finished") {
						t.Errorf("its errors are %v, and those ignored %v", g.errs, g.job.Ignored)
					}
				})
			}
		}
	}
}
