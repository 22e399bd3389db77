package diagnose_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestWarningOfMemory: a warning about an amount of memory with which no container starts is the cause of what happened to the pods that have it
// as their limit, and to no others.
func TestWarningOfMemory(t *testing.T) {
	t.Parallel()
	memory := func(limit, request string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)},
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(request)},
		}
	}
	killed := func(launchers, workers corev1.ResourceRequirements) scene {
		return failed(1, "ORTE has lost communication with a remote daemon.", sshd, func(j *mpi.Job) {
			j.Launcher.Template.Spec.Containers[0].Resources, j.Workers.Template.Spec.Containers[0].Resources = launchers, workers
		}).with(worker(1, corev1.PodFailed, mpitest.Exited(137, "OOMKilled")))
	}
	large := memory("64Gi", "64Gi")
	ofTrainer := func(s *scene) {
		trainJob(s)
		s.job.Fields.LauncherTemplate, s.job.Fields.WorkerTemplate = field.NewPath("spec", "trainer"), field.NewPath("spec", "trainer")
	}
	for name, test := range map[string]struct {
		in   scene
		want string
	}{
		"a limit of the workers":            {killed(large, memory("512m", "512m")), "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].resources.limits[memory]: 512m is"},
		"a limit of the workers, TrainJob":  {killed(large, memory("512m", "512m")).with(ofTrainer), "spec.trainer.resourcesPerNode.limits[memory]: 512m is"},
		"a request of the workers":          {killed(large, memory("64Gi", "512m")), ""},
		"a limit of the launcher":           {killed(memory("512m", "512m"), large), ""},
		"a limit of the launcher, TrainJob": {killed(memory("512m", "512m"), large).with(ofTrainer), ""},
	} {
		found := test.in.findings()
		if len(found) == 0 || found[0].Code != codes.OutOfMemory {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		warns := strings.Contains(found[0].Evidence[0], "Warning at the job's creation: ")
		if warns != (test.want != "") || !strings.Contains(found[0].Evidence[0], test.want) || warns == strings.HasPrefix(found[0].Remedies[0].Text, "Increase the memory limit") {
			t.Errorf("%s: found %+v", name, found[0])
		}
		sound(t, found[0])
	}
}

// TestHostsOfTrainJob: the hosts of a TrainJob are those of JobSet's pods.
func TestHostsOfTrainJob(t *testing.T) {
	t.Parallel()
	found := failed(1, "[1,1]<stderr>:"+strings.ReplaceAll(raised(`master = socket.gethostbyname("pi-worker-0.pi")`, "socket.gaierror: [Errno -2] Name or service not known"), "\n", "\n[1,1]<stderr>:"), func(j *mpi.Job) {
		j.Names, j.Launcher.RunsRanks = trainjob.Convert(trainjob.TrainJob{}, trainjob.Runtime{}).Names, true
	}).with(trainJob).findings()
	if len(found) == 0 || !strings.Contains(found[0].Remedies[0].Text, "The hosts of the job are pi-launcher-0-0.pi, pi-node-0-0.pi, pi-node-0-1.pi, ...") {
		t.Errorf("found %+v", found)
	}
}
