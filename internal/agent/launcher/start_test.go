package launcher

import (
	"os"
	"path/filepath"
	"slices"
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
