package agent

import (
	"errors"
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
	if err := copyFile("/proc/self/exe", binary); err != nil {
		return fmt.Errorf("install the agent in %s: %w", folder, err)
	}
	for _, library := range []string{agentapi.ProfileLibrary, agentapi.ExchangeLibrary, agentapi.GPULibrary} {
		if err := installLibrary(folder, library); err != nil {
			return fmt.Errorf("install %s in %s: %w", filepath.Base(library), folder, err)
		}
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

// installLibrary copies a library, if the image has it.
func installLibrary(folder, library string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	path, err := filepath.Rel(agentapi.Path, library)
	if err != nil {
		return err
	}
	from, to := filepath.Join(filepath.Dir(self), path), filepath.Join(folder, path)
	if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // any user of the pod loads it
		return err
	}
	return copyFile(from, to)
}

// copyFile copies a program or a library, complete or not at all.
func copyFile(source, path string) error {
	from, err := os.Open(source)
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
