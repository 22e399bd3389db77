package source

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"opendatahub.io/mpijob/internal/imagecheck"
	"opendatahub.io/mpijob/internal/mpi"
)

// newImage returns an image with MPICH in two layers.
func newImage(t *testing.T, architecture string) v1.Image {
	t.Helper()
	files := func(names ...string) v1.Layer {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, file := range names {
			if err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o755, Typeflag: tar.TypeReg}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
		if err != nil {
			t.Fatal(err)
		}
		return layer
	}
	image, err := mutate.AppendLayers(empty.Image, files("bin/sh"), files("usr/bin/mpirun", "usr/bin/hydra_pmi_proxy", "usr/lib/libmpi.so.12"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.User = "linux", architecture, "1000"
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

func newIndex(t *testing.T, architectures ...string) v1.ImageIndex {
	t.Helper()
	var index v1.ImageIndex = empty.Index
	for _, architecture := range architectures {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: newImage(t, architecture), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return index
}

func newRegistry(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func mustPush(t *testing.T, reference string, push func(name.Reference) error) {
	t.Helper()
	ref, err := name.ParseReference(reference)
	if err == nil {
		err = push(ref)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// check fails unless an image was read completely.
func check(t *testing.T, image imagecheck.Image, err error, platform string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	r := imagecheck.Judge(image)
	if !r.Usable() || r.MPIImplementation != mpi.MPICH || r.Platform != platform || image.Layers != 2 || r.CompressedBytes == 0 || !strings.HasPrefix(r.Digest, "sha256:") {
		t.Errorf("%+v", r)
	}
}

func TestRegistry(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	at := newRegistry(t, registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	mustPush(t, at+"/one:1", func(ref name.Reference) error { return remote.Write(ref, newImage(t, "amd64")) })
	mustPush(t, at+"/two:1", func(ref name.Reference) error { return remote.WriteIndex(ref, newIndex(t, "amd64", "arm64")) })
	mustPush(t, at+"/arm:1", func(ref name.Reference) error { return remote.WriteIndex(ref, newIndex(t, "arm64")) })
	mustPush(t, at+"/ibm:1", func(ref name.Reference) error { return remote.WriteIndex(ref, newIndex(t, "ppc64le", "s390x")) })
	for reference, test := range map[string]struct{ wanted, platform, message string }{
		"/one:1":     {platform: "linux/amd64"},
		"/one:1 arm": {wanted: "linux/arm64", message: "--platform: the image has no platform linux/arm64; use linux/amd64"},
		"/two:1":     {platform: "linux/amd64"},
		"/two:1 arm": {wanted: "linux/arm64", platform: "linux/arm64"},
		"/arm:1":     {platform: "linux/arm64"},
		"/ibm:1":     {message: "the image has no platform linux/amd64; set --platform to one of linux/ppc64le, linux/s390x"},
		"/ibm:1 arm": {wanted: "linux/arm64", message: "use one of linux/ppc64le, linux/s390x"},
	} {
		t.Run(reference, func(t *testing.T) {
			path, _, _ := strings.Cut(reference, " ")
			var layers []int
			image, err := FromRegistry(t.Context(), at+path, Options{Platform: test.wanted, Progress: func(layer, of int, _ int64) { layers = append(layers, layer, of) }})
			if test.message != "" {
				if err == nil || !strings.Contains(err.Error(), test.message) {
					t.Errorf("error %v, want %q", err, test.message)
				}
				return
			}
			check(t, image, err, test.platform)
			if len(layers) != 4 || layers[2] != 2 || layers[3] != 2 {
				t.Errorf("progress: %v", layers)
			}
		})
	}
	_, err := FromRegistry(t.Context(), at+"/one:2", Options{})
	if refused, is := errors.AsType[*RefusedError](err); !is || refused.Status != http.StatusNotFound || refused.Registry != at {
		t.Errorf("a tag that does not exist: %v", err)
	}
	if _, err := FromRegistry(t.Context(), "No Name", Options{}); err == nil {
		t.Error("a name with a space was accepted")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := FromRegistry(ended, at+"/one:1", Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestCredentials: the credentials of the user's configuration are used.
func TestCredentials(t *testing.T) {
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	open := newRegistry(t, images)
	mustPush(t, open+"/one:1", func(ref name.Reference) error { return remote.Write(ref, newImage(t, "amd64")) })
	private := newRegistry(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	}))
	folder := t.TempDir()
	t.Setenv("DOCKER_CONFIG", folder)
	_, err := FromRegistry(t.Context(), private+"/one:1", Options{})
	if refused, is := errors.AsType[*RefusedError](err); !is || refused.Status != http.StatusUnauthorized {
		t.Errorf("without credentials: %v", err)
	}
	// "me:secret" in base64.
	if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(`{"auths":{"`+private+`":{"auth":"bWU6c2VjcmV0"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	image, err := FromRegistry(t.Context(), private+"/one:1", Options{})
	check(t, image, err, "linux/amd64")
}

// TestChangedLayer: a layer that is not the one of the manifest is an error.
func TestChangedLayer(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	image := newImage(t, "amd64")
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[1].Digest()
	if err != nil {
		t.Fatal(err)
	}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	honest := newRegistry(t, images)
	mustPush(t, honest+"/one:1", func(ref name.Reference) error { return remote.Write(ref, image) })
	other, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := io.ReadAll(other)
	if err != nil {
		t.Fatal(err)
	}
	at := newRegistry(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, digest.String()) {
			_, _ = w.Write(wrong)
			return
		}
		images.ServeHTTP(w, r)
	}))
	if _, err := FromRegistry(t.Context(), at+"/one:1", Options{}); err == nil || !strings.Contains(err.Error(), "layer 2 of 2") {
		t.Errorf("error %v", err)
	}
}

func TestArchives(t *testing.T) {
	folder := t.TempDir()
	docker := filepath.Join(folder, "docker.tar")
	if err := tarball.WriteToFile(docker, name.MustParseReference("me/train:1"), newImage(t, "amd64")); err != nil {
		t.Fatal(err)
	}
	image, err := FromArchive(t.Context(), docker, Options{})
	check(t, image, err, "linux/amd64")

	// An index of platforms, as an index in that of the layout.
	oci := filepath.Join(folder, "layout")
	path, err := layout.Write(oci, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendIndex(newIndex(t, "arm64", "amd64")); err != nil {
		t.Fatal(err)
	}
	archived := filepath.Join(folder, "oci.tar")
	file, err := os.Create(archived)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(file)
	if err := errors.Join(w.AddFS(os.DirFS(oci)), w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{oci, archived} {
		image, err := FromArchive(t.Context(), from, Options{Platform: "linux/arm64"})
		check(t, image, err, "linux/arm64")
		image, err = FromArchive(t.Context(), from, Options{})
		check(t, image, err, "linux/amd64")
	}

	text := filepath.Join(folder, "text")
	if err := os.WriteFile(text, []byte("FROM scratch\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{text, filepath.Join(folder, "none"), folder} {
		if _, err := FromArchive(t.Context(), wrong, Options{}); err == nil {
			t.Errorf("%s was read", wrong)
		}
	}
}

// TestHostileArchives: documents that are too large or do not exist are errors, and are not read.
func TestHostileArchives(t *testing.T) {
	for title, test := range map[string]struct {
		files   map[string]string
		message string
	}{
		"a large manifest":      {map[string]string{"manifest.json": strings.Repeat(" ", maxDocument+1)}, "at most 8388608 are read"},
		"a large configuration": {map[string]string{"manifest.json": `[{"Config":"c","Layers":[]}]`, "c": strings.Repeat(" ", maxDocument+1)}, "at most 8388608 are read"},
		"a large index":         {map[string]string{"index.json": strings.Repeat(" ", maxDocument+1)}, "at most 8388608 are read"},
		"two images":            {map[string]string{"manifest.json": `[{"Config":"c"},{"Config":"c"}]`}, "contains 2 images"},
		"no configuration":      {map[string]string{"manifest.json": `[{"Config":"../../etc/passwd","Layers":[]}]`}, "has no file ../../etc/passwd"},
		"an empty index":        {map[string]string{"index.json": `{}`}, "it contains no image"},
		"a missing manifest": {map[string]string{
			"index.json": `{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:` + strings.Repeat("0", 64) + `"}]}`,
		}, "has no file blobs/sha256/0000"},
		"neither": {map[string]string{"x": ""}, "neither manifest.json nor index.json"},
	} {
		t.Run(title, func(t *testing.T) {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			for file, content := range test.files {
				if err := w.WriteHeader(&tar.Header{Name: file, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(w, content); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(t.TempDir(), "x.tar")
			if err := errors.Join(w.Close(), os.WriteFile(file, b.Bytes(), 0o600)); err != nil {
				t.Fatal(err)
			}
			if _, err := FromArchive(t.Context(), file, Options{}); err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("error %v, want %q", err, test.message)
			}
		})
	}
}
