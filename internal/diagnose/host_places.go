package diagnose

import (
	"fmt"
	"strings"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
)

// rankfileSettings are the parameters of Open MPI by which it finds a rankfile.
var rankfileSettings = []string{"rmaps_rank_file_path", "orte_rankfile", "rmaps_rankfile_path"}

// placedEntry returns the definition for a host that a file or the command names by its place, such as +n0, and adds figures for it; entry if it is
// about something else.
func (p *input) placedEntry(entry codes.Entry, figures map[string]string) codes.Entry {
	switch entry.Summary {
	case codes.HostByPlace.Summary, codes.PlaceBeyondHosts.Summary, codes.PlaceInvalid.Summary, codes.EmptyHostsMissing.Summary:
	default:
		return entry
	}
	if hosts := p.Job.Hosts(""); len(hosts) > 0 {
		figures["host"], figures["hostPlaces"] = hosts[0].Name, "+n0"
		if last := len(hosts) - 1; last > 0 {
			figures["hostPlaces"] = fmt.Sprintf("+n0 to +n%d", last)
		}
	}
	if place := figures["option"]; mpi.IsNumber(place) && !strings.HasPrefix(place, "+") {
		figures["option"] = "+n" + place
	}
	if entry.Summary == codes.HostByPlace.Summary && p.usesRankfile() {
		return codes.RankByPlace
	}
	return entry
}

// usesRankfile reports whether the launcher's command or a variable of it names a rankfile.
func (p *input) usesRankfile() bool {
	command := p.LauncherCommand()
	if rankfileOptions.MatchString(command) || anyIn(command, rankfileSettings...) {
		return true
	}
	for _, name := range rankfileSettings {
		if roles, _ := p.setters("OMPI_MCA_" + name); len(roles) > 0 {
			return true
		}
	}
	return false
}
