package jobs

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
		"labels of nodes":    {RuntimeSettings{RequiredNodeLabels: "pool=gpu"}, Runtime{Slots: 1, Image: "old", NodeLabels: "pool=gpu"}},
		"destinations":       {RuntimeSettings{AllowEgress: "9000"}, Runtime{Slots: 1, Image: "old", AllowEgress: "9000"}},
	} {
		changed, err := from.with(test.settings)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := describeRuntime(changed)
		if diff := cmp.Diff(test.want, Runtime{MaxWorkers: got.MaxWorkers, MinWorkers: got.MinWorkers, MaxGPUs: got.MaxGPUs, GangTimeout: got.GangTimeout, PriorityClass: got.PriorityClass, NodeLabels: got.NodeLabels, AllowEgress: got.AllowEgress, Slots: got.Slots, Image: got.Image}); diff != "" {
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

// TestRequiredNodeLabels: all pods of a runtime run on nodes with the labels that it requires, so that jobs need no node selector of their
// own. Labels that it no longer requires are removed, and other ones of the runtime stay.
func TestRequiredNodeLabels(t *testing.T) {
	t.Parallel()
	const pod = `{spec: {template: {spec: {containers: [{name: node, image: x}]}}}}`
	runtime := describeRuntime(clusterRuntime(t, "mpi", `{mlPolicy: {mpi: {}}, template: {spec: {replicatedJobs: [
		{name: launcher, template: {spec: {template: {spec: {nodeSelector: {disk: ssd, pool: cpu}, containers: [{name: node, image: x}]}}}}}, {name: node, template: `+pod+`}]}}}`))
	for _, step := range []struct {
		labels         string
		launcher, node map[string]any
	}{
		{"pool=gpu, zone=a", map[string]any{"disk": "ssd", "pool": "gpu", "zone": "a"}, map[string]any{"pool": "gpu", "zone": "a"}},
		{"pool=gpu, zone=a", map[string]any{"disk": "ssd", "pool": "gpu", "zone": "a"}, map[string]any{"pool": "gpu", "zone": "a"}},
		{"zone=b", map[string]any{"disk": "ssd", "zone": "b"}, map[string]any{"zone": "b"}},
		{"", map[string]any{"disk": "ssd"}, nil},
	} {
		settings := runtime.Settings()
		settings.RequiredNodeLabels = step.labels
		changed, err := runtime.with(settings)
		if err != nil {
			t.Fatal(err)
		}
		var selectors []map[string]any
		err = changePods(changed, func(pod map[string]any) error {
			selector, _, err := unstructured.NestedMap(pod, "nodeSelector")
			selectors = append(selectors, selector)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]map[string]any{step.launcher, step.node}, selectors); diff != "" {
			t.Errorf("%q (-want +got)\n%s", step.labels, diff)
		}
		runtime = describeRuntime(changed)
	}
}

func TestRuntimeSettingsAreChecked(t *testing.T) {
	t.Parallel()
	from := describeRuntime(clusterRuntime(t, "mpi", `{mlPolicy: {mpi: {}}, template: {spec: {replicatedJobs: []}}}`))
	_, err := from.copyAs(NewRuntime{Name: "Not_Allowed", AgentImage: "two words", RunAsUser: new(int64(0)), Settings: RuntimeSettings{Image: "two words", Slots: -1, MaxWorkers: new(int32(0)), MinWorkers: new(int32(0)), MaxGPUs: new(int32(-1)), GangTimeoutSeconds: new(int32(0)), PriorityClass: "Two words", RequiredNodeLabels: "gpu", AllowEgress: "fd00::1:2049"}})
	invalid, is := errors.AsType[*InvalidError](err)
	if !is {
		t.Fatalf("the error is %v", err)
	}
	var fields []string
	for _, field := range invalid.Fields {
		fields = append(fields, field.Field)
	}
	if diff := cmp.Diff([]string{"image", "slots", "maxWorkers", "minWorkers", "maxGPUs", "gangTimeoutSeconds", "priorityClass", "requiredNodeLabels", "allowEgress", "name", "agentImage", "runAsUser"}, fields); diff != "" {
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

// TestRuntimesOfSDK writes runtimes that are made from others, or why they are not, for a test of the SDK, which has these rules in
// Python.
func TestRuntimesOfSDK(t *testing.T) {
	t.Parallel()
	const pod = `{spec: {template: {spec: {initContainers: [{name: mpi-agent, image: agent}, {name: other, image: old}], containers: [{name: node, image: old}, {name: log, image: logger}, {name: copy, image: old}], volumes: [{name: data, image: {reference: agent}}, {name: mpi-agent, image: {reference: agent}}]}}}}`
	base := clusterRuntime(t, "mpi", `{mlPolicy: {mpi: {numProcPerNode: 1}}, template: {spec: {replicatedJobs: [{name: launcher, template: `+pod+`}, {name: node, template: {spec: {template: {spec: {priorityClassName: low, nodeSelector: {pool: a, disk: ssd}, securityContext: {runAsNonRoot: true}, containers: [{name: node, image: old}]}}}}}]}}}`)
	base.SetResourceVersion("7")
	base.SetUID("1")
	base.SetLabels(map[string]string{"team": "a"})
	base.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "a", mpi.AnnotationMaxWorkers: "8", mpi.AnnotationScheduleTimeout: "60", mpi.AnnotationNodeLabels: "pool=a", mpi.AnnotationAllowEgress: "9000"})
	torch := clusterRuntime(t, "torch", `{mlPolicy: {torch: {}}, template: {spec: {replicatedJobs: []}}}`)
	shippedAll, err := shippedRuntimes("")
	if err != nil {
		t.Fatal(err)
	}
	type sdkCase struct {
		Name string `json:"name"`
		// From is an object, or the reference of a shipped runtime.
		From       any             `json:"from"`
		Runtime    string          `json:"runtime"`
		Namespace  string          `json:"namespace"`
		Settings   json.RawMessage `json:"settings"`
		AgentImage string          `json:"agentImage,omitempty"`
		RunAsUser  *int64          `json:"runAsUser,omitempty"`
		// Object is the runtime; without it, Refused are the fields that are wrong.
		Object  map[string]any `json:"object,omitempty"`
		Refused []string       `json:"refused,omitempty"`
	}
	cases := []sdkCase{
		{Name: "a copy", From: base, Runtime: "mine", Namespace: "team", Settings: json.RawMessage(`{}`)},
		{Name: "all settings", From: base, Runtime: "mine", Settings: json.RawMessage(`{"image": "quay.io/me/new:1", "slots": 8, "maxWorkers": 4, "minWorkers": 2, "maxGPUs": 0, "gangTimeoutSeconds": 300, "priorityClass": "urgent", "requiredNodeLabels": "pool=b,zone=a", "allowEgress": "namespace/minio:9000,192.0.2.7"}`), AgentImage: "quay.io/me/agent:1", RunAsUser: new(int64(7))},
		{Name: "no limits", From: base, Runtime: "mine", Settings: json.RawMessage(`{"maxWorkers": null, "gangTimeoutSeconds": null, "priorityClass": "", "requiredNodeLabels": "", "allowEgress": ""}`)},
		{Name: "a shipped runtime", From: "shipped/mpi-openmpi", Runtime: "1st", Namespace: "team", Settings: json.RawMessage(`{"image": "quay.io/me/new:1", "maxGPUs": null}`), AgentImage: "quay.io/me/agent:1", RunAsUser: new(int64(1000))},
		{Name: "a shipped runtime without an image", From: "shipped/mpi-intel", Runtime: "mine", Settings: json.RawMessage(`{}`)},
		{Name: "all that is wrong", From: base, Runtime: "Not_Allowed", Settings: json.RawMessage(`{"image": "two words", "slots": -1, "maxWorkers": 0, "minWorkers": 0, "maxGPUs": -1, "gangTimeoutSeconds": 0, "priorityClass": "Two words", "requiredNodeLabels": "two words=a"}`), AgentImage: "two words", RunAsUser: new(int64(0))},
		{Name: "a minimum above that maximum", From: base, Runtime: "mine", Settings: json.RawMessage(`{"minWorkers": 9}`)},
		{Name: "a minimum above the maximum", From: base, Runtime: "mine", Settings: json.RawMessage(`{"minWorkers": 3, "maxWorkers": 2}`)},
		{Name: "no MPI", From: torch, Runtime: "mine", Settings: json.RawMessage(`{}`)},
	}
	for i := range cases {
		test := &cases[i]
		var from Runtime
		switch source := test.From.(type) {
		case *unstructured.Unstructured:
			from = describeRuntime(source)
		case string:
			from = shippedAll[slices.IndexFunc(shippedAll, func(one Runtime) bool { return ShippedPrefix+one.Name == source })]
		}
		settings := from.Settings()
		if err := json.Unmarshal(test.Settings, &settings); err != nil {
			t.Fatal(err)
		}
		made, err := from.copyAs(NewRuntime{Name: test.Runtime, Namespace: test.Namespace, Settings: settings, AgentImage: test.AgentImage, RunAsUser: test.RunAsUser})
		if invalid, is := errors.AsType[*InvalidError](err); is {
			for _, field := range invalid.Fields {
				test.Refused = append(test.Refused, field.Field)
			}
		} else if err != nil {
			t.Fatal(err)
		} else {
			test.Object = made.Object
		}
	}
	text, err := json.MarshalIndent(cases, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	compareFile(t, filepath.Join("..", "..", "sdk", "python", "tests", "unit", "runtimes.json"), string(text)+"\n")
}
