// The agent starts the ranks of MPI jobs inside their pods.
package main

import (
	"os"

	"opendatahub.io/mpijob/internal/agent"
)

func main() {
	os.Exit(agent.Main(os.Args))
}
