// Package binaries builds the cluster's programs from pinned Go modules and
// keeps them in a cache that all clones on the machine share.
package binaries

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/progress"
	"opendatahub.io/mpijob/hack/images/oci"
)

// Set is a folder with all programs under their usual names.
type Set struct {
	// Dir has etcd, kube-apiserver, kubectl and the others. It is fit to be
	// KUBEBUILDER_ASSETS.
	Dir string
	// PauseArchive is the sandbox image as a docker-archive.
	PauseArchive string
}

// Path returns the absolute path of a program.
func (s Set) Path(program string) string { return filepath.Join(s.Dir, program) }

// component is one program to build.
type component struct {
	name    string
	version string
	// folder is the module below build, if it is not called as the component, and main the folder of the program in it, if it is not the
	// module's root.
	folder, main string
	// pkgs are its main packages, of a module that the folder NAME-VERSION below
	// build only pins. Empty: the folder NAME has a main.go of our own.
	pkgs    []string
	tags    string
	ldflags string
	links   []string     // names the program is called by; with several packages, those of their programs
	image   *oci.Program // the image to wrap it in, if it is to run in pods; the binary is filled in
	cpu     int          // how many seconds of CPU time it takes to compile with empty caches, about
}

const containerdPath = "github.com/containerd/containerd/v2"

// components are the programs of a cluster with the given version of Kubernetes. Of a name that several have, the last is
// linked.
func components(kubernetes string) []component {
	all := []component{
		{
			name: "kubernetes", version: layout.KubernetesVersion,
			// Without its version Kubernetes says v0.0.0 and clients that
			// check it refuse to work.
			ldflags: versionFlags(layout.KubernetesVersion),
			links:   append(servers(), "kubectl"),
			cpu:     735,
		},
		{name: "etcd", version: layout.EtcdVersion, links: []string{"etcd"}, cpu: 90},
		{name: "coredns", version: layout.CoreDNSVersion, links: []string{"coredns"}, cpu: 175},
		{
			name: "containerd", version: layout.ContainerdVersion,
			pkgs: []string{containerdPath + "/cmd/containerd", containerdPath + "/cmd/containerd-shim-runc-v2", containerdPath + "/cmd/ctr"},
			// Snapshotters that need C libraries or kernel modules.
			tags: "no_btrfs,no_devmapper,no_zfs",
			// The kubelet publishes it as the node's containerRuntimeVersion.
			ldflags: "-X " + containerdPath + "/version.Version=" + layout.ContainerdVersion,
			links:   []string{"containerd", "containerd-shim-runc-v2", "ctr"},
			cpu:     180,
		},
		{
			name: "pause", version: "v1", links: []string{"pause"}, cpu: 1,
			image: &oci.Program{Reference: layout.PauseImage},
		},
	}
	if kubernetes == layout.KubernetesVersion {
		return all
	}
	return append(all, component{
		name: "kubernetes-v" + layout.KubernetesName(kubernetes), version: kubernetes,
		// Kubernetes before 1.31 contains the clients of four clouds, which take a quarter of the time.
		tags: "providerless", ldflags: versionFlags(kubernetes), links: servers(),
		cpu: 700,
	})
}

// apiServer returns only the kube-apiserver of a version, whose module has a program for it; false if it has none.
func (b Builder) apiServer(kubernetes string) (component, bool) {
	c := component{
		name: "kube-apiserver-v" + layout.KubernetesName(kubernetes), version: kubernetes, folder: "kubernetes-v" + layout.KubernetesName(kubernetes), main: "apiserver",
		tags: "providerless", ldflags: versionFlags(kubernetes), links: []string{"kube-apiserver"},
		cpu: 285,
	}
	_, err := os.Stat(filepath.Join(b.folder(c), c.main, "main.go"))
	return c, err == nil
}

// servers are the components of Kubernetes that are of a cluster's version. kubectl is always the newest.
func servers() []string {
	return []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet"}
}

func versionFlags(version string) string {
	return fmt.Sprintf("-X k8s.io/component-base/version.gitVersion=%s -X k8s.io/component-base/version.gitMajor=1"+
		" -X k8s.io/component-base/version.gitMinor=%d", version, layout.Minor(version))
}

// Controller is a program that not every cluster has and that runs in pods:
// the main package of a public module, which the folder NAME-VERSION below
// build pins.
type Controller struct {
	Name, Version string
	// Module is the module's path, Package that of its main package.
	Module, Package string
}

// Image is the name of the controller's image on the nodes.
func (c Controller) Image() string { return "localhost/mpijob-" + c.Name + ":" + c.Version }

// controllerCPU is the CPU time of compiling a controller in seconds, about: Trainer and JobSet take 270 together, and Kueue 450.
const controllerCPU = 240

func (c Controller) component() component {
	return component{
		name: c.Name, version: c.Version, pkgs: []string{c.Package}, cpu: controllerCPU,
		// Where the controllers' own images have it, and their manifests look for it.
		image: &oci.Program{Reference: c.Image(), Path: "/manager"},
	}
}

// CacheDir is where built programs are kept.
func CacheDir() (string, error) {
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mpijob"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("cache folder: %w; set XDG_CACHE_HOME", err)
	}
	return filepath.Join(home, ".cache", "mpijob"), nil
}

// Ensure returns the programs of a cluster with the given version of
// Kubernetes, built if need be from the sources below repository. Two that
// build at once wait for one another.
func Ensure(ctx context.Context, repository, kubernetes string, report *progress.Reporter) (Set, error) {
	b, err := NewBuilder(ctx, repository, report)
	if err != nil {
		return Set{}, err
	}
	return b.set(ctx, "bin-"+kubernetes, components(kubernetes))
}

// EnsureAPIServer is Ensure for tests that need no node: the set has etcd, kubectl, and the kube-apiserver of the given version.
func EnsureAPIServer(ctx context.Context, repository, kubernetes string, report *progress.Reporter) (Set, error) {
	b, err := NewBuilder(ctx, repository, report)
	if err != nil {
		return Set{}, err
	}
	only, exists := b.apiServer(kubernetes)
	all := components(kubernetes)
	if last := all[len(all)-1]; exists && !b.isBuilt(last) {
		all[len(all)-1] = only
	}
	needed := []string{"kubernetes", "etcd", "pause", all[len(all)-1].name}
	all = slices.DeleteFunc(all, func(c component) bool { return !slices.Contains(needed, c.name) })
	return b.set(ctx, "apiserver-"+kubernetes, all)
}

// set returns a folder with all programs of components, built if need be.
func (b Builder) set(ctx context.Context, name string, components []component) (Set, error) {
	b.fetchAll(ctx, components)
	b.announce(components)
	all := sha256.New()
	built := map[string]string{} // component → folder
	for _, c := range components {
		dir, err := b.ensure(ctx, c)
		if err != nil {
			return Set{}, err
		}
		all.Write(fmt.Appendln(nil, filepath.Base(dir)))
		built[c.name] = dir
	}
	dir, err := b.Once(ctx, name+"-"+shortHash(all), func(into string) error { return link(components, built, into) })
	if err != nil {
		return Set{}, err
	}
	return Set{Dir: dir, PauseArchive: filepath.Join(built["pause"], "pause.tar")}, nil
}

// Builder fills the cache.
type Builder struct {
	sources, cache, goVersion string
	report                    *progress.Reporter

	// mirror is the address of a mirror, empty without one; what it serves must have these checksums.
	mirror string
	sums   sums
	stall  time.Duration
	// missed are the keys that could not be fetched: they are not tried again.
	missed *sync.Map
}

// NewBuilder returns a builder from the sources below repository.
func NewBuilder(ctx context.Context, repository string, report *progress.Reporter) (Builder, error) {
	cache, err := CacheDir()
	if err != nil {
		return Builder{}, err
	}
	sources := filepath.Join(repository, "hack", "cluster", "build")
	// All modules name the same toolchain.
	goVersion, err := toolVersion(ctx, filepath.Join(sources, "kubernetes"))
	if err != nil {
		return Builder{}, err
	}
	sums, err := readSums(filepath.Join(sources, SumsFile))
	if err != nil {
		return Builder{}, err
	}
	return Builder{
		sources: sources, cache: cache, goVersion: goVersion, report: report,
		mirror: os.Getenv(EnvMirror), sums: sums, stall: stall, missed: &sync.Map{},
	}, nil
}

// Archive returns the controller's image as a docker-archive, built if need
// be.
func (b Builder) Archive(ctx context.Context, c Controller) (string, error) {
	dir, err := b.ensure(ctx, c.component())
	return filepath.Join(dir, c.Name+".tar"), err
}

// Source returns the folder of the controller's module as it was published,
// fetched if need be.
func (b Builder) Source(ctx context.Context, c Controller) (string, error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", c.Module)
	command.Dir = b.folder(c.component())
	command.Env = goEnvironment()
	output, err := command.Output()
	var module struct{ Dir, Error string }
	if parseErr := json.Unmarshal(output, &module); err == nil {
		err = parseErr
	}
	if err != nil {
		return "", fmt.Errorf("source of %s %s: %w %s", c.Name, c.Version, err, module.Error)
	}
	return module.Dir, nil
}

// ensure returns the folder with a program, fetched or built if need be.
func (b Builder) ensure(ctx context.Context, c component) (string, error) {
	key, err := b.key(c)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(b.cache, key)); err != nil {
		if dir, fetched := b.fetched(ctx, c); fetched {
			return dir, nil
		}
	}
	return b.Once(ctx, key, func(into string) error { return b.build(ctx, c, into) })
}

// folder is the module that a program is built in.
func (b Builder) folder(c component) string {
	if len(c.pkgs) > 0 {
		return filepath.Join(b.sources, c.name+"-"+c.version)
	}
	return filepath.Join(b.sources, cmp.Or(c.folder, c.name))
}

// toolchainLine is the line of a go.mod that decides which version of Go builds it. The key has that version.
var toolchainLine = regexp.MustCompile(`(?m)^\ntoolchain \S+\n`)

// key names a build by all that goes into it.
func (b Builder) key(c component) (string, error) { return b.keyWith(c, b.goVersion) }

// keyWith is the key of a build by another version of Go.
func (b Builder) keyWith(c component, goVersion string) (string, error) {
	hash := sha256.New()
	hash.Write(fmt.Appendln(nil, goVersion, runtime.GOOS, runtime.GOARCH, c.ldflags, c.links, layout.PauseImage))
	if len(c.pkgs) > 0 {
		parts := append(slices.Clone(c.pkgs), strings.Fields(c.tags)...)
		if c.image != nil {
			parts = append(parts, c.image.Reference, c.image.Path)
		}
		hash.Write([]byte(strings.Join(parts, " ") + "\n"))
	} else if c.tags != "" {
		hash.Write(fmt.Appendln(nil, "tags", c.tags))
	}
	main := filepath.Join(c.main, "main.go")
	for _, name := range []string{"go.mod", "go.sum", main} {
		content, err := os.ReadFile(filepath.Join(b.folder(c), name))
		if errors.Is(err, fs.ErrNotExist) && (name == "go.sum" || name == main && len(c.pkgs) > 0) {
			continue // a module that requires none, and one that is only pinned
		}
		if err != nil {
			return "", fmt.Errorf("sources of %s: %w", c.name, err)
		}
		if name == "go.mod" {
			content = toolchainLine.ReplaceAll(content, nil)
		}
		hash.Write(fmt.Appendln(nil, name, len(content)))
		hash.Write(content)
	}
	return c.name + "-" + c.version + "-" + shortHash(hash), nil
}

func shortHash(hash interface{ Sum(b []byte) []byte }) string {
	return hex.EncodeToString(hash.Sum(nil))[:12]
}

// Once returns the cache's folder of a name. Unless it is there fill makes
// it, complete or not at all. The name must change with whatever goes in.
func (b Builder) Once(ctx context.Context, name string, fill func(into string) error) (string, error) {
	dir := filepath.Join(b.cache, name)
	return dir, b.once(ctx, dir, fill)
}

func (b Builder) once(ctx context.Context, dir string, fill func(into string) error) (err error) {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(b.cache, 0o755); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	unlock, err := b.lock(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return nil // another process has just built it
	}
	temporary := dir + ".part"
	if err := os.RemoveAll(temporary); err != nil { // of a build that was killed
		return fmt.Errorf("cache: %w", err)
	}
	if err := os.Mkdir(temporary, 0o755); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	if err := fill(temporary); err != nil {
		return errors.Join(err, os.RemoveAll(temporary))
	}
	if err := os.Rename(temporary, dir); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	return nil
}

// lock waits for its turn. The kernel gives the lock back when a holder dies.
func (b Builder) lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	var waiting *progress.Step
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		if waiting == nil {
			waiting = b.report.Step("waiting for another build of the same programs")
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(waiting.End(ctx.Err()), file.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
	if waiting != nil {
		waiting.Done("")
	}
	// The file stays: removed, one process could lock the old file and
	// another a new one.
	return func() { _ = file.Close() }, nil
}

func (b Builder) build(ctx context.Context, c component, into string) error {
	step := b.report.Step("%s %s", c.name, c.version)
	warning := firstTime(c.cpu)
	step.Detail("%s", warning)
	binary := filepath.Join(into, c.name)
	output, pkgs := binary, c.pkgs
	switch len(pkgs) {
	case 0:
		pkgs = []string{"./" + c.main}
	case 1:
	default: // each program gets its package's name
		output = into + "/"
	}
	command := exec.CommandContext(ctx, "go", append([]string{
		"build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-tags", c.tags, "-ldflags", strings.TrimSpace("-s -w " + c.ldflags), "-o", output,
	}, pkgs...)...)
	command.Dir = b.folder(c)
	command.Env = goEnvironment()
	log := into + ".log"
	packages, err := run(command, log, func(modules, packages int) {
		if packages == 0 {
			step.Detail("%s, %d modules fetched", warning, modules)
			return
		}
		step.Detail("%s, %d packages", warning, packages)
	})
	if err != nil {
		return step.End(fmt.Errorf("build %s %s: %w", c.name, c.version, err))
	}
	if err := writeImage(c, binary); err != nil {
		return step.End(err)
	}
	step.Done("built, %d packages compiled", packages)
	return nil
}

// writeImage writes the image of a component that runs in pods next to its program.
func writeImage(c component, binary string) error {
	if c.image == nil {
		return nil
	}
	image := *c.image
	image.Binary = binary
	if err := image.Write(binary + ".tar"); err != nil {
		return fmt.Errorf("image of %s: %w", c.name, err)
	}
	return nil
}

// thisPlatform is what programs are built for.
func thisPlatform() string { return "linux/" + runtime.GOARCH }

// goEnvironment is what the go command runs with. A static program runs in any
// image and needs no C compiler here. The caller's own Go settings must not
// leak into a shared cache, and programs must have the bytes of SumsFile.
func goEnvironment() []string {
	return append(
		os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS=linux", "GOARCH="+runtime.GOARCH,
		"GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "GOEXPERIMENT=",
	)
}

// run runs a "go build -v", which names on standard error each module that it
// fetches and each package that it compiles, and counts them.
func run(command *exec.Cmd, log string, moved func(modules, packages int)) (packages int, err error) {
	file, err := os.Create(log)
	if err != nil {
		return 0, fmt.Errorf("build log: %w", err)
	}
	defer func() { _ = file.Close() }()
	reader, writer := io.Pipe()
	command.Stdout, command.Stderr = writer, writer
	var modules int
	var tail []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			line := lines.Text()
			_, _ = file.WriteString(line + "\n")
			if strings.HasPrefix(line, "go: downloading ") {
				modules++
			} else {
				packages++
			}
			moved(modules, packages)
			tail = append(tail[max(0, len(tail)-9):], line)
		}
		_, _ = io.Copy(io.Discard, reader)
	}()
	err = command.Run()
	_ = writer.Close()
	<-done
	if err != nil {
		return 0, fmt.Errorf("go build: %w\nthe last lines of %s:\n    %s", err, log, strings.Join(tail, "\n    "))
	}
	return packages, nil
}

// link fills the folder of all programs. The links are relative, so that the
// cache can be moved or copied.
func link(all []component, built map[string]string, into string) error {
	targets := map[string]string{}
	for _, c := range all {
		for _, name := range c.links {
			program := c.name
			if len(c.pkgs) > 1 {
				program = name
			}
			targets[name] = filepath.Join("..", filepath.Base(built[c.name]), program)
		}
	}
	for name, target := range targets {
		if err := os.Symlink(target, filepath.Join(into, name)); err != nil {
			return fmt.Errorf("cache: %w", err)
		}
	}
	return nil
}

// toolVersion returns the version of Go that builds in a folder: its module may name a newer one than that on PATH.
func toolVersion(ctx context.Context, folder string) (string, error) {
	command := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	command.Dir = folder
	command.Env = goEnvironment()
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go env GOVERSION: %w; install Go 1.26 or newer and put it on PATH", err)
	}
	return strings.TrimSpace(string(output)), nil
}
