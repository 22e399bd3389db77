package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/empty"
)

// Files is an image with files of this machine and nothing else, such as a bundle or a catalog for OLM.
type Files struct {
	// Reference is the image's name with its tag.
	Reference string
	// Sources are files and folders of this machine, by their paths in the image.
	Sources map[string]string
	// Entrypoint is the path of a program in the image; none when empty.
	Entrypoint string
	// User is "uid:gid"; DefaultUser when empty.
	User string
	// Env holds KEY=value pairs.
	Env    []string
	Labels map[string]string
}

// Write writes the image to file as a docker-archive. Files are executable for all if their owner may execute them.
func (f Files) Write(file string) error {
	tag, err := parseReference(f.Reference)
	for _, path := range slices.Sorted(maps.Keys(f.Sources)) {
		err = errors.Join(err, checkTarget(path))
	}
	if err != nil {
		return err
	}
	content := tree{headers: map[string]*tar.Header{}, sources: map[string]string{}}
	for path, source := range f.Sources {
		if err := content.addAll(strings.TrimPrefix(path, "/"), source); err != nil {
			return err
		}
	}
	content.addParents()
	config := Config{User: f.User, Env: f.Env, Labels: f.Labels}
	if config.User == "" {
		config.User = DefaultUser
	}
	if f.Entrypoint != "" {
		config.Entrypoint = []string{f.Entrypoint}
	}
	return writeArchive(file, tag, config, empty.Image, content.write)
}

// tree is the content of a layer: headers by names without a leading slash, and the files that the regular ones are copied from.
type tree struct {
	headers map[string]*tar.Header
	sources map[string]string
}

func (t tree) addFile(name, source string, mode int64) error {
	info, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("/%s: %w", name, err)
	}
	t.headers[name] = &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: info.Size(), ModTime: epoch}
	t.sources[name] = source
	return nil
}

func (t tree) addFolder(name string) {
	if t.headers[name] == nil {
		t.headers[name] = &tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: epoch}
	}
}

// addAll adds a file, or a folder with all files in it.
func (t tree) addAll(name, source string) error {
	return filepath.WalkDir(source, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("/%s: %w", name, err)
		}
		below, err := filepath.Rel(source, file)
		if err != nil {
			return fmt.Errorf("/%s: %w", name, err)
		}
		target := path.Join(name, filepath.ToSlash(below))
		if entry.IsDir() {
			t.addFolder(target)
			return nil
		}
		// A link is read, as os.Stat does: the image need not have what it points to.
		info, err := os.Stat(file)
		if err != nil {
			return fmt.Errorf("/%s: %w", target, err)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("/%s: %s is neither a file nor a folder", target, file)
		}
		mode := int64(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		return t.addFile(target, file, mode)
	})
}

// addParents adds the folders that the entries are in.
func (t tree) addParents() {
	for _, name := range slices.Collect(maps.Keys(t.headers)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			t.addFolder(dir)
		}
	}
}

func (t tree) write(w io.Writer) error {
	archive := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(t.headers)) {
		if err := archive.WriteHeader(t.headers[name]); err != nil {
			return fmt.Errorf("entry %s: %w", name, err)
		}
		source, isFile := t.sources[name]
		if !isFile {
			continue
		}
		if err := copyFile(archive, source); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("end of the layer: %w", err)
	}
	return nil
}
