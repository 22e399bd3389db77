package agent

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"opendatahub.io/mpijob/internal/agentapi"
)

// install copies this program into a folder that a pod's containers share: as itself and under the name of ssh, with
// a folder in which any user of the pod may write.
func install(folder string) error {
	binary := filepath.Join(folder, filepath.Base(agentapi.Binary))
	if err := copySelf(binary); err != nil {
		return fmt.Errorf("install the agent in %s: %w", folder, err)
	}
	bin := filepath.Join(folder, filepath.Base(filepath.Dir(agentapi.Shim)))
	run := filepath.Join(folder, filepath.Base(agentapi.Run))
	for path, mode := range map[string]os.FileMode{bin: 0o755, run: 0o777 | os.ModeSticky} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return fmt.Errorf("install the agent: %w", err)
		}
		// The process' umask does not count here.
		if err := os.Chmod(path, mode); err != nil {
			return fmt.Errorf("install the agent: %w", err)
		}
	}
	shim := filepath.Join(bin, filepath.Base(agentapi.Shim))
	// The init container runs again where the pod's sandbox was lost.
	_ = os.Remove(shim)
	if err := os.Symlink(filepath.Join("..", filepath.Base(binary)), shim); err != nil {
		return fmt.Errorf("install the agent: %w", err)
	}
	return nil
}

// copySelf writes this program's file, complete or not at all.
func copySelf(path string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.CreateTemp(filepath.Dir(path), ".mpi-agent-*")
	if err != nil {
		return err
	}
	defer os.Remove(to.Name())
	if _, err = io.Copy(to, from); err == nil {
		err = to.Chmod(0o755)
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(to.Name(), path)
}
