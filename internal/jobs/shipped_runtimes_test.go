package jobs

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

func TestShippedRuntimes(t *testing.T) {
	t.Parallel()
	all, err := shippedRuntimes("v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	implementations := map[string]string{}
	for _, one := range all {
		implementations[one.Name] = one.Implementation
		if !one.MPI || !one.Shipped || len(one.Errors) > 0 || one.Namespace != "" || one.AgentImage != "quay.io/opendatahub/mpijob-agent:v1.2.3" {
			t.Errorf("%s: %+v", one.Name, one)
		}
		tag := ":v1.2.3"
		if one.PublishedImage() == "" {
			tag = ":not-published"
		}
		if strings.Contains(one.Image, "/opendatahub/") && !strings.HasSuffix(one.Image, tag) {
			t.Errorf("%s has the image %s", one.Name, one.Image)
		}
	}
	if diff := cmp.Diff(map[string]string{"mpi-openmpi": "OpenMPI", "mpi-openmpi5": "OpenMPI", "mpi-horovod": "OpenMPI", "mpi-deepspeed": "OpenMPI", "mpi-mpich": "MPICH", "mpi-intel": "Intel"}, implementations); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, version := range []string{"dev", "v1.2.3-4-gabcdef0", "v1.2.3-dirty"} {
		all, err := shippedRuntimes(version)
		if err != nil || all[0].AgentImage != "quay.io/opendatahub/mpijob-agent:latest" {
			t.Errorf("version %s has the image %s, %v", version, all[0].AgentImage, err)
		}
	}
	for _, name := range mpi.Implementations {
		if one, err := ShippedFor(name); err != nil || one.Implementation != string(name) {
			t.Errorf("%s: %+v, %v", name, one, err)
		}
	}
	missing, is := errors.AsType[*NotFoundError](second(findShipped("mpi-openmp")))
	if !is || !slices.Contains(missing.Similar, "mpi-openmpi") {
		t.Errorf("an unknown name: %+v", missing)
	}
}

// TestCreateRuntimeOnEmptyCluster creates runtimes of both kinds on a cluster that has none.
func TestCreateRuntimeOnEmptyCluster(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t)
	from, err := c.FindRuntime(t.Context(), "", "shipped/mpi-mpich")
	if err != nil {
		t.Fatal(err)
	}
	settings := from.Settings()
	settings.Image, settings.Slots, settings.MaxGPUs = "quay.io/me/mpich:1", 8, nil
	request := NewRuntime{Name: "mine", Namespace: "ns", Settings: settings, AgentImage: "registry/agent:2", RunAsUser: new(int64(1000))}
	if object, err := c.CreateRuntime(t.Context(), from, request, DryRunClient); err != nil || object.GetName() != "mine" {
		t.Fatalf("%v, %v", object, err)
	}
	for _, namespace := range []string{"ns", ""} {
		request.Namespace = namespace
		object, err := c.CreateRuntime(t.Context(), from, request, DryRunNone)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]string{"ns": trainjob.RuntimeKind, "": trainjob.ClusterRuntimeKind}[namespace]; object.GetKind() != want || object.GetNamespace() != namespace {
			t.Errorf("a %s in %q was created", object.GetKind(), object.GetNamespace())
		}
		got := describeRuntime(object)
		if got.Implementation != "MPICH" || got.Image != "quay.io/me/mpich:1" || got.AgentImage != "registry/agent:2" || got.Slots != 8 || got.MaxWorkers != "100" || got.MaxGPUs != "" || len(got.Errors) > 0 {
			t.Errorf("the runtime is %+v", got)
		}
		text, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		for part, n := range map[string]int{`"runAsUser":1000`: 2, `"runAsGroup":1000`: 2, `"image":"registry/agent:2"`: 2, `"image":"quay.io/me/mpich:1"`: 2, "opendatahub/mpi": 0} {
			if strings.Count(string(text), part) != n {
				t.Errorf("%s is not %d times in %s", part, n, text)
			}
		}
		if _, err := c.CreateRuntime(t.Context(), from, request, DryRunNone); err == nil || err.Error() != "runtime mine already exists" {
			t.Errorf("a second one: %v", err)
		}
	}
	// The runtime of the namespace can be changed, too.
	mine, err := c.FindRuntime(t.Context(), "ns", "trainingruntime/mine")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.ChangeRuntime(t.Context(), mine, RuntimeSettings{Slots: 2}); err != nil {
		t.Error(err)
	}
	if mine, err = c.FindRuntime(t.Context(), "ns", "trainingruntime/mine"); err != nil || mine.Slots != 2 {
		t.Errorf("after the change: %+v, %v", mine, err)
	}

	intel, err := ShippedFor(mpi.IntelMPI)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CreateRuntime(t.Context(), intel, NewRuntime{Name: "intel"}, DryRunClient)
	if err == nil || err.Error() != "image: is required: nobody publishes an image with Intel MPI; build one (images/README.md)" || intel.PublishedImage() != "" {
		t.Errorf("without an image: %v, and the image is %q", err, intel.PublishedImage())
	}
	if object, err := c.CreateRuntime(t.Context(), intel, NewRuntime{Name: "intel", Settings: RuntimeSettings{Image: "x"}}, DryRunClient); err != nil || describeRuntime(object).Image != "x" {
		t.Errorf("with an image: %v, %v", object, err)
	}
}

// TestAgentImageVolume replaces the image of the agent in pods that mount it.
func TestAgentImageVolume(t *testing.T) {
	t.Parallel()
	spec := map[string]any{"volumes": []any{map[string]any{"name": "mpi-agent", "image": map[string]any{"reference": "a"}}, map[string]any{"name": "mpi-agent", "emptyDir": map[string]any{}}}}
	replaceAgent(map[string]any{"spec": spec}, "b")
	want := []any{map[string]any{"name": "mpi-agent", "image": map[string]any{"reference": "b"}}, map[string]any{"name": "mpi-agent", "emptyDir": map[string]any{}}}
	if diff := cmp.Diff(want, spec["volumes"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
