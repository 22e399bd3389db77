package operator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/quota"
)

// sizes are what a container may ask for, by a quota's random user.
func (d dice) sizes() corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu"} {
		d.seldom(2, func() {
			r.Limits[name] = resource.MustParse(pick(d, "2", "3"))
			d.seldom(2, func() { r.Requests[name] = resource.MustParse(pick(d, "1", "2")) })
			d.seldom(4, func() { delete(r.Limits, name) })
		})
		if name == "nvidia.com/gpu" {
			delete(r.Requests, name)
		}
	}
	return r
}

func (d dice) sizedPod(class string) corev1.PodTemplateSpec {
	container := func(name string) corev1.Container {
		return corev1.Container{Name: name, Image: "i", Resources: d.sizes()}
	}
	spec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{container("main")}}
	d.seldom(3, func() { spec.Containers = append(spec.Containers, container("more")) })
	d.seldom(3, func() { spec.InitContainers = append(spec.InitContainers, container("init")) })
	d.seldom(3, func() {
		side := container("side")
		side.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		spec.InitContainers = append(spec.InitContainers, side)
	})
	d.seldom(3, func() { spec.ActiveDeadlineSeconds = new(int64(9)) })
	d.seldom(2, func() { spec.PriorityClassName = class })
	d.seldom(4, func() {
		spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "rack", Namespaces: []string{"elsewhere"}}}}}
	})
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"}, Spec: spec}
}

func (d dice) quota(namespace, class string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}}}
	for range 1 + d.IntN(4) {
		name := pick(d, "pods", "count/pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "ephemeral-storage",
			"requests.ephemeral-storage", "limits.ephemeral-storage", "requests.nvidia.com/gpu")
		q.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse(pick(d, "0", "1", "2", "3", "5", "9"))
	}
	for range d.IntN(3) {
		name := pick(d, corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
			corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity)
		if name != corev1.ResourceQuotaScopePriorityClass && d.IntN(2) == 0 {
			q.Spec.Scopes = append(q.Spec.Scopes, name)
			continue
		}
		match := corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: corev1.ScopeSelectorOpExists}
		if name == corev1.ResourceQuotaScopePriorityClass {
			match.Operator = pick(d, corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist, corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn)
		}
		if match.Operator == corev1.ScopeSelectorOpIn || match.Operator == corev1.ScopeSelectorOpNotIn {
			match.Values = []string{class}
		}
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{match}}
	}
	return q
}

var exceeded = regexp.MustCompile(`exceeded quota: q, requested: (\S+), used: `)

// TestSumsAgreeWithAPIServer: whether a pod exceeds a quota, and by what figures, is what the API server says too.
func TestSumsAgreeWithAPIServer(t *testing.T) {
	t.Parallel()
	const class, quotas, pods = "quota-test", 120, 12
	create(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Value: 7})
	t.Cleanup(func() {
		_ = api.Delete(context.Background(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}})
	})
	var spaces []string
	for seed := range uint64(quotas) {
		namespace := newNamespace(t)
		q := dice{rand.New(rand.NewPCG(seed, 7))}.quota(namespace, class)
		switch err := api.Create(t.Context(), q); {
		case apierrors.IsInvalid(err):
			continue
		case err != nil:
			t.Fatal(err)
		}
		q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: corev1.ResourceList{}}
		for name := range q.Spec.Hard {
			q.Status.Used[name] = resource.Quantity{}
		}
		if err := api.Status().Update(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		spaces = append(spaces, namespace)
	}
	over, within := 0, 0
	for i, namespace := range spaces {
		have, err := cluster.Quotas(t.Context(), api, namespace)
		if err != nil {
			t.Fatal(err)
		}
		d := dice{rand.New(rand.NewPCG(uint64(i), 8))}
		for range pods {
			template := d.sizedPod(class)
			short := quota.Shortages([]quota.Pods{{Role: mpi.RoleWorker, Count: 1, Pod: quota.WithDefaults(template, nil)}}, nil, have)
			if len(short) > 0 {
				over++
			} else {
				within++
			}
			var wrong error
			// Its admission learns of a quota a moment later.
			for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
				if wrong = agrees(t, namespace, template, short); wrong == nil {
					break
				}
			}
			if wrong != nil {
				text, _ := yaml.Marshal(map[string]any{"quota": have, "pod": template.Spec})
				t.Fatalf("we find short %v: %v\n%s", short, wrong, text)
			}
		}
	}
	t.Logf("%d quotas, %d pods beyond them, %d within", len(spaces), over, within)
	if over < 80 || within < 80 {
		t.Error("too few to tell anything: let the dice be kinder")
	}
}

// agrees reports whether the API server says the same of a pod.
func agrees(t *testing.T, namespace string, template corev1.PodTemplateSpec, short []quota.Shortage) error {
	t.Helper()
	copied := template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: copied.ObjectMeta, Spec: copied.Spec}
	pod.Namespace = namespace
	err := api.Create(t.Context(), pod, client.DryRunAll)
	switch {
	case err == nil && len(short) == 0:
		return nil
	case err == nil:
		return errors.New("it takes the pod")
	case strings.Contains(err.Error(), "must specify"), apierrors.IsInvalid(err):
		// Said in other words, whatever the sums are.
		return nil
	}
	said := exceeded.FindStringSubmatch(err.Error())
	if said == nil {
		return err
	}
	var ours []string
	for _, s := range short {
		ours = append(ours, fmt.Sprintf("%s=%s", s.Resource, s.Asked.String()))
	}
	if have := strings.Join(ours, ","); have != said[1] {
		return fmt.Errorf("it says %s, not %s", said[1], have)
	}
	return nil
}
