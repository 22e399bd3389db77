package start

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// coldImages serves copies of an image that no node has, from a registry in this process. The nodes of the one-machine cluster
// share this machine's network, and use HTTP for 127.0.0.1.
type coldImages struct {
	image  v1.Image
	server *http.Server
	host   string
	folder string
	made   int
}

// serveColdImages starts the registry, with the image of a docker-archive.
func serveColdImages(ctx context.Context, archive string) (*coldImages, error) {
	image, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", archive, err)
	}
	folder, err := os.MkdirTemp("", "mpijob-bench-registry-")
	if err != nil {
		return nil, fmt.Errorf("make folder for images: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start registry: %w", err), os.RemoveAll(folder))
	}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(folder)))
	c := &coldImages{image: image, host: listener.Addr().String(), folder: folder, server: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

// close stops the registry and deletes its images.
func (c *coldImages) close() error {
	if c == nil {
		return nil
	}
	return errors.Join(c.server.Close(), os.RemoveAll(c.folder))
}

// next returns the name of a new copy. Each of its layers has one more file, so that a node has to pull and unpack all of them.
func (c *coldImages) next(ctx context.Context) (string, error) {
	c.made++
	config, err := c.image.ConfigFile()
	if err != nil {
		return "", fmt.Errorf("read image: %w", err)
	}
	layers, err := c.image.Layers()
	if err != nil {
		return "", fmt.Errorf("read image: %w", err)
	}
	file, err := markerFile(fmt.Sprintf("%d-%d", time.Now().UnixNano(), c.made))
	if err != nil {
		return "", err
	}
	copied := empty.Image
	for _, layer := range layers {
		changed, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			content, err := layer.Uncompressed()
			if err != nil {
				return nil, fmt.Errorf("read layer: %w", err)
			}
			return struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader(file), content), content}, nil
		}, tarball.WithCompressionLevel(1))
		if err != nil {
			return "", fmt.Errorf("copy layer: %w", err)
		}
		if copied, err = mutate.AppendLayers(copied, changed); err != nil {
			return "", fmt.Errorf("copy image: %w", err)
		}
	}
	if copied, err = mutate.Config(copied, config.Config); err != nil {
		return "", fmt.Errorf("copy image: %w", err)
	}
	reference := fmt.Sprintf("%s/bench/sample:%d", c.host, c.made)
	tag, err := name.NewTag(reference, name.Insecure)
	if err != nil {
		return "", fmt.Errorf("name image: %w", err)
	}
	if err := remote.Write(tag, copied, remote.WithContext(ctx)); err != nil {
		return "", fmt.Errorf("push %s: %w", reference, err)
	}
	return reference, nil
}

// markerFile is the start of a tar archive: one small file. Further entries can follow.
func markerFile(content string) ([]byte, error) {
	var start bytes.Buffer
	w := tar.NewWriter(&start)
	header := &tar.Header{Name: "bench-marker", Mode: 0o644, Size: int64(len(content)), Format: tar.FormatPAX}
	if err := w.WriteHeader(header); err != nil {
		return nil, fmt.Errorf("mark layer: %w", err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		return nil, fmt.Errorf("mark layer: %w", err)
	}
	if err := w.Flush(); err != nil {
		return nil, fmt.Errorf("mark layer: %w", err)
	}
	return start.Bytes(), nil
}
