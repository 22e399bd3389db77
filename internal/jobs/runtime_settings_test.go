package jobs

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/mpi"
)

func TestRuntimeSettings(t *testing.T) {
	t.Parallel()
	const pods = `{spec: {template: {spec: {initContainers: [{name: agent, image: old}], containers: [{name: node, image: old}, {name: log, image: logger}]}}}}`
	read := func(annotations, spec string) Runtime {
		object := clusterRuntime(t, "mpi", spec)
		object.SetResourceVersion("7")
		object.SetUID("1")
		object.SetLabels(map[string]string{"trainer.kubeflow.org/framework": "mpi"})
		object.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", mpi.AnnotationMaxWorkers: annotations})
		return describeRuntime(object)
	}
	from := read("8", `{mlPolicy: {mpi: {numProcPerNode: 1, runLauncherAsNode: true}}, template: {spec: {replicatedJobs: [{name: launcher, template: `+pods+`}, {name: node, template: `+pods+`}]}}}`)
	for name, test := range map[string]struct {
		settings RuntimeSettings
		// want are the limits, slots and image afterwards.
		want Runtime
	}{
		"nothing but limits": {RuntimeSettings{MaxWorkers: new(int32(4)), MaxGPUs: new(int32(0))}, Runtime{MaxWorkers: "4", MaxGPUs: "0", Slots: 1, Image: "old"}},
		"a minimum":          {RuntimeSettings{MinWorkers: new(int32(2))}, Runtime{MinWorkers: "2", Slots: 1, Image: "old"}},
		"no limit":           {RuntimeSettings{}, Runtime{Slots: 1, Image: "old"}},
		"image and slots":    {RuntimeSettings{Image: "new", Slots: 8}, Runtime{Slots: 8, Image: "new"}},
		"a gang timeout":     {RuntimeSettings{GangTimeoutSeconds: new(int32(300))}, Runtime{Slots: 1, Image: "old", GangTimeout: "300"}},
		"a priority class":   {RuntimeSettings{PriorityClass: "urgent"}, Runtime{Slots: 1, Image: "old", PriorityClass: "urgent"}},
	} {
		changed, err := from.with(test.settings)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := describeRuntime(changed)
		if diff := cmp.Diff(test.want, Runtime{MaxWorkers: got.MaxWorkers, MinWorkers: got.MinWorkers, MaxGPUs: got.MaxGPUs, GangTimeout: got.GangTimeout, PriorityClass: got.PriorityClass, Slots: got.Slots, Image: got.Image}); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		if timeout := got.Settings().GangTimeoutSeconds; (timeout == nil) != (test.settings.GangTimeoutSeconds == nil) {
			t.Errorf("%s: the settings have the gang timeout %v", name, timeout)
		}
		for _, container := range got.Containers {
			if want := map[bool]string{true: "logger", false: test.want.Image}[container.Image == "logger"]; container.Image != want {
				t.Errorf("%s: a container of %s has the image %s", name, container.Job, container.Image)
			}
		}
		if changed.GetResourceVersion() != "7" {
			t.Errorf("%s: a change that was made meanwhile is overwritten", name)
		}
	}
	// The class is that of all pods, and is removed again.
	urgent, err := from.with(RuntimeSettings{PriorityClass: "urgent"})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := urgent.MarshalJSON(); strings.Count(string(text), `"priorityClassName":"urgent"`) != 2 {
		t.Errorf("not all pods have the priority class: %s", text)
	}
	plain, err := describeRuntime(urgent).with(RuntimeSettings{})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := plain.MarshalJSON(); strings.Contains(string(text), "priorityClassName") {
		t.Errorf("the priority class is left: %s", text)
	}
	copied, err := from.copyAs(NewRuntime{Name: "mpi-2", Settings: RuntimeSettings{Image: "new"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"name": "mpi-2", "labels": map[string]any{"trainer.kubeflow.org/framework": "mpi"}}, copied.Object["metadata"]); diff != "" {
		t.Errorf("the copy's metadata (-want +got)\n%s", diff)
	}
	if text := describeRuntime(copied).Image; text != "new" || from.Image != "old" || from.Object.GetName() != "mpi" {
		t.Errorf("the copy has the image %s, the original %s", text, from.Image)
	}
	agent, _ := copied.MarshalJSON()
	if strings.Count(string(agent), `"old"`) != 2 {
		t.Errorf("the init containers lost their image: %s", agent)
	}
}

func TestRuntimeSettingsAreChecked(t *testing.T) {
	t.Parallel()
	from := describeRuntime(clusterRuntime(t, "mpi", `{mlPolicy: {mpi: {}}, template: {spec: {replicatedJobs: []}}}`))
	_, err := from.copyAs(NewRuntime{Name: "Not_Allowed", AgentImage: "two words", RunAsUser: new(int64(0)), Settings: RuntimeSettings{Image: "two words", Slots: -1, MaxWorkers: new(int32(0)), MinWorkers: new(int32(0)), MaxGPUs: new(int32(-1)), GangTimeoutSeconds: new(int32(0)), PriorityClass: "Two words"}})
	invalid, is := errors.AsType[*InvalidError](err)
	if !is {
		t.Fatalf("the error is %v", err)
	}
	var fields []string
	for _, field := range invalid.Fields {
		fields = append(fields, field.Field)
	}
	if diff := cmp.Diff([]string{"image", "slots", "maxWorkers", "minWorkers", "maxGPUs", "gangTimeoutSeconds", "priorityClass", "name", "agentImage", "runAsUser"}, fields); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	_, err = from.copyAs(NewRuntime{Name: "b", Settings: RuntimeSettings{MinWorkers: new(int32(5)), MaxWorkers: new(int32(4))}})
	if err == nil || !strings.Contains(err.Error(), "use at most 4, the maximum") {
		t.Errorf("a minimum above the maximum: %v", err)
	}
	torch := describeRuntime(clusterRuntime(t, "torch", `{mlPolicy: {torch: {}}, template: {spec: {replicatedJobs: []}}}`))
	if _, err := torch.with(RuntimeSettings{}); err == nil || !strings.Contains(err.Error(), "torch is not an MPI runtime") {
		t.Errorf("the error is %v", err)
	}
	if _, err := from.copyAs(NewRuntime{}); err == nil || !strings.Contains(err.Error(), "name: is required") {
		t.Errorf("the error is %v", err)
	}
}
