// Package runtimes holds the runtimes that the manifests in this folder install.
package runtimes

import _ "embed"

// Shipped is shipped.yaml: the ClusterTrainingRuntimes of the folder openshift, as kustomize builds them. make generate writes it.
//
//go:embed shipped.yaml
var Shipped []byte
