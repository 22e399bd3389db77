package report

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
)

func TestBindingText(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]agentapi.Binding{
		"each rank to a core of its pod":                                       {Policy: agentapi.BindCore},
		"each rank to a core of its pod on 3 of 4 workers, others share cores": {Policy: agentapi.BindCore, Hosts: 3},
		"none, cores are shared":                                               {Policy: agentapi.BindShared},
		"none, a rank may use several cores":                                   {Policy: agentapi.BindSeveral},
		"none, this version of Open MPI cannot do it per pod":                  {Policy: agentapi.BindVersion},
		"as set: --bind-to core":                                               {Policy: agentapi.BindUser, By: "--bind-to core"},
		"":                                                                     {Policy: "odd", By: "x"},
	} {
		if got := bindingText(b, 4); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if odd := bindingText(agentapi.Binding{Policy: agentapi.BindUser, By: strings.Repeat("a\n\x1b", 1000)}, 4); len(odd) > 256 || strings.ContainsAny(odd, "\n\x1b") {
		t.Errorf("%q", odd)
	}
}
