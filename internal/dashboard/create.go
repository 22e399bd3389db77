package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
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
	object, clone, problem, err := c.build(&request)
	if err != nil {
		return nil, err
	}
	if problem != nil {
		return Draft{Problem: problem}, nil
	}
	draft, err := s.submit(c, object.DeepCopy(), request.DryRun) // the API server's answer adds fields
	switch {
	case clone != nil:
		draft.Words = words(&request, object)
		draft.Diff, _ = clone.diff() // the review shows the YAML as well
		draft.Commands = []Snippet{{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand(clone.command())}}
	case request.Template != "":
		draft.Words = []string{fmt.Sprintf("%s %s in namespace %s, from the template %s.", object.GetKind(), object.GetName(), object.GetNamespace(), request.Template)}
		draft.Commands = []Snippet{{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand(templateCommand(&request, object))}}
	case request.YAML == "":
		draft.Words = words(&request, object)
		draft.Commands = s.specCommands(request.Spec, object)
	default:
		draft.Words = []string{fmt.Sprintf("%s %s in namespace %s, as written in YAML.", object.GetKind(), object.GetName(), object.GetNamespace())}
		draft.Commands = []Snippet{{"Command line", "sh", s.options.Program + " create -f job.yaml -n " + phrase.QuoteCommand([]string{object.GetNamespace()})}}
	}
	return draft, err
}

// build returns the job that is requested, and what it is a clone of, or a problem of the request.
func (c *call) build(request *SpecRequest) (*unstructured.Unstructured, *cloned, *Problem, error) {
	if request.Template != "" {
		object, problem, err := c.fromTemplate(request)
		return object, nil, problem, err
	}
	if request.YAML != "" {
		object, err := fromYAML(request.YAML, request.Spec.Namespace)
		return object, nil, invalid(err), nil
	}
	if errs := complete(request); len(errs) > 0 {
		return nil, nil, invalid(jobs.Invalid(errs...)), nil
	}
	object, clone, err := c.fromSpec(request)
	if err != nil {
		if status, problem := problemOf(err); status < 500 && status != 401 {
			return nil, nil, &problem, nil
		}
		return nil, nil, nil, err
	}
	notes := object.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	if notes[descriptionNote] = request.Description; request.Description == "" {
		delete(notes, descriptionNote)
	}
	if object.SetAnnotations(notes); len(notes) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
	}
	return object, clone, nil, nil
}

// complete reads the texts of a request into its specification, and returns what is wrong with it.
func complete(request *SpecRequest) []jobs.FieldError {
	spec := &request.Spec
	spec.Deadline, spec.GangTimeout = time.Duration(request.DeadlineSeconds)*time.Second, time.Duration(request.GangTimeoutSeconds)*time.Second
	errs := nameErrors(spec)
	if request.CommandLine != "" {
		command, err := jobs.ParseCommand(request.CommandLine)
		if err != nil {
			errs = append(errs, jobs.FieldError{Field: "command", Value: request.CommandLine, Reason: err.Error()})
			command = []string{request.CommandLine} // it is not missing
		}
		spec.Command = command
	}
	flags, err := jobs.SplitCommand(request.FlagLine)
	if err != nil {
		errs = append(errs, jobs.FieldError{Field: "mpiFlags", Value: request.FlagLine, Reason: err.Error()})
	}
	if spec.MPIFlags = flags; spec.GangTimeout > math.MaxInt32*time.Second {
		errs = append(errs, jobs.FieldError{Field: "gangTimeout", Value: spec.GangTimeout.String(), Reason: fmt.Sprintf("is too long; use at most %d seconds", math.MaxInt32)})
	}
	return append(errs, spec.Validate()...)
}

// cloned is a clone with its original.
type cloned struct {
	original jobs.Job
	jobs.Clone
}

func (c cloned) diff() (string, error) {
	return jobs.Diff(c.original.String(), c.Original, jobs.FromObject(c.Job).String(), c.Job)
}

// command returns what clones the job on the command line.
func (c cloned) command() []string {
	line := []string{"clone", c.original.String(), c.Job.GetName(), "-n", c.Job.GetNamespace()}
	for _, change := range c.ChangesOf() {
		line = append(line, "--set", change.String())
	}
	return line
}

// fromSpec returns the job of a specification, or a clone that differs from its original as the specification does.
func (c *call) fromSpec(request *SpecRequest) (*unstructured.Unstructured, *cloned, error) {
	if request.Original == "" {
		built, err := c.jobs.Build(c.ctx, request.Spec)
		return built.Job, nil, err
	}
	original, err := c.jobs.Find(c.ctx, request.Spec.Namespace, request.Original)
	if err != nil {
		return nil, nil, err
	}
	clone, err := c.jobs.CloneWithSpec(c.ctx, original, request.Spec)
	return clone.Job, &cloned{original, clone}, err
}

// form returns what a form needs to clone a job.
func (s *Server) form(c *call) (any, error) {
	job, err := c.find()
	if err != nil {
		return nil, err
	}
	clone, err := c.jobs.Clone(c.ctx, job, "")
	if err != nil {
		return nil, err
	}
	spec, kept, err := c.jobs.SpecOf(c.ctx, job)
	if err != nil {
		status, problem := problemOf(err)
		if status >= 500 || status == 401 {
			return nil, err
		}
		text, err := yaml.Marshal(clone.Job.Object)
		return CloneForm{Request: SpecRequest{Spec: jobs.Spec{Namespace: job.Namespace}, YAML: string(text)}, Kept: []string{}, Note: problem.Message}, err
	}
	request := SpecRequest{
		Spec: spec, CommandLine: commandLine(spec.Command), FlagLine: phrase.QuoteCommand(spec.MPIFlags), Description: job.Object.GetAnnotations()[descriptionNote],
		DeadlineSeconds: int64(spec.Deadline / time.Second), GangTimeoutSeconds: int64(spec.GangTimeout / time.Second), Original: job.String(),
	}
	request.Spec.Name, request.Spec.Deadline, request.Spec.GangTimeout = clone.Job.GetName(), 0, 0
	kept = slices.DeleteFunc(kept, func(path string) bool { return path == "metadata.annotations["+descriptionNote+"]" })
	return CloneForm{Request: request, Kept: orEmpty(kept)}, nil
}

// commandLine returns the text that jobs.ParseCommand reads as a command.
func commandLine(command []string) string {
	if len(command) == 3 && command[0] == "sh" && command[1] == "-c" {
		if parsed, err := jobs.ParseCommand(command[2]); err == nil && slices.Equal(parsed, command) {
			return command[2]
		}
	}
	return phrase.QuoteCommand(command)
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
	text, err := yaml.Marshal(object.Object)
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
func words(request *SpecRequest, job *unstructured.Unstructured) []string {
	spec := request.Spec
	all := slices.Concat([]string{sizeWords(spec)}, programWords(spec, job), scheduleWords(spec), environmentWords(spec), limitWords(spec))
	if request.Description != "" {
		all = append(all, "Its description is: "+phrase.OneLine(request.Description))
	}
	if spec.Suspend {
		all = append(all, "It is created suspended and starts when you resume it.")
	}
	return all
}

// sizeWords describes the workers of a job.
func sizeWords(spec jobs.Spec) string {
	var each []string
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
	return size + prefixed(", each with ", strings.Join(each, ", ")) + "."
}

// programWords describes the image and the command of a job.
func programWords(spec jobs.Spec, job *unstructured.Unstructured) []string {
	image := fmt.Sprintf("All pods use the image %s, with %s.", spec.Image, cmp.Or(spec.Implementation, string(mpi.OpenMPI)))
	if spec.Runtime != "" {
		image = fmt.Sprintf("It uses the runtime %s%s.", spec.Runtime, prefixed(" with the image ", spec.Image))
	}
	if jobs.StartsRanks(spec.Command) {
		return []string{image, fmt.Sprintf("The launcher runs %s.", phrase.QuoteCommand(jobs.FromObject(job).Summary().Command))}
	}
	slots := max(1, spec.GPU)
	if spec.Slots != nil {
		slots = *spec.Slots
	}
	all := []string{image, fmt.Sprintf("%s run %s: %d on each worker.", phrase.Count(int64(slots)*int64(spec.Workers), "rank"), phrase.QuoteCommand(spec.Command), slots)}
	if len(spec.MPIFlags) > 0 {
		all = append(all, fmt.Sprintf("mpirun gets the flags %s.", phrase.QuoteCommand(spec.MPIFlags)))
	}
	return all
}

// scheduleWords describes when a job starts.
func scheduleWords(spec jobs.Spec) []string {
	all := []string{"It starts as soon as all of its pods fit, or as your cluster schedules it."}
	if spec.Queue != "" {
		all = []string{fmt.Sprintf("It waits in the queue %s until all of its pods can run.", spec.Queue)}
	}
	if spec.Priority != "" {
		all = append(all, fmt.Sprintf("Its priority class is %s.", spec.Priority))
	}
	if spec.GangTimeout > 0 {
		all = append(all, fmt.Sprintf("All pods are scheduled together; an attempt ends if not all are scheduled after %s.", durationText(spec.GangTimeout)))
	}
	return all
}

// environmentWords describes the variables and the user of a job's ranks. Values of variables may be secrets.
func environmentWords(spec jobs.Spec) []string {
	var all []string
	if len(spec.Connections) > 0 {
		all = append(all, "Every rank gets the variables of "+strings.Join(spec.Connections, ", ")+".")
	}
	if len(spec.Env) > 0 {
		names := make([]string, len(spec.Env))
		for i := range spec.Env {
			names[i] = spec.Env[i].Name
		}
		all = append(all, fmt.Sprintf("Every rank gets %s of yours: %s.", phrase.Count(int64(len(spec.Env)), "variable"), strings.Join(names, ", ")))
	}
	if spec.RunAsUser != nil {
		all = append(all, fmt.Sprintf("Its programs run as user %d.", *spec.RunAsUser))
	}
	return all
}

// limitWords describes how often and how long a job runs.
func limitWords(spec jobs.Spec) []string {
	var all []string
	if spec.Retries != nil && *spec.Retries > 0 {
		all = append(all, fmt.Sprintf("A failed job is tried again up to %s.", phrase.Times(*spec.Retries)))
	}
	if spec.Deadline > 0 {
		all = append(all, fmt.Sprintf("The job is ended after %s.", durationText(spec.Deadline)))
	}
	if spec.RDMA == mpi.RDMARequired {
		all = append(all, "If no node offers the RDMA that its pods request, the job waits for it.")
	}
	switch {
	case spec.TTL == nil:
	case *spec.TTL == 0:
		all = append(all, "The job is deleted when it ends; its report is kept.")
	default:
		all = append(all, fmt.Sprintf("The job is deleted %s after its end; its report is kept.", durationText(*spec.TTL)))
	}
	return all
}

// durationText returns a time as people write it, such as 1 hour 30 minutes.
func durationText(length time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		if n := int64(length / unit.size); n > 0 {
			parts = append(parts, phrase.Count(n, unit.name))
			length %= unit.size
		}
	}
	return strings.Join(parts, " ")
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// arguments collects what creates a job: the words of a command line, and the arguments of a Python class.
type arguments struct{ line, python []string }

// add adds a flag with its value, and an argument with its value in Python.
func (a *arguments) add(flag, value, argument, literal string) {
	a.line = append(a.line, flag, value)
	a.python = append(a.python, argument+"="+literal)
}

// text adds a text that is not empty.
func (a *arguments) text(flag, argument, value string) {
	if value != "" {
		a.add(flag, value, argument, pythonText(value))
	}
}

// number adds a number that is set.
func (a *arguments) number(flag, argument string, value *int32) {
	if value != nil {
		text := strconv.Itoa(int(*value))
		a.add(flag, text, argument, text)
	}
}

// duration adds a time that is set.
func (a *arguments) duration(flag, argument string, value time.Duration) {
	if value > 0 {
		a.anyDuration(flag, argument, value)
	}
}

// anyDuration adds a time that may be 0.
func (a *arguments) anyDuration(flag, argument string, value time.Duration) {
	a.add(flag, value.String(), argument, pythonText(strconv.FormatInt(int64(value/time.Second), 10)+"s"))
}

// resources adds what each worker requests.
func (a *arguments) resources(spec jobs.Spec) {
	each := arguments{}
	if spec.GPU > 0 {
		each.number("--gpu", "gpu", &spec.GPU)
	}
	each.text("--cpu", "cpu", spec.CPU)
	each.text("--memory", "memory", spec.Memory)
	if a.line = append(a.line, each.line...); len(each.python) > 0 {
		a.python = append(a.python, "resources=ResourceRequirements("+strings.Join(each.python, ", ")+")")
	}
}

// environment adds data connections and variables.
func (a *arguments) environment(spec jobs.Spec) {
	for _, connection := range spec.Connections {
		a.line = append(a.line, "--connection", connection)
	}
	if len(spec.Connections) > 0 {
		a.python = append(a.python, "connections="+pythonList(spec.Connections))
	}
	var env []string
	for _, variable := range spec.Env {
		a.line = append(a.line, "--env", variable.Name+"="+variable.Value)
		env = append(env, pythonText(variable.Name)+": "+pythonText(variable.Value))
	}
	if len(env) > 0 {
		a.python = append(a.python, "env={"+strings.Join(env, ", ")+"}")
	}
}

// specCommands returns what creates the job of a specification on the command line and in Python.
func (s *Server) specCommands(spec jobs.Spec, job *unstructured.Unstructured) []Snippet {
	all := arguments{line: []string{"create", spec.Name}, python: []string{pythonText(spec.Name)}}
	all.text("--namespace", "namespace", spec.Namespace)
	all.number("--workers", "workers", &spec.Workers)
	all.text("--runtime", "runtime", spec.Runtime)
	all.text("--image", "image", spec.Image)
	all.resources(spec)
	all.number("--slots", "slots_per_worker", spec.Slots)
	all.text("--implementation", "mpi_implementation", spec.Implementation)
	all.text("--queue", "queue", spec.Queue)
	all.text("--priority", "priority", spec.Priority)
	all.environment(spec)
	all.number("--retries", "retries", spec.Retries)
	all.duration("--deadline", "deadline", spec.Deadline)
	all.text("--rdma", "rdma", spec.RDMA)
	if spec.TTL != nil {
		all.anyDuration("--ttl", "ttl", *spec.TTL)
	}
	all.duration("--gang-timeout", "gang_timeout", spec.GangTimeout)
	command := spec.Command
	switch {
	case len(spec.MPIFlags) > 0 && spec.Runtime != "": // the SDK adds no flags to the command of a runtime
		all.line = append(all.line, "--mpi-flags", phrase.QuoteCommand(spec.MPIFlags))
		command = jobs.FromObject(job).Summary().Command
	case len(spec.MPIFlags) > 0:
		all.add("--mpi-flags", phrase.QuoteCommand(spec.MPIFlags), "mpi_flags", pythonList(spec.MPIFlags))
	}
	if spec.RunAsUser != nil {
		user := strconv.FormatInt(*spec.RunAsUser, 10)
		all.add("--run-as-user", user, "run_as_user", user)
	}
	if spec.Suspend {
		all.line = append(all.line, "--suspend")
		all.python = append(all.python, "suspend=True")
	}
	all.add("--command", phrase.QuoteCommand(spec.Command), "command", pythonList(command))
	python, imports := strings.Join(all.python, ",\n    "), "MPIJob"
	if strings.Contains(python, "ResourceRequirements(") {
		imports += ", ResourceRequirements"
	}
	return []Snippet{
		{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand(all.line)},
		{"Python", "python", "from openshift_ai_sdk.training import " + imports + "\n\njob = MPIJob(\n    " + python + ",\n)\njob.create()"},
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
