package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// settings are the words for what users change most in a job, and how each is written into a job of either kind.
var settings = map[string]func(*unstructured.Unstructured, string) error{
	"workers":  setNumber([]string{"spec", "mpiReplicaSpecs", "Worker", "replicas"}, []string{"spec", "trainer", "numNodes"}),
	"slots":    setNumber([]string{"spec", "slotsPerWorker"}, []string{"spec", "trainer", "numProcPerNode"}),
	"deadline": setNumber([]string{"spec", "runPolicy", "activeDeadlineSeconds"}, []string{"spec", "activeDeadlineSeconds"}),
	"image":    setImage,
	"command":  setCommand,
	"cpu":      setSize("cpu"),
	"memory":   setSize("memory"),
	"gpu":      setSize("nvidia.com/gpu"),
	"runtime":  setRuntime,
	"suspend":  setSuspended,
	"queue": func(object *unstructured.Unstructured, value string) error {
		return setLabel(object, mpi.LabelQueue, value)
	},
}

// settingWords are these words, sorted, with those that have a name behind a dot.
func settingWords() []string {
	return append(slices.Sorted(maps.Keys(settings)), "env.NAME", "label.NAME")
}

// change writes a change into a job: a word of settings, env.NAME, label.NAME, or the path of a field, with = and the
// new value. A field without a value (spec.x=) is taken out.
func change(object *unstructured.Unstructured, text string) error {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return usagef("--set %s: must be NAME=VALUE, such as workers=8 or spec.runPolicy.cleanPodPolicy=All", text)
	}
	var err error
	first, rest, dotted := strings.Cut(name, ".")
	switch set, known := settings[name]; {
	case known:
		err = set(object, value)
	case dotted && first == "env":
		err = setEnv(object, rest, value)
	case dotted && first == "label":
		err = setLabel(object, rest, value)
	case first == "spec" || first == "metadata":
		err = setPath(object.Object, name, value)
	default:
		return usagef("--set %s: there is no %q%s; it may be %s, or a field such as spec.slotsPerWorker", text, name, meant(name, settingWords()), strings.Join(settingWords(), ", "))
	}
	if err != nil {
		return usagef("--set %s: %v", text, err)
	}
	return nil
}

func isTrainJob(object *unstructured.Unstructured) bool { return object.GetKind() == trainjob.Kind }

func setNumber(mpiJob, trainJob []string) func(*unstructured.Unstructured, string) error {
	return func(object *unstructured.Unstructured, value string) error {
		var n any = value // of a template, which has a parameter there
		if !parameter.MatchString(value) {
			whole, err := strconv.ParseInt(value, 10, 32)
			if err != nil || whole < 0 {
				return fmt.Errorf("%q must be a whole number, 0 or more", value)
			}
			n = whole
		}
		path := mpiJob
		if isTrainJob(object) {
			path = trainJob
		}
		if _, found, _ := unstructured.NestedMap(object.Object, path[:len(path)-1]...); !found && path[len(path)-1] == "replicas" {
			return fmt.Errorf("the job has no workers: it is one of its launcher alone")
		}
		return unstructured.SetNestedField(object.Object, n, path...)
	}
}

// inContainers calls a function with the main container of launcher and workers of an MPIJob.
func inContainers(object *unstructured.Unstructured, roles []string, do func(container map[string]any) error) error {
	for _, role := range roles {
		path := []string{"spec", "mpiReplicaSpecs", role, "template", "spec", "containers"}
		containers, found, err := unstructured.NestedSlice(object.Object, path...)
		if err != nil || !found || len(containers) == 0 {
			continue
		}
		main, is := containers[0].(map[string]any)
		if !is {
			continue
		}
		if err := do(main); err != nil {
			return err
		}
		if err := unstructured.SetNestedSlice(object.Object, containers, path...); err != nil {
			return err
		}
	}
	return nil
}

var bothRoles = []string{"Launcher", "Worker"}

func setImage(object *unstructured.Unstructured, value string) error {
	if value == "" {
		return fmt.Errorf("must name an image")
	}
	if isTrainJob(object) {
		return unstructured.SetNestedField(object.Object, value, "spec", "trainer", "image")
	}
	return inContainers(object, bothRoles, func(main map[string]any) error { main["image"] = value; return nil })
}

func setCommand(object *unstructured.Unstructured, value string) error {
	words, err := shellWords(value)
	if err != nil {
		return err
	}
	list := make([]any, len(words))
	for i, word := range words {
		list[i] = word
	}
	if isTrainJob(object) {
		unstructured.RemoveNestedField(object.Object, "spec", "trainer", "args")
		return unstructured.SetNestedSlice(object.Object, list, "spec", "trainer", "command")
	}
	return inContainers(object, []string{"Launcher"}, func(main map[string]any) error {
		main["command"] = list
		delete(main, "args")
		return nil
	})
}

// setSize changes what each worker has of a resource: of CPU and memory what is written of it already, a limit otherwise.
func setSize(name string) func(*unstructured.Unstructured, string) error {
	return func(object *unstructured.Unstructured, value string) error {
		if _, err := resource.ParseQuantity(value); err != nil && !parameter.MatchString(value) {
			return fmt.Errorf("%q must be a quantity, such as 4, 500m or 16Gi", value)
		}
		if isTrainJob(object) {
			size, _, _ := unstructured.NestedMap(object.Object, "spec", "trainer", "resourcesPerNode")
			return unstructured.SetNestedMap(object.Object, resized(size, name, value), "spec", "trainer", "resourcesPerNode")
		}
		roles := []string{"Worker"}
		if runs, _, _ := unstructured.NestedBool(object.Object, "spec", "runLauncherAsWorker"); runs {
			roles = bothRoles
		}
		return inContainers(object, roles, func(main map[string]any) error {
			size, _ := main["resources"].(map[string]any)
			main["resources"] = resized(size, name, value)
			return nil
		})
	}
}

func resized(size map[string]any, name, value string) map[string]any {
	if size == nil {
		size = map[string]any{}
	}
	written := false
	for _, part := range []string{"requests", "limits"} {
		list, is := size[part].(map[string]any)
		if _, found := list[name]; is && found {
			list[name] = value
			written = true
		}
	}
	if !written {
		limits, is := size["limits"].(map[string]any)
		if !is {
			limits = map[string]any{}
			size["limits"] = limits
		}
		limits[name] = value
	}
	return size
}

func setRuntime(object *unstructured.Unstructured, value string) error {
	if !isTrainJob(object) {
		return fmt.Errorf("MPIJobs have no runtime")
	}
	return unstructured.SetNestedField(object.Object, value, "spec", "runtimeRef", "name")
}

func setSuspended(object *unstructured.Unstructured, value string) error {
	suspend, err := strconv.ParseBool(value)
	if err != nil {
		return fmt.Errorf("%q must be true or false", value)
	}
	return unstructured.SetNestedField(object.Object, suspend, suspendField(object.GetKind())...)
}

func setLabel(object *unstructured.Unstructured, name, value string) error {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	if labels[name] = value; value == "" {
		delete(labels, name)
	}
	object.SetLabels(labels)
	if len(labels) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "labels")
	}
	return nil
}

// setEnv sets a variable of every rank; an empty value takes it out.
func setEnv(object *unstructured.Unstructured, name, value string) error {
	with := func(env []any) []any {
		env = slices.DeleteFunc(env, func(entry any) bool { one, is := entry.(map[string]any); return is && one["name"] == name })
		if value != "" {
			env = append(env, map[string]any{"name": name, "value": value})
		}
		return env
	}
	if isTrainJob(object) {
		env, _, _ := unstructured.NestedSlice(object.Object, "spec", "trainer", "env")
		return unstructured.SetNestedSlice(object.Object, with(env), "spec", "trainer", "env")
	}
	return inContainers(object, bothRoles, func(main map[string]any) error {
		env, _ := main["env"].([]any)
		main["env"] = with(env)
		return nil
	})
}

// setPath sets the field at a path such as spec.mpiReplicaSpecs.Worker.template.spec.containers[0].image. What is in
// brackets is an entry of a list, or a name that has dots.
func setPath(in map[string]any, path, value string) error {
	steps, err := splitPath(path)
	if err != nil {
		return err
	}
	var parsed any
	if value != "" {
		data, err := yaml.YAMLToJSON([]byte(value))
		if err != nil {
			return fmt.Errorf("%q is no value of YAML: %w", value, err)
		}
		if err := json.Unmarshal(data, &parsed); err != nil {
			return err
		}
	}
	var at any = in
	for i, step := range steps {
		if i == len(steps)-1 {
			return setEntry(at, step, parsed, strings.Join(steps[:i], "."))
		}
		if parent, is := at.(map[string]any); is && parent[step] == nil {
			parent[step] = map[string]any{}
		}
		if at, err = entry(at, step, strings.Join(steps[:i], ".")); err != nil {
			return err
		}
	}
	return nil
}

// entry is what an object or a list has under a name or number. The path is that of the parent.
func entry(parent any, step, path string) (any, error) {
	switch parent := parent.(type) {
	case map[string]any:
		return parent[step], nil
	case []any:
		n, err := strconv.Atoi(step)
		if err != nil || n < 0 || n >= len(parent) {
			return nil, fmt.Errorf("there is no entry %s: the list has %d", step, len(parent))
		}
		return parent[n], nil
	}
	return nil, fmt.Errorf("%s is a value and no object", path)
}

// setEntry writes what an object or a list has under a name or number; nil takes a name out.
func setEntry(parent any, step string, value any, path string) error {
	if _, err := entry(parent, step, path); err != nil {
		return err
	}
	switch parent := parent.(type) {
	case map[string]any:
		if parent[step] = value; value == nil {
			delete(parent, step)
		}
	case []any:
		n, _ := strconv.Atoi(step)
		parent[n] = value
	}
	return nil
}

func splitPath(path string) ([]string, error) {
	var steps []string
	for rest := path; rest != ""; {
		if inner, found := strings.CutPrefix(rest, "["); found {
			step, after, closed := strings.Cut(inner, "]")
			if !closed || step == "" {
				return nil, fmt.Errorf("%q has a bracket that is not closed, or nothing in it", path)
			}
			steps = append(steps, step)
			rest = strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			return nil, fmt.Errorf("%q has an empty part", path)
		}
		steps = append(steps, rest[:end])
		rest = strings.TrimPrefix(rest[end:], ".")
	}
	return steps, nil
}
