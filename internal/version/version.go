// Package version returns the version that a binary was built from.
package version

import (
	"crypto/fips140"
	"runtime"
	"runtime/debug"
	"strings"
)

// Unknown is the version of a binary that has neither a stamp nor the module version of an installed program.
const Unknown = "dev"

// stamp is set by the linker: -ldflags "-X opendatahub.io/mpijob/internal/version.stamp=v1.2.3".
var stamp string

// Info describes how a binary was built.
type Info struct {
	// Version is a tag such as v1.2.3, what git describe returns between tags, or "dev".
	Version string `json:"version"`
	// Commit is the full hash of the commit, with the suffix "-dirty" if there were uncommitted changes. It is empty if the
	// binary was built without version control information, as in images.
	Commit string `json:"commit,omitempty"`
	// GoVersion is the version of the Go toolchain, such as go1.26.0.
	GoVersion string `json:"goVersion"`
	// Platform is the operating system and the architecture, such as linux/amd64.
	Platform string `json:"platform"`
	// FIPS140 is the version of Go's FIPS 140-3 module that all cryptography uses, such as v1.0.0; empty if it is not enabled.
	FIPS140 string `json:"fips140,omitempty"`
}

// Get returns how this binary was built.
func Get() Info {
	build, _ := debug.ReadBuildInfo()
	info := from(stamp, build)
	if fips140.Enabled() {
		info.FIPS140 = fips140.Version()
	}
	return info
}

// from prefers the linker's stamp to the build information, which may be nil.
func from(stamp string, build *debug.BuildInfo) Info {
	info := Info{Version: stamp, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if build != nil {
		info.Commit = commit(build.Settings)
		if info.Version == "" && build.Main.Version != "(devel)" {
			info.Version = build.Main.Version
		}
	}
	if info.Version == "" {
		info.Version = Unknown
	}
	return info
}

func commit(settings []debug.BuildSetting) string {
	var revision, suffix string
	for _, setting := range settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			suffix = "-dirty"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + suffix
}

// String returns one line, such as "v1.2.3 (commit 0a1b2c3, go1.26.0, linux/amd64)".
func (i Info) String() string {
	details := []string{i.GoVersion, i.Platform}
	if i.Commit != "" {
		details = append([]string{"commit " + i.Commit}, details...)
	}
	if i.FIPS140 != "" {
		details = append(details, "FIPS 140-3 module "+i.FIPS140)
	}
	return i.Version + " (" + strings.Join(details, ", ") + ")"
}
