// Package jobs is the library under every interface to MPI jobs: the command line and the dashboard find, create, change,
// compare, suspend and delete jobs through it. It uses neither flags nor HTTP, and acts with its caller's credentials.
//
// Client has the calls that need a cluster; everything else is a function of values. Each behaviour is a file. Results are
// values, and errors are typed (errors.go), so that an interface adds only its own next step, such as a command.
package jobs

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// Client acts for one user.
type Client struct {
	api       client.WithWatch
	discovery discovery.ServerResourcesInterface
	// rest reads tables; nil: none are read.
	rest rest.Interface
	now  func() time.Time
}

// NewClient returns a client that acts with the credentials of an API client. Discovery tells an API that is not installed
// from one that the user may not read; without it (nil) both count as forbidden.
func NewClient(api client.WithWatch, resources discovery.ServerResourcesInterface, now func() time.Time) *Client {
	return &Client{api: api, discovery: resources, now: now}
}

// Job is a job of any kind with its report.
type Job struct {
	Kind, Namespace, Name string
	UID                   types.UID
	// Object is the job in the cluster; nil if the job is deleted and only its report is left.
	Object *unstructured.Unstructured
	// Report is the job's JobReport; nil if the operator has not written one, or the user may not read it.
	Report *v1alpha1.JobReport
}

// FromObject returns the job of an object, without a report.
func FromObject(object *unstructured.Unstructured) Job {
	return Job{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), Object: object}
}

// FromReport returns the deleted job of a report.
func FromReport(report *v1alpha1.JobReport) Job {
	ref := report.Spec.JobRef
	return Job{Kind: ref.Kind, Namespace: report.Namespace, Name: ref.Name, UID: ref.UID, Report: report}
}

// String returns the job's reference, such as mpijob/pi.
func (j Job) String() string { return strings.ToLower(j.Kind) + "/" + j.Name }

// Status returns the report's status; the zero value without a report.
func (j Job) Status() v1alpha1.JobReportStatus {
	if j.Report == nil {
		return v1alpha1.JobReportStatus{}
	}
	return j.Report.Status
}

// Phase returns the phase in the job's report; empty without a report.
func (j Job) Phase() v1alpha1.Phase { return j.Status().Phase }

// Suspended reports whether the job's own field suspends it.
func (j Job) Suspended() bool {
	if j.Object == nil {
		return false
	}
	suspended, _, _ := unstructured.NestedBool(j.Object.Object, editorFor(j.Kind).SuspendPath()...)
	return suspended
}

// Ended reports whether the job is over: by its report or, without one, by its own conditions.
func (j Job) Ended() bool {
	if j.Report != nil {
		return j.Report.Status.CompletionTime != nil
	}
	return j.Object != nil && j.HasFinalCondition()
}

// HasFinalCondition reports whether the job has succeeded or failed according to its own conditions.
func (j Job) HasFinalCondition() bool {
	conditions, _, _ := unstructured.NestedSlice(j.Object.Object, "status", "conditions")
	for _, entry := range conditions {
		if condition, is := entry.(map[string]any); is && condition["status"] == "True" {
			switch condition["type"] {
			case "Succeeded", "Failed", "Complete":
				return true
			}
		}
	}
	return false
}

// gvk returns the kind of the job's object.
func (j Job) gvk() schema.GroupVersionKind { return editorFor(j.Kind).GroupVersionKind() }
