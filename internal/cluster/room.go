package cluster

import (
	"context"

	"opendatahub.io/mpijob/internal/mpi"
)

// Nodes are all of the cluster's and what is free on them, as they were a few seconds ago at most; nil where they cannot
// be read, or are too many.
func (g *Gatherer) Nodes(ctx context.Context) []mpi.Node {
	nodes, left := g.room(ctx)
	if left > 0 {
		return nil
	}
	return nodes
}
