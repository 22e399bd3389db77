package program

import (
	"slices"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ extra, want string }{
		"plain":   {"", "-s -w"},
		"version": {"-X main.version=v1", "-s -w -X main.version=v1"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			got := Build{Package: "./cmd/operator", LDFlags: test.extra}.arguments("/tmp/operator")
			want := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", test.want, "-o", "/tmp/operator", "./cmd/operator"}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestBaseName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		build Build
		want  string
	}{
		"package":    {Build{Dir: ".", Package: "./cmd/operator"}, "operator"},
		"the module": {Build{Dir: "/src/agent", Package: "."}, "agent"},
		"with slash": {Build{Dir: "/src/agent", Package: "./"}, "agent"},
		"by import":  {Build{Dir: ".", Package: "example.com/x/manager"}, "manager"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			got, err := test.build.baseName()
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
			if strings.Contains(got, "/") {
				t.Errorf("%q is no file name", got)
			}
		})
	}
}
