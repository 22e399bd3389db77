package diagnose_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

const (
	tooManyRanks = "There are not enough slots available in the system to satisfy the 16\nslots that were requested by the application:"
	relativeHost = "A relative host was specified, but no prior allocation has been made.\nThus, there is no way to determine the proper host to be used.\n\nhostfile entry: +n0"
	unknownHosts = "At least one of the requested hosts is not included in the current allocation.\n\nMissing requested host: node7"
	noInterface  = "WARNING: An invalid value was given for btl_tcp_if_include.  This\nvalue will be ignored.\n\n  Local host: pi-worker-0\n  Value:      eth7\n  Message:    Unknown interface name\n" +
		"At least one pair of MPI processes are unable to reach each other for\nMPI communications."
)

// TestChangedCommands: a remedy that removes or replaces options of MPI's launcher has the whole command as a change, unless it is unclear which
// words these are.
func TestChangedCommands(t *testing.T) {
	t.Parallel()
	words := func(words ...string) []string { return words }
	shell := func(script string) []string { return []string{"bash", "-c", script} }
	for name, test := range map[string]struct {
		log           string
		command, want []string
		change        func(*scene)
	}{
		"ranks":                       {log: tooManyRanks, command: words("mpirun", "-n", "16", "train", "-n", "16"), want: nil},
		"ranks of the launcher":       {log: tooManyRanks, command: words("/usr/bin/mpirun", "--tag-output", "-np", "16", "train", "--epochs", "2"), want: words("/usr/bin/mpirun", "--tag-output", "-np", "8", "train", "--epochs", "2")},
		"ranks in a script":           {log: tooManyRanks, command: shell("cd /data && mpirun -np 16 train | tee log"), want: shell("cd /data && mpirun -np 8 train | tee log")},
		"ranks of two programs":       {log: tooManyRanks, command: words("mpirun", "-n", "1", "a", ":", "-n", "15", "b"), want: nil},
		"ranks of the image":          {log: tooManyRanks, want: nil},
		"ranks without a number":      {log: tooManyRanks, command: words("mpirun", "train"), want: nil},
		"a secret":                    {log: tooManyRanks, command: words("mpirun", "-n", "16", "train", "--token", "SECRET"), change: hidesSecrets, want: nil},
		"a long command":              {log: tooManyRanks, command: words("mpirun", "-n", "16", "train", strings.Repeat("x", 600)), want: nil},
		"hosts":                       {log: ruler + unknownHosts + ruler, command: words("mpirun", "--host", "node7:4,node8:4", "-n", "4", "train"), want: words("mpirun", "-n", "4", "train")},
		"hosts with =":                {log: ruler + unknownHosts + ruler, command: shell("mpirun -n 4 --hostfile=/data/hosts -H node7 train"), want: shell("mpirun -n 4 train")},
		"hosts of the program":        {log: ruler + unknownHosts + ruler, command: words("mpirun", "-n", "4", "train", "--host", "node7"), want: nil},
		"hosts of both":               {log: ruler + unknownHosts + ruler, command: words("mpirun", "--host", "node7", "train", "--host", "node7"), want: nil},
		"hosts of a substitution":     {log: ruler + unknownHosts + ruler, command: shell("mpirun --host $(paste -sd, h.txt) -np 4 train"), want: nil},
		"hosts in quotation marks":    {log: ruler + unknownHosts + ruler, command: shell(`mpirun --hostfile "$D/my hosts" -np 4 train`), want: nil},
		"hosts on the next line":      {log: ruler + unknownHosts + ruler, command: shell("mpirun --hostfile \\\n hosts.txt -np 4 train"), want: nil},
		"hosts after a line's end":    {log: ruler + unknownHosts + ruler, command: shell("mpirun -np 4 \\\n--host node7 \\\ntrain"), want: nil},
		"hosts on a line":             {log: ruler + unknownHosts + ruler, command: shell("mpirun -np 4 \\\n  --host node7 \\\n  train"), want: shell(`mpirun -np 4 \\\n  \\\n  train`)},
		"hosts in a file with spaces": {log: ruler + unknownHosts + ruler, command: words("mpirun", "--hostfile", "my hosts", "train"), want: nil},
		"a rankfile with places":      {log: ruler + relativeHost + ruler, command: words("mpirun", "-n", "2", "--rankfile", "/code/ranks.txt", "pi"), want: words("mpirun", "-n", "2", "pi")},
		"a hostfile with places":      {log: ruler + relativeHost + ruler, command: words("mpirun", "-n", "2", "--hostfile", "/code/hosts", "pi"), want: words("mpirun", "-n", "2", "pi")},
		"a place beyond the hosts":    {log: ruler + "Rankfile claimed host +n4 by index that is bigger than number of allocated hosts." + ruler, command: words("mpirun", "-rf", "/code/ranks.txt", "pi"), want: words("mpirun", "pi")},
		"ranks of a variable":         {log: tooManyRanks, command: shell("mpirun -np 1$N train"), want: nil},
		"ranks in quotation marks":    {log: tooManyRanks, command: shell("bash -c 'mpirun -np 16' train"), want: nil},
		"an interface":                {log: noInterface, command: words("mpirun", "--mca", "btl_tcp_if_include", "eth7", "-n", "4", "train"), want: words("mpirun", "-n", "4", "train")},
		"python":                      {log: "/bin/sh: 1: python: not found", command: shell("python prepare.py && mpirun train"), want: shell("python3 prepare.py && mpirun train")},
		"python as two words":         {log: "/bin/sh: 1: python: not found", command: shell("python prepare.py && mpirun python train.py"), want: nil},
		"a program that is a path":    {log: "/bin/sh: 1: python: not found", command: shell("/opt/python prepare.py"), want: nil},
		"a time limit":                {log: "[mpiexec@pi-launcher] APPLICATION TIMED OUT, TIMEOUT = 30s", command: words("mpiexec", "-timeout", "30", "train"), change: timedOut, want: words("mpiexec", "train")},
		"a launcher with wrong name":  {command: words("mpirum", "-n", "4", "train"), change: misses("mpirum"), want: words("mpirun", "-n", "4", "train")},
		"a launcher of another kind":  {command: words("srunner", "-n", "4", "train"), change: misses("srunner"), want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := failed(1, test.log, launcherRuns(test.command...))
			if test.change != nil {
				s = s.with(test.change)
			}
			found := s.findings()
			if len(found) == 0 {
				t.Fatal("no finding")
			}
			remedy := found[0].Remedies[0]
			var want []v1alpha1.FieldChange
			if test.want != nil {
				want = []v1alpha1.FieldChange{{Field: "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].command", Value: `["` + strings.Join(test.want, `", "`) + `"]`}}
			}
			if diff := cmp.Diff(want, remedy.Changes); diff != "" || remedy.Rerun != (want != nil) {
				t.Errorf("%s: %s (-want +got)\n%s", found[0].Code, remedy.Text, diff)
			}
			for _, wrong := range carriedOut(s, found) {
				t.Error(wrong)
			}
		})
	}
}

func hidesSecrets(s *scene) {
	s.evidence.Mask = func(text string) string { return strings.ReplaceAll(text, "SECRET", "***") }
}

func timedOut(s *scene) {
	s.job.Implementation = mpi.MPICH
	launcherLeft(agentapi.Summary{
		Code: agentapi.RankFailed, ExitCode: new(int32(255)), HostsExpected: 4, HostsReached: 4, RanksSeen: 8, Launches: 1, Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 137, Signal: 9}},
	}, 255)(s)
}

// misses has the launcher's agent report that its image lacks the command.
func misses(command string) func(*scene) {
	return launcherLeft(agentapi.Summary{Code: agentapi.ProgramMissing, Message: `The launcher's command "` + command + `" is not in its image: executable file not found in $PATH.`, ExitCode: new(int32(127))}, 127)
}

// TestChangedFields: remedies that remove or increase a field change it, where it is clear which one.
func TestChangedFields(t *testing.T) {
	t.Parallel()
	const pod = "spec.mpiReplicaSpecs[Worker].template.spec."
	probed := func(s *scene) {
		s.job.Workers.Template.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
	}
	twice := func(s *scene) {
		probed(s)
		s.job.Workers.Template.Spec.Containers = append(s.job.Workers.Template.Spec.Containers, *s.job.Workers.Template.Spec.Containers[0].DeepCopy())
		s.job.Workers.Template.Spec.Containers[1].Name = "other"
	}
	probeFailed := func(change func(*scene)) scene {
		return running(4).with(change, worker(0, corev1.PodFailed, mpitest.Exited(137, "Error")), event("Pod", "pi-worker-0", "Killing", "Container main failed liveness probe"))
	}
	ended := func(change func(*mpi.Job)) scene {
		return running(4, change).with(worker(0, corev1.PodSucceeded, endedWell(time.Minute)))
	}
	throttled := func(limit string) scene {
		return failed(0, "done", func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse(limit)
		}).with(launcherLeft(agentapi.Summary{
			ExitCode: new(int32(0)), HostsExpected: 4, SlotsExpected: 8, HostsReached: 4, SlotsFound: 8, RanksSeen: 8, CPUSeconds: 60, ThrottledSeconds: 40,
		}, 0), succeededLauncher)
	}
	late := failed(1, "epoch 3").with(func(s *scene) {
		s.job.Lifecycle.Deadline = new(int64(600))
		s.seen.Launcher.Status.Conditions[0].Reason = batchv1.JobReasonDeadlineExceeded
		s.seen.LauncherPods = nil
	})
	const (
		context   = "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].securityContext"
		forbidden = `pods "pi-worker-0" is forbidden: violates PodSecurity "restricted:latest": `
	)
	privileged := func(message string) scene {
		return running(2, func(j *mpi.Job) {
			for _, template := range []*corev1.PodTemplateSpec{&j.Launcher.Template, &j.Workers.Template} {
				template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
			}
			j.Workers.Template.Spec.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_PTRACE", "NET_BIND_SERVICE"}
		}).with(refusal("Pod", "pi-worker-0", forbidden+message))
	}
	atBaseline := func(message string, change ...func(*corev1.SecurityContext)) scene {
		return running(2, func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true), Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_BIND_SERVICE"}}}
			for _, c := range change {
				c(j.Workers.Template.Spec.Containers[0].SecurityContext)
			}
		}).with(refusal("Pod", "pi-worker-0", strings.Replace(forbidden, "restricted", "baseline", 1)+message))
	}
	unconfined := func(c *corev1.SecurityContext) {
		c.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	}
	for name, test := range map[string]struct {
		in   scene
		code codes.Code
		want []v1alpha1.FieldChange
	}{
		"a probe":           {probeFailed(probed), codes.ProbeFailed, changes(pod+"containers[0].livenessProbe", "null")},
		"two probes":        {probeFailed(twice), codes.ProbeFailed, nil},
		"a probe of others": {probeFailed(func(*scene) {}), codes.ProbeFailed, nil},
		"a command":         {ended(func(j *mpi.Job) { j.Workers.Template.Spec.Containers[0].Command = []string{"date"} }), codes.WorkerEnded, changes(pod+"containers[0].command", "null", pod+"containers[0].args", "null")},
		"a command of a TrainJob": {ended(func(j *mpi.Job) {
			makeTrainJob(j)
			j.Workers.Template.Spec.Containers[0].Command = []string{"date"}
		}), codes.WorkerEnded, nil},
		"no command":                        {ended(func(*mpi.Job) {}), codes.WorkerEnded, nil},
		"a CPU limit":                       {throttled("500m"), codes.CPUThrottled, changes(pod+"containers[0].resources.limits.cpu", `"2"`)},
		"a CPU limit for as many ranks":     {throttled("2"), codes.CPUThrottled, nil},
		"a capability":                      {privileged(`unrestricted capabilities (container "main" must not include "SYS_PTRACE" in securityContext.capabilities.add)`), codes.PodSecurityDenied, changes(context, `{"capabilities":{"add":["NET_BIND_SERVICE"],"drop":["ALL"]},"runAsNonRoot":true,"allowPrivilegeEscalation":false,"seccompProfile":{"type":"RuntimeDefault"}}`)},
		"a field of a security context":     {privileged(`privileged (container "main" must not set securityContext.privileged=true)`), codes.PodSecurityDenied, changes(context, `{"capabilities":{"drop":["ALL"]},"runAsNonRoot":true,"allowPrivilegeEscalation":false,"seccompProfile":{"type":"RuntimeDefault"}}`)},
		"a security context and a volume":   {privileged(`privileged, hostPath volumes (volume "data")`), codes.PodSecurityDenied, nil},
		"the level baseline":                {atBaseline(`privileged (container "main" must not set securityContext.privileged=true)`), codes.PodSecurityDenied, changes(context, `{"capabilities":{"add":["NET_BIND_SERVICE"]}}`)},
		"the level baseline, of two":        {atBaseline(`privileged (container "main" must not set securityContext.privileged=true), seccompProfile (container "main" must not set securityContext.seccompProfile.type to "Unconfined")`, unconfined), codes.PodSecurityDenied, changes(context, `{"capabilities":{"add":["NET_BIND_SERVICE"]}}`)},
		"the level baseline, of the pod":    {atBaseline(`privileged (container "main" must not set securityContext.privileged=true), seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")`), codes.PodSecurityDenied, nil},
		"a user of the pod":                 {privileged(`runAsUser=0 (pod must not set runAsUser=0)`), codes.PodSecurityDenied, nil},
		"a user of the pod and a container": {privileged(`runAsUser=0 (pod and container "main" must not set runAsUser=0)`), codes.PodSecurityDenied, nil},
		"a user of a container":             {privileged(`runAsUser=0 (container "main" must not set runAsUser=0)`), codes.PodSecurityDenied, changes(context, `{"capabilities":{"drop":["ALL"]},"runAsNonRoot":true,"allowPrivilegeEscalation":false,"seccompProfile":{"type":"RuntimeDefault"}}`)},
		"a user of the launcher's pod": {privileged(`runAsUser=0 (container "main" must not set runAsUser=0)`).with(func(s *scene) {
			s.job.Launcher.Template.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(0))}
		}), codes.PodSecurityDenied, nil},
		"a profile of an annotation": {privileged(`seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")`), codes.PodSecurityDenied, nil},
		"an interface of the environment": {failed(14, "[pi-worker-1:00031] *** MPI_ERR_INTERN: internal error").with(launcherLeft(agentapi.Summary{
			Code: agentapi.RankFailed, ExitCode: new(int32(14)), Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 14, Program: "ranks"}},
			NoInterface: &agentapi.InterfaceSetting{Name: "btl_tcp_if_include", Value: "ib0", Has: []string{"lo", "eth0"}},
		}, 14), func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OMPI_MCA_btl_tcp_if_include", Value: "ib0"}}
		}), codes.NoTransport, changes("env.OMPI_MCA_btl_tcp_if_include", "")},
		"a deadline": {late, codes.DeadlineExceeded, changes("spec.runPolicy.activeDeadlineSeconds", "1200")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := test.in.findings()
			at := slices.IndexFunc(found, func(f v1alpha1.Finding) bool { return f.Code == test.code })
			if at < 0 {
				t.Fatalf("no finding %s: %+v", test.code, found)
			}
			if diff := cmp.Diff(test.want, found[at].Remedies[0].Changes); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, wrong := range carriedOut(test.in, found) {
				t.Error(wrong)
			}
		})
	}
}

// changes returns changes of fields, from pairs of a field and its value.
func changes(pairs ...string) (all []v1alpha1.FieldChange) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, v1alpha1.FieldChange{Field: pairs[i], Value: pairs[i+1]})
	}
	return all
}
