package worker

import (
	"slices"
	"testing"

	"opendatahub.io/mpijob/internal/agent/cgroup"
	"opendatahub.io/mpijob/internal/agentapi"
)

// TestBindEnv: a worker binds ranks only if it owns its cores, and leaves alone what the user decides.
func TestBindEnv(t *testing.T) {
	t.Parallel()
	unbound := []string{"OMPI_MCA_rtc=^hwloc", "PRTE_MCA_rtc=^hwloc", "I_MPI_PIN=0"}
	own := cgroup.Cores{Expected: 2, Set: 2, Allowed: 2, Online: 8}
	for name, test := range map[string]struct {
		asked agentapi.BindingPolicy
		cores cgroup.Cores
		env   []string
		want  agentapi.BindingPolicy
	}{
		"own cores":       {agentapi.BindCore, own, []string{"HYDRA_BINDING=core"}, agentapi.BindCore},
		"shared cores":    {agentapi.BindCore, cgroup.Cores{}, unbound, agentapi.BindShared},
		"hidden cores":    {agentapi.BindCore, cgroup.Cores{Expected: 2, Allowed: 2, Online: 8}, unbound, agentapi.BindHidden},
		"fewer ranks":     {agentapi.BindSeveral, own, unbound, agentapi.BindSeveral},
		"the user or MPI": {"", own, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if env, policy := bindEnv(nil, test.asked, func() cgroup.Cores { return test.cores }); !slices.Equal(env, test.env) || policy != test.want {
				t.Errorf("got %q, %q", env, policy)
			}
		})
	}
}
