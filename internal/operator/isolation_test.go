package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/operator"
)

// allow writes where a namespace lets pods connect to.
func allow(t *testing.T, namespace, text string) {
	t.Helper()
	before := get(t, "", namespace, &corev1.Namespace{})
	after := before.DeepCopy()
	after.Annotations = map[string]string{mpi.AnnotationAllowEgress: text}
	if err := api.Patch(t.Context(), after, client.MergeFrom(before)); err != nil {
		t.Fatalf("write the namespace's annotation: %v", err)
	}
}

// lets waits until a NetworkPolicy lets pods connect to so many ports besides those that all may.
func lets(t *testing.T, namespace, name string, ports ...int32) *networkingv1.NetworkPolicy {
	t.Helper()
	const always = 4
	policy := &networkingv1.NetworkPolicy{}
	eventually(t, fmt.Sprintf("the NetworkPolicy %s lets pods connect to %v", name, ports), func() error {
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, policy); err != nil {
			return err
		}
		if len(policy.Spec.Egress) != always+len(ports) {
			return fmt.Errorf("it has %d rules", len(policy.Spec.Egress))
		}
		for i, port := range ports {
			if have := policy.Spec.Egress[always+i].Ports[0].Port.IntVal; have != port {
				return fmt.Errorf("rule %d is about port %d", always+i, have)
			}
		}
		return nil
	})
	return policy
}

// TestNamespacesAllowEgress: what a namespace lets pods connect to reaches jobs that run already, and those to come.
func TestNamespacesAllowEgress(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 1))
	exists(t, namespace, "pi-launcher", &batchv1.Job{})
	first := lets(t, namespace, "pi")
	if owner := first.OwnerReferences; len(owner) != 1 || owner[0].Kind != "MPIJob" || owner[0].Name != "pi" {
		t.Errorf("the NetworkPolicy is owned by %+v", owner)
	}
	allow(t, namespace, "2049,192.0.2.0/24:9000-9010")
	if changed := lets(t, namespace, "pi", 2049, 9000); changed.UID != first.UID {
		t.Error("the NetworkPolicy was made anew, which leaves pods without one for a moment")
	}
	other := mpitest.MPIJob(namespace, 1)
	other.Name = "other"
	create(t, other)
	lets(t, namespace, "other", 2049, 9000)
	allow(t, namespace, "")
	lets(t, namespace, "pi")
	lets(t, namespace, "other")
}

func TestNetworkPolicyChangedByHandComesBack(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 1))
	policy := lets(t, namespace, "pi")
	policy.Spec.Egress = append(policy.Spec.Egress, networkingv1.NetworkPolicyEgressRule{})
	policy.Spec.Ingress = nil
	if err := api.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	if mended := lets(t, namespace, "pi"); len(mended.Spec.Ingress) != 1 {
		t.Errorf("it lets in %+v", mended.Spec.Ingress)
	}
	if err := api.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	exists(t, namespace, "pi", &networkingv1.NetworkPolicy{}, string(policy.UID))
}

// TestNetworkPoliciesSwitchedOff: an operator that is to make none removes those of before, and nobody else's.
func TestNetworkPoliciesSwitchedOff(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	stop := start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 1))
	lets(t, namespace, "pi")
	create(t, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "somebodys"}})
	stop()

	operate(t, rest.CopyConfig(restConfig), operator.Options{WatchNamespaces: []string{namespace}})
	eventually(t, "the NetworkPolicy is gone", func() error {
		err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pi"}, &networkingv1.NetworkPolicy{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	get(t, namespace, "somebodys", &networkingv1.NetworkPolicy{})
}

// TestNamespacesAreValidated: the annotations of a namespace are validated whichever part of it is written, as each of them changes annotations.
func TestNamespacesAreValidated(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	guarded(t, namespace)
	patch := func(text string, parts ...string) error {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, mpi.AnnotationAllowEgress, text))
		if len(parts) == 0 {
			return api.Patch(t.Context(), object, patch, client.DryRunAll)
		}
		return api.SubResource(parts[0]).Patch(t.Context(), object, patch, client.DryRunAll)
	}
	eventually(t, "invalid destinations are refused", func() error {
		if err := patch("nfs"); err == nil || !strings.Contains(err.Error(), `"nfs": must have a port`) {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	if err := patch("nfs", "status"); err == nil || !strings.Contains(err.Error(), `"nfs": must have a port`) {
		t.Errorf("with the status, the answer is %v", err)
	}
	if err := patch("2049", "status"); err != nil {
		t.Error(err)
	}
}

func TestBadEgressIsRefused(t *testing.T) {
	t.Parallel()
	err := operator.Run(t.Context(), rest.CopyConfig(restConfig), operator.Options{AllowEgress: "2049,nfs,10.0.0.1/8:1"})
	if err == nil || !strings.Contains(err.Error(), `"nfs": must`) || !strings.Contains(err.Error(), `"10.0.0.1/8:1": must`) || strings.Contains(err.Error(), `"2049"`) {
		t.Errorf("an operator that is to allow what is no place says %v", err)
	}
}
