// Package cluster tests the Helm chart with Helm's own code: on an API server without nodes, and on a real cluster.
package cluster
