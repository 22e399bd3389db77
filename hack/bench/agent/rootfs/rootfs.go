// Package rootfs unpacks an image as a folder of files.
package rootfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Image is the archive of an image and what is in it.
type Image struct {
	// Archive is a docker-archive, Reference the image's name, Root a folder with its files.
	Archive, Reference, Root string
}

// Sample is Build, and unpacks the image below the folder, in which it replaces what was unpacked before. As root, so that the
// files' owners are right.
func Sample(ctx context.Context, root, name, folder string) (Image, error) {
	image, err := Build(ctx, root, name, folder)
	if err != nil {
		return Image{}, err
	}
	if _, err := os.Stat(image.Root); err == nil {
		return image, nil
	}
	list, err := manifestOf(ctx, image.Archive)
	if err != nil {
		return Image{}, err
	}
	return image, unpack(ctx, image, list.Layers[0])
}

// Build writes the archive of a sample image of the checkout at root to a folder: built, or from the cache. Root need not exist.
func Build(ctx context.Context, root, name, folder string) (Image, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return Image{}, fmt.Errorf("unpack an image: %w", err)
	}
	image := Image{Archive: filepath.Join(folder, name+".tar")}
	build := exec.CommandContext(ctx, "go", "run", ".", "sample", name, "--out", image.Archive)
	build.Dir = filepath.Join(root, "hack", "images")
	if out, err := build.CombinedOutput(); err != nil {
		return Image{}, fmt.Errorf("build the sample image %s: %w\n%s", name, err, out)
	}
	list, err := manifestOf(ctx, image.Archive)
	if err != nil {
		return Image{}, err
	}
	image.Reference = list.RepoTags[0]
	image.Root = filepath.Join(folder, strings.TrimPrefix(list.Config, "sha256:"))
	return image, nil
}

func manifestOf(ctx context.Context, archive string) (manifest, error) {
	list, err := exec.CommandContext(ctx, "tar", "-xOf", archive, "manifest.json").Output()
	if err != nil {
		return manifest{}, fmt.Errorf("list %s: %w", archive, err)
	}
	parsed, err := parseManifest(list)
	if err != nil {
		return manifest{}, fmt.Errorf("list %s: %w", archive, err)
	}
	return parsed, nil
}

type manifest struct {
	Config           string
	RepoTags, Layers []string
}

// parseManifest reads the manifest of an archive with one image of one layer, as hack/images writes them.
func parseManifest(text []byte) (manifest, error) {
	var all []manifest
	if err := json.Unmarshal(text, &all); err != nil {
		return manifest{}, fmt.Errorf("read its manifest: %w", err)
	}
	if len(all) != 1 || len(all[0].RepoTags) != 1 || len(all[0].Layers) != 1 || all[0].Config == "" {
		return manifest{}, fmt.Errorf("it holds something else than one image of one layer: %s", text)
	}
	return all[0], nil
}

// unpack unpacks a layer; the folder is there complete or not at all.
func unpack(ctx context.Context, image Image, layer string) error {
	folder := filepath.Dir(image.Root)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", image.Archive, err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := os.RemoveAll(filepath.Join(folder, entry.Name())); err != nil {
				return fmt.Errorf("remove an image unpacked before: %w", err)
			}
		}
	}
	part, err := os.MkdirTemp(folder, "part-")
	if err != nil {
		return fmt.Errorf("unpack %s: %w", image.Archive, err)
	}
	if err := os.Chmod(part, 0o755); err != nil {
		return fmt.Errorf("unpack %s: %w", image.Archive, err)
	}
	read := exec.CommandContext(ctx, "tar", "-xOf", image.Archive, layer)
	write := exec.CommandContext(ctx, "tar", "-xzpf", "-", "-C", part)
	if write.Stdin, err = read.StdoutPipe(); err != nil {
		return fmt.Errorf("unpack %s: %w", image.Archive, err)
	}
	if err := errors.Join(read.Start(), write.Run(), read.Wait()); err != nil {
		return errors.Join(fmt.Errorf("unpack %s: %w", image.Archive, err), os.RemoveAll(part))
	}
	if err := os.Rename(part, image.Root); err != nil {
		return fmt.Errorf("unpack %s: %w", image.Archive, err)
	}
	return nil
}
