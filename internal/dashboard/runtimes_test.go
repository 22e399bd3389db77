package dashboard_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/jobs"
)

func TestAdministratorsCreateAndChangeRuntimes(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "runtime-admins", "user")
	user, admin := caller{t, tokens["user"]}, caller{t, administrator(t, "runtime-admins")}
	var from unstructured.Unstructured
	must(t, yaml.Unmarshal([]byte(`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: admins-mpi}, spec: {mlPolicy: {numNodes: 1, mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI, runLauncherAsNode: true}}, template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [{name: node, image: "quay.io/team/mpi:1"}]}}}}}]}}}}`), &from.Object))
	must(t, api.Create(t.Context(), &from))
	t.Cleanup(func() {
		for _, name := range []string{"admins-mpi", "admins-gpu"} {
			from.SetName(name)
			_ = api.Delete(context.WithoutCancel(t.Context()), &from)
		}
	})
	request := dashboard.NewRuntime{From: "admins-mpi", Name: "admins-gpu", Settings: jobs.RuntimeSettings{Image: "quay.io/team/mpi:2", Slots: 8, MaxWorkers: new(int32(4)), MaxGPUs: new(int32(8))}}
	for name, test := range map[string]struct {
		who    caller
		change func(*dashboard.NewRuntime)
		status int
	}{
		"by a user":                   {user, func(*dashboard.NewRuntime) {}, http.StatusForbidden},
		"of one that does not exist":  {admin, func(r *dashboard.NewRuntime) { r.From = "none" }, http.StatusNotFound},
		"under a name that is taken":  {admin, func(r *dashboard.NewRuntime) { r.Name = "admins-mpi" }, http.StatusConflict},
		"with a limit of zero":        {admin, func(r *dashboard.NewRuntime) { r.Settings.MaxWorkers = new(int32(0)) }, http.StatusUnprocessableEntity},
		"under a name not allowed":    {admin, func(r *dashboard.NewRuntime) { r.Name = "Not_Allowed" }, http.StatusUnprocessableEntity},
		"under the name of no object": {admin, func(r *dashboard.NewRuntime) { r.Name = "" }, http.StatusUnprocessableEntity},
	} {
		changed := request
		test.change(&changed)
		if status, body := test.who.send(http.MethodPost, "runtimes", changed); status != test.status {
			t.Errorf("a copy %s: status %d, want %d: %s", name, status, test.status, body)
		}
	}
	if result := post[dashboard.ActionResult](admin, "runtimes", request); result.Result != "admins-gpu" {
		t.Errorf("the result is %+v", result)
	}
	if status, body := user.send(http.MethodPut, "runtimes/admins-gpu", jobs.RuntimeSettings{}); status != http.StatusForbidden {
		t.Errorf("a change by a user: status %d: %s", status, body)
	}
	if status, body := admin.send(http.MethodPut, "runtimes/admins-gpu", jobs.RuntimeSettings{MaxWorkers: new(int32(2)), RequiredNodeLabels: "pool=gpu", AllowEgress: "9000"}); status != http.StatusOK {
		t.Errorf("a change: status %d: %s", status, body)
	}
	page := get[dashboard.Runtimes](admin, "runtimes")
	i := slices.IndexFunc(page.Runtimes, func(r dashboard.Runtime) bool { return r.Name == "admins-gpu" })
	if i < 0 || !page.Cluster.Create || !page.Cluster.Update {
		t.Fatalf("the administrator sees %+v", page)
	}
	if got := page.Runtimes[i]; got.MaxWorkers != "2" || got.MaxGPUs != "" || got.Slots != "8" || got.Image != "quay.io/team/mpi:2" || got.NodeLabels != "pool=gpu" || got.AllowEgress != "9000" {
		t.Errorf("the runtime is %+v", got)
	}
	if page := get[dashboard.Runtimes](user, "runtimes?namespace=runtime-admins"); page.Cluster != (dashboard.RuntimeRights{}) || page.Project != (dashboard.RuntimeRights{}) {
		t.Error("a user is offered to manage runtimes")
	}
}

func TestAdministratorsDeleteRuntimes(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "runtime-deleters", "user")
	user, admin := caller{t, tokens["user"]}, caller{t, administrator(t, "runtime-deleters")}
	apply := func(text string) {
		var object unstructured.Unstructured
		must(t, yaml.Unmarshal([]byte(text), &object.Object))
		must(t, api.Create(t.Context(), &object))
	}
	clean := func(name string) {
		var object unstructured.Unstructured
		object.SetGroupVersionKind(jobs.RuntimeKinds()[0])
		object.SetName(name)
		_ = api.Patch(context.WithoutCancel(t.Context()), &object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		_ = api.Delete(context.WithoutCancel(t.Context()), &object)
	}
	for name, finalizers := range map[string]string{"deleters-free": "[]", "deleters-kept": "[trainer.kubeflow.org/resource-in-use]"} {
		apply(`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: ` + name + `, finalizers: ` + finalizers + `}, spec: {mlPolicy: {numNodes: 1}, template: {spec: {replicatedJobs: []}}}}`)
		t.Cleanup(func() { clean(name) })
	}
	trainJob := func(name, ref, more string) {
		apply(`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: ` + name + `, namespace: runtime-deleters}, spec: {runtimeRef: ` + ref + more + `}}`)
	}
	trainJob("waits", "{name: deleters-free}", ", suspend: true")
	trainJob("also-waits", "{name: deleters-free, kind: ClusterTrainingRuntime}", "")
	trainJob("of-the-namespace", "{name: deleters-free, kind: TrainingRuntime}", "")
	trainJob("of-another", "{name: deleters-kept}", "")

	// The list follows the cluster in a moment.
	var used dashboard.RuntimeJobs
	eventually(t, "the jobs of the runtime", func() bool {
		used = get[dashboard.RuntimeJobs](user, "runtimes/deleters-free/jobs")
		return used.Waiting >= 2
	})
	if used.Running != 0 || used.Waiting != 2 || len(used.Jobs) != 2 || used.Jobs[0].Name != "also-waits" || used.Jobs[1].Name != "waits" {
		t.Errorf("the jobs of the runtime are %+v", used)
	}
	stranger := caller{t, namespace(t, "runtime-strangers", "user")["user"]}
	if used := get[dashboard.RuntimeJobs](stranger, "runtimes/deleters-free/jobs"); used.Waiting != 0 || len(used.Jobs) != 0 {
		t.Errorf("a user of another namespace sees %+v", used)
	}
	if !get[dashboard.Runtimes](admin, "runtimes").Cluster.Delete {
		t.Error("an administrator is not offered to delete runtimes")
	}
	for name, test := range map[string]struct {
		who     caller
		runtime string
		status  int
	}{
		"by a user":                  {user, "deleters-free", http.StatusForbidden},
		"of one that does not exist": {admin, "none", http.StatusNotFound},
	} {
		if status, body := test.who.send(http.MethodDelete, "runtimes/"+test.runtime, nil); status != test.status {
			t.Errorf("a deletion %s: status %d, want %d: %s", name, status, test.status, body)
		}
	}
	for name, want := range map[string]string{
		"deleters-free": "The runtime deleters-free is deleted. Jobs that run continue.",
		"deleters-kept": "The runtime deleters-kept is deleted when its finalizers allow it: trainer.kubeflow.org/resource-in-use.",
	} {
		if status, body := admin.send(http.MethodDelete, "runtimes/"+name, nil); status != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("the deletion of %s: status %d: %s", name, status, body)
		}
	}
	for _, one := range get[dashboard.Runtimes](admin, "runtimes").Runtimes {
		if one.Name == "deleters-free" || one.Name == "deleters-kept" && !one.Deleting {
			t.Errorf("after its deletion: %+v", one)
		}
	}
}

// TestRuntimesAreCreatedFromShipped creates runtimes of a namespace and of the cluster without copying one of the cluster.
func TestRuntimesAreCreatedFromShipped(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "runtime-makers", "user", "admin")
	user, manager, admin := caller{t, tokens["user"]}, caller{t, tokens["admin"]}, caller{t, administrator(t, "runtime-makers")}
	form := get[dashboard.RuntimeForm](user, "runtimes/form")
	i := slices.IndexFunc(form.Shipped, func(one dashboard.ShippedRuntime) bool { return one.Name == "mpi-mpich" })
	if i < 0 || form.AgentImage != "quay.io/opendatahub/mpijob-agent:latest" || form.RunAsUser == nil || *form.RunAsUser != 1000 {
		t.Fatalf("the form is %+v", form)
	}
	if got, want := form.Shipped[i], (dashboard.ShippedRuntime{Name: "mpi-mpich", Framework: "MPI", Implementation: "MPICH", Slots: "1", Image: "quay.io/opendatahub/mpi-sample-mpich:latest", MaxWorkers: "100", MaxGPUs: "16"}); got != want {
		t.Errorf("MPICH's runtime is %+v", got)
	}
	request := dashboard.NewRuntime{From: "shipped/mpi-mpich", Name: "makers-mpich", Settings: jobs.RuntimeSettings{Image: "quay.io/team/mpich:1", Slots: 2, MaxGPUs: new(int32(4))}, AgentImage: "registry/agent:1", RunAsUser: new(int64(2000))}
	t.Cleanup(func() {
		var object unstructured.Unstructured
		object.SetGroupVersionKind(jobs.RuntimeKinds()[0])
		object.SetName("makers-mpich")
		_ = api.Delete(context.WithoutCancel(t.Context()), &object)
	})
	for _, test := range []struct {
		name      string
		who       caller
		namespace string
		from      string
		status    int
	}{
		{"of the cluster by a user", user, "", "shipped/mpi-mpich", http.StatusForbidden},
		{"of the namespace by a user", user, "runtime-makers", "shipped/mpi-mpich", http.StatusForbidden},
		{"of the cluster by the namespace's administrator", manager, "", "shipped/mpi-mpich", http.StatusForbidden},
		{"of the namespace by its administrator", manager, "runtime-makers", "shipped/mpi-mpich", http.StatusOK},
		{"under a name that is taken", manager, "runtime-makers", "shipped/mpi-mpich", http.StatusConflict},
		{"of one that is not shipped", admin, "", "shipped/mpi-mpich1", http.StatusNotFound},
		{"without Intel's image", admin, "", "shipped/mpi-intel", http.StatusUnprocessableEntity},
		{"of the cluster", admin, "", "shipped/mpi-mpich", http.StatusOK},
	} {
		request := request
		if request.Namespace, request.From = test.namespace, test.from; test.from == "shipped/mpi-intel" {
			request.Settings.Image = ""
		}
		if status, body := test.who.send(http.MethodPost, "runtimes", request); status != test.status {
			t.Errorf("a runtime %s: status %d, want %d: %s", test.name, status, test.status, body)
		}
	}
	page := get[dashboard.Runtimes](manager, "runtimes?namespace=runtime-makers")
	if all := (dashboard.RuntimeRights{Create: true, Update: true, Delete: true}); page.Project != all || page.Cluster != (dashboard.RuntimeRights{}) {
		t.Errorf("the namespace's administrator may do %+v in the namespace and %+v in the cluster", page.Project, page.Cluster)
	}
	var kinds []string
	for _, one := range get[dashboard.Runtimes](admin, "runtimes?namespace=runtime-makers").Runtimes {
		if one.Name != "makers-mpich" {
			continue
		}
		kinds = append(kinds, one.Kind)
		if one.Implementation != "MPICH" || one.Image != "quay.io/team/mpich:1" || one.Slots != "2" || one.MaxWorkers != "" || one.MaxGPUs != "4" || len(one.Errors) > 0 {
			t.Errorf("the %s is %+v", one.Kind, one)
		}
	}
	if !slices.Equal(kinds, []string{"ClusterTrainingRuntime", "TrainingRuntime"}) {
		t.Fatalf("there are runtimes of the kinds %v", kinds)
	}
	const mine = "runtimes/makers-mpich?namespace=runtime-makers"
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		if status, body := user.send(method, mine, jobs.RuntimeSettings{}); status != http.StatusForbidden {
			t.Errorf("%s by a user: status %d: %s", method, status, body)
		}
		if status, body := manager.send(method, mine, jobs.RuntimeSettings{Slots: 4}); status != http.StatusOK {
			t.Errorf("%s: status %d: %s", method, status, body)
		}
	}
	for _, one := range get[dashboard.Runtimes](admin, "runtimes?namespace=runtime-makers").Runtimes {
		if one.Name == "makers-mpich" && (one.Kind != "ClusterTrainingRuntime" || one.Slots != "2") {
			t.Errorf("after its deletion there is %+v", one)
		}
	}
}
