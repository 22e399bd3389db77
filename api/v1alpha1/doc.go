// Package v1alpha1 contains the types of the API group mpi.opendatahub.io/v1alpha1: JobReport and RuntimeTest. It
// contains no logic.
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

// SchemeBuilder registers the types of this package in a scheme.
var SchemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &JobReport{}, &JobReportList{}, &RuntimeTest{}, &RuntimeTestList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
})

// AddToScheme adds the types of this package to a scheme.
var AddToScheme = SchemeBuilder.AddToScheme
