package dashboard

import (
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobs"
)

// The types of the HTTP API. web/src/api/types.ts and openapi.json are generated from them: go test ./internal/dashboard
// -run TestGenerated -update.

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

// List is a page of the list of jobs.
type List struct {
	Rows []Row `json:"rows"`
	// Total is the number of jobs that match, Visible the number of jobs that the user may see.
	Total   int `json:"total"`
	Visible int `json:"visible"`
	// Facets are the number of visible jobs for each value of a field: phase, kind, framework, namespace, queue and user.
	Facets map[string]map[string]int `json:"facets"`
	// Cursor is where the stream of changes continues after this list.
	Cursor string `json:"cursor"`
	// Stale is why the list may be out of date; empty if it is not.
	Stale string `json:"stale,omitempty"`
	// NoReports is set if the user may see jobs but not their reports, so that phases are incomplete.
	NoReports bool `json:"noReports,omitempty"`
}

// Changes is an event of the stream of changes.
type Changes struct {
	Rows    []Row    `json:"rows"`
	Removed []string `json:"removed"`
	Stale   string   `json:"stale,omitempty"`
}

// Problem is the body of a response that is an error.
type Problem struct {
	// Code identifies the kind of error: Invalid, Rejected, NotFound, Ambiguous, Deleted, Ended, Exists, Forbidden, Unauthorized,
	// Unavailable, NotInstalled or Internal.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Fields are the errors of fields of the request.
	Fields []FieldProblem `json:"fields,omitempty"`
	// Reasons are why the API server or a check does not accept a job.
	Reasons []string `json:"reasons,omitempty"`
	// Similar are existing names like one that was not found.
	Similar []string `json:"similar,omitempty"`
}

// FieldProblem is an error of a field.
type FieldProblem struct {
	Field  string `json:"field"`
	Value  string `json:"value,omitempty"`
	Reason string `json:"reason"`
}

// Me is the user who is logged in.
type Me struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Program is how the command line is called in the commands that pages show.
	Program string `json:"program"`
	// CanLogOut is set if the dashboard holds the login, and not a proxy.
	CanLogOut bool `json:"canLogOut"`
	// CreateAnywhere is set if the user may create MPIJobs in all namespaces.
	CreateAnywhere bool `json:"createAnywhere"`
}

// Login is a login with a bearer token.
type Login struct {
	Token string `json:"token"`
}

// Namespaces are those that the user can select.
type Namespaces struct {
	Namespaces []Namespace `json:"namespaces"`
	// Complete is unset if the user may not list namespaces: those with visible jobs are then listed, and others can be typed.
	Complete bool `json:"complete"`
}

// Namespace is a namespace, a project of OpenShift.
type Namespace struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	CanCreate   bool   `json:"canCreate"`
}

// Detail is a job with everything that its page shows.
type Detail struct {
	Row Row `json:"row"`
	// Headline is the phase and for how long the job has been in it.
	Headline string `json:"headline"`
	// Status is the status of the job's report; null without one.
	Status *v1alpha1.JobReportStatus `json:"status"`
	// Failure says where a failed job failed first.
	Failure   string    `json:"failure,omitempty"`
	Findings  []Finding `json:"findings"`
	Resources string    `json:"resources,omitempty"`
	// Total is what all pods request together.
	Total     string            `json:"total,omitempty"`
	Ranks     string            `json:"ranks,omitempty"`
	Training  string            `json:"training,omitempty"`
	Used      string            `json:"used,omitempty"`
	Cost      string            `json:"cost,omitempty"`
	Image     string            `json:"image,omitempty"`
	Command   string            `json:"command,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Notes     map[string]string `json:"annotations,omitempty"`
	Can       Can               `json:"can"`
	Commands  []Snippet         `json:"commands"`
	Attempts  []Attempt         `json:"attempts"`
	Checklist []Check           `json:"checklist"`
	Terms     []Term            `json:"terms"`
	Outputs   []Output          `json:"outputs"`
	Now       time.Time         `json:"now"`
}

// Finding is a problem of a job with what to do.
type Finding struct {
	Code     string   `json:"code"`
	Severity string   `json:"severity"`
	Summary  string   `json:"summary"`
	Evidence []string `json:"evidence"`
	Affected []string `json:"affected"`
	Remedies []Remedy `json:"remedies"`
	// Guide is set if the help explains the code.
	Guide bool `json:"guide"`
}

// Remedy is a suggested fix.
type Remedy struct {
	Text   string `json:"text"`
	Action string `json:"action,omitempty"`
	// Applicable is set if a clone with Changes applies the remedy.
	Applicable bool     `json:"applicable"`
	Changes    []string `json:"changes,omitempty"`
	// Command applies the remedy on the command line.
	Command string `json:"command,omitempty"`
}

// Can says what the user may do with a job.
type Can struct {
	Suspend bool `json:"suspend"`
	Resume  bool `json:"resume"`
	Cancel  bool `json:"cancel"`
	Delete  bool `json:"delete"`
	Clone   bool `json:"clone"`
	Logs    bool `json:"logs"`
}

// Snippet is a text to copy: a command, or lines of Python.
type Snippet struct {
	Title string `json:"title"`
	// Language is sh or python.
	Language string `json:"language"`
	Text     string `json:"text"`
}

// Attempt is a job of the same name that was run before, or a clone.
type Attempt struct {
	ID      string     `json:"id"`
	Kind    string     `json:"kind"`
	Name    string     `json:"name"`
	Phase   string     `json:"phase,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Created time.Time  `json:"created"`
	Ended   *time.Time `json:"ended,omitempty"`
	Deleted bool       `json:"deleted,omitempty"`
}

// Check is a step of a job's start, and whether the job passed it.
type Check struct {
	Text string `json:"text"`
	// Result is pass, fail, pending or unknown.
	Result string `json:"result"`
}

// Help explains what can be wrong with jobs.
type Help struct {
	Topics []codes.Topic `json:"topics"`
}

// Output is where a job can store results.
type Output struct {
	// Title is the kind of storage with its name, Where the folder or the address there.
	Title string `json:"title"`
	Where string `json:"where"`
	// Named is set if the job names it as the place of its results.
	Named bool `json:"named,omitempty"`
	// Command copies or lists the results.
	Command string `json:"command"`
}

// Glossary explains the words that pages use.
type Glossary struct {
	Terms []Term `json:"terms"`
}

// Term is a word of MPI or Kubernetes with its meaning.
type Term struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
}

// Pods are the pods of a job.
type Pods struct {
	Pods []Pod `json:"pods"`
	// Omitted is the number of pods that the report does not list.
	Omitted int32 `json:"omitted"`
	// NoUsage is why there is no current usage; empty if there is.
	NoUsage string `json:"noUsage,omitempty"`
}

// Pod is a pod of a job.
type Pod struct {
	Role   string `json:"role"`
	Index  int32  `json:"index"`
	Name   string `json:"name"`
	Node   string `json:"node,omitempty"`
	Phase  string `json:"phase"`
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
	// Message explains the reason, as the kubelet or the scheduler reports it.
	Message  string     `json:"message,omitempty"`
	Restarts int32      `json:"restarts"`
	ExitCode *int32     `json:"exitCode,omitempty"`
	Ranks    string     `json:"ranks,omitempty"`
	Created  *time.Time `json:"created,omitempty"`
	IP       string     `json:"ip,omitempty"`
	Image    string     `json:"image,omitempty"`
	Requests string     `json:"requests,omitempty"`
	// CPU is used cores, Memory used bytes; null if unknown.
	CPU    *float64 `json:"cpu,omitempty"`
	Memory *int64   `json:"memory,omitempty"`
	// CPULimit and MemoryLimit are the limits, else the requests; 0 if there are none.
	CPULimit    float64 `json:"cpuLimit,omitempty"`
	MemoryLimit int64   `json:"memoryLimit,omitempty"`
}

// Events are the Kubernetes events of a job and its objects, oldest first.
type Events struct {
	Events []Event `json:"events"`
}

// Event is a Kubernetes event.
type Event struct {
	Time    time.Time `json:"time"`
	Warning bool      `json:"warning"`
	Reason  string    `json:"reason"`
	Object  string    `json:"object"`
	Message string    `json:"message"`
	Count   int32     `json:"count"`
}

// Manifest is the YAML of a job.
type Manifest struct {
	// Clean is without the fields of the API server and controllers, Full with them.
	Clean string `json:"clean"`
	Full  string `json:"full"`
}

// CancelRequest ends a job that has not ended.
type CancelRequest struct {
	// UID protects a new job of the same name; empty for any.
	UID string `json:"uid,omitempty"`
	// GraceSeconds is how long the programs may take to end after SIGTERM; null for what their pods define.
	GraceSeconds *int64 `json:"graceSeconds,omitempty"`
}

// Curves are what a program printed about its training.
type Curves struct {
	Points []CurvePoint `json:"points"`
	// Skipped is the number of points between those that are shown.
	Skipped int `json:"skipped"`
	// Reason is why there are no points, Note what else to know about them.
	Reason string `json:"reason,omitempty"`
	Note   string `json:"note,omitempty"`
}

// CurvePoint is a line of the log with a loss, an accuracy or other figures. An accuracy in percent is between 0 and 1.
type CurvePoint struct {
	Time     string   `json:"time,omitempty"`
	Step     *float64 `json:"step,omitempty"`
	Epoch    *float64 `json:"epoch,omitempty"`
	Loss     *float64 `json:"loss,omitempty"`
	Accuracy *float64 `json:"accuracy,omitempty"`
	// Figures are what else the program printed about its speed and its communication, by their names, such as throughput,
	// bandwidth_gbps, latency_us or message_rate.
	Figures map[string]float64 `json:"figures,omitempty"`
	// NotANumber is set if the program printed NaN or infinity.
	NotANumber bool `json:"notANumber,omitempty"`
}

// Metrics are charts of what the pods of a job use.
type Metrics struct {
	// Source is Prometheus or metrics.k8s.io; empty without charts.
	Source string  `json:"source,omitempty"`
	Charts []Chart `json:"charts"`
	// Reason is why there are no charts, or only those of the metrics API.
	Reason string `json:"reason,omitempty"`
}

// Chart is a figure of each pod over time.
type Chart struct {
	Title string `json:"title"`
	// Unit is cores, bytes, bytes/s, packets/s or percent.
	Unit  string      `json:"unit"`
	Lines []ChartLine `json:"lines"`
	// Aggregates are the mean of the pods, and their sum unless the unit is percent; none for a single pod.
	Aggregates []ChartLine `json:"aggregates"`
}

// ChartLine is the figure of a pod, or of all.
type ChartLine struct {
	Name    string   `json:"name"`
	Samples []Sample `json:"samples"`
}

// Sample is a value at a time, in seconds since 1970.
type Sample struct {
	Time  int64   `json:"t"`
	Value float64 `json:"v"`
}

// Templates are the templates of a namespace.
type Templates struct {
	Templates []Template `json:"templates"`
}

// Template is a saved job with parameters.
type Template struct {
	Name        string              `json:"name"`
	Description string              `json:"description,omitempty"`
	Kind        string              `json:"kind,omitempty"`
	Created     time.Time           `json:"created"`
	Parameters  []TemplateParameter `json:"parameters"`
	// Error is set if the template is not valid.
	Error string `json:"error,omitempty"`
}

// TemplateParameter is a value that a template leaves open.
type TemplateParameter struct {
	Name     string `json:"name"`
	Default  string `json:"default,omitempty"`
	Required bool   `json:"required"`
}

// TemplateRequest saves a job as a template. Texts of YAML such as ${WORKERS:-4} are its parameters.
type TemplateRequest struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Job         SpecRequest `json:"job"`
	// Replace overwrites a template of the same name.
	Replace bool `json:"replace,omitempty"`
}

// TemplateResult is a template that was saved, or a problem.
type TemplateResult struct {
	Message string   `json:"message,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// CloneRequest asks for a job with the fields of another and some changes.
type CloneRequest struct {
	// Name is the name of the new job; empty for the next free number.
	Name string `json:"name,omitempty"`
	// Changes are FIELD=VALUE, such as workers=8.
	Changes []string `json:"changes"`
	// DryRun only previews.
	DryRun bool `json:"dryRun,omitempty"`
}

// CloneForm is what a form needs to clone a job.
type CloneForm struct {
	// Request creates the clone, under the next free name.
	Request SpecRequest `json:"request"`
	// Kept are the paths of the job's fields that the request does not contain, and that its clone keeps.
	Kept []string `json:"kept"`
	// Note is why the request is YAML: no specification describes the job. It is empty otherwise.
	Note string `json:"note,omitempty"`
}

// Draft is a job that is not created yet, or was created.
type Draft struct {
	Namespace string `json:"namespace,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Name      string `json:"name,omitempty"`
	YAML      string `json:"yaml,omitempty"`
	// Diff is the unified diff to the original of a clone.
	Diff string `json:"diff,omitempty"`
	// Words describe the job in sentences.
	Words    []string  `json:"words,omitempty"`
	Commands []Snippet `json:"commands,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
	// Cost is the cost of an hour, with the currency; empty without prices.
	Cost string `json:"cost,omitempty"`
	// Requests are the sums over all pods.
	Requests []Quantity `json:"requests,omitempty"`
	// Problem is why the job cannot be created as it is; null if it can.
	Problem *Problem `json:"problem,omitempty"`
	Created bool     `json:"created,omitempty"`
}

// Quantity is an amount of a resource.
type Quantity struct {
	Resource string  `json:"resource"`
	Amount   float64 `json:"amount"`
	Text     string  `json:"text"`
}

// SpecRequest is a new job by its specification, or as YAML.
type SpecRequest struct {
	Spec jobs.Spec `json:"spec"`
	// CommandLine is the command as it is written in a shell. It replaces spec.command.
	CommandLine string `json:"commandLine,omitempty"`
	// FlagLine are more flags of mpirun as they are written in a shell. They replace spec.mpiFlags.
	FlagLine string `json:"flagLine,omitempty"`
	// Description is shown on the job's page.
	Description string `json:"description,omitempty"`
	// DeadlineSeconds ends the job after a time; 0 for never. It replaces spec.deadline.
	DeadlineSeconds int64 `json:"deadlineSeconds,omitempty"`
	// GangTimeoutSeconds ends an attempt whose pods are not all scheduled by then; 0 for the cluster's default. It replaces
	// spec.gangTimeout.
	GangTimeoutSeconds int64 `json:"gangTimeoutSeconds,omitempty"`
	// Original is the job of the namespace, as KIND/NAME, that the job is a clone of: its fields that a specification cannot
	// contain are kept.
	Original string `json:"original,omitempty"`
	// YAML is a job as YAML or JSON, instead of a specification.
	YAML string `json:"yaml,omitempty"`
	// Template is the name of a template, with the values of its parameters, instead of a specification. Only name and
	// namespace of the specification then count.
	Template string            `json:"template,omitempty"`
	Values   map[string]string `json:"values,omitempty"`
	// DryRun only checks: the API server and its webhooks check the job, too, quotas included.
	DryRun bool `json:"dryRun,omitempty"`
}

// Choices are what a new job in a namespace can use.
type Choices struct {
	Runtimes    []Runtime    `json:"runtimes"`
	Queues      []Queue      `json:"queues"`
	Quotas      []Quota      `json:"quotas"`
	Connections []Connection `json:"connections"`
	Priorities  []string     `json:"priorities"`
	// Images are those of the namespace's jobs, the latest first, and then those of the runtimes.
	Images []string `json:"images"`
	// GPUs are the GPU resources of the cluster's nodes, as far as the user may read them.
	GPUs []string `json:"gpus"`
	// Defaults are those of the last job that the user ran successfully here; null without one.
	Recommended *Recommendation `json:"recommended,omitempty"`
	// Missing says which of these the user may not read.
	Missing []string `json:"missing"`
}

// Recommendation is taken from a past job of the user.
type Recommendation struct {
	Job     string `json:"job"`
	Image   string `json:"image,omitempty"`
	Command string `json:"command,omitempty"`
	Workers int32  `json:"workers"`
	CPU     string `json:"cpu,omitempty"`
	Memory  string `json:"memory,omitempty"`
	GPU     int64  `json:"gpu,omitempty"`
	Runtime string `json:"runtime,omitempty"`
}

// Connection is a data connection: a Secret whose values are never read.
type Connection struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	Type        string `json:"type,omitempty"`
}

// Quota is a limit of a ResourceQuota.
type Quota struct {
	// Name is the name of the ResourceQuota or ClusterResourceQuota, Resource such as requests.nvidia.com/gpu.
	Name     string  `json:"name"`
	Resource string  `json:"resource"`
	Hard     float64 `json:"hard"`
	Used     float64 `json:"used"`
	HardText string  `json:"hardText"`
	UsedText string  `json:"usedText"`
	// Shared is set for a ClusterResourceQuota of OpenShift: Used is the sum of all projects that it limits.
	Shared bool `json:"shared,omitempty"`
}

// Queue is a LocalQueue of Kueue.
type Queue struct {
	Namespace    string `json:"namespace"`
	Name         string `json:"name"`
	ClusterQueue string `json:"clusterQueue"`
	// Active is unset if the queue admits no jobs; Message then says why.
	Active  bool   `json:"active"`
	Message string `json:"message,omitempty"`
	Pending int64  `json:"pending"`
	Running int64  `json:"running"`
	// Resources are the quota of the ClusterQueue; empty if the user may not read it.
	Resources []QueueResource `json:"resources"`
	// Waiting are the jobs that wait in the queue, by position.
	Waiting []Row `json:"waiting"`
	// WaitP50 and WaitP90 are how many seconds jobs of the namespace have waited in the queue: half of them, and nine of ten,
	// at most. Samples is the number of these jobs; 0 if there are none.
	WaitP50 int64 `json:"waitP50,omitempty"`
	WaitP90 int64 `json:"waitP90,omitempty"`
	Samples int   `json:"samples,omitempty"`
}

// QueueResource is the quota of a resource in a flavor.
type QueueResource struct {
	Flavor   string  `json:"flavor"`
	Resource string  `json:"resource"`
	Nominal  float64 `json:"nominal"`
	Used     float64 `json:"used"`
}

// Quotas are the queues and quotas of namespaces.
type Quotas struct {
	Queues []Queue           `json:"queues"`
	Quotas []NamespaceQuotas `json:"quotas"`
	// Kueue is unset if the cluster has no queues.
	Kueue   bool     `json:"kueue"`
	Missing []string `json:"missing"`
}

// NamespaceQuotas are the quotas of a namespace.
type NamespaceQuotas struct {
	Namespace string  `json:"namespace"`
	Quotas    []Quota `json:"quotas"`
}

// Runtimes are the runtimes of Kubeflow Trainer.
type Runtimes struct {
	Runtimes []Runtime `json:"runtimes"`
	// Installed is unset if the cluster has no Kubeflow Trainer.
	Installed bool `json:"installed"`
	// CanManage is set if the user may create and change runtimes of the cluster.
	CanManage bool `json:"canManage"`
	// CanDelete is set if the user may delete runtimes of the cluster.
	CanDelete bool     `json:"canDelete"`
	Missing   []string `json:"missing"`
}

// RuntimeCopy describes a runtime of the cluster to create from another.
type RuntimeCopy struct {
	From     string               `json:"from"`
	Name     string               `json:"name"`
	Settings jobs.RuntimeSettings `json:"settings"`
}

// RuntimeJobs are the jobs of a runtime of the cluster that have not ended, as far as the user may see them.
type RuntimeJobs struct {
	// Running is the number of jobs that have pods, Waiting the number of those that wait or are suspended.
	Running int `json:"running"`
	Waiting int `json:"waiting"`
	// Jobs are the first of them, by namespace and name.
	Jobs []Row `json:"jobs"`
}

// Runtime is a runtime of Kubeflow Trainer.
type Runtime struct {
	Kind string `json:"kind"`
	// Namespace is empty for a runtime of the cluster.
	Namespace      string `json:"namespace,omitempty"`
	Name           string `json:"name"`
	Framework      string `json:"framework,omitempty"`
	MPI            bool   `json:"mpi"`
	Implementation string `json:"implementation,omitempty"`
	Slots          string `json:"slots,omitempty"`
	Image          string `json:"image,omitempty"`
	MaxWorkers     string `json:"maxWorkers,omitempty"`
	MaxGPUs        string `json:"maxGPUs,omitempty"`
	NodeLabels     string `json:"nodeLabels,omitempty"`
	// Deleting is set while finalizers keep a deleted runtime.
	Deleting bool     `json:"deleting,omitempty"`
	Errors   []string `json:"errors"`
	// Tests are the tests of the runtime, the latest first.
	Tests []RuntimeTest `json:"tests"`
}

// RuntimeTest is a test of a runtime.
type RuntimeTest struct {
	Namespace string                  `json:"namespace"`
	Name      string                  `json:"name"`
	Phase     string                  `json:"phase"`
	Message   string                  `json:"message,omitempty"`
	Created   time.Time               `json:"created"`
	Checks    []v1alpha1.RuntimeCheck `json:"checks"`
}

// TestRequest starts a test of a runtime in a namespace.
type TestRequest struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	// Image, CPU, Memory and GPU replace those of the runtime; empty for the runtime's.
	Image  string `json:"image,omitempty"`
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
	GPU    string `json:"gpu,omitempty"`
	Queue  string `json:"queue,omitempty"`
}

// Usage is what jobs have held.
type Usage struct {
	Lines []jobs.UsageLine `json:"lines"`
	// Failures are the causes for which jobs failed in the period, the most frequent first.
	Failures []FailureCount `json:"failures"`
	Unpriced []string       `json:"unpriced"`
	Missing  []string       `json:"missing"`
	Commands []Snippet      `json:"commands"`
}

// FailureCount is a cause for which jobs failed.
type FailureCount struct {
	// Code is the code of the first finding; empty if the cause is unknown.
	Code string `json:"code"`
	Jobs int    `json:"jobs"`
	// Guide is set if the help explains the code.
	Guide bool `json:"guide"`
}

// Comparison is two jobs side by side.
type Comparison struct {
	Note     string              `json:"note,omitempty"`
	Sections []ComparisonSection `json:"sections"`
	Diff     string              `json:"diff,omitempty"`
	Commands []Snippet           `json:"commands"`
}

// ComparisonSection is a part of a comparison.
type ComparisonSection struct {
	Title string               `json:"title"`
	Rows  []jobs.ComparedValue `json:"rows"`
}

// ActionResult is what an action did.
type ActionResult struct {
	Result  string `json:"result"`
	Message string `json:"message"`
}

// LogLine is a line of a log.
type LogLine struct {
	// Time is empty if unknown.
	Time string `json:"t,omitempty"`
	Pod  string `json:"p"`
	// Place is launcher, launcher#2 or worker-2.
	Place string `json:"w"`
	// Rank is -1 if unknown.
	Rank  int    `json:"r"`
	Level string `json:"l,omitempty"`
	Text  string `json:"x"`
}

// LogEvent is an event of a stream of logs.
type LogEvent struct {
	Lines []LogLine `json:"lines,omitempty"`
	// Waiting are the pods that have not started, and why; null if that has not changed.
	Waiting []string `json:"waiting"`
	Note    string   `json:"note,omitempty"`
	// Done is set when there are no more lines; Untagged is the number of lines that were left out because their rank is
	// unknown.
	Done     bool `json:"done,omitempty"`
	Untagged int  `json:"untagged,omitempty"`
}
