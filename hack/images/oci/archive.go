package oci

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// epoch is the time of everything in an image: a time of day would make two
// builds of the same sources differ.
var epoch = time.Unix(0, 0).UTC()

// Config is the part of an image that a container runtime reads.
type Config struct {
	// Architecture is Go's name of it, such as amd64; this machine's when empty.
	Architecture string
	// User is "uid:gid". Numbers, because Kubernetes can check runAsNonRoot
	// only on a number.
	User string
	// Env holds KEY=value pairs.
	Env []string
	// Entrypoint and Args are what a pod's command and args replace.
	Entrypoint []string
	Args       []string
	// WorkingDir is "/" when empty.
	WorkingDir string
	// Ports are exposed ports such as "2222/tcp"; they document, no more.
	Ports  []string
	Labels map[string]string
}

func (c Config) imageConfig() v1.Config {
	var ports map[string]struct{}
	if len(c.Ports) > 0 {
		ports = make(map[string]struct{}, len(c.Ports))
		for _, port := range c.Ports {
			ports[port] = struct{}{}
		}
	}
	workingDir := c.WorkingDir
	if workingDir == "" {
		workingDir = "/"
	}
	return v1.Config{
		User:         c.User,
		Env:          c.Env,
		Entrypoint:   c.Entrypoint,
		Cmd:          c.Args,
		WorkingDir:   workingDir,
		ExposedPorts: ports,
		Labels:       c.Labels,
	}
}

// parseReference insists on a tag: without one the runtime would look for
// "latest", and the kubelet would then always try to pull.
func parseReference(reference string) (name.Tag, error) {
	tag, err := name.NewTag(reference)
	if err != nil {
		return name.Tag{}, fmt.Errorf("reference %q: %w", reference, err)
	}
	if !strings.HasSuffix(reference, ":"+tag.TagStr()) {
		return name.Tag{}, fmt.Errorf("reference %q has no tag: write for instance %q", reference, reference+":dev")
	}
	return tag, nil
}

// writeArchive writes base with one more layer to path. The layer function
// writes an uncompressed tar; it runs more than once and must give the same
// bytes each time. path is either complete or as it was before.
func writeArchive(path string, tag name.Tag, config Config, base v1.Image, layer func(io.Writer) error) error {
	opener := func() (io.ReadCloser, error) {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(layer(writer)) }()
		return reader, nil
	}
	content, err := tarball.LayerFromOpener(opener, tarball.WithCompressedCaching)
	if err != nil {
		return fmt.Errorf("layer of %s: %w", tag, err)
	}
	image, err := mutate.AppendLayers(base, content)
	if err != nil {
		return fmt.Errorf("image %s: %w", tag, err)
	}
	image, err = mutate.ConfigFile(image, configFile(image, config))
	if err != nil {
		return fmt.Errorf("configuration of %s: %w", tag, err)
	}
	return WriteFile(path, func(w io.Writer) error {
		if err := tarball.Write(tag, image, w); err != nil {
			return fmt.Errorf("archive of %s: %w", tag, err)
		}
		return nil
	})
}

func configFile(image v1.Image, config Config) *v1.ConfigFile {
	file, err := image.ConfigFile()
	if err != nil { // in memory: only a fault of this package
		panic(fmt.Sprintf("configuration of an image in memory: %v", err))
	}
	file = file.DeepCopy()
	file.Architecture = cmp.Or(config.Architecture, runtime.GOARCH)
	file.OS = "linux"
	file.Created = v1.Time{Time: epoch}
	file.Config = config.imageConfig()
	for i := range file.History {
		file.History[i].Created = v1.Time{Time: epoch}
	}
	return file
}

// WriteFile gives path its content in one step: a reader, or a build
// that was interrupted, never finds half a file.
func WriteFile(path string, content func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if err := errors.Join(content(file), file.Chmod(0o644), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
