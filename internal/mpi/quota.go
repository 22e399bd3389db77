package mpi

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// AnnotationWaitForQuota on a job, with the value "true", has it wait while the namespace's quota has no room for all of
// its pods; without it such a job is refused when it is created.
const AnnotationWaitForQuota = Group + "/wait-for-quota"

// waitForQuotaPath is where users write it.
var waitForQuotaPath = field.NewPath("metadata", "annotations").Key(AnnotationWaitForQuota)

// WaitForQuota reads AnnotationWaitForQuota.
func WaitForQuota(annotations map[string]string) (bool, field.ErrorList) {
	switch text, set := annotations[AnnotationWaitForQuota]; {
	case !set, text == "false":
		return false, nil
	case text == "true":
		return true, nil
	default:
		return false, field.ErrorList{field.NotSupported(waitForQuotaPath, text, []string{"true", "false"})}
	}
}

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
	Role  Role
	Count int64
	Each  resource.Quantity
}

// Never tells whether waiting does not help: the quota as a whole is too small.
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

// String says the shortage in words, with all figures.
func (s Shortage) String() string {
	text := fmt.Sprintf("%s %s", s.Asked.String(), s.Resource)
	if by := s.by(); by != "" {
		text += " (" + by + ")"
	}
	if s.Never() {
		return text + fmt.Sprintf(", and quota %s allows %s in all", s.Quota, s.Hard.String())
	}
	free := s.Free()
	text += fmt.Sprintf(", and of the %s that quota %s allows %s are in use", s.Hard.String(), s.Quota, s.Used.String())
	if !s.Ahead.IsZero() {
		text += fmt.Sprintf(", %s are for jobs that came before", s.Ahead.String())
	}
	return text + fmt.Sprintf(", %s free", free.String())
}

func (s Shortage) by() string {
	var parts []string
	for _, share := range s.By {
		switch {
		case share.Role == RoleLauncher && s.Resource == corev1.ResourcePods:
			parts = append(parts, "the launcher")
		case share.Role == RoleLauncher:
			parts = append(parts, fmt.Sprintf("the launcher with %s", share.Each.String()))
		case s.Resource == corev1.ResourcePods:
			parts = append(parts, count(int32(share.Count), "worker"))
		case share.Count == 1:
			parts = append(parts, fmt.Sprintf("1 worker with %s", share.Each.String()))
		default:
			parts = append(parts, fmt.Sprintf("%d workers with %s each", share.Count, share.Each.String()))
		}
	}
	return strings.Join(parts, " and ")
}

// workers is how many workers would fit into so much of the resource; false where no worker asks for it.
func (s Shortage) workers(room resource.Quantity) (int64, bool) {
	i := slices.IndexFunc(s.By, func(share Share) bool { return share.Role == RoleWorker })
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

// fitting says how many workers would fit into the room that there is of each: "use at most 16 workers, ", or nothing
// where fewer workers alone do not help.
func (j Job) fitting(short []Shortage, room func(Shortage) resource.Quantity) string {
	most := int64(-1)
	for _, s := range short {
		n, workers := s.workers(room(s))
		switch {
		case !workers:
			return ""
		case most < 0 || n < most:
			most = n
		}
	}
	if most <= 0 {
		return ""
	}
	n, thing := j.asWritten(int32(most))
	return "use at most " + count(n, thing) + ", "
}

// asWritten is a number of workers as users write it, and what they call them: a TrainJob's launcher may be one of its
// nodes.
func (j Job) asWritten(workers int32) (int32, string) {
	switch {
	case j.Names.PodLabel == "":
		return workers, "worker"
	case j.Launcher.RunsRanks:
		return workers + 1, "node"
	}
	return workers, "node"
}

// ShortageText says all that is short, in one sentence's middle.
func ShortageText(short []Shortage) string {
	texts := make([]string, len(short))
	for i, s := range short {
		texts[i] = s.String()
	}
	return strings.Join(texts, "; ")
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

// CheckQuota judges a new job by what quotas lack for it as a whole. What can never run is an error at the field that
// makes the job so large. What has no room now is an error too, of those that may pass, unless the job is to wait anyway:
// then it is a warning.
func CheckQuota(j Job, short []Shortage) (never, full field.ErrorList, warnings []string) {
	impossible, now := SplitShortages(short)
	if len(impossible) > 0 {
		detail := fmt.Sprintf("the job could never run, since it asks for more than the namespace %s may have: %s; %sask for less in each pod, or ask whoever runs the cluster for a larger quota",
			j.Namespace, ShortageText(impossible), j.fitting(impossible, func(s Shortage) resource.Quantity { return s.Hard }))
		never = field.ErrorList{j.tooLarge(impossible, detail)}
	}
	if len(now) == 0 {
		return never, nil, nil
	}
	if j.WaitsForQuota() || j.Lifecycle.Suspended {
		return never, nil, []string{fmt.Sprintf("the quota of the namespace %s has no room for the job now, so it has to wait: it asks for %s", j.Namespace, ShortageText(now))}
	}
	detail := fmt.Sprintf("exceeded quota: the job asks for %s; %sask for less in each pod, or wait until other work in the namespace %s has ended. "+
		"To have the job wait by itself, give it the annotation %s: \"true\" or the label of a queue (%s)",
		ShortageText(now), j.fitting(now, Shortage.Free), j.Namespace, AnnotationWaitForQuota, LabelQueue)
	return never, field.ErrorList{j.tooLarge(now, detail)}, nil
}

// tooLarge is an error at what makes the job ask for so much.
func (j Job) tooLarge(short []Shortage, detail string) *field.Error {
	asks := func(role Role) bool {
		return slices.ContainsFunc(short, func(s Shortage) bool {
			return slices.ContainsFunc(s.By, func(share Share) bool { return share.Role == role })
		})
	}
	switch {
	case asks(RoleWorker):
		n, _ := j.asWritten(j.Workers.Count)
		return field.Invalid(j.Fields.WorkerCount, n, detail)
	case asks(RoleLauncher):
		return field.Forbidden(j.Fields.LauncherTemplate, detail)
	}
	return field.Forbidden(j.Fields.Name, detail)
}

// WaitsForQuota tells whether a job is taken although its namespace's quota has no room for it now: because it says so,
// or waits for other things in any case.
func (j Job) WaitsForQuota() bool { return j.WaitForQuota || j.Queue != "" || j.Gang.Wanted }

// heldByQuota tells whether no pods of a job may be made now, since not all would be taken.
func (j Job) heldByQuota(o Observed) bool {
	// The pods of a TrainJob are made elsewhere.
	return len(o.Shortages) > 0 && !j.Lifecycle.Suspended && j.Names.PodLabel == ""
}

func quotaText(j Job, short []Shortage) string {
	return fmt.Sprintf("Waiting until the quota of the namespace %s has room for the whole job, which asks for %s.", j.Namespace, ShortageText(short))
}

func anyNever(short []Shortage) bool { return slices.ContainsFunc(short, Shortage.Never) }

// WorkersAtOnce is how many workers a job cannot do without: all, unless it says how many of its pods are enough.
func (j Job) WorkersAtOnce() int32 {
	if j.Gang.MinAvailable == nil {
		return j.Workers.Count
	}
	others := int32(1)
	if j.Launcher.None || j.Launcher.AfterWorkers {
		others = 0
	}
	return min(max(j.GangSize()-others, 0), j.Workers.Count)
}
