package oci

import (
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestWriteLayout(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	archive := func(name string) string {
		path := filepath.Join(folder, name+".tar")
		if err := (Program{Reference: "odh/operator:v1", Binary: elfFile(t, name, false)}).Write(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one := archive("operator")
	digest, err := WriteLayout(filepath.Join(folder, "layout"), "registry.example.com/odh/operator:v1", []string{one})
	if err != nil {
		t.Fatal(err)
	}
	again, err := WriteLayout(filepath.Join(folder, "again"), "registry.example.com/odh/operator:v1", []string{one})
	if err != nil || again != digest {
		t.Errorf("the same archive has the digests %s and %s, %v", digest, again, err)
	}

	all, err := layout.ImageIndexFromPath(filepath.Join(folder, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest.String() != digest || manifest.Manifests[0].Annotations[refName] != "v1" {
		t.Fatalf("the layout names %+v, want %s as v1", manifest.Manifests, digest)
	}
	index, err := all.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	parts, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(parts.Manifests) != 1 || parts.Manifests[0].Platform == nil || parts.Manifests[0].Platform.OS != "linux" || parts.MediaType != types.OCIImageIndex || parts.Manifests[0].MediaType != types.OCIManifestSchema1 {
		t.Fatalf("the index has %+v", parts)
	}
	image, err := index.Image(parts.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	sameContent(t, one, image)
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if kind, err := layers[0].MediaType(); err != nil || kind != types.OCILayer {
		t.Errorf("the layer is a %s, %v", kind, err)
	}
	for name, archives := range map[string][]string{"twice the same architecture": {one, one}, "no archives": nil, "no archive": {filepath.Join(folder, "none.tar")}} {
		if _, err := WriteLayout(filepath.Join(folder, "wrong"), "odh/operator:v1", archives); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := WriteLayout(filepath.Join(folder, "layout"), "odh/operator:v1", []string{one}); err == nil {
		t.Error("a folder that exists is overwritten")
	}
}

// sameContent compares the configuration and the layers' content with those of an archive.
func sameContent(t *testing.T, archive string, image v1.Image) {
	t.Helper()
	from, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := from.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := image.ConfigName(); err != nil || got != want {
		t.Errorf("the configuration is %s, want %s, %v", got, want, err)
	}
}
