package jobs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// SpecOf returns the specification of a job, and the paths of the job's fields that it does not contain, sorted. Building it
// creates a job that differs from the given one only in these fields. It fails with DeletedError, or with what Build fails with
// if no specification describes the job, such as a job without workers.
func (c *Client) SpecOf(ctx context.Context, job Job) (spec Spec, kept []string, err error) {
	original, err := job.Written()
	if err != nil {
		return Spec{}, nil, err
	}
	removeSuspend(original)
	spec, err = c.readSpec(ctx, original)
	if err != nil {
		return Spec{}, nil, err
	}
	if spec.Output != nil && spec.Output.SubPath == spec.Name {
		spec.Output.SubPath = "" // as Build names it, also under another name
	}
	whole := spec.Command
	setWords(original, whole)
	// The command is read without the mpirun that Build adds, if Build adds exactly this one.
	if command, flags, ranks := withoutLauncher(whole); ranks > 0 {
		for _, read := range withWorkDir(spec, command, flags) {
			if built, err := c.Build(ctx, read); err == nil && slices.Equal(FromObject(built.Job).Summary().Command, whole) {
				kept, err = fieldsWithout(original, built.Job)
				return read, kept, err
			}
		}
	}
	built, err := c.Build(ctx, spec)
	if err != nil {
		return Spec{}, nil, err
	}
	kept, err = fieldsWithout(original, built.Job)
	return spec, kept, err
}

// withWorkDir returns the specifications that flags of mpirun may mean: with a runtime, the first may be the working folder.
func withWorkDir(spec Spec, command, flags []string) []Spec {
	spec.Command, spec.MPIFlags = command, flags
	if spec.Runtime == "" || len(flags) < 2 {
		return []Spec{spec}
	}
	folder := spec
	folder.WorkDir, folder.MPIFlags = flags[1], nil
	if len(flags) > 2 {
		folder.MPIFlags = flags[2:]
	}
	return []Spec{folder, spec}
}

// setWords writes the command of a job, with its arguments, into one field.
func setWords(job *unstructured.Unstructured, command []string) {
	words := make([]any, len(command))
	for i, word := range command {
		words[i] = word
	}
	_ = editorFor(job.GetKind()).SetCommand(job, words) // a job without a launcher has no command
}

// CloneEdited returns a job as Clone does, of which edit changes the specification (SpecOf) before the other changes are made. It fails
// as CloneWithSpec does.
func (c *Client) CloneEdited(ctx context.Context, job Job, name string, edit func(*Spec), changes ...Change) (Clone, error) {
	spec, _, err := c.SpecOf(ctx, job)
	if err != nil {
		return Clone{}, err
	}
	edit(&spec)
	if spec.Name = name; name == "" {
		if spec.Name, err = c.nextName(ctx, job.Namespace, job.Name); err != nil {
			return Clone{}, err
		}
	}
	return c.CloneWithSpec(ctx, job, spec, changes...)
}

// CloneWithSpec returns a job with the fields of another, changed as its specification (SpecOf) differs from a new one, and with other
// changes. Fields that no specification contains are kept. It fails as SpecOf and Build do, and
// with MaskedError as Clone does.
func (c *Client) CloneWithSpec(ctx context.Context, job Job, spec Spec, changes ...Change) (Clone, error) {
	before, _, err := c.SpecOf(ctx, job)
	if err != nil {
		return Clone{}, err
	}
	before.Name = spec.Name // Build may use the name in other fields
	from, err := c.Build(ctx, before)
	if err != nil {
		return Clone{}, err
	}
	to, err := c.Build(ctx, spec)
	if err != nil {
		return Clone{}, err
	}
	original, err := job.Written()
	if err != nil {
		return Clone{}, err
	}
	clone := original.DeepCopy()
	removeSuspend(clone)
	clone.SetName(spec.Name)
	renameOutput(clone, original.GetName())
	if to.Job.GetKind() != clone.GetKind() {
		return Clone{}, Invalid(FieldError{Field: "runtime", Reason: "cannot be changed between none and one: the clone is a " + clone.GetKind()})
	}
	if command := FromObject(to.Job).Summary().Command; !slices.Equal(command, FromObject(from.Job).Summary().Command) {
		setWords(clone, command)
	}
	fromFields, err := aligned(from.Job, clone)
	if err != nil {
		return Clone{}, err
	}
	toFields, err := aligned(to.Job, clone)
	if err != nil {
		return Clone{}, err
	}
	clone.Object, _ = merge(clone.Object, fromFields.Object, toFields.Object).(map[string]any)
	// Limits that the original has besides its requests follow them.
	for _, change := range []struct{ field, before, after string }{
		{"cpu", before.CPU, spec.CPU}, {"memory", before.Memory, spec.Memory}, {"gpu", strconv.Itoa(int(before.GPU)), strconv.Itoa(int(spec.GPU))},
	} {
		if change.before == change.after || change.after == "" || change.after == "0" {
			continue
		}
		if err := Apply(clone, Change{change.field, change.after}); err != nil {
			return Clone{}, err
		}
	}
	note := c.followRanks(ctx, original, clone)
	sized := clone.DeepCopy()
	if err := c.apply(ctx, job.Namespace, clone, changes...); err != nil {
		return Clone{}, err
	}
	// Other flags may have changed the command's words, and the changes its slots.
	if slices.Equal(before.Command, spec.Command) {
		note = cmp.Or(c.followRanks(ctx, sized, clone), note)
	}
	return Clone{Original: original, Job: clone, Note: note}, checkMasked(job, clone)
}

// ChangesOf returns the changes that make the clone from the original's fields, as Clone does.
func (c Clone) ChangesOf() []Change {
	original := c.Original.DeepCopy()
	removeSuspend(original)
	original.SetName(c.Job.GetName())
	var changes []Change
	differences(original.Object, c.Job.Object, "", &changes)
	return changes
}

// differences adds the changes from one value to another.
func differences(from, to any, path string, changes *[]Change) {
	if reflect.DeepEqual(from, to) {
		return
	}
	a, isA := from.(map[string]any)
	b, isB := to.(map[string]any)
	if isA && isB {
		for _, name := range keysOf(a, b) {
			differences(a[name], b[name], joinPath(path, name), changes)
		}
		return
	}
	listA, isA := from.([]any)
	listB, isB := to.([]any)
	if isA && isB && len(listA) == len(listB) && allObjects(listA) && allObjects(listB) {
		for i := range listA {
			differences(listA[i], listB[i], path+"["+strconv.Itoa(i)+"]", changes)
		}
		return
	}
	change := Change{Field: path}
	if to != nil {
		text, _ := json.Marshal(to) // a value of JSON
		change.Value = string(text)
	}
	*changes = append(*changes, change)
}

func keysOf(a, b map[string]any) []string {
	all := map[string]any{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func allObjects(list []any) bool {
	return !slices.ContainsFunc(list, func(entry any) bool {
		_, is := entry.(map[string]any)
		return !is
	})
}

// readSpec returns the specification of a job with the launcher's whole command.
func (c *Client) readSpec(ctx context.Context, job *unstructured.Unstructured) (Spec, error) {
	summary := FromObject(job).Summary()
	spec := Spec{Name: job.GetName(), Namespace: job.GetNamespace(), Image: summary.Image, Runtime: summary.Runtime, Command: summary.Command, Queue: job.GetLabels()[mpi.LabelQueue]}
	spec.readResources(summary.Worker)
	if names := job.GetAnnotations()[mpi.AnnotationConnections]; names != "" {
		for name := range strings.SplitSeq(names, ",") {
			spec.Connections = append(spec.Connections, strings.TrimSpace(name))
		}
	}
	if rdma := job.GetAnnotations()[mpi.AnnotationRDMA]; rdma == mpi.RDMARequired || rdma == mpi.RDMAOptional {
		spec.RDMA = rdma
	}
	spec.Profile, _ = mpi.ParseProfile(job.GetAnnotations())
	spec.WaitForQuota, _ = mpi.ParseWaitForQuota(job.GetAnnotations())
	spec.readMetadata(job)
	if job.GetKind() == trainjob.Kind {
		err := c.readTrainJob(ctx, job, &spec)
		return spec, err
	}
	var typed kubeflow.MPIJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(job.Object, &typed); err != nil {
		return Spec{}, err
	}
	spec.readMPIJob(&typed)
	return spec, nil
}

func (s *Spec) readMPIJob(job *kubeflow.MPIJob) {
	policy := job.Spec.RunPolicy
	s.Implementation, s.Retries = string(job.Spec.MPIImplementation), policy.BackoffLimit
	if slots := ptr.Deref(job.Spec.SlotsPerWorker, 1); slots != cmp.Or(s.GPU, 1) {
		s.Slots = &slots
	}
	s.Deadline = time.Duration(ptr.Deref(policy.ActiveDeadlineSeconds, 0)) * time.Second
	if seconds := policy.TTLSecondsAfterFinished; seconds != nil {
		s.TTL = new(time.Duration(*seconds) * time.Second)
	}
	if policy.SchedulingPolicy != nil {
		s.GangTimeout = time.Duration(ptr.Deref(policy.SchedulingPolicy.ScheduleTimeoutSeconds, 0)) * time.Second
	}
	worker := job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker]
	if worker == nil {
		return // a job without workers has no valid specification
	}
	s.Workers, s.Priority = ptr.Deref(worker.Replicas, 1), worker.Template.Spec.PriorityClassName
	if len(worker.Template.Spec.Containers) == 0 {
		return
	}
	main := worker.Template.Spec.Containers[0]
	s.readEnv(main.Env)
	if main.SecurityContext != nil {
		s.RunAsUser = main.SecurityContext.RunAsUser
	}
	s.readPods(job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher], worker)
}

// readEnv reads the variables that have a value. Those from other objects are not read.
func (s *Spec) readEnv(env []corev1.EnvVar) {
	for _, variable := range env {
		if variable.ValueFrom == nil {
			s.Env = append(s.Env, variable)
		}
	}
}

func (c *Client) readTrainJob(ctx context.Context, object *unstructured.Unstructured, s *Spec) error {
	data, err := json.Marshal(object.Object)
	if err != nil {
		return err
	}
	job, err := trainjob.Decode(data)
	if err != nil {
		return err
	}
	trainer := ptr.Deref(job.Spec.Trainer, trainjob.Trainer{})
	s.readEnv(trainer.Env)
	if n := trainer.NumProcPerNode; n != nil && n.IntValue() > 0 {
		s.Slots = new(int32(n.IntValue()))
	}
	s.Deadline = time.Duration(ptr.Deref(job.Spec.ActiveDeadlineSeconds, 0)) * time.Second
	s.Retries, _ = mpi.ParseMaxRestarts(job.Annotations)
	s.GangTimeout, _ = mpi.ParseScheduleTimeout(job.Annotations)
	s.TTL, _ = mpi.ParseTTL(job.Annotations)
	if err := s.readPatch(object); err != nil {
		return err
	}
	if s.Priority, _ = mpi.ParsePriorityClass(job.Annotations); s.Queue != "" {
		s.Priority = job.Labels[mpi.LabelQueuePriority]
	}
	_, used, err := c.runtime(ctx, job.Namespace, s.Runtime)
	if err != nil {
		return err
	}
	// Annotations without an effect are no settings: Build refuses them, and a clone keeps them.
	*s = s.withoutIneffective(*used)
	s.Workers = 1
	if used.Spec.MLPolicy != nil {
		s.Workers = ptr.Deref(used.Spec.MLPolicy.NumNodes, 1)
	}
	if trainer.NumNodes != nil {
		s.Workers = *trainer.NumNodes
	}
	return nil
}

// withoutLauncher splits a command as Build writes it into the command of each rank, flags of mpirun and the number of ranks; 0
// for another command.
func withoutLauncher(command []string) (rest, flags []string, ranks int) {
	if len(command) < 4 || command[0] != "mpirun" {
		return nil, nil, 0
	}
	for _, name := range mpi.Implementations {
		tag := implementation.For(name).TagFlags()
		if len(command) <= len(tag) || !slices.Equal(command[1:1+len(tag)], tag) {
			continue
		}
		words := command[1+len(tag):]
		at := slices.Index(words, "-n")
		if at < 0 || at+2 >= len(words) {
			return nil, nil, 0
		}
		if ranks, err := strconv.Atoi(words[at+1]); err == nil {
			if at > 0 {
				flags = words[:at:at]
			}
			return words[at+2:], flags, ranks
		}
	}
	return nil, nil, 0
}

// aligned returns a built job as the API server returns it, in which main containers have the names of the original's.
func aligned(built, original *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(built.Object)
	if err != nil {
		return nil, fmt.Errorf("encode job: %w", err)
	}
	job := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &job.Object); err != nil {
		return nil, fmt.Errorf("decode job: %w", err)
	}
	for _, role := range []string{string(kubeflow.MPIReplicaTypeLauncher), string(kubeflow.MPIReplicaTypeWorker)} {
		path := []string{"spec", "mpiReplicaSpecs", role, "template", "spec", "containers"}
		named, _, _ := unstructured.NestedSlice(original.Object, path...)
		containers, _, _ := unstructured.NestedSlice(job.Object, path...)
		if len(named) == 0 || len(containers) == 0 {
			continue
		}
		main, _ := named[0].(map[string]any)
		container, _ := containers[0].(map[string]any)
		if name, set := main["name"]; set && container != nil {
			container["name"] = name
			if err := unstructured.SetNestedSlice(job.Object, containers, path...); err != nil {
				return nil, err
			}
		}
	}
	return job, nil
}

// apiDefaults are the values that the API server sets in fields of MPIJobs that are not set.
var apiDefaults = map[string]string{"spec.launcherCreationPolicy": "AtStartup", "spec.runLauncherAsWorker": "false", "spec.sshAuthMountPath": "/root/.ssh"}

// fieldsWithout returns the paths of the fields of a job that a built one does not have, or has with another value. Defaults of the
// API server are left out.
func fieldsWithout(job, built *unstructured.Unstructured) ([]string, error) {
	other, err := aligned(built, job)
	if err != nil {
		return nil, err
	}
	all, known := map[string]string{}, map[string]string{}
	flatten(job.Object, "", all)
	flatten(other.Object, "", known)
	var paths []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if all[path] != known[path] && all[path] != apiDefaults[path] {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// merge returns a value with the changes from one value to another. Entries of lists of objects are the same if they have the same key
// or, without keys, if they are equal.
func merge(value, from, to any) any {
	if reflect.DeepEqual(from, to) {
		return value
	}
	if objects, are := allOf[map[string]any](value, from, to); are {
		return mergeObjects(objects[0], objects[1], objects[2])
	}
	lists, are := allOf[[]any](value, from, to)
	switch {
	case !are:
		return to
	case allKeyed(slices.Concat(lists...)):
		return mergeKeyed(lists[0], lists[1], lists[2])
	case allObjects(slices.Concat(lists...)):
		return mergeUnkeyed(lists[0], lists[1], lists[2])
	}
	return to
}

// allOf returns values as values of one type; false if one has another type. A value that is nil is the type's zero value.
func allOf[T any](values ...any) (typed []T, are bool) {
	for _, value := range values {
		each, is := value.(T)
		if !is && value != nil {
			return nil, false
		}
		typed = append(typed, each)
	}
	return typed, true
}

// mergeObjects merges objects; nil for one that has no fields.
func mergeObjects(value, from, to map[string]any) any {
	merged := map[string]any{}
	maps.Copy(merged, value)
	for _, name := range keysOf(from, to) {
		merged[name] = merge(value[name], from[name], to[name])
		if merged[name] == nil {
			delete(merged, name)
		}
	}
	if len(merged) == 0 {
		return nil
	}
	return merged
}

// mergeKeyed merges lists whose entries have keys; nil for one that has no entries.
func mergeKeyed(list, from, to []any) any {
	find := func(in []any, key string) any {
		for _, entry := range in {
			if keyOf(entry) == key {
				return entry
			}
		}
		return nil
	}
	var merged []any
	for _, entry := range slices.Concat(list, to) {
		key := keyOf(entry)
		if find(merged, key) != nil {
			continue
		}
		if entry := merge(find(list, key), find(from, key), find(to, key)); entry != nil {
			merged = append(merged, entry)
		}
	}
	if len(merged) == 0 {
		return nil
	}
	return merged
}

// mergeUnkeyed merges lists of objects without keys, such as tolerations and podTemplateOverrides: what the list has besides the entries
// of from stays, and the entries of to follow. It returns nil for a list that has no entries.
func mergeUnkeyed(list, from, to []any) any {
	has := func(in []any, entry any) bool {
		return slices.ContainsFunc(in, func(other any) bool { return reflect.DeepEqual(entry, other) })
	}
	var merged []any
	for _, entry := range list {
		if !has(from, entry) {
			merged = append(merged, entry)
		}
	}
	for _, entry := range to {
		if !has(merged, entry) {
			merged = append(merged, entry)
		}
	}
	if len(merged) == 0 {
		return nil
	}
	return merged
}

// allKeyed reports whether all entries of a list are objects with keys.
func allKeyed(list []any) bool {
	return !slices.ContainsFunc(list, func(entry any) bool { return keyOf(entry) == "" })
}

// keyOf returns what identifies an entry of a list: of a mount its path, of a runtime patch its manager, otherwise the name.
func keyOf(entry any) string {
	fields, _ := entry.(map[string]any)
	for _, name := range []string{"mountPath", "manager", "name"} {
		if key, is := fields[name].(string); is && key != "" {
			return key
		}
	}
	return ""
}
