package quota

import (
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/mpi"
)

// Shortage is a resource of which a job as a whole asks for more than a ResourceQuota of its namespace gives.
type Shortage struct {
	// Quota is the ResourceQuota's name; Resource is named as there, such as requests.nvidia.com/gpu or pods.
	Quota    string
	Resource corev1.ResourceName
	// Asked is what the job asks for; Hard is what the quota gives in all, Used what others have of it, and Ahead what jobs
	// that wait since before will have.
	Asked, Hard, Used, Ahead resource.Quantity
	// By are the pods that ask for it; none where it is other objects.
	By []Share
}

// Share is what some equal pods of a job ask for.
type Share struct {
	Role  mpi.Role
	Count int64
	Each  resource.Quantity
}

// Never reports whether waiting does not help: the quota as a whole is too small.
func (s Shortage) Never() bool { return s.Asked.Cmp(s.Hard) > 0 }

// Free is what the quota has left, 0 or more.
func (s Shortage) Free() resource.Quantity {
	free := s.Hard.DeepCopy()
	free.Sub(s.Used)
	if free.Sub(s.Ahead); free.Sign() < 0 {
		return resource.Quantity{Format: free.Format}
	}
	return free
}

// workers is how many workers would fit into so much of the resource; false where no worker asks for it.
func (s Shortage) workers(room resource.Quantity) (int64, bool) {
	i := slices.IndexFunc(s.By, func(share Share) bool { return share.Role == mpi.RoleWorker })
	if i < 0 {
		return 0, false
	}
	of := s.By[i]
	total := func(n int64) resource.Quantity {
		sum := of.Each.DeepCopy()
		sum.Mul(n - of.Count)
		sum.Add(s.Asked)
		return sum
	}
	return int64(sort.Search(int(of.Count), func(n int) bool {
		sum := total(int64(n) + 1)
		return sum.Cmp(room) > 0
	})), true
}

// SplitShortages are those for which waiting does not help, and the others.
func SplitShortages(short []Shortage) (never, now []Shortage) {
	for _, s := range short {
		if s.Never() {
			never = append(never, s)
		} else {
			now = append(now, s)
		}
	}
	return never, now
}

// AnyNever reports whether waiting does not help for any of the shortages.
func AnyNever(short []Shortage) bool { return slices.ContainsFunc(short, Shortage.Never) }

// Quota is a ResourceQuota, or a ClusterResourceQuota of OpenShift for several namespaces together (see ParseCluster). Its
// resources are named as there, such as requests.nvidia.com/gpu or pods.
type Quota struct {
	Name       string
	Hard, Used corev1.ResourceList
	// Scopes have to match all for a pod to count; none: every pod does.
	Scopes []corev1.ScopedResourceSelectorRequirement
}
