package launcher

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
)

func TestHydraEnv(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(agentapi.EnvRun, folder)
	list := filepath.Join(folder, "from-trainer")
	if err := os.WriteFile(list, []byte("a-node-0-0.a slots=2\na-node-0-1.a slots=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(folder, "hostfile")
	format := agentapi.EnvHostfileFormat + "=" + agentapi.FormatHydra
	tests := map[string]struct{ env, want []string }{
		"another MPI":         {env: []string{"A=1"}, want: []string{"A=1"}},
		"Hydra":               {env: []string{format}, want: []string{format, "HYDRA_HOST_FILE=" + written, "I_MPI_HYDRA_HOST_FILE=" + written, "I_MPI_PERHOST=2"}},
		"what the user wants": {env: []string{format, "I_MPI_PERHOST=1", "HYDRA_HOST_FILE=mine"}, want: []string{format, "I_MPI_PERHOST=1", "HYDRA_HOST_FILE=mine", "I_MPI_HYDRA_HOST_FILE=" + written}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := hydraEnv(test.env, list)
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
	text, err := os.ReadFile(written)
	if want := "a-node-0-0.a:2\na-node-0-1.a:2\n"; err != nil || string(text) != want {
		t.Errorf("the list is %q, %v, want %q", text, err, want)
	}
	if _, err := hydraEnv([]string{format}, filepath.Join(folder, "missing")); err == nil {
		t.Error("no error without a list")
	}
}

// TestRestartsAreLimited: a launcher that JobSet has started again more often than it may does not run its command, and fails with a code that
// counts as a failure of the program.
func TestRestartsAreLimited(t *testing.T) {
	folder := t.TempDir()
	termination, ran := filepath.Join(folder, "termination"), filepath.Join(folder, "ran")
	t.Setenv(agentapi.EnvRun, folder)
	t.Setenv(agentapi.EnvTermination, termination)
	for name, test := range map[string]struct {
		env     []string
		refused bool
	}{
		"too often":       {[]string{agentapi.EnvRestart + "=104", agentapi.EnvMaxRestarts + "=103"}, true},
		"as often":        {[]string{agentapi.EnvRestart + "=103", agentapi.EnvMaxRestarts + "=103"}, false},
		"without a limit": {[]string{agentapi.EnvRestart + "=104"}, false},
		"nonsense":        {[]string{agentapi.EnvRestart + "=104", agentapi.EnvMaxRestarts + "=x"}, false},
		"no restarts":     {[]string{agentapi.EnvRestart + "=", agentapi.EnvMaxRestarts + "=0"}, false},
		"none":            {nil, false},
	} {
		if restarts, most := restartsLeft(test.env); (restarts > most) != test.refused {
			t.Errorf("%s: %d of %d restarts", name, restarts, most)
		}
	}
	code := Run([]string{"touch", ran}, []string{agentapi.EnvRestart + "=104", agentapi.EnvMaxRestarts + "=103"}, "")
	if _, err := os.Stat(ran); code != 1 || err == nil {
		t.Errorf("it ends with %d, and has run its command: %t", code, err == nil)
	}
	if text, err := os.ReadFile(termination); err != nil || !strings.Contains(string(text), "started again 104 times") {
		t.Errorf("it reports %s, %v", text, err)
	}
}
