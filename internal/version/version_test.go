package version

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFrom(t *testing.T) {
	revision := []debug.BuildSetting{{Key: "vcs.revision", Value: "0a1b2c3"}, {Key: "vcs.modified", Value: "false"}}
	modified := []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: "0a1b2c3"}}
	tests := map[string]struct {
		stamp           string
		build           *debug.BuildInfo
		version, commit string
	}{
		"no information":                 {"", nil, "dev", ""},
		"stamp without build info":       {"v1.2.3", nil, "v1.2.3", ""},
		"stamp takes precedence":         {"v1.2.3", &debug.BuildInfo{Main: debug.Module{Version: "v9.9.9"}}, "v1.2.3", ""},
		"module version of go install":   {"", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "v1.2.3", ""},
		"development build":              {"", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "dev", ""},
		"commit of a clean tree":         {"v1.2.3", &debug.BuildInfo{Settings: revision}, "v1.2.3", "0a1b2c3"},
		"commit with local changes":      {"", &debug.BuildInfo{Settings: modified}, "dev", "0a1b2c3-dirty"},
		"local changes without a commit": {"", &debug.BuildInfo{Settings: modified[:1]}, "dev", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := Info{Version: test.version, Commit: test.commit, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if diff := cmp.Diff(want, from(test.stamp, test.build)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestString(t *testing.T) {
	tests := map[string]struct {
		info Info
		want string
	}{
		"with commit":    {Info{"v1.2.3", "0a1b2c3", "go1.26.0", "linux/amd64", ""}, "v1.2.3 (commit 0a1b2c3, go1.26.0, linux/amd64)"},
		"without commit": {Info{"dev", "", "go1.26.0", "linux/amd64", ""}, "dev (go1.26.0, linux/amd64)"},
		"with FIPS 140":  {Info{"dev", "", "go1.26.0", "linux/amd64", "v1.0.0"}, "dev (go1.26.0, linux/amd64, FIPS 140-3 module v1.0.0)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.info.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestFIPSModule: the images of operator, agent and dashboard are built with the validated version of Go's FIPS 140-3 module, and a
// program that is built so reports that it uses it.
func TestFIPSModule(t *testing.T) {
	const setting = "GOFIPS140=v1.0.0"
	show := exec.Command("go", "run", "./testdata/show")
	show.Env = append(os.Environ(), setting)
	if out, err := show.CombinedOutput(); err != nil || !strings.Contains(string(out), "FIPS 140-3 module v1.0.0") {
		t.Errorf("a program that is built with %s prints %q, %v", setting, out, err)
	}
	for file, builds := range map[string]int{"Makefile": 2, "hack/release.sh": 3, "images/operator/Containerfile": 1, "images/agent/Containerfile": 1} {
		content, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(content), setting); n != builds {
			t.Errorf("%s sets %s %d times, want %d", file, setting, n, builds)
		}
	}
}
