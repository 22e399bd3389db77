package sample

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// input is a file that the build lays over the root file system.
type input struct {
	content    []byte
	executable bool
}

// gather reads the sample's files below samples, which is images/samples. The
// keys are paths in the image, without the leading slash.
func (s Sample) gather(samples fs.FS) (map[string]input, error) {
	inputs := map[string]input{}
	add := func(target, source string) error {
		info, err := fs.Stat(samples, source)
		if err != nil {
			return fmt.Errorf("sample %s: %w", s.Name, err)
		}
		content, err := fs.ReadFile(samples, source)
		if err != nil {
			return fmt.Errorf("sample %s: %w", s.Name, err)
		}
		inputs[target] = input{content: content, executable: info.Mode()&0o100 != 0}
		return nil
	}
	sources := map[string]string{}
	if s.Base == "" {
		sources["build/build.sh"] = path.Join(s.Folder, "build.sh")
	}
	for _, name := range s.Sources {
		sources["build/"+name] = name
	}
	for _, name := range s.Programs {
		sources["usr/local/bin/"+name] = name
	}
	root := path.Join(cmp.Or(s.Rootfs, s.Folder), "rootfs")
	err := fs.WalkDir(samples, root, func(file string, item fs.DirEntry, err error) error {
		if file == root && errors.Is(err, fs.ErrNotExist) {
			return fs.SkipAll
		}
		if err == nil && item.Type().IsRegular() {
			sources[file[len(root)+1:]] = file
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sample %s: %w", s.Name, err)
	}
	for target, source := range sources {
		if err := add(target, source); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}

// packInputs makes the tar that is laid over the root file system. Owner,
// modes and times come from here and not from the checkout, whose umask and
// user differ between machines.
func packInputs(inputs map[string]input) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		file := inputs[name]
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: name, Mode: 0o644,
			Size: int64(len(file.content)), ModTime: time.Unix(sourceDate, 0),
		}
		if file.executable {
			header.Mode = 0o755
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := archive.Write(file.content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("pack the inputs: %w", err)
	}
	return buffer.Bytes(), nil
}

// key names the image that these inputs make on the base, an archive in the cache, or none. Not part of it: the mirror, and
// the point release of the packages, which "--fresh" brings up to date.
func (s Sample) key(packed []byte, base string) (string, error) {
	if base != "" {
		base = filepath.Base(base)
	}
	recipe, err := json.Marshal(struct {
		Builder int
		Arch    string
		Sample  Sample
		Inputs  [sha256.Size]byte
		Base    string `json:",omitempty"`
	}{builderVersion, runtime.GOARCH, s, sha256.Sum256(packed), base})
	if err != nil {
		return "", fmt.Errorf("cache key of sample %s: %w", s.Name, err)
	}
	sum := sha256.Sum256(recipe)
	return hex.EncodeToString(sum[:]), nil
}
