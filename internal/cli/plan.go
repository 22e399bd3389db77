package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// defaultAgent is the agent's image, where nobody names another.
const defaultAgent = "quay.io/opendatahub/mpijob-agent:latest"

type planOptions struct {
	*Factory
	file, runtimeFile string
	settings          plan.Settings
	output            *output
}

func newPlan(f *Factory) *cobra.Command {
	o := &planOptions{Factory: f}
	c := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Say what would be created for a job, without a cluster",
		Long: `Say what would be created for the jobs of a file, and what is wrong with them, without a cluster.

Of an MPIJob these are the objects that the operator makes; -o yaml prints them. The keys of its Secret are left out: they
are made once, in the cluster. What depends on the cluster (quotas, other objects' names) create --dry-run=server tells.

Of a TrainJob these are what Kubeflow Trainer and JobSet make, as far as is known here. Its runtime is read from
--runtime-file, else from the cluster.`,
		Example: `{{name}} plan -f job.yaml
{{name}} plan -f job.yaml -o yaml
{{name}} plan -f trainjob.yaml --runtime-file runtime.yaml`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	flags := c.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "Read jobs from this file; - is standard input")
	flags.StringVar(&o.runtimeFile, "runtime-file", "", "Read the runtimes of TrainJobs from this file")
	flags.StringVar(&o.settings.AgentImage, "agent-image", defaultAgent, "The operator's setting: the image of the agent; empty: ranks are started by the images' own sshd")
	flags.StringVar(&o.settings.ClusterDomain, "cluster-domain", "", "The operator's setting: what names of hosts end in")
	flags.BoolVar(&o.settings.NetworkPolicies, "network-policies", true, "The operator's setting: keep jobs apart")
	o.output = addOutput(c)
	return c
}

// planned is what is created for a job.
type planned struct {
	job mpi.Job
	// by is who makes the pods.
	by      string
	objects []planObject
	notes   []string
}

type planObject struct {
	kind, name, by, about string
	object                runtime.Object
}

func (o *planOptions) run(ctx context.Context) error {
	if o.file == "" {
		return usagef("say which file by -f; - is standard input")
	}
	documents, err := o.readDocuments(o.file)
	if err != nil {
		return err
	}
	var runtimes []document
	if o.runtimeFile != "" {
		if runtimes, err = o.readDocuments(o.runtimeFile); err != nil {
			return err
		}
	}
	failed := false
	var all []planned
	for _, one := range documents {
		p, errs, err := o.plan(ctx, one, runtimes)
		if err != nil {
			return err
		}
		if len(errs) > 0 {
			failed = true
			say(o.ErrOut, "%s %s: %s cannot run as it is written:", o.paintOn(o.ErrOut, red, "error:"), one.where, nameIn(one.object))
			for _, err := range errs {
				say(o.ErrOut, "  - %s", oneLine(err.Error()))
			}
			continue
		}
		for _, note := range p.notes {
			say(o.ErrOut, "note: %s", note)
		}
		all = append(all, p)
	}
	if failed {
		return silently(ExitError)
	}
	return o.print(all)
}

// print prints plans as tables, or the objects of all of them.
func (o *planOptions) print(all []planned) error {
	var objects []unstructured.Unstructured
	for i, p := range all {
		if !o.output.objects() {
			if i > 0 {
				say(o.Out, "")
			}
			if err := o.show(p); err != nil {
				return err
			}
			continue
		}
		made, err := asObjects(p)
		if err != nil {
			return err
		}
		objects = append(objects, made...)
	}
	switch {
	case !o.output.objects():
		return nil
	case o.output.form == "yaml":
		return printYAML(o.Out, objects)
	}
	return o.output.print(o.Factory, listOf(objects))
}

// plan says what is created for the job of a document, or what is wrong with it.
func (o *planOptions) plan(ctx context.Context, from document, runtimes []document) (planned, field.ErrorList, error) {
	object := (&unstructured.Unstructured{Object: from.object}).DeepCopy()
	if object.GetNamespace() == "" {
		namespace, err := o.Namespace()
		if err != nil {
			return planned{}, nil, err
		}
		object.SetNamespace(namespace)
	}
	switch kind := object.GroupVersionKind(); kind {
	case kubeflow.SchemeGroupVersionKind:
		p, errs := o.planMPIJob(object)
		return p, errs, nil
	case trainjob.GroupVersion.WithKind(trainjob.Kind):
		return o.planTrainJob(ctx, from, object, runtimes)
	default:
		return planned{}, nil, exitf(ExitError, "%s: apiVersion %q, kind %q: only MPIJobs (%s) and TrainJobs (%s) can be planned; %s migrate converts others", from.where,
			object.GetAPIVersion(), object.GetKind(), kubeflow.SchemeGroupVersion, trainjob.GroupVersion, o.name)
	}
}

func (o *planOptions) planMPIJob(object *unstructured.Unstructured) (planned, field.ErrorList) {
	var typed kubeflow.MPIJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true); err != nil {
		return planned{}, field.ErrorList{field.Invalid(field.NewPath("spec"), "", "cannot be read: "+err.Error())}
	}
	job, errs := mpijob.Kind{}.Convert(&typed)
	if errs = append(errs, mpi.Validate(job)...); len(errs) > 0 {
		return planned{}, errs
	}
	p := planned{job: job, by: "the operator", notes: mpi.Warnings(job)}
	if job.Lifecycle.Suspended {
		p.notes = append(p.notes, "the job is suspended: its pods are made when it is resumed")
		job.Lifecycle.Suspended = false
	}
	if job.Launcher.AfterWorkers {
		p.notes = append(p.notes, "the launcher is made when all workers are ready (launcherCreationPolicy)")
		job.Launcher.AfterWorkers = false
	}
	seen := mpi.Observed{Keys: &mpi.Keys{}}
	made := plan.For(job, seen, mpi.Judge(job, seen), o.settings)
	for _, made := range append(made.Base, made.Pods...) {
		p.objects = append(p.objects, planObject{
			kind: made.GetObjectKind().GroupVersionKind().Kind, name: made.GetName(), by: p.by, about: about(job, made), object: made,
		})
	}
	return p, nil
}

// about says what an object of an MPIJob is for.
func about(job mpi.Job, object plan.Object) string {
	switch object := object.(type) {
	case *corev1.Service:
		return "gives pods their host names"
	case *corev1.ConfigMap:
		return "the list of hosts, with " + counted(int(job.Ranks()), "slot") + " in all"
	case *corev1.Secret:
		return "the job's own keys"
	case *batchv1.Job:
		return "the launcher: " + sizeText(mpi.Requests(object.Spec.Template.Spec))
	case *corev1.Pod:
		return rankText(true, job.SlotsPerWorker, "a worker") + ": " + sizeText(mpi.Requests(object.Spec))
	}
	return "keeps others out"
}

// sizeText is what a pod asks for.
func sizeText(list corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		parts = append(parts, fmt.Sprintf("%s %s", name, quantity.String()))
	}
	return cmp.Or(strings.Join(parts, ", "), "asks for nothing")
}

func (o *planOptions) planTrainJob(ctx context.Context, from document, object *unstructured.Unstructured, runtimes []document) (planned, field.ErrorList, error) {
	var typed trainjob.TrainJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
		return planned{}, field.ErrorList{field.Invalid(field.NewPath("spec"), "", "cannot be read: "+err.Error())}, nil
	}
	used, err := o.runtimeOf(ctx, from, typed, runtimes)
	if err != nil {
		return planned{}, nil, err
	}
	errs := trainjob.CheckRuntime(*used)
	more, warnings := trainjob.Check(typed, *used)
	if errs = append(errs, more...); len(errs) > 0 {
		return planned{}, errs, nil
	}
	job := trainjob.Convert(typed, *used)
	p := planned{job: job, by: "JobSet", notes: warnings}
	if job.Lifecycle.Suspended {
		p.notes = append(p.notes, "the job is suspended: its pods are made when it is resumed")
	}
	add := func(kind, name, by, about string, object runtime.Object) {
		p.objects = append(p.objects, planObject{kind: kind, name: name, by: by, about: about, object: object})
	}
	add("JobSet", job.Name, "Trainer", "of the runtime "+used.Name, nil)
	if used.IsMPI() {
		add("Secret", job.SecretName(), "Trainer", "the job's own keys", nil)
		add("ConfigMap", job.ConfigName(), "Trainer", "the list of hosts, with "+counted(int(job.Ranks()), "slot")+" in all", nil)
	}
	add("Service", job.Name, "JobSet", "gives pods their host names", nil)
	if !job.Launcher.None {
		launcher := podOf(job, job.LauncherName()+"-0", mpi.RoleLauncher, job.Launcher.Template)
		add("Pod", launcher.Name, "JobSet", rankText(job.Launcher.RunsRanks, job.SlotsPerWorker, "the launcher")+": "+sizeText(mpi.Requests(launcher.Spec)), launcher)
	}
	for i := range int(job.Workers.Count) {
		worker := podOf(job, job.WorkerName(i), mpi.RoleWorker, job.Workers.Template)
		add("Pod", worker.Name, "JobSet", rankText(true, job.SlotsPerWorker, "a worker")+": "+sizeText(mpi.Requests(worker.Spec)), worker)
	}
	seen := mpi.Observed{}
	isolated := plan.Isolate(job, seen, mpi.Follow(job, seen), o.settings)
	for _, made := range isolated.Base {
		add(made.GetObjectKind().GroupVersionKind().Kind, made.GetName(), "the operator", "keeps others out", made)
	}
	return p, nil, nil
}

func rankText(runsRanks bool, slots int32, what string) string {
	if !runsRanks {
		return what
	}
	return what + ", " + counted(int(slots), "slot")
}

// podOf is a pod of a TrainJob as far as it is known. JobSet adds letters to its name, the job's part of which is its
// host name.
func podOf(job mpi.Job, name string, role mpi.Role, template corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: name, Labels: maps.Clone(template.Labels), Annotations: template.Annotations},
		Spec:       *template.Spec.DeepCopy(),
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	maps.Copy(pod.Labels, map[string]string{trainjob.LabelJobSet: job.Name, mpi.LabelRole: string(role)})
	return pod
}

// runtimeOf is a TrainJob's runtime, from the file or the cluster.
func (o *planOptions) runtimeOf(ctx context.Context, from document, job trainjob.TrainJob, runtimes []document) (*trainjob.Runtime, error) {
	name := job.Spec.RuntimeRef.Name
	for _, one := range runtimes {
		object := unstructured.Unstructured{Object: one.object}
		if object.GetName() != name || object.GetKind() != trainjob.ClusterRuntimeKind && object.GetKind() != trainjob.RuntimeKind {
			continue
		}
		var found trainjob.Runtime
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(one.object, &found); err != nil {
			return nil, exitf(ExitError, "%s: runtime %s: %v", o.runtimeFile, name, err)
		}
		return &found, nil
	}
	if o.runtimeFile != "" {
		return nil, exitf(ExitNotFound, "%s has no runtime %q, which %s names", o.runtimeFile, name, nameIn(from.object))
	}
	c, err := o.Client()
	if err != nil {
		return nil, err
	}
	found, err := trainjob.LoadRuntime(ctx, c, job)
	if err != nil {
		return nil, fmt.Errorf("%w; without a cluster, name a file with the runtime by --runtime-file", err)
	}
	if found == nil {
		return nil, exitf(ExitNotFound, "there is no runtime %q%s", name, meant(name, o.names(ctx, trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind))))
	}
	return found, nil
}

// show prints a plan as a table, with what it comes to.
func (o *planOptions) show(p planned) error {
	t := table{header: []string{"KIND", "NAME", "MADE BY", "WHAT FOR"}}
	for _, object := range folded(p.objects) {
		t.rows = append(t.rows, plain(object.kind, object.name, object.by, object.about))
	}
	s := &story{Factory: o.Factory, to: o.Out}
	s.line("%s", o.paint(bold, strings.ToLower(p.job.Kind)+"/"+p.job.Name))
	if err := t.write(o.Factory, o.Out, "  ", true); err != nil {
		return err
	}
	pods, total := totals(p)
	s.line("  In all %s, %s: %s", counted(pods, "pod"), counted(int(p.job.Ranks()), "rank"), sizeText(total))
	return s.err
}

// folded are objects with those that differ in their number alone as one.
func folded(objects []planObject) []planObject {
	var all []planObject
	for i := 0; i < len(objects); {
		first := objects[i]
		next := i + 1
		for next < len(objects) && objects[next].kind == "Pod" && objects[next].about == first.about && first.kind == "Pod" {
			next++
		}
		if n := next - i; n > 2 {
			first.name += " to " + objects[next-1].name[strings.LastIndex(objects[next-1].name, "-"):]
			first.about = strconv.Itoa(n) + " workers" + strings.TrimPrefix(first.about, "a worker")
		}
		all = append(all, first)
		if n := next - i; n == 2 {
			all = append(all, objects[i+1])
		}
		i = next
	}
	return all
}

// totals are how many pods a job has, and what they ask for together.
func totals(p planned) (int, corev1.ResourceList) {
	pods := int(p.job.Workers.Count)
	sum := corev1.ResourceList{}
	add := func(template corev1.PodTemplateSpec, times int64) {
		for name, quantity := range mpi.Requests(template.Spec) {
			have := sum[name]
			quantity.Mul(times)
			have.Add(quantity)
			sum[name] = have
		}
	}
	add(p.job.Workers.Template, int64(p.job.Workers.Count))
	if !p.job.Launcher.None {
		pods++
		add(p.job.Launcher.Template, 1)
	}
	for name, quantity := range sum {
		sum[name] = resource.MustParse(quantity.String())
	}
	return pods, sum
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// asObjects are the objects of a plan that are known in full, as they are printed.
func asObjects(p planned) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, one := range p.objects {
		if one.object == nil {
			continue
		}
		object, err := asUnstructured(one.object)
		if err != nil {
			return nil, err
		}
		for _, path := range [][]string{{"status"}, {"metadata", "creationTimestamp"}, {"metadata", "ownerReferences"}, {"spec", "template", "metadata", "creationTimestamp"}, {"data", corev1.SSHAuthPrivateKey}, {"data", mpi.SSHPublicKey}} {
			if object.GetKind() != "Secret" && path[0] == "data" {
				continue
			}
			unstructured.RemoveNestedField(object.Object, path...)
		}
		all = append(all, *object)
	}
	return all, nil
}
