// Package compute measures whether programs compute as fast in an MPIJob as without Kubernetes' or our help: `mpirun` in a pod of the
// same image, with as many ranks, on the same node. The times are the programs' own. It also measures the CPU time of the containers, and how much of it
// the agents take.
package compute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/cluster"
	"opendatahub.io/mpijob/hack/bench/programs"
	"opendatahub.io/mpijob/hack/bench/report"
)

// Names of the contestants, as in the report.
const (
	// Ours is an MPIJob with all ranks in one worker.
	Ours = "ours"
	// Bare is a pod in which mpirun starts the ranks, without an operator or agent.
	Bare = "bare"
	// Unbound is Bare with what the operator sets for pods that request less than a CPU for each rank, as these do: ranks are not bound to
	// cores, and yield them while they wait.
	Unbound = "unbound"
	// Requested is Ours with the settings of a job that requests a CPU for each rank: ranks do not yield. The pods request none, as not all of the
	// node's CPUs can be requested.
	Requested = "requested"
	// Spread is an MPIJob with a worker for each rank, all on the same node: ranks of different pods exchange messages by TCP.
	Spread = "spread"
	// Profiled is Ours with a communication profile, which counts and times each call of MPI.
	Profiled = "profiled"
	// Unsampled is Ours whose agents do not measure what the containers use over time.
	Unsampled = "unsampled"
)

// annotationProfile asks for the profile, as in docs/annotations.md.
const annotationProfile = "mpi.opendatahub.io/profile"

// envMeasure keeps the agent from measuring if it is false, as in docs/agent.md.
const envMeasure = "MPI_AGENT_MEASURE"

// Peers returns the contestants other than Ours, in the order of the table.
func Peers() []string { return []string{Bare, Unbound, Requested, Spread, Profiled, Unsampled} }

// A group is a number of cases that differ in their programs.
type group struct {
	// prefix is that of the names of the cases.
	prefix string
	// ranks is how many a program has, and copies how many jobs or pods run it at once on the node.
	ranks, copies int
	programs      []program
	contestants   []string
}

// groups are all cases. On a machine with two cores, two ranks have a core each, and four share them: those of a job, or of two.
var groups = []group{
	{ranks: 2, copies: 1, programs: []program{lammps(2000), gromacs, hpcc}, contestants: append([]string{Ours}, Peers()...)},
	{ranks: 4, copies: 1, programs: []program{lammps(2000), gromacs, hpcc}, contestants: []string{Ours, Bare}},
	// Programs that exchange many small messages can take hours in pods whose ranks keep each other from a core.
	{prefix: "shared/", ranks: 2, copies: 2, programs: []program{lammps(1000)}, contestants: []string{Ours, Bare}},
}

// Settings are those of a run of the suite.
type Settings struct {
	// Root is our checkout, Out the folder for everything that is written.
	Root, Out string
	// Names match those of the cases to measure.
	Names *regexp.Regexp
	// Runs is how often each contestant runs each program.
	Runs int
	// Progress receives a line per run.
	Progress io.Writer
}

// Results are what was measured.
type Results struct {
	Cases []report.Case
	// Skipped is why a case was not measured, by its name.
	Skipped map[string]string
	// Versions are those of what was measured.
	Versions map[string]string
}

// sample is the image of the programs: packages of Debian with Open MPI 4.
const sample = "science"

// A program is one that others wrote.
type program struct {
	// command is what each rank runs in an empty folder; rank 0 prints the figures.
	command string
	figures []figure
}

// A figure is a time that a program prints.
type figure struct {
	name, unit string
	// pattern has the number as its group.
	pattern *regexp.Regexp
}

// settle is how many seconds the ranks wait before programs compute. Meanwhile the cluster completes the work that the start of pods causes, on the
// same cores.
const settle = "6"

const inputs = "/usr/local/share/science"

// hpccInput makes HPC Challenge solve a larger problem than the test of its result does, with any number of ranks.
const hpccInput = `sed 's/^400 /2000 /; s/^2            Ps/1            Ps/; s/^2            Qs/'$OMPI_COMM_WORLD_SIZE'            Qs/' ` + inputs + `/hpccinf.txt >hpccinf.txt`

func lammps(steps int) program {
	return program{
		command: fmt.Sprintf("lmp -in %s/melt.lammps -var steps %d -log melt.log >/dev/null; ", inputs, steps) + ifRankZero("cat melt.log"),
		figures: []figure{{"lammps", "s", regexp.MustCompile(`Loop time of (\S+)`)}},
	}
}

var gromacs = program{
	command: "gmx_mpi mdrun -quiet -ntomp 1 -nsteps 1000 -s " + inputs + "/water.tpr -deffnm water >/dev/null 2>&1; " + ifRankZero("cat water.log"),
	figures: []figure{{"gromacs", "s", regexp.MustCompile(`Time:\s+\S+\s+(\S+)`)}},
}

var hpcc = program{
	command: hpccInput + "; hpcc; " + ifRankZero("cat hpccoutf.txt"),
	figures: []figure{
		{"hpl", "s", regexp.MustCompile(`HPL_time=(\S+)`)},
		{"ptrans", "s", regexp.MustCompile(`PTRANS_time=(\S+)`)},
		{"random-access", "s", regexp.MustCompile(`MPIRandomAccess_time=(\S+)`)},
		{"ping-pong", "µs", regexp.MustCompile(`AvgPingPongLatency_usec=(\S+)`)},
		{"ring", "µs", regexp.MustCompile(`NaturallyOrderedRingLatency_usec=(\S+)`)},
	},
}

func ifRankZero(command string) string {
	return "if [ $OMPI_COMM_WORLD_RANK = 0 ]; then " + command + "; fi"
}

// caseName is that of a figure of a group.
func (g group) caseName(figure string) string {
	return fmt.Sprintf("%s%s/%d", g.prefix, figure, g.ranks)
}

// chosen returns the groups with those of their programs and figures whose cases match.
func chosen(names *regexp.Regexp) []group {
	var all []group
	for _, g := range groups {
		var programs []program
		for _, p := range g.programs {
			p.figures = slices.DeleteFunc(slices.Clone(p.figures), func(f figure) bool { return !names.MatchString(g.caseName(f.name)) })
			if len(p.figures) > 0 {
				programs = append(programs, p)
			}
		}
		switch measuresUse := names.MatchString(g.caseName(cpuSeconds)) || names.MatchString(g.caseName(agentShare)); {
		case len(programs) > 0:
			g.programs = programs
			all = append(all, g)
		case measuresUse:
			all = append(all, g)
		}
	}
	return all
}

// Run runs the suite. If no name matches, there are no results.
func Run(ctx context.Context, settings Settings) (results Results, err error) {
	results = Results{Skipped: map[string]string{}, Versions: map[string]string{"ours": programs.Commit(ctx, settings.Root)}}
	groups := chosen(settings.Names)
	if len(groups) == 0 {
		return results, nil
	}
	c, err := cluster.Open(ctx, settings.Root)
	if none, is := errors.AsType[cluster.Missing](err); is {
		for _, g := range groups {
			for _, p := range g.programs {
				for _, f := range p.figures {
					results.Skipped[g.caseName(f.name)] = none.Why
				}
			}
		}
		return results, nil
	}
	if err != nil {
		return results, err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	image, err := c.Load(ctx, sample, filepath.Join(settings.Out, "images"))
	if err != nil {
		return results, err
	}
	r := runner{cluster: c, image: image.Reference}
	if r.node, err = firstNode(ctx, c); err != nil {
		return results, err
	}
	for _, g := range groups {
		measured, err := settings.measure(ctx, &r, g)
		if err != nil {
			return results, err
		}
		results.Cases = append(results.Cases, measured...)
	}
	return results, nil
}

// measure has contestants take turns with the programs of a group. One that went first in a turn goes last in the next.
func (s Settings) measure(ctx context.Context, r *runner, g group) ([]report.Case, error) {
	values := map[string]map[string][]report.Value{}
	for turn := range s.Runs {
		for i := range g.contestants {
			who := g.contestants[(turn+i)%len(g.contestants)]
			found, err := r.figures(ctx, who, g)
			if err != nil {
				return nil, fmt.Errorf("%s, %d ranks, run %d: %w", who, g.ranks, turn+1, err)
			}
			for _, f := range g.figures() {
				value, known := found[f.name]
				if !known {
					continue
				}
				if values[f.name] == nil {
					values[f.name] = map[string][]report.Value{}
				}
				values[f.name][who] = append(values[f.name][who], value)
				_, _ = fmt.Fprintf(s.Progress, "%-20s run %d/%d  %-9s %s %s\n", g.caseName(f.name), turn+1, s.Runs, who, value, f.unit)
			}
		}
	}
	return g.cases(values), nil
}

// cases returns those of the values that were measured, by figure and contestant.
func (g group) cases(values map[string]map[string][]report.Value) []report.Case {
	var cases []report.Case
	for _, f := range g.figures() {
		if len(values[f.name]) == 0 {
			continue
		}
		c := report.NewCase(g.caseName(f.name), f.unit, Ours, values[f.name])
		c.Paired = report.Pair(Ours, values[f.name])
		cases = append(cases, c)
	}
	return cases
}

// figures returns those of the programs, and those of the CPU time.
func (g group) figures() []figure {
	var all []figure
	for _, p := range g.programs {
		all = append(all, p.figures...)
	}
	return append(all, figure{name: cpuSeconds, unit: "s"}, figure{name: agentShare, unit: "%"})
}

// read returns the figures in what the copies have printed, each the mean of all copies. A program that was ended has at least the time that it got.
func (g group) read(texts []string) (map[string]report.Value, error) {
	found := map[string]report.Value{}
	add := func(name string, value float64, atLeast bool) {
		of := found[name]
		found[name] = report.Value{Value: of.Value + value/float64(len(texts)), AtLeast: of.AtLeast || atLeast}
	}
	for _, text := range texts {
		for i, p := range g.programs {
			if err := p.read(text, strings.Contains(text, endedLine(i)), add); err != nil {
				return nil, err
			}
		}
		use := readUse(text)
		if use.total > 0 {
			add(cpuSeconds, use.total, false)
		}
		if use.agents > 0 && use.total > 0 {
			add(agentShare, 100*use.agents/use.total, false)
		}
	}
	return found, nil
}

// read adds the figures that a program has printed, or the longest time if it was ended.
func (p program) read(text string, wasEnded bool, add func(name string, value float64, atLeast bool)) error {
	for _, f := range p.figures {
		if wasEnded {
			// Latencies of messages are unknown then.
			if f.unit == "s" {
				add(f.name, longest.Seconds(), true)
			}
			continue
		}
		value, err := f.read(text)
		if err != nil {
			return err
		}
		add(f.name, value, false)
	}
	return nil
}

// read finds a figure in what a program has printed.
func (f figure) read(text string) (float64, error) {
	found := f.pattern.FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("%s is not in the output: %.2000s", f.name, text)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", f.name, err)
	}
	return value, nil
}

// A runner runs jobs and pods on one node.
type runner struct {
	cluster     *cluster.Cluster
	image, node string
	// taken counts the jobs.
	taken int
}

func firstNode(ctx context.Context, c *cluster.Cluster) (string, error) {
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes); err != nil {
		return "", fmt.Errorf("list nodes: %w", err)
	}
	if len(nodes.Items) == 0 {
		return "", errors.New("the cluster has no nodes")
	}
	return slices.MinFunc(nodes.Items, func(a, b corev1.Node) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }).Name, nil
}

// run returns what the programs of each copy have printed that one contestant ran.
func (r *runner) run(ctx context.Context, who string, g group) ([]string, error) {
	texts, failures := make([]string, g.copies), make([]error, g.copies)
	var copies sync.WaitGroup
	for i := range g.copies {
		r.taken++
		name := fmt.Sprintf("compute-%d", r.taken)
		copies.Go(func() { texts[i], failures[i] = r.runCopy(ctx, name, who, g) })
	}
	copies.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	return texts, r.cluster.UntilEmpty(ctx)
}

// figures returns what the programs of a group have printed that one contestant ran.
func (r *runner) figures(ctx context.Context, who string, g group) (map[string]report.Value, error) {
	texts, err := r.run(ctx, who, g)
	if err != nil {
		return nil, err
	}
	return g.read(texts)
}

func (r *runner) runCopy(ctx context.Context, name, who string, g group) (string, error) {
	options := bareOptions(who)
	command := []string{"sh", "-ec", script(g, options)}
	if options != nil {
		return r.runPod(ctx, name, command)
	}
	workers, slots := 1, g.ranks
	if who == Spread {
		workers, slots = g.ranks, 1
	}
	job := r.job(name, workers, slots, command)
	for _, replicas := range job.Spec.MPIReplicaSpecs {
		container := &replicas.Template.Spec.Containers[0]
		switch who {
		case Requested:
			container.Env = []corev1.EnvVar{{Name: "OMPI_MCA_mpi_yield_when_idle", Value: "0"}}
		case Unsampled:
			container.Env = []corev1.EnvVar{{Name: envMeasure, Value: "false"}}
		}
	}
	if who == Profiled {
		job.Annotations = map[string]string{annotationProfile: "true"}
	}
	return r.runJob(ctx, job)
}

// bareOptions returns the options of mpirun of a contestant that runs in a pod of its own; nil for the others.
//
// Without a hostfile, Open MPI has as many slots as the machine has cores. With more ranks, it lets them yield the core while they wait
// (OMPI_MCA_mpi_oversubscribe=1), and does not bind them. A job's hostfile has a slot for each rank, so that mpirun cannot tell: the operator
// sets the same.
func bareOptions(who string) []string {
	// No ssh is needed, which the image does not have.
	options := []string{"--oversubscribe", "--mca", "plm", "isolated"}
	switch who {
	case Bare:
		return options
	case Unbound:
		return append(options, "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")
	}
	return nil
}

// pod is a pod of the image on the node. Its folder for temporary files is in memory, as without it the disk would be measured.
func (r *runner) pod(command []string) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{corev1.LabelHostname: r.node},
		Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}},
		Containers: []corev1.Container{{
			Name: "program", Image: r.image, ImagePullPolicy: corev1.PullIfNotPresent, Command: command,
			SecurityContext: &corev1.SecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1000))},
			VolumeMounts:    []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
		}},
	}
}

func (r *runner) runPod(ctx context.Context, name string, command []string) (string, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name}, Spec: r.pod(command)}
	if err := r.cluster.Client.Create(ctx, pod); err != nil {
		return "", fmt.Errorf("create pod %s: %w", name, err)
	}
	err := cluster.UntilWithin(ctx, limit, name+" has ended", func() (bool, error) {
		err := r.cluster.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed, err
	})
	if err != nil {
		return "", err
	}
	text, err := r.log(ctx, name)
	if err == nil && pod.Status.Phase == corev1.PodFailed {
		err = fmt.Errorf("pod %s failed: %s", name, text)
	}
	if err != nil {
		return "", err
	}
	if err := r.cluster.Client.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return "", fmt.Errorf("delete pod %s: %w", name, err)
	}
	return text, nil
}

func (r *runner) job(name string, workers, slots int, command []string) *kubeflow.MPIJob {
	replica := func(n int, command []string) *kubeflow.ReplicaSpec {
		return &kubeflow.ReplicaSpec{Replicas: new(int32(n)), Template: corev1.PodTemplateSpec{Spec: r.pod(command)}}
	}
	return &kubeflow.MPIJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name},
		Spec: kubeflow.MPIJobSpec{
			SlotsPerWorker: new(int32(slots)),
			MPIReplicaSpecs: map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{
				kubeflow.MPIReplicaTypeLauncher: replica(1, command), kubeflow.MPIReplicaTypeWorker: replica(workers, nil),
			},
		},
	}
}

func (r *runner) runJob(ctx context.Context, job *kubeflow.MPIJob) (string, error) {
	name := job.Name
	if err := r.cluster.Client.Create(ctx, job); err != nil {
		return "", fmt.Errorf("create MPIJob %s: %w", name, err)
	}
	ended := func(result kubeflow.JobConditionType) bool {
		return slices.ContainsFunc(job.Status.Conditions, func(c kubeflow.JobCondition) bool { return c.Type == result && c.Status == corev1.ConditionTrue })
	}
	err := cluster.UntilWithin(ctx, limit, name+" has ended", func() (bool, error) {
		err := r.cluster.Client.Get(ctx, client.ObjectKeyFromObject(job), job)
		return ended(kubeflow.JobSucceeded) || ended(kubeflow.JobFailed), err
	})
	if err != nil {
		return "", err
	}
	var pods corev1.PodList
	labels := client.MatchingLabels{kubeflow.JobNameLabel: name, kubeflow.JobRoleLabel: "launcher"}
	if err := r.cluster.Client.List(ctx, &pods, client.InNamespace(cluster.Namespace), labels); err != nil {
		return "", fmt.Errorf("list the launcher's pods: %w", err)
	}
	if len(pods.Items) == 0 {
		return "", fmt.Errorf("MPIJob %s has ended without a launcher", name)
	}
	text, err := r.log(ctx, pods.Items[0].Name)
	if err == nil && ended(kubeflow.JobFailed) {
		err = fmt.Errorf("MPIJob %s failed: %s", name, text)
	}
	if err != nil {
		return "", err
	}
	if err := r.cluster.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return "", fmt.Errorf("delete MPIJob %s: %w", name, err)
	}
	return text, nil
}

func (r *runner) log(ctx context.Context, pod string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	text, err := r.cluster.Logs.CoreV1().Pods(cluster.Namespace).GetLogs(pod, &corev1.PodLogOptions{Container: "program"}).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("read the log of %s: %w", pod, err)
	}
	return string(text), nil
}
