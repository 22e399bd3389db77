package quota

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
)

// CheckQuota judges a new job by what quotas lack for it as a whole. What can never run is an error at the field that
// makes the job so large. What has no room now is an error too, of those that may pass, unless the job is to wait anyway:
// then it is a warning.
func CheckQuota(j mpi.Job, short []Shortage) (never, full field.ErrorList, warnings []string) {
	impossible, now := SplitShortages(short)
	if len(impossible) > 0 {
		detail := fmt.Sprintf("the job exceeds the quota of namespace %s even when unused: %s; %s",
			j.Namespace, ShortageText(impossible), advise(fitting(j, impossible, func(s Shortage) resource.Quantity { return s.Hard }), impossible, "ask the cluster administrator for a larger quota"))
		never = field.ErrorList{tooLarge(j, impossible, detail)}
	}
	if len(now) == 0 {
		return never, nil, nil
	}
	if j.WaitsForQuota() || j.Lifecycle.Suspended {
		return never, nil, []string{fmt.Sprintf("the job waits for quota in namespace %s: %s", j.Namespace, ShortageText(now))}
	}
	wait := "the queue label " + mpi.LabelQueue
	if j.ControlsPods() {
		wait = fmt.Sprintf("the annotation %s: \"true\" or %s", mpi.AnnotationWaitForQuota, wait)
	}
	detail := fmt.Sprintf("exceeded quota: %s; %s. To let the job wait, set %s",
		ShortageText(now), advise(fitting(j, now, Shortage.Free), now, fmt.Sprintf("wait until other workloads in namespace %s end", j.Namespace)), wait)
	return never, field.ErrorList{tooLarge(j, now, detail)}, nil
}

// tooLarge is an error at what makes the job ask for so much.
func tooLarge(j mpi.Job, short []Shortage, detail string) *field.Error {
	asks := func(role mpi.Role) bool {
		return slices.ContainsFunc(short, func(s Shortage) bool {
			return slices.ContainsFunc(s.By, func(share Share) bool { return share.Role == role })
		})
	}
	switch {
	case asks(mpi.RoleWorker):
		n, _ := asWritten(j, j.Workers.Count)
		return field.Invalid(j.Fields.WorkerCount, n, detail)
	case asks(mpi.RoleLauncher):
		return field.Forbidden(j.Fields.LauncherTemplate, detail)
	}
	return field.Forbidden(j.Fields.Name, detail)
}
