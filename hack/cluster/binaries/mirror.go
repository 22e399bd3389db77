package binaries

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/progress"
)

// EnvMirror is the variable with the address of a mirror: a folder that [Builder.WriteMirror] has written, served by HTTP. Programs that it
// has are fetched instead of compiled.
const EnvMirror = "MPIJOB_MIRROR"

// SumsFile has the checksums of the programs, below hack/cluster/build. What a mirror serves is only used if its checksum is there.
const SumsFile = "SHA256SUMS"

// stall is how long a mirror may send nothing before the program is compiled.
const stall = 20 * time.Second

// largest is the size of a program that is accepted from a mirror.
const largest = 1 << 30

// sums are the checksums of programs, by KEY/PROGRAM.
type sums struct {
	// build is what the programs were compiled with and for, such as "go1.26.8 linux/amd64".
	build  string
	byPath map[string]string
}

// readSums reads a file of checksums. Without the file there are none.
func readSums(file string) (sums, error) {
	read := sums{byPath: map[string]string{}}
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return read, nil
	}
	if err != nil {
		return sums{}, fmt.Errorf("checksums: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if build, is := strings.CutPrefix(line, "# "); is {
			read.build = cmp.Or(read.build, build)
			continue
		}
		sum, path, found := strings.Cut(line, "  ")
		if !found || len(sum) != 2*sha256.Size {
			return sums{}, fmt.Errorf("checksums: %s: %q is no line of sha256sum", file, line)
		}
		read.byPath[path] = sum
	}
	return read, nil
}

// text is the file of the checksums.
func (s sums) text() string {
	lines := []string{"# " + s.build}
	for _, path := range slices.Sorted(maps.Keys(s.byPath)) {
		lines = append(lines, s.byPath[path]+"  "+path)
	}
	return strings.Join(lines, "\n") + "\n"
}

// programs are the files of a component.
func (c component) programs() []string {
	if len(c.pkgs) < 2 {
		return []string{c.name}
	}
	names := make([]string, len(c.pkgs))
	for i, pkg := range c.pkgs {
		names[i] = path.Base(pkg)
	}
	return names
}

// mirrored returns the key of a component on a mirror; false without a mirror, or if the checksums do not have all of its programs.
func (b Builder) mirrored(c component) (string, bool) {
	goVersion, platform, _ := strings.Cut(b.sums.build, " ")
	if b.mirror == "" || platform != thisPlatform() {
		return "", false
	}
	key, err := b.keyWith(c, goVersion)
	if err != nil {
		return "", false
	}
	for _, program := range c.programs() {
		if b.sums.byPath[key+"/"+program] == "" {
			return "", false
		}
	}
	return key, true
}

// FetchAll fetches controllers in parallel, as fetchAll does.
func (b Builder) FetchAll(ctx context.Context, controllers []Controller) {
	all := make([]component, len(controllers))
	for i, c := range controllers {
		all[i] = c.component()
	}
	b.fetchAll(ctx, all)
}

// fetchAll fetches in parallel what the cache lacks and the mirror has. What cannot be fetched is compiled later: the step says why.
func (b Builder) fetchAll(ctx context.Context, all []component) {
	var wait sync.WaitGroup
	for _, c := range all {
		if !b.isBuilt(c) {
			wait.Go(func() { _, _ = b.fetched(ctx, c) })
		}
	}
	wait.Wait()
}

// fetched returns the folder of a component from the mirror, fetched if need be; false if it has to be compiled.
func (b Builder) fetched(ctx context.Context, c component) (string, bool) {
	key, has := b.mirrored(c)
	if !has {
		return "", false
	}
	if _, missed := b.missed.Load(key); missed {
		return "", false
	}
	dir, err := b.Once(ctx, key, func(into string) error {
		step := b.report.Step("%s %s", c.name, c.version)
		if err := b.fetch(ctx, c, key, into, step); err != nil {
			b.missed.Store(key, true)
			step.Done("not fetched (%v): it is compiled", err)
			return err
		}
		step.Done("fetched")
		return nil
	})
	return dir, err == nil
}

// fetch fills a folder with a component's programs from the mirror.
func (b Builder) fetch(ctx context.Context, c component, key, into string, step *progress.Step) error {
	for _, program := range c.programs() {
		step.Detail("fetching %s", program)
		mirror, err := url.Parse(b.mirror)
		if err != nil {
			// The error has the address, which may have a password.
			return fmt.Errorf("%s is no URL", EnvMirror)
		}
		if err := b.fetchProgram(ctx, mirror.JoinPath(key, program+".gz"), filepath.Join(into, program), b.sums.byPath[key+"/"+program]); err != nil {
			return err
		}
	}
	return writeImage(c, filepath.Join(into, c.name))
}

// fetchProgram writes a program to a file. It is an error if its checksum differs, or if the mirror sends nothing for a while.
func (b Builder) fetchProgram(ctx context.Context, address *url.URL, to, sum string) (err error) {
	from := address.Redacted()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := fmt.Errorf("%s sent nothing for %s", from, b.stall)
	clock := time.AfterFunc(b.stall, func() { cancel(silent) })
	defer clock.Stop()
	defer func() {
		if err != nil && errors.Is(context.Cause(ctx), silent) {
			err = silent
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return fmt.Errorf("%s: %w", EnvMirror, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", from, response.Status)
	}
	plain, err := gzip.NewReader(&watched{response.Body, func() { clock.Reset(b.stall) }})
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, hash), io.LimitReader(plain, largest))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("%s has the checksum %s, not %s of %s", from, got, sum, SumsFile)
	}
	return nil
}

// watched calls moved whenever something was read.
type watched struct {
	io.Reader
	moved func()
}

func (w *watched) Read(into []byte) (int, error) {
	n, err := w.Reader.Read(into)
	if n > 0 {
		w.moved()
	}
	return n, err
}

// WriteMirror writes the programs of the newest version of Kubernetes and of controllers to a folder that can be served as a mirror, built if
// need be. It returns their checksums as the text of SumsFile. It fetches nothing from another mirror, which may have programs of another
// version of Go.
func (b Builder) WriteMirror(ctx context.Context, controllers []Controller, into string) (string, error) {
	b.mirror = ""
	written := sums{build: b.goVersion + " " + thisPlatform(), byPath: map[string]string{}}
	for _, c := range mirrorable(controllers) {
		dir, err := b.ensure(ctx, c)
		if err != nil {
			return "", err
		}
		for _, program := range c.programs() {
			name := filepath.Base(dir) + "/" + program
			sum, err := compress(filepath.Join(dir, program), filepath.Join(into, name+".gz"))
			if err != nil {
				return "", fmt.Errorf("mirror: %w", err)
			}
			written.byPath[name] = sum
		}
	}
	text := written.text()
	if err := os.WriteFile(filepath.Join(into, SumsFile), []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("mirror: %w", err)
	}
	return text, nil
}

// compress writes a file compressed to another one, complete or not at all, and returns the checksum of its content.
func compress(from, to string) (sum string, err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return "", err
	}
	source, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer func() { _ = source.Close() }()
	file, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".*.part")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	buffered := bufio.NewWriterSize(file, 1<<20)
	compressed, hash := gzip.NewWriter(buffered), sha256.New()
	_, err = io.Copy(io.MultiWriter(compressed, hash), source)
	// A web server may have another user.
	if err := errors.Join(err, compressed.Close(), buffered.Flush(), file.Chmod(0o644), file.Close()); err != nil {
		return "", err
	}
	if err := os.Rename(file.Name(), to); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// CheckSums returns what is wrong with SumsFile: programs of this repository that it lacks, and programs in the cache that were compiled by its
// version of Go and have other bytes.
func (b Builder) CheckSums(controllers []Controller) error {
	goVersion, platform, _ := strings.Cut(b.sums.build, " ")
	if platform != thisPlatform() {
		return nil
	}
	var all []error
	for _, c := range mirrorable(controllers) {
		key, err := b.keyWith(c, goVersion)
		if err != nil {
			return err
		}
		for _, program := range c.programs() {
			name := key + "/" + program
			sum := b.sums.byPath[name]
			if sum == "" {
				all = append(all, fmt.Errorf("%s lacks %s: run make mirror UPDATE=1", SumsFile, name))
				continue
			}
			switch got, err := sumOf(filepath.Join(b.cache, name)); {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				all = append(all, err)
			case got != sum:
				all = append(all, fmt.Errorf("%s was compiled here with the checksum %s, and %s has %s", name, got, SumsFile, sum))
			}
		}
	}
	return errors.Join(all...)
}

// mirrorable are the components that a mirror has.
func mirrorable(controllers []Controller) []component {
	all := components(layout.KubernetesVersion)
	for _, controller := range controllers {
		all = append(all, controller.component())
	}
	return all
}

// sumOf returns the checksum of a file.
func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
