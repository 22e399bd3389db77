package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// implementations are the MPI libraries whose samples have no sshd, no ssh and no user of their own.
var implementations = []struct {
	sample         string
	implementation kubeflow.MPIImplementation
	mpirun         string
	// version is how the version begins that the agent reports.
	version string
}{
	{"openmpi", kubeflow.MPIImplementationOpenMPI, "mpirun", "Open MPI 4."},
	{"openmpi5", kubeflow.MPIImplementationOpenMPI, "mpirun", "Open MPI 5."},
	{"mpich", kubeflow.MPIImplementationMPICH, "mpiexec", "MPICH 4."},
	{"intelmpi", kubeflow.MPIImplementationIntel, "mpiexec", "Intel MPI 2021."},
}

// sampleImage is another sample's image, beside the one under test.
func sampleImage(name string) string { return strings.Replace(image, "openmpi", name, 1) }

// restricted is what Pod Security's restricted profile demands, with the kind of user that OpenShift picks.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(1000650000)), AllowPrivilegeEscalation: new(false),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// agentJob is a job of two slots a worker whose image has an MPI and nothing else.
func agentJob(namespace, name, sample string, implementation kubeflow.MPIImplementation, workers int32, command ...string) *kubeflow.MPIJob {
	container := func(role string) corev1.Container {
		return corev1.Container{
			Name: role, Image: sampleImage(sample), ImagePullPolicy: corev1.PullIfNotPresent, SecurityContext: restricted(),
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
			},
		}
	}
	job := &kubeflow.MPIJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: kubeflow.MPIJobSpec{
			SlotsPerWorker: new(int32(2)), MPIImplementation: implementation,
			RunPolicy: kubeflow.RunPolicy{BackoffLimit: new(int32(0))},
			MPIReplicaSpecs: map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{
				kubeflow.MPIReplicaTypeLauncher: {RestartPolicy: kubeflow.RestartPolicyNever, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container("launcher")}}}},
				kubeflow.MPIReplicaTypeWorker:   {Replicas: new(workers), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container("worker")}}}},
			},
		},
	}
	launcher(job).Command = command
	return job
}

// openMPI is an agentJob with Open MPI 4.
func openMPI(namespace string, workers int32, command ...string) *kubeflow.MPIJob {
	return agentJob(namespace, "job", "openmpi", kubeflow.MPIImplementationOpenMPI, workers, command...)
}

// summary waits until a launcher's last pod has ended and returns what its agent says of it.
func summary(t *testing.T, job *kubeflow.MPIJob) (told agentapi.Summary) {
	t.Helper()
	eventually(t, "the launcher tells how it ended", time.Minute, func() error {
		pods := podsOf(t, job, mpi.RoleLauncher)
		if len(pods) == 0 {
			return fmt.Errorf("it has no pod")
		}
		found, has := mpi.AgentSummary(&pods[len(pods)-1])
		if !has {
			return fmt.Errorf("its pod is %s", pods[len(pods)-1].Status.Phase)
		}
		told = found
		return nil
	})
	text, _ := json.Marshal(told)
	t.Logf("the agent's summary: %s", text)
	return told
}

// TestCheckpointWithinGracePeriod: ranks of a deleted job have the pods' grace period to write a checkpoint, which takes 12 s.
func TestCheckpointWithinGracePeriod(t *testing.T) {
	t.Parallel()
	for _, with := range implementations {
		t.Run(with.sample, func(t *testing.T) {
			t.Parallel()
			const rank = `trap 'sleep 12; echo checkpoint is written; exit 0' TERM; echo rank is ready; while :; do sleep 0.2; done`
			job := agentJob(newNamespace(t), "job", with.sample, with.implementation, 2, with.mpirun, "-n", "4", "sh", "-c", rank)
			for _, role := range job.Spec.MPIReplicaSpecs {
				role.Template.Spec.TerminationGracePeriodSeconds = new(int64(60))
			}
			create(t, job)
			waitFor(t, job, "the job runs", runs)
			pod := podsOf(t, job, mpi.RoleLauncher)[0].Name
			stream, err := logs.CoreV1().Pods(job.Namespace).GetLogs(pod, &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			var printed strings.Builder
			for lines := bufio.NewScanner(stream); lines.Scan(); {
				fmt.Fprintln(&printed, lines.Text())
				if lines.Text() == "rank is ready" && strings.Count(printed.String(), "rank is ready") == 4 {
					if err := api.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if n := strings.Count(printed.String(), "checkpoint is written"); n != 4 {
				t.Errorf("%d ranks wrote their checkpoint, want 4:\n%s", n, &printed)
			}
		})
	}
}

var rankOn = regexp.MustCompile(`(?m)^rank (\d+) of (\d+) on (\S+)$`)

// TestAnyMPIWithoutSSHD: jobs with Open MPI 4 and 5, MPICH and Intel MPI start a rank for each slot of each worker, in images without SSH,
// in a namespace that enforces restricted, as a user without an entry in passwd.
func TestAnyMPIWithoutSSHD(t *testing.T) {
	t.Parallel()
	for _, with := range implementations {
		for _, workers := range []int32{2, 4} {
			t.Run(fmt.Sprintf("%s on %d workers", with.sample, workers), func(t *testing.T) {
				parallel(t, int64(2*workers))
				job := agentJob(newNamespace(t), "job", with.sample, with.implementation, workers, with.mpirun, "-n", fmt.Sprint(2*workers), "ranks")
				start := time.Now()
				create(t, job)
				waitFor(t, job, "it succeeds", succeeded)
				printed := output(t, job)
				t.Logf("%s after %s", with.sample, time.Since(start).Round(100*time.Millisecond))
				byPod, ranks := map[string]int{}, map[string]bool{}
				for _, match := range rankOn.FindAllStringSubmatch(printed, -1) {
					if match[2] != fmt.Sprint(2*workers) {
						t.Errorf("%s is not one of %d ranks", match[0], 2*workers)
					}
					byPod[match[3]]++
					ranks[match[1]] = true
				}
				for i := range workers {
					if pod := fmt.Sprintf("job-worker-%d", i); byPod[pod] != 2 {
						t.Errorf("%d ranks ran on %s, want 2", byPod[pod], pod)
					}
				}
				n := 2 * int(workers)
				if len(ranks) != n || !strings.Contains(printed, fmt.Sprintf("sum %d\n", n*(n-1)/2)) {
					t.Errorf("it printed %q", printed)
				}
				told := summary(t, job)
				if told.Code != "" || told.HostsReached != workers || told.SlotsFound != 2*workers {
					t.Errorf("the agent says %+v", told)
				}
				if len(told.MPIVersions) != 1 || !strings.HasPrefix(told.MPIVersions[0], with.version) {
					t.Errorf("the agent reports the versions %q, want %s", told.MPIVersions, with.version)
				}
			})
		}
	}
}

func TestExitCodeIsPassedOn(t *testing.T) {
	parallel(t, 4)
	job := openMPI(newNamespace(t), 2, "mpirun", "-n", "4", "ranks", "--exit", "2:42")
	create(t, job)
	if failed := failedWith(t, job, time.Minute); !strings.Contains(failed.Message, "code 42") {
		t.Errorf("the job says %q", failed.Message)
	}
	told := summary(t, job)
	if told.ExitCode == nil || *told.ExitCode != 42 {
		t.Errorf("the agent says %+v", told)
	}
}

var outLine = regexp.MustCompile(`out (\d) (\d{6}) \.{50}\n`)

// TestOutputIsWhole: a megabyte of each of four ranks, every byte of it, every rank's in its order. Where two ranks
// write at once mpirun may put one's piece into the middle of the other's line: such lines are not found, or seem to
// be another's, and there are few of them.
func TestOutputIsWhole(t *testing.T) {
	parallel(t, 4)
	const lines, ranks = 16384, 4
	job := openMPI(newNamespace(t), 2, "mpirun", "-n", strconv.Itoa(ranks), "ranks", "--lines", strconv.Itoa(lines))
	create(t, job)
	waitFor(t, job, "it succeeds", succeeded)
	printed := output(t, job)
	// 64 bytes less "out R NNNNNN " and the end of the line are dots.
	if got, want := strings.Count(printed, "."), ranks*lines*(64-13-1); got != want {
		t.Errorf("%d dots arrived, want %d", got, want)
	}
	byRank, found := map[string][]string{}, 0
	for _, match := range outLine.FindAllStringSubmatch(printed, -1) {
		byRank[match[1]] = append(byRank[match[1]], match[2])
		found++
	}
	inOrder := 0
	for _, numbers := range byRank {
		inOrder += longestRising(numbers)
	}
	if found < ranks*lines*3/4 || inOrder < found*99/100 {
		t.Errorf("%d whole lines were found, %d of them in their order; want most of %d, and nearly all of these", found, inOrder, ranks*lines)
	}
}

// longestRising is the length of the longest rising subsequence: how many are in order if the others are set aside.
func longestRising(values []string) int {
	var ends []string // the least end of a rising subsequence of each length
	for _, value := range values {
		at, _ := slices.BinarySearch(ends, value)
		if at == len(ends) {
			ends = append(ends, value)
		} else {
			ends[at] = value
		}
	}
	return len(ends)
}

// TestUsersOwnOptions: what the user tells mpirun stands, and ranks have the container's environment and no input.
func TestUsersOwnOptions(t *testing.T) {
	t.Parallel()
	job := openMPI(newNamespace(t), 2, "mpirun", "--map-by", "node", "-n", "2", "-x", "GREETING=hi there", "sh", "-c",
		`cat; echo "$OMPI_COMM_WORLD_RANK on $(hostname): $GREETING $TEAM"`)
	worker(job).Env = []corev1.EnvVar{{Name: "TEAM", Value: "blue"}}
	create(t, job)
	waitFor(t, job, "it succeeds", succeeded)
	printed := output(t, job)
	for rank := range 2 {
		if want := fmt.Sprintf("%d on job-worker-%d: hi there blue\n", rank, rank); !strings.Contains(printed, want) {
			t.Errorf("it printed %q, want %q", printed, want)
		}
	}
}

// TestLateWorker: a worker that comes half a minute after the launcher is waited for, and this is told.
func TestLateWorker(t *testing.T) {
	parallel(t, 4)
	job := openMPI(newNamespace(t), 2, "mpirun", "-n", "4", "ranks")
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.InitContainers = []corev1.Container{{
		Name: "late", Image: sampleImage("openmpi"), Command: []string{"sh", "-c", "case $HOSTNAME in *-1) sleep 30;; esac"}, SecurityContext: restricted(),
	}}
	create(t, job)
	waitFor(t, job, "it succeeds", succeeded)
	printed := output(t, job)
	t.Logf("the launcher's log:\n%s", printed)
	if !strings.Contains(printed, "mpi-agent: waiting for 1 of 2 hosts for ") || !strings.Contains(printed, "job-worker-1: nothing listens") {
		t.Errorf("it printed %q", printed)
	}
}

// TestRankOutOfMemory: the rank, its pod and the cause are named, although only the kernel has seen it.
func TestRankOutOfMemory(t *testing.T) {
	parallel(t, 4)
	job := openMPI(newNamespace(t), 2, "mpirun", "-n", "4", "ranks", "--memory", "3:600", "--sleep", "1")
	worker(job).Resources.Limits[corev1.ResourceMemory] = resource.MustParse("256Mi")
	create(t, job)
	failed := failedWith(t, job, time.Minute)
	t.Logf("the job says: %s", failed.Message)
	// With cgroup v2 the kubelet has the kernel end the whole container, which Kubernetes itself then tells.
	if strings.Contains(failed.Message, "OOMKilled") {
		return
	}
	told := summary(t, job)
	if told.Code != agentapi.OutOfMemory || len(told.Ranks) == 0 || told.Ranks[0].Rank != 3 || !told.Ranks[0].OOM {
		t.Errorf("the agent says %+v", told)
	}
}

func TestRankSegmentationFault(t *testing.T) {
	parallel(t, 4)
	job := openMPI(newNamespace(t), 2, "mpirun", "-n", "4", "ranks", "--segv", "1")
	create(t, job)
	t.Logf("the job says: %s", failedWith(t, job, time.Minute).Message)
	if told := summary(t, job); told.Code != agentapi.RankFailed || len(told.Ranks) == 0 || told.Ranks[0].Rank != 1 || told.Ranks[0].Signal != 11 {
		t.Errorf("the agent says %+v", told)
	}
}

// metric reads one of a worker's agent's numbers, through the API server.
func metric(t *testing.T, job *kubeflow.MPIJob, worker int, name string) (float64, error) {
	t.Helper()
	data, err := logs.CoreV1().RESTClient().Get().Namespace(job.Namespace).Resource("pods").
		Name(fmt.Sprintf("%s-worker-%d:%d", job.Name, worker, agentapi.StatusPort)).SubResource("proxy").Suffix("metrics").DoRaw(t.Context())
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("no %s in %s", name, data)
}

func metricIs(t *testing.T, job *kubeflow.MPIJob, worker int, name string, want float64, within time.Duration) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s of worker %d is %g", name, worker, want), within, func() error {
		if got, err := metric(t, job, worker, name); err != nil || got != want {
			return fmt.Errorf("it is %g, %w", got, err)
		}
		return nil
	})
}

// TestLauncherGoneLeavesNothing: a launcher that is taken away without a chance to say goodbye leaves no process.
func TestLauncherGoneLeavesNothing(t *testing.T) {
	parallel(t, 4)
	job := openMPI(newNamespace(t), 2, "mpirun", "-n", "4", "ranks", "--sleep", "600")
	job.Spec.RunPolicy.BackoffLimit = new(int32(3))
	job.Spec.RunPolicy.Suspend = new(false)
	create(t, job)
	waitFor(t, job, "it runs", runs)
	for i := range 2 {
		metricIs(t, job, i, "mpi_agent_ranks_running", 2, time.Minute)
	}
	pod := podsOf(t, job, mpi.RoleLauncher)[0]
	if err := logs.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	// The batch Job starts another launcher, whose ranks come next: they are others.
	for i := range 2 {
		eventually(t, "the launcher's ranks are gone", 20*time.Second, func() error {
			seen, err := metric(t, job, i, "mpi_agent_ranks_seen_total")
			running, also := metric(t, job, i, "mpi_agent_ranks_running")
			if err != nil || also != nil || running != 0 && (seen != 4 || running != 2) {
				return fmt.Errorf("%g run, %g were seen, %w %w", running, seen, err, also)
			}
			return nil
		})
	}
}

// TestWorkerKilledWhileRanksRun: the job fails and says whom it lost, and that its pod was deleted.
func TestWorkerKilledWhileRanksRun(t *testing.T) {
	parallel(t, 4)
	job := openMPI(newNamespace(t), 2, "mpirun", "-n", "4", "ranks", "--sleep", "600")
	create(t, job)
	waitFor(t, job, "it runs", runs)
	metricIs(t, job, 1, "mpi_agent_ranks_running", 2, time.Minute)
	if err := logs.CoreV1().Pods(job.Namespace).Delete(t.Context(), "job-worker-1", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Fatal(err)
	}
	failedWith(t, job, time.Minute)
	told := summary(t, job)
	if told.Code != agentapi.ConnectionLost || len(told.Hosts) == 0 || told.Hosts[0].Host != "job-worker-1" {
		t.Errorf("the agent says %+v", told)
	}
	reported(t, kubeflow.Kind, job.Namespace, job.Name, "its cause is the deletion", causedBy(codes.WorkerDeleted, "job-worker-1"))
}

// TestTrainJobsWorkerDeleted: a TrainJob is started again, and the record says why.
func TestTrainJobsWorkerDeleted(t *testing.T) {
	parallel(t, 4)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', ranks, --sleep, '600']}")
	createTrainJob(t, job)
	reported(t, trainjob.Kind, namespace, job.GetName(), "its ranks run", func(seen v1alpha1.JobReportStatus) error {
		if seen.Phase != v1alpha1.PhaseRunning || !strings.Contains(printed(t, job), "sum 1") {
			return fmt.Errorf("it is %s", seen.Phase)
		}
		return nil
	})
	pod := trainerPods(t, job, "node")[0]
	if err := api.Delete(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	reported(t, trainjob.Kind, namespace, job.GetName(), "it is started again", func(seen v1alpha1.JobReportStatus) error {
		if !slices.ContainsFunc(seen.Timeline, func(e v1alpha1.TimelineEntry) bool {
			return e.Event == codes.LauncherRestarted && strings.HasSuffix(e.Detail, "The previous one ended: WorkerDeleted.")
		}) {
			return fmt.Errorf("the timeline is %+v", seen.Timeline)
		}
		return nil
	})
}

// causedBy is the condition that a job failed because of a pod.
func causedBy(code codes.Code, pod string) func(v1alpha1.JobReportStatus) error {
	return func(seen v1alpha1.JobReportStatus) error {
		if seen.Failure == nil || seen.Failure.Code != code || seen.Failure.Pod != pod {
			return fmt.Errorf("the failure is %+v, with %+v", seen.Failure, seen.Findings)
		}
		return nil
	}
}

// TestStrangerIsRefused: a pod of another job in the same namespace gets nowhere, is told so, and is counted.
func TestStrangerIsRefused(t *testing.T) {
	leave := parallel(t, 4)
	namespace := newNamespace(t)
	openNetwork(t, namespace)
	job := openMPI(namespace, 2, "mpirun", "-n", "4", "ranks", "--sleep", "600")
	create(t, job)
	waitFor(t, job, "it runs", runs)
	metricIs(t, job, 0, "mpi_agent_ranks_running", 2, time.Minute)
	leave()
	stranger := agentJob(namespace, "stranger", "openmpi", kubeflow.MPIImplementationOpenMPI, 1,
		"sh", "-c", "ssh job-worker-0.job true; echo strictly $?; ssh -o StrictHostKeyChecking=no job-worker-0.job true; echo still $?; "+
			"MPI_AGENT_FOREIGN_HOSTS=true ssh -o StrictHostKeyChecking=no job-worker-0.job true; echo loosely $?")
	create(t, stranger)
	waitFor(t, stranger, "it gives up", succeeded)
	printed := output(t, stranger)
	for _, want := range []string{"is not this job's worker", "strictly 255", "still 255", "does not accept this job's key", "loosely 255"} {
		if !strings.Contains(printed, want) {
			t.Errorf("it printed %q, want %q", printed, want)
		}
	}
	if refused, err := metric(t, job, 0, "mpi_agent_connections_refused_total"); err != nil || refused == 0 {
		t.Errorf("%g connections were refused, %v", refused, err)
	}
}

// TestIdleWorkers: a job that left workers without ranks succeeds, and its report warns; whoever starts the launcher's program
// and the ranks.
func TestIdleWorkers(t *testing.T) {
	t.Parallel()
	partly := []string{"mpirun", "-n", "1", "ranks", "--sleep", "16"}
	byImage := func(job *kubeflow.MPIJob) { launcher(job).Command, launcher(job).Args = nil, launcher(job).Command }
	bySSHD := func(job *kubeflow.MPIJob) {
		job.Annotations = map[string]string{mpi.AnnotationLaunch: mpi.LaunchSSHD}
		job.Spec.SSHAuthMountPath = "/home/mpiuser/.ssh"
		for _, container := range []*corev1.Container{launcher(job), worker(job)} {
			container.Image, container.SecurityContext.RunAsUser = sampleImage("openmpi-sshd"), new(int64(1000))
		}
	}
	for name, test := range map[string]struct {
		command []string
		change  func(*kubeflow.MPIJob)
		// idle is how many workers had no rank.
		idle int
	}{
		"one of two":                       {partly, nil, 1},
		"one of two, by the image":         {partly, byImage, 1},
		"one after the other":              {[]string{"sh", "-c", "for host in 0 1; do mpirun -n 1 --host job-worker-$host.job ranks --sleep 12 || exit 1; done"}, nil, 0},
		"nothing was started":              {[]string{"sleep", "1"}, nil, 2},
		"nothing was started by the image": {[]string{"sleep", "1"}, byImage, 2},
		"all by the image":                 {[]string{"mpirun", "-n", "2", "--map-by", "node", "ranks", "--sleep", "12"}, byImage, 0},
		"beside sshd":                      {[]string{"mpirun", "--host", "localhost:2", "-n", "2", "ranks", "--sleep", "1"}, bySSHD, 2},
		"through sshd":                     {[]string{"mpirun", "-n", "4", "ranks", "--sleep", "1"}, bySSHD, 0},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t, 2)
			job := openMPI(newNamespace(t), 2, test.command...)
			// sshd's logs are read when the job has ended.
			job.Spec.RunPolicy.CleanPodPolicy = ptr.To(kubeflow.CleanPodPolicyNone)
			if test.change != nil {
				test.change(job)
			}
			create(t, job)
			waitFor(t, job, "it succeeds", succeeded)
			eventually(t, "the report has the workers", time.Minute, func() error {
				report, err := record(t, job)
				if err != nil {
					return err
				}
				found, want := report.Status.Findings, fmt.Sprintf("No rank ran on %d of the job's 2 workers", test.idle)
				if report.Status.CompletionTime == nil || test.idle == 0 && len(found) > 0 || test.idle > 0 && (len(found) != 1 || found[0].Code != codes.WorkersIdle || !strings.Contains(found[0].Summary, want)) {
					return fmt.Errorf("it has %+v", found)
				}
				return nil
			})
		})
	}
}

// TestAllRanksBesideTheLauncher: a green job whose ranks all ran on the launcher is no green job.
func TestAllRanksBesideTheLauncher(t *testing.T) {
	parallel(t, 4)
	job := openMPI(newNamespace(t), 2, "mpirun", "--host", "localhost:4", "-n", "4", "ranks", "--sleep", "1")
	create(t, job)
	failedWith(t, job, time.Minute)
	if told := summary(t, job); told.Code != agentapi.HostfileIgnored || told.RanksSeen != 4 || told.HostsReached != 0 {
		t.Errorf("the agent says %+v", told)
	}
	if printed := output(t, job); !strings.Contains(printed, "none on the job's 2 workers") {
		t.Errorf("it printed %q", printed)
	}
}

// TestHorovodStyleLaunch: tools that call ssh by its name find the agent's.
func TestHorovodStyleLaunch(t *testing.T) {
	t.Parallel()
	job := openMPI(newNamespace(t), 2, "sh", "-c",
		`for h in $(cut -d' ' -f1 /etc/mpi/hostfile); do ssh -o PasswordAuthentication=no -o StrictHostKeyChecking=no "$h" -o ConnectTimeout=60 "hostname; exit 0" || exit 1; done`)
	create(t, job)
	waitFor(t, job, "it succeeds", succeeded)
	// Who waits long for a worker says so.
	printed := regexp.MustCompile(`(?m)^mpi-agent: waiting.*\n`).ReplaceAllString(output(t, job), "")
	if hosts := strings.Fields(printed); !slices.Equal(hosts, []string{"job-worker-0", "job-worker-1"}) {
		t.Errorf("it printed %q", printed)
	}
}

// TestImagesOwnSSHD: who wants the image's sshd keeps it, by a command of the worker's or by the annotation.
func TestImagesOwnSSHD(t *testing.T) {
	parallel(t, 4)
	job := agentJob(newNamespace(t), "job", "openmpi-sshd", kubeflow.MPIImplementationOpenMPI, 2, "mpirun", "-n", "4", "pi")
	job.Annotations = map[string]string{mpi.AnnotationLaunch: mpi.LaunchSSHD}
	job.Spec.SSHAuthMountPath = "/home/mpiuser/.ssh"
	for _, container := range []*corev1.Container{launcher(job), worker(job)} {
		container.SecurityContext.RunAsUser = new(int64(1000))
	}
	create(t, job)
	waitFor(t, job, "it succeeds", succeeded)
	for _, pod := range podsOf(t, job, mpi.RoleWorker) {
		if len(pod.Spec.InitContainers) > 0 {
			t.Errorf("%s has %s", pod.Name, pod.Spec.InitContainers[0].Name)
		}
	}
}

// TestStockSSHDIsReached: the launcher's side works with an OpenSSH server that has the job's key, as images have it
// that were made for mpi-operator.
func TestStockSSHDIsReached(t *testing.T) {
	parallel(t, 4)
	job := agentJob(newNamespace(t), "job", "openmpi-sshd", kubeflow.MPIImplementationOpenMPI, 2, "mpirun", "-n", "4", "pi")
	job.Annotations = map[string]string{mpi.AnnotationLaunch: mpi.LaunchAgent}
	job.Spec.SSHAuthMountPath = "/home/mpiuser/.ssh"
	worker(job).Command = []string{"sshd-user"}
	for _, container := range []*corev1.Container{launcher(job), worker(job)} {
		container.SecurityContext.RunAsUser = new(int64(1000))
	}
	create(t, job)
	waitFor(t, job, "it succeeds", succeeded)
	if told := summary(t, job); told.HostsReached != 2 {
		t.Errorf("the agent says %+v", told)
	}
}

// TestNetworkCut: a cut of 20 s between two pods is survived, and ranks go on where they were.
func TestNetworkCut(t *testing.T) {
	if _, err := exec.LookPath("iptables"); err != nil {
		t.Skip("SKIPPED: no iptables here to cut a network with")
	}
	leave := parallel(t, 4)
	job := openMPI(newNamespace(t), 2, "mpirun", "-n", "4", "ranks", "--sleep", "40")
	create(t, job)
	waitFor(t, job, "it runs", runs)
	metricIs(t, job, 0, "mpi_agent_ranks_running", 2, time.Minute)
	leave()
	launcherIP := podsOf(t, job, mpi.RoleLauncher)[0].Status.PodIP
	for _, pod := range podsOf(t, job, mpi.RoleWorker) {
		cut(t, launcherIP, pod.Status.PodIP, 20*time.Second)
	}
	waitFor(t, job, "it succeeds all the same", succeeded)
}

// TestNetworkCutForGood: a worker that cannot be reached any more is given up after some time, and named.
func TestNetworkCutForGood(t *testing.T) {
	if _, err := exec.LookPath("iptables"); err != nil {
		t.Skip("SKIPPED: no iptables here to cut a network with")
	}
	leave := parallel(t, 4)
	job := openMPI(newNamespace(t), 2, "mpirun", "-n", "4", "ranks", "--sleep", "600")
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{mpi.LabelJob: "job", mpi.LabelRole: string(mpi.RoleWorker)}},
	}}
	create(t, job)
	waitFor(t, job, "it runs", runs)
	metricIs(t, job, 0, "mpi_agent_ranks_running", 2, time.Minute)
	metricIs(t, job, 1, "mpi_agent_ranks_running", 2, time.Minute)
	leave()
	from := podsOf(t, job, mpi.RoleLauncher)[0]
	lost := ""
	for _, pod := range podsOf(t, job, mpi.RoleWorker) {
		if pod.Spec.NodeName != from.Spec.NodeName {
			lost = pod.Name
			cut(t, from.Status.PodIP, pod.Status.PodIP, 4*time.Minute)
		}
	}
	if lost == "" {
		t.Skip("SKIPPED: one node alone has no network to cut")
	}
	const silence = 75 * time.Second // after which the agent gives up a connection
	failedAfter(t, job, silence, time.Minute)
	if told := summary(t, job); told.Code != agentapi.ConnectionLost || len(told.Hosts) == 0 || told.Hosts[0].Host != lost {
		t.Errorf("the agent says %+v", told)
	}
}

// cutMark is on the rules of cut, by which those of a run that was killed are found: later pods get the addresses.
const cutMark = "mpijob-e2e"

// cut drops all packets between two addresses for a while. Those between pods of one node pass their bridge, not
// iptables; the test wants at least one worker on another node.
func cut(t *testing.T, a, b string, how time.Duration) {
	t.Helper()
	for _, way := range [][2]string{{a, b}, {b, a}} {
		rule := []string{"FORWARD", "-s", way[0], "-d", way[1], "-m", "comment", "--comment", cutMark, "-j", "DROP"}
		if out, err := exec.CommandContext(t.Context(), "iptables", append([]string{"-I"}, rule...)...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED: iptables cannot be used here: %v: %s", err, out)
		}
		// It has to come off with the test at the latest: addresses are given to other pods.
		undo := sync.OnceFunc(func() { _ = exec.Command("iptables", append([]string{"-D"}, rule...)...).Run() }) //nolint:noctx // the test's context may have ended
		time.AfterFunc(how, undo)
		t.Cleanup(undo)
	}
}

// mend removes the rules of cut that runs have left which were killed.
func mend() {
	rules, err := exec.Command("iptables", "-S", "FORWARD").Output() //nolint:noctx // it ends by itself
	if err != nil {
		return
	}
	for line := range strings.Lines(string(rules)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && strings.Contains(line, cutMark) {
			fields[0] = "-D"
			_ = exec.Command("iptables", fields...).Run() //nolint:noctx // it ends by itself
		}
	}
}
