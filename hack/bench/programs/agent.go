package programs

import (
	"context"
	"fmt"
	"path/filepath"
)

// Agent compiles the agent of the checkout at root into a folder, as its image has it (see the Makefile), and returns
// its path.
func Agent(ctx context.Context, root, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("build the agent: %w", err)
	}
	path := filepath.Join(dir, "mpi-agent")
	_, err = runWith(ctx, []string{"GOFIPS140=v1.0.0"}, root, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", path, "./cmd/agent")
	return path, err
}
