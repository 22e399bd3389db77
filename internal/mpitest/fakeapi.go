package mpitest

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// FakeAPI builds a fake client for objects of the built-in kinds, and of others without a Go type (unstructured).
// Its scheme is its own: a fake client adds such kinds to its scheme, and parallel tests that share the global one race.
func FakeAPI() *fake.ClientBuilder {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	return fake.NewClientBuilder().WithScheme(scheme)
}
