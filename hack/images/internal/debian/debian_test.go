package debian

import (
	"strings"
	"testing"
)

func TestMissingTool(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		root, apt bool
		want      string
	}{
		"root on Debian":     {root: true, apt: true},
		"user on Debian":     {root: false, apt: true, want: "sudo apt-get install mmdebstrap"},
		"another system":     {root: true, apt: false, want: "not Debian"},
		"user, other system": {root: false, apt: false, want: "not Debian"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			err := missingTool("mmdebstrap", []string{"mmdebstrap"}, test.root, test.apt)
			if (err == nil) != (test.want == "") {
				t.Fatalf("error %v, want one that says %q", err, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not say %q", err, test.want)
			}
		})
	}
}
