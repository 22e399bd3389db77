package sample

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/hack/images/internal/steps"
)

func sources() fstest.MapFS {
	return fstest.MapFS{
		"pi.c":                                  {Data: []byte("int main(void) {}"), Mode: 0o644},
		"ranks.c":                               {Data: []byte("int main(void) {}"), Mode: 0o644},
		"mpi/build.sh":                          {Data: []byte("#!/bin/sh"), Mode: 0o755},
		"train.py":                              {Data: []byte("pass"), Mode: 0o755},
		"other":                                 {Data: []byte("not asked for")},
		"openmpi-sshd/build.sh":                 {Data: []byte("#!/bin/sh"), Mode: 0o775},
		"openmpi-sshd/rootfs/etc/ssh/some.conf": {Data: []byte("Port 2222"), Mode: 0o664},
	}
}

func openMPI(t *testing.T) Sample {
	t.Helper()
	s, err := Find("openmpi-sshd")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keyOf(t *testing.T, s Sample, samples fs.FS) string {
	t.Helper()
	inputs, err := s.gather(samples)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := packInputs(inputs)
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.key(packed, "")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestGather(t *testing.T) {
	t.Parallel()
	inputs, err := openMPI(t).gather(sources())
	if err != nil {
		t.Fatal(err)
	}
	executable := map[string]bool{}
	for name, file := range inputs {
		executable[name] = file.executable
	}
	want := map[string]bool{
		"build/build.sh": true, "build/mpi/build.sh": true, "build/pi.c": false, "build/ranks.c": false,
		"usr/local/bin/train.py": true, "etc/ssh/some.conf": false,
	}
	if diff := cmp.Diff(want, executable); diff != "" {
		t.Errorf("inputs and whether they can be run (-want +got):\n%s", diff)
	}
}

func TestGatherNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, missing := range []string{"pi.c", "train.py", "openmpi-sshd/build.sh"} {
		t.Run(missing, func(t *testing.T) {
			t.Parallel()
			files := sources()
			delete(files, missing)
			_, err := openMPI(t).gather(files)
			if err == nil || !strings.Contains(err.Error(), missing) {
				t.Errorf("error %v does not name %s", err, missing)
			}
		})
	}
}

func TestKeyChangesWithItsInputs(t *testing.T) {
	t.Parallel()
	changes := map[string]func(s *Sample, files fstest.MapFS){
		"a package":       func(s *Sample, _ fstest.MapFS) { s.Packages = append(s.Packages, "git") },
		"a build package": func(s *Sample, _ fstest.MapFS) { s.BuildPackages = nil },
		"the release":     func(s *Sample, _ fstest.MapFS) { s.Release = "trixie" },
		"the reference":   func(s *Sample, _ fstest.MapFS) { s.Reference = "odh/other:dev" },
		"the user":        func(s *Sample, _ fstest.MapFS) { s.Config.User = "1:1" },
		"a source":        func(_ *Sample, f fstest.MapFS) { f["pi.c"].Data = []byte("int x;") },
		"a mode":          func(_ *Sample, f fstest.MapFS) { f["train.py"].Mode = 0o644 },
		"one more file":   func(_ *Sample, f fstest.MapFS) { f["openmpi-sshd/rootfs/etc/new"] = &fstest.MapFile{} },
	}
	before := keyOf(t, openMPI(t), sources())
	keys := []string{before}
	for _, title := range slices.Sorted(maps.Keys(changes)) {
		s, files := openMPI(t), sources()
		changes[title](&s, files)
		key := keyOf(t, s, files)
		if slices.Contains(keys, key) {
			t.Errorf("%s: the key is one that other inputs have", title)
		}
		keys = append(keys, key)
	}
}

func TestKeyIgnoresTheCheckout(t *testing.T) {
	t.Parallel()
	changes := map[string]func(fstest.MapFS){
		"nothing":          func(fstest.MapFS) {},
		"another umask":    func(f fstest.MapFS) { f["train.py"].Mode = 0o700 },
		"time of checkout": func(f fstest.MapFS) { f["pi.c"].ModTime = time.Unix(1e9, 0) },
		"unrelated file":   func(f fstest.MapFS) { f["other"].Data = nil },
	}
	want := keyOf(t, openMPI(t), sources())
	for title, change := range changes {
		files := sources()
		change(files)
		if got := keyOf(t, openMPI(t), files); got != want {
			t.Errorf("%s: the key changed", title)
		}
	}
}

func TestMmdebstrapArguments(t *testing.T) {
	t.Parallel()
	s := Sample{
		Release: "bookworm", Packages: []string{"z", "b"}, BuildPackages: []string{"gcc"}, Unneeded: []string{"perl"},
		Downloads: []Download{{URL: "https://example.com/a/file.whl"}},
	}
	tests := map[string]struct {
		mirror string
		end    []string
	}{
		"public mirror": {"", []string{"bookworm", "/w/rootfs.tar"}},
		"own mirror":    {"http://mirror/debian", []string{"bookworm", "/w/rootfs.tar", "http://mirror/debian"}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			got := s.mmdebstrapArguments("/w/rootfs.tar", "/w/inputs.tar", test.mirror, "/cache")
			if !slices.Contains(got, "--include=b,gcc,z") {
				t.Errorf("no sorted list of packages in %q", got)
			}
			hooks := strings.Join(got, "\n")
			for _, want := range []string{"copy-in /cache/file.whl /build", "build.sh", "apt-get purge", "gcc", "--force-depends perl"} {
				_, after, found := strings.Cut(hooks, want)
				if !found {
					t.Errorf("no %q, or not in this order, in %q", want, got)
				}
				hooks = after
			}
			if end := got[len(got)-len(test.end):]; !slices.Equal(end, test.end) {
				t.Errorf("ends with %q, want %q", end, test.end)
			}
		})
	}
}

func TestBuildTakesWhatTheCacheHas(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	if err := os.CopyFS(dir, sources()); err != nil {
		t.Fatal(err)
	}
	// The key of the copied files, since a copy may lose modes to the umask.
	key := keyOf(t, openMPI(t), os.DirFS(dir))
	if err := os.WriteFile(filepath.Join(cache, key+".tar"), []byte("finished"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	builder := Builder{Samples: dir, Cache: cache, Log: steps.New(&said, time.Now), Output: io.Discard}
	out := filepath.Join(t.TempDir(), "openmpi.tar")
	if err := builder.Build(t.Context(), openMPI(t), out); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != "finished" {
		t.Errorf("got %q, %v", got, err)
	}
	if !strings.Contains(said.String(), "in the cache") {
		t.Errorf("steps do not tell of the cache:\n%s", said.String())
	}
}

// TestRealSources fails when a recipe names a file that the repository lacks,
// or a script that would not be executable in the image.
func TestRealSources(t *testing.T) {
	t.Parallel()
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			inputs, err := s.gather(os.DirFS("../../../../images/samples"))
			if err != nil {
				t.Fatal(err)
			}
			for name, file := range inputs {
				if script := bytes.HasPrefix(file.content, []byte("#!")); script != file.executable {
					t.Errorf("%s: starts with #! is %v, executable is %v", name, script, file.executable)
				}
			}
		})
	}
}

// TestSamplesWithSSH: those for the examples of mpi-operator, of which only one has a Containerfile. All others show that the agent is
// enough.
func TestSamplesWithSSH(t *testing.T) {
	t.Parallel()
	for _, s := range All() {
		if want := strings.HasSuffix(s.Name, "-sshd"); s.SSH != want {
			t.Errorf("%s: SSH is %v", s.Name, s.SSH)
		}
		if s.SSH && s.NoContainerfile == (s.Name == "openmpi-sshd") {
			t.Errorf("%s: without a Containerfile is %v", s.Name, s.NoContainerfile)
		}
	}
}

// TestGatherForUpstream: the samples of other MPIs with SSH have the SSH of the one of Open MPI, and the script of their own MPI.
func TestGatherForUpstream(t *testing.T) {
	t.Parallel()
	files := os.DirFS("../../../../images/samples")
	for name, script := range map[string]string{"mpich-sshd": "build/mpi/build.sh", "intelmpi-sshd": "build/intelmpi/build.sh"} {
		s, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		inputs, err := s.gather(files)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{script, "build/build.sh", "build/pi.c", "usr/local/bin/sshd-user", "etc/ssh/sshd_config.d/00-mpi.conf"} {
			if _, has := inputs[want]; !has {
				t.Errorf("%s lacks %s", name, want)
			}
		}
	}
}

func TestRefuseSSH(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file string
		fine bool
	}{
		"client":                  {file: "./usr/bin/ssh"},
		"server":                  {file: "./usr/sbin/sshd"},
		"a script of ours":        {file: "./usr/local/bin/ssh"},
		"before /usr was merged":  {file: "./bin/ssh"},
		"package":                 {file: "./var/lib/dpkg/info/openssh-client.list"},
		"apt's way to fetch":      {file: "./usr/lib/apt/methods/ssh", fine: true},
		"a library":               {file: "./usr/lib/x86_64-linux-gnu/libssh.so.4", fine: true},
		"a folder of that name":   {file: "./usr/share/bash-completion/completions/ssh", fine: true},
		"a program that is other": {file: "./usr/bin/sshow", fine: true},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			packed, err := packInputs(map[string]input{test.file: {}, "./usr/bin/mpirun": {}})
			if err != nil {
				t.Fatal(err)
			}
			rootfs := filepath.Join(t.TempDir(), "rootfs.tar")
			if err := os.WriteFile(rootfs, packed, 0o600); err != nil {
				t.Fatal(err)
			}
			err = refuseSSH(rootfs)
			if (err == nil) != test.fine || err != nil && !strings.Contains(err.Error(), test.file[1:]) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestDownload(t *testing.T) {
	t.Parallel()
	const hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/file.whl" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "hello")
	}))
	t.Cleanup(server.Close)
	tests := map[string]struct{ path, sum, says string }{
		"as it should be": {path: "/file.whl", sum: hello},
		"another content": {path: "/file.whl", sum: strings.Repeat("0", 64), says: hello},
		"not there":       {path: "/other.whl", sum: hello, says: "404"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			builder := Builder{Cache: t.TempDir(), Log: steps.New(io.Discard, time.Now)}
			err := builder.download(t.Context(), []Download{{URL: server.URL + test.path, SHA256: test.sum}})
			left, _ := filepath.Glob(filepath.Join(builder.downloads(), "*"))
			if test.says == "" {
				if err != nil || len(left) != 1 {
					t.Errorf("error %v, files %q", err, left)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.says) || len(left) > 0 {
				t.Errorf("error %v does not say %q, or files are left: %q", err, test.says, left)
			}
		})
	}
}

func TestFindTellsWhatThereIs(t *testing.T) {
	t.Parallel()
	_, err := Find("intel")
	if err == nil || !strings.Contains(err.Error(), "openmpi") {
		t.Errorf("error %v does not name the samples", err)
	}
}
