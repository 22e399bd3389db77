package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"opendatahub.io/mpijob/hack/images/internal/debian"
	"opendatahub.io/mpijob/hack/images/internal/steps"
)

// compileLibraries compiles the shared libraries into a folder, and returns the files by their paths in the image.
func (b Build) compileLibraries(ctx context.Context, folder string, log *steps.Log, stderr io.Writer) (map[string]string, error) {
	if len(b.Libraries) == 0 {
		return nil, nil
	}
	compiler := os.Getenv("CC")
	if compiler == "" {
		var err error
		if compiler, err = ensureCompiler(ctx, cmp.Or(os.Getenv("GOARCH"), runtime.GOARCH), log, stderr); err != nil {
			return nil, err
		}
	}
	files := map[string]string{}
	for _, target := range slices.Sorted(maps.Keys(b.Libraries)) {
		script, file := filepath.Join(b.Dir, b.Libraries[target]), filepath.Join(folder, path.Base(target))
		log.Step("compile %s with %s", path.Base(target), compiler)
		command := exec.CommandContext(ctx, "sh", script, file)
		command.Env = append(os.Environ(), "CC="+compiler)
		command.Stdout, command.Stderr = stderr, stderr
		if err := command.Run(); err != nil {
			return nil, fmt.Errorf("compile %s with %s: %w", target, script, err)
		}
		files[target] = file
	}
	return files, nil
}

// compilers are Debian's compilers of C for other machines, and the packages that contain them.
var compilers = map[string]struct{ program, tool string }{
	"amd64": {"x86_64-linux-gnu-gcc", "gcc-x86-64-linux-gnu"},
	"arm64": {"aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"},
}

// ensureCompiler returns the compiler of C for an architecture. It installs Debian's if there is none.
func ensureCompiler(ctx context.Context, architecture string, log *steps.Log, stderr io.Writer) (string, error) {
	name, tool := "gcc", "gcc"
	if architecture != runtime.GOARCH || runtime.GOOS != "linux" {
		compiler, known := compilers[architecture]
		if !known {
			return "", fmt.Errorf("no compiler of C for GOARCH=%s is known: set CC", architecture)
		}
		name, tool = compiler.program, compiler.tool
	}
	if err := debian.Ensure(ctx, name, []string{tool}, log, stderr); err != nil {
		return "", errors.Join(err, errors.New("the image has a library in C: set CC to another compiler"))
	}
	return name, nil
}
