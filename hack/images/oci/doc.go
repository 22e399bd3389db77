// Package oci writes container images as docker-archive files, without a
// container engine and without a registry.
//
// An archive is what "ctr -n k8s.io images import", "podman load" and
// "docker load" read. The same input gives the same bytes: times are the Unix
// epoch, entries are sorted, owners are numeric.
package oci
