package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// TestRefusalOfThePod: a refusal of the dry run does not name its pod, which no user knows.
func TestRefusalOfThePod(t *testing.T) {
	refused := apierrors.NewForbidden(corev1.Resource("pods"), "preflight-", errors.New("no token"))
	api := mpitest.FakeAPI().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refused },
	}).Build()
	found := cluster.New(api, api, nil, clock.RealClock{}).Preflight(t.Context(), mpitest.Job(2), plan.Settings{})
	if len(found.Warnings) == 0 {
		t.Fatalf("no warning: %+v", found)
	}
	for _, warning := range found.Warnings {
		if strings.Contains(warning, "preflight-") || !strings.HasSuffix(warning, "currently refuses the pod: no token") {
			t.Errorf("the warning is %q", warning)
		}
	}
}

// TestUnknownPriorityClass: a refusal names the classes that a user may choose, since the roles for users include no right to list them.
func TestUnknownPriorityClass(t *testing.T) {
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf("c%02d", i))
	}
	for name, test := range map[string]struct {
		classes []string
		err     error
		want    string
	}{
		"some":         {classes: []string{"high", "batch", "system-node-critical"}, want: "those that exist: batch, high"},
		"many":         {classes: many, want: "those that exist: c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 2 more"},
		"none of ours": {classes: []string{"system-node-critical"}, want: "the cluster has none for jobs, so leave it out"},
		"unknown":      {err: errors.New("down"), want: "ask the cluster administrator which ones exist"},
	} {
		t.Run(name, func(t *testing.T) {
			var classes []client.Object
			for _, class := range test.classes {
				classes = append(classes, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}})
			}
			api := mpitest.FakeAPI().WithObjects(classes...).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return apierrors.NewForbidden(corev1.Resource("pods"), "preflight-", errors.New("no PriorityClass with name nosuch was found"))
				},
				List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if _, isClasses := list.(*metav1.PartialObjectMetadataList); isClasses && test.err != nil {
						return test.err
					}
					return api.List(ctx, list, options...)
				},
			}).Build()
			found := cluster.New(api, api, nil, clock.RealClock{}).Preflight(t.Context(), mpitest.Job(2), plan.Settings{})
			if len(found.Refused) == 0 {
				t.Fatalf("it is not refused: %+v", found)
			}
			if got, want := found.Refused[0].Detail, "priority class does not exist; "+test.want; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestPreflightOfGatedPods: a job whose pods name their node is not refused because Kueue gates the pod of the dry run, which belongs to no
// job. One whose template has gates itself is.
func TestPreflightOfGatedPods(t *testing.T) {
	for name, gates := range map[string][]corev1.PodSchedulingGate{"Kueue's": nil, "its own": {{Name: "example.com/wait"}}} {
		t.Run(name, func(t *testing.T) {
			api := mpitest.FakeAPI().WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
					if pod, is := object.(*corev1.Pod); is && pod.Spec.NodeName != "" {
						at := field.NewPath("spec", "nodeName")
						return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "preflight-", field.ErrorList{field.Forbidden(at, "cannot be set until all schedulingGates have been cleared")})
					}
					return nil
				},
			}).Build()
			job := mpitest.Job(2, func(j *mpi.Job) {
				for _, template := range []*corev1.PodTemplateSpec{&j.Launcher.Template, &j.Workers.Template} {
					template.Spec.NodeName, template.Spec.SchedulingGates = "node-1", gates
				}
			})
			found := cluster.New(api, api, nil, clock.RealClock{}).Preflight(t.Context(), job, plan.Settings{})
			if isRefused := len(found.Errs) > 0; isRefused != (len(gates) > 0) {
				t.Errorf("its errors are %v", found.Errs)
			}
		})
	}
}

// TestPreflightOfTrainJobs: what the user of a TrainJob makes invalid is an error at the user's field, once for both pods. What the runtime,
// a policy or Pod Security refuses is a warning. Volumes that Trainer adds are no error.
func TestPreflightOfTrainJobs(t *testing.T) {
	invalid := func(errs ...*field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "preflight-", errs)
	}
	at := field.NewPath("spec")
	tests := map[string]struct {
		answer         error
		errs, warnings string
	}{
		"valid": {},
		"the user's": {
			answer: invalid(field.Invalid(at.Child("containers").Index(0).Child("env").Index(0).Child("name"), "A=B", "must not contain '='")),
			errs:   `spec.trainer.env[0].name: Invalid value: "A=B": must not contain '='`,
		},
		"the runtime's": {
			answer:   invalid(field.Required(at.Child("containers").Index(0).Child("image"), "")),
			warnings: "spec.runtimeRef.name: the API server refuses the pods of the runtime mpi with this job, so that it may not start: spec.containers[0].image: Required value",
		},
		"a policy's": {
			answer:   &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: "no"}}}}},
			warnings: "spec.runtimeRef.name: the API server refuses the pods of the runtime mpi with this job, so that it may not start: no",
		},
		"Pod Security": {
			answer:   apierrors.NewForbidden(corev1.Resource("pods"), "preflight-", errors.New("violates PodSecurity")),
			warnings: "spec.trainer: the API server currently refuses the pod: violates PodSecurity",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			api := mpitest.FakeAPI().WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
					pod := object.(*corev1.Pod)
					var volumes []string
					for _, volume := range pod.Spec.Volumes {
						volumes = append(volumes, volume.Name)
					}
					if !slices.Contains(volumes, "mpi-hostfile") || !slices.Contains(volumes, "mpi-ssh-auth") {
						t.Errorf("the pod has the volumes %q, without Trainer's", volumes)
					}
					return test.answer
				},
			}).Build()
			job := mpitest.Job(2, func(j *mpi.Job) {
				j.External, j.Runtime = true, "mpi"
				j.Fields.WorkerTemplate, j.Fields.Launch = at.Child("trainer"), at.Child("runtimeRef")
			})
			fieldOf := func(_ mpi.Role, path string) string {
				if path == "spec.containers[0].env[0].name" {
					return "spec.trainer.env[0].name"
				}
				return ""
			}
			found := cluster.New(api, api, nil, clock.RealClock{}).PreflightTrainJob(t.Context(), job, true, fieldOf)
			var errs []string
			for _, err := range found.Errs {
				errs = append(errs, err.Error())
			}
			if got := strings.Join(errs, "; "); got != test.errs {
				t.Errorf("the errors are %q, want %q", got, test.errs)
			}
			if got := strings.Join(found.Warnings, "; "); got != test.warnings {
				t.Errorf("the warnings are %q, want %q", got, test.warnings)
			}
		})
	}
}

// TestPreflightFailsOpen: where quotas cannot be read, or not in time, nothing is said of them.
func TestPreflightFailsOpen(t *testing.T) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "team"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")},
	}}
	tests := map[string]struct {
		list  func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error
		short int
	}{
		"quotas can be read": {short: 1},
		"they cannot": {list: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("forbidden")
		}},
		"LimitRanges cannot": {list: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*corev1.LimitRangeList); is {
				return errors.New("forbidden")
			}
			return c.List(ctx, list, options...)
		}},
		"nobody answers": {list: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			<-ctx.Done()
			return ctx.Err()
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := mpitest.FakeAPI().WithObjects(quota.DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{List: test.list}).Build()
				start := time.Now()
				found := cluster.New(api, api, nil, clock.RealClock{}).Preflight(t.Context(), mpitest.Job(2), plan.Settings{})
				if len(found.Short) != test.short || len(found.Errs)+len(found.Refused)+len(found.Warnings) > 0 {
					t.Errorf("it says %+v", found)
				}
				if took := time.Since(start); took >= 5*time.Second {
					t.Errorf("it took %s, and the API server waits 5s", took)
				}
			})
		})
	}
}
