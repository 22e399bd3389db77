// Package conformance runs the integration tests of mpi-operator, unmodified, against this repository's operator:
// who passes the tests of the operator that it replaces is a drop-in for it.
//
//	export KUBEBUILDER_ASSETS=<a folder with kube-apiserver, etcd and kubectl>
//	go test -v -count=1 ./...
//
// Those tests start a controller within their process, by the constructor in mpi-operator's package pkg/controller,
// and play kubelet and batch Job controller against a real API server. So its module is copied from the module
// cache to a temporary folder, in the version whose types the operator is built with; there, package controller of
// this folder takes the place of that one package; and the tests, which are not touched, thereby start the operator
// as the program that is shipped, with the rights that config/rbac gives it. Nothing of mpi-operator is kept in
// this repository.
//
// Its unit tests do not apply: they test functions and fields that only that implementation has.
package conformance
