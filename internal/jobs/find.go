package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// Find returns the job that NAME or KIND/NAME refers to: the existing one, else the latest deleted one that has a report.
// It fails with NotFoundError, AmbiguousError or InvalidError.
func (c *Client) Find(ctx context.Context, namespace, reference string) (Job, error) {
	kinds, name, err := parseReference(reference)
	if err != nil {
		return Job{}, err
	}
	found := make([]*unstructured.Unstructured, len(kinds))
	errs := make([]error, len(kinds))
	var reports []v1alpha1.JobReport
	var reportsErr error
	var all sync.WaitGroup
	for i, kind := range kinds {
		all.Go(func() { found[i], errs[i] = c.get(ctx, kind, namespace, name) })
	}
	all.Go(func() { reports, reportsErr = c.reportsOf(ctx, namespace, kinds, name) })
	all.Wait()

	found = slices.DeleteFunc(found, func(object *unstructured.Unstructured) bool { return object == nil })
	switch {
	case len(found) > 1:
		err := &AmbiguousError{What: "jobs", Name: name}
		for _, object := range found {
			err.References = append(err.References, FromObject(object).String())
		}
		return Job{}, err
	case len(found) == 1:
		job := FromObject(found[0])
		for i := range reports {
			if reports[i].Spec.JobRef.UID == job.UID {
				job.Report = &reports[i]
			}
		}
		return job, nil
	}
	for i, err := range errs {
		if err != nil && !c.NotInstalled(err, kinds[i]) {
			return Job{}, err
		}
	}
	if reportsErr == nil && len(reports) > 0 {
		return FromReport(latest(reports)), nil
	}
	return Job{}, c.notFound(ctx, namespace, name, kinds)
}

// get reads a job; nil if it does not exist or its kind is not installed.
func (c *Client) get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := c.api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		if apierrors.IsNotFound(err) || IsNotInstalled(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read %s %s: %w", kind.Kind, name, err)
	}
	return object, nil
}

// reportsOf lists the reports of all jobs that have or had a name.
func (c *Client) reportsOf(ctx context.Context, namespace string, kinds []schema.GroupVersionKind, name string) ([]v1alpha1.JobReport, error) {
	var list v1alpha1.JobReportList
	label := client.MatchingLabels{mpi.LabelReportJob: mpi.Job{Name: name}.ReportLabels()[mpi.LabelReportJob]}
	if err := c.api.List(ctx, &list, client.InNamespace(namespace), label); err != nil {
		return nil, fmt.Errorf("read JobReports of %s: %w", name, err)
	}
	return slices.DeleteFunc(list.Items, func(report v1alpha1.JobReport) bool {
		ref := report.Spec.JobRef
		return ref.Name != name || !hasKind(kinds, ref.Kind)
	}), nil
}

func hasKind(kinds []schema.GroupVersionKind, kind string) bool {
	return slices.ContainsFunc(kinds, func(k schema.GroupVersionKind) bool { return k.Kind == kind })
}

func latest(reports []v1alpha1.JobReport) *v1alpha1.JobReport {
	found := slices.MaxFunc(reports, func(a, b v1alpha1.JobReport) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return &found
}

// notFound returns the error about a missing job, or the reason why jobs cannot be listed.
func (c *Client) notFound(ctx context.Context, namespace, name string, kinds []schema.GroupVersionKind) error {
	list, err := c.List(ctx, Selection{Namespace: namespace, Kinds: kinds, Deleted: true})
	if err != nil && ctx.Err() == nil && !apierrors.IsForbidden(err) {
		return err
	}
	missing := &NotFoundError{What: "job", Namespace: namespace, Name: name, Names: namesOf(list.Jobs)}
	if len(kinds) == 1 {
		missing.What = kinds[0].Kind
	}
	missing.Similar = phrase.Similar(name, missing.Names)
	return missing
}

func namesOf(jobs []Job) []string {
	names := make([]string, len(jobs))
	for i, job := range jobs {
		names[i] = job.Name
	}
	return names
}

// Selection selects jobs.
type Selection struct {
	// Namespace is the namespace of the jobs; empty for all namespaces.
	Namespace string
	// Labels select jobs by their labels; nil for all.
	Labels labels.Selector
	// Kinds are the kinds of the jobs; empty for all.
	Kinds []schema.GroupVersionKind
	// Deleted includes deleted jobs that have a report.
	Deleted bool
	// WithoutReports skips the reports, which are most of the data.
	WithoutReports bool
	// Rows reads only what a row of a list shows, where the client can (WithREST): of jobs what identifies them, their labels and
	// their age; of reports the columns of their table. It is for many jobs, and has no effect with Runtime or Since.
	Rows bool
	// Runtime selects the TrainJobs of a runtime; empty for all jobs.
	Runtime string
	// Since selects jobs that waited or ran after a time; zero for all jobs.
	Since time.Time
}

// Matches reports whether a job with its report is selected. The labels and the runtime of a deleted job are unknown, so it is
// not selected by these.
func (s Selection) Matches(job Job) bool {
	switch {
	case len(s.Kinds) > 0 && !hasKind(s.Kinds, job.Kind),
		s.Labels != nil && !s.Labels.Empty() && (job.Object == nil || !s.Labels.Matches(labels.Set(job.Object.GetLabels()))),
		s.Runtime != "" && job.Summary().Runtime != s.Runtime:
		return false
	}
	return s.Since.IsZero() || ranSince(job.Status(), s.Since)
}

// List is the result of a selection.
type List struct {
	// Jobs are sorted by namespace and name.
	Jobs []Job
	// Omitted are the kinds that the user may not list, with the error.
	Omitted []Omission
}

// Omission is a kind of object that is missing in a list.
type Omission struct {
	// Kind is a kind of job, or JobReport; in Usage also Node or ConfigMap.
	Kind string
	Err  error
}

// List returns the selected jobs with their reports. Kinds that are not installed are skipped. Kinds that the user may not
// list are in List.Omitted, unless that leaves none.
func (c *Client) List(ctx context.Context, s Selection) (List, error) {
	if len(s.Kinds) == 0 {
		s.Kinds = Kinds()
	}
	s.Rows = s.Rows && c.rest != nil && s.Runtime == "" && s.Since.IsZero()
	lists, errs := make([][]Job, len(s.Kinds)), make([]error, len(s.Kinds))
	var reports []v1alpha1.JobReport
	var reportsErr error
	var all sync.WaitGroup
	for i, kind := range s.Kinds {
		all.Go(func() { lists[i], errs[i] = c.listKind(ctx, kind, s) })
	}
	if !s.WithoutReports {
		all.Go(func() { reports, reportsErr = c.listReports(ctx, s) })
	}
	all.Wait()

	if !slices.Contains(errs, nil) {
		return List{}, mostImportant(errs)
	}
	var found List
	for i, err := range errs {
		switch {
		case err == nil:
			found.Jobs = append(found.Jobs, lists[i]...)
		case c.NotInstalled(err, s.Kinds[i]):
		case apierrors.IsForbidden(err):
			found.Omitted = append(found.Omitted, Omission{Kind: s.Kinds[i].Kind, Err: err})
		default:
			return List{}, err
		}
	}
	switch {
	case reportsErr == nil:
	case apierrors.IsForbidden(reportsErr), IsNotInstalled(reportsErr):
		found.Omitted = append(found.Omitted, Omission{Kind: "JobReport", Err: reportsErr})
	default:
		return List{}, reportsErr
	}
	found.Jobs = slices.DeleteFunc(addReports(found.Jobs, reports, s), func(job Job) bool {
		return s.Runtime != "" && job.Summary().Runtime != s.Runtime || !s.Since.IsZero() && !ranSince(job.Status(), s.Since)
	})
	Sort(found.Jobs, "", c.now())
	return found, nil
}

// NotInstalled reports whether an error means that the cluster does not have a kind. RBAC forbids reading a kind whether or
// not it is installed, so discovery is asked.
func (c *Client) NotInstalled(err error, kind schema.GroupVersionKind) bool {
	if !apierrors.IsForbidden(err) {
		return IsNotInstalled(err)
	}
	if c.discovery == nil {
		return false
	}
	_, err = c.discovery.ServerResourcesForGroupVersion(kind.GroupVersion().String())
	return apierrors.IsNotFound(err)
}

// mostImportant returns the first error that is not about a kind that is not installed.
func mostImportant(errs []error) error {
	for _, err := range errs {
		if !IsNotInstalled(err) {
			return err
		}
	}
	return errs[0]
}

// addReports gives jobs their reports, and appends deleted jobs if these are selected.
func addReports(jobs []Job, reports []v1alpha1.JobReport, s Selection) []Job {
	byUID := make(map[types.UID]*v1alpha1.JobReport, len(reports))
	for i := range reports {
		byUID[reports[i].Spec.JobRef.UID] = &reports[i]
	}
	for i := range jobs {
		jobs[i].Report = byUID[jobs[i].UID]
		delete(byUID, jobs[i].UID)
	}
	if !s.Deleted {
		return jobs
	}
	for i := range reports {
		ref := reports[i].Spec.JobRef
		if _, left := byUID[ref.UID]; left && hasKind(s.Kinds, ref.Kind) {
			jobs = append(jobs, FromReport(&reports[i]))
		}
	}
	return jobs
}

func (c *Client) listKind(ctx context.Context, kind schema.GroupVersionKind, s Selection) ([]Job, error) {
	if s.Rows {
		return c.listMetadata(ctx, kind, s)
	}
	var jobs []Job
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := EachPage(ctx, c.api, list, s.Namespace, s.Labels, func() {
		for i := range list.Items {
			jobs = append(jobs, FromObject(list.Items[i].DeepCopy()))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	return jobs, nil
}

func (c *Client) listReports(ctx context.Context, s Selection) ([]v1alpha1.JobReport, error) {
	if s.Rows {
		if reports, known, err := c.listReportRows(ctx, s.Namespace, s.Deleted); known || err != nil {
			return reports, err
		}
	}
	var reports []v1alpha1.JobReport
	var list v1alpha1.JobReportList
	if err := EachPage(ctx, c.api, &list, s.Namespace, nil, func() { reports = append(reports, list.Items...) }); err != nil {
		return nil, fmt.Errorf("list JobReports: %w", err)
	}
	return reports, nil
}

const (
	// firstPage is how many objects are listed first, when their size is unknown.
	firstPage = 500
	// maxPageObjects and maxPageBytes limit later pages: a JobReport may have a few KiB, or with logs more than 800 KiB.
	maxPageObjects = 5000
	maxPageBytes   = 16 << 20
	// rereadFactor is how many times as many objects the next page may have so that the first page is read again with it. The API
	// server has first pages in its cache, but may read further ones from etcd, which takes it several times as long.
	rereadFactor = 4
)

// pageLimit returns how many objects the next page may have, by the size of those of the last page.
func pageLimit(objects, bytes int64) int64 {
	if objects <= 0 || bytes <= 0 {
		return firstPage
	}
	return min(max(maxPageBytes*objects/bytes, 1), maxPageObjects)
}

// EachPage lists objects page by page. The size of the first page decides on that of the next one.
func EachPage(ctx context.Context, api client.Reader, list client.ObjectList, namespace string, selector labels.Selector, each func()) error {
	return eachPageOf(ctx, api, list, firstPage, namespace, selector, each)
}

// eachPageOf lists objects page by page; size is the limit of the first page.
func eachPageOf(ctx context.Context, api client.Reader, list client.ObjectList, size int64, namespace string, selector labels.Selector, each func()) error {
	options := []client.ListOption{client.InNamespace(namespace)}
	if selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	next := ""
	for isFirst := true; ; isFirst = false {
		list.SetContinue("")
		if err := api.List(ctx, list, append(options, client.Limit(size), client.Continue(next))...); err != nil {
			return err
		}
		if list.GetContinue() == "" {
			each()
			return nil
		}
		objects := int64(meta.LenList(list))
		size = pageLimit(objects, sizeOf(list))
		if isFirst && size >= rereadFactor*objects {
			continue
		}
		next = list.GetContinue()
		each()
	}
}

// sizeOf returns about how many bytes the objects of a list have as JSON, or 0 if it is unknown: clients do not tell the size of a
// response. It encodes at most firstPage of them, which takes less time than decoding did.
func sizeOf(list client.ObjectList) int64 {
	objects := int64(meta.LenList(list))
	step := 1 + (objects-1)/firstPage
	var i, encoded, size int64
	err := meta.EachListItem(list, func(object runtime.Object) error {
		if i++; (i-1)%step != 0 {
			return nil
		}
		data, err := json.Marshal(object)
		encoded, size = encoded+1, size+int64(len(data))
		return err
	})
	if err != nil || encoded == 0 {
		return 0
	}
	return size * objects / encoded
}
