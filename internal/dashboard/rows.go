package dashboard

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
)

// Row is a job in the list.
type Row struct {
	// ID is the UID of the job.
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Framework is MPI, PyTorch or another framework; empty if unknown.
	Framework string `json:"framework,omitempty"`
	Runtime   string `json:"runtime,omitempty"`
	// Phase is a phase of JobReports; empty if neither a report nor the job's conditions show it.
	Phase string `json:"phase,omitempty"`
	// Reason is the code of the first finding, or what the job waits for.
	Reason string `json:"reason,omitempty"`
	// Progress says in a few words what the job does or waits for.
	Progress string `json:"progress,omitempty"`
	// Severity is that of the first finding; empty without findings.
	Severity string `json:"severity,omitempty"`
	Workers  int32  `json:"workers"`
	Ready    int32  `json:"ready"`
	// GPUs is the number of GPUs of all workers.
	GPUs     int64  `json:"gpus"`
	Queue    string `json:"queue,omitempty"`
	Position *int32 `json:"position,omitempty"`
	// User created the job; empty if unknown.
	User    string     `json:"user,omitempty"`
	Created time.Time  `json:"created"`
	Running *time.Time `json:"running,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
	// Deleted jobs only have a report.
	Deleted   bool `json:"deleted,omitempty"`
	Suspended bool `json:"suspended,omitempty"`
	// ofCluster is set if the runtime is one of the cluster.
	ofCluster bool
	// waited is how many seconds the job waited until it was first admitted; nil if it has not been admitted.
	waited *int64
}

// maxChanges is how many changes are kept for streams that resume. A stream that missed more reloads its page.
const maxChanges = 4096

// rows holds a row for each job, made from the job and its report, and the latest changes of rows.
type rows struct {
	epoch string
	now   func() time.Time

	mu    sync.RWMutex
	byUID map[types.UID]*entry
	// runtimes are the frameworks of runtimes, by scope and name.
	runtimes map[string]string
	revision uint64
	changes  []change
	// changed is closed at the next change.
	changed chan struct{}
}

// entry is a job, or its report, or both.
type entry struct {
	job, report *Row
	// full is the row from both, bare the row for users who may not read reports; nil if such users see nothing.
	full, bare *Row
}

// change is a change of a row.
type change struct {
	revision uint64
	id       string
	// kind and namespace decide who may see the change.
	kind, namespace string
	// full and bare are nil if the row was removed.
	full, bare *Row
}

func newRows(now func() time.Time) *rows {
	return &rows{
		epoch: strconv.FormatInt(now().UnixNano(), 36), now: now,
		byUID: map[types.UID]*entry{}, runtimes: map[string]string{}, changed: make(chan struct{}),
	}
}

// setJob stores the row of a job's object; nil removes it.
func (r *rows) setJob(uid types.UID, row *Row) { r.set(uid, func(e *entry) { e.job = row }) }

// setReport stores the row of a job's report; nil removes it.
func (r *rows) setReport(uid types.UID, row *Row) { r.set(uid, func(e *entry) { e.report = row }) }

func (r *rows) set(uid types.UID, write func(*entry)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.byUID[uid]
	if e == nil {
		e = &entry{}
		r.byUID[uid] = e
	}
	before := e.full
	write(e)
	e.full, e.bare = r.merge(e.job, e.report)
	if e.full == nil {
		delete(r.byUID, uid)
	}
	if before == nil && e.full == nil || before != nil && e.full != nil && sameRow(before, e.full) {
		return
	}
	r.revision++
	shown := cmp.Or(e.full, before)
	r.changes = append(r.changes, change{r.revision, shown.ID, shown.Kind, shown.Namespace, e.full, e.bare})
	if len(r.changes) > 2*maxChanges {
		r.changes = slices.Clone(r.changes[len(r.changes)-maxChanges:])
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// merge returns the rows of a job with and without its report.
func (r *rows) merge(job, report *Row) (full, bare *Row) {
	switch {
	case job == nil && report == nil:
		return nil, nil
	case job == nil:
		deleted := *report
		deleted.Deleted = true
		return &deleted, nil
	}
	bare = job
	if job.Framework == "" && job.Runtime != "" {
		named := *job
		named.Framework = cmp.Or(r.runtimes[job.Namespace+"/"+job.Runtime], r.runtimes["/"+job.Runtime])
		bare = &named
	}
	if report == nil {
		return bare, bare
	}
	both := *bare
	both.Phase, both.Reason, both.Progress, both.Severity = report.Phase, report.Reason, report.Progress, report.Severity
	both.Workers, both.Ready = cmp.Or(report.Workers, bare.Workers), report.Ready
	both.Queue, both.Position = cmp.Or(bare.Queue, report.Queue), report.Position
	both.Running, both.Ended = report.Running, report.Ended
	both.Framework = cmp.Or(bare.Framework, report.Framework)
	both.waited = report.waited
	return &both, bare
}

// sameRow reports whether two rows show the same.
func sameRow(a, b *Row) bool {
	x, y := *a, *b
	equal := func(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }
	position := x.Position == y.Position || x.Position != nil && y.Position != nil && *x.Position == *y.Position
	if !equal(x.Running, y.Running) || !equal(x.Ended, y.Ended) || !x.Created.Equal(y.Created) || !position {
		return false
	}
	x.Running, x.Ended, x.Position, x.Created, x.waited = y.Running, y.Ended, y.Position, y.Created, y.waited
	return x == y
}

// cursor is a position in the changes, for clients. A cursor of another process is not valid.
func (r *rows) cursor(revision uint64) string {
	return r.epoch + "." + strconv.FormatUint(revision, 10)
}

// since returns the changes after a cursor, where to continue, and a channel that is closed at the next change. It returns
// false if the changes are no longer available.
func (r *rows) since(cursor string) (found []change, next string, changed <-chan struct{}, ok bool) {
	epoch, number, _ := strings.Cut(cursor, ".")
	after, err := strconv.ParseUint(number, 10, 64)
	r.mu.RLock()
	defer r.mu.RUnlock()
	next, changed = r.cursor(r.revision), r.changed
	if epoch != r.epoch || err != nil || after > r.revision {
		return nil, next, changed, false
	}
	if missing := r.revision - after; missing > uint64(len(r.changes)) {
		return nil, next, changed, false
	} else if missing > 0 {
		found = slices.Clone(r.changes[len(r.changes)-int(missing):])
	}
	return found, next, changed, true
}

// snapshot returns all entries and the cursor after them.
func (r *rows) snapshot() ([]*entry, string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*entry, 0, len(r.byUID))
	for _, e := range r.byUID {
		shown := *e
		all = append(all, &shown)
	}
	return all, r.cursor(r.revision)
}

// setRuntime stores the framework of a runtime, and applies it to the rows of its jobs.
func (r *rows) setRuntime(namespace, name, framework string) {
	r.changeRuntime(name, func() { r.runtimes[namespace+"/"+name] = framework })
}

// dropRuntime removes a runtime.
func (r *rows) dropRuntime(namespace, name string) {
	r.changeRuntime(name, func() { delete(r.runtimes, namespace+"/"+name) })
}

// changeRuntime changes a runtime of a name, and the rows of its jobs.
func (r *rows) changeRuntime(name string, change func()) {
	r.mu.Lock()
	change()
	var affected []types.UID
	for uid, e := range r.byUID {
		if e.job != nil && e.job.Runtime == name {
			affected = append(affected, uid)
		}
	}
	r.mu.Unlock()
	for _, uid := range affected {
		r.set(uid, func(*entry) {})
	}
}

// jobRow returns the row of a job's object.
func jobRow(object *unstructured.Unstructured) *Row {
	job := jobs.FromObject(object)
	row := &Row{
		ID: string(job.UID), Kind: job.Kind, Namespace: job.Namespace, Name: job.Name,
		Created: object.GetCreationTimestamp().UTC(), Suspended: job.Suspended(),
		Queue: object.GetLabels()[mpi.LabelQueue], User: object.GetAnnotations()[mpi.AnnotationCreator],
	}
	summary := job.Summary()
	row.Runtime = summary.Runtime
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "runtimeRef", "kind")
	row.ofCluster = row.Runtime != "" && cmp.Or(kind, trainjob.ClusterRuntimeKind) == trainjob.ClusterRuntimeKind
	if job.Kind != trainjob.Kind {
		row.Framework = "MPI"
	}
	row.Workers = workersOf(object)
	row.GPUs = podspec.GPUs(summary.Worker) * int64(row.Workers)
	row.Phase = phaseOf(object, row.Suspended)
	return row
}

// workersOf returns the number of workers in a job's fields.
func workersOf(object *unstructured.Unstructured) int32 {
	for _, path := range [][]string{{"spec", "mpiReplicaSpecs", "Worker", "replicas"}, {"spec", "trainer", "numNodes"}} {
		if n, found, err := unstructured.NestedInt64(object.Object, path...); found && err == nil {
			return int32(min(n, 1<<30)) //nolint:gosec // bounded
		}
	}
	return 0
}

// phaseOf returns the phase by the job's own conditions, for jobs without a report.
func phaseOf(object *unstructured.Unstructured, suspended bool) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	is := map[string]bool{}
	for _, entry := range conditions {
		if condition, ok := entry.(map[string]any); ok && condition["status"] == "True" {
			name, _ := condition["type"].(string)
			is[name] = true
		}
	}
	switch {
	case is["Failed"]:
		return string(v1alpha1.PhaseFailed)
	case is["Succeeded"], is["Complete"]:
		return string(v1alpha1.PhaseSucceeded)
	case suspended, is["Suspended"]:
		return string(v1alpha1.PhaseSuspended)
	case is["Running"]:
		return string(v1alpha1.PhaseRunning)
	}
	return string(v1alpha1.PhasePending)
}

// reportRow returns the row of a report.
func reportRow(report *v1alpha1.JobReport) *Row {
	job := jobs.FromReport(report)
	status := report.Status
	row := &Row{
		ID: string(job.UID), Kind: job.Kind, Namespace: job.Namespace, Name: job.Name,
		Phase: string(status.Phase), Reason: strings.TrimPrefix(job.Reason(), "-"), Progress: job.Progress(),
		Workers: status.Workers.Wanted, Ready: status.Workers.Ready, Created: report.CreationTimestamp.UTC(),
	}
	if status.MPI.Implementation != "" {
		row.Framework = "MPI"
	}
	if len(status.Findings) > 0 {
		row.Severity = string(status.Findings[0].Severity)
	}
	if s := status.Scheduling; s != nil {
		row.Queue, row.Position = s.Queue, s.Position
	} else if status.Waited != nil {
		row.Queue = status.Waited.Queue
	}
	if status.Waited != nil {
		row.waited = &status.Waited.Seconds
	}
	if status.StartTime != nil {
		row.Created = status.StartTime.UTC()
	}
	if status.RunningTime != nil {
		row.Running = &status.RunningTime.Time
	}
	if status.CompletionTime != nil {
		row.Ended = &status.CompletionTime.Time
	}
	return row
}

// frameworkNames are the names of frameworks by the label of runtimes (trainer.kubeflow.org/framework).
var frameworkNames = map[string]string{"torch": "PyTorch", "torchtune": "PyTorch", "deepspeed": "DeepSpeed", "mlx": "MLX", "jax": "JAX", "xgboost": "XGBoost", "tensorflow": "TensorFlow", "mpi": "MPI", "horovod": "Horovod"}

// frameworkOf returns the framework of a runtime; empty if unknown.
func frameworkOf(runtime *unstructured.Unstructured) string {
	if name, found := frameworkNames[runtime.GetLabels()["trainer.kubeflow.org/framework"]]; found {
		return name
	}
	policy, _, _ := unstructured.NestedMap(runtime.Object, "spec", "mlPolicy")
	for _, name := range []string{"mpi", "torch", "jax", "xgboost"} {
		if _, set := policy[name]; set {
			return frameworkNames[name]
		}
	}
	return ""
}

// rowOf returns the row of a job as it was just read.
func rowOf(r *rows, job jobs.Job) Row {
	var fromJob, fromReport *Row
	if job.Object != nil {
		fromJob = jobRow(job.Object)
	}
	if job.Report != nil {
		fromReport = reportRow(job.Report)
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	full, _ := r.merge(fromJob, fromReport)
	return *full
}
