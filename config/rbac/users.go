// Package rbac holds the roles for users that the manifests in this folder install.
package rbac

import _ "embed"

// Users is users.yaml: the ClusterRoles mpijob-viewer, mpijob-user and mpijob-admin, from the smallest to the largest.
//
//go:embed users.yaml
var Users []byte
