package doctor

import (
	"context"
	"slices"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/kueue"
)

// serves reports whether the API server has a kind of object.
func (c Cluster) serves(group schema.GroupVersion, resource string) (bool, error) {
	list, err := c.Discovery.ServerResourcesForGroupVersion(group.String())
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }), nil
}

// servesAny reports whether the API server has a kind of object in any version.
func (c Cluster) servesAny(group, resource string) bool {
	groups, err := c.Discovery.ServerGroups()
	if err != nil {
		return false
	}
	for _, g := range groups.Groups {
		if g.Name != group {
			continue
		}
		for _, version := range g.Versions {
			if is, err := c.serves(schema.GroupVersion{Group: group, Version: version.Version}, resource); err == nil && is {
				return true
			}
		}
	}
	return false
}

// kinds checks the operator's own kinds of objects.
func (c Cluster) kinds(context.Context) []Result {
	result := Result{Check: "Kinds of objects", Verdict: OK, Found: "MPIJob, JobReport and RuntimeTest are installed"}
	var missing []string
	for _, kind := range []struct {
		group    schema.GroupVersion
		resource string
	}{
		{kubeflow.SchemeGroupVersion, "mpijobs"}, {v1alpha1.GroupVersion, "jobreports"}, {v1alpha1.GroupVersion, "runtimetests"},
	} {
		is, err := c.serves(kind.group, kind.resource)
		if err != nil {
			return unknown(result.Check, err)
		}
		if !is {
			missing = append(missing, kind.resource+"."+kind.group.String())
		}
	}
	if len(missing) == 0 {
		return []Result{result}
	}
	result.Verdict, result.Found, result.Remedy = Fail, "not installed: "+strings.Join(missing, ", "), c.installRemedy()
	// Training Operator's CRD has the same name, so that this operator's cannot be installed as well.
	if is, err := c.serves(trainingOperatorJobs, "mpijobs"); err == nil && is && strings.HasPrefix(missing[0], "mpijobs.") {
		result.Found += "; the cluster has the MPIJobs of Kubeflow Training Operator (" + trainingOperatorJobs.String() + ")"
		result.Remedy = "Ask a cluster administrator to remove Training Operator's MPIJobs before the operator is installed (docs/migration.md#replace-training-operator); their CRD has the same name"
	}
	return []Result{result}
}

// trainingOperatorJobs is the version of MPIJobs that Kubeflow Training Operator installs.
var trainingOperatorJobs = schema.GroupVersion{Group: kubeflow.GroupName, Version: "v1"}

// trainer checks Kubeflow Trainer, which runs TrainJobs, and JobSet, which Trainer requires.
func (c Cluster) trainer(ctx context.Context) []Result {
	const check = "Kubeflow Trainer"
	is, err := c.serves(trainjob.GroupVersion, "trainjobs")
	switch {
	case err != nil:
		return unknown(check, err)
	case !is:
		return []Result{{Check: check, Verdict: None, Found: "not installed: only MPIJobs can run, no TrainJobs"}}
	}
	result := c.addOn(ctx, check, "trainer", "kubeflow-trainer-controller-manager")
	jobSets, err := c.serves(schema.GroupVersion{Group: "jobset.x-k8s.io", Version: "v1alpha2"}, "jobsets")
	if err == nil && !jobSets {
		return []Result{result, {
			Check: "JobSet", Verdict: Warn, Found: "not installed: Kubeflow Trainer requires it for TrainJobs; MPIJobs run",
			Remedy: "Install JobSet; it is part of Trainer's manifests.",
		}}
	}
	return []Result{result, c.addOn(ctx, "JobSet", "jobset", "jobset-controller-manager")}
}

// kueue checks Kueue, and lists the namespace's queues.
func (c Cluster) kueue(ctx context.Context) []Result {
	const check = "Kueue"
	if !c.servesAny(kueue.LocalQueueKind.Group, "localqueues") {
		return []Result{{Check: check, Verdict: None, Found: "not installed: no queues"}}
	}
	result := c.addOn(ctx, check, "kueue", "kueue-controller-manager")
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kueue.LocalQueueListKind)
	var queues []string
	if err := c.API.List(ctx, list, client.InNamespace(c.Namespace)); err == nil {
		for _, item := range list.Items {
			queues = append(queues, item.Name)
		}
	}
	slices.Sort(queues)
	if len(queues) > 0 {
		result.Found += "; queues of " + c.Namespace + ": " + strings.Join(queues, ", ")
	} else {
		result.Found += "; " + c.Namespace + " has no queue"
	}
	result.Found += judgePodsReady(c.workloads(ctx))
	return []Result{result}
}

// workloads returns Kueue's Workloads of the namespace, 500 at most; none if the user may not list them.
func (c Cluster) workloads(ctx context.Context) []kueue.Workload {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kueue.WorkloadKind.GroupVersion().WithKind(kueue.WorkloadKind.Kind + "List"))
	if err := c.API.List(ctx, list, client.InNamespace(c.Namespace), client.Limit(500)); err != nil {
		return nil
	}
	var found []kueue.Workload
	for _, item := range list.Items {
		var workload kueue.Workload
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &workload); err == nil {
			found = append(found, workload)
		}
	}
	return found
}

// judgePodsReady returns whether Kueue watches over the start of the pods of the jobs that it has admitted; "" if it has admitted none.
func judgePodsReady(workloads []kueue.Workload) string {
	text := ""
	for _, workload := range workloads {
		switch {
		case !workload.IsAdmitted():
		case workload.ReportsPods():
			return "; takes back the quota of jobs whose pods do not start (waitForPodsReady)"
		default:
			text = "; jobs whose pods do not start keep their quota (waitForPodsReady is off), unless they have a timeout of their own"
		}
	}
	return text
}

// addOn checks the Deployment of a component of other projects, if the user may read it.
func (c Cluster) addOn(ctx context.Context, check, name, deployment string) Result {
	var list appsv1.DeploymentList
	if err := c.API.List(ctx, &list); err != nil {
		return Result{Check: check, Verdict: OK, Found: "installed"}
	}
	return judgeAddOn(check, name, deployment, list.Items)
}

// judgeAddOn judges the Deployment of a component, found by its own name or by the component's.
func judgeAddOn(check, name, deployment string, all []appsv1.Deployment) Result {
	for _, d := range all {
		if d.Name == deployment || d.Labels[labelApp] == name && strings.HasSuffix(d.Name, "controller-manager") {
			return judgeDeployment(check, d)
		}
	}
	return Result{Check: check, Verdict: Warn, Found: "installed, but no Deployment found", Remedy: "Check that " + deployment + " is running."}
}

// gangs reports which scheduler places all pods of a job or none.
func (c Cluster) gangs(ctx context.Context) []Result {
	backEnd := "auto"
	if operator, err := FindOperator(ctx, c.API); err == nil {
		if value, set := flagOf(operator.deployment, "gang-scheduling"); set {
			backEnd = value
		}
	}
	return []Result{judgeGangs(backEnd, c.servesAny("scheduling.k8s.io", "podgroups"))}
}

// judgeGangs judges by the operator's flag --gang-scheduling, and by whether Kubernetes has PodGroups.
func judgeGangs(backEnd string, native bool) Result {
	result := Result{Check: "Gang scheduling", Verdict: OK}
	by := "the operator"
	switch {
	case backEnd == "none":
		result.Verdict = Warn
		result.Found = "the pods of a job are placed one by one (--gang-scheduling=none): a job can hold nodes with a part of its pods"
		result.Remedy = "Ask a cluster administrator to set the operator's flag --gang-scheduling=auto."
		return result
	case backEnd == "podgroup", native && (backEnd == "auto" || backEnd == "requested"):
		by = "Kubernetes' scheduler"
	case backEnd != "auto" && backEnd != "requested" && backEnd != "embedded":
		by = backEnd
	}
	result.Found = "all pods of a job are placed together, or none, by " + by
	if backEnd == "requested" && !native {
		result.Found += ", if the job has a schedulingPolicy (--gang-scheduling=requested)"
	}
	return result
}
