package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// Job is a job of either kind, with its record.
type Job struct {
	Kind, Namespace, Name string
	UID                   types.UID
	// Object is the job as it is in the cluster; nil where it is gone and only its record is left.
	Object *unstructured.Unstructured
	// Report is its record; nil where the operator has not written one yet, or may not be asked.
	Report *v1alpha1.JobReport
}

// String names the job as users do who have to tell the kinds apart.
func (j Job) String() string { return strings.ToLower(j.Kind) + "/" + j.Name }

// Phase is where the job is in its life; empty where that is not known yet.
func (j Job) Phase() mpi.Phase {
	if j.Report == nil {
		return ""
	}
	return mpi.Phase(j.Report.Status.Phase)
}

// jobKinds are those that the command line knows. The first is that of a job whose kind is not said.
var jobKinds = []schema.GroupVersionKind{kubeflow.SchemeGroupVersionKind, trainjob.GroupVersion.WithKind(trainjob.Kind)}

// kindOf reads a word such as mpijob, MPIJobs or trainjobs.trainer.kubeflow.org.
func kindOf(word string) (schema.GroupVersionKind, bool) {
	word, _, _ = strings.Cut(strings.ToLower(word), ".")
	for _, kind := range jobKinds {
		if lower := strings.ToLower(kind.Kind); word == lower || word == lower+"s" {
			return kind, true
		}
	}
	return schema.GroupVersionKind{}, false
}

// splitName reads NAME, mpijob/NAME or trainjob/NAME; without a kind all of them are meant.
func splitName(arg string) (kinds []schema.GroupVersionKind, name string, err error) {
	word, name, qualified := strings.Cut(arg, "/")
	if !qualified {
		return jobKinds, arg, nil
	}
	kind, known := kindOf(word)
	if !known || name == "" {
		return nil, "", usagef("%q names no job: write NAME, mpijob/NAME or trainjob/NAME", arg)
	}
	return []schema.GroupVersionKind{kind}, name, nil
}

// Find returns the job of a name, which may be mpijob/NAME or trainjob/NAME: the one that there is, else the latest that
// a record is left of. Where there is none the error suggests others, and ends the program with ExitNotFound.
func (f *Factory) Find(ctx context.Context, arg string) (Job, error) {
	kinds, name, err := splitName(arg)
	if err != nil {
		return Job{}, err
	}
	namespace, err := f.Namespace()
	if err != nil {
		return Job{}, err
	}
	c, err := f.Client()
	if err != nil {
		return Job{}, err
	}
	found := make([]*unstructured.Unstructured, len(kinds))
	errs := make([]error, len(kinds))
	var reports []v1alpha1.JobReport
	var reportsErr error
	var all sync.WaitGroup
	for i, kind := range kinds {
		all.Go(func() { found[i], errs[i] = getJob(ctx, c, kind, namespace, name) })
	}
	all.Go(func() { reports, reportsErr = reportsOf(ctx, c, namespace, kinds, name) })
	all.Wait()

	found = slices.DeleteFunc(found, func(object *unstructured.Unstructured) bool { return object == nil })
	switch {
	case len(found) > 1:
		return Job{}, usagef("there are jobs of both kinds named %q: write %s/%s or %s/%s", name,
			strings.ToLower(kinds[0].Kind), name, strings.ToLower(kinds[1].Kind), name)
	case len(found) == 1:
		job := newJob(found[0])
		for i := range reports {
			if reports[i].Spec.JobRef.UID == job.UID {
				job.Report = &reports[i]
			}
		}
		return job, nil
	}
	for i, err := range errs {
		if err != nil && !f.unserved(err, kinds[i]) {
			return Job{}, err
		}
	}
	if reportsErr == nil && len(reports) > 0 {
		return goneJob(latest(reports)), nil
	}
	return Job{}, f.noSuchJob(ctx, arg, kinds, namespace)
}

// getJob reads a job of a kind; nil where there is none, or where the cluster does not know the kind.
func getJob(ctx context.Context, c client.Client, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read %s %s: %w", kind.Kind, name, err)
	}
	return object, nil
}

// reportsOf are the records of all jobs that have or had a name.
func reportsOf(ctx context.Context, c client.Client, namespace string, kinds []schema.GroupVersionKind, name string) ([]v1alpha1.JobReport, error) {
	var list v1alpha1.JobReportList
	label := client.MatchingLabels{mpi.LabelReportJob: mpi.Job{Name: name}.ReportLabels()[mpi.LabelReportJob]}
	if err := c.List(ctx, &list, client.InNamespace(namespace), label); err != nil {
		return nil, fmt.Errorf("read records of %s: %w", name, err)
	}
	return slices.DeleteFunc(list.Items, func(report v1alpha1.JobReport) bool {
		ref := report.Spec.JobRef
		return ref.Name != name || !slices.ContainsFunc(kinds, func(kind schema.GroupVersionKind) bool { return kind.Kind == ref.Kind })
	}), nil
}

func latest(reports []v1alpha1.JobReport) *v1alpha1.JobReport {
	found := slices.MaxFunc(reports, func(a, b v1alpha1.JobReport) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return &found
}

func newJob(object *unstructured.Unstructured) Job {
	return Job{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), Object: object}
}

// goneJob is a job that only its record is left of.
func goneJob(report *v1alpha1.JobReport) Job {
	ref := report.Spec.JobRef
	return Job{Kind: ref.Kind, Namespace: report.Namespace, Name: ref.Name, UID: ref.UID, Report: report}
}

// noSuchJob says that there is no job of a name, and which were near. A cluster that knows none of the kinds is told of.
func (f *Factory) noSuchJob(ctx context.Context, arg string, kinds []schema.GroupVersionKind, namespace string) error {
	jobs, _, err := f.Jobs(ctx, Selection{Namespace: namespace, Kinds: kinds, Gone: true})
	if err != nil && ctx.Err() == nil && !apierrors.IsForbidden(err) {
		return err
	}
	_, name, _ := splitName(arg)
	var names []string
	for _, job := range jobs {
		names = append(names, job.Name)
	}
	what := "job"
	if len(kinds) == 1 {
		what = kinds[0].Kind
	}
	text := fmt.Sprintf("there is no %s %q in the namespace %s%s", what, name, namespace, meant(name, names))
	if len(nearest(name, names)) == 0 {
		text += fmt.Sprintf("; %s list -n %s shows those that are there", f.name, namespace)
	}
	return exitf(ExitNotFound, "%s", text)
}

// Selection picks jobs.
type Selection struct {
	// Namespace is where they are; empty: everywhere.
	Namespace string
	// Labels are on the jobs; nil: whatever they are.
	Labels labels.Selector
	// Kinds are theirs; empty: all.
	Kinds []schema.GroupVersionKind
	// Gone takes those in that only a record is left of.
	Gone bool
	// NoReports leaves the records out, which are most of what there is to read.
	NoReports bool
}

// Jobs are those of a selection, by namespace and name, with their records. A kind that the cluster does not know, or
// that the user may not list, is left out and a note says so, if there is another.
func (f *Factory) Jobs(ctx context.Context, s Selection) (jobs []Job, notes []string, err error) {
	c, err := f.Client()
	if err != nil {
		return nil, nil, err
	}
	if len(s.Kinds) == 0 {
		s.Kinds = jobKinds
	}
	lists, errs := make([][]Job, len(s.Kinds)), make([]error, len(s.Kinds))
	var reports []v1alpha1.JobReport
	var reportsErr error
	var all sync.WaitGroup
	for i, kind := range s.Kinds {
		all.Go(func() { lists[i], errs[i] = listJobs(ctx, c, kind, s) })
	}
	if !s.NoReports {
		all.Go(func() { reports, reportsErr = listReports(ctx, c, s.Namespace) })
	}
	all.Wait()

	if !slices.Contains(errs, nil) {
		return nil, nil, worst(errs)
	}
	for i, err := range errs {
		switch {
		case err == nil:
			jobs = append(jobs, lists[i]...)
		case f.unserved(err, s.Kinds[i]):
		case apierrors.IsForbidden(err):
			notes = append(notes, s.Kinds[i].Kind+"s are left out: "+f.words(err))
		default:
			return nil, nil, err
		}
	}
	switch {
	case reportsErr == nil:
	case apierrors.IsForbidden(reportsErr), isNoSuchAPI(reportsErr):
		notes = append(notes, "how the jobs are doing is not known: "+f.words(reportsErr))
	default:
		return nil, nil, reportsErr
	}
	jobs = join(jobs, reports, s)
	slices.SortFunc(jobs, func(a, b Job) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind), strings.Compare(string(a.UID), string(b.UID)))
	})
	return jobs, notes, nil
}

// unserved tells whether an error comes of a kind that the cluster has not. One that a user has no rights to is forbidden
// whether it is there or not.
func (f *Factory) unserved(err error, kind schema.GroupVersionKind) bool {
	if !apierrors.IsForbidden(err) {
		return isNoSuchAPI(err) || meta.IsNoMatchError(err)
	}
	clients, err := f.Clientset()
	if err != nil {
		return false
	}
	_, err = clients.Discovery().ServerResourcesForGroupVersion(kind.GroupVersion().String())
	return apierrors.IsNotFound(err)
}

// worst is the error to tell of several: that a kind is not there matters least.
func worst(errs []error) error {
	for _, err := range errs {
		if !isNoSuchAPI(err) {
			return err
		}
	}
	return errs[0]
}

// join gives jobs their records.
func join(jobs []Job, reports []v1alpha1.JobReport, s Selection) []Job {
	byUID := make(map[types.UID]*v1alpha1.JobReport, len(reports))
	for i := range reports {
		byUID[reports[i].Spec.JobRef.UID] = &reports[i]
	}
	for i := range jobs {
		jobs[i].Report = byUID[jobs[i].UID]
		delete(byUID, jobs[i].UID)
	}
	if !s.Gone {
		return jobs
	}
	for i := range reports {
		report := &reports[i]
		_, left := byUID[report.Spec.JobRef.UID]
		if left && slices.ContainsFunc(s.Kinds, func(kind schema.GroupVersionKind) bool { return kind.Kind == report.Spec.JobRef.Kind }) {
			jobs = append(jobs, goneJob(report))
		}
	}
	return jobs
}

func listJobs(ctx context.Context, c client.Client, kind schema.GroupVersionKind, s Selection) ([]Job, error) {
	var jobs []Job
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := pages(ctx, c, list, s.Namespace, s.Labels, func() {
		for i := range list.Items {
			jobs = append(jobs, newJob(list.Items[i].DeepCopy()))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	return jobs, nil
}

func listReports(ctx context.Context, c client.Client, namespace string) ([]v1alpha1.JobReport, error) {
	var reports []v1alpha1.JobReport
	var list v1alpha1.JobReportList
	err := pages(ctx, c, &list, namespace, nil, func() { reports = append(reports, list.Items...) })
	if err != nil {
		return nil, fmt.Errorf("list JobReports: %w", err)
	}
	return reports, nil
}

// pages reads a list 500 objects at a time: a thousand records are many megabytes.
func pages(ctx context.Context, c client.Client, list client.ObjectList, namespace string, selector labels.Selector, each func()) error {
	options := []client.ListOption{client.InNamespace(namespace), client.Limit(500)}
	if selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	for next := ""; ; {
		if err := c.List(ctx, list, append(options, client.Continue(next))...); err != nil {
			return err
		}
		each()
		if next = list.GetContinue(); next == "" {
			return nil
		}
		list.SetContinue("")
	}
}
