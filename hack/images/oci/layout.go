package oci

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// refName is the annotation that names an image in an OCI layout.
const refName = "org.opencontainers.image.ref.name"

// WriteLayout makes one image of archives, each for another architecture, and
// writes it into a folder as an OCI image layout. It returns the digest of the
// image, which registries and pods use: the same archives make the same
// digest. The folder must not exist.
//
// "skopeo copy --all --preserve-digests oci:FOLDER:TAG docker://REFERENCE"
// pushes it.
func WriteLayout(folder, reference string, archives []string) (digest string, err error) {
	tag, err := parseReference(reference)
	if err != nil {
		return "", err
	}
	if len(archives) == 0 {
		return "", fmt.Errorf("no archives of %s", tag)
	}
	if _, err := os.Lstat(folder); err == nil {
		return "", fmt.Errorf("%s already exists", folder)
	}
	var parts []mutate.IndexAddendum
	for _, archive := range archives {
		part, err := read(archive)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", archive, err)
		}
		parts = append(parts, part)
	}
	slices.SortFunc(parts, func(a, b mutate.IndexAddendum) int {
		return cmp.Compare(a.Platform.Architecture, b.Platform.Architecture)
	})
	for i := 1; i < len(parts); i++ {
		if architecture := parts[i].Platform.Architecture; architecture == parts[i-1].Platform.Architecture {
			return "", fmt.Errorf("two archives of %s are for %s", tag, architecture)
		}
	}
	index := mutate.AppendManifests(empty.Index, parts...)
	hash, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("digest of %s: %w", tag, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	named := v1.Descriptor{Annotations: map[string]string{refName: tag.TagStr()}}
	if _, err := layout.Write(folder, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index, Descriptor: named})); err != nil {
		return "", fmt.Errorf("write %s: %w", folder, err)
	}
	return hash.String(), nil
}

// read returns the image in an archive, in OCI's format instead of Docker's.
func read(archive string) (mutate.IndexAddendum, error) {
	from, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return mutate.IndexAddendum{}, err
	}
	config, err := from.ConfigFile()
	if err != nil {
		return mutate.IndexAddendum{}, err
	}
	layers, err := from.Layers()
	if err != nil {
		return mutate.IndexAddendum{}, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, layer := range layers {
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer}); err != nil {
			return mutate.IndexAddendum{}, err
		}
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return mutate.IndexAddendum{}, err
	}
	return mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture}}}, nil
}
