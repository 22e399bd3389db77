// Package imagetar reads from an image archive which images it holds, without
// unpacking it.
package imagetar

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// Image is one image of an archive.
type Image struct {
	// References are its names as the archive has them; there may be none.
	References []string
	// ConfigDigest is "sha256:…" of its configuration, which is what
	// Kubernetes calls an image's ID.
	ConfigDigest string
}

// Read returns the images of a docker-archive (docker save, podman save) or
// an OCI archive, plain or gzipped.
func Read(file string) (images []Image, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("image archive: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	documents, err := readDocuments(f)
	if err != nil {
		return nil, fmt.Errorf("image archive %s: %w", file, err)
	}
	if content, ok := documents["manifest.json"]; ok {
		images, err = fromDocker(content)
	} else if content, ok := documents["index.json"]; ok {
		images, err = fromOCI(content, documents)
	} else {
		err = errors.New("it has neither manifest.json nor index.json; make it with docker save, podman save or this repository's image builder")
	}
	if err != nil {
		return nil, fmt.Errorf("image archive %s: %w", file, err)
	}
	return images, nil
}

// readDocuments returns the archive's small JSON files. Layers are skipped by
// seeking where the archive is a plain file.
func readDocuments(f io.ReadSeeker) (map[string][]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return nil, fmt.Errorf("it is empty: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewind: %w", err)
	}
	var source io.Reader = f
	if head == [2]byte{0x1f, 0x8b} {
		unzipped, err := gzip.NewReader(bufio.NewReader(f))
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		source = unzipped
	}
	const most = 4 << 20
	documents := map[string][]byte{}
	for archive := tar.NewReader(source); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("tar: %w", err)
		}
		name := path.Clean(header.Name)
		wanted := name == "manifest.json" || name == "index.json" || strings.HasPrefix(name, "blobs/sha256/")
		if header.Typeflag != tar.TypeReg || header.Size > most || !wanted {
			continue
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("tar: %w", err)
		}
		if json.Valid(content) {
			documents[name] = content
		}
	}
}

func fromDocker(manifest []byte) ([]Image, error) {
	var entries []struct {
		Config   string
		RepoTags []string
	}
	if err := json.Unmarshal(manifest, &entries); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	var images []Image
	for _, entry := range entries {
		// "<hex>.json", "sha256:<hex>" or "blobs/sha256/<hex>".
		hex := strings.TrimPrefix(strings.TrimSuffix(path.Base(entry.Config), ".json"), "sha256:")
		images = append(images, Image{References: entry.RepoTags, ConfigDigest: "sha256:" + hex})
	}
	return images, nil
}

func fromOCI(index []byte, documents map[string][]byte) ([]Image, error) {
	var list struct {
		Manifests []struct {
			Digest      string
			Annotations map[string]string
		}
	}
	if err := json.Unmarshal(index, &list); err != nil {
		return nil, fmt.Errorf("index.json: %w", err)
	}
	var images []Image
	for _, entry := range list.Manifests {
		var manifest struct{ Config struct{ Digest string } }
		if err := json.Unmarshal(documents[blob(entry.Digest)], &manifest); err != nil {
			return nil, fmt.Errorf("manifest %s: %w", entry.Digest, err)
		}
		image := Image{ConfigDigest: manifest.Config.Digest}
		for _, key := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
			if name := entry.Annotations[key]; name != "" {
				image.References = append(image.References, name)
				break
			}
		}
		images = append(images, image)
	}
	return images, nil
}

func blob(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }

// Normalize returns a reference as containerd has it: with its registry.
func Normalize(reference string) string {
	first, rest, found := strings.Cut(reference, "/")
	if !found {
		return "docker.io/library/" + reference
	}
	if first == "index.docker.io" {
		return "docker.io/" + rest
	}
	if strings.ContainsAny(first, ".:") || first == "localhost" {
		return reference
	}
	return "docker.io/" + reference
}
