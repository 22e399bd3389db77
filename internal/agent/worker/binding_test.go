package worker

import (
	"slices"
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestBindEnv: a worker binds ranks only if it owns its cores, and leaves alone what the user decides.
func TestBindEnv(t *testing.T) {
	t.Parallel()
	unbound := []string{"OMPI_MCA_rtc=^hwloc", "PRTE_MCA_rtc=^hwloc", "I_MPI_PIN=0"}
	for name, test := range map[string]struct {
		asked agentapi.BindingPolicy
		owns  bool
		env   []string
		want  agentapi.BindingPolicy
	}{
		"own cores":       {agentapi.BindCore, true, []string{"HYDRA_BINDING=core"}, agentapi.BindCore},
		"shared cores":    {agentapi.BindCore, false, unbound, agentapi.BindShared},
		"fewer ranks":     {agentapi.BindSeveral, true, unbound, agentapi.BindSeveral},
		"the user or MPI": {"", true, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if env, policy := bindEnv(nil, test.asked, func() bool { return test.owns }); !slices.Equal(env, test.env) || policy != test.want {
				t.Errorf("got %q, %q", env, policy)
			}
		})
	}
}
