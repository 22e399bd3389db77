package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

var (
	priorityClasses = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}
	secrets         = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

// labelPriority names the WorkloadPriorityClass by which a queue of Kueue's orders jobs.
const labelPriority = "kueue.x-k8s.io/priority-class"

// wish is a job as its user describes it with flags.
type wish struct {
	job                            string
	workers, gpus, slots, retries  int32
	gpuName, cpu, memory           string
	image, command, implementation string
	queue, priority, runtime       string
	connections, env, labels       []string
	argv                           []string
	user                           int64
	deadline                       time.Duration
	suspend                        bool
	resources                      corev1.ResourceRequirements
	variables                      []corev1.EnvVar
	labelled                       map[string]string
	// changed tells of a flag whether the user has given it.
	changed func(flag string) bool
}

// wishFlags describe a job; they do not go with a file, which does.
var wishFlags = []string{
	"workers", "gpu", "gpu-resource", "cpu", "memory", "image", "command", "slots", "implementation", "queue", "priority", "connection", "env", "label", "runtime", "run-as-user", "retries", "deadline", "suspend",
}

// complete checks what the flags say, and works out what follows from it. Everything that is wrong is told at once.
func (w *wish) complete() error {
	var wrong []string
	note := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if w.job == "" {
		note("a name is missing: create NAME")
	}
	if w.image == "" && w.runtime == "" {
		note("--image IMAGE is missing, or --runtime RUNTIME, which brings one")
	}
	if problem := w.readCommand(); problem != "" {
		note("%s", problem)
	}
	wrong = append(wrong, w.numbers()...)
	if w.runtime != "" {
		wrong = append(wrong, w.notWithRuntime()...)
	}
	if w.implementation != "" {
		known := slices.IndexFunc(mpi.Implementations, func(i mpi.Implementation) bool { return strings.EqualFold(string(i), w.implementation) })
		if known < 0 {
			note("--implementation %s: must be OpenMPI, Intel or MPICH", w.implementation)
		} else {
			w.implementation = string(mpi.Implementations[known])
		}
	}
	wrong = append(wrong, w.parse()...)
	if len(wrong) > 0 {
		return usagef("%s", strings.Join(wrong, "; "))
	}
	return nil
}

// readCommand reads the command from --command, and says what is wrong with it.
func (w *wish) readCommand() string {
	switch {
	case len(w.argv) > 0 && w.command != "":
		return "the command stands both in --command and behind --: leave one out"
	case len(w.argv) == 0 && w.command != "":
		argv, err := shellWords(w.command)
		if err != nil {
			return err.Error()
		}
		w.argv = argv
	}
	if len(w.argv) == 0 {
		return "a command is missing: --command \"python train.py\", or -- python train.py"
	}
	return ""
}

// numbers are what is wrong with flags that are numbers.
func (w *wish) numbers() []string {
	var wrong []string
	note := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if w.workers < 1 {
		note("--workers %d: must be 1 or more", w.workers)
	}
	if w.gpus < 0 {
		note("--gpu %d: must be 0 or more", w.gpus)
	}
	if w.slots < 0 || w.slots == 0 && w.changed("slots") {
		note("--slots %d: must be 1 or more", w.slots)
	}
	if w.retries < 0 {
		note("--retries %d: must be 0 or more", w.retries)
	}
	if w.deadline < 0 || w.deadline%time.Second != 0 {
		note("--deadline %s: must be whole seconds, 1 or more", w.deadline)
	}
	if w.changed("run-as-user") && w.user < 1 {
		note("--run-as-user %d: must be the number of a user, 1 or more", w.user)
	}
	return wrong
}

// notWithRuntime are the flags that a TrainJob has no place for.
func (w *wish) notWithRuntime() []string {
	var wrong []string
	if w.implementation != "" {
		wrong = append(wrong, "--implementation: the runtime says which MPI it has")
	}
	if w.changed("run-as-user") {
		wrong = append(wrong, "--run-as-user: the runtime says as whom its pods run")
	}
	if w.changed("retries") {
		wrong = append(wrong, "--retries: the runtime says how often its jobs are tried again")
	}
	if w.priority != "" && w.queue == "" {
		wrong = append(wrong, "--priority: a TrainJob has one in a queue alone; add --queue, or take a runtime whose pods have one")
	}
	return wrong
}

// parse reads quantities, variables and labels.
func (w *wish) parse() []string {
	var wrong []string
	w.resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, q := range []struct {
		flag, text string
		name       corev1.ResourceName
		limits     bool
	}{{"cpu", w.cpu, corev1.ResourceCPU, false}, {"memory", w.memory, corev1.ResourceMemory, true}} {
		if q.text == "" {
			continue
		}
		quantity, err := resource.ParseQuantity(q.text)
		if err != nil || quantity.Sign() <= 0 {
			wrong = append(wrong, fmt.Sprintf("--%s %s: must be a quantity such as 4, 500m or 16Gi", q.flag, q.text))
			continue
		}
		w.resources.Requests[q.name] = quantity
		if q.limits { // more memory than that and the pod is killed alone, rather than others on its node with it
			w.resources.Limits[q.name] = quantity
		}
	}
	if w.gpus > 0 {
		quantity := *resource.NewQuantity(int64(w.gpus), resource.DecimalSI)
		w.resources.Requests[corev1.ResourceName(w.gpuName)], w.resources.Limits[corev1.ResourceName(w.gpuName)] = quantity, quantity
	}
	for _, text := range w.env {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			wrong = append(wrong, fmt.Sprintf("--env %s: must be NAME=VALUE", text))
		}
		w.variables = append(w.variables, corev1.EnvVar{Name: name, Value: value})
	}
	w.labelled = map[string]string{}
	for _, text := range w.labels {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			wrong = append(wrong, fmt.Sprintf("--label %s: must be NAME=VALUE", text))
		}
		w.labelled[name] = value
	}
	if w.queue != "" {
		w.labelled[mpi.LabelQueue] = w.queue
	}
	return wrong
}

// perWorker is how many ranks a worker takes.
func (w *wish) perWorker() int32 { return cmp.Or(w.slots, w.gpus, 1) }

// launched is the command that starts the ranks.
func (w *wish) launched(ranks int64) (command, notes []string) {
	if startsRanks(w.argv) {
		return w.argv, nil
	}
	command = append([]string{"mpirun", "-n", strconv.FormatInt(ranks, 10)}, w.argv...)
	return command, []string{"runs as: " + quoted(command)}
}

// quoted is a command as one would write it.
func quoted(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n'\"|&;<>()[]{}$`*?~\\") {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

func (w *wish) meta(namespace string) metav1.ObjectMeta {
	at := metav1.ObjectMeta{Namespace: namespace, Name: w.job}
	if len(w.labelled) > 0 {
		at.Labels = maps.Clone(w.labelled)
	}
	if len(w.connections) > 0 {
		at.Annotations = map[string]string{mpi.AnnotationConnections: strings.Join(w.connections, ",")}
	}
	return at
}

// mpiJob is the wish as an MPIJob.
func (w *wish) mpiJob(ctx context.Context, f *Factory, namespace string) (*unstructured.Unstructured, []string, error) {
	slots := w.perWorker()
	command, notes := w.launched(int64(slots) * int64(w.workers))
	security, pod := w.security(f.restricted(ctx, namespace))
	container := func(name string) corev1.Container {
		return corev1.Container{Name: name, Image: w.image, Env: w.variables, SecurityContext: security}
	}
	launcher, worker := container("launcher"), container("worker")
	launcher.Command = command
	launcher.Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
	worker.Resources = w.resources
	role := func(c corev1.Container, replicas *int32) *kubeflow.ReplicaSpec {
		spec := pod
		spec.Containers = []corev1.Container{c}
		return &kubeflow.ReplicaSpec{Replicas: replicas, Template: corev1.PodTemplateSpec{Spec: spec}}
	}
	job := kubeflow.MPIJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: kubeflow.SchemeGroupVersion.String(), Kind: kubeflow.Kind},
		ObjectMeta: w.meta(namespace),
		Spec: kubeflow.MPIJobSpec{
			SlotsPerWorker:    &slots,
			MPIImplementation: kubeflow.MPIImplementation(w.implementation),
			RunPolicy:         kubeflow.RunPolicy{CleanPodPolicy: new(kubeflow.CleanPodPolicyRunning), BackoffLimit: &w.retries},
			MPIReplicaSpecs: map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{
				kubeflow.MPIReplicaTypeLauncher: role(launcher, nil),
				kubeflow.MPIReplicaTypeWorker:   role(worker, &w.workers),
			},
		},
	}
	// A launcher that is started again in its pod has its log written over.
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].RestartPolicy = kubeflow.RestartPolicyNever
	if w.deadline > 0 {
		job.Spec.RunPolicy.ActiveDeadlineSeconds = new(int64(w.deadline / time.Second))
	}
	if w.suspend {
		job.Spec.RunPolicy.Suspend = new(true)
	}
	object, err := written(job)
	return object, notes, err
}

// restricted tells whether a namespace takes such pods alone as Pod Security calls restricted.
func (f *Factory) restricted(ctx context.Context, namespace string) bool {
	c, err := f.Client()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var found corev1.Namespace
	err = c.Get(ctx, types.NamespacedName{Name: namespace}, &found)
	return err == nil && found.Labels["pod-security.kubernetes.io/enforce"] == "restricted"
}

// security is that of pods which need no rights: with the agent none does.
func (w *wish) security(restricted bool) (*corev1.SecurityContext, corev1.PodSpec) {
	container := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if restricted || w.user > 0 {
		container.RunAsNonRoot = new(true)
	}
	if w.user > 0 {
		container.RunAsUser = &w.user
	}
	return container, corev1.PodSpec{PriorityClassName: w.priority}
}

// trainJob is the wish as a TrainJob. The runtime is read, for its slots and to tell of its limits; it has to be there.
func (w *wish) trainJob(ctx context.Context, f *Factory, namespace string) (*unstructured.Unstructured, []string, error) {
	at := w.meta(namespace)
	if w.priority != "" {
		at.Labels[labelPriority] = w.priority
	}
	job := trainjob.TrainJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: trainjob.GroupVersion.String(), Kind: trainjob.Kind},
		ObjectMeta: at,
	}
	kind, used, err := f.runtimeNamed(ctx, namespace, w.runtime)
	if err != nil {
		return nil, nil, err
	}
	trainer := &trainjob.Trainer{NumNodes: &w.workers, Env: w.variables}
	if w.image != "" {
		trainer.Image = &w.image
	}
	if w.slots > 0 {
		trainer.NumProcPerNode = new(intstr.FromInt32(w.slots))
	}
	if len(w.resources.Requests) > 0 {
		trainer.ResourcesPerNode = &w.resources
	}
	job.Spec = trainjob.Spec{RuntimeRef: trainjob.RuntimeRef{Name: w.runtime, Kind: kind}, Trainer: trainer}
	if w.deadline > 0 {
		job.Spec.ActiveDeadlineSeconds = new(int64(w.deadline / time.Second))
	}
	if w.suspend {
		job.Spec.Suspend = new(true)
	}
	command, notes := w.argv, []string(nil)
	if used.IsMPI() {
		command, notes = w.launched(trainjob.Convert(job, *used).Ranks())
	}
	trainer.Command = command
	if errs, _ := trainjob.Check(job, *used); len(errs) > 0 {
		var lines []string
		for _, err := range errs {
			lines = append(lines, "  - "+err.Error())
		}
		return nil, nil, &exitError{code: ExitError, err: fmt.Errorf("trainjob/%s cannot run as it is wished", w.job), more: lines}
	}
	object, err := written(job)
	return object, notes, err
}

// runtimeNamed finds a runtime of the namespace, else of the cluster.
func (f *Factory) runtimeNamed(ctx context.Context, namespace, name string) (kind string, used *trainjob.Runtime, err error) {
	c, err := f.Client()
	if err != nil {
		return "", nil, err
	}
	for _, kind := range []string{trainjob.RuntimeKind, trainjob.ClusterRuntimeKind} {
		job := trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: trainjob.Spec{RuntimeRef: trainjob.RuntimeRef{Name: name, Kind: kind}}}
		used, err = trainjob.LoadRuntime(ctx, c, job)
		if used != nil {
			return kind, used, nil
		}
		if err != nil && kind == trainjob.ClusterRuntimeKind {
			return "", nil, err
		}
	}
	names := append(f.names(ctx, trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind)), f.names(ctx, trainjob.GroupVersion.WithKind(trainjob.RuntimeKind))...)
	if len(names) == 0 {
		return "", nil, exitf(ExitNotFound, "there is no runtime %q: this cluster has none, or not Kubeflow Trainer; with --image an MPIJob is made, which needs neither", name)
	}
	return "", nil, exitf(ExitNotFound, "there is no runtime %q%s; there are %s", name, meant(name, names), strings.Join(names, ", "))
}

// written is an object as its user would write it: without a status and without empty fields.
func written(job any) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(job)
	if err != nil {
		return nil, fmt.Errorf("write job: %w", err)
	}
	var object unstructured.Unstructured
	if err := json.Unmarshal(data, &object.Object); err != nil {
		return nil, fmt.Errorf("write job: %w", err)
	}
	delete(object.Object, "status")
	withoutEmpty(object.Object)
	return &object, nil
}

// withoutEmpty takes out what says nothing: nulls, and maps with nothing in them.
func withoutEmpty(fields map[string]any) {
	for name, value := range fields {
		switch value := value.(type) {
		case nil:
			delete(fields, name)
		case map[string]any:
			if withoutEmpty(value); len(value) == 0 {
				delete(fields, name)
			}
		case []any:
			for _, item := range value {
				if item, is := item.(map[string]any); is {
					withoutEmpty(item)
				}
			}
		}
	}
}

// question is what is asked of a user who has left something out.
type question struct {
	text, otherwise string
	wanted          bool
	take            func(answer string) error
}

// fill asks for what the flags leave out.
func (o *createOptions) fill() error {
	answers := bufio.NewReader(o.In)
	number := func(into *int32) func(string) error {
		return func(answer string) error {
			n, err := strconv.ParseInt(answer, 10, 32)
			if err != nil || n < 0 {
				return fmt.Errorf("%q is no number, such as 4", answer)
			}
			*into = int32(n)
			return nil
		}
	}
	text := func(into *string) func(string) error {
		return func(answer string) error {
			if answer == "" {
				return fmt.Errorf("it is needed")
			}
			*into = answer
			return nil
		}
	}
	optional := func(into *string) func(string) error {
		return func(answer string) error { *into = answer; return nil }
	}
	for _, q := range []question{
		{"Name of the job", "", o.job == "", text(&o.job)},
		{"Runtime of Kubeflow Trainer, or nothing for an MPIJob with an image of your own", "", o.runtime == "" && o.image == "", optional(&o.runtime)},
	} {
		if err := o.put(q, answers); err != nil {
			return err
		}
	}
	for _, q := range []question{
		{"Image", "", o.image == "" && o.runtime == "", text(&o.image)},
		{"What each rank runs, such as python train.py", "", o.command == "" && len(o.argv) == 0, text(&o.command)},
		{"How many workers", "1", !o.changed("workers"), number(&o.workers)},
		{"How many GPUs for each worker", "0", !o.changed("gpu"), number(&o.gpus)},
		{"Cores for each worker, such as 4", "", o.cpu == "", optional(&o.cpu)},
		{"Memory for each worker, such as 16Gi", "", o.memory == "", optional(&o.memory)},
	} {
		if err := o.put(q, answers); err != nil {
			return err
		}
	}
	return o.complete()
}

// put asks one question until it is answered.
func (o *createOptions) put(q question, answers *bufio.Reader) error {
	for q.wanted {
		fmt.Fprint(o.ErrOut, q.text)
		if q.otherwise != "" {
			fmt.Fprintf(o.ErrOut, " [%s]", q.otherwise)
		}
		fmt.Fprint(o.ErrOut, ": ")
		line, err := answers.ReadString('\n')
		if err != nil && (line == "" || !errors.Is(err, io.EOF)) {
			say(o.ErrOut, "")
			return usagef("nobody has answered: give flags instead of --interactive")
		}
		err = q.take(cmp.Or(strings.TrimSpace(line), q.otherwise))
		if err == nil {
			return nil
		}
		say(o.ErrOut, "  %v", err)
	}
	return nil
}
