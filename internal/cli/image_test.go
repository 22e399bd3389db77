package cli_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"opendatahub.io/mpijob/internal/cli"
)

// imageOf returns an image with files that are empty and executable.
func imageOf(t *testing.T, user string, files ...string) v1.Image {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, file := range files {
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
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.User = "linux", "amd64", user
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

// runCLI runs the program and returns its exit code and output.
func runCLI(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	code = cli.Main(t.Context(), append([]string{"kubectl-odh-mpijob"}, args...), streams, time.Now)
	return code, stdout.String(), stderr.String()
}

func TestImageCheck(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	at := strings.TrimPrefix(server.URL, "http://")
	for tag, image := range map[string]v1.Image{
		"mpich": imageOf(t, "1000", "bin/sh", "usr/bin/mpirun", "usr/bin/hydra_pmi_proxy", "usr/lib/libmpi.so.12"),
		"root":  imageOf(t, "", "bin/sh", "usr/bin/mpirun", "usr/bin/orted", "usr/lib/libmpi.so.40.30.4"),
		"empty": imageOf(t, "1000", "bin/sh"),
	} {
		reference, err := name.ParseReference(at + "/train:" + tag)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(reference, image); err != nil {
			t.Fatal(err)
		}
	}
	archive := filepath.Join(t.TempDir(), "train.tar")
	if err := tarball.WriteToFile(archive, name.MustParseReference("train:1"), imageOf(t, "1000", "bin/sh")); err != nil {
		t.Fatal(err)
	}

	code, out, _ := runCLI(t, "image", "check", at+"/train:mpich")
	if want := "Jobs can use this image, with --implementation MPICH.\nkubectl odh mpijob create NAME --image " + at + "/train:mpich --implementation MPICH --workers 2"; code != 0 || !strings.Contains(out, want) {
		t.Errorf("exit code %d, output:\n%s\nwant %q", code, out, want)
	}
	code, out, _ = runCLI(t, "image", "check", at+"/train:root")
	if want := "warn  User             root: namespaces"; code != 0 || !strings.Contains(out, want) || !strings.Contains(out, "Jobs can use this image, with 1 warning.") {
		t.Errorf("exit code %d, output:\n%s\nwant %q", code, out, want)
	}
	for _, args := range [][]string{{at + "/train:empty"}, {"--archive", archive}} {
		code, out, _ = runCLI(t, append([]string{"image", "check"}, args...)...)
		if want := "fail  MPI              no MPI was found"; code != cli.ExitError || !strings.Contains(out, want) || !strings.Contains(out, " checks failed: jobs cannot use this image.") {
			t.Errorf("%s: exit code %d, output:\n%s\nwant %q", args, code, out, want)
		}
	}

	code, out, _ = runCLI(t, "image", "check", at+"/train:mpich", "-o", "json")
	var result struct {
		MPIImplementation string
		MPI               []struct{ ABI string }
		Checks            []struct{ Check, Verdict, Found string }
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	if result.MPIImplementation != "MPICH" || len(result.MPI) != 1 || result.MPI[0].ABI != "libmpi.so.12" || len(result.Checks) < 10 {
		t.Errorf("%+v", result)
	}
}

func TestImageCheckErrors(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	images := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(images.Close)
	closed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(closed.Close)
	for title, test := range map[string]struct {
		args []string
		code int
		text string
	}{
		"no image":       {nil, cli.ExitUsage, "set either IMAGE or --archive FILE"},
		"both":           {[]string{"x", "--archive", "y"}, cli.ExitUsage, "set either IMAGE or --archive FILE"},
		"a wrong form":   {[]string{"x", "-o", "xml"}, cli.ExitUsage, "xml"},
		"does not exist": {[]string{strings.TrimPrefix(images.URL, "http://") + "/train:2"}, cli.ExitNotFound, "/train:2 does not exist in 127.0.0.1:"},
		"private":        {[]string{strings.TrimPrefix(closed.URL, "http://") + "/train:1"}, cli.ExitError, "run podman login 127.0.0.1:"},
		"no registry":    {[]string{"127.0.0.1:1/train:1"}, cli.ExitError, "error: cannot reach the registry of 127.0.0.1:1/train:1: "},
		"no file":        {[]string{"--archive", "none.tar"}, cli.ExitError, "none.tar: no such file or directory"},
	} {
		t.Run(title, func(t *testing.T) {
			code, _, errOut := runCLI(t, append([]string{"image", "check"}, test.args...)...)
			if code != test.code || !strings.Contains(errOut, test.text) {
				t.Error(cmp.Diff(test.text, errOut), code)
			}
		})
	}
}
