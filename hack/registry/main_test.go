package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
)

// TestPushAndServe pushes an image to the registry under its digest, as `hack/publish.sh` does.
func TestPushAndServe(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	folder, served := t.TempDir(), make(chan error, 1)
	go func() { served <- serve(ctx, folder, "127.0.0.1:0") }()
	address := readEventually(t, filepath.Join(folder, "address"))

	image, err := random.Index(256, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	want, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "layout")
	if _, err := layout.Write(path, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image})); err != nil {
		t.Fatal(err)
	}
	var stdout strings.Builder
	if err := run(ctx, []string{"push", path, address + "/mpi/operator:v1"}, &stdout); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(stdout.String()); got != want.String() {
		t.Errorf("push prints %s, want %s", got, want)
	}
	requests, err := os.ReadFile(filepath.Join(folder, "requests")) //nolint:gosec // the test's own file
	if err != nil || !strings.Contains(string(requests), `PUT "/v2/mpi/operator/manifests/v1"`) {
		t.Errorf("the requests are %s, %v, want the one of the tag", requests, err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestPushRefusesOtherLayouts(t *testing.T) {
	t.Parallel()
	image, err := random.Image(256, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, index := range map[string]v1.ImageIndex{
		"no image":        empty.Index,
		"no architecture": mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: image}),
	} {
		path := filepath.Join(t.TempDir(), "layout")
		if _, err := layout.Write(path, index); err != nil {
			t.Fatal(err)
		}
		if _, err := push(t.Context(), path, "127.0.0.1:1/mpi/operator:v1"); err == nil || !strings.Contains(err.Error(), "exactly one image") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func readEventually(t *testing.T, path string) string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(path) //nolint:gosec // the test's own file
		if err == nil {
			return strings.TrimSpace(string(text))
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
