package facts

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/podspec"
)

// Room is what the machines that can be used have of a resource.
type Room struct {
	// with is how many have any; enough is how many have free what is asked for.
	With, Enough int
	// free is the most that is free on one, on freest; total is the most that one has in all, largest.
	Free, Total     resource.Quantity
	Freest, Largest string
}

// RoomFor returns what the nodes have of a resource of which a pod asks for an amount.
func (f *Facts) RoomFor(name corev1.ResourceName, ask resource.Quantity) Room {
	var r Room
	for _, node := range f.Evidence.Nodes {
		free, total := node.Free[name], node.Allocatable[name]
		if !node.Ready || node.Unschedulable || total.IsZero() {
			continue
		}
		r.With++
		if free.Cmp(ask) >= 0 {
			r.Enough++
		}
		if r.Freest == "" || free.Cmp(r.Free) > 0 {
			r.Free, r.Freest = free, node.Name
		}
		if r.Largest == "" || total.Cmp(r.Total) > 0 {
			r.Total, r.Largest = total, node.Name
		}
	}
	return r
}

// LargestNode returns the memory that pods can have on the largest node, in bytes; 0 if the nodes are unknown.
func (f *Facts) LargestNode() (largest int64) {
	if f.Evidence.NodesLeft > 0 {
		return 0
	}
	for _, node := range f.Evidence.Nodes {
		if memory := node.Allocatable[corev1.ResourceMemory]; memory.Value() > largest {
			largest = memory.Value()
		}
	}
	return largest
}

// RdmaOffers are the RDMA resources that machines have, each with how many.
func (f *Facts) RdmaOffers() []string {
	all := corev1.ResourceList{}
	for _, node := range f.Evidence.Nodes {
		for name, quantity := range node.Allocatable {
			if podspec.IsRDMA(name) && !quantity.IsZero() && node.Ready && !node.Unschedulable {
				all[name] = quantity
			}
		}
	}
	var offers []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		offers = append(offers, fmt.Sprintf("%s (%d nodes)", name, f.RoomFor(name, all[name]).With))
	}
	return offers
}
