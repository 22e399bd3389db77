// Package imagecheck judges whether an image can run MPI jobs, by the files in its layers and its configuration. The image is
// not run.
package imagecheck

import (
	"fmt"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	OK Verdict = "ok"
	// Warn means that jobs run, with restrictions.
	Warn Verdict = "warn"
	// Fail means that no job runs with the image.
	Fail Verdict = "fail"
	// None is the verdict on what is optional, or cannot be judged without running the image.
	None Verdict = "-"
)

// Check is what was found about one subject.
type Check struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	// Found is a fact, without a period.
	Found string `json:"found"`
	// Remedy is what to do; may be empty.
	Remedy string `json:"remedy,omitempty"`
}

// Image is what is known of an image.
type Image struct {
	// Name is what the user calls it, and Digest identifies its manifest.
	Name   string
	Digest string
	// Platform is the one that is checked, such as linux/amd64, and Platforms are all that the image has.
	Platform  string
	Platforms []string
	Config    Config
	Layers    int
	// Compressed is the size that nodes pull, in bytes.
	Compressed int64
	Contents   *Contents
}

// Config is the part of an image's configuration that matters to jobs.
type Config struct {
	User       string
	WorkingDir string
	Env        []string
	Entrypoint []string
}

// Result is the judgment of an image.
type Result struct {
	Image     string   `json:"image"`
	Digest    string   `json:"digest,omitempty"`
	Platform  string   `json:"platform"`
	Platforms []string `json:"platforms"`
	// OS is the name of the distribution; may be empty.
	OS string `json:"os,omitempty"`
	// CompressedBytes is what nodes pull, and UnpackedBytes what they store.
	CompressedBytes int64 `json:"compressedBytes"`
	UnpackedBytes   int64 `json:"unpackedBytes"`
	// MPI is each MPI in the image.
	MPI []MPI `json:"mpi"`
	// MPIImplementation is the value of a job's mpiImplementation: that of the mpirun in the PATH. It is empty if there is none.
	MPIImplementation mpi.Implementation `json:"mpiImplementation,omitempty"`
	Python            *Python            `json:"python,omitempty"`
	// GPU is what the image has for GPUs, such as "CUDA 12.8"; may be empty.
	GPU    []string `json:"gpu,omitempty"`
	User   string   `json:"user"`
	Checks []Check  `json:"checks"`
}

// Usable reports whether jobs can run with the image.
func (r Result) Usable() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Verdict == Fail })
}

// Judge checks an image.
func Judge(image Image) Result {
	i := inspect(image)
	r := Result{
		Image: image.Name, Digest: image.Digest, Platform: image.Platform, Platforms: image.Platforms, OS: i.os,
		CompressedBytes: image.Compressed, UnpackedBytes: image.Contents.Unpacked(),
		MPI: i.mpi, MPIImplementation: i.used, Python: i.python, GPU: i.gpu, User: image.Config.User,
	}
	for _, check := range []func() Check{
		i.checkPlatform, i.checkSize, i.checkMPI, i.checkLauncher, i.checkLibraries, i.checkShell, i.checkUser, i.checkFiles, i.checkEntrypoint,
		i.checkSSH, i.checkPython, i.checkMPI4Py, i.checkPrograms, i.checkGPU,
	} {
		if c := check(); c.Found != "" {
			r.Checks = append(r.Checks, c)
		}
	}
	return r
}

// inspected is an image with what several checks need.
type inspected struct {
	Image
	os   string
	path []string
	mpi  []MPI
	// launcher is the name of the MPI launcher that the PATH finds, or "", and used its implementation.
	launcher string
	used     mpi.Implementation
	python   *Python
	gpu      []string
}

// defaultPath is the PATH of images that set none (opencontainers/runtime-tools and containerd).
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func inspect(image Image) inspected {
	i := inspected{Image: image, path: strings.Split(defaultPath, ":")}
	if value, set := image.Config.variable("PATH"); set {
		i.path = strings.Split(value, ":")
	}
	i.os = osName(image.Contents)
	i.mpi = findMPI(image.Contents)
	for _, name := range []string{"mpirun", "mpiexec"} {
		if i.launcher == "" {
			i.launcher = i.inPath(name)
		}
	}
	if i.launcher != "" {
		file, reached := image.Contents.walkTo(i.launcher, true)
		if one, known := launcherOf(image.Contents, reached, file); known {
			i.used = one.Implementation
		}
	}
	i.python = findPython(i)
	i.gpu = findGPU(i)
	return i
}

// variable returns a variable of the environment.
func (c Config) variable(name string) (string, bool) {
	for _, entry := range slices.Backward(c.Env) {
		if key, value, _ := strings.Cut(entry, "="); key == name {
			return value, true
		}
	}
	return "", false
}

// inPath returns the name of a program in the PATH, or "".
func (i inspected) inPath(program string) string {
	for _, folder := range i.path {
		if folder == "" {
			continue
		}
		name := strings.TrimSuffix(folder, "/") + "/" + program
		if file := i.Contents.find(name, true); file != nil && !file.isDir() && file.mode&0o111 != 0 {
			return name
		}
	}
	return ""
}

// osName returns the name of the distribution, or "".
func osName(c *Contents) string {
	for _, name := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		file := c.find(name, true)
		if file == nil {
			continue
		}
		for line := range strings.Lines(file.text) {
			if value, is := strings.CutPrefix(line, "PRETTY_NAME="); is {
				return phrase.Limit(strings.Trim(strings.TrimSpace(value), `"'`), 80)
			}
		}
	}
	return ""
}

// Size returns a size as people read it, such as "81 MB".
func Size(bytes int64) string {
	switch {
	case bytes >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
	case bytes >= 1e6:
		return fmt.Sprintf("%d MB", (bytes+5e5)/1e6)
	}
	return fmt.Sprintf("%d kB", (bytes+999)/1e3)
}
