package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/mpi"
)

// allowed matches the CPUs that a rank may use, in /proc/self/status.
var allowed = regexp.MustCompile(`Cpus_allowed_list:\s*(\S+)`)

// TestRanksAreNotBound: ranks may use all CPUs of their pod, unless a flag binds them. As an MPIJob and as a TrainJob.
func TestRanksAreNotBound(t *testing.T) {
	t.Parallel()
	program := []string{"grep", "Cpus_allowed_list", "/proc/self/status"}
	for name, test := range map[string]struct {
		sample, flags string
		shell, bound  bool
	}{
		"Open MPI 4":          {sample: "openmpi"},
		"Open MPI 5":          {sample: "openmpi5"},
		"MPICH":               {sample: "mpich"},
		"Intel MPI":           {sample: "intelmpi"},
		"Open MPI 4, bound":   {sample: "openmpi", flags: "--bind-to core", bound: true},
		"Open MPI 5, bound":   {sample: "openmpi5", flags: "--bind-to core", bound: true},
		"Open MPI 4, CPUs":    {sample: "openmpi", flags: "--map-by slot:PE=1"},
		"Open MPI 5, a range": {sample: "openmpi5", flags: "--map-by ppr:1:node"},
		// Each rank is bound to two cores. Open MPI 5 refuses this together with a policy.
		"Open MPI 4, two CPUs":             {sample: "openmpi", flags: "--map-by ppr:1:node:PE=2"},
		"Open MPI 5, two CPUs":             {sample: "openmpi5", flags: "--map-by slot:PE=2"},
		"Open MPI 5, two CPUs, by a shell": {sample: "openmpi5", flags: "--map-by slot:PE=2", shell: true},
	} {
		command := mpiCommand(test.sample, program...)
		command[2] = "2"
		command = slices.Concat(command[:3], strings.Fields(test.flags), command[3:])
		if test.shell {
			command = []string{"sh", "-c", strings.Join(command, " ")}
		}
		check := func(t *testing.T, text string) {
			t.Helper()
			checkBound(t, text, 2, test.bound)
		}
		t.Run(name, func(t *testing.T) {
			parallel(t, 2)
			job := agentJob(newNamespace(t), "job", test.sample, mpiOf(test.sample), 2, command...)
			job.Spec.SlotsPerWorker = new(int32(1))
			create(t, job)
			waitFor(t, job, (mpijob.Kind{}).Name()+" succeeds", succeeded)
			check(t, output(t, job))
		})
		t.Run(name+", TrainJob", func(t *testing.T) {
			parallel(t, 2)
			job := agentJob(newNamespace(t), "job", test.sample, mpiOf(test.sample), 2, command...)
			job.Spec.SlotsPerWorker = new(int32(1))
			object := asTrainJob(t, job)
			createTrainJob(t, object)
			ends(t, object, "Complete")
			check(t, printed(t, object))
		})
	}
}

// TestRanksThatShareCoresAreNotBound: where pods ask for cores of their own and their node does not give them any, as without the static CPU
// manager, ranks may use all CPUs: those of two jobs with two workers each on one node. A flag binds them, and the record says which.
func TestRanksThatShareCoresAreNotBound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sample, flags, want string
		bound               bool
	}{
		"Open MPI 4":        {sample: "openmpi", want: "none, cores are shared"},
		"Open MPI 5":        {sample: "openmpi5", want: "none, cores are shared"},
		"MPICH":             {sample: "mpich", want: "none, cores are shared"},
		"Intel MPI":         {sample: "intelmpi", want: "none, cores are shared"},
		"Open MPI 4, bound": {sample: "openmpi", flags: "--bind-to core", bound: true, want: "as set: --bind-to core"},
		"Open MPI 5, bound": {sample: "openmpi5", flags: "--bind-to core", bound: true, want: "as set: --bind-to core"},
		"MPICH, bound":      {sample: "mpich", flags: "-bind-to core", bound: true, want: "as set: -bind-to core"},
		"Open MPI 4, some":  {sample: "openmpi", flags: "--map-by node -x OMP_NUM_THREADS=2", want: "none, a rank may use several cores"},
		"Open MPI 5, some":  {sample: "openmpi5", flags: "--map-by node -x OMP_NUM_THREADS=2", want: "none, a rank may use several cores"},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t, 4)
			node, namespace := machines(t)[0], newNamespace(t)
			var jobs []*kubeflow.MPIJob
			for _, job := range []string{"one", "two"} {
				command := mpiCommand(test.sample, "grep", "Cpus_allowed_list", "/proc/self/status")
				command[2] = "2"
				command = slices.Concat(command[:3], strings.Fields(test.flags), command[3:])
				job := agentJob(namespace, job, test.sample, mpiOf(test.sample), 2, command...)
				job.Spec.SlotsPerWorker = new(int32(1))
				on(job, kubeflow.MPIReplicaTypeWorker, node)
				// As of pods with requests of whole CPUs that equal the limits, for which the machine has no room.
				for _, container := range []*corev1.Container{launcher(job), worker(job)} {
					container.Env = append(container.Env, corev1.EnvVar{Name: agentapi.EnvCores, Value: "1"})
				}
				create(t, job)
				jobs = append(jobs, job)
			}
			for _, job := range jobs {
				waitFor(t, job, (mpijob.Kind{}).Name()+" succeeds", succeeded)
				checkBound(t, output(t, job), 2, test.bound)
				reported(t, (mpijob.Kind{}).Name(), namespace, job.Name, "the record has the binding", func(status v1alpha1.JobReportStatus) error {
					if status.MPI.Binding != test.want {
						return fmt.Errorf("binding: %q, want %q", status.MPI.Binding, test.want)
					}
					return nil
				})
			}
		})
	}
}

// TestRanksBoundToTheSameCore: ranks of two workers on one node that a flag binds to the same core are a finding.
func TestRanksBoundToTheSameCore(t *testing.T) {
	parallel(t, 2)
	job := openMPI(newNamespace(t), 2, "mpirun", "-n", "2", "--bind-to", "core", "sleep", "45")
	job.Spec.SlotsPerWorker = new(int32(1))
	on(job, kubeflow.MPIReplicaTypeWorker, machines(t)[0])
	create(t, job)
	waitFor(t, job, (mpijob.Kind{}).Name()+" succeeds", succeeded)
	reported(t, (mpijob.Kind{}).Name(), job.Namespace, job.Name, "the record has the finding", func(status v1alpha1.JobReportStatus) error {
		if !slices.ContainsFunc(status.Findings, func(f v1alpha1.Finding) bool { return f.Code == codes.RanksShareCores }) {
			return fmt.Errorf("findings: %+v", status.Findings)
		}
		return nil
	})
}

// checkBound checks the CPUs that ranks have printed.
func checkBound(t *testing.T, text string, ranks int, bound bool) {
	t.Helper()
	found := allowed.FindAllStringSubmatch(text, -1)
	if len(found) != ranks {
		t.Errorf("%d ranks printed their CPUs, want %d: %s", len(found), ranks, text)
	}
	for _, match := range found {
		if isBound := !strings.ContainsAny(match[1], "-,"); isBound != bound {
			t.Errorf("a rank may use the CPUs %s; bound: want %t", match[1], bound)
		}
	}
}

// TestRanksAreBoundToOwnCores: a Guaranteed pod with one CPU, on a node with the static CPU manager, owns its core, which no pod of the node may use
// meanwhile. Its rank is bound to it, where MPI finds it: a container of cgroup v1 has no view of its own of the core's group.
func TestRanksAreBoundToOwnCores(t *testing.T) {
	node := staticNode(t)
	parallel(t, 2)
	namespace := newNamespace(t)
	const own = `/sys/fs/cgroup/cpuset.cpus.effective`
	start := func(name string, seconds int, resources corev1.ResourceRequirements) *kubeflow.MPIJob {
		script := fmt.Sprintf(`grep Cpus_allowed_list /proc/self/status; if [ -e %[1]s ]; then echo "cgroup v2, CPUs: $(cat %[1]s)"; else echo "cgroup v1, CPUs: $(cat /sys/fs/cgroup/cpuset/cpuset.cpus)"; fi; sleep %[2]d`, own, seconds)
		job := agentJob(namespace, name, "openmpi", kubeflow.MPIImplementationOpenMPI, 1, "mpirun", "-n", "1", "sh", "-c", script)
		job.Spec.SlotsPerWorker = new(int32(1))
		on(job, kubeflow.MPIReplicaTypeWorker, node)
		worker(job).Resources = resources
		create(t, job)
		return job
	}
	owned := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("256Mi")}
	guaranteed := start("own", 45, corev1.ResourceRequirements{Requests: owned, Limits: owned})
	eventually(t, "the rank of the Guaranteed pod has printed its CPUs", 2*time.Minute, func() error {
		if pods := podsOf(t, guaranteed, mpi.RoleLauncher); len(pods) == 0 || pods[0].Status.Phase != corev1.PodRunning {
			return errors.New("the launcher does not run")
		}
		data, err := logs.CoreV1().Pods(namespace).GetLogs(podsOf(t, guaranteed, mpi.RoleLauncher)[0].Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil || !cpusOf.Match(data) {
			return fmt.Errorf("log: %s, %w", data, err)
		}
		return nil
	})
	shared := start("shared", 0, corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m")}})
	waitFor(t, shared, (mpijob.Kind{}).Name()+" succeeds", succeeded)
	waitFor(t, guaranteed, (mpijob.Kind{}).Name()+" succeeds", succeeded)

	found := func(job *kubeflow.MPIJob) (version, set, ofRank string) {
		text := output(t, job)
		group, process := cpusOf.FindStringSubmatch(text), allowed.FindStringSubmatch(text)
		if group == nil || process == nil {
			t.Fatalf("the rank of %s has not printed its CPUs: %s", job.Name, text)
		}
		return group[1], group[2], process[1]
	}
	version, core, ofRank := found(guaranteed)
	if agentapi.CountCPUs(core) != 1 || ofRank != core {
		t.Errorf("the container has the CPUs %s and its rank %s, want one", core, ofRank)
	}
	_, others, ofOther := found(shared)
	cpus, _ := agentapi.ParseCPUs(others)
	given, _ := agentapi.ParseCPUs(core)
	if len(cpus) == 0 || slices.ContainsFunc(given, func(cpu int) bool { return slices.Contains(cpus, cpu) }) || ofOther != others {
		t.Errorf("the other container has the CPUs %s and its rank %s; core %s is not theirs", others, ofOther, core)
	}
	for job, want := range map[string]string{"own": map[string]string{"v2": "each rank to a core of its pod", "v1": "none, MPI does not find the cores of its pod"}[version], "shared": "none, cores are shared"} {
		reported(t, (mpijob.Kind{}).Name(), namespace, job, "the record has the binding", func(status v1alpha1.JobReportStatus) error {
			if status.MPI.Binding != want {
				return fmt.Errorf("binding: %q, want %q", status.MPI.Binding, want)
			}
			return nil
		})
	}
	if path, err := exec.LookPath("kubectl-odh-mpijob"); err == nil {
		t.Logf("describe by %s", path)
		shell{t, namespace}.run(0, []string{"none, cores are shared"}, "describe", "shared", "--all")
	}
}

// cpusOf matches what a rank prints of the CPUs of its container.
var cpusOf = regexp.MustCompile(`cgroup (v\d), CPUs: ([\d,-]+)`)

// staticNode returns a node whose kubelet has the static CPU manager; the test is skipped without one.
func staticNode(t *testing.T) corev1.Node {
	t.Helper()
	var list corev1.NodeList
	if err := api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for _, node := range list.Items {
		data, err := logs.CoreV1().RESTClient().Get().Resource("nodes").Name(node.Name).SubResource("proxy").Suffix("configz").DoRaw(t.Context())
		if err == nil && strings.Contains(string(data), `"cpuManagerPolicy":"static"`) {
			return node
		}
	}
	t.Skip("SKIPPED: no node has the static CPU manager; start one with: bin/cluster up --cpu-manager static")
	return corev1.Node{}
}
