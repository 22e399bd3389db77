// Package source reads images for package imagecheck: from registries, with the user's credentials, and from archives and OCI
// layouts. Layers are read as a stream, and nothing is stored.
package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"opendatahub.io/mpijob/internal/imagecheck"
)

const (
	// defaultPlatform is checked if the user names none.
	defaultPlatform = "linux/amd64"
	// maxDocument is the largest manifest or configuration of an image that is read, in bytes. Registries accept manifests of
	// up to 4 MiB (distribution-spec, "Pushing Manifests").
	maxDocument = 8 << 20
	// maxDepth is how many indexes may contain each other.
	maxDepth = 2
)

// Options are how an image is read.
type Options struct {
	// Platform selects an image of an index, such as linux/arm64; by default linux/amd64, or the only one.
	Platform string
	// Progress is called before each layer is read; may be nil.
	Progress func(layer, layers int, bytes int64)
}

// RefusedError is returned if a registry responds with an error.
type RefusedError struct {
	Registry string
	// Status is that of HTTP.
	Status int
	Err    error
}

// Error returns the answer of the registry.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the client.
func (e *RefusedError) Unwrap() error { return e.Err }

// FromRegistry reads an image of a registry, with the credentials of docker login or podman login.
func FromRegistry(ctx context.Context, reference string, options Options) (imagecheck.Image, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return imagecheck.Image{}, err
	}
	found, err := remote.Get(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("kubectl-odh-mpijob"))
	if refused, is := errors.AsType[*transport.Error](err); is {
		return imagecheck.Image{}, &RefusedError{ref.Context().RegistryStr(), refused.StatusCode, err}
	}
	if err != nil {
		return imagecheck.Image{}, err
	}
	if !found.MediaType.IsIndex() {
		image, err := found.Image()
		if err != nil {
			return imagecheck.Image{}, err
		}
		return read(ctx, image, reference, nil, options)
	}
	index, err := found.ImageIndex()
	if err != nil {
		return imagecheck.Image{}, err
	}
	return readIndex(ctx, index, reference, options, 0)
}

// readIndex reads the image of an index that the options select.
func readIndex(ctx context.Context, index v1.ImageIndex, reference string, options Options, depth int) (imagecheck.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return imagecheck.Image{}, err
	}
	var images []v1.Descriptor
	var platforms []string
	for _, one := range manifest.Manifests {
		// Attestations have the platform unknown/unknown.
		if one.MediaType.IsImage() && (one.Platform == nil || one.Platform.OS != "unknown") {
			images = append(images, one)
			platforms = append(platforms, platformOf(one.Platform))
		}
	}
	// An archive of an image for several platforms has an index in its index.
	if len(images) == 0 && len(manifest.Manifests) == 1 && manifest.Manifests[0].MediaType.IsIndex() && depth < maxDepth {
		inner, err := index.ImageIndex(manifest.Manifests[0].Digest)
		if err != nil {
			return imagecheck.Image{}, err
		}
		return readIndex(ctx, inner, reference, options, depth+1)
	}
	at, err := selectPlatform(platforms, options.Platform)
	if err != nil {
		return imagecheck.Image{}, err
	}
	image, err := index.Image(images[at].Digest)
	if err != nil {
		return imagecheck.Image{}, err
	}
	return read(ctx, image, reference, platforms, options)
}

func platformOf(p *v1.Platform) string {
	if p == nil || p.OS == "" {
		return ""
	}
	return p.OS + "/" + p.Architecture
}

// selectPlatform returns which of the platforms is checked: the one that is wanted, else the default or the only one.
func selectPlatform(platforms []string, wanted string) (int, error) {
	if len(platforms) == 0 {
		return 0, errors.New("it contains no image")
	}
	at := slices.Index(platforms, wanted)
	switch {
	case at >= 0:
		return at, nil
	case wanted == "" && len(platforms) == 1:
		return 0, nil
	case wanted == "":
		if at = slices.Index(platforms, defaultPlatform); at >= 0 {
			return at, nil
		}
		return 0, fmt.Errorf("the image has no platform %s; set --platform to one of %s", defaultPlatform, strings.Join(platforms, ", "))
	}
	return 0, fmt.Errorf("--platform: the image has no platform %s; use one of %s", wanted, strings.Join(platforms, ", "))
}

// read reads an image. platforms are those of its index, if it has one.
func read(ctx context.Context, from v1.Image, reference string, platforms []string, options Options) (imagecheck.Image, error) {
	image := imagecheck.Image{Name: reference}
	manifest, err := from.Manifest()
	if err != nil {
		return image, err
	}
	if manifest.Config.Size > maxDocument {
		return image, fmt.Errorf("the configuration of the image has %d bytes; at most %d are read", manifest.Config.Size, maxDocument)
	}
	config, err := from.ConfigFile()
	if err != nil {
		return image, err
	}
	if digest, err := from.Digest(); err == nil {
		image.Digest = digest.String()
	}
	image.Platform = config.OS + "/" + config.Architecture
	if image.Platforms = platforms; len(platforms) == 0 {
		image.Platforms = []string{image.Platform}
	}
	if len(platforms) == 0 && options.Platform != "" && options.Platform != image.Platform {
		return image, fmt.Errorf("--platform: the image has no platform %s; use %s", options.Platform, image.Platform)
	}
	image.Config = imagecheck.Config{
		User: config.Config.User, WorkingDir: config.Config.WorkingDir, Env: config.Config.Env, Entrypoint: config.Config.Entrypoint,
	}
	layers, err := from.Layers()
	if err != nil {
		return image, err
	}
	image.Layers, image.Contents = len(layers), imagecheck.NewContents(config.Config.WorkingDir)
	for _, layer := range manifest.Layers {
		image.Compressed += layer.Size
	}
	for i, layer := range layers {
		if options.Progress != nil {
			options.Progress(i+1, len(layers), manifest.Layers[min(i, len(manifest.Layers)-1)].Size)
		}
		if err := addLayer(ctx, image.Contents, layer); err != nil {
			return image, fmt.Errorf("layer %d of %d: %w", i+1, len(layers), err)
		}
	}
	return image, nil
}

func addLayer(ctx context.Context, contents *imagecheck.Contents, layer v1.Layer) (err error) {
	stream, err := layer.Uncompressed()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	return contents.AddLayer(cancelable{ctx, stream})
}

// cancelable ends a read when its context ends, which reading a file does not.
type cancelable struct {
	ctx  context.Context
	from io.Reader
}

func (c cancelable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.from.Read(p)
}
