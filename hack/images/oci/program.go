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

	"github.com/google/go-containerregistry/pkg/v1/empty"
)

// DefaultUser is the user of a program image that names none: the "nonroot"
// user by wide convention. OpenShift replaces it by a UID of the namespace.
const DefaultUser = "65532:65532"

// Program is an image with one static Linux binary, a /tmp, and no more than
// libraries, links and empty folders besides.
type Program struct {
	// Reference is the image's name with its tag, for instance
	// "odh/mpijob-operator:dev".
	Reference string
	// Binary is the file to take, a Linux executable that needs no loader.
	Binary string
	// Path is where the image has it; "/<base name of Binary>" when empty.
	Path string
	// Links are symbolic links in the image: their targets by path. Folders are empty folders, as places to mount on.
	// A pod that mounts the image as a volume finds them next to the binary.
	Links   map[string]string
	Folders []string
	// Libraries are files for programs of other images, which mount this one as a volume: the files to take by path.
	Libraries map[string]string
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
	architecture, errBinary := checkBinary(p.Binary)
	err = errors.Join(err, checkTarget(target), errBinary)
	for _, path := range slices.Concat(slices.Sorted(maps.Keys(p.Libraries)), slices.Sorted(maps.Keys(p.Links)), p.Folders) {
		err = errors.Join(err, checkTarget(path))
	}
	if err != nil {
		return err
	}
	config := Config{
		Architecture: architecture,
		User:         user,
		Env:          p.Env,
		Entrypoint:   []string{target},
		Args:         p.Args,
		Labels:       p.Labels,
	}
	return writeArchive(file, tag, config, empty.Image, func(w io.Writer) error {
		return p.writeLayer(w, target)
	})
}

func checkTarget(target string) error {
	if !path.IsAbs(target) || path.Clean(target) != target || target == "/" || target == "/tmp" {
		return fmt.Errorf("path in the image %q: want an absolute path of a file, such as /manager", target)
	}
	return nil
}

// architectures maps the machines of ELF files to Go's names.
var architectures = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x"}

// checkBinary returns the architecture of a binary. It rejects binaries that
// could not start in an otherwise empty image: the kernel's own message would
// be "no such file or directory", which is misleading.
func checkBinary(binary string) (architecture string, err error) {
	file, err := elf.Open(binary)
	if err != nil {
		return "", fmt.Errorf("binary %s: %w", binary, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return "", fmt.Errorf("binary %s needs a loader that the image does not have: build it with CGO_ENABLED=0", binary)
		}
	}
	architecture, known := architectures[file.Machine]
	if !known {
		return "", fmt.Errorf("binary %s: machine %v is not supported; use amd64, arm64, ppc64le or s390x", binary, file.Machine)
	}
	return architecture, nil
}

func (p Program) writeLayer(w io.Writer, target string) error {
	content := tree{
		headers: map[string]*tar.Header{"tmp": {Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777, ModTime: epoch}},
		sources: map[string]string{},
	}
	files := map[string]string{target: p.Binary}
	maps.Copy(files, p.Libraries)
	for path, source := range files {
		if err := content.addFile(strings.TrimPrefix(path, "/"), source, 0o755); err != nil {
			return err
		}
	}
	for link, to := range p.Links {
		name := strings.TrimPrefix(link, "/")
		content.headers[name] = &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777, ModTime: epoch}
	}
	for _, name := range p.Folders {
		content.addFolder(strings.TrimPrefix(name, "/"))
	}
	content.addParents()
	return content.write(w)
}

func copyFile(w io.Writer, file string) (err error) {
	source, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("file of the image: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if _, err := io.Copy(w, source); err != nil {
		return fmt.Errorf("copy %s: %w", file, err)
	}
	return nil
}
