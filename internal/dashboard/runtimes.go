package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/doctor"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// Runtimes are the runtimes of Kubeflow Trainer.
type Runtimes struct {
	Runtimes []Runtime `json:"runtimes"`
	// Installed is unset if the cluster has no Kubeflow Trainer.
	Installed bool `json:"installed"`
	// Cluster are the rights of the user for runtimes of the cluster.
	Cluster RuntimeRights `json:"cluster"`
	// Project are the rights of the user for runtimes of the namespace of the request; none without a namespace.
	Project RuntimeRights `json:"project"`
	Missing []string      `json:"missing"`
}

// RuntimeRights are what a user may do with runtimes.
type RuntimeRights struct {
	Create bool `json:"create"`
	Update bool `json:"update"`
	Delete bool `json:"delete"`
}

// Runtime is a runtime of Kubeflow Trainer.
type Runtime struct {
	Kind string `json:"kind"`
	// Namespace is empty for a runtime of the cluster.
	Namespace      string `json:"namespace,omitempty"`
	Name           string `json:"name"`
	Framework      string `json:"framework,omitempty"`
	MPI            bool   `json:"mpi"`
	Implementation string `json:"implementation,omitempty"`
	Slots          string `json:"slots,omitempty"`
	Image          string `json:"image,omitempty"`
	MaxWorkers     string `json:"maxWorkers,omitempty"`
	MinWorkers     string `json:"minWorkers,omitempty"`
	MaxGPUs        string `json:"maxGPUs,omitempty"`
	// GangTimeout is in seconds.
	GangTimeout   string `json:"gangTimeout,omitempty"`
	PriorityClass string `json:"priorityClass,omitempty"`
	NodeLabels    string `json:"nodeLabels,omitempty"`
	AllowEgress   string `json:"allowEgress,omitempty"`
	// Deleting is set while finalizers keep a deleted runtime.
	Deleting bool     `json:"deleting,omitempty"`
	Errors   []string `json:"errors"`
	// Tests are the tests of the runtime, the latest first.
	Tests []RuntimeTest `json:"tests"`
}

// RuntimeTest is a test of a runtime.
type RuntimeTest struct {
	Namespace string                  `json:"namespace"`
	Name      string                  `json:"name"`
	Phase     string                  `json:"phase"`
	Message   string                  `json:"message,omitempty"`
	Created   time.Time               `json:"created"`
	Checks    []v1alpha1.RuntimeCheck `json:"checks"`
}

// RuntimeForm is what a form needs to create a runtime.
type RuntimeForm struct {
	// Shipped are the runtimes that the project ships: a cluster need not have them.
	Shipped []ShippedRuntime `json:"shipped"`
	// AgentImage is the image of the agent for a shipped runtime: that of the operator, if the user may read its Deployment.
	AgentImage string `json:"agentImage"`
	// RunAsUser is the user of the pods of a shipped runtime; null on OpenShift, which picks one.
	RunAsUser *int64 `json:"runAsUser,omitempty"`
}

// ShippedRuntime is a runtime that the project ships.
type ShippedRuntime struct {
	Name           string `json:"name"`
	Framework      string `json:"framework,omitempty"`
	Implementation string `json:"implementation"`
	Slots          string `json:"slots"`
	// Image is empty if nobody publishes one.
	Image      string `json:"image,omitempty"`
	MaxWorkers string `json:"maxWorkers,omitempty"`
	MaxGPUs    string `json:"maxGPUs,omitempty"`
}

// NewRuntime describes a runtime to create from another.
type NewRuntime struct {
	// From is shipped/NAME, trainingruntime/NAME of the namespace or, also as NAME, clustertrainingruntime/NAME.
	From string `json:"from"`
	Name string `json:"name"`
	// Namespace is that of the new runtime; empty for a runtime of the cluster.
	Namespace string               `json:"namespace,omitempty"`
	Settings  jobs.RuntimeSettings `json:"settings"`
	// AgentImage and RunAsUser replace those of the other runtime; without them, they are kept.
	AgentImage string `json:"agentImage,omitempty"`
	RunAsUser  *int64 `json:"runAsUser,omitempty"`
}

// RuntimeJobs are the jobs of a runtime that have not ended, as far as the user may see them.
type RuntimeJobs struct {
	// Running is the number of jobs that have pods, Waiting the number of those that wait or are suspended.
	Running int `json:"running"`
	Waiting int `json:"waiting"`
	// Jobs are the first of them, by namespace and name.
	Jobs []Row `json:"jobs"`
}

// TestRequest starts a test of a runtime in a namespace.
type TestRequest struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	// Image, CPU, Memory and GPU replace those of the runtime; empty for the runtime's.
	Image  string `json:"image,omitempty"`
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
	GPU    string `json:"gpu,omitempty"`
	Queue  string `json:"queue,omitempty"`
}

// runtimes returns the runtimes of the cluster and of a namespace (empty: of all), by name. It returns false if the cluster has
// no Kubeflow Trainer.
func (c *call) runtimes(namespace string) (all []Runtime, installed bool, err error) {
	all = []Runtime{}
	list, err := c.jobs.Runtimes(c.ctx, namespace)
	if _, none := errors.AsType[*jobs.NoTrainerError](err); none {
		return all, false, nil
	}
	if err != nil {
		return all, true, err
	}
	for _, one := range list.Runtimes {
		found := Runtime{
			Kind: one.Kind, Namespace: one.Namespace, Name: one.Name, Framework: frameworkOf(one.Object), MPI: one.MPI, Implementation: one.Implementation,
			Image: one.Image, MaxWorkers: one.MaxWorkers, MinWorkers: one.MinWorkers, MaxGPUs: one.MaxGPUs, GangTimeout: one.GangTimeout, PriorityClass: one.PriorityClass, NodeLabels: one.NodeLabels, AllowEgress: one.AllowEgress, Errors: []string{}, Tests: []RuntimeTest{},
			Deleting: one.Object.GetDeletionTimestamp() != nil,
		}
		if one.MPI {
			found.Slots = strconv.Itoa(int(one.Slots))
		}
		if one.MPI || one.Unreadable {
			found.Errors = orEmpty(one.Errors)
		}
		all = append(all, found)
	}
	for _, omitted := range list.Omitted {
		// Runtimes of all namespaces are only for those who may list them.
		if omitted.Kind != trainjob.RuntimeKind || namespace != "" {
			return all, true, omitted.Err
		}
	}
	return all, true, nil
}

// runtimesPage returns runtimes with their tests.
func (s *Server) runtimesPage(c *call) (any, error) {
	found := Runtimes{Runtimes: []Runtime{}}
	var no missing
	all, installed, err := c.runtimes(c.URL.Query().Get("namespace"))
	if err := no.note("runtimes", err); err != nil {
		return nil, err
	}
	found.Runtimes, found.Installed = all, installed
	tests, err := c.jobs.RuntimeTests(c.ctx, c.URL.Query().Get("namespace"))
	if err := no.note("tests of runtimes", err); err != nil {
		return nil, err
	}
	for _, test := range tests {
		for i := range found.Runtimes {
			one := &found.Runtimes[i]
			ref := test.Spec.RuntimeRef
			if ref.Name == one.Name && cmp.Or(ref.Kind, trainjob.ClusterRuntimeKind) == one.Kind && (one.Namespace == "" || one.Namespace == test.Namespace) {
				one.Tests = append(one.Tests, RuntimeTest{
					Namespace: test.Namespace, Name: test.Name, Phase: cmp.Or(string(test.Status.Phase), string(v1alpha1.TestPending)), Message: test.Status.Message,
					Created: test.CreationTimestamp.UTC(), Checks: orEmpty(test.Status.Checks),
				})
			}
		}
	}
	found.Missing = orEmpty([]string(no))
	if !installed {
		return found, nil
	}
	if found.Cluster, err = c.runtimeRights(jobs.RuntimeKinds()[0], ""); err != nil {
		return nil, err
	}
	if namespace := c.URL.Query().Get("namespace"); namespace != "" {
		found.Project, err = c.runtimeRights(jobs.RuntimeKinds()[1], namespace)
	}
	return found, err
}

// runtimeRights returns what the user may do with the runtimes of a kind.
func (c *call) runtimeRights(kind schema.GroupVersionKind, namespace string) (rights RuntimeRights, err error) {
	for verb, can := range map[string]*bool{"create": &rights.Create, "update": &rights.Update, "delete": &rights.Delete} {
		if *can, err = c.may(c.ctx, verb, resourceOf(kind).GroupResource(), namespace); err != nil {
			return rights, err
		}
	}
	return rights, nil
}

// findRuntime returns the runtime that the URL names: of the cluster, or of the namespace in the parameters.
func (c *call) findRuntime() (jobs.Runtime, error) {
	if namespace := c.URL.Query().Get("namespace"); namespace != "" {
		return c.jobs.FindRuntime(c.ctx, namespace, trainjob.RuntimeKind+"/"+c.PathValue("name"))
	}
	return c.jobs.FindRuntime(c.ctx, "", trainjob.ClusterRuntimeKind+"/"+c.PathValue("name"))
}

// runtimeForm returns what a form needs to create a runtime.
func (s *Server) runtimeForm(c *call) (any, error) {
	shipped, err := jobs.ShippedRuntimes()
	if err != nil {
		return nil, err
	}
	form := RuntimeForm{}
	for _, one := range shipped {
		form.AgentImage = one.AgentImage
		form.Shipped = append(form.Shipped, ShippedRuntime{
			Name: one.Name, Framework: frameworkOf(one.Object), Implementation: one.Implementation, Slots: strconv.Itoa(int(one.Slots)), Image: one.PublishedImage(), MaxWorkers: one.MaxWorkers, MaxGPUs: one.MaxGPUs,
		})
	}
	// Not every user may read the operator's Deployment; the image of this version fits most clusters.
	if operator, err := doctor.FindOperator(c.ctx, c.api); err == nil && operator.AgentImage != "" {
		form.AgentImage = operator.AgentImage
	}
	form.RunAsUser, err = c.jobs.RuntimeUser()
	return form, err
}

// createRuntime creates a runtime from another.
func (s *Server) createRuntime(c *call) (any, error) {
	request, err := body[NewRuntime](c)
	if err != nil {
		return nil, err
	}
	reference := request.From
	if !strings.Contains(reference, "/") {
		reference = trainjob.ClusterRuntimeKind + "/" + reference
	}
	from, err := c.jobs.FindRuntime(c.ctx, request.Namespace, reference)
	if err != nil {
		return nil, err
	}
	created := jobs.NewRuntime{Name: request.Name, Namespace: request.Namespace, Settings: request.Settings, AgentImage: request.AgentImage, RunAsUser: request.RunAsUser}
	if _, err := c.jobs.CreateRuntime(c.ctx, from, created, jobs.DryRunNone); err != nil {
		return nil, err
	}
	return ActionResult{request.Name, fmt.Sprintf("The runtime %s is created from %s.", request.Name, from.Name)}, nil
}

// changeRuntime changes the settings of a runtime.
func (s *Server) changeRuntime(c *call) (any, error) {
	settings, err := body[jobs.RuntimeSettings](c)
	if err != nil {
		return nil, err
	}
	runtime, err := c.findRuntime()
	if err != nil {
		return nil, err
	}
	if err := c.jobs.ChangeRuntime(c.ctx, runtime, settings); err != nil {
		return nil, err
	}
	return ActionResult{runtime.Name, fmt.Sprintf("The runtime %s is changed.", runtime.Name)}, nil
}

// removeRuntime deletes a runtime.
func (s *Server) removeRuntime(c *call) (any, error) {
	runtime, err := c.findRuntime()
	if err != nil {
		return nil, err
	}
	isKept, err := c.jobs.DeleteRuntime(c.ctx, runtime)
	if err != nil {
		return nil, err
	}
	if isKept {
		return ActionResult{"Deleting", fmt.Sprintf("The runtime %s is deleted when its finalizers allow it: %s.", runtime.Name, strings.Join(runtime.Object.GetFinalizers(), ", "))}, nil
	}
	return ActionResult{"Deleted", fmt.Sprintf("The runtime %s is deleted. Jobs that run continue.", runtime.Name)}, nil
}

// maxRuntimeJobs is how many jobs of a runtime are returned with their names.
const maxRuntimeJobs = 5

// runtimeJobs returns the jobs of a runtime that have not ended, as far as the user may see them.
func (s *Server) runtimeJobs(c *call) (any, error) {
	visible, _, _, err := s.visible(c.ctx, c.user)
	if err != nil {
		return nil, err
	}
	found := RuntimeJobs{Jobs: []Row{}}
	namespace := c.URL.Query().Get("namespace")
	for _, row := range visible {
		if row.ofCluster != (namespace == "") || namespace != "" && row.Namespace != namespace || row.Runtime != c.PathValue("name") || row.Deleted || row.Ended != nil {
			continue
		}
		switch v1alpha1.Phase(row.Phase) {
		case v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed:
			continue
		case v1alpha1.PhaseInitializing, v1alpha1.PhaseRunning:
			found.Running++
		default:
			found.Waiting++
		}
		found.Jobs = append(found.Jobs, *row)
	}
	slices.SortFunc(found.Jobs, func(a, b Row) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	found.Jobs = found.Jobs[:min(len(found.Jobs), maxRuntimeJobs)]
	return found, nil
}

// testTimeout and testTTL are how long a test may run, and how long it is kept after it finished.
const (
	testTimeout = 5 * time.Minute
	testTTL     = 24 * time.Hour
)

// test starts a test of a runtime.
func (s *Server) test(c *call) (any, error) {
	request, err := body[TestRequest](c)
	if err != nil {
		return nil, err
	}
	test, err := c.jobs.StartRuntimeTest(c.ctx, jobs.RuntimeTestSpec{
		Namespace: request.Namespace, Kind: request.Kind, Name: request.Name, Image: request.Image, CPU: request.CPU, Memory: request.Memory, GPU: request.GPU,
		Queue: request.Queue, Timeout: testTimeout, TTL: testTTL,
	})
	if err != nil {
		return nil, err
	}
	return ActionResult{test.Name, fmt.Sprintf("The test %s of %s runs in namespace %s: a launcher and two workers.", test.Name, request.Name, request.Namespace)}, nil
}
