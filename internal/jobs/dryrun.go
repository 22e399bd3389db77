package jobs

import "sigs.k8s.io/controller-runtime/pkg/client"

// DryRun says how far a request goes.
type DryRun string

// The values of DryRun, as kubectl has them.
const (
	// DryRunNone does what is requested.
	DryRunNone DryRun = "none"
	// DryRunClient sends no change to the API server.
	DryRunClient DryRun = "client"
	// DryRunServer lets the API server check the change without storing it.
	DryRunServer DryRun = "server"
)

func (d DryRun) createOptions() []client.CreateOption {
	options := []client.CreateOption{client.FieldValidation("Strict")}
	if d == DryRunServer {
		options = append(options, client.DryRunAll)
	}
	return options
}

func (d DryRun) deleteOptions() []client.DeleteOption {
	if d == DryRunServer {
		return []client.DeleteOption{client.DryRunAll}
	}
	return nil
}
