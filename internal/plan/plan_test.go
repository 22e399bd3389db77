package plan_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// isolating are the settings of a cluster in which jobs are isolated, as they are by default.
var isolating = plan.Settings{NetworkPolicies: true, OperatorNamespace: "mpijob-system"}

// TestPlanObjects shows in golden files all that is made for jobs of which nothing exists.
func TestPlanObjects(t *testing.T) {
	tests := map[string]struct {
		job      mpi.Job
		settings plan.Settings
	}{
		"openmpi": {job: mpitest.Job(2)},
		"intel": {
			job:      mpitest.Job(2, func(j *mpi.Job) { j.Implementation, j.SlotsPerWorker = mpi.IntelMPI, 4 }),
			settings: plan.Settings{ClusterDomain: "corp.example"},
		},
		"mpich-launcher-runs-ranks": {job: mpitest.Job(1, func(j *mpi.Job) {
			j.Implementation, j.Launcher.RunsRanks, j.Launcher.RestartPolicy = mpi.MPICH, true, corev1.RestartPolicyNever
		})},
		"what-users-write-stands": {job: mpitest.Job(1, func(j *mpi.Job) {
			j.SSHMountPath = "/home/mpiuser/.ssh"
			j.Lifecycle.Deadline, j.Lifecycle.BackoffLimit = new(int64(60)), new(int32(0))
			j.Launcher.Template.Labels = map[string]string{"team": "a", mpi.LabelJob: "other"}
			j.Launcher.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OMPI_MCA_plm_rsh_args", Value: "-q"}, {Name: "NVIDIA_VISIBLE_DEVICES", Value: "all"}}
			j.Workers.Template.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": "rdma"}
			j.Workers.Template.Spec.HostNetwork = true
			j.Workers.Template.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: []string{"corp.example"}}
			j.Workers.Template.Spec.Containers[0].Command = []string{"sshd-user"}
		})},
		"agent": {job: mpitest.Job(2, func(j *mpi.Job) {
			j.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun"}
			j.Launcher.Template.Spec.Containers[0].Args = []string{"-n", "2", "pi"}
			worker := &j.Workers.Template.Spec.Containers[0]
			worker.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"), "nvidia.com/gpu": resource.MustParse("1")}
			worker.SecurityContext = &corev1.SecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1000650000)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		}), settings: plan.Settings{AgentImage: "agent:1"}},
		"without-rdma": {job: mpitest.Job(1, func(j *mpi.Job) {
			for _, template := range []*corev1.PodTemplateSpec{&j.Launcher.Template, &j.Workers.Template} {
				rdma := corev1.ResourceList{"cpu": resource.MustParse("1"), "rdma/hca": resource.MustParse("1")}
				template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: rdma}
			}
			*j = j.WithoutRDMA()
		})},
		"in-one-zone": {job: mpitest.Job(1, func(j *mpi.Job) {
			j.Topology = mpi.Topology{Key: corev1.LabelTopologyZone, Required: true}
		})},
		"connections-and-rdma": {job: mpitest.Job(1, func(j *mpi.Job) {
			j.Connections = []string{"training-data", "results"}
			for _, template := range []*corev1.PodTemplateSpec{&j.Launcher.Template, &j.Workers.Template} {
				template.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": "fabric/rdma"}
				main := &template.Spec.Containers[0]
				main.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "mine"}}}}
				main.Resources.Limits = corev1.ResourceList{"rdma/hca": resource.MustParse("1")}
				main.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"IPC_LOCK"}}}
			}
		}), settings: plan.Settings{AgentImage: "agent:1"}},
		"agent-beside-own-command": {job: mpitest.Job(1, func(j *mpi.Job) {
			j.Launch = mpi.LaunchAgent
			j.Workers.Template.Spec.InitContainers = []corev1.Container{{Name: "data", Image: "data"}}
			j.Workers.Template.Spec.Containers[0].Command = []string{"sh", "-c", "prepare; exec /opt/mpi-agent/mpi-agent serve"}
		}), settings: plan.Settings{AgentImage: "agent:1"}},
		"agent-by-image-volume": {
			job:      mpitest.Job(1, func(j *mpi.Job) { j.Launch = mpi.LaunchAgent }),
			settings: plan.Settings{AgentImage: "agent:1", Delivery: plan.ImageVolume},
		},
		"agent-not-wanted": {
			job:      mpitest.Job(1, func(j *mpi.Job) { j.Launch = mpi.LaunchSSHD }),
			settings: plan.Settings{AgentImage: "agent:1"},
		},
		"launcher-alone": {job: mpitest.Job(0)},
		"suspended":      {job: mpitest.Job(2, func(j *mpi.Job) { j.Lifecycle.Suspended = true })},
		"launcher-waits": {job: mpitest.Job(1, func(j *mpi.Job) { j.Launcher.AfterWorkers = true })},
		"being-deleted":  {job: mpitest.Job(1, func(j *mpi.Job) { j.Lifecycle.Deleting = true })},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			seen := jobstate.Observed{Now: mpitest.Now}
			test.settings.NetworkPolicies, test.settings.OperatorNamespace = isolating.NetworkPolicies, isolating.OperatorNamespace
			mpitest.Golden(t, name, plan.For(test.job, seen, jobstate.Judge(test.job, seen), test.settings))
		})
	}
}

// TestReleasesDeletedJobs: the pods of a job that is being deleted are stopped, unless they are to stay or are not its own.
func TestReleasesDeletedJobs(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*mpi.Job)
		want   string
	}{
		"kept by a finalizer":     {func(*mpi.Job) {}, "Pod/pi-worker-0 Pod/pi-worker-1 Job/pi-launcher"},
		"its objects are to stay": {func(j *mpi.Job) { j.Lifecycle.Orphaning = true }, ""},
		"others run it":           {func(j *mpi.Job) { j.External = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(2, func(j *mpi.Job) { j.Lifecycle.Deleting = true }, test.change)
			seen := jobstate.Observed{Now: mpitest.Now, Launcher: mpitest.Launcher(job), Workers: mpitest.Workers(job, corev1.PodRunning)}
			got := plan.For(job, seen, jobstate.Outcome{}, isolating)
			var doomed []string
			for _, ref := range got.Delete {
				if ref.UID == "" {
					t.Errorf("%s is deleted whatever its UID", ref.Name)
				}
				doomed = append(doomed, ref.Kind+"/"+ref.Name)
			}
			if have := strings.Join(doomed, " "); have != test.want || len(got.Base)+len(got.Pods) > 0 {
				t.Errorf("it deletes %q, want %q, and writes %d objects", have, test.want, len(got.Base)+len(got.Pods))
			}
		})
	}
}

// settled is a job of which all exists as it should.
func settled(t *testing.T, job mpi.Job) jobstate.Observed {
	t.Helper()
	seen := jobstate.Observed{Now: mpitest.Now, Workers: mpitest.Workers(job, corev1.PodRunning)}
	for _, object := range plan.For(job, seen, jobstate.Judge(job, seen), isolating).Base {
		object.SetUID("uid-base")
		switch object := object.(type) {
		case *corev1.Service:
			seen.Service = object
		case *corev1.ConfigMap:
			seen.Config = object
		case *networkingv1.NetworkPolicy:
			seen.Isolation = object
		}
	}
	seen.Secret = &metav1.PartialObjectMetadata{}
	seen.Launcher = mpitest.Launcher(job)
	seen.Launcher.Annotations = launcherAnnotations(job, seen)
	seen.LauncherPods = []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning)}
	return seen
}

// launcherAnnotations are those that the operator gives the launcher of a job.
func launcherAnnotations(job mpi.Job, seen jobstate.Observed) map[string]string {
	seen.Launcher, seen.LauncherPods = nil, nil
	for _, object := range plan.For(job, seen, jobstate.Judge(job, seen), isolating).Pods {
		if launcher, is := object.(*batchv1.Job); is {
			return launcher.Annotations
		}
	}
	return nil
}

func names(p plan.Plan) map[string][]string {
	all := map[string][]string{}
	for _, object := range append(p.Base, p.Pods...) {
		verb := "create"
		if object.GetUID() != "" {
			verb = "mend"
		}
		all[verb] = append(all[verb], object.GetObjectKind().GroupVersionKind().Kind+"/"+object.GetName())
	}
	for _, ref := range p.Delete {
		all["delete"] = append(all["delete"], ref.Kind+"/"+ref.Name+"/"+string(ref.UID))
	}
	return all
}

func TestPlanChanges(t *testing.T) {
	tests := map[string]struct {
		workers int32
		job     func(*mpi.Job)
		seen    func(*mpi.Job, *jobstate.Observed)
		want    map[string][]string
	}{
		"all is as it should be": {workers: 2, want: map[string][]string{}},
		"everything is gone": {
			workers: 2, seen: func(_ *mpi.Job, o *jobstate.Observed) { *o = jobstate.Observed{} },
			want: map[string][]string{"create": {"Service/pi", "ConfigMap/pi-config", "Secret/pi-ssh", "NetworkPolicy/pi", "Job/pi-launcher", "Pod/pi-worker-0", "Pod/pi-worker-1"}},
		},
		"a worker is gone": {
			workers: 3, seen: func(_ *mpi.Job, o *jobstate.Observed) { o.Workers = append(o.Workers[:1:1], o.Workers[2]) },
			want: map[string][]string{"create": {"Pod/pi-worker-1"}, "mend": {"ConfigMap/pi-config"}},
		},
		"an earlier job's pods are there: only what is no pod is made": {
			workers: 1, seen: func(_ *mpi.Job, o *jobstate.Observed) {
				*o = jobstate.Observed{Earlier: []*corev1.Pod{mpitest.LauncherPod(mpitest.Job(1), 0, corev1.PodRunning)}}
			},
			want: map[string][]string{"create": {"Service/pi", "ConfigMap/pi-config", "Secret/pi-ssh", "NetworkPolicy/pi"}},
		},
		"resumed while the workers are on their way out": {
			workers: 1, seen: func(_ *mpi.Job, o *jobstate.Observed) {
				o.Launcher.Spec.Suspend = new(true)
				mpitest.Leaving(o.Workers[0].Pod)
			},
			want: map[string][]string{"mend": {"ConfigMap/pi-config"}},
		},
		"a worker is on its way out": {
			workers: 2, seen: func(_ *mpi.Job, o *jobstate.Observed) { mpitest.Leaving(o.Workers[1].Pod) },
			want: map[string][]string{"mend": {"ConfigMap/pi-config"}},
		},
		"a worker failed for good": {
			workers: 2, seen: func(_ *mpi.Job, o *jobstate.Observed) { o.Workers[1].Pod.Status.Phase = corev1.PodFailed },
			want: map[string][]string{"mend": {"ConfigMap/pi-config"}},
		},
		"a worker failed and is replaced": {
			workers: 2, job: func(j *mpi.Job) { j.Workers.RestartPolicy = corev1.RestartPolicyOnFailure },
			seen: func(_ *mpi.Job, o *jobstate.Observed) { o.Workers[1].Pod.Status.Phase = corev1.PodFailed },
			want: map[string][]string{"mend": {"ConfigMap/pi-config"}, "delete": {"Pod/pi-worker-1/uid-pi-worker-1"}},
		},
		"a worker failed because its node shut down: it is replaced, and the attempt does not count": {
			workers: 2, seen: func(_ *mpi.Job, o *jobstate.Observed) {
				o.Workers[1].Pod.Status = corev1.PodStatus{
					Phase: corev1.PodFailed, Reason: "Terminated",
					Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet, LastTransitionTime: metav1.NewTime(mpitest.Now)}},
				}
			},
			want: map[string][]string{"mend": {"ConfigMap/pi-config", "Job/pi-launcher"}, "delete": {"Pod/pi-worker-1/uid-pi-worker-1"}},
		},
		"a worker is preempted: the attempt does not count": {
			workers: 2, seen: func(_ *mpi.Job, o *jobstate.Observed) {
				o.Workers[1].Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler, LastTransitionTime: metav1.NewTime(mpitest.Now)}}
			},
			want: map[string][]string{"mend": {"ConfigMap/pi-config", "Job/pi-launcher"}},
		},
		"the launcher's Job has failed although the attempt does not count: that is recorded": {
			workers: 1, job: drained, seen: failedByDrain("1", ""), want: map[string][]string{"mend": {"ConfigMap/pi-config"}},
		},
		"the launcher's Job has failed although the attempt does not count, which is recorded: it is deleted": {
			workers: 1, job: drained, seen: failedByDrain("1", "1"), want: map[string][]string{"delete": {"Job/pi-launcher/uid-launcher"}},
		},
		"it is being deleted": {
			workers: 1, job: drained, seen: func(j *mpi.Job, o *jobstate.Observed) {
				failedByDrain("1", "1")(j, o)
				o.Launcher.DeletionTimestamp = &metav1.Time{Time: mpitest.Now}
			}, want: map[string][]string{},
		},
		"suspended after the launcher's Job has failed although the attempt does not count: it is deleted": {
			workers: 1, job: func(j *mpi.Job) { drained(j); j.Lifecycle.Suspended = true }, seen: failedByDrain("1", "1"),
			want: map[string][]string{"delete": {"Job/pi-launcher/uid-launcher", "Pod/pi-worker-0/uid-pi-worker-0"}},
		},
		"the launcher's Job is gone after that: the next one is created": {
			workers: 1, job: drained, seen: func(j *mpi.Job, o *jobstate.Observed) {
				failedByDrain("1", "1")(j, o)
				o.Launcher = nil
			}, want: map[string][]string{"create": {"Job/pi-launcher"}},
		},
		"fewer workers are wanted: the survivors stay": {
			workers: 4, job: func(j *mpi.Job) { j.Workers.Count = 2 },
			want: map[string][]string{"mend": {"ConfigMap/pi-config"}, "delete": {"Pod/pi-worker-2/uid-pi-worker-2", "Pod/pi-worker-3/uid-pi-worker-3"}},
		},
		"more workers are wanted": {
			workers: 1, job: func(j *mpi.Job) { j.Workers.Count = 3 },
			want: map[string][]string{"mend": {"ConfigMap/pi-config"}, "create": {"Pod/pi-worker-1", "Pod/pi-worker-2"}},
		},
		"somebody changed the Service, the ConfigMap and the NetworkPolicy": {
			workers: 1, seen: func(_ *mpi.Job, o *jobstate.Observed) {
				o.Isolation.Spec.PodSelector = metav1.LabelSelector{}
				o.Service.Spec.Selector = map[string]string{"a": "b"}
				o.Config.Data["hostfile"] = "elsewhere slots=1\n"
			},
			want: map[string][]string{"mend": {"Service/pi", "ConfigMap/pi-config", "NetworkPolicy/pi"}},
		},
		"suspended": {
			workers: 2, job: func(j *mpi.Job) { j.Lifecycle.Suspended = true },
			want: map[string][]string{"mend": {"Job/pi-launcher"}, "delete": {"Pod/pi-worker-0/uid-pi-worker-0", "Pod/pi-worker-1/uid-pi-worker-1"}},
		},
		"resumed": {
			workers: 1, seen: func(_ *mpi.Job, o *jobstate.Observed) { o.Launcher.Spec.Suspend = new(true); o.Workers = nil },
			want: map[string][]string{"mend": {"ConfigMap/pi-config", "Job/pi-launcher"}, "create": {"Pod/pi-worker-0"}},
		},
		"resumed, and the launcher waits for its workers": {
			workers: 1, job: func(j *mpi.Job) { j.Launcher.AfterWorkers = true },
			seen: func(_ *mpi.Job, o *jobstate.Observed) { o.Launcher.Spec.Suspend = new(true); o.Workers = nil },
			want: map[string][]string{"mend": {"ConfigMap/pi-config"}, "create": {"Pod/pi-worker-0"}},
		},
		"evicted: the launcher is stopped": {
			workers: 2, seen: func(_ *mpi.Job, o *jobstate.Observed) {
				o.Workers[0].Pod.Status.Phase, o.Workers[0].Pod.Status.Reason = corev1.PodFailed, "Evicted"
			},
			want: map[string][]string{"mend": {"Job/pi-launcher"}},
		},
		"resumed with another image: the launcher is made anew": {
			workers: 0, job: func(j *mpi.Job) { j.Launcher.Template.Spec.Containers[0].Image = "other" },
			seen: func(_ *mpi.Job, o *jobstate.Observed) {
				o.Launcher.Spec.Suspend, o.Launcher.Annotations = new(true), map[string]string{mpi.AnnotationTemplate: "before"}
			},
			want: map[string][]string{"delete": {"Job/pi-launcher/uid-launcher"}},
		},
		"resumed after it was suspended under mpi-operator: the launcher is made anew": {
			workers: 1, seen: func(_ *mpi.Job, o *jobstate.Observed) {
				o.Launcher.Spec.Suspend, o.Launcher.Annotations = new(true), nil
			},
			want: map[string][]string{"delete": {"Job/pi-launcher/uid-launcher"}},
		},
		"admitted with a topology of Kueue's, which replaces ours: the launcher is made anew": {
			workers: 0, job: func(j *mpi.Job) {
				j.Topology = mpi.Topology{Key: corev1.LabelTopologyZone, Required: true}
				j.Launcher.Template.Annotations = map[string]string{"kueue.x-k8s.io/podset-unconstrained-topology": "true"}
			},
			seen: func(j *mpi.Job, o *jobstate.Observed) {
				before := *j
				before.Launcher.Template.Annotations = nil
				first := jobstate.Observed{}
				launcher := plan.For(before, first, jobstate.Judge(before, first), plan.Settings{}).Pods[0]
				o.Launcher.Spec.Suspend, o.Launcher.Annotations = new(true), launcher.GetAnnotations()
			},
			want: map[string][]string{"delete": {"Job/pi-launcher/uid-launcher"}},
		},
		"resumed with another connection: the launcher is made anew": {
			workers: 0, job: func(j *mpi.Job) { j.Connections = []string{"other"} },
			seen: func(j *mpi.Job, o *jobstate.Observed) {
				before := *j
				before.Connections = []string{"data"}
				first := jobstate.Observed{}
				launcher := plan.For(before, first, jobstate.Judge(before, first), plan.Settings{}).Pods[0]
				o.Launcher.Spec.Suspend, o.Launcher.Annotations = new(true), launcher.GetAnnotations()
			},
			want: map[string][]string{"delete": {"Job/pi-launcher/uid-launcher"}},
		},
		"resumed while the old launcher is going": {
			workers: 0, seen: func(_ *mpi.Job, o *jobstate.Observed) {
				o.Launcher.Spec.Suspend, o.Launcher.DeletionTimestamp = new(true), &metav1.Time{Time: mpitest.Now}
			},
			want: map[string][]string{},
		},
		"the launcher's pod succeeded, its Job is about to": {
			workers: 1, seen: func(_ *mpi.Job, o *jobstate.Observed) { o.LauncherPods[0].Status.Phase = corev1.PodSucceeded }, want: map[string][]string{},
		},
		"the launcher's last pod failed, its Job is about to": {
			workers: 1, job: func(j *mpi.Job) { j.Lifecycle.BackoffLimit = new(int32(0)) },
			seen: func(_ *mpi.Job, o *jobstate.Observed) { o.LauncherPods[0].Status.Phase = corev1.PodFailed }, want: map[string][]string{},
		},
		"succeeded, and the launcher's Job starts another pod": {
			workers: 1, job: func(j *mpi.Job) {
				j.Recorded.Finish = &mpi.Finish{Succeeded: true, At: mpitest.Now}
			}, want: map[string][]string{"mend": {"Job/pi-launcher"}},
		},
		"finished, pods are kept":    {workers: 2, seen: finished, want: map[string][]string{}},
		"finished, pods are removed": {workers: 1, job: clean(mpi.CleanAll), seen: finished, want: map[string][]string{"delete": {"Pod/pi-worker-0/uid-pi-worker-0"}}},
		"finished, running pods are removed, pending ones too": {
			workers: 3, job: clean(mpi.CleanRunning),
			seen: func(j *mpi.Job, o *jobstate.Observed) {
				finished(j, o)
				o.Workers[0].Pod.Status.Phase = corev1.PodFailed
				o.Workers[1].Pod.Status.Phase = corev1.PodPending
			},
			want: map[string][]string{"delete": {"Pod/pi-worker-1/uid-pi-worker-1", "Pod/pi-worker-2/uid-pi-worker-2"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(test.workers)
			seen := settled(t, job)
			if test.job != nil {
				test.job(&job)
			}
			if test.seen != nil {
				test.seen(&job, &seen)
			}
			if diff := cmp.Diff(test.want, names(plan.For(job, seen, jobstate.Judge(job, seen), isolating))); diff != "" {
				t.Errorf("the plan differs (-want +got):\n%s", diff)
			}
		})
	}
}

func drained(j *mpi.Job) {
	j.Lifecycle.BackoffLimit, j.Launcher.RestartPolicy = new(int32), corev1.RestartPolicyNever
}

// failedByDrain has the launcher's Job fail with a record of its attempts.
func failedByDrain(disrupted, earlier string) func(*mpi.Job, *jobstate.Observed) {
	return func(j *mpi.Job, o *jobstate.Observed) {
		o.Launcher = mpitest.Launcher(*j, batchv1.JobFailureTarget, batchv1.JobFailed)
		o.Launcher.Status.Conditions[1].Reason, o.Launcher.Status.Failed = batchv1.JobReasonBackoffLimitExceeded, 1
		o.LauncherPods = nil
		o.Config.Annotations = map[string]string{mpi.AnnotationDisrupted: disrupted, mpi.AnnotationEarlierAttempts: earlier}
	}
}

func clean(policy mpi.CleanPods) func(*mpi.Job) {
	return func(j *mpi.Job) { j.Lifecycle.CleanPods = policy }
}

func finished(j *mpi.Job, o *jobstate.Observed) {
	o.Launcher = mpitest.Launcher(*j, batchv1.JobComplete)
}

// TestSettingsArePassedOn: the agent knows a pod's grace period, unless the user sets the variable, the file of its
// termination message, and whether the job asks for a profile.
func TestSettingsArePassedOn(t *testing.T) {
	job := mpitest.Job(1, func(j *mpi.Job) {
		j.Profile = true
		j.Launcher.Template.Spec.TerminationGracePeriodSeconds = new(int64(120))
		j.Workers.Template.Spec.TerminationGracePeriodSeconds = new(int64(300))
		j.Launcher.Template.Spec.Containers[0].TerminationMessagePath = "/tmp/end"
		j.Workers.Template.Spec.Containers[0].TerminationMessagePath = agentapi.TerminationFile
		j.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: agentapi.EnvGrace, Value: "10s"}}
	})
	got := map[string]string{}
	objects := plan.For(job, jobstate.Observed{}, jobstate.Outcome{PodsMayStart: true, LauncherMayStart: true}, plan.Settings{AgentImage: "agent:1"})
	pods := []*corev1.PodSpec{}
	for _, object := range append(objects.Pods, objects.Base...) {
		switch o := object.(type) {
		case *corev1.Pod:
			pods = append(pods, &o.Spec)
		case *batchv1.Job:
			pods = append(pods, &o.Spec.Template.Spec)
		}
	}
	for _, pod := range pods {
		for _, v := range pod.Containers[0].Env {
			if v.Name == agentapi.EnvGrace || v.Name == agentapi.EnvTermination || v.Name == agentapi.EnvProfile {
				got[pod.Hostname] += v.Value
			}
		}
	}
	if want := map[string]string{"pi-launcher": "120s/tmp/end" + agentapi.ProfileFolder, "pi-worker-0": "10s" + agentapi.ProfileFolder}; !maps.Equal(got, want) {
		t.Errorf("the settings are %v, want %v", got, want)
	}
}

// TestKeysOfTrainJobs: the operator makes the keys of a TrainJob only where the site requires another type than Trainer's.
func TestKeysOfTrainJobs(t *testing.T) {
	required := plan.Settings{ReplacesKeys: true}
	withoutMPI := trainJob(t, mpitest.Job(1))
	withoutMPI.Launcher.None = true
	for name, test := range map[string]struct {
		job      mpi.Job
		seen     jobstate.Observed
		settings plan.Settings
		want     []string
	}{
		"required":    {trainJob(t, mpitest.Job(1)), jobstate.Observed{}, required, []string{"Secret pi.ssh"}},
		"there":       {trainJob(t, mpitest.Job(1)), jobstate.Observed{Secret: &metav1.PartialObjectMetadata{}}, required, nil},
		"Trainer's":   {trainJob(t, mpitest.Job(1)), jobstate.Observed{}, plan.Settings{}, nil},
		"without MPI": {withoutMPI, jobstate.Observed{}, required, nil},
	} {
		var got []string
		for _, object := range plan.For(test.job, test.seen, jobstate.Outcome{}, test.settings).Base {
			got = append(got, object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetName())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: the plan has %v, want %v", name, got, test.want)
		}
	}
}

// TestPlanLeavesItsInputAlone: templates and observations are shared with a cache.
// TestForeignPods: pods that mpi-operator created reach each other by the image's ssh, and so do those that are created later.
func TestForeignPods(t *testing.T) {
	job := mpitest.Job(2)
	settings := isolating
	settings.AgentImage = "agent"
	sshd := []string{"/usr/sbin/sshd", "-De"}
	worker := func(seen *jobstate.Observed) *corev1.Pod { seen.Workers = seen.Workers[:1]; return seen.Workers[0].Pod }
	tests := map[string]struct {
		seen func(*jobstate.Observed)
		// sshd is whether what is created uses sshd.
		sshd bool
	}{
		"pods of our own":      {func(o *jobstate.Observed) { worker(o) }, false},
		"a launcher that runs": {func(o *jobstate.Observed) { worker(o); o.Launcher.Annotations = nil }, true},
		"a worker, no launcher": {func(o *jobstate.Observed) {
			worker(o).Spec.Containers = []corev1.Container{{Command: sshd}}
			o.Launcher = nil
		}, true},
		"a worker that is leaving": {func(o *jobstate.Observed) {
			w := worker(o)
			w.Spec.Containers = []corev1.Container{{Command: sshd}}
			mpitest.Leaving(w)
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			seen := settled(t, job)
			test.seen(&seen)
			for _, object := range plan.For(job, seen, jobstate.Judge(job, seen), settings).Pods {
				switch object := object.(type) {
				case *corev1.Pod:
					if got := slices.Equal(object.Spec.Containers[0].Command, sshd); got != test.sshd {
						t.Errorf("%s runs %q", object.Name, object.Spec.Containers[0].Command)
					}
				case *batchv1.Job:
					if got := len(object.Spec.Template.Spec.InitContainers) == 0; got != test.sshd {
						t.Errorf("the launcher has the init containers %v", object.Spec.Template.Spec.InitContainers)
					}
				}
			}
		})
	}
}

func TestPlanLeavesItsInputAlone(t *testing.T) {
	job, same := mpitest.Job(2), mpitest.Job(2)
	seen := jobstate.Observed{}
	plan.For(job, seen, jobstate.Judge(job, seen), isolating)
	if diff := cmp.Diff(same, job); diff != "" {
		t.Errorf("the plan changed the job (-before +after):\n%s", diff)
	}
}
