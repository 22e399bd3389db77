// Package sample builds the sample MPI images from Debian packages and the
// sources under images/samples.
package sample

import (
	"fmt"
	"slices"
	"strings"

	"opendatahub.io/mpijob/hack/images/oci"
)

// builderVersion is part of every cache key. Raise it when this package makes
// another image from the same inputs.
const builderVersion = 1

// A Sample is the recipe of one image. It is part of the cache key as a whole.
type Sample struct {
	// Name is what the command line calls it.
	Name string
	// About is one line for a list.
	About string
	// Reference is the image's name and tag. Pods use it with
	// imagePullPolicy IfNotPresent or Never: no registry has it.
	Reference string
	// Release is a Debian release.
	Release string
	// Packages stay in the image; BuildPackages are there while build.sh runs.
	Packages      []string
	BuildPackages []string
	// Folder under images/samples has build.sh, which runs as root inside the
	// image, and rootfs/, which is laid over it before.
	Folder string
	// Programs of images/samples go to /usr/local/bin, Sources to /build.
	Programs []string
	Sources  []string
	Config   oci.Config
}

// All returns the samples in the order of a list.
func All() []Sample {
	return []Sample{{
		Name:      "openmpi",
		About:     "Open MPI 4.1, Python with mpi4py and numpy, OpenSSH, pi and train.py",
		Reference: "odh/mpi-sample-openmpi:dev",
		Release:   "bookworm",
		Packages: []string{
			"libnss-extrausers", "openmpi-bin", "openssh-client", "openssh-server",
			"python3", "python3-mpi4py", "python3-numpy",
		},
		BuildPackages: []string{"gcc", "libc6-dev", "libopenmpi-dev"},
		Folder:        "openmpi",
		Programs:      []string{"train.py"},
		Sources:       []string{"pi.c"},
		Config: oci.Config{
			User: "1000:1000",
			Env: []string{
				"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				"HOME=/home/mpiuser",
				"LC_ALL=C.UTF-8",
			},
			Args:       []string{"/usr/local/bin/sshd-user"},
			WorkingDir: "/home/mpiuser",
			Ports:      []string{"2222/tcp"},
			Labels: map[string]string{
				"org.opencontainers.image.title":       "mpi-sample-openmpi",
				"org.opencontainers.image.description": "Sample image for MPIJobs: Open MPI 4.1 on Debian bookworm",
				"org.opencontainers.image.licenses":    "Apache-2.0",
			},
		},
	}}
}

// Find returns the sample of that name; the error lists the names there are.
func Find(name string) (Sample, error) {
	var names []string
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Sample{}, fmt.Errorf("no sample %q: there is %s", name, strings.Join(names, ", "))
}

// mmdebstrapArguments are those that make target, a tar file, with the inputs
// laid over it.
func (s Sample) mmdebstrapArguments(target, inputs, mirror string) []string {
	packages := slices.Concat(s.Packages, s.BuildPackages)
	slices.Sort(packages)
	arguments := []string{
		"--variant=minbase",
		"--format=tar",
		"--include=" + strings.Join(packages, ","),
		`--aptopt=APT::Install-Recommends "false"`,
		// What nobody reads in a container. Copyright notices stay.
		"--dpkgopt=path-exclude=/usr/share/man/*",
		"--dpkgopt=path-exclude=/usr/share/info/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*",
		"--dpkgopt=path-exclude=/usr/share/lintian/*",
		"--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-include=/usr/share/doc/*/copyright",
		"--customize-hook=tar-in " + inputs + " /",
		`--customize-hook=chroot "$1" /build/build.sh`,
		`--customize-hook=rm -r "$1/build"`,
		s.Release,
		target,
	}
	if mirror != "" {
		arguments = append(arguments, mirror)
	}
	return arguments
}
