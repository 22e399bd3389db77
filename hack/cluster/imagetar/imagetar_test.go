package imagetar

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func archive(t *testing.T, zipped bool, files ...string) string {
	t.Helper()
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	for i := 0; i < len(files); i += 2 {
		if err := writer.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	data := content.Bytes()
	if zipped {
		var small bytes.Buffer
		zip := gzip.NewWriter(&small)
		if _, err := zip.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := zip.Close(); err != nil {
			t.Fatal(err)
		}
		data = small.Bytes()
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	docker := []string{
		"layer.tar", "not json", "abc.json", "{}",
		"manifest.json", `[{"Config":"abc.json","RepoTags":["mpi:dev"],"Layers":["layer.tar"]}]`,
	}
	oci := []string{
		"oci-layout", "{}",
		"blobs/sha256/aaa", `{"config":{"digest":"sha256:ccc"}}`,
		"index.json", `{"manifests":[{"digest":"sha256:aaa","annotations":{"org.opencontainers.image.ref.name":"dev","io.containerd.image.name":"docker.io/odh/mpi:dev"}}]}`,
	}
	tests := map[string]struct {
		zipped bool
		files  []string
		want   []Image
		fails  string
	}{
		"docker":                  {files: docker, want: []Image{{References: []string{"mpi:dev"}, ConfigDigest: "sha256:abc"}}},
		"docker, gzipped":         {files: docker, zipped: true, want: []Image{{References: []string{"mpi:dev"}, ConfigDigest: "sha256:abc"}}},
		"docker, digest as name":  {files: []string{"manifest.json", `[{"Config":"sha256:abc"}]`}, want: []Image{{ConfigDigest: "sha256:abc"}}},
		"docker, config as blob":  {files: []string{"manifest.json", `[{"Config":"blobs/sha256/abc"}]`}, want: []Image{{ConfigDigest: "sha256:abc"}}},
		"oci":                     {files: oci, want: []Image{{References: []string{"docker.io/odh/mpi:dev"}, ConfigDigest: "sha256:ccc"}}},
		"neither":                 {files: []string{"bin/sh", "x"}, fails: "neither manifest.json nor index.json"},
		"oci without its content": {files: []string{"index.json", `{"manifests":[{"digest":"sha256:aaa"}]}`}, fails: "manifest sha256:aaa"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Read(archive(t, test.zipped, test.files...))
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("error is %v, want one with %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestNormalize(t *testing.T) {
	for reference, want := range map[string]string{
		"busybox:1":               "docker.io/library/busybox:1",
		"odh/mpi:dev":             "docker.io/odh/mpi:dev",
		"index.docker.io/odh/x:1": "docker.io/odh/x:1",
		"localhost/pause:1":       "localhost/pause:1",
		"quay.io/odh/mpi:dev":     "quay.io/odh/mpi:dev",
		"registry:5000/x:1":       "registry:5000/x:1",
	} {
		if got := Normalize(reference); got != want {
			t.Errorf("%s: got %s, want %s", reference, got, want)
		}
	}
}
