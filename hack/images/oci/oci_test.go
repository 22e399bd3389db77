package oci

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// member is what a test looks at in a layer.
type member struct {
	Name, Link string
	Type       byte
	Mode       int64
	UID, GID   int
	Content    string
}

func TestProgramLayerAndConfig(t *testing.T) {
	t.Parallel()
	static := elfFile(t, "operator", false)
	content := string(readFile(t, static))
	library := filepath.Join(t.TempDir(), "library")
	writeFile(t, library, []byte("a library"))
	tests := map[string]struct {
		program Program
		layer   []member
		config  v1.Config
	}{
		"defaults": {
			program: Program{Reference: "odh/operator:dev", Binary: static},
			layer: []member{
				{Name: "operator", Type: tar.TypeReg, Mode: 0o755, Content: content},
				{Name: "tmp/", Type: tar.TypeDir, Mode: 0o1777},
			},
			config: v1.Config{User: "65532:65532", Entrypoint: []string{"/operator"}, WorkingDir: "/"},
		},
		"everything named": {
			program: Program{
				Reference: "odh/operator:dev", Binary: static, Path: "/usr/bin/manager", User: "1001:0",
				Env: []string{"A=b"}, Args: []string{"--verbose"}, Labels: map[string]string{"k": "v"},
				Links: map[string]string{"/bin/ssh": "../usr/bin/manager"}, Folders: []string{"/run"},
				Libraries: map[string]string{"/lib/lib.so": library},
			},
			layer: []member{
				{Name: "bin/", Type: tar.TypeDir, Mode: 0o755},
				{Name: "bin/ssh", Link: "../usr/bin/manager", Type: tar.TypeSymlink, Mode: 0o777},
				{Name: "lib/", Type: tar.TypeDir, Mode: 0o755},
				{Name: "lib/lib.so", Type: tar.TypeReg, Mode: 0o755, Content: "a library"},
				{Name: "run/", Type: tar.TypeDir, Mode: 0o755},
				{Name: "tmp/", Type: tar.TypeDir, Mode: 0o1777},
				{Name: "usr/", Type: tar.TypeDir, Mode: 0o755},
				{Name: "usr/bin/", Type: tar.TypeDir, Mode: 0o755},
				{Name: "usr/bin/manager", Type: tar.TypeReg, Mode: 0o755, Content: content},
			},
			config: v1.Config{
				User: "1001:0", Entrypoint: []string{"/usr/bin/manager"}, Cmd: []string{"--verbose"},
				Env: []string{"A=b"}, Labels: map[string]string{"k": "v"}, WorkingDir: "/",
			},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "image.tar")
			if err := test.program.Write(out); err != nil {
				t.Fatal(err)
			}
			image := openImage(t, out, test.program.Reference)
			if diff := cmp.Diff(test.layer, layerMembers(t, image)); diff != "" {
				t.Errorf("layer (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.config, configOf(t, image).Config); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProgramArchitecture(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		machine uint16
		want    string
	}{
		"x86-64":  {62, "amd64"},
		"aarch64": {183, "arm64"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			file := elfFile(t, "operator", false)
			content := readFile(t, file)
			binary.LittleEndian.PutUint16(content[18:], test.machine)
			writeFile(t, file, content)
			out := filepath.Join(t.TempDir(), "image.tar")
			if err := (Program{Reference: "odh/operator:dev", Binary: file}).Write(out); err != nil {
				t.Fatal(err)
			}
			if got := configOf(t, openImage(t, out, "odh/operator:dev")).Architecture; got != test.want {
				t.Errorf("architecture %q, want %q", got, test.want)
			}
		})
	}
}

func TestProgramRefuses(t *testing.T) {
	t.Parallel()
	static, dynamic := elfFile(t, "static", false), elfFile(t, "dynamic", true)
	script := filepath.Join(t.TempDir(), "script")
	writeFile(t, script, []byte("#!/bin/sh\n"))
	tests := map[string]struct {
		program Program
		want    []string
	}{
		"no tag":          {Program{Reference: "odh/operator", Binary: static}, []string{"has no tag", "odh/operator:dev"}},
		"bad reference":   {Program{Reference: "ODH/operator:dev", Binary: static}, []string{`reference "ODH/operator:dev"`}},
		"relative path":   {Program{Reference: "o/p:dev", Binary: static, Path: "bin/x"}, []string{`"bin/x"`, "absolute"}},
		"path climbs":     {Program{Reference: "o/p:dev", Binary: static, Path: "/../x"}, []string{`"/../x"`}},
		"relative link":   {Program{Reference: "o/p:dev", Binary: static, Links: map[string]string{"bin/x": "y"}}, []string{`"bin/x"`, "absolute"}},
		"relative folder": {Program{Reference: "o/p:dev", Binary: static, Folders: []string{"run"}}, []string{`"run"`, "absolute"}},
		"no such binary":  {Program{Reference: "o/p:dev", Binary: "/no/such"}, []string{"/no/such"}},
		"not a program":   {Program{Reference: "o/p:dev", Binary: script}, []string{script}},
		"needs a loader":  {Program{Reference: "o/p:dev", Binary: dynamic}, []string{"CGO_ENABLED=0"}},
		"all told at one": {Program{Reference: "o/p", Binary: dynamic, Path: "x"}, []string{"has no tag", "absolute", "CGO_ENABLED=0"}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			err := test.program.Write(filepath.Join(dir, "image.tar"))
			if err == nil {
				t.Fatal("written without an error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if left := listDir(t, dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "bundle")
	for _, name := range []string{"manifests/a.yaml", "manifests/crds/b.yaml"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(folder, name), []byte(name))
	}
	program := filepath.Join(t.TempDir(), "program")
	writeFile(t, program, []byte("a program"))
	if err := errors.Join(os.Chmod(program, 0o700), os.Symlink(program, filepath.Join(folder, "manifests", "link"))); err != nil {
		t.Fatal(err)
	}
	image := Files{
		Reference: "odh/bundle:dev", Sources: map[string]string{"/manifests": filepath.Join(folder, "manifests"), "/usr/bin/run": program},
		Entrypoint: "/usr/bin/run", Env: []string{"PATH=/usr/bin"}, Labels: map[string]string{"k": "v"},
	}
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := image.Write(out); err != nil {
		t.Fatal(err)
	}
	want := []member{
		{Name: "manifests/", Type: tar.TypeDir, Mode: 0o755},
		{Name: "manifests/a.yaml", Type: tar.TypeReg, Mode: 0o644, Content: "manifests/a.yaml"},
		{Name: "manifests/crds/", Type: tar.TypeDir, Mode: 0o755},
		{Name: "manifests/crds/b.yaml", Type: tar.TypeReg, Mode: 0o644, Content: "manifests/crds/b.yaml"},
		{Name: "manifests/link", Type: tar.TypeReg, Mode: 0o755, Content: "a program"},
		{Name: "usr/", Type: tar.TypeDir, Mode: 0o755},
		{Name: "usr/bin/", Type: tar.TypeDir, Mode: 0o755},
		{Name: "usr/bin/run", Type: tar.TypeReg, Mode: 0o755, Content: "a program"},
	}
	written := openImage(t, out, image.Reference)
	if diff := cmp.Diff(want, layerMembers(t, written)); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
	wantConfig := v1.Config{
		User: DefaultUser, Entrypoint: []string{"/usr/bin/run"}, Env: []string{"PATH=/usr/bin"}, Labels: map[string]string{"k": "v"}, WorkingDir: "/",
	}
	if diff := cmp.Diff(wantConfig, configOf(t, written).Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	for path, source := range map[string]string{"relative": program, "/missing": filepath.Join(folder, "missing"), "/device": "/dev/null"} {
		image.Sources = map[string]string{path: source}
		if err := image.Write(filepath.Join(t.TempDir(), "image.tar")); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s=%s: the error is %v", path, source, err)
		}
	}
}

func TestRootFSLayer(t *testing.T) {
	t.Parallel()
	source := tarFile(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeLink, Name: "./a-link", Linkname: "./z/file", Mode: 0o644},
		tar.Header{Typeflag: tar.TypeDir, Name: "./z/", Mode: 0o2775, Gid: 7},
		tar.Header{Typeflag: tar.TypeReg, Name: "./z/file", Mode: 0o4755, Uid: 5, Size: 3, Uname: "somebody"},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "./b", Linkname: "z", Mode: 0o777},
		tar.Header{Typeflag: tar.TypeChar, Name: "./dev/null", Mode: 0o666},
	)
	out := filepath.Join(t.TempDir(), "image.tar")
	config := Config{User: "1000:1000", Args: []string{"serve"}, WorkingDir: "/home/x", Ports: []string{"2222/tcp"}}
	if err := (RootFS{Reference: "odh/sample:dev", Tar: source, Config: config}).Write(out); err != nil {
		t.Fatal(err)
	}
	image := openImage(t, out, "odh/sample:dev")
	want := []member{
		{Name: "b", Link: "z", Type: tar.TypeSymlink, Mode: 0o777},
		{Name: "z/", Type: tar.TypeDir, Mode: 0o2775, GID: 7},
		{Name: "z/file", Type: tar.TypeReg, Mode: 0o4755, UID: 5, Content: "xxx"},
		{Name: "a-link", Link: "z/file", Type: tar.TypeLink, Mode: 0o644},
	}
	if diff := cmp.Diff(want, layerMembers(t, image)); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
	wantConfig := v1.Config{
		User: "1000:1000", Cmd: []string{"serve"}, WorkingDir: "/home/x",
		ExposedPorts: map[string]struct{}{"2222/tcp": {}},
	}
	if diff := cmp.Diff(wantConfig, configOf(t, image).Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

// TestRootFSOnBase: an image on another one has its layer, so that nodes store it once, and a configuration of its own.
func TestRootFSOnBase(t *testing.T) {
	t.Parallel()
	base, out := filepath.Join(t.TempDir(), "base.tar"), filepath.Join(t.TempDir(), "image.tar")
	file := func(name string) string {
		return tarFile(t, tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: 3})
	}
	if err := (RootFS{Reference: "odh/base:dev", Tar: file("a"), Config: Config{User: "1:1"}}).Write(base); err != nil {
		t.Fatal(err)
	}
	if err := (RootFS{Reference: "odh/sample:dev", Base: base, Tar: file("b"), Config: Config{WorkingDir: "/b"}}).Write(out); err != nil {
		t.Fatal(err)
	}
	image := openImage(t, out, "odh/sample:dev")
	below, err := openImage(t, base, "odh/base:dev").Layers()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 2 {
		t.Fatalf("%d layers, want 2", len(layers))
	}
	want, _ := below[0].DiffID()
	if got, err := layers[0].DiffID(); err != nil || got != want {
		t.Errorf("the first layer is %v, %v, want %v", got, err, want)
	}
	if config := configOf(t, image); config.Config.WorkingDir != "/b" || config.Config.User != "" || len(config.RootFS.DiffIDs) != 2 {
		t.Errorf("the configuration is %+v", config)
	}
	if err := (RootFS{Reference: "odh/sample:dev", Base: "/no/such", Tar: file("b")}).Write(out); err == nil || !strings.Contains(err.Error(), "/no/such") {
		t.Errorf("without its base: %v", err)
	}
}

func TestRootFSRefusesWhatIsNoTar(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.tar")
	writeFile(t, empty, nil)
	noise := filepath.Join(t.TempDir(), "noise.tar")
	writeFile(t, noise, bytes.Repeat([]byte("noise"), 1000))
	for title, source := range map[string]string{"missing": "/no/such", "empty": empty, "noise": noise} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "image.tar")
			err := RootFS{Reference: "odh/sample:dev", Tar: source}.Write(out)
			if err == nil || !strings.Contains(err.Error(), source) {
				t.Errorf("error %v does not name %s", err, source)
			}
		})
	}
}

func TestSameInputGivesSameBytes(t *testing.T) {
	t.Parallel()
	program := Program{
		Reference: "odh/operator:dev", Binary: elfFile(t, "operator", false),
		Labels: map[string]string{"a": "1", "b": "2", "c": "3"},
	}
	header := tar.Header{Typeflag: tar.TypeReg, Name: "./file", Mode: 0o644, Size: 5}
	early, late := header, header
	early.ModTime, late.ModTime = time.Unix(1e9, 0), time.Unix(2e9, 0)
	other := tar.Header{Typeflag: tar.TypeReg, Name: "./other", Mode: 0o644, Size: 5}
	rootFS := func(headers ...tar.Header) RootFS {
		return RootFS{Reference: "odh/sample:dev", Tar: tarFile(t, headers...)}
	}
	type image interface{ Write(path string) error }
	tests := map[string]struct{ first, second image }{
		"program twice":      {program, program},
		"times of a tree":    {rootFS(early), rootFS(late)},
		"order in the input": {rootFS(early, other), rootFS(other, early)},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
			if err := errors.Join(test.first.Write(first), test.second.Write(second)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(readFile(t, first), readFile(t, second)) {
				t.Error("the two archives differ")
			}
		})
	}
}

// elfFile writes the smallest file that reads as a Linux executable, with or
// without the request for a loader.
func elfFile(t *testing.T, name string, loader bool) string {
	t.Helper()
	const headerSize, segmentSize, interpreter = 64, 56, 3
	image := make([]byte, headerSize)
	copy(image, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(image[16:], 2)  // executable
	binary.LittleEndian.PutUint16(image[18:], 62) // x86-64
	binary.LittleEndian.PutUint32(image[20:], 1)
	binary.LittleEndian.PutUint16(image[52:], headerSize)
	binary.LittleEndian.PutUint16(image[54:], segmentSize)
	if loader {
		binary.LittleEndian.PutUint64(image[32:], headerSize)
		binary.LittleEndian.PutUint16(image[56:], 1)
		image = binary.LittleEndian.AppendUint32(image, interpreter)
		image = append(image, make([]byte, segmentSize-4)...)
	}
	path := filepath.Join(t.TempDir(), name)
	writeFile(t, path, image)
	return path
}

// tarFile writes a tar of the given entries; a file's content is xs.
func tarFile(t *testing.T, headers ...tar.Header) string {
	t.Helper()
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	for _, header := range headers {
		if err := archive.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(bytes.Repeat([]byte("x"), int(header.Size))); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rootfs.tar")
	writeFile(t, path, buffer.Bytes())
	return path
}

func openImage(t *testing.T, path, reference string) v1.Image {
	t.Helper()
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func configOf(t *testing.T, image v1.Image) *v1.ConfigFile {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if !config.Created.Equal(epoch) || config.OS != "linux" {
		t.Errorf("created %v for %q", config.Created, config.OS)
	}
	return config
}

func layerMembers(t *testing.T, image v1.Image) []member {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 {
		t.Fatalf("%d layers, want 1", len(layers))
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	var members []member
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return members
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(epoch) || header.Uname != "" {
			t.Errorf("%s: time %v, owner %q", header.Name, header.ModTime, header.Uname)
		}
		body, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, member{
			Name: header.Name, Link: header.Linkname, Type: header.Typeflag, Mode: header.Mode,
			UID: header.Uid, GID: header.Gid, Content: string(body),
		})
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func listDir(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
