package diagnose

import (
	"regexp"
	"strings"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

var (
	// driverTooOld and driverMissing are what NVIDIA's container runtime reports (libnvidia-container/src/cli).
	driverTooOld  = regexp.MustCompile(`nvidia-container-cli: requirement error: unsatisfied condition: ([^,\s]+)`)
	driverMissing = regexp.MustCompile(`nvidia-container-cli: (?:initialization|detection) error: ([^,\n]+)`)
	// profileMissing is what containerd and CRI-O report of a seccomp profile that the node lacks.
	profileMissing = regexp.MustCompile(`seccomp.*?\bopen ([^:\s]+): no such file or directory`)
	// deviceMissing is what containerd and runc report of a device that the node lacks.
	deviceMissing = regexp.MustCompile(`(?:custom device|device) "?(/dev/[^"\s:]+)"?:? .*no such file or directory`)
)

// nodeLacks returns the definition for a container of a role that the container runtime did not start because of what the node lacks, and adds
// figures for it; is is false if the message is about something else.
func (p *input) nodeLacks(role mpi.Role, message string, figures map[string]string) (entry codes.Entry, is bool) {
	for _, lack := range []struct {
		reported *regexp.Regexp
		figure   string
		entry    codes.Entry
	}{
		{driverTooOld, "wanted", codes.DriverTooOld},
		{driverMissing, "reason", codes.NodeWithoutDriver},
		{profileMissing, "file", codes.SeccompProfileMissing},
		{deviceMissing, "file", codes.DeviceGone},
	} {
		if found := lack.reported.FindStringSubmatch(message); found != nil {
			figures[lack.figure] = quotedText(strings.TrimSuffix(found[1], ": unknown"))
			if last := len(lack.entry.Remedies) - 1; lack.reported == driverMissing && p.Gpus(role) > 0 {
				lack.entry.Remedies = lack.entry.Remedies[last:]
			} else if lack.reported == driverMissing {
				lack.entry.Remedies = lack.entry.Remedies[:last]
			}
			return lack.entry, true
		}
	}
	return codes.Entry{}, false
}
