package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
)

// create creates the job of a specification or of YAML, or with dryRun checks it as the API server and the webhooks would.
// A job that cannot be created is a draft with a problem, so that the page shows both.
func (s *Server) create(c *call) (any, error) {
	request, err := body[SpecRequest](c)
	if err != nil {
		return nil, err
	}
	object, problem, err := c.build(&request)
	if err != nil {
		return nil, err
	}
	if problem != nil {
		return Draft{Problem: problem}, nil
	}
	draft, err := s.submit(c, object, request.DryRun)
	switch {
	case request.Template != "":
		draft.Words = []string{fmt.Sprintf("%s %s in namespace %s, from the template %s.", object.GetKind(), object.GetName(), object.GetNamespace(), request.Template)}
		draft.Commands = []Snippet{{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand(templateCommand(&request, object))}}
	case request.YAML == "":
		draft.Words = words(request.Spec, object)
		draft.Commands = s.specCommands(request.Spec)
	default:
		draft.Words = []string{fmt.Sprintf("%s %s in namespace %s, as written in YAML.", object.GetKind(), object.GetName(), object.GetNamespace())}
		draft.Commands = []Snippet{{"Command line", "sh", s.options.Program + " create -f job.yaml -n " + phrase.QuoteCommand([]string{object.GetNamespace()})}}
	}
	return draft, err
}

// build returns the job that is requested, or a problem of the request.
func (c *call) build(request *SpecRequest) (*unstructured.Unstructured, *Problem, error) {
	if request.Template != "" {
		return c.fromTemplate(request)
	}
	if request.YAML != "" {
		object, err := fromYAML(request.YAML, request.Spec.Namespace)
		return object, invalid(err), nil
	}
	spec := &request.Spec
	spec.Deadline = time.Duration(request.DeadlineSeconds) * time.Second
	errs := nameErrors(spec)
	if request.CommandLine != "" {
		command, err := jobs.ParseCommand(request.CommandLine)
		if err != nil {
			errs = append(errs, jobs.FieldError{Field: "command", Value: request.CommandLine, Reason: err.Error()})
			command = []string{request.CommandLine} // it is not missing
		}
		spec.Command = command
	}
	if errs = append(errs, spec.Validate()...); len(errs) > 0 {
		return nil, invalid(jobs.Invalid(errs...)), nil
	}
	built, err := c.jobs.Build(c.ctx, *spec)
	if err != nil {
		if status, problem := problemOf(err); status < 500 && status != 401 {
			return nil, &problem, nil
		}
		return nil, nil, err
	}
	if request.Description != "" {
		notes := built.Job.GetAnnotations()
		if notes == nil {
			notes = map[string]string{}
		}
		notes[descriptionNote] = request.Description
		built.Job.SetAnnotations(notes)
	}
	return built.Job, nil, nil
}

// fromTemplate returns the job of a template, or a problem of the request.
func (c *call) fromTemplate(request *SpecRequest) (*unstructured.Unstructured, *Problem, error) {
	spec := &request.Spec
	if errs := nameErrors(spec); len(errs) > 0 {
		return nil, invalid(jobs.Invalid(errs...)), nil
	}
	template, err := c.jobs.Template(c.ctx, spec.Namespace, request.Template)
	if err == nil {
		var object *unstructured.Unstructured
		if object, err = c.jobs.JobFromTemplate(c.ctx, spec.Namespace, spec.Name, template, request.Values); err == nil {
			return object, nil, nil
		}
	}
	if status, problem := problemOf(err); status < 500 && status != 401 {
		return nil, &problem, nil
	}
	return nil, nil, err
}

// templateCommand returns the command that creates the job of a template.
func templateCommand(request *SpecRequest, object *unstructured.Unstructured) []string {
	line := []string{"templates", "apply", request.Template, object.GetName(), "-n", object.GetNamespace()}
	for _, name := range keys(request.Values) {
		line = append(line, "--param", name+"="+request.Values[name])
	}
	return line
}

// invalid returns the problem of an error; nil for none.
func invalid(err error) *Problem {
	if err == nil {
		return nil
	}
	_, problem := problemOf(err)
	return &problem
}

// nameErrors returns what is wrong with the name and the namespace of a job. Names of pods are made from the job's, and are
// host names.
func nameErrors(spec *jobs.Spec) []jobs.FieldError {
	var errs []jobs.FieldError
	if reasons := validation.IsDNS1035Label(spec.Name); spec.Name != "" && len(reasons) > 0 {
		errs = append(errs, jobs.FieldError{Field: "name", Value: spec.Name, Reason: "is not allowed; use lower-case letters, digits and -, and start with a letter, such as train-1"})
	}
	if spec.Namespace == "" {
		errs = append(errs, jobs.FieldError{Field: "namespace", Reason: "is required"})
	}
	return errs
}

// fromYAML reads a job. A job without a namespace gets the given one.
func fromYAML(text, namespace string) (*unstructured.Unstructured, error) {
	if len(text) > maxYAML {
		return nil, jobs.Invalid(jobs.FieldError{Field: "yaml", Reason: fmt.Sprintf("has %d KiB, which is more than the limit of %d KiB", len(text)>>10, maxYAML>>10)})
	}
	objects, err := jobs.Decode([]byte(text))
	if err != nil {
		return nil, jobs.Invalid(jobs.FieldError{Field: "yaml", Reason: err.Error()})
	}
	if len(objects) != 1 {
		return nil, jobs.Invalid(jobs.FieldError{Field: "yaml", Reason: fmt.Sprintf("must contain one job; it contains %d objects", len(objects))})
	}
	object := &unstructured.Unstructured{Object: objects[0]}
	if !jobs.IsJob(object.GroupVersionKind()) {
		return nil, jobs.Invalid(jobs.FieldError{Field: "yaml", Value: cmp.Or(object.GetKind(), "an object without kind"), Reason: "is not a job; use kind MPIJob (kubeflow.org/v2beta1) or TrainJob (trainer.kubeflow.org/v1alpha1)"})
	}
	if object.GetName() == "" {
		return nil, jobs.Invalid(jobs.FieldError{Field: "metadata.name", Reason: "is required"})
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	if object.GetNamespace() == "" {
		return nil, jobs.Invalid(jobs.FieldError{Field: "metadata.namespace", Reason: "is required"})
	}
	return object, nil
}

// submit creates a job, or checks it. What the API server or a check refuses is the draft's problem.
func (s *Server) submit(c *call, object *unstructured.Unstructured, dryRun bool) (Draft, error) {
	clean := object.DeepCopy()
	text, err := yaml.Marshal(clean.Object)
	if err != nil {
		return Draft{}, err
	}
	draft := Draft{Namespace: object.GetNamespace(), Kind: object.GetKind(), Name: object.GetName(), YAML: string(text), Requests: requestsOf(object)}
	if cost, err := c.jobs.HourlyCost(c.ctx, object); err == nil && cost != nil {
		draft.Cost = cost.Amount
	}
	warnings, err := jobs.Check(object)
	if err != nil {
		draft.Problem = invalid(err)
		return draft, nil
	}
	mode := jobs.DryRunNone
	if dryRun {
		mode = jobs.DryRunServer
	}
	collector := &warningCollector{}
	err = c.jobs.Create(withWarnings(c.ctx, collector), object, mode)
	draft.Warnings = unique(append(warnings, collector.texts()...))
	if err == nil {
		draft.Created = !dryRun
		return draft, nil
	}
	status, problem := problemOf(err)
	if status == 401 || status >= 500 {
		return draft, err
	}
	draft.Problem = &problem
	return draft, nil
}

func unique(texts []string) []string {
	seen := map[string]bool{}
	all := []string{}
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			all = append(all, text)
		}
	}
	return all
}

// requestsOf returns the sums of what the pods of a job request; nil if the job alone does not determine it.
func requestsOf(job *unstructured.Unstructured) []Quantity {
	size, known := jobs.SizeOf(job)
	if !known {
		return nil
	}
	sum := corev1.ResourceList{}
	podspec.Add(sum, podspec.Requests(size.Worker), int64(size.Workers))
	podspec.Add(sum, podspec.Requests(size.Launcher), 1)
	sum[corev1.ResourcePods] = *quantityOf(int64(size.Workers) + 1)
	var all []Quantity
	for _, name := range sortedNames(sum) {
		amount := sum[name]
		all = append(all, Quantity{string(name), amount.AsApproximateFloat64(), amountText(name, amount)})
	}
	return all
}

// amountText returns an amount as people write it, such as 8.1, or 16.1 GiB.
func amountText(name corev1.ResourceName, amount resource.Quantity) string {
	value := amount.AsApproximateFloat64()
	round := func(value float64) string {
		return strconv.FormatFloat(math.Round(value*10)/10, 'f', -1, 64)
	}
	if name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage {
		for _, unit := range []struct {
			name string
			size float64
		}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
			if value >= unit.size {
				return round(value/unit.size) + " " + unit.name
			}
		}
		return round(value) + " B"
	}
	if value > 0 && value < 0.1 {
		return strconv.FormatFloat(math.Round(value*1000)/1000, 'f', -1, 64)
	}
	return round(value)
}

// words describes a job in sentences.
func words(spec jobs.Spec, job *unstructured.Unstructured) []string {
	slots := max(1, spec.GPU)
	if spec.Slots != nil {
		slots = *spec.Slots
	}
	each := []string{}
	if cpu, err := resource.ParseQuantity(spec.CPU); err == nil {
		text := amountText(corev1.ResourceCPU, cpu)
		each = append(each, text+map[bool]string{true: " CPU", false: " CPUs"}[text == "1"])
	}
	if memory, err := resource.ParseQuantity(spec.Memory); err == nil {
		each = append(each, amountText(corev1.ResourceMemory, memory)+" of memory")
	}
	if spec.GPU > 0 {
		each = append(each, phrase.Count(spec.GPU, "GPU"))
	}
	size := fmt.Sprintf("The job %s runs %s in namespace %s", spec.Name, phrase.Count(spec.Workers, "worker"), spec.Namespace)
	if len(each) > 0 {
		size += ", each with " + strings.Join(each, ", ")
	}
	all := []string{size + "."}
	if spec.Runtime != "" {
		all = append(all, fmt.Sprintf("It uses the runtime %s%s.", spec.Runtime, prefixed(" with the image ", spec.Image)))
	} else {
		all = append(all, fmt.Sprintf("All pods use the image %s, with %s.", spec.Image, cmp.Or(spec.Implementation, string(mpi.OpenMPI))))
	}
	command := phrase.QuoteCommand(jobs.FromObject(job).Summary().Command)
	if jobs.StartsRanks(spec.Command) {
		all = append(all, fmt.Sprintf("The launcher runs %s.", command))
	} else {
		all = append(all, fmt.Sprintf("%s run %s: %d on each worker.", phrase.Count(int64(slots)*int64(spec.Workers), "rank"), phrase.QuoteCommand(spec.Command), slots))
	}
	if spec.Queue != "" {
		all = append(all, fmt.Sprintf("It waits in the queue %s until all of its pods can run.", spec.Queue))
	} else {
		all = append(all, "It starts as soon as all of its pods fit, or as your cluster schedules it.")
	}
	if len(spec.Connections) > 0 {
		all = append(all, "Every rank gets the variables of "+strings.Join(spec.Connections, ", ")+".")
	}
	if len(spec.Env) > 0 {
		all = append(all, fmt.Sprintf("Every rank gets %s of yours.", phrase.Count(int64(len(spec.Env)), "variable")))
	}
	if spec.Retries != nil && *spec.Retries > 0 {
		all = append(all, fmt.Sprintf("A failed command is run again up to %s.", phrase.Times(*spec.Retries)))
	}
	if spec.Deadline > 0 {
		all = append(all, fmt.Sprintf("The job is ended after %s.", spec.Deadline))
	}
	if spec.Suspend {
		all = append(all, "It is created suspended and starts when you resume it.")
	}
	return all
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// specCommands returns what creates the job of a specification on the command line and in Python.
func (s *Server) specCommands(spec jobs.Spec) []Snippet {
	line := []string{"create", spec.Name, "--namespace", spec.Namespace, "--workers", strconv.Itoa(int(spec.Workers))}
	python := []string{pythonText(spec.Name), "namespace=" + pythonText(spec.Namespace), "workers=" + strconv.Itoa(int(spec.Workers))}
	var resources []string
	text := func(flag, argument, value string) {
		if value != "" {
			line = append(line, flag, value)
			if argument != "" {
				python = append(python, argument+"="+pythonText(value))
			}
		}
	}
	text("--runtime", "runtime", spec.Runtime)
	text("--image", "image", spec.Image)
	if spec.GPU > 0 {
		line = append(line, "--gpu", strconv.Itoa(int(spec.GPU)))
		resources = append(resources, "gpu="+strconv.Itoa(int(spec.GPU)))
	}
	if spec.CPU != "" {
		line = append(line, "--cpu", spec.CPU)
		resources = append(resources, "cpu="+pythonText(spec.CPU))
	}
	if spec.Memory != "" {
		line = append(line, "--memory", spec.Memory)
		resources = append(resources, "memory="+pythonText(spec.Memory))
	}
	if len(resources) > 0 {
		python = append(python, "resources=ResourceRequirements("+strings.Join(resources, ", ")+")")
	}
	if spec.Slots != nil {
		line = append(line, "--slots", strconv.Itoa(int(*spec.Slots)))
		python = append(python, "slots_per_worker="+strconv.Itoa(int(*spec.Slots)))
	}
	text("--implementation", "mpi_implementation", spec.Implementation)
	text("--queue", "queue", spec.Queue)
	text("--priority", "priority", spec.Priority)
	for _, connection := range spec.Connections {
		line = append(line, "--connection", connection)
	}
	if len(spec.Connections) > 0 {
		python = append(python, "connections="+pythonList(spec.Connections))
	}
	var env []string
	for _, variable := range spec.Env {
		line = append(line, "--env", variable.Name+"="+variable.Value)
		env = append(env, pythonText(variable.Name)+": "+pythonText(variable.Value))
	}
	if len(env) > 0 {
		python = append(python, "env={"+strings.Join(env, ", ")+"}")
	}
	if spec.Retries != nil {
		line = append(line, "--retries", strconv.Itoa(int(*spec.Retries)))
		python = append(python, "retries="+strconv.Itoa(int(*spec.Retries)))
	}
	if spec.Deadline > 0 {
		line = append(line, "--deadline", spec.Deadline.String())
		python = append(python, "deadline="+pythonText(strconv.Itoa(int(spec.Deadline.Seconds()))+"s"))
	}
	if spec.Suspend {
		line = append(line, "--suspend")
		python = append(python, "suspend=True")
	}
	line = append(line, "--command", phrase.QuoteCommand(spec.Command))
	python = append(python, "command="+pythonList(spec.Command))
	imports := "MPIJob"
	if len(resources) > 0 {
		imports += ", ResourceRequirements"
	}
	return []Snippet{
		{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand(line)},
		{"Python", "python", "from openshift_ai_sdk.training import " + imports + "\n\njob = MPIJob(\n    " + strings.Join(python, ",\n    ") + ",\n)\njob.create()"},
	}
}

// pythonText returns a string literal of Python. Go's are valid ones, except for escapes that printable texts do not need.
func pythonText(text string) string { return strconv.QuoteToASCII(text) }

func pythonList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = pythonText(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// clone runs a job again with changes, or with dryRun shows what would change.
func (s *Server) clone(c *call) (any, error) {
	request, err := body[CloneRequest](c)
	if err != nil {
		return nil, err
	}
	job, err := c.find()
	if err != nil {
		return nil, err
	}
	var changes []jobs.Change
	line := []string{"clone", job.Name}
	if request.Name != "" {
		line = append(line, request.Name)
	}
	line = append(line, "-n", job.Namespace)
	for _, text := range request.Changes {
		change, err := jobs.ParseChange(text)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
		line = append(line, "--set", text)
	}
	if reasons := validation.IsDNS1035Label(request.Name); request.Name != "" && len(reasons) > 0 {
		return nil, jobs.Invalid(jobs.FieldError{Field: "name", Value: request.Name, Reason: "is not allowed; use lower-case letters, digits and -, and start with a letter"})
	}
	clone, err := c.jobs.Clone(c.ctx, job, request.Name, changes...)
	if err != nil {
		return nil, err
	}
	diff, err := jobs.Diff(job.String(), clone.Original, jobs.FromObject(clone.Job).String(), clone.Job)
	if err != nil {
		return nil, err
	}
	draft, err := s.submit(c, clone.Job, request.DryRun)
	draft.Diff = diff
	draft.Commands = []Snippet{{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand(line)}}
	return draft, err
}

// suspend and resume stop a job and start it again.
func (s *Server) suspend(c *call) (any, error) { return c.setSuspended(c.jobs.Suspend) }
func (s *Server) resume(c *call) (any, error)  { return c.setSuspended(c.jobs.Resume) }

func (c *call) setSuspended(do func(context.Context, jobs.Job, jobs.DryRun) (jobs.SuspendReport, error)) (any, error) {
	job, err := c.find()
	if err != nil {
		return nil, err
	}
	report, err := do(c.ctx, job, jobs.DryRunNone)
	if err != nil {
		return nil, err
	}
	return ActionResult{string(report.Result), suspendText(job, report)}, nil
}

// suspendText says what suspending or resuming a job did.
func suspendText(job jobs.Job, report jobs.SuspendReport) string {
	text := map[jobs.SuspendResult]string{
		jobs.Suspended: "is suspended: its pods are deleted until it is resumed", jobs.Resumed: "is resumed", jobs.AlreadySuspended: "was suspended already",
		jobs.NotSuspended: "was not suspended", jobs.AlreadyEnded: "has ended already", jobs.WaitsInQueue: "is not suspended; it waits in its queue",
		jobs.QueueGaveUp: "was given up by its queue, which would give it up again",
	}[report.Result]
	if report.QueueMessage != "" {
		text += ": " + report.QueueMessage
	}
	switch {
	case report.Result == jobs.Resumed && report.Queue != "":
		text += " and waits in queue " + report.Queue + " until it is admitted"
	case report.Note == jobs.WorkloadsForbidden && report.Result == jobs.Suspended:
		text += ". It is in a queue, and you may not read its Workload: Kueue may start it again"
	}
	return job.String() + " " + text + "."
}

// cancel ends a job that has not ended: it is deleted with its pods, and its report stays.
func (s *Server) cancel(c *call) (any, error) {
	request, err := body[CancelRequest](c)
	if err != nil {
		return nil, err
	}
	job, err := c.find()
	if err != nil {
		return nil, err
	}
	if request.UID != "" && request.UID != string(job.UID) {
		return nil, &jobs.NotFoundError{What: "job with this UID", Namespace: job.Namespace, Name: job.Name}
	}
	var grace *time.Duration
	if request.GraceSeconds != nil {
		if *request.GraceSeconds < 0 || *request.GraceSeconds > 86400 {
			return nil, jobs.Invalid(jobs.FieldError{Field: "graceSeconds", Value: strconv.FormatInt(*request.GraceSeconds, 10), Reason: "is not allowed; use 0 to 86400 seconds"})
		}
		grace = new(time.Duration(*request.GraceSeconds) * time.Second)
	}
	if err := c.jobs.Cancel(c.ctx, job, grace, jobs.DryRunNone); err != nil {
		return nil, err
	}
	return ActionResult{"Cancelled", job.String() + " is cancelled: its programs are asked to end. Its report is kept."}, nil
}

// remove deletes a job with its pods. Its report stays.
func (s *Server) remove(c *call) (any, error) {
	job, err := c.find()
	if err != nil {
		return nil, err
	}
	if uid := c.URL.Query().Get("uid"); uid != "" && uid != string(job.UID) {
		return nil, &jobs.NotFoundError{What: "job with this UID", Namespace: job.Namespace, Name: job.Name}
	}
	if err := c.jobs.Delete(c.ctx, job, jobs.DryRunNone); err != nil {
		return nil, err
	}
	return ActionResult{"Deleted", job.String() + " is deleted with its pods. Its report is kept."}, nil
}

// warningCollector collects the warnings of the API server about a request.
type warningCollector struct {
	mu  sync.Mutex
	all []string
}

type warningKey struct{}

func withWarnings(ctx context.Context, collector *warningCollector) context.Context {
	return context.WithValue(ctx, warningKey{}, collector)
}

func (w *warningCollector) texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

// warnings passes the warnings of the API server to the collector of the request's context.
type warnings struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if collector, is := ctx.Value(warningKey{}).(*warningCollector); is && code == 299 {
		collector.mu.Lock()
		defer collector.mu.Unlock()
		collector.all = append(collector.all, text)
	}
}

// compare compares two jobs.
func (s *Server) compare(c *call) (any, error) {
	var found [2]jobs.Job
	var errs [2]error
	references := list(c.URL.Query(), "job")
	if len(references) != 2 {
		return nil, jobs.Invalid(jobs.FieldError{Field: "job", Reason: "must name two jobs, as KIND/NAME"})
	}
	for i, reference := range references {
		found[i], errs[i] = c.jobs.Find(c.ctx, c.namespace(), reference)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	prices, err := c.jobs.Prices(c.ctx, c.namespace())
	if err != nil {
		prices = nil // an error in the prices does not keep jobs from being compared
	}
	result := jobs.Compare(found[0], found[1], prices, s.now())
	shown := Comparison{Note: result.Note, Sections: []ComparisonSection{}, Commands: []Snippet{{
		"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand([]string{"compare", found[0].String(), found[1].String(), "-n", c.namespace()}),
	}}}
	for _, section := range []struct {
		title string
		rows  []jobs.ComparedValue
	}{{"Run", result.Run}, {"Findings", result.Findings}, {"Usage", result.Usage}, {"Fields", result.Fields}} {
		if len(section.rows) > 0 {
			shown.Sections = append(shown.Sections, ComparisonSection{section.title, section.rows})
		}
	}
	return shown, nil
}
