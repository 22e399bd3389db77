package binaries

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/progress"
)

func newBuilder(t *testing.T) Builder {
	t.Helper()
	report := progress.New(io.Discard)
	t.Cleanup(report.Close)
	return Builder{sources: "../build", cache: t.TempDir(), goVersion: "go1.26.8", report: report}
}

func TestKeyChangesWithWhatGoesIn(t *testing.T) {
	b := newBuilder(t)
	b.sources = t.TempDir()
	c := component{name: "etcd", version: "v3.6.16"}
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(b.folder(c), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module etcd")
	write("main.go", "package main")
	seen := map[string]string{}
	check := func(what string) {
		t.Helper()
		key, err := b.key(c)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%s has the key of %s: %s", what, other, key)
		}
		seen[key] = what
	}
	check("the first")
	write("go.sum", "sum")
	check("another go.sum")
	write("main.go", "package main // changed")
	check("another main.go")
	c.ldflags = "-X a=b"
	check("other flags")
	b.goVersion = "go1.27.0"
	check("another Go")
	c.tags = "providerless"
	check("tags")
	c.pkgs = []string{"go.etcd.io/etcd/server/v3"}
	write("go.mod", "module etcd")
	check("a package of a pinned module")
	c.tags = "no_grpc"
	check("other tags")
	write("go.mod", "module etcd\n\ngo 1.26.0\n")
	check("another go.mod")
	before, err := b.key(c)
	if err != nil {
		t.Fatal(err)
	}
	write("go.mod", "module etcd\n\ngo 1.26.0\n\ntoolchain go1.26.8\n")
	if after, err := b.key(c); err != nil || after != before {
		t.Errorf("the toolchain's line changes the key, which has the version of Go: %s, %s (%v)", before, after, err)
	}
}

// TestVersionIsThatOfTheBuilds: the version of Go that names builds is that which go has in the folder of the builds, with their settings.
func TestVersionIsThatOfTheBuilds(t *testing.T) {
	repository, bin := t.TempDir(), t.TempDir()
	builds := filepath.Join(repository, "hack", "cluster", "build", "kubernetes")
	if err := os.MkdirAll(builds, 0o755); err != nil {
		t.Fatal(err)
	}
	program := "#!/bin/sh\n[ \"$*\" = 'env GOVERSION' ] && [ -z \"$GOFLAGS\" ] && cat version\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(builds, "version"), []byte("go1.26.77\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("GOFLAGS", "-mod=mod")
	report := progress.New(io.Discard)
	t.Cleanup(report.Close)
	b, err := NewBuilder(t.Context(), repository, report)
	if err != nil || b.goVersion != "go1.26.77" {
		t.Errorf("the version is %q: %v", b.goVersion, err)
	}
}

func TestOnceBuildsOnce(t *testing.T) {
	b := newBuilder(t)
	dir := filepath.Join(b.cache, "etcd-v3.6.16-abc")
	var built atomic.Int32
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			err := b.once(context.Background(), dir, func(into string) error {
				built.Add(1)
				return os.WriteFile(filepath.Join(into, "etcd"), nil, 0o755)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if built.Load() != 1 {
		t.Errorf("built %d times, want once", built.Load())
	}
}

func TestOnceLeavesNothingOfAFailedBuild(t *testing.T) {
	b := newBuilder(t)
	dir := filepath.Join(b.cache, "etcd-v3.6.16-abc")
	failure := errors.New("no space left on device")
	if err := b.once(t.Context(), dir, func(string) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
	for _, path := range []string{dir, dir + ".part"} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there", path)
		}
	}
}

func TestLinkHasTheNamesThatTestsAskFor(t *testing.T) {
	cache := t.TempDir()
	built := map[string]string{}
	const oldest = "v1.29.15"
	for _, c := range components(oldest) {
		built[c.name] = filepath.Join(cache, c.name+"-1")
		if err := os.MkdirAll(built[c.name], 0o755); err != nil {
			t.Fatal(err)
		}
		programs := []string{c.name}
		if len(c.pkgs) > 1 {
			programs = c.links
		}
		for _, program := range programs {
			if err := os.WriteFile(filepath.Join(built[c.name], program), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	into := filepath.Join(cache, "bin")
	if err := os.Mkdir(into, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := link(components(oldest), built, into); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl", "kubelet", "coredns", "containerd", "containerd-shim-runc-v2", "ctr"} {
		if _, err := os.Stat(filepath.Join(into, name)); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]string{"kube-apiserver": "kubernetes-v1.29", "kubelet": "kubernetes-v1.29", "kubectl": "kubernetes"} {
		if target, err := os.Readlink(filepath.Join(into, name)); err != nil || filepath.Base(target) != want {
			t.Errorf("%s is %s, %v; want %s", name, target, err, want)
		}
	}
}

// The modules of the older versions differ in their pins only. Their main.go are copies and not links, since a link does not
// survive every way in which a source tree is copied.
func TestOlderVersionsHaveOneMain(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "build", "kubernetes-v*", "main.go"))
	if err != nil || len(paths) < 2 {
		t.Fatalf("%d files main.go, %v", len(paths), err)
	}
	want, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s is not a regular file: %v", path, err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from %s: %v", path, paths[0], err)
		}
	}
}

func TestVersionsAreThoseOfTheModules(t *testing.T) {
	lines := map[string]string{
		"kubernetes": "k8s.io/kubernetes " + layout.KubernetesVersion,
		"etcd":       "go.etcd.io/etcd/server/v3 " + layout.EtcdVersion,
		"coredns":    "github.com/coredns/coredns " + layout.CoreDNSVersion,

		"containerd-" + layout.ContainerdVersion: containerdPath + " " + layout.ContainerdVersion,
	}
	for _, name := range layout.KubernetesNames()[1:] {
		version, err := layout.Kubernetes(name)
		if err != nil {
			t.Fatal(err)
		}
		lines["kubernetes-v"+name] = "k8s.io/kubernetes " + version
	}
	for folder, line := range lines {
		content, err := os.ReadFile(filepath.Join("..", "build", folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), line) {
			t.Errorf("build/%s/go.mod does not require %q", folder, line)
		}
	}
}
