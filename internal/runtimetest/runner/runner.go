// Package runner runs tests of MPI runtimes: it creates the TrainJob of a RuntimeTest, and derives the results from the
// job's report and output.
package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/runtimetest"
)

const (
	// lookAtTest is how often a running test is reconciled if its job's report does not change: time has no events.
	lookAtTest = 5 * time.Second
	// refusedFor is how long a test's job may be refused: Trainer hears of a new runtime a little later than we do.
	refusedFor = 15 * time.Second
	// trainerInterval is how often it is checked whether Kubeflow Trainer is installed.
	trainerInterval = 30 * time.Second
	// conflictRetry is the time until a test is reconciled again after a conflict.
	conflictRetry = 10 * time.Millisecond
)

// runtimeTests makes tests of runtimes.
type runtimeTests struct {
	client client.Client
	// live reads policies, and TrainJobs and runtimes, which are there only where Kubeflow Trainer is.
	live   client.Reader
	logs   typedcore.PodsGetter
	mapper meta.RESTMapper
	clock  clock.PassiveClock
	// namespace returns the annotations of a Namespace, and schemas are those of the API server.
	namespace         func(ctx context.Context, name string) (map[string]string, error)
	operatorNamespace string
	schemas           discovery.OpenAPIV3SchemaInterface
}

// Add adds the controller of RuntimeTests to a manager, if the cluster has them. It needs JobReports. namespace returns the annotations of a
// Namespace that have an effect on its jobs.
func Add(m manager.Manager, namespace func(ctx context.Context, name string) (map[string]string, error), operatorNamespace string) error {
	kind := v1alpha1.GroupVersion.WithKind("RuntimeTest")
	switch _, err := m.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); {
	case meta.IsNoMatchError(err):
		log.Log.Info("the cluster has no RuntimeTests: runtimes cannot be tested; install config/crd and start the operator again")
		return nil
	case err != nil:
		return fmt.Errorf("look for RuntimeTests: %w", err)
	}
	core, err := typedcore.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("set up reading output of tests: %w", err)
	}
	schemas, err := discovery.NewDiscoveryClientForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("set up reading the version of Kubeflow Trainer: %w", err)
	}
	r := &runtimeTests{
		client: m.GetClient(), live: m.GetAPIReader(), logs: core, mapper: m.GetRESTMapper(), clock: clock.RealClock{},
		namespace: namespace, operatorNamespace: operatorNamespace, schemas: schemas,
	}
	err = builder.ControllerManagedBy(m).
		Named("runtimetest").
		For(&v1alpha1.RuntimeTest{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.JobReport{}, handler.EnqueueRequestsFromMapFunc(r.testOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("watch RuntimeTests: %w", err)
	}
	return nil
}

// hasTrainer reports whether Kubeflow Trainer is installed.
func (r *runtimeTests) hasTrainer(ctx context.Context) bool {
	for _, kind := range trainjob.NewKind().Runner().Requires {
		if _, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			if !meta.IsNoMatchError(err) {
				log.FromContext(ctx).Error(err, "whether Kubeflow Trainer is installed is unknown; this is checked again")
			}
			return false
		}
	}
	return true
}

// rightsPolicy is the name of the policy of the API server, and of its binding, by which the user of a test must have the right to create
// TrainJobs (config/webhook/runtimetests.yaml): only the API server knows all rights of a user.
const rightsPolicy = "mpijob-runtimetest"

// unchecked returns why a test may not run, because the API server did not check the right of its user; "" if it did.
func (r *runtimeTests) unchecked(ctx context.Context, test *v1alpha1.RuntimeTest) (why string, err error) {
	const instead = ", which checks the right to create TrainJobs. %s, or create a TrainJob of the runtime instead."
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{}
	for _, object := range []client.Object{&admissionv1.ValidatingAdmissionPolicy{}, binding} {
		err := r.live.Get(ctx, types.NamespacedName{Name: rightsPolicy}, object)
		switch {
		case meta.IsNoMatchError(err):
			return "RuntimeTests require Kubernetes 1.30 or later: this API server does not serve the policy " + rightsPolicy + fmt.Sprintf(instead, "Update the cluster"), nil
		case client.IgnoreNotFound(err) != nil:
			return "", fmt.Errorf("read the policy %s: %w", rightsPolicy, err)
		case err != nil:
			return "RuntimeTests require the policy " + rightsPolicy + " and its binding" + fmt.Sprintf(instead, "Install them (docs/install.md)"), nil
		case test.CreationTimestamp.Time.Before(object.GetCreationTimestamp().Time):
			return "The test is older than the policy " + rightsPolicy + fmt.Sprintf(instead, "Create another test"), nil
		}
	}
	if binding.Spec.PolicyName != rightsPolicy || !slices.Contains(binding.Spec.ValidationActions, admissionv1.Deny) {
		return "RuntimeTests require that the binding " + rightsPolicy + " enforces the policy of this name" + fmt.Sprintf(instead, "Install it again (docs/install.md)"), nil
	}
	return "", nil
}

// testOf is the test whose job a record is about; nothing for all other records.
func (r *runtimeTests) testOf(ctx context.Context, report client.Object) []reconcile.Request {
	of, is := report.(*v1alpha1.JobReport)
	if !is || of.Spec.JobRef.Kind != trainjob.Kind {
		return nil
	}
	var tests v1alpha1.RuntimeTestList
	if err := r.client.List(ctx, &tests, client.InNamespace(of.Namespace)); err != nil {
		log.FromContext(ctx).Error(err, "list tests of runtimes; they are looked at again soon")
		return nil
	}
	for i := range tests.Items {
		if test := &tests.Items[i]; test.Status.CompletionTime == nil && runtimetest.JobName(*test) == of.Spec.JobRef.Name {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(test)}}
		}
	}
	return nil
}

// Reconcile takes one test a step further: begins it, follows its job, judges it, and removes the job at its end.
func (r *runtimeTests) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	test := &v1alpha1.RuntimeTest{}
	if err := r.client.Get(ctx, request.NamespacedName, test); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if test.DeletionTimestamp != nil {
		// The garbage collector removes its job.
		return reconcile.Result{}, nil
	}
	wait := time.Duration(0)
	if test.Status.CompletionTime == nil {
		before := test.Status
		test = test.DeepCopy()
		var err error
		if wait, err = r.proceed(ctx, test); err != nil {
			return reconcile.Result{}, err
		}
		if !equality.Semantic.DeepEqual(before, test.Status) {
			if err := r.client.Status().Update(ctx, test); err != nil {
				if apierrors.IsConflict(err) {
					return reconcile.Result{RequeueAfter: conflictRetry}, nil
				}
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
		}
	}
	if test.Status.CompletionTime == nil {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return r.finish(ctx, test)
}

// proceed changes a test's status to what is so now, and says when to look again. On the way it makes the test's job.
func (r *runtimeTests) proceed(ctx context.Context, test *v1alpha1.RuntimeTest) (time.Duration, error) {
	now := r.clock.Now()
	if test.Status.StartTime == nil {
		switch why, err := r.unchecked(ctx, test); {
		case err != nil:
			return 0, err
		case why != "":
			test.Status = runtimetest.Fail(test.Status, now, why)
			return 0, nil
		}
		if !r.hasTrainer(ctx) {
			test.Status = runtimetest.Wait(test.Status, "Kubeflow Trainer is not installed on this cluster; the test begins when it is.")
			return trainerInterval, nil
		}
		test.Status = runtimetest.Start(test.Status, now)
	}
	fail := func(why string) (time.Duration, error) {
		test.Status = runtimetest.Fail(test.Status, now, why)
		return 0, nil
	}
	job, why, err := r.job(ctx, test)
	switch {
	case err == nil && why != "":
		return fail(why)
	case refusedByRule(err) && now.Sub(test.Status.StartTime.Time) >= refusedFor:
		return fail(fmt.Sprintf("The cluster does not take the test's job: %s", errors.Unwrap(err)))
	case refusedByRule(err), apierrors.IsAlreadyExists(err):
		return time.Second, nil
	case err != nil:
		return 0, err
	}
	test.Status.JobRef = &v1alpha1.JobReference{APIVersion: job.GetAPIVersion(), Kind: job.GetKind(), Name: job.GetName(), UID: job.GetUID()}
	seen := runtimetest.Seen{Now: now, Ranks: runtimetest.Ranks(job)}
	if seen.Report, err = r.report(ctx, job); err != nil {
		return 0, err
	}
	if seen.Report != nil && seen.Report.CompletionTime != nil {
		output := r.output(ctx, test.Namespace, *seen.Report)
		seen.Hosts, seen.Exchange = runtimetest.Hosts(output), runtimetest.ParseExchange(output)
	}
	test.Status = runtimetest.Judge(*test, seen)
	return lookAtTest, nil
}

// job is the test's TrainJob, made if it never was. Where there is none and none can be, why says so.
func (r *runtimeTests) job(ctx context.Context, test *v1alpha1.RuntimeTest) (job *unstructured.Unstructured, why string, err error) {
	key := types.NamespacedName{Namespace: test.Namespace, Name: runtimetest.JobName(*test)}
	job = trainjob.New()
	switch err := r.live.Get(ctx, key, job); {
	case err == nil && !metav1.IsControlledBy(job, test):
		return nil, fmt.Sprintf("There is a TrainJob %s that is not this test's. Delete it, or create another test.", key.Name), nil
	case err == nil && job.GetDeletionTimestamp() == nil:
		return job, "", nil
	case err == nil, test.Status.JobRef != nil && (apierrors.IsNotFound(err) || meta.IsNoMatchError(err)):
		return nil, fmt.Sprintf("The test's TrainJob %s was deleted before it had ended.", key.Name), nil
	case !apierrors.IsNotFound(err):
		return nil, "", fmt.Errorf("read TrainJob %s: %w", key, err)
	}
	used, err := trainjob.LoadRuntime(ctx, r.live, runtimetest.Ref(*test))
	if err != nil {
		return nil, "", err
	}
	var in runtimetest.Cluster
	if in.Limits, err = trainjob.LoadLimits(ctx, r.namespace, test.Namespace, r.operatorNamespace); err != nil {
		return nil, "", err
	}
	if in.HasOverrides, err = trainjob.HasPodTemplateOverrides(ctx, r.schemas); err != nil {
		return nil, "", err
	}
	job, err = runtimetest.Job(*test, used, in)
	if err != nil {
		return nil, fmt.Sprintf("The runtime cannot be tested: %s.", err), nil
	}
	if err := r.client.Create(ctx, job); err != nil {
		return nil, "", fmt.Errorf("create TrainJob %s: %w", key, err)
	}
	return job, "", nil
}

// refusedByRule reports whether an object was not taken for what it is: another try is of use only if the rule changes.
func refusedByRule(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// report returns the status of the JobReport of a test's job; nil if it has none yet.
func (r *runtimeTests) report(ctx context.Context, job *unstructured.Unstructured) (*v1alpha1.JobReportStatus, error) {
	key := types.NamespacedName{Namespace: job.GetNamespace(), Name: mpi.Job{Name: job.GetName(), UID: job.GetUID()}.ReportName()}
	var found v1alpha1.JobReport
	switch err := r.client.Get(ctx, key, &found); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read report %s: %w", key, err)
	}
	return &found.Status, nil
}

// output returns the end of the output of an ended job's launcher; nothing if it cannot be read.
func (r *runtimeTests) output(ctx context.Context, namespace string, report v1alpha1.JobReportStatus) string {
	const lines, most = 200, 64 << 10
	for _, pod := range report.Pods {
		if pod.Role != string(mpi.RoleLauncher) {
			continue
		}
		text, err := r.logs.Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
			Container: trainjob.Container, TailLines: new(int64(lines)), LimitBytes: new(int64(most)),
		}).DoRaw(ctx)
		if err != nil {
			log.FromContext(ctx).Info("the output of a test's launcher cannot be read now", "pod", pod.Name, "error", err.Error())
			return ""
		}
		return string(text)
	}
	return ""
}

// finish removes the job of a test that is over, and the test itself when its time has come.
func (r *runtimeTests) finish(ctx context.Context, test *v1alpha1.RuntimeTest) (reconcile.Result, error) {
	if ref := test.Status.JobRef; ref != nil {
		job := trainjob.New()
		job.SetNamespace(test.Namespace)
		job.SetName(ref.Name)
		if err := r.remove(ctx, job, ref.UID); err != nil {
			return reconcile.Result{}, err
		}
	}
	if test.Spec.TTLSecondsAfterFinished == nil {
		return reconcile.Result{}, nil
	}
	ttl := time.Duration(*test.Spec.TTLSecondsAfterFinished) * time.Second
	if left := test.Status.CompletionTime.Add(ttl).Sub(r.clock.Now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return reconcile.Result{}, r.remove(ctx, test, test.UID)
}

// remove deletes an object by its UID, if it still exists.
func (r *runtimeTests) remove(ctx context.Context, object client.Object, uid types.UID) error {
	err := r.client.Delete(ctx, object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !meta.IsNoMatchError(err) {
		return fmt.Errorf("delete %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}
