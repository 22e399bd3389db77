// Package cluster reaches the cluster on which suites measure jobs with real MPI.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/agent/rootfs"
	"opendatahub.io/mpijob/hack/bench/wait"
)

// Namespace is where the measured jobs are. Close removes it.
const Namespace = "mpijob-bench"

// Limit is how long a job, or anything else that is awaited, may take.
const Limit = 2 * time.Minute

// Operator is the Deployment of our operator.
var Operator = client.ObjectKey{Namespace: "mpijob-system", Name: "mpijob-operator"}

// Missing is the error that explains why there is no cluster to measure on.
type Missing struct{ Why string }

func (m Missing) Error() string { return m.Why }

// Cluster is one that our operator runs on.
type Cluster struct {
	Client     client.WithWatch
	Logs       kubernetes.Interface
	Kubeconfig string
	// Own is set for the one-machine cluster of this checkout.
	Own bool
	// Replicas are those of our operator's Deployment.
	Replicas int32
	root     string
}

// Open finds the cluster that KUBECONFIG names, or else that of the checkout at root, and creates Namespace. The error is Missing if there is
// no cluster, or our operator does not run on it.
func Open(ctx context.Context, root string) (*Cluster, error) {
	c := &Cluster{Kubeconfig: os.Getenv("KUBECONFIG"), root: root}
	if c.Own = c.Kubeconfig == ""; c.Own {
		c.Kubeconfig = filepath.Join(root, ".cluster", "kubeconfig")
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, Missing{"there is no cluster: `make deploy` starts one"}
	}
	// It bounds watches as well, which end by themselves after Limit.
	config.Timeout = 2 * Limit
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	if c.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, Missing{fmt.Sprintf("the cluster of %s does not answer: %v", c.Kubeconfig, err)}
	}
	if c.Logs, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	var deployment appsv1.Deployment
	if err := c.Client.Get(ctx, Operator, &deployment); err != nil || deployment.Status.AvailableReplicas == 0 {
		return nil, Missing{"our operator does not run on the cluster: see `make deploy`"}
	}
	c.Replicas = *deployment.Spec.Replicas
	err = c.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create namespace: %w", err)
	}
	return c, nil
}

// Close removes Namespace.
func (c *Cluster) Close(ctx context.Context) error {
	err := c.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})
	return client.IgnoreNotFound(err)
}

// Load builds a sample image in a folder, unless it is cached, and loads it into the nodes if the cluster is our own.
func (c *Cluster) Load(ctx context.Context, sample, folder string) (rootfs.Image, error) {
	image, err := rootfs.Build(ctx, c.root, sample, folder)
	if err != nil || !c.Own {
		return image, err
	}
	load := exec.CommandContext(ctx, "go", "run", ".", "load", image.Archive)
	load.Dir = filepath.Join(c.root, "hack", "cluster")
	if out, err := load.CombinedOutput(); err != nil {
		return image, fmt.Errorf("load %s: %w\n%s", image.Reference, err, out)
	}
	return image, nil
}

// Scale sets the number of our operator's pods, and waits until there are so many.
func (c *Cluster) Scale(ctx context.Context, replicas int32) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: Operator.Namespace, Name: Operator.Name}}
	if err := c.Client.Patch(ctx, deployment, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("scale our operator to %d: %w", replicas, err)
	}
	return Until(ctx, fmt.Sprintf("our operator has %d pods", replicas), func() (bool, error) {
		if err := c.Client.Get(ctx, Operator, deployment); err != nil {
			return false, err
		}
		var pods corev1.PodList
		err := c.Client.List(ctx, &pods, client.InNamespace(Operator.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))
		return deployment.Status.AvailableReplicas == replicas && len(pods.Items) == int(replicas), err
	})
}

// UntilEmpty waits until Namespace has no pods.
func (c *Cluster) UntilEmpty(ctx context.Context) error {
	return Until(ctx, "all pods are deleted", func() (bool, error) {
		var pods corev1.PodList
		err := c.Client.List(ctx, &pods, client.InNamespace(Namespace))
		return len(pods.Items) == 0, err
	})
}

// Until waits until something is so, at most for Limit.
func Until(ctx context.Context, what string, is func() (bool, error)) error {
	return UntilWithin(ctx, Limit, what, is)
}

// UntilWithin waits until something is so, at most for a time.
func UntilWithin(ctx context.Context, limit time.Duration, what string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not after %s", limit))
	defer cancel()
	for {
		if done, err := is(); done || err != nil {
			return err
		}
		if err := wait.For(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait until %s: %w", what, err)
		}
	}
}
