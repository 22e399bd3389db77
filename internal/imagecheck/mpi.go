package imagecheck

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
)

// MPI is an MPI library or launcher of an image.
type MPI struct {
	Implementation mpi.Implementation `json:"implementation"`
	// Name is the implementation with its version, as far as it is known, such as "Open MPI 5.0.7".
	Name string `json:"name"`
	// Version may be empty, or only have its first numbers.
	Version string `json:"version,omitempty"`
	// ABI is the name by which programs load the library, such as libmpi.so.40.
	ABI string `json:"abi,omitempty"`
	// Folders are those of the libraries, and Launchers the programs that start ranks.
	Folders   []string `json:"folders,omitempty"`
	Launchers []string `json:"launchers,omitempty"`
}

var implementationNames = map[mpi.Implementation]string{mpi.OpenMPI: "Open MPI", mpi.MPICH: "MPICH", mpi.IntelMPI: "Intel MPI"}

// versionPattern is what versions of an implementation look like, among those that its files contain.
var versionPattern = map[mpi.Implementation]*regexp.Regexp{
	mpi.OpenMPI:  regexp.MustCompile(`^[1-9]\.\d+\.\d+`),
	mpi.MPICH:    regexp.MustCompile(`^[3-9]\.\d+(\.\d+)?([abp]|rc|$)`),
	mpi.IntelMPI: regexp.MustCompile(`^20[12]\d\.\d+`),
}

// openMPISeries maps versions of libmpi.so of Open MPI to releases. Its VERSION file has the numbers for libtool.
var openMPISeries = []struct{ library, release string }{
	{"40.40.", "5.0."}, {"40.30.", "4.1."}, {"40.20.", "4.0."}, {"40.10.", "3.1."}, {"40.0.", "3.0."}, {"20.", "2."},
}

// findMPI returns what an image has of MPI, by implementation and version.
func findMPI(c *Contents) []MPI {
	var all []MPI
	c.each("/", func(name string, n *node) {
		base := path.Base(name)
		if n.isDir() || !mpiLibrary.MatchString(base) && !isMPILauncher(base) {
			return
		}
		file, reached := c.walkTo(name, true)
		switch {
		case file == nil || file.isDir():
		case mpiLibrary.MatchString(base):
			if one, known := libraryOf(c, base, reached, file); known {
				all = merge(all, one)
			}
		case file.mode&0o111 != 0:
			if one, known := launcherOf(c, reached, file); known {
				if path.Dir(name) != "/etc/alternatives" {
					one.Launchers = []string{name}
				}
				all = merge(all, one)
			}
		}
	})
	return joinUnversioned(all)
}

// joinUnversioned adds a launcher without a version of its own to the library that it belongs to, and names each MPI.
func joinUnversioned(all []MPI) []MPI {
	var found []MPI
	for _, one := range all {
		if one.Version != "" {
			found = append(found, one)
		}
	}
	for _, one := range all {
		if one.Version != "" {
			continue
		}
		if i := slices.IndexFunc(found, func(other MPI) bool { return other.Implementation == one.Implementation }); i >= 0 {
			found[i] = join(found[i], one)
		} else {
			found = append(found, one)
		}
	}
	for i := range found {
		found[i].Name = strings.TrimSpace(implementationNames[found[i].Implementation] + " " + found[i].Version)
	}
	return found
}

// merge adds what one file shows.
func merge(all []MPI, one MPI) []MPI {
	for i, other := range all {
		if other.Implementation == one.Implementation && other.Version == one.Version {
			all[i] = join(other, one)
			return all
		}
	}
	if len(all) == maxFound {
		return all
	}
	return append(all, one)
}

// maxFound is how many of a kind are listed. An image may contain anything.
const maxFound = 16

func join(a, b MPI) MPI {
	a.ABI = cmp.Or(a.ABI, b.ABI)
	a.Folders = union(a.Folders, b.Folders)
	a.Launchers = union(a.Launchers, b.Launchers)
	return a
}

func union(a, b []string) []string {
	for _, text := range b {
		if !slices.Contains(a, text) && len(a) < maxFound {
			a = append(a, text)
		}
	}
	return a
}

// libraryOf returns the MPI that a library is part of. reached is the file to which its name leads.
func libraryOf(c *Contents, base, reached string, file *node) (MPI, bool) {
	_, number, _ := strings.Cut(base, ".so")
	major, _, _ := strings.Cut(strings.TrimPrefix(number, "."), ".")
	folder := path.Dir(reached)
	one := MPI{Folders: []string{folder}}
	switch {
	case strings.HasPrefix(base, "libmpi_abi"):
		return MPI{}, false
	case versionOf(mpi.IntelMPI, file.tokens) != "":
		one.Implementation = mpi.IntelMPI
	case strings.HasPrefix(base, "libmpich"), major == "12" && !hasOpenMPIPart(c, folder):
		one.Implementation = mpi.MPICH
	case major == "20", major == "40", hasOpenMPIPart(c, folder):
		one.Implementation = mpi.OpenMPI
	default:
		// A name without a number says nothing: the same folder has the one that programs load.
		return MPI{}, false
	}
	if major != "" {
		one.ABI = "libmpi.so." + major
	}
	one.Version = versionOf(one.Implementation, file.tokens)
	if one.Implementation == mpi.OpenMPI {
		one.Version = openMPIVersion(path.Base(reached), file.tokens)
	}
	return one, true
}

// hasOpenMPIPart reports whether a folder has one of the other libraries of Open MPI.
func hasOpenMPIPart(c *Contents, folder string) bool {
	at := c.find(folder, true)
	if at == nil {
		return false
	}
	for name := range at.children {
		if openMPIPart.MatchString(name) {
			return true
		}
	}
	return false
}

// versionOf returns the version of an implementation among tokens, or "".
func versionOf(implementation mpi.Implementation, tokens []string) string {
	for _, token := range tokens {
		if versionPattern[implementation].MatchString(token) && !strings.HasPrefix(token, "lib") {
			return token
		}
	}
	return ""
}

// openMPIVersion returns the version of Open MPI of a library: that which it contains, if its name confirms it, else what the
// name shows.
func openMPIVersion(base string, tokens []string) string {
	_, number, _ := strings.Cut(base, ".so.")
	for _, series := range openMPISeries {
		if !strings.HasPrefix(number, series.library) {
			continue
		}
		for _, token := range tokens {
			if strings.HasPrefix(token, series.release) {
				return token
			}
		}
		return strings.TrimSuffix(series.release, ".")
	}
	return versionOf(mpi.OpenMPI, tokens)
}

// launcherOf returns the MPI that a launcher belongs to: by its version, by the name of the file to which it leads, or by the
// programs in its folder.
func launcherOf(c *Contents, reached string, file *node) (MPI, bool) {
	base, folder := path.Base(reached), path.Dir(reached)
	inFolder := func(name string) bool { return c.find(folder+"/"+name, true) != nil }
	kind := mpi.Implementation("")
	switch {
	case versionOf(mpi.IntelMPI, file.tokens) != "":
		kind = mpi.IntelMPI
	case strings.Contains(base, "openmpi"), base == "orterun", base == "prterun", base == "prte":
		kind = mpi.OpenMPI
	case strings.Contains(base, "mpich"):
		kind = mpi.MPICH
	case inFolder("hydra_bstrap_proxy"):
		kind = mpi.IntelMPI
	case strings.Contains(base, "hydra"), inFolder("hydra_pmi_proxy"):
		kind = mpi.MPICH
	case inFolder("orted"), inFolder("prted"), inFolder("orterun"), inFolder("prterun"):
		kind = mpi.OpenMPI
	default:
		return MPI{}, false
	}
	one := MPI{Implementation: kind}
	if kind != mpi.OpenMPI {
		one.Version = versionOf(kind, file.tokens)
	}
	return one, true
}
