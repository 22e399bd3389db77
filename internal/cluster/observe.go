package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// Cluster reads the objects of jobs from a cache, and writes them to the API server.
type Cluster struct {
	client client.Client
	live   client.Reader
	keys   *Keys
	gate   *gate
	clock  clock.PassiveClock
	// clusterQuotas are OpenShift's quotas.
	clusterQuotas *clusterQuotas
	encryption    lookup[[]string]
	priority      lookup[schedulingv1.PriorityClass]
}

// New returns a Cluster. The cached client must see its own writes (that of a manager with CacheOptions and
// read-your-writes consistency). live reads from the API server. keys creates the SSH keys of new jobs.
func New(cached client.Client, live client.Reader, keys *Keys, clock clock.PassiveClock) *Cluster {
	return &Cluster{client: cached, live: live, keys: keys, gate: newGate(maxWrites, maxSharedWrites), clock: clock, clusterQuotas: &clusterQuotas{live: live, clock: clock}}
}

// Observe reads the objects that the operator creates for a job. It ignores objects of the same names that belong to
// others; creating the job's own is then refused. The operator creates only the NetworkPolicy and, at some sites, the Secret with
// SSH keys of a job that another controller runs.
func (c *Cluster) Observe(ctx context.Context, job mpi.Job) (jobstate.Observed, error) {
	seen := jobstate.Observed{Now: c.clock.Now()}
	err := c.observeIsolation(ctx, job, &seen)
	if err != nil {
		return seen, err
	}
	if seen.Secret, err = owned(ctx, c, job, job.KeysName(), secretMeta()); err != nil || job.External {
		return seen, err
	}
	if seen.Service, err = owned(ctx, c, job, job.ServiceName(), &corev1.Service{}); err != nil {
		return seen, err
	}
	if seen.Config, err = owned(ctx, c, job, job.ConfigName(), &corev1.ConfigMap{}); err != nil {
		return seen, err
	}
	if seen.Launcher, err = owned(ctx, c, job, job.LauncherName(), &batchv1.Job{}); err != nil {
		return seen, err
	}
	return seen, c.observePods(ctx, job, &seen)
}

// observeIsolation reads the NetworkPolicy of a job, and the destinations that its namespace allows.
func (c *Cluster) observeIsolation(ctx context.Context, job mpi.Job, seen *jobstate.Observed) error {
	var err error
	if seen.Isolation, err = owned(ctx, c, job, job.PolicyName(), &networkingv1.NetworkPolicy{}); err != nil {
		return err
	}
	seen.AllowEgress, err = c.AllowEgress(ctx, job.Namespace)
	return err
}

// AllowEgress returns the destinations that a namespace allows for the pods of jobs, or "".
func (c *Cluster) AllowEgress(ctx context.Context, namespace string) (string, error) {
	annotations, err := c.NamespaceAnnotations(ctx, namespace)
	return annotations[mpi.AnnotationAllowEgress], err
}

// NamespaceAnnotations returns the annotations of a namespace that have an effect on its jobs. Callers must not change them.
func (c *Cluster) NamespaceAnnotations(ctx context.Context, namespace string) (map[string]string, error) {
	meta := NamespaceMeta()
	if err := c.client.Get(ctx, client.ObjectKey{Name: namespace}, meta); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Namespace %s: %w", namespace, err)
	}
	return meta.Annotations, nil
}

// owned reads an object of the job. It returns the zero T if the object does not exist.
func owned[T client.Object](ctx context.Context, c *Cluster, job mpi.Job, name string, into T) (T, error) {
	var none T
	key := client.ObjectKey{Namespace: job.Namespace, Name: name}
	switch err := c.client.Get(ctx, key, into); {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("read %T %s: %w", into, key, err)
	case !job.Owns(into):
		return none, nil
	}
	return into, nil
}

// podsOf lists the pods of a job, and of an earlier job of the same name. A list that waits for our own writes waits
// for those of all jobs, so that a small job would wait for a large one. This list does not wait; missing workers are
// read by name. A finished job needs none.
func (c *Cluster) podsOf(ctx context.Context, job mpi.Job) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := c.client.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingFields{podsByJob: job.Name}, withoutReadYourWrites); err != nil {
		return nil, fmt.Errorf("list pods of %s: %w", job.Key(), err)
	}
	if job.Recorded.Finish != nil {
		return pods.Items, nil
	}
	listed := make(map[string]bool, len(pods.Items))
	for i := range pods.Items {
		listed[pods.Items[i].Name] = true
	}
	for index := range int(job.Workers.Count) {
		name := job.WorkerName(index)
		if listed[name] {
			continue
		}
		switch pod, err := owned(ctx, c, job, name, &corev1.Pod{}); {
		case err != nil:
			return nil, err
		case pod != nil:
			pods.Items = append(pods.Items, *pod)
		}
	}
	return pods.Items, nil
}

func (c *Cluster) observePods(ctx context.Context, job mpi.Job, seen *jobstate.Observed) error {
	pods, err := c.podsOf(ctx, job)
	if err != nil {
		return err
	}
	if seen.Launcher == nil {
		if seen.Launcher, err = c.adoptLauncher(ctx, job, pods); err != nil {
			return err
		}
	}
	for i := range pods {
		pod := &pods[i]
		index, worker := workerIndex(job, pod)
		switch {
		case worker && job.Owns(pod):
			seen.Workers = append(seen.Workers, jobstate.Worker{Index: index, Pod: pod})
		case seen.Launcher != nil && metav1.IsControlledBy(pod, seen.Launcher):
			if !podstatus.IsStopped(seen.Launcher, pod) {
				seen.LauncherPods = append(seen.LauncherPods, pod)
			}
		case isOfEarlierJob(job, pod):
			seen.Earlier = append(seen.Earlier, pod)
		}
	}
	slices.SortFunc(seen.Workers, func(a, b jobstate.Worker) int { return a.Index - b.Index })
	slices.SortFunc(seen.LauncherPods, func(a, b *corev1.Pod) int {
		if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return nil
}

// adoptLauncher labels the launcher of a job that mpi-operator started, and returns it; nil if there is none. The cache does not contain
// it before, but contains its pods, which would otherwise be pods of an earlier job: the job would wait for their end.
func (c *Cluster) adoptLauncher(ctx context.Context, job mpi.Job, pods []corev1.Pod) (*batchv1.Job, error) {
	i := slices.IndexFunc(pods, func(pod corev1.Pod) bool {
		return isOwnedByLauncher(job, metav1.GetControllerOfNoCopy(&pod))
	})
	if i < 0 {
		return nil, nil
	}
	launcher := &batchv1.Job{}
	if err := c.live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: job.LauncherName()}, launcher); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !job.Owns(launcher) {
		return nil, nil
	}
	return launcher, c.adopt(ctx, job, launcher)
}

// workerIndex returns a worker's index from its name, which cannot be edited, unlike its labels.
func workerIndex(job mpi.Job, pod *corev1.Pod) (int, bool) {
	digits, found := strings.CutPrefix(pod.Name, job.Name+"-worker-")
	if !found {
		return 0, false
	}
	index, err := strconv.Atoi(digits)
	return index, err == nil && index >= 0
}

// isOfEarlierJob reports whether a pod of another owner belonged to an earlier job of the same name: its owner has
// the name of this job or of its launcher. Other pods with the job's labels are ignored.
func isOfEarlierJob(job mpi.Job, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == job.Kind && owner.Name == job.Name || isOwnedByLauncher(job, owner)
}

// isOwnedByLauncher reports whether a pod's owner has the name of the job's launcher. It may be that of an earlier job.
func isOwnedByLauncher(job mpi.Job, owner *metav1.OwnerReference) bool {
	return owner != nil && owner.Kind == "Job" && owner.Name == job.LauncherName()
}
