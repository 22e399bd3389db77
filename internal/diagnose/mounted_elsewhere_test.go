package diagnose_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestMountedInOtherPods: a file on a volume that the pod of the failed rank does not mount is not looked for among the keys of its ConfigMap.
func TestMountedInOtherPods(t *testing.T) {
	const log = "FileNotFoundError: [Errno 2] No such file or directory: '/code/train.py'"
	mount := func(template *corev1.PodTemplateSpec) {
		template.Spec.Volumes = []corev1.Volume{{Name: "code", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "code"}}}}}
		template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "code", MountPath: "/code"}}
	}
	onLauncher := func(s *scene) { s.job.Launcher.RunsRanks = true }
	inWorkers := func(s *scene) { mount(&s.job.Workers.Template) }
	inLauncher := func(s *scene) { mount(&s.job.Launcher.Template) }
	for name, test := range map[string]struct {
		rank   int32
		change []func(*scene)
		want   string
	}{
		"only in the nodes, rank 0 in the launcher":   {0, []func(*scene){trainJob, onLauncher, inWorkers}, "in the pod template of the replicated job launcher as well: only that of the replicated job node does, and rank 0 ran"},
		"only in the launcher, a rank of a node":      {2, []func(*scene){trainJob, onLauncher, inLauncher}, "in the pod template of the replicated job node as well: only that of the replicated job launcher does, and rank 2 ran"},
		"only in the workers, rank 0 in the launcher": {0, []func(*scene){onLauncher, inWorkers}, "in the pod template of the launcher as well: only that of the worker does, and rank 0 ran"},
		"only in the launcher of an MPIJob":           {1, []func(*scene){inLauncher}, "Mount volume code in the workers as well: /code/train.py is on it"},
		"in both":                                     {0, []func(*scene){trainJob, onLauncher, inLauncher, inWorkers}, "Check the keys of ConfigMap code, which are the files in /code: the pod had no train.py there"},
		"in the workers, where the rank ran":          {3, []func(*scene){onLauncher, inWorkers}, "Check the keys of ConfigMap code"},
	} {
		s := failed(1, log).with(test.change...).with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(1)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, RanksSeen: 8,
			Ranks: []agentapi.RankEnd{{Rank: test.rank, ExitCode: 1, Program: "python3"}},
		}, 1))
		found := s.findings()
		if len(found) == 0 || !slices.ContainsFunc(found[0].Remedies, func(r v1alpha1.Remedy) bool { return strings.Contains(r.Text, test.want) }) {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// TestVariableOfOtherPods: a variable that only the nodes of a TrainJob have is missing in the rank of the launcher's pod.
func TestVariableOfOtherPods(t *testing.T) {
	s := failed(1, "KeyError: 'DATA_SET'", func(j *mpi.Job) {
		j.Launcher.RunsRanks = true
		j.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "DATA_SET", Value: "a"}}
	}).with(trainJob, launcherLeft(agentapi.Summary{
		Code: agentapi.RankFailed, ExitCode: new(int32(1)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, RanksSeen: 8,
		Ranks: []agentapi.RankEnd{{Rank: 0, ExitCode: 1, Program: "python3"}},
	}, 1))
	found := s.findings()
	if len(found) == 0 || !strings.HasPrefix(found[0].Remedies[0].Text, "Set DATA_SET in the launcher as well") {
		t.Errorf("found %+v", found)
	}
}
