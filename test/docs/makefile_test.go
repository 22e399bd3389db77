package docs

import (
	"os/exec"
	"strings"
	"testing"
)

// TestMake: make calls programs with the values that its variables are meant to have.
func TestMake(t *testing.T) {
	t.Parallel()
	// Go runs the test again if a file that it reads has changed.
	read(t, root+"/Makefile")
	// The images that the tests are run with, and no test.
	const showSamples = "e2e: show-samples\nshow-samples: ; @echo samples $(SAMPLES)."
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a mirror in the folder of builds": {[]string{"mirror"}, "cluster mirror  dist/mirror\n"},
		"a mirror elsewhere":               {[]string{"mirror", "TO=/srv/mpijob"}, "cluster mirror  /srv/mpijob\n"},
		"small programs, in any case":      {[]string{"--eval", showSamples, "e2e", "KUBECONFIG=/none", "SUITE=smallprograms"}, "samples openmpi intelmpi.\n"},
		"programs":                         {[]string{"--eval", showSamples, "e2e", "KUBECONFIG=/none", "SUITE=Programs"}, "samples openmpi pytorch deepspeed "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), "make", append([]string{"-C", root, "-n", "DIST=dist"}, test.args...)...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), test.want) {
				t.Errorf("make does not run %q (%v): %s", test.want, err, out)
			}
		})
	}
}
