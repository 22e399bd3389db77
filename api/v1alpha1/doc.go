// Package v1alpha1 is our own API, mpi.opendatahub.io/v1alpha1: JobReports and RuntimeTests. Types and markers, no
// logic.
//
// +kubebuilder:object:generate=true
// +groupName=mpi.opendatahub.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of this package's types.
var GroupVersion = schema.GroupVersion{Group: "mpi.opendatahub.io", Version: "v1alpha1"}

// SchemeBuilder collects what AddToScheme adds.
var SchemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &JobReport{}, &JobReportList{}, &RuntimeTest{}, &RuntimeTestList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
})

// AddToScheme makes a scheme know this package's types.
var AddToScheme = SchemeBuilder.AddToScheme
