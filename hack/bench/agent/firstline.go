package agent

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
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/agent/rootfs"
	"opendatahub.io/mpijob/hack/bench/process"
	"opendatahub.io/mpijob/hack/bench/programs"
	"opendatahub.io/mpijob/hack/bench/report"
)

// firstLine is the time from the creation of an MPIJob until a rank has written its first line, on a cluster.
var firstLine = result{"first-line", "s"}

// namespace is where the jobs are, and mpi-operator's lease; it is removed in the end.
const namespace = "mpijob-bench"

// ranks is how many workers those jobs have, with a rank each.
const ranks = 4

// field is a cluster on which two operators take turns.
type field struct {
	client     client.Client
	logs       kubernetes.Interface
	kubeconfig string
	// image is what launcher and workers run.
	image string
	// mpiOperator is the program, whose output goes to the file log.
	mpiOperator, log string
	// replicas are what our operator's Deployment had.
	replicas int32
	// taken counts the jobs.
	taken int
}

// deployment is our operator's.
var deployment = client.ObjectKey{Namespace: "mpijob-system", Name: "mpijob-operator"}

// noField is an error that says why there is no cluster to measure on.
type noField struct{ why string }

func (n noField) Error() string { return n.why }

// openField finds a cluster that our operator is on; the error is noField where there is none.
func (s Settings) openField(ctx context.Context) (*field, error) {
	f := &field{kubeconfig: os.Getenv("KUBECONFIG"), log: filepath.Join(s.Out, "logs", "agent", "mpi-operator.log")}
	own := f.kubeconfig == ""
	if own {
		f.kubeconfig = filepath.Join(s.Root, ".cluster", "kubeconfig")
	}
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return nil, noField{"there is no cluster: `make deploy` starts one"}
	}
	config.Timeout = time.Minute
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	if f.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
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
	f.image = image.Reference
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

// firstLine measures our operator, whose agent starts the ranks, beside mpi-operator, whose image has an sshd.
func (s Settings) firstLine(ctx context.Context, results *Results) (err error) {
	f, err := s.openField(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close(context.WithoutCancel(ctx))) }()
	if results.Versions[MPIOperator], err = programs.MPIOperatorVersion(ctx, s.Root); err != nil {
		return err
	}
	values := map[string][]report.Value{}
	for turn := range s.Runs {
		for _, who := range []string{Ours, MPIOperator} {
			took, err := f.run(ctx, who)
			if err != nil {
				return fmt.Errorf("%s, %s, run %d: %w", firstLine.name, who, turn+1, err)
			}
			value := report.Value{Value: took.Seconds()}
			values[who] = append(values[who], value)
			s.tell(told(firstLine.name, turn+1, s.Runs, who, value.String()+" "+firstLine.unit))
		}
	}
	results.Cases = append(results.Cases, report.NewCase(firstLine.name, firstLine.unit, Ours, values))
	return nil
}

// run has one operator run two jobs. The first is for it to get ready.
func (f *field) run(ctx context.Context, who string) (took time.Duration, err error) {
	template := (*field).ours
	if who == MPIOperator {
		template = (*field).theirs
		stop, err := f.hand(ctx)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	if err := f.job(ctx, template(f), nil); err != nil {
		return 0, fmt.Errorf("warm up: %w", err)
	}
	// mpi-operator's rate limiter is full again after 2 s.
	if err := pause(ctx, 3*time.Second); err != nil {
		return 0, err
	}
	err = f.job(ctx, template(f), &took)
	return took, err
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
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait until %s: %w", what, err)
		}
	}
}

// job has a job run and removes it. If it is asked, it tells how long the job took to its first line.
func (f *field) job(ctx context.Context, job *kubeflow.MPIJob, took *time.Duration) error {
	start := time.Now()
	if err := f.client.Create(ctx, job); err != nil {
		return fmt.Errorf("create MPIJob %s: %w", job.Name, err)
	}
	err := f.until(ctx, job.Name+" has ended", func() (bool, error) {
		err := f.client.Get(ctx, client.ObjectKeyFromObject(job), job)
		for _, c := range job.Status.Conditions {
			if c.Type == kubeflow.JobFailed && c.Status == corev1.ConditionTrue {
				return false, fmt.Errorf("%s failed: %s", job.Name, c.Message)
			}
			if c.Type == kubeflow.JobSucceeded && c.Status == corev1.ConditionTrue {
				return true, err
			}
		}
		return false, err
	})
	if err != nil {
		return err
	}
	if took != nil {
		first, err := f.first(ctx, job)
		if err != nil {
			return err
		}
		*took = first.Sub(start)
	}
	if err := f.client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return fmt.Errorf("delete MPIJob %s: %w", job.Name, err)
	}
	return f.until(ctx, "the pods of "+job.Name+" are gone", func() (bool, error) {
		var pods corev1.PodList
		err := f.client.List(ctx, &pods, client.InNamespace(namespace))
		return len(pods.Items) == 0, err
	})
}

// first is when a rank wrote its first line, the name of its host, as the node has noted it. That node must have this
// machine's clock.
func (f *field) first(ctx context.Context, job *kubeflow.MPIJob) (time.Time, error) {
	var pods corev1.PodList
	labels := client.MatchingLabels{kubeflow.JobNameLabel: job.Name, kubeflow.JobRoleLabel: "launcher"}
	if err := f.client.List(ctx, &pods, client.InNamespace(namespace), labels); err != nil {
		return time.Time{}, fmt.Errorf("list the launcher's pods: %w", err)
	}
	for _, pod := range pods.Items {
		stream, err := f.logs.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: "launcher", Timestamps: true}).Stream(ctx)
		if err != nil {
			return time.Time{}, fmt.Errorf("read the log of %s: %w", pod.Name, err)
		}
		defer stream.Close()
		for lines := bufio.NewScanner(stream); lines.Scan(); {
			at, text, _ := strings.Cut(lines.Text(), " ")
			if strings.HasPrefix(text, job.Name+"-worker-") {
				return time.Parse(time.RFC3339Nano, at)
			}
		}
	}
	return time.Time{}, fmt.Errorf("no rank of %s has written a line", job.Name)
}

// ours is a job whose ranks the agent starts.
func (f *field) ours() *kubeflow.MPIJob {
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
				kubeflow.MPIReplicaTypeWorker:   {Replicas: new(int32(ranks)), Template: container("worker")},
			},
		},
	}
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.Containers[0].Command = []string{"mpirun", "-n", fmt.Sprint(ranks), "hostname"}
	return job
}

// theirs is the same job, whose workers run the image's sshd. The launcher waits for them by the image's ssh.
func (f *field) theirs() *kubeflow.MPIJob {
	job := f.ours()
	job.Spec.SSHAuthMountPath = "/home/mpiuser/.ssh"
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Command = []string{"sshd-user"}
	return job
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-time.After(length):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
