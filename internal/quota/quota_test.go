package quota_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/quota"
)

// list reads "cpu=2 memory=1Gi".
func list(text string) corev1.ResourceList {
	if text == "" {
		return nil
	}
	all := corev1.ResourceList{}
	for part := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(part, "=")
		all[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return all
}

func sized(requests, limits string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}}
}

func pod(change func(*corev1.Pod), containers ...corev1.Container) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: containers}}
	if change != nil {
		change(pod)
	}
	return pod
}

func named(hard, used string, scopes ...corev1.ScopedResourceSelectorRequirement) []quota.Quota {
	return []quota.Quota{{Name: "team", Hard: list(hard), Used: list(used), Scopes: scopes}}
}

func scope(name corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) corev1.ScopedResourceSelectorRequirement {
	return corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: operator, Values: values}
}

func exists(name corev1.ResourceQuotaScope) corev1.ScopedResourceSelectorRequirement {
	return scope(name, corev1.ScopeSelectorOpExists)
}

func TestShortages(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	gpu := pod(nil, sized("nvidia.com/gpu=2 cpu=1", "nvidia.com/gpu=2"))
	small := pod(nil, sized("cpu=500m", ""))
	job := func(launcher, worker *corev1.Pod, workers int64) []quota.Pods {
		return []quota.Pods{{Role: mpi.RoleLauncher, Count: 1, Pod: launcher}, {Role: mpi.RoleWorker, Count: workers, Pod: worker}}
	}
	classed := func(class string) *corev1.Pod {
		return pod(func(p *corev1.Pod) { p.Spec.PriorityClassName = class }, sized("cpu=1", ""))
	}
	kinds := quota.Objects(
		schema.GroupVersionKind{Version: "v1", Kind: "Service"}, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	)
	tests := map[string]struct {
		pods   []quota.Pods
		kinds  map[string]int64
		quotas []quota.Quota
		want   []string
	}{
		"no quota":    {pods: job(small, gpu, 20)},
		"exactly":     {pods: job(small, gpu, 20), quotas: named("requests.nvidia.com/gpu=40 pods=21 requests.cpu=20500m", "")},
		"beyond hard": {pods: job(small, gpu, 20), quotas: named("requests.nvidia.com/gpu=32", "requests.nvidia.com/gpu=24"), want: []string{"40 requests.nvidia.com/gpu requested (20 workers with 2 each), quota team allows 32"}},
		"beyond what is free": {
			pods: job(small, gpu, 4), quotas: named("requests.nvidia.com/gpu=32", "requests.nvidia.com/gpu=25"),
			want: []string{"8 requests.nvidia.com/gpu requested (4 workers with 2 each), 25 of 32 used in quota team, 7 free"},
		},
		"several at once": {
			pods: job(small, small, 3), quotas: named("pods=3 requests.cpu=1 limits.memory=1Mi", ""),
			want: []string{"4 pods requested (the launcher and 3 workers), quota team allows 3", "2 requests.cpu requested (the launcher with 500m and 3 workers with 500m each), quota team allows 1"},
		},
		"the names that a quota may use": {
			pods: job(small, pod(nil, sized("cpu=1 memory=1Gi ephemeral-storage=1Gi hugepages-2Mi=2Mi", "cpu=2 memory=1Gi hugepages-2Mi=2Mi")), 1),
			quotas: named("count/pods=1 cpu=1 memory=1Mi limits.cpu=1 limits.memory=1Mi requests.memory=1Mi requests.ephemeral-storage=1 ephemeral-storage=1 "+
				"hugepages-2Mi=1 requests.hugepages-2Mi=1 limits.ephemeral-storage=1", ""),
			want: []string{
				"2 count/pods", "1500m cpu", "1Gi ephemeral-storage", "2Mi hugepages-2Mi", "2 limits.cpu", "1Gi limits.memory", "1Gi memory",
				"1Gi requests.ephemeral-storage", "2Mi requests.hugepages-2Mi", "1Gi requests.memory",
			},
		},
		"a device by its bare name is not counted": {pods: job(small, gpu, 4), quotas: named("nvidia.com/gpu=1", "")},
		"an init container counts if it asks for more, a sidecar in any case": {
			pods: job(pod(func(p *corev1.Pod) {
				side := sized("cpu=1", "")
				side.RestartPolicy = &always
				p.Spec.InitContainers = []corev1.Container{sized("cpu=3", ""), side}
			}, sized("cpu=1", "")), small, 0),
			quotas: named("requests.cpu=2", ""), want: []string{"3 requests.cpu requested (the launcher with 3)"},
		},
		"overhead counts": {
			pods:   job(small, pod(func(p *corev1.Pod) { p.Spec.Overhead = list("cpu=250m") }, sized("cpu=1", "")), 2),
			quotas: named("requests.cpu=2750m", ""), want: []string{"3 requests.cpu requested (the launcher with 500m and 2 workers with 1250m each)"},
		},
		"what pods as a whole ask for counts": {
			pods: job(small, pod(func(p *corev1.Pod) {
				p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu=4")}
			}, sized("cpu=1", "")), 1),
			quotas: named("requests.cpu=4", ""), want: []string{"4500m requests.cpu"},
		},
		"a quota that is used beyond what it gives": {pods: job(small, small, 1), quotas: named("pods=5", "pods=9"), want: []string{"2 pods requested (the launcher and 1 worker), 9 of 5 used in quota team, 0 free"}},

		"best effort":                         {pods: job(pod(nil, sized("", "")), small, 3), quotas: named("pods=0", "", exists(corev1.ResourceQuotaScopeBestEffort)), want: []string{"1 pods requested (the launcher)"}},
		"best effort, as the API server says": {pods: job(pod(func(p *corev1.Pod) { p.Status.QOSClass = corev1.PodQOSBurstable }, sized("", "")), small, 3), quotas: named("pods=0", "", exists(corev1.ResourceQuotaScopeBestEffort))},
		"not best effort":                     {pods: job(pod(nil, sized("", "")), small, 3), quotas: named("pods=2", "", exists(corev1.ResourceQuotaScopeNotBestEffort)), want: []string{"3 pods requested (3 workers)"}},
		"with a deadline":                     {pods: job(small, pod(func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(5)) }, sized("cpu=1", "")), 2), quotas: named("pods=1", "", exists(corev1.ResourceQuotaScopeTerminating)), want: []string{"2 pods requested (2 workers)"}},
		"without a deadline":                  {pods: job(small, small, 2), quotas: named("pods=1", "", exists(corev1.ResourceQuotaScopeNotTerminating)), want: []string{"3 pods"}},
		"both scopes have to match":           {pods: job(small, small, 2), quotas: named("pods=1", "", exists(corev1.ResourceQuotaScopeNotTerminating), exists(corev1.ResourceQuotaScopeBestEffort))},
		"of a priority class":                 {pods: job(classed(""), classed("high"), 2), quotas: named("pods=1", "", scope(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, "high", "low")), want: []string{"2 pods requested (2 workers)"}},
		"of any but a priority class":         {pods: job(classed(""), classed("high"), 2), quotas: named("pods=0", "", scope(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpNotIn, "high")), want: []string{"1 pods requested (the launcher)"}},
		"of no priority class":                {pods: job(classed(""), classed("high"), 2), quotas: named("pods=0", "", scope(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpDoesNotExist)), want: []string{"1 pods requested (the launcher)"}},
		"of any priority class":               {pods: job(classed(""), classed("high"), 2), quotas: named("pods=1", "", exists(corev1.ResourceQuotaScopePriorityClass)), want: []string{"2 pods requested (2 workers)"}},
		"across namespaces": {
			pods: job(small, pod(func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: corev1.PodAffinityTerm{Namespaces: []string{"other"}}}}}}
			}, sized("cpu=1", "")), 2),
			quotas: named("pods=1", "", exists(corev1.ResourceQuotaScopeCrossNamespacePodAffinity)), want: []string{"2 pods requested (2 workers)"},
		},
		"a scope that pods do not have": {pods: job(small, small, 2), quotas: named("pods=1", "", exists(corev1.ResourceQuotaScopeVolumeAttributesClass))},

		"objects": {
			pods: job(small, small, 1), kinds: kinds,
			quotas: named("count/jobs.batch=0 configmaps=7 services=7 count/networkpolicies.networking.k8s.io=7 count/secrets=0", "configmaps=7 services=6 count/networkpolicies.networking.k8s.io=7"),
			want:   []string{"1 configmaps requested, 7 of 7", "1 count/jobs.batch requested, quota team allows 0", "1 count/networkpolicies.networking.k8s.io requested, 7 of 7"},
		},
		"objects are in no scope": {kinds: kinds, quotas: named("count/jobs.batch=0", "", exists(corev1.ResourceQuotaScopeNotTerminating))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			short := quota.Shortages(test.pods, test.kinds, test.quotas)
			if len(short) != len(test.want) {
				t.Fatalf("short are %q, want %q", short, test.want)
			}
			for i, s := range short {
				if !strings.HasPrefix(s.String(), test.want[i]) {
					t.Errorf("it says %q, want %q", s, test.want[i])
				}
			}
		})
	}
}

// TestCheckQuota is about the three answers: never, not now, and waits.
func TestCheckQuota(t *testing.T) {
	worker := pod(nil, sized("nvidia.com/gpu=2", "nvidia.com/gpu=2"))
	launcher := pod(nil, sized("cpu=1", ""))
	tests := map[string]struct {
		workers     int32
		hard, used  string
		change      func(*mpi.Job)
		never, full string
		warning     string
	}{
		"fits": {workers: 16, hard: "requests.nvidia.com/gpu=32"},
		"never": {
			workers: 20, hard: "requests.nvidia.com/gpu=32 pods=20",
			never: `spec.replicas: Invalid value: 20: the job exceeds the quota of namespace ml even when unused: 21 pods requested (the launcher and 20 workers), quota team allows 20; ` +
				`40 requests.nvidia.com/gpu requested (20 workers with 2 each), quota team allows 32; use at most 16 workers, request less`,
		},
		"never, not even one worker": {workers: 2, hard: "requests.nvidia.com/gpu=1", never: "allows 1; request less"},
		"never, for the launcher":    {workers: 2, hard: "requests.cpu=500m", never: "spec.launcher: Forbidden: the job exceeds the quota"},
		"never, for what is counted": {workers: 20, hard: "pods=20", never: "quota team allows 20; use at most 19 workers, or ask the cluster administrator for a larger quota"},
		"never, for pods as objects": {workers: 20, hard: "count/pods=20", never: "use at most 19 workers, or ask the cluster administrator for a larger quota"},
		"never, for an object":       {workers: 2, hard: "services=0", never: "1 services requested, quota team allows 0; ask the cluster administrator for a larger quota: every job needs services of its own (1), whatever its size"},
		"never, though it waits":     {workers: 20, hard: "requests.nvidia.com/gpu=32", change: func(j *mpi.Job) { j.WaitForQuota = true }, never: "allows 32"},
		"not now": {
			workers: 4, hard: "requests.nvidia.com/gpu=32", used: "requests.nvidia.com/gpu=28",
			full: `spec.replicas: Invalid value: 4: exceeded quota: 8 requests.nvidia.com/gpu requested (4 workers with 2 each), 28 of 32 used in quota team, 4 free; use at most 2 workers, `,
		},
		"one is never, one not now": {workers: 4, hard: "requests.nvidia.com/gpu=4 pods=5", used: "pods=1", never: "8 requests.nvidia.com/gpu", full: "5 pods"},
		"waits, as it says":         {workers: 4, hard: "pods=5", used: "pods=1", change: func(j *mpi.Job) { j.WaitForQuota = true }, warning: "waits for quota in namespace ml: 5 pods"},
		"not now, and may wait":     {workers: 4, hard: "pods=5", used: "pods=1", full: "To let the job wait, set the annotation mpi.opendatahub.io/wait-for-quota: \"true\" or the queue label kueue.x-k8s.io/queue-name"},
		"not now, and cannot wait": {
			workers: 4, hard: "pods=5", used: "pods=1", change: func(j *mpi.Job) { j.External, j.WaitForQuota = true, true },
			full: "To let the job wait, set the queue label kueue.x-k8s.io/queue-name",
		},
		"waits in a queue": {workers: 4, hard: "pods=5", used: "pods=1", change: func(j *mpi.Job) { j.Queue = "team" }, warning: "waits for quota"},
		"waits as a gang":  {workers: 4, hard: "pods=5", used: "pods=1", change: func(j *mpi.Job) { j.Gang.Wanted = true }, warning: "waits for quota"},
		"suspended":        {workers: 4, hard: "pods=5", used: "pods=1", change: func(j *mpi.Job) { j.Lifecycle.Suspended = true }, warning: "waits for quota"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpi.New()
			job.Namespace, job.Workers.Count = "ml", test.workers
			job.Fields.WorkerCount, job.Fields.LauncherTemplate = field.NewPath("spec", "replicas"), field.NewPath("spec", "launcher")
			if test.change != nil {
				test.change(&job)
			}
			short := quota.Shortages([]quota.Pods{{Role: mpi.RoleLauncher, Count: 1, Pod: launcher}, {Role: mpi.RoleWorker, Count: int64(test.workers), Pod: worker}}, map[string]int64{"services": 1}, named(test.hard, test.used))
			never, full, warnings := quota.CheckQuota(job, short)
			for what, pair := range map[string][2]string{
				"never": {text(never), test.never}, "not now": {text(full), test.full}, "warned of": {strings.Join(warnings, "\n"), test.warning},
			} {
				if (pair[0] != "") != (pair[1] != "") || !strings.Contains(pair[0], pair[1]) {
					t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
				}
			}
		})
	}
}

func text(errs field.ErrorList) string {
	if len(errs) == 0 {
		return ""
	}
	return errs.ToAggregate().Error()
}

func TestWithDefaults(t *testing.T) {
	ranges := []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypePod, Max: list("cpu=9")},
		{Type: corev1.LimitTypeContainer, Default: list("cpu=2 memory=1Gi"), DefaultRequest: list("cpu=1 memory=512Mi")},
	}}}}
	tests := map[string]struct {
		container        corev1.Container
		requests, limits string
	}{
		"nothing said":         {requests: "cpu=1 memory=512Mi", limits: "cpu=2 memory=1Gi"},
		"a limit is a request": {container: sized("", "cpu=3"), requests: "cpu=3 memory=512Mi", limits: "cpu=3 memory=1Gi"},
		"all said":             {container: sized("cpu=1 memory=1Mi", "cpu=4 memory=4Mi"), requests: "cpu=1 memory=1Mi", limits: "cpu=4 memory=4Mi"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{test.container}}}
			have := quota.WithDefaults(template, ranges).Spec.Containers[0].Resources
			for _, pair := range []struct {
				have corev1.ResourceList
				want string
			}{{have.Requests, test.requests}, {have.Limits, test.limits}} {
				for name, want := range list(pair.want) {
					if got := pair.have[name]; got.Cmp(want) != 0 || len(pair.have) != len(list(pair.want)) {
						t.Errorf("%s is %s of %v, want %s", name, got.String(), pair.have, want.String())
					}
				}
			}
			if len(test.container.Resources.Requests) != len(template.Spec.Containers[0].Resources.Requests) {
				t.Error("the template was changed")
			}
		})
	}
}

// TestQuotasOfJobsThatWaitAhead: what earlier jobs will use is not free, and is told apart from what is used.
func TestQuotasOfJobsThatWaitAhead(t *testing.T) {
	t.Parallel()
	of := func(count int64) []quota.Pods {
		return []quota.Pods{quota.Counted(mpi.RoleWorker, count, pod(func(*corev1.Pod) {}, sized("cpu=2", "")))}
	}
	quotas := named("requests.cpu=10", "requests.cpu=1")
	if short := quota.ShortagesAfter(nil, of(4), quotas); len(short) != 0 {
		t.Errorf("8 and 1 of 10 cores are too many: %v", short)
	}
	short := quota.ShortagesAfter(of(1), of(4), quotas)
	if len(short) != 1 {
		t.Fatalf("8, 2 and 1 of 10 cores fit: %v", short)
	}
	free := short[0].Free()
	if short[0].Used.String() != "1" || short[0].Ahead.String() != "2" || free.String() != "7" || short[0].Never() || quota.AnyNever(short) {
		t.Errorf("used %s, ahead %s, free %s", short[0].Used.String(), short[0].Ahead.String(), free.String())
	}
	if short := quota.ShortagesAfter(nil, of(6), quotas); !quota.AnyNever(short) {
		t.Errorf("12 of 10 cores may fit later: %v", short)
	}
	if got := quotas[0].Used["requests.cpu"]; got.String() != "1" {
		t.Errorf("the quota itself has changed to %s", got.String())
	}
}

// TestQuotasWithoutPods: pods that have ended use nothing already.
func TestQuotasWithoutPods(t *testing.T) {
	t.Parallel()
	running := pod(func(*corev1.Pod) {}, sized("cpu=2", ""))
	ended := pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, sized("cpu=2", ""))
	less := quota.Without(named("requests.cpu=10", "requests.cpu=5"), []*corev1.Pod{running, ended})
	if got := less[0].Used["requests.cpu"]; got.String() != "3" {
		t.Errorf("%s is used, want 3", got.String())
	}
	scoped := quota.Without(named("requests.cpu=10", "requests.cpu=5", exists(corev1.ResourceQuotaScopeTerminating)), []*corev1.Pod{running})
	if got := scoped[0].Used["requests.cpu"]; got.String() != "5" {
		t.Errorf("a quota that the pod does not count for has %s used, want 5", got.String())
	}
}
