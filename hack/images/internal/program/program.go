// Package program compiles a Go program and wraps it as an image.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"opendatahub.io/mpijob/hack/images/internal/steps"
	"opendatahub.io/mpijob/hack/images/oci"
)

// Build says what to compile and how the image shall look.
type Build struct {
	// Dir is the folder of the Go module.
	Dir string
	// Package is a main package of that module, such as ./cmd/operator.
	Package string
	// LDFlags are added to "-s -w".
	LDFlags string
	// Image is the image; its Binary and its Libraries are filled in here.
	Image oci.Program
	// Libraries are shared libraries in C: scripts of the module that compile them, by their paths in the image.
	Libraries map[string]string
	// Out is the archive to write.
	Out string
}

// Run compiles and writes the archive. The compiler's messages go to stderr.
func (b Build) Run(ctx context.Context, log *steps.Log, stderr io.Writer) (err error) {
	base, err := b.baseName()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mpijob-program-")
	if err != nil {
		return fmt.Errorf("folder for the binary: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	image := b.Image
	image.Binary = filepath.Join(dir, base)

	log.Step("compile %s in %s", b.Package, b.Dir)
	command := exec.CommandContext(ctx, "go", b.arguments(image.Binary)...)
	command.Dir = b.Dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	command.Stderr = stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("compile %s in %s: %w", b.Package, b.Dir, err)
	}
	if image.Libraries, err = b.compileLibraries(ctx, dir, log, stderr); err != nil {
		return err
	}
	log.Step("write %s as %s", image.Reference, b.Out)
	if err := image.Write(b.Out); err != nil {
		return fmt.Errorf("image of %s: %w", b.Package, err)
	}
	info, err := os.Stat(b.Out)
	if err != nil {
		return fmt.Errorf("image of %s: %w", b.Package, err)
	}
	log.Step("done: %.1f MB", float64(info.Size())/1e6)
	return nil
}

// arguments are those of the go command. Nothing of the machine and nothing
// of the commit goes into the binary, so that the same sources make the same
// image; a version is the caller's to pass in LDFlags.
func (b Build) arguments(binary string) []string {
	ldflags := strings.TrimSpace("-s -w " + b.LDFlags)
	return []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", binary, b.Package}
}

// baseName is the binary's name: that of the package's folder.
func (b Build) baseName() (string, error) {
	if b.Package != "." && b.Package != "./" {
		return path.Base(b.Package), nil
	}
	dir, err := filepath.Abs(b.Dir)
	if err != nil {
		return "", fmt.Errorf("folder %s: %w", b.Dir, err)
	}
	return filepath.Base(dir), nil
}
