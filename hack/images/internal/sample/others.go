package sample

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// addModules adds what a sample has of Go modules to its inputs. They are read from the module cache.
func (b Builder) addModules(ctx context.Context, s Sample, inputs map[string]input) error {
	for _, source := range s.Others {
		if source.Module == "" {
			continue
		}
		text, err := b.output(ctx, filepath.Join(b.Samples, "..", ".."), "go", "mod", "download", "-json", source.Module)
		if err != nil {
			return err
		}
		var module struct{ Dir string }
		if err := json.Unmarshal(text, &module); err != nil || module.Dir == "" {
			return fmt.Errorf("module %s: go mod download printed %q", source.Module, text)
		}
		if err := source.addFolder(os.DirFS(module.Dir), inputs); err != nil {
			return fmt.Errorf("module %s: %w", source.Module, err)
		}
	}
	return nil
}

// addFolder adds the source's files of its project to inputs.
func (s Source) addFolder(project fs.FS, inputs map[string]input) error {
	return fs.WalkDir(project, s.Path, func(file string, item fs.DirEntry, err error) error {
		if err != nil || !item.Type().IsRegular() {
			return err
		}
		content, err := fs.ReadFile(project, file)
		inputs[s.target(file)] = input{content: content}
		return err
	})
}

// target returns where a file of the project goes in the image.
func (s Source) target(file string) string {
	return path.Join(s.Target, strings.TrimPrefix(path.Clean(file), strings.TrimPrefix(path.Dir(s.Path)+"/", "./")))
}

// addRepositories adds what a sample has of Git repositories to its inputs. Git checks that it is what the commit's hash names.
func (b Builder) addRepositories(ctx context.Context, s Sample, inputs map[string]input) error {
	for _, source := range s.Others {
		if source.Repository == "" {
			continue
		}
		b.Log.Step("fetch %s of %s", source.Path, source.Repository)
		if err := b.addRepository(ctx, source, inputs); err != nil {
			return err
		}
	}
	return nil
}

func (b Builder) addRepository(ctx context.Context, source Source, inputs map[string]input) (err error) {
	repository, err := os.MkdirTemp("", "mpijob-sample-git-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(repository)) }()
	var packed []byte
	for _, arguments := range [][]string{
		{"init", "--quiet", "--bare"}, {"fetch", "--quiet", "--depth=1", source.Repository, source.Commit}, {"archive", source.Commit, source.Path},
	} {
		if packed, err = b.output(ctx, repository, "git", arguments...); err != nil {
			return err
		}
	}
	for reader := tar.NewReader(bytes.NewReader(packed)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", source.Repository, err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return fmt.Errorf("%s: %w", source.Repository, err)
		}
		inputs[source.target(header.Name)] = input{content: content, executable: header.Mode&0o100 != 0}
	}
}

// output runs a tool in a folder and returns what it prints.
func (b Builder) output(ctx context.Context, folder, name string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir, command.Stderr = folder, b.Output
	text, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(arguments, " "), err)
	}
	return text, nil
}
