package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// RuntimeTestSpec describes a test of a runtime.
type RuntimeTestSpec struct {
	// Namespace is where the test runs.
	Namespace string
	// Kind and Name are those of the runtime; without a kind it is one of the cluster.
	Kind, Name string
	// Image replaces the runtime's image; empty for that.
	Image string
	// CPU, Memory and GPU are requested by each pod, as quantities. One of them replaces all resources of the runtime.
	CPU, Memory, GPU string
	// GPUResource is the name of the GPU resource; empty for nvidia.com/gpu.
	GPUResource string
	// Queue is a LocalQueue of Kueue; empty for none.
	Queue string
	// Timeout is how long the test may run: 10 s to 1 h.
	Timeout time.Duration
	// TTL is how long the test is kept after it finished; zero until it is deleted.
	TTL time.Duration
}

// Validate returns an InvalidError with everything that is wrong.
func (s RuntimeTestSpec) Validate() error {
	_, err := s.object()
	return err
}

// object returns the RuntimeTest of a specification.
func (s RuntimeTestSpec) object() (*v1alpha1.RuntimeTest, error) {
	var errs []FieldError
	if s.Namespace == "" {
		errs = append(errs, FieldError{Field: "namespace", Reason: "is required; the test runs there"})
	}
	if s.Name == "" {
		errs = append(errs, FieldError{Field: "name", Reason: "is required"})
	}
	if s.Timeout < 10*time.Second || s.Timeout > time.Hour {
		errs = append(errs, FieldError{Field: "timeout", Value: s.Timeout.String(), Reason: "is not allowed; use 10s to 1h"})
	}
	resources, more := s.resources()
	if errs = append(errs, more...); len(errs) > 0 {
		return nil, Invalid(errs...)
	}
	const maxPrefix = 39
	test := &v1alpha1.RuntimeTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, GenerateName: s.Name[:min(len(s.Name), maxPrefix)] + "-"},
		Spec: v1alpha1.RuntimeTestSpec{
			RuntimeRef: v1alpha1.RuntimeReference{Name: s.Name, Kind: s.Kind}, Image: s.Image, ResourcesPerNode: resources, TimeoutSeconds: int32(s.Timeout / time.Second),
		},
	}
	if s.TTL > 0 {
		test.Spec.TTLSecondsAfterFinished = new(int32(s.TTL / time.Second))
	}
	if s.Queue != "" {
		test.Labels = map[string]string{mpi.LabelQueue: s.Queue}
	}
	return test, nil
}

// resources returns what each pod requests; nil for what the runtime requests. As for new jobs, CPU has no limit.
func (s RuntimeTestSpec) resources() (*corev1.ResourceRequirements, []FieldError) {
	if s.CPU+s.Memory+s.GPU == "" {
		return nil, nil
	}
	var errs []FieldError
	gpu := cmp.Or(corev1.ResourceName(s.GPUResource), nvidiaGPU)
	if !strings.Contains(string(gpu), "/") || len(validation.IsQualifiedName(string(gpu))) > 0 {
		errs = append(errs, FieldError{Field: "gpuResource", Value: s.GPUResource, Reason: "is not the name of a GPU resource; use one such as amd.com/gpu"})
	}
	resources := &corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, amount := range []struct {
		field, value string
		name         corev1.ResourceName
	}{{"cpu", s.CPU, corev1.ResourceCPU}, {"memory", s.Memory, corev1.ResourceMemory}, {"gpu", s.GPU, gpu}} {
		quantity, err := resource.ParseQuantity(cmp.Or(amount.value, "0"))
		if err != nil || quantity.Sign() < 0 {
			errs = append(errs, FieldError{Field: amount.field, Value: amount.value, Reason: "is not a quantity; use a value such as 2, 500m or 1Gi"})
			continue
		}
		if quantity.IsZero() {
			continue
		}
		resources.Requests[amount.name] = quantity
		if amount.name != corev1.ResourceCPU {
			resources.Limits[amount.name] = quantity
		}
	}
	return resources, errs
}

// StartRuntimeTest starts a test of a runtime: the operator runs a launcher and two workers. It fails with InvalidError, or
// with NoOperatorError if the cluster has no RuntimeTests.
func (c *Client) StartRuntimeTest(ctx context.Context, spec RuntimeTestSpec) (*v1alpha1.RuntimeTest, error) {
	test, err := spec.object()
	if err != nil {
		return nil, err
	}
	switch err := c.api.Create(ctx, test); {
	case err == nil:
		return test, nil
	case IsNotInstalled(err):
		return nil, &NoOperatorError{Kind: "RuntimeTest"}
	default:
		return nil, fmt.Errorf("create a test of %s: %w", spec.Name, err)
	}
}

// AwaitRuntimeTest returns a test when it has completed, at most a minute after its timeout. Meanwhile it calls a function
// with the test as it is. If it fails, with context.DeadlineExceeded after that minute, it returns the test as seen last.
func (c *Client) AwaitRuntimeTest(ctx context.Context, test *v1alpha1.RuntimeTest, each func(v1alpha1.RuntimeTest)) (*v1alpha1.RuntimeTest, error) {
	const interval = 500 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, RuntimeTestPatience(test))
	defer cancel()
	test = test.DeepCopy()
	for {
		err := c.api.Get(ctx, client.ObjectKeyFromObject(test), test)
		switch {
		case ctx.Err() != nil:
			return test, ctx.Err()
		case err == nil:
			each(*test)
		case !IsTransient(err):
			return test, fmt.Errorf("read runtimetest/%s: %w", test.Name, err)
		}
		if test.Status.CompletionTime != nil {
			return test, nil
		}
		select {
		case <-ctx.Done():
			return test, ctx.Err()
		case <-time.After(interval):
		}
	}
}

// RuntimeTestPatience returns how long AwaitRuntimeTest waits for a test.
func RuntimeTestPatience(test *v1alpha1.RuntimeTest) time.Duration {
	return time.Duration(test.Spec.TimeoutSeconds)*time.Second + time.Minute
}

// DecidedChecks returns the checks of a test whose results do not change any more.
func DecidedChecks(test v1alpha1.RuntimeTest) []v1alpha1.RuntimeCheck {
	return slices.DeleteFunc(slices.Clone(test.Status.Checks), func(check v1alpha1.RuntimeCheck) bool {
		return check.Result == v1alpha1.CheckPending || check.Result == v1alpha1.CheckUnknown && test.Status.CompletionTime == nil
	})
}

// RuntimeTests returns the tests in a namespace (empty: in all), the latest first.
func (c *Client) RuntimeTests(ctx context.Context, namespace string) ([]v1alpha1.RuntimeTest, error) {
	var tests []v1alpha1.RuntimeTest
	var list v1alpha1.RuntimeTestList
	if err := EachPage(ctx, c.api, &list, namespace, nil, func() { tests = append(tests, list.Items...) }); err != nil {
		return nil, fmt.Errorf("list RuntimeTests: %w", err)
	}
	slices.SortFunc(tests, func(a, b v1alpha1.RuntimeTest) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return tests, nil
}

// DeleteRuntimeTest deletes a test with its job. A test that is gone is no error.
func (c *Client) DeleteRuntimeTest(ctx context.Context, test *v1alpha1.RuntimeTest) error {
	return client.IgnoreNotFound(c.api.Delete(ctx, test, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}
