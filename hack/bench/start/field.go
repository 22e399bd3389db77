package start

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/agent"
	"opendatahub.io/mpijob/hack/bench/agent/rootfs"
	"opendatahub.io/mpijob/hack/bench/process"
	"opendatahub.io/mpijob/hack/bench/programs"
	"opendatahub.io/mpijob/hack/bench/wait"
)

// namespace is where the jobs are, and mpi-operator's lease; it is removed in the end.
const namespace = "mpijob-bench"

// limit is how long a job, or anything else that is awaited, may take.
const limit = 2 * time.Minute

// sample is the image that launcher and workers run: Open MPI 4 and OpenSSH.
const sample = "openmpi-sshd"

// field is a cluster on which two operators take turns.
type field struct {
	client     client.WithWatch
	logs       kubernetes.Interface
	kubeconfig string
	// image is what launcher and workers run, and archive its docker-archive.
	image, archive string
	// own is set for the cluster of this checkout.
	own bool
	// cold provides an image that no node has for each measured job, if it is set.
	cold *coldImages
	// key is the SSH key of the floor's pods.
	key agent.Key
	// mpiOperator is the program, whose output goes to the file log.
	mpiOperator, log string
	// replicas are what our operator's Deployment had.
	replicas int32
	// taken counts the jobs.
	taken int
}

// deployment is our operator's.
var deployment = client.ObjectKey{Namespace: "mpijob-system", Name: "mpijob-operator"}

// noField is the error that explains why there is no cluster to measure on.
type noField struct{ why string }

func (n noField) Error() string { return n.why }

// openField finds a cluster that our operator is on; the error is noField where there is none.
func (s Settings) openField(ctx context.Context) (*field, error) {
	f := &field{kubeconfig: os.Getenv("KUBECONFIG"), log: filepath.Join(s.Out, "logs", "start", "mpi-operator.log")}
	own := f.kubeconfig == ""
	if own {
		f.kubeconfig = filepath.Join(s.Root, ".cluster", "kubeconfig")
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, noField{"there is no cluster: `make deploy` starts one"}
	}
	// It bounds watches as well, which end by themselves after limit.
	config.Timeout = 2 * limit
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	if f.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, noField{fmt.Sprintf("the cluster of %s does not answer: %v", f.kubeconfig, err)}
	}
	if f.logs, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	var operator appsv1.Deployment
	if err := f.client.Get(ctx, deployment, &operator); err != nil || operator.Status.AvailableReplicas == 0 {
		return nil, noField{"our operator does not run on the cluster: see `make deploy`"}
	}
	f.replicas = *operator.Spec.Replicas
	image, err := rootfs.Sample(ctx, s.Root, sample, filepath.Join(s.Out, "images"))
	if err != nil {
		return nil, err
	}
	f.image, f.archive, f.own = image.Reference, image.Archive, own
	if f.key, err = agent.NewKey(); err != nil {
		return nil, err
	}
	if own {
		load := exec.CommandContext(ctx, "go", "run", ".", "load", image.Archive)
		load.Dir = filepath.Join(s.Root, "hack", "cluster")
		if out, err := load.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("load %s: %w\n%s", image.Reference, err, out)
		}
	}
	built, err := programs.Build(ctx, s.Root, filepath.Join(s.Out, "bin"), false)
	if err != nil {
		return nil, err
	}
	f.mpiOperator = built.MPIOperator
	if err := os.MkdirAll(filepath.Dir(f.log), 0o755); err != nil {
		return nil, fmt.Errorf("make folder for logs: %w", err)
	}
	err = f.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create namespace: %w", err)
	}
	return f, nil
}

// close leaves the cluster as it was.
func (f *field) close(ctx context.Context) error {
	err := f.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	return errors.Join(client.IgnoreNotFound(err), f.scale(ctx, f.replicas))
}

// turn has one contestant run two jobs. The first is for it to get ready.
func (f *field) turn(ctx context.Context, who string, workers int) (took times, err error) {
	run := func() (times, error) { return f.runJob(ctx, f.ours(workers)) }
	switch who {
	case MPIOperator:
		run = func() (times, error) { return f.runJob(ctx, f.sshdJob(workers)) }
		stop, err := f.hand(ctx)
		if err != nil {
			return took, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	case Floor:
		run = func() (times, error) { return f.runPods(ctx, f.ours(workers)) }
	case TrainJob:
		run = func() (times, error) { return f.runTrainJob(ctx, agentRuntime, workers) }
	case Trainer:
		run = func() (times, error) { return f.runTrainJob(ctx, upstreamRuntime, workers) }
		if err := f.scale(ctx, 0); err != nil {
			return took, err
		}
		defer func() { err = errors.Join(err, f.scale(context.WithoutCancel(ctx), f.replicas)) }()
	}
	if _, err := run(); err != nil {
		return took, fmt.Errorf("warm up: %w", err)
	}
	// mpi-operator's rate limiter is full again after 2 s.
	if err := wait.For(ctx, 3*time.Second); err != nil {
		return took, err
	}
	if f.cold != nil {
		warm := f.image
		defer func() { f.image = warm }()
		if f.image, err = f.cold.next(ctx); err != nil {
			return took, err
		}
	}
	return run()
}

// hand hands the cluster to mpi-operator, until it is stopped.
func (f *field) hand(ctx context.Context) (stop func() error, err error) {
	if err := f.scale(ctx, 0); err != nil {
		return nil, err
	}
	args := []string{"-alsologtostderr", "-namespace=" + namespace, "-lock-namespace=" + namespace}
	running, err := process.Start(MPIOperator, f.mpiOperator, args, []string{"KUBECONFIG=" + f.kubeconfig}, f.log)
	if err != nil {
		return nil, errors.Join(err, f.scale(ctx, f.replicas))
	}
	return func() error { return errors.Join(running.Kill(), f.scale(context.WithoutCancel(ctx), f.replicas)) }, nil
}

// scale sets the number of our operator's pods, and waits until there are so many.
func (f *field) scale(ctx context.Context, replicas int32) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}}
	if err := f.client.Patch(ctx, operator, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("scale our operator to %d: %w", replicas, err)
	}
	return f.until(ctx, fmt.Sprintf("our operator has %d pods", replicas), func() (bool, error) {
		if err := f.client.Get(ctx, deployment, operator); err != nil {
			return false, err
		}
		var pods corev1.PodList
		err := f.client.List(ctx, &pods, client.InNamespace(deployment.Namespace), client.MatchingLabels(operator.Spec.Selector.MatchLabels))
		return operator.Status.AvailableReplicas == replicas && len(pods.Items) == int(replicas), err
	})
}

// until waits until something is so.
func (f *field) until(ctx context.Context, what string, is func() (bool, error)) error {
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

// runJob runs a job and deletes it.
func (f *field) runJob(ctx context.Context, job *kubeflow.MPIJob) (took times, err error) {
	created, stop, err := f.watchPods(ctx, 1+int(*job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas))
	if err != nil {
		return took, err
	}
	defer stop()
	start := time.Now()
	if err := f.client.Create(ctx, job); err != nil {
		return took, fmt.Errorf("create MPIJob %s: %w", job.Name, err)
	}
	ended, err := f.await(ctx, &kubeflow.MPIJobList{}, job.Name, func(object runtime.Object) (bool, error) {
		for _, c := range object.(*kubeflow.MPIJob).Status.Conditions {
			if c.Status != corev1.ConditionTrue {
				continue
			}
			switch c.Type {
			case kubeflow.JobFailed:
				return false, fmt.Errorf("%s failed: %s", job.Name, c.Message)
			case kubeflow.JobSucceeded:
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return took, err
	}
	var pods corev1.PodList
	labels := client.MatchingLabels{kubeflow.JobNameLabel: job.Name, kubeflow.JobRoleLabel: launcherName}
	if err := f.client.List(ctx, &pods, client.InNamespace(namespace), labels); err != nil {
		return took, fmt.Errorf("list the launcher's pods: %w", err)
	}
	for _, pod := range pods.Items {
		if took, err = f.timesOf(ctx, pod.Name, launcherName, job.Name+"-worker-", start, ended); err == nil {
			break
		}
	}
	if err != nil {
		return took, err
	}
	if took.pods, err = created(start); err != nil {
		return took, err
	}
	if err := f.client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return took, fmt.Errorf("delete MPIJob %s: %w", job.Name, err)
	}
	return took, f.untilEmpty(ctx)
}

// await watches objects of a list's type until one of a name is as wanted, and returns when that was observed.
func (f *field) await(ctx context.Context, list client.ObjectList, name string, is func(runtime.Object) (bool, error)) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s has not ended after %s", name, limit))
	defer cancel()
	changes, err := f.client.Watch(ctx, list, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return time.Time{}, fmt.Errorf("watch %s: %w", name, err)
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		case change, open := <-changes.ResultChan():
			now := time.Now()
			if !open {
				return time.Time{}, fmt.Errorf("watch %s: the connection was closed", name)
			}
			if change.Type != watch.Added && change.Type != watch.Modified {
				return time.Time{}, fmt.Errorf("watch %s: %s", name, change.Type)
			}
			if done, err := is(change.Object); done || err != nil {
				return now, err
			}
		}
	}
}

// watchPods watches until so many pods have been created, and returns a function that returns how long after start that was. It
// must be called after they all exist.
func (f *field) watchPods(ctx context.Context, pods int) (created func(start time.Time) (time.Duration, error), stop func(), err error) {
	changes, err := f.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace))
	if err != nil {
		return nil, nil, fmt.Errorf("watch pods: %w", err)
	}
	last := make(chan time.Time, 1)
	go func() {
		for change := range changes.ResultChan() {
			if change.Type != watch.Added {
				continue
			}
			if pods--; pods == 0 {
				last <- time.Now()
			}
		}
	}()
	created = func(start time.Time) (time.Duration, error) {
		select {
		case at := <-last:
			return at.Sub(start), nil
		case <-time.After(limit):
			return 0, fmt.Errorf("pods were not observed after %s", limit)
		}
	}
	return created, changes.Stop, nil
}

// timesOf reads the times of a job from the log of its launcher: a rank writes the name of its host, which starts with prefix,
// and the node adds the time. That node must have this machine's clock.
func (f *field) timesOf(ctx context.Context, pod, container, prefix string, start, ended time.Time) (times, error) {
	stream, err := f.logs.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Timestamps: true}).Stream(ctx)
	if err != nil {
		return times{}, fmt.Errorf("read the log of %s: %w", pod, err)
	}
	defer func() { _ = stream.Close() }()
	var first, last time.Time
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		at, text, _ := strings.Cut(lines.Text(), " ")
		if !strings.HasPrefix(text, prefix) {
			continue
		}
		if last, err = time.Parse(time.RFC3339Nano, at); err != nil {
			return times{}, fmt.Errorf("read the log of %s: %w", pod, err)
		}
		if first.IsZero() {
			first = last
		}
	}
	if first.IsZero() {
		return times{}, fmt.Errorf("no rank of %s has written a line", pod)
	}
	return times{first: first.Sub(start), end: ended.Sub(last)}, nil
}

// untilEmpty waits until no pods are left.
func (f *field) untilEmpty(ctx context.Context) error {
	return f.until(ctx, "all pods are deleted", func() (bool, error) {
		var pods corev1.PodList
		err := f.client.List(ctx, &pods, client.InNamespace(namespace))
		return len(pods.Items) == 0, err
	})
}

// launcherName is the name of the launcher's container, and its role.
const launcherName = "launcher"

// ours is a job whose ranks the agent starts.
func (f *field) ours(workers int) *kubeflow.MPIJob {
	f.taken++
	container := func(name string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: name, Image: f.image, ImagePullPolicy: corev1.PullIfNotPresent,
			SecurityContext: &corev1.SecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1000))},
		}}}}
	}
	job := &kubeflow.MPIJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("job-%d", f.taken)},
		Spec: kubeflow.MPIJobSpec{
			SlotsPerWorker: new(int32(1)),
			MPIReplicaSpecs: map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{
				kubeflow.MPIReplicaTypeLauncher: {Replicas: new(int32(1)), Template: container("launcher")},
				kubeflow.MPIReplicaTypeWorker:   {Replicas: new(int32(workers)), Template: container("worker")},
			},
		},
	}
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.Containers[0].Command = []string{"mpirun", "-n", fmt.Sprint(workers), "hostname"}
	return job
}

// sshdJob returns the same job with workers that run the image's sshd. The launcher waits for them by the image's ssh.
func (f *field) sshdJob(workers int) *kubeflow.MPIJob {
	job := f.ours(workers)
	job.Spec.SSHAuthMountPath = keyPath
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Command = []string{"sshd-user"}
	return job
}
