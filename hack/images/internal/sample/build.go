package sample

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"opendatahub.io/mpijob/hack/images/internal/debian"
	"opendatahub.io/mpijob/hack/images/internal/steps"
	"opendatahub.io/mpijob/hack/images/oci"
)

// sourceDate is the time that tools in the build see as that of the sources:
// the day bookworm came out. Not 1970, which shadow(5) takes for "password
// expired".
const sourceDate = 1686355200

// Builder makes sample images and keeps the finished ones.
type Builder struct {
	// Samples is the folder images/samples of a checkout.
	Samples string
	// Cache is the folder of finished images; it may be shared by checkouts
	// and by builds that run at the same time.
	Cache string
	// Mirror is a Debian mirror; the public one when empty.
	Mirror string
	// Fresh builds again what the cache has, for newer packages.
	Fresh bool
	// Log gets the steps, Output what the tools print if they fail.
	Log    *steps.Log
	Output io.Writer
}

// DefaultCache is ${XDG_CACHE_HOME:-$HOME/.cache}/mpijob/images.
func DefaultCache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache folder: %w: set XDG_CACHE_HOME or HOME", err)
	}
	return filepath.Join(dir, "mpijob", "images"), nil
}

// Build writes the sample's archive to out, from the cache if it is there.
func (b Builder) Build(ctx context.Context, s Sample, out string) error {
	cached, err := b.cached(ctx, s)
	if err != nil {
		return err
	}
	size, err := copyAtomically(cached, out)
	if err != nil {
		return err
	}
	b.Log.Step("%s written to %s: %.0f MB", s.Reference, out, float64(size)/1e6)
	return nil
}

// cached returns the sample's archive in the cache. It is built if it is missing.
func (b Builder) cached(ctx context.Context, s Sample) (string, error) {
	inputs, err := s.gather(os.DirFS(b.Samples))
	if err != nil {
		return "", err
	}
	if err := b.addModules(ctx, s, inputs); err != nil {
		return "", fmt.Errorf("sample %s: %w", s.Name, err)
	}
	packed, err := packInputs(inputs)
	if err != nil {
		return "", err
	}
	base := ""
	if s.Base != "" {
		sample, err := Find(s.Base)
		if err != nil {
			return "", err
		}
		if base, err = b.cached(ctx, sample); err != nil {
			return "", err
		}
	}
	key, err := s.key(packed, base)
	if err != nil {
		return "", err
	}
	cached := filepath.Join(b.Cache, key+".tar")
	if _, err := os.Stat(cached); err == nil && !b.Fresh {
		b.Log.Step("%s is in the cache", s.Reference)
		return cached, nil
	}
	if base != "" {
		err = b.extend(ctx, s, inputs, base, cached)
	} else {
		err = b.make(ctx, s, packed, cached)
	}
	if err != nil {
		return "", fmt.Errorf("sample %s: %w", s.Name, err)
	}
	return cached, nil
}

// extend puts one layer with the inputs and what the sample has of repositories on the image in the archive base.
func (b Builder) extend(ctx context.Context, s Sample, inputs map[string]input, base, cached string) (err error) {
	if err := b.addRepositories(ctx, s, inputs); err != nil {
		return err
	}
	packed, err := packInputs(inputs)
	if err != nil {
		return err
	}
	layer, err := os.CreateTemp("", "mpijob-sample-layer-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(layer.Name())) }()
	if _, err := layer.Write(packed); err != nil {
		return errors.Join(err, layer.Close())
	}
	if err := layer.Close(); err != nil {
		return err
	}
	b.Log.Step("write %s", s.Reference)
	return oci.RootFS{Reference: s.Reference, Base: base, Tar: layer.Name(), Config: s.Config}.Write(cached)
}

// make builds the image and puts it into the cache, in one step at the end.
func (b Builder) make(ctx context.Context, s Sample, packed []byte, cached string) (err error) {
	if err := debian.Ensure(ctx, "mmdebstrap", []string{"mmdebstrap", "debian-archive-keyring"}, b.Log, b.Output); err != nil {
		return err
	}
	if err := os.MkdirAll(b.Cache, 0o755); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	work, err := os.MkdirTemp("", "mpijob-sample-")
	if err != nil {
		return fmt.Errorf("work folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	// A build without root runs under another user ID, which must read this.
	if err := os.Chmod(work, 0o755); err != nil {
		return fmt.Errorf("work folder: %w", err)
	}
	overlay, rootfs := filepath.Join(work, "inputs.tar"), filepath.Join(work, "rootfs.tar")
	if err := os.WriteFile(overlay, packed, 0o644); err != nil {
		return fmt.Errorf("inputs: %w", err)
	}
	if err := b.download(ctx, s.Downloads); err != nil {
		return err
	}
	b.Log.Step("install Debian %s with %s (a minute or two)", s.Release, strings.Join(s.Packages, ", "))
	if err := b.run(ctx, "mmdebstrap", s.mmdebstrapArguments(rootfs, overlay, b.Mirror, b.downloads())...); err != nil {
		return err
	}
	if !s.SSH {
		if err := refuseSSH(rootfs); err != nil {
			return err
		}
	}
	b.Log.Step("write %s", s.Reference)
	return oci.RootFS{Reference: s.Reference, Tar: rootfs, Config: s.Config}.Write(cached)
}

// sshFile matches what OpenSSH's packages bring: programs, and what dpkg notes of them.
var sshFile = regexp.MustCompile(`^(usr/)?(local/)?s?bin/(sshd?|rsh)$|^var/lib/dpkg/info/openssh-`)

// refuseSSH reads a root file system, a tar file. The agent replaces SSH: an image that has SSH would not
// show that none is needed.
func refuseSSH(rootfs string) (err error) {
	file, err := os.Open(rootfs)
	if err != nil {
		return fmt.Errorf("root file system: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("root file system %s: %w", rootfs, err)
		}
		if name := path.Clean(header.Name); sshFile.MatchString(name) {
			return fmt.Errorf("the image has an SSH of its own, /%s: name its package in Unneeded", name)
		}
	}
}

// downloads is the folder of finished downloads, in the cache.
func (b Builder) downloads() string { return filepath.Join(b.Cache, "downloads") }

// download fetches what the cache does not have. A file is there whole and with the right content, or not at all.
func (b Builder) download(ctx context.Context, files []Download) error {
	for _, file := range files {
		target := filepath.Join(b.downloads(), file.name())
		if _, err := os.Stat(target); err == nil {
			continue
		}
		b.Log.Step("download %s", file.name())
		if err := os.MkdirAll(b.downloads(), 0o755); err != nil {
			return fmt.Errorf("cache: %w", err)
		}
		if err := file.fetch(ctx, target); err != nil {
			return fmt.Errorf("download %s: %w", file.URL, err)
		}
	}
	return nil
}

// name is the file's, as build.sh finds it in /build.
func (d Download) name() string { return path.Base(d.URL) }

func (d Download) fetch(ctx context.Context, target string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", response.Status)
	}
	return oci.WriteFile(target, func(w io.Writer) error {
		sum := sha256.New()
		if _, err := io.Copy(io.MultiWriter(w, sum), response.Body); err != nil {
			return err
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != d.SHA256 {
			return fmt.Errorf("its SHA-256 is %s and should be %s", got, d.SHA256)
		}
		return nil
	})
}

// run runs a tool and shows what it printed only if it failed.
func (b Builder) run(ctx context.Context, name string, arguments ...string) error {
	command := exec.CommandContext(ctx, name, arguments...)
	// The tools are Debian's, and start Debian's Python for each package: another one that precedes it in PATH may be slow.
	command.Env = append(os.Environ(), "PATH=/usr/sbin:/usr/bin:/sbin:/bin:"+os.Getenv("PATH"),
		"DEBIAN_FRONTEND=noninteractive", "SOURCE_DATE_EPOCH="+strconv.Itoa(sourceDate))
	// mmdebstrap has mounts to take down: ask it to stop, do not kill it.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = time.Minute
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		_, _ = b.Output.Write(output.Bytes())
		return fmt.Errorf("%s failed (its output is above): %w", name, err)
	}
	return nil
}

// copyAtomically copies a finished archive, so that changes to the copy leave
// the cache unchanged. It returns the size in bytes.
func copyAtomically(source, target string) (size int64, err error) {
	in, err := os.Open(source)
	if err != nil {
		return 0, fmt.Errorf("cached image: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	err = oci.WriteFile(target, func(w io.Writer) error {
		size, err = io.Copy(w, in)
		return err
	})
	return size, err
}
