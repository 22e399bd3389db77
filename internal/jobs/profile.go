package jobs

import (
	"fmt"
	"strings"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
)

// ProfileText describes in a line where the time of a job's ranks went; "" if it is unknown.
func ProfileText(profile *v1alpha1.Profile) string {
	if profile == nil {
		return ""
	}
	parts := []string{fmt.Sprintf("%d %% of the time in MPI", profile.CommunicationPercent)}
	if len(profile.Calls) > 0 {
		parts[0] += ", most of it in " + profile.Calls[0].Call
	}
	if profile.ImbalancePercent >= noticedImbalance {
		parts = append(parts, fmt.Sprintf("imbalance %d %%", profile.ImbalancePercent))
	}
	if late := LateRankText(profile); late != "" {
		parts = append(parts, late)
	}
	return strings.Join(parts, "; ")
}

// noticedImbalance is the imbalance in percent from which it is worth a mention in a line.
const noticedImbalance = 10

// LateRankText describes the rank that the others wait for; "" if there is none.
func LateRankText(profile *v1alpha1.Profile) string {
	late := profile.LateRank
	if late == nil {
		return ""
	}
	return fmt.Sprintf("the others wait for rank %d: they were in MPI for %s more", late.Rank, TimeText(late.WaitedMilliseconds))
}

// NoProfileText returns why the report of a job has no profile; "" if it has.
func NoProfileText(job Job, now time.Time) string {
	status := job.Status()
	if status.Profile != nil {
		return ""
	}
	for _, finding := range status.Findings {
		if finding.Code == codes.ProfileMissing {
			return finding.Summary
		}
	}
	if without := NoUsageText(status, now); without != "" {
		return "The job has no communication profile. Profiles are reported with the usage. " + without
	}
	return "The job has no communication profile: create it with --profile, or with the annotation mpi.opendatahub.io/profile."
}

// TimeText returns a time in milliseconds with three digits and a unit.
func TimeText(milliseconds int64) string {
	switch seconds := float64(milliseconds) / 1000; {
	case milliseconds < 1000:
		return fmt.Sprintf("%d ms", milliseconds)
	case seconds < 10:
		return fmt.Sprintf("%.2f s", seconds)
	case seconds < 100:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%.0f s", seconds)
	default:
		return fmt.Sprintf("%.1f h", seconds/3600)
	}
}

// BytesText returns a size with its unit, rounded to three digits.
func BytesText(bytes int64) string {
	size, units := float64(bytes), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for size >= 1000 && len(units) > 1 {
		size, units = size/1024, units[1:]
	}
	return fmt.Sprintf("%.3g %s", size, units[0])
}

// MessageSizeRows are the sizes of messages that occur: the range of each, the number of calls, and their share in percent.
func MessageSizeRows(profile *v1alpha1.Profile) (rows [][3]string) {
	total, from := int64(0), ""
	for _, sizes := range profile.MessageSizes {
		total += sizes.Count
	}
	for _, sizes := range profile.MessageSizes {
		name := "over " + from
		if sizes.UpToBytes != nil {
			from = BytesText(*sizes.UpToBytes)
			name = "up to " + from
		}
		if sizes.Count > 0 {
			rows = append(rows, [3]string{name, fmt.Sprint(sizes.Count), fmt.Sprintf("%.0f %%", 100*float64(sizes.Count)/float64(total))})
		}
	}
	return rows
}
