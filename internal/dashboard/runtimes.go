package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/phrase"
)

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
			Image: one.Image, MaxWorkers: one.MaxWorkers, MaxGPUs: one.MaxGPUs, NodeLabels: one.NodeLabels, Errors: []string{}, Tests: []RuntimeTest{},
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
	found.CanManage, found.CanDelete = installed, installed
	for verb, can := range map[string]*bool{"create": &found.CanManage, "update": &found.CanManage, "delete": &found.CanDelete} {
		allowed, err := c.may(c.ctx, verb, resourceOf(jobs.RuntimeKinds()[0]).GroupResource(), "")
		if err != nil {
			return nil, err
		}
		*can = *can && allowed
	}
	found.Missing = orEmpty([]string(no))
	return found, nil
}

// clusterRuntime returns a runtime of the cluster.
func (c *call) clusterRuntime(name string) (jobs.Runtime, error) {
	return c.jobs.FindRuntime(c.ctx, "", trainjob.ClusterRuntimeKind+"/"+name)
}

// copyRuntime creates a runtime of the cluster from another.
func (s *Server) copyRuntime(c *call) (any, error) {
	request, err := body[RuntimeCopy](c)
	if err != nil {
		return nil, err
	}
	from, err := c.clusterRuntime(request.From)
	if err != nil {
		return nil, err
	}
	if err := c.jobs.CopyRuntime(c.ctx, from, request.Name, request.Settings); err != nil {
		return nil, err
	}
	return ActionResult{request.Name, fmt.Sprintf("The runtime %s is created from %s.", request.Name, from.Name)}, nil
}

// changeRuntime changes the settings of a runtime of the cluster.
func (s *Server) changeRuntime(c *call) (any, error) {
	settings, err := body[jobs.RuntimeSettings](c)
	if err != nil {
		return nil, err
	}
	runtime, err := c.clusterRuntime(c.PathValue("name"))
	if err != nil {
		return nil, err
	}
	if err := c.jobs.ChangeRuntime(c.ctx, runtime, settings); err != nil {
		return nil, err
	}
	return ActionResult{runtime.Name, fmt.Sprintf("The runtime %s is changed.", runtime.Name)}, nil
}

// removeRuntime deletes a runtime of the cluster.
func (s *Server) removeRuntime(c *call) (any, error) {
	runtime, err := c.clusterRuntime(c.PathValue("name"))
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

// runtimeJobs returns the jobs of a runtime of the cluster that have not ended, as far as the user may see them.
func (s *Server) runtimeJobs(c *call) (any, error) {
	visible, _, _, err := s.visible(c.ctx, c.user)
	if err != nil {
		return nil, err
	}
	found := RuntimeJobs{Jobs: []Row{}}
	for _, row := range visible {
		if !row.ofCluster || row.Runtime != c.PathValue("name") || row.Deleted || row.Ended != nil {
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

// usage returns what jobs have held.
func (s *Server) usage(c *call) (any, error) {
	values := c.URL.Query()
	since, err := jobs.ParseSince(values.Get("since"), s.now())
	if err != nil {
		return nil, err
	}
	if sort := values.Get("sort"); sort != "" && !slices.Contains(jobs.UsageSorts(), sort) {
		return nil, jobs.Invalid(jobs.FieldError{Field: "sort", Value: sort, Reason: "is not allowed; use " + strings.Join(jobs.UsageSorts(), ", ")})
	}
	query := jobs.UsageQuery{Since: since, PerNamespace: values.Get("by") == "namespace", PerUser: values.Get("by") == "user", Sort: values.Get("sort")}
	if namespace := values.Get("namespace"); namespace != "" {
		query.Namespaces = []string{namespace}
	} else if query.Namespaces, err = s.usageNamespaces(c); err != nil {
		return nil, err
	}
	usage, err := c.jobs.Usage(c.ctx, query)
	if err != nil {
		return nil, err
	}
	found := Usage{Lines: usage.Lines, Unpriced: orEmpty(usage.Unpriced), Missing: []string{}}
	for _, omitted := range usage.Omitted {
		found.Missing = append(found.Missing, omitted.Kind+"s")
	}
	found.Lines = found.Lines[:min(len(found.Lines), 1000)]
	if found.Failures, err = s.failures(c, since, values.Get("namespace")); err != nil {
		return nil, err
	}
	line := []string{"usage"}
	if values.Get("namespace") == "" {
		line = append(line, "-A")
	} else {
		line = append(line, "-n", values.Get("namespace"))
	}
	if values.Get("since") != "" {
		line = append(line, "--since", values.Get("since"))
	}
	found.Commands = []Snippet{{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand(line)}}
	return found, nil
}

// usageNamespaces returns the namespaces whose usage is shown: all at once for users who may list jobs and reports everywhere, else those
// with jobs that the user sees.
func (s *Server) usageNamespaces(c *call) ([]string, error) {
	mpiJobs, err1 := c.may(c.ctx, "list", resourceOf(jobs.Kinds()[0]).GroupResource(), "")
	reports, err2 := c.may(c.ctx, "list", reportResource, "")
	if err := errors.Join(err1, err2); err != nil || mpiJobs && reports {
		return []string{""}, err
	}
	visible, _, _, err := s.visible(c.ctx, c.user)
	set := map[string]bool{}
	for _, row := range visible {
		set[row.Namespace] = true
	}
	return keys(set), err
}
