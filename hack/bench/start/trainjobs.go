package start

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/hack/bench/cluster"
)

var trainer = schema.GroupVersion{Group: "trainer.kubeflow.org", Version: "v1alpha1"}

// Names of the two runtimes that TrainJobs use.
const (
	agentRuntime    = "agent"
	upstreamRuntime = "upstream"
)

// launcherJob selects the launcher's pod of a TrainJob, whose container is rankContainer.
const (
	launcherJob   = "jobset.sigs.k8s.io/replicatedjob-name"
	rankContainer = "node"
)

// createRuntimes creates the two runtimes in the cluster.Namespace, with the image of all contestants: ours as it is installed, and one
// like deepspeed-distributed of Trainer's own runtimes, which runs an sshd. It returns false if there is no Trainer.
func (f *field) createRuntimes(ctx context.Context, root string) (bool, error) {
	if _, err := f.Client.RESTMapper().RESTMapping(trainer.WithKind("TrainingRuntime").GroupKind(), trainer.Version); err != nil {
		return false, nil //nolint:nilerr // the cases are skipped
	}
	ours, err := f.ownRuntime(ctx, root)
	if err != nil {
		return false, err
	}
	for _, runtime := range []*unstructured.Unstructured{ours, f.upstreamRuntime()} {
		if err := client.IgnoreAlreadyExists(f.Client.Create(ctx, runtime)); err != nil {
			return false, fmt.Errorf("create runtime %s: %w", runtime.GetName(), err)
		}
	}
	return true, nil
}

// ownRuntime returns our runtime of Open MPI whose pods mount the agent's image, with the agent of the operator that runs.
func (f *field) ownRuntime(ctx context.Context, root string) (*unstructured.Unstructured, error) {
	folder := filepath.Join(root, "config", "runtimes", "kubernetes-image-volume")
	text, err := exec.CommandContext(ctx, "kubectl", "kustomize", folder).Output()
	if err != nil {
		return nil, fmt.Errorf("build our runtimes: %w", err)
	}
	agentImage, err := f.agentImage(ctx)
	if err != nil {
		return nil, err
	}
	replaced := strings.NewReplacer("quay.io/opendatahub/mpijob-agent:latest", agentImage, "quay.io/opendatahub/mpi-sample-openmpi:latest", f.image).Replace(string(text))
	for document := range strings.SplitSeq(replaced, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("read our runtimes: %w", err)
		}
		if object.GetName() != "mpi-openmpi" {
			continue
		}
		object.SetKind("TrainingRuntime")
		object.SetNamespace(cluster.Namespace)
		object.SetName(agentRuntime)
		return object, nil
	}
	return nil, fmt.Errorf("%s has no runtime mpi-openmpi", folder)
}

// agentImageVariable is the variable of the operator's container that names the agent's image.
const agentImageVariable = "AGENT_IMAGE"

// agentImage returns the agent's image that the operator uses.
func (f *field) agentImage(ctx context.Context) (string, error) {
	pods := &corev1.PodList{}
	if err := f.Client.List(ctx, pods, client.InNamespace(cluster.Operator.Namespace)); err != nil {
		return "", fmt.Errorf("list the operator's pods: %w", err)
	}
	for _, pod := range pods.Items {
		for _, container := range pod.Spec.Containers {
			for _, variable := range container.Env {
				if variable.Name == agentImageVariable {
					return variable.Value, nil
				}
			}
		}
	}
	return "", errors.New("no pod of the operator has the variable " + agentImageVariable)
}

// upstreamRuntime returns a runtime that is set up as Trainer's deepspeed-distributed is: the launcher starts when the workers
// are ready, whose sshd is probed from the fifth second on.
func (f *field) upstreamRuntime() *unstructured.Unstructured {
	container := func() map[string]any {
		return map[string]any{
			"name": rankContainer, "image": f.image, "imagePullPolicy": "IfNotPresent",
			"securityContext": map[string]any{"runAsUser": int64(1000), "runAsNonRoot": true},
		}
	}
	job := func(name string, container map[string]any) map[string]any {
		pod := map[string]any{"containers": []any{container}, "securityContext": map[string]any{"fsGroup": int64(1000)}}
		return map[string]any{"name": name, "template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": pod}}}}
	}
	worker := container()
	worker["command"] = []any{"sshd-user"}
	worker["readinessProbe"] = map[string]any{"tcpSocket": map[string]any{"port": int64(2222)}, "initialDelaySeconds": int64(5)}
	node, launcher := job(rankContainer, worker), job(launcherName, container())
	launcher["dependsOn"] = []any{map[string]any{"name": rankContainer, "status": "Ready"}}
	launcher["template"].(map[string]any)["metadata"] = map[string]any{"labels": map[string]any{"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
	object := newTrainerObject("TrainingRuntime", upstreamRuntime)
	object.Object["spec"] = map[string]any{
		"mlPolicy": map[string]any{"numNodes": int64(1), "mpi": map[string]any{
			"numProcPerNode": int64(1), "mpiImplementation": "OpenMPI", "sshAuthMountPath": keyPath, "runLauncherAsNode": true,
		}},
		"template": map[string]any{"spec": map[string]any{
			"network":        map[string]any{"publishNotReadyAddresses": true},
			"successPolicy":  map[string]any{"operator": "All", "targetReplicatedJobs": []any{launcherName}},
			"replicatedJobs": []any{node, launcher},
		}},
	}
	return object
}

func newTrainerObject(kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(trainer.WithKind(kind))
	object.SetNamespace(cluster.Namespace)
	object.SetName(name)
	return object
}

// runTrainJob runs a TrainJob of so many nodes, of which the launcher is one, and deletes it.
func (f *field) runTrainJob(ctx context.Context, runtimeName string, nodes int) (took times, err error) {
	f.taken++
	job := newTrainerObject("TrainJob", fmt.Sprintf("job-%d", f.taken))
	job.Object["spec"] = map[string]any{
		"runtimeRef": map[string]any{"apiGroup": trainer.Group, "kind": "TrainingRuntime", "name": runtimeName},
		"trainer": map[string]any{
			"numNodes": int64(nodes), "command": []any{"mpirun", "-n", fmt.Sprint(nodes), "hostname"},
		},
	}
	created, stop, err := f.watchPods(ctx, nodes)
	if err != nil {
		return took, err
	}
	defer stop()
	observed, stopObserving, err := f.observe(ctx, true)
	if err != nil {
		return took, err
	}
	defer stopObserving()
	start := time.Now()
	if err := f.Client.Create(ctx, job); err != nil {
		return took, fmt.Errorf("create TrainJob %s: %w", job.GetName(), err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(trainer.WithKind("TrainJobList"))
	ended, err := f.await(ctx, list, job.GetName(), func(object runtime.Object) (bool, error) { return trainJobEnded(object) })
	if err != nil {
		return took, err
	}
	pods := &corev1.PodList{}
	labels := client.MatchingLabels{"jobset.sigs.k8s.io/jobset-name": job.GetName(), launcherJob: launcherName}
	if err := f.Client.List(ctx, pods, client.InNamespace(cluster.Namespace), labels); err != nil || len(pods.Items) == 0 {
		return took, fmt.Errorf("%s has no launcher's pod: %w", job.GetName(), err)
	}
	took, err = f.timesOf(ctx, pods.Items[0].Name, rankContainer, job.GetName()+"-", start, ended)
	if err != nil {
		return took, err
	}
	if took.pods, err = created(start); err != nil {
		return took, err
	}
	var reported launch
	if runtimeName == agentRuntime {
		if reported, err = f.launchOf(ctx, job); err != nil {
			return took, err
		}
	}
	took.steps = observed.steps(start, start.Add(took.first), reported)
	if err := f.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return took, fmt.Errorf("delete TrainJob %s: %w", job.GetName(), err)
	}
	return took, f.UntilEmpty(ctx)
}

// trainJobEnded reports whether a TrainJob is complete; the error is that it failed.
func trainJobEnded(object runtime.Object) (bool, error) {
	job, is := object.(*unstructured.Unstructured)
	if !is {
		return false, fmt.Errorf("a watch returned %T", object)
	}
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		if condition["status"] != string(metav1.ConditionTrue) {
			continue
		}
		switch condition["type"] {
		case "Failed":
			return false, fmt.Errorf("%s failed: %s", job.GetName(), condition["message"])
		case "Complete":
			return true, nil
		}
	}
	return false, nil
}
