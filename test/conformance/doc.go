// Package conformance runs the integration tests of mpi-operator, unmodified, against this repository's operator:
// an operator that passes the tests of another one is a drop-in replacement for it.
//
//	export KUBEBUILDER_ASSETS=<a folder with kube-apiserver, etcd and kubectl>
//	go test -v -count=1 ./...
//
// Those tests start a controller within their process, by the constructor in mpi-operator's package pkg/controller,
// and play kubelet and batch Job controller against a real API server. So its module is copied from the module
// cache to a temporary folder, in the version whose types the operator is built with; there, package controller of
// this folder replaces that one package; so the unchanged tests start the operator as the program that is
// shipped, with the rights that config/rbac gives it. No file of mpi-operator is kept in this repository.
//
// mpi-operator's unit tests do not apply: they test functions and fields of its own implementation.
package conformance
