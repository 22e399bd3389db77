package source

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"opendatahub.io/mpijob/internal/imagecheck"
)

// maxEntries is how many files an archive may have. It has one or two for each layer.
const maxEntries = 10_000

// FromArchive reads an image of a file or folder: what docker save or podman save writes (docker-archive or oci-archive), or an
// OCI layout.
func FromArchive(ctx context.Context, file string, options Options) (imagecheck.Image, error) {
	info, err := os.Stat(file)
	if err != nil {
		return imagecheck.Image{}, err
	}
	if info.IsDir() {
		if err := checkDocument(filepath.Join(file, "index.json")); err != nil {
			return imagecheck.Image{}, err
		}
		index, err := layout.ImageIndexFromPath(file)
		if err != nil {
			return imagecheck.Image{}, fmt.Errorf("%s is no OCI layout: %w", file, err)
		}
		return readIndex(ctx, index, file, options, 0)
	}
	archive, err := openArchive(file)
	if err != nil {
		return imagecheck.Image{}, err
	}
	defer archive.Close()
	// Archives of Docker 25 and later are both.
	if _, is := archive.entries["manifest.json"]; is {
		return readDocker(ctx, archive, options)
	}
	if _, is := archive.entries["index.json"]; !is {
		return imagecheck.Image{}, fmt.Errorf("%s is no archive of an image: it has neither manifest.json nor index.json", file)
	}
	root := ociIndex{archive: archive}
	if root.raw, err = archive.document("index.json"); err != nil {
		return imagecheck.Image{}, err
	}
	return readIndex(ctx, root, file, options, 0)
}

func checkDocument(file string) error {
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxDocument {
		err = fmt.Errorf("%s has %d bytes; at most %d are read", file, info.Size(), maxDocument)
	}
	return err
}

// readDocker reads the image of an archive that docker save has written.
func readDocker(ctx context.Context, archive *archive, options Options) (imagecheck.Image, error) {
	raw, err := archive.document("manifest.json")
	if err != nil {
		return imagecheck.Image{}, err
	}
	var manifest tarball.Manifest
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return imagecheck.Image{}, fmt.Errorf("%s: manifest.json: %w", archive.name, err)
	}
	if len(manifest) != 1 {
		return imagecheck.Image{}, fmt.Errorf("%s contains %d images; use an archive of one", archive.name, len(manifest))
	}
	if _, err := archive.document(path.Clean(manifest[0].Config)); err != nil {
		return imagecheck.Image{}, err
	}
	image, err := tarball.ImageFromPath(archive.name, nil)
	if err != nil {
		return imagecheck.Image{}, fmt.Errorf("%s: %w", archive.name, err)
	}
	return read(ctx, image, archive.name, nil, options)
}

// archive is a tar file whose entries can be read in any order.
type archive struct {
	*os.File
	name    string
	entries map[string]*io.SectionReader
}

func openArchive(name string) (*archive, error) {
	file, err := os.Open(name) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	a := &archive{File: file, name: name, entries: map[string]*io.SectionReader{}}
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err == nil && len(a.entries) == maxEntries {
			err = fmt.Errorf("it has more than %d files", maxEntries)
		}
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("%s is no archive of an image: %w", name, err)
		}
		if header.Typeflag == tar.TypeReg {
			// The reader reads no further than the header, so this is the content.
			at, err := file.Seek(0, io.SeekCurrent)
			if err != nil {
				file.Close()
				return nil, err
			}
			a.entries[path.Clean(header.Name)] = io.NewSectionReader(file, at, header.Size)
		}
	}
}

// open returns the content of a file, from its start.
func (a *archive) open(name string) (*io.SectionReader, error) {
	entry := a.entries[name]
	if entry == nil {
		return nil, fmt.Errorf("%s has no file %s", a.name, name)
	}
	return io.NewSectionReader(entry, 0, entry.Size()), nil
}

// document returns the content of a small file.
func (a *archive) document(name string) ([]byte, error) {
	entry, err := a.open(name)
	if err != nil {
		return nil, err
	}
	if entry.Size() > maxDocument {
		return nil, fmt.Errorf("%s: %s has %d bytes; at most %d are read", a.name, name, entry.Size(), maxDocument)
	}
	return io.ReadAll(entry)
}

func blob(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }

// ociIndex is an index in an archive with an OCI layout. It is what package layout does for folders.
type ociIndex struct {
	archive *archive
	raw     []byte
}

// MediaType implements v1.ImageIndex.
func (ociIndex) MediaType() (types.MediaType, error) { return types.OCIImageIndex, nil }

// Digest implements v1.ImageIndex.
func (i ociIndex) Digest() (v1.Hash, error) { return partial.Digest(i) }

// Size implements v1.ImageIndex.
func (i ociIndex) Size() (int64, error) { return partial.Size(i) }

// RawManifest implements v1.ImageIndex.
func (i ociIndex) RawManifest() ([]byte, error) { return i.raw, nil }

// IndexManifest implements v1.ImageIndex.
func (i ociIndex) IndexManifest() (*v1.IndexManifest, error) {
	var manifest v1.IndexManifest
	if err := json.Unmarshal(i.raw, &manifest); err != nil {
		return nil, fmt.Errorf("%s: index: %w", i.archive.name, err)
	}
	return &manifest, nil
}

// Image implements v1.ImageIndex.
func (i ociIndex) Image(digest v1.Hash) (v1.Image, error) {
	manifest, err := i.IndexManifest()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(manifest.Manifests, func(one v1.Descriptor) bool { return one.Digest == digest })
	if at < 0 {
		return nil, fmt.Errorf("%s has no image %s", i.archive.name, digest)
	}
	raw, err := i.archive.document(blob(digest))
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(ociImage{i.archive, manifest.Manifests[at].MediaType, raw})
}

// ImageIndex implements v1.ImageIndex.
func (i ociIndex) ImageIndex(digest v1.Hash) (v1.ImageIndex, error) {
	raw, err := i.archive.document(blob(digest))
	return ociIndex{i.archive, raw}, err
}

// ociImage is an image in an archive with an OCI layout.
type ociImage struct {
	archive   *archive
	mediaType types.MediaType
	raw       []byte
}

// MediaType implements partial.CompressedImageCore.
func (i ociImage) MediaType() (types.MediaType, error) { return i.mediaType, nil }

// RawManifest implements partial.CompressedImageCore.
func (i ociImage) RawManifest() ([]byte, error) { return i.raw, nil }

// RawConfigFile implements partial.CompressedImageCore.
func (i ociImage) RawConfigFile() ([]byte, error) {
	manifest, err := partial.Manifest(i)
	if err != nil {
		return nil, err
	}
	return i.archive.document(blob(manifest.Config.Digest))
}

// LayerByDigest implements partial.CompressedImageCore.
func (i ociImage) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	manifest, err := partial.Manifest(i)
	if err != nil {
		return nil, err
	}
	for _, one := range append(slices.Clone(manifest.Layers), manifest.Config) {
		if one.Digest == digest {
			return ociLayer{i.archive, one}, nil
		}
	}
	return nil, fmt.Errorf("%s has no layer %s", i.archive.name, digest)
}

// ociLayer is a layer in an archive with an OCI layout.
type ociLayer struct {
	archive    *archive
	descriptor v1.Descriptor
}

// Digest implements partial.CompressedLayer.
func (l ociLayer) Digest() (v1.Hash, error) { return l.descriptor.Digest, nil }

// Compressed implements partial.CompressedLayer.
func (l ociLayer) Compressed() (io.ReadCloser, error) {
	content, err := l.archive.open(blob(l.descriptor.Digest))
	return io.NopCloser(content), err
}

// Size implements partial.CompressedLayer.
func (l ociLayer) Size() (int64, error) { return l.descriptor.Size, nil }

// MediaType implements partial.CompressedLayer.
func (l ociLayer) MediaType() (types.MediaType, error) { return l.descriptor.MediaType, nil }
