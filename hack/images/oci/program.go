package oci

import (
	"archive/tar"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultUser is the user of a program image that names none: the "nonroot"
// user by wide convention. OpenShift replaces it by a UID of the namespace.
const DefaultUser = "65532:65532"

// Program is an image with one static Linux binary, a /tmp and nothing else.
type Program struct {
	// Reference is the image's name with its tag, for instance
	// "odh/mpijob-operator:dev".
	Reference string
	// Binary is the file to take, a Linux executable that needs no loader.
	Binary string
	// Path is where the image has it; "/<base name of Binary>" when empty.
	Path string
	// User is "uid:gid"; DefaultUser when empty.
	User string
	// Env holds KEY=value pairs.
	Env []string
	// Args follow the binary unless a pod gives args of its own.
	Args   []string
	Labels map[string]string
}

// Write writes the image to file as a docker-archive. The binary becomes the
// image's entrypoint, with mode 0755 and root as its owner.
func (p Program) Write(file string) error {
	target := p.Path
	if target == "" {
		target = "/" + filepath.Base(p.Binary)
	}
	user := p.User
	if user == "" {
		user = DefaultUser
	}
	tag, err := parseReference(p.Reference)
	err = errors.Join(err, checkTarget(target), checkStatic(p.Binary))
	if err != nil {
		return err
	}
	config := Config{
		User:       user,
		Env:        p.Env,
		Entrypoint: []string{target},
		Args:       p.Args,
		Labels:     p.Labels,
	}
	return writeArchive(file, tag, config, func(w io.Writer) error {
		return writeProgramLayer(w, p.Binary, target)
	})
}

func checkTarget(target string) error {
	if !path.IsAbs(target) || path.Clean(target) != target || target == "/" || target == "/tmp" {
		return fmt.Errorf("path in the image %q: want an absolute path of a file, such as /manager", target)
	}
	return nil
}

// checkStatic refuses what could not start in an otherwise empty image. The
// kernel's own message would be "no such file or directory", which misleads.
func checkStatic(binary string) (err error) {
	file, err := elf.Open(binary)
	if err != nil {
		return fmt.Errorf("binary %s: %w", binary, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("binary %s needs a loader that the image does not have: build it with CGO_ENABLED=0", binary)
		}
	}
	return nil
}

func writeProgramLayer(w io.Writer, binary, target string) error {
	info, err := os.Stat(binary)
	if err != nil {
		return fmt.Errorf("binary: %w", err)
	}
	entry := strings.TrimPrefix(target, "/")
	headers := map[string]*tar.Header{
		"tmp": {Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777, ModTime: epoch},
		entry: {Typeflag: tar.TypeReg, Name: entry, Mode: 0o755, Size: info.Size(), ModTime: epoch},
	}
	for dir := path.Dir(entry); dir != "."; dir = path.Dir(dir) {
		if headers[dir] == nil {
			headers[dir] = &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: epoch}
		}
	}
	archive := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if err := archive.WriteHeader(headers[name]); err != nil {
			return fmt.Errorf("entry %s: %w", name, err)
		}
		if name != entry {
			continue
		}
		if err := copyFile(archive, binary); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("end of the layer: %w", err)
	}
	return nil
}

func copyFile(w io.Writer, file string) (err error) {
	source, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("binary: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if _, err := io.Copy(w, source); err != nil {
		return fmt.Errorf("copy %s: %w", file, err)
	}
	return nil
}
