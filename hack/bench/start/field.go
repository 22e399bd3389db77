package start

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/agent"
	"opendatahub.io/mpijob/hack/bench/cluster"
	"opendatahub.io/mpijob/hack/bench/process"
	"opendatahub.io/mpijob/hack/bench/programs"
	"opendatahub.io/mpijob/hack/bench/wait"
)

// sample is the image that launcher and workers run: Open MPI 4 and OpenSSH.
const sample = "openmpi-sshd"

// field is a cluster on which two operators take turns.
type field struct {
	*cluster.Cluster
	// image is what launcher and workers run, and archive its docker-archive.
	image, archive string
	// cold provides an image that no node has for each measured job, if it is set.
	cold *coldImages
	// key is the SSH key of the floor's pods.
	key agent.Key
	// mpiOperator is the program, whose output goes to the file log.
	mpiOperator, log string
	// before is the template of the pods of the commit's operator before, if Settings have one.
	before *corev1.PodTemplateSpec
	// taken counts the jobs.
	taken int
}

// openField finds a cluster that our operator is on; the error is cluster.Missing where there is none.
func (s Settings) openField(ctx context.Context) (f *field, err error) {
	opened, err := cluster.Open(ctx, s.Root)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close(context.WithoutCancel(ctx)))
		}
	}()
	f = &field{Cluster: opened, log: filepath.Join(s.Out, "logs", "start", "mpi-operator.log")}
	image, err := f.Load(ctx, sample, filepath.Join(s.Out, "images"))
	if err != nil {
		return nil, err
	}
	f.image, f.archive = image.Reference, image.Archive
	if f.before, err = s.buildBefore(ctx, f.Own); err != nil {
		return nil, err
	}
	if f.key, err = agent.NewKey(); err != nil {
		return nil, err
	}
	built, err := programs.Build(ctx, s.Root, filepath.Join(s.Out, "bin"), false)
	if err != nil {
		return nil, err
	}
	f.mpiOperator = built.MPIOperator
	if err := os.MkdirAll(filepath.Dir(f.log), 0o755); err != nil {
		return nil, fmt.Errorf("make folder for logs: %w", err)
	}
	return f, nil
}

// leave leaves the cluster as it was.
func (f *field) leave(ctx context.Context) error {
	return errors.Join(f.Close(ctx), f.Scale(ctx, f.Replicas))
}

// turn has one contestant run two jobs. The first is for it to get ready.
func (f *field) turn(ctx context.Context, who string, workers int) (took times, err error) {
	run := func() (times, error) { return f.runJob(ctx, f.ours(workers)) }
	switch who {
	case MPIOperator:
		run = func() (times, error) { return f.runJob(ctx, f.sshdJob(workers)) }
		var stop func() error
		if stop, err = f.hand(ctx); err != nil {
			return took, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	case Before:
		var putBack func() error
		if putBack, err = f.deployBefore(ctx); err != nil {
			return took, err
		}
		defer func() { err = errors.Join(err, putBack()) }()
	case Floor:
		run = func() (times, error) { return f.runPods(ctx, f.ours(workers)) }
	case TrainJob:
		run = func() (times, error) { return f.runTrainJob(ctx, agentRuntime, workers) }
	case Trainer:
		run = func() (times, error) { return f.runTrainJob(ctx, upstreamRuntime, workers) }
		if err := f.Scale(ctx, 0); err != nil {
			return took, err
		}
		defer func() { err = errors.Join(err, f.Scale(context.WithoutCancel(ctx), f.Replicas)) }()
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
	if err := f.Scale(ctx, 0); err != nil {
		return nil, err
	}
	args := []string{"-alsologtostderr", "-namespace=" + cluster.Namespace, "-lock-namespace=" + cluster.Namespace}
	running, err := process.Start(MPIOperator, f.mpiOperator, args, []string{"KUBECONFIG=" + f.Kubeconfig}, f.log)
	if err != nil {
		return nil, errors.Join(err, f.Scale(ctx, f.Replicas))
	}
	return func() error { return errors.Join(running.Kill(), f.Scale(context.WithoutCancel(ctx), f.Replicas)) }, nil
}

// runJob runs a job and deletes it.
func (f *field) runJob(ctx context.Context, job *kubeflow.MPIJob) (took times, err error) {
	created, stop, err := f.watchPods(ctx, 1+int(*job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas))
	if err != nil {
		return took, err
	}
	defer stop()
	observed, stopObserving, err := f.observe(ctx, false)
	if err != nil {
		return took, err
	}
	defer stopObserving()
	// The API server sets a path in all jobs.
	byAgent := job.Spec.SSHAuthMountPath == ""
	start := time.Now()
	if err := f.Client.Create(ctx, job); err != nil {
		return took, fmt.Errorf("create MPIJob %s: %w", job.Name, err)
	}
	ended, err := f.await(ctx, &kubeflow.MPIJobList{}, job.Name, hasSucceeded)
	if err != nil {
		return took, err
	}
	var pods corev1.PodList
	labels := client.MatchingLabels{kubeflow.JobNameLabel: job.Name, kubeflow.JobRoleLabel: launcherName}
	if err := f.Client.List(ctx, &pods, client.InNamespace(cluster.Namespace), labels); err != nil {
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
	var reported launch
	if byAgent {
		if reported, err = f.launchOf(ctx, job); err != nil {
			return took, err
		}
	}
	took.steps = observed.steps(start, start.Add(took.first), reported)
	if err := f.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return took, fmt.Errorf("delete MPIJob %s: %w", job.Name, err)
	}
	return took, f.UntilEmpty(ctx)
}

// hasSucceeded reports whether an MPIJob has succeeded. It is an error if the job has failed.
func hasSucceeded(object runtime.Object) (bool, error) {
	job := object.(*kubeflow.MPIJob)
	for _, c := range job.Status.Conditions {
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
}

// await watches objects of a list's type until one of a name is as wanted, and returns when that was observed.
func (f *field) await(ctx context.Context, list client.ObjectList, name string, is func(runtime.Object) (bool, error)) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cluster.Limit, fmt.Errorf("%s has not ended after %s", name, cluster.Limit))
	defer cancel()
	changes, err := f.Client.Watch(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingFields{"metadata.name": name})
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
	changes, err := f.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(cluster.Namespace))
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
		case <-time.After(cluster.Limit):
			return 0, fmt.Errorf("pods were not observed after %s", cluster.Limit)
		}
	}
	return created, changes.Stop, nil
}

// timesOf reads the times of a job from the log of its launcher: a rank writes the name of its host, which starts with prefix,
// and the node adds the time. That node must have this machine's clock.
func (f *field) timesOf(ctx context.Context, pod, container, prefix string, start, ended time.Time) (times, error) {
	stream, err := f.Logs.CoreV1().Pods(cluster.Namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Timestamps: true}).Stream(ctx)
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
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: fmt.Sprintf("job-%d", f.taken)},
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
