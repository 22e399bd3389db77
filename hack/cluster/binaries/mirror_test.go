package binaries

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/progress"
)

// mirrorBuilder is a builder with an empty cache and the checksums of a mirror.
func mirrorBuilder(t *testing.T, address, text string) (Builder, *bytes.Buffer) {
	t.Helper()
	b, said := newBuilder(t), &bytes.Buffer{}
	b.report = progress.New(said)
	t.Cleanup(b.report.Close)
	file := filepath.Join(t.TempDir(), SumsFile)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.sums, err = readSums(file); err != nil {
		t.Fatal(err)
	}
	b.mirror, b.stall, b.missed = address, time.Minute, &sync.Map{}
	return b, said
}

// TestMirror: programs that were built before are fetched from where they are served, and compiled where that fails.
func TestMirror(t *testing.T) {
	ctx := context.Background()
	built := newBuilder(t)
	var err error
	if built.goVersion, err = toolVersion(ctx, "../build/pause"); err != nil {
		t.Fatal(err)
	}
	pause := component{name: "pause", version: "v1", links: []string{"pause"}}
	dir, err := built.ensure(ctx, pause)
	if err != nil {
		t.Fatal(err)
	}
	served, key := t.TempDir(), filepath.Base(dir)
	sum, err := compress(filepath.Join(dir, "pause"), filepath.Join(served, key, "pause.gz"))
	if err != nil {
		t.Fatal(err)
	}
	text := sums{build: built.goVersion + " " + thisPlatform(), byPath: map[string]string{key + "/pause": sum}}.text()

	for name, test := range map[string]struct {
		text   string
		answer func(w http.ResponseWriter, r *http.Request)
		stall  time.Duration
		// want is in what is said; compiled, the program is not that of the mirror.
		want     string
		compiled bool
	}{
		"it has the program":          {want: "fetched"},
		"it does not have it":         {answer: http.NotFound, want: "404 Not Found): it is compiled", compiled: true},
		"the checksums do not":        {text: "# " + built.goVersion + " " + thisPlatform() + "\n", want: "built", compiled: true},
		"those of another processor":  {text: strings.Replace(text, thisPlatform(), "linux/other", 1), want: "built", compiled: true},
		"it is another program":       {answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(zipped(t, "#!/bin/sh\necho hostile")) }, want: "has the checksum", compiled: true},
		"it is cut off":               {answer: cutOff(t, served, key), want: "it is compiled", compiled: true},
		"it is no compressed program": {answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>login</html>") }, want: "gzip: invalid header", compiled: true},
		"it sends nothing":            {answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, stall: 100 * time.Millisecond, want: "sent nothing for 100ms", compiled: true},
		"it is slow, and sends":       {answer: slowly(t, served, key), stall: slowStall, want: "fetched"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if test.answer != nil {
					test.answer(w, r)
					return
				}
				http.FileServer(http.Dir(served)).ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			b, said := mirrorBuilder(t, server.URL, cmp.Or(test.text, text))
			b.goVersion = built.goVersion
			b.stall = cmp.Or(test.stall, b.stall)
			b.fetchAll(ctx, []component{pause})
			got, err := b.ensure(ctx, pause)
			if err != nil {
				t.Fatal(err)
			}
			if fetched := !strings.Contains(said.String(), "packages compiled"); fetched == test.compiled {
				t.Errorf("it was fetched: %t\n%s", fetched, said)
			}
			if !strings.Contains(said.String(), test.want) {
				t.Errorf("it does not say %q, but\n%s", test.want, said)
			}
			// Either way it is the same program: builds can be repeated to the byte.
			if content, err := os.ReadFile(filepath.Join(got, "pause")); err != nil || hex.EncodeToString(sum256(content)) != sum {
				t.Errorf("it has other bytes than the one that was built before (%v)", err)
			}
			if asked.Load() > 1 {
				t.Errorf("the mirror was asked %d times", asked.Load())
			}
		})
	}
}

// TestMirrorOfAnotherGo: a machine with another version of Go uses the programs of the mirror as they are.
func TestMirrorOfAnotherGo(t *testing.T) {
	pause := component{name: "pause", version: "v1", links: []string{"pause"}}
	other := newBuilder(t)
	other.goVersion = "go1.99.1"
	key, err := other.key(pause)
	if err != nil {
		t.Fatal(err)
	}
	const program = "of go1.99.1"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/programs/"+key+"/pause.gz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(zipped(t, program))
	}))
	defer server.Close()
	b, said := mirrorBuilder(t, server.URL+"/programs", sums{build: "go1.99.1 " + thisPlatform(), byPath: map[string]string{key + "/pause": hex.EncodeToString(sum256([]byte(program)))}}.text())
	if dir, err := b.ensure(t.Context(), pause); err != nil || filepath.Base(dir) != key {
		t.Errorf("it is in %s, want %s (%v)\n%s", dir, key, err, said)
	}
	if text := b.announcement([]component{pause, pause}, 2); text != "" {
		t.Errorf("it says %q", text)
	}
}

// TestControllersAreFetchedTogether: the mirror is asked for the second of two controllers before it has sent the first.
func TestControllersAreFetchedTogether(t *testing.T) {
	controllers := []Controller{
		{Name: "trainer", Version: "v2.3.0", Package: "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"},
		{Name: "jobset", Version: "v0.12.0", Package: "sigs.k8s.io/jobset"},
	}
	goVersion, byPath := "go1.99.1", map[string]string{}
	for _, c := range controllers {
		key, err := newBuilder(t).keyWith(c.component(), goVersion)
		if err != nil {
			t.Fatal(err)
		}
		byPath[key+"/"+c.Name] = hex.EncodeToString(sum256([]byte("program")))
	}
	var asked atomic.Int32
	both := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
		case <-r.Context().Done():
		}
		_, _ = w.Write(zipped(t, "program"))
	}))
	defer server.Close()
	b, said := mirrorBuilder(t, server.URL, sums{build: goVersion + " " + thisPlatform(), byPath: byPath}.text())
	b.stall = 5 * time.Second
	b.FetchAll(t.Context(), controllers)
	// What it sends is no program that an image can have, which is noticed later.
	if asked.Load() != 2 || strings.Contains(said.String(), "sent nothing") {
		t.Errorf("the mirror was asked for %d: %s", asked.Load(), said)
	}
}

// TestPasswordOfMirror: no message has the password in the address of a mirror.
func TestPasswordOfMirror(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	pause := component{name: "pause", version: "v1", links: []string{"pause"}}
	for name, address := range map[string]string{
		"it answers":   strings.Replace(server.URL, "http://", "http://user:secret@", 1),
		"it is away":   "http://user:secret@127.0.0.1:1",
		"it is no URL": "http://user:secret@[::1",
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := mirrorBuilder(t, address, "")
			err := b.fetch(t.Context(), pause, "pause-v1", t.TempDir(), b.report.Step("pause"))
			if err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestWriteMirrorIgnoresAMirror: what a mirror is made of is compiled here.
func TestWriteMirrorIgnoresAMirror(t *testing.T) {
	first := components(layout.KubernetesVersion)[0]
	var text strings.Builder
	text.WriteString("# go1.26.8 " + thisPlatform() + "\n")
	key, err := newBuilder(t).key(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range first.programs() {
		text.WriteString(strings.Repeat("0", 64) + "  " + key + "/" + program + "\n")
	}
	b, said := mirrorBuilder(t, "http://127.0.0.1:1", text.String())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.WriteMirror(ctx, nil, t.TempDir()); err == nil || strings.Contains(said.String(), "fetch") {
		t.Errorf("%v: %s", err, said)
	}
}

// TestCompressIsComplete: a file of a mirror is there as a whole, or as it was.
func TestCompressIsComplete(t *testing.T) {
	folder := t.TempDir()
	to := filepath.Join(folder, "pause.gz")
	if err := os.WriteFile(to, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A folder can be opened and not be read.
	if _, err := compress(t.TempDir(), to); err == nil {
		t.Fatal("a folder was compressed")
	}
	if content, err := os.ReadFile(to); err != nil || string(content) != "before" {
		t.Errorf("the file has %q (%v)", content, err)
	}
	if _, err := compress("mirror.go", to); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(folder)
	if info, statErr := os.Stat(to); err != nil || statErr != nil || len(left) != 1 || info.Mode().Perm() != 0o644 {
		t.Errorf("the folder has %v (%v, %v)", left, err, statErr)
	}
}

// TestGoEnvironment: settings of the caller do not change what is compiled.
func TestGoEnvironment(t *testing.T) {
	want := map[string]string{"GOAMD64": "v1", "GOARM64": "v8.0", "GOFIPS140": "off", "GOEXPERIMENT": "", "GOFLAGS": ""}
	for name, value := range map[string]string{"GOAMD64": "v3", "GOARM64": "v9.0", "GOFIPS140": "latest", "GOEXPERIMENT": "jsonv2", "GOFLAGS": "-tags=x"} {
		t.Setenv(name, value)
	}
	for name, value := range want {
		got := "unset"
		for _, variable := range goEnvironment() {
			if is, v, _ := strings.Cut(variable, "="); is == name {
				got = v
			}
		}
		if got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}

func TestSumsThatCannotBeRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), SumsFile)
	if err := os.WriteFile(file, []byte("# go linux/amd64\nabc  etcd/etcd\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readSums(file); err == nil || !strings.Contains(err.Error(), `"abc  etcd/etcd"`) {
		t.Errorf("%v", err)
	}
	if none, err := readSums(file + ".none"); err != nil || len(none.byPath) > 0 {
		t.Errorf("%+v %v", none, err)
	}
}

func sum256(content []byte) []byte {
	sum := sha256.Sum256(content)
	return sum[:]
}

// zipped is a program as a mirror serves it.
func zipped(t *testing.T, content string) []byte {
	t.Helper()
	var into bytes.Buffer
	w := gzip.NewWriter(&into)
	_, err := io.WriteString(w, content)
	if err := cmp.Or(err, w.Close()); err != nil {
		t.Error(err)
	}
	return into.Bytes()
}

// cutOff serves half of the program.
func cutOff(t *testing.T, served, key string) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, _ *http.Request) {
		content, err := os.ReadFile(filepath.Join(served, key, "pause.gz"))
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(content[:len(content)/2])
	}
}

// slowStall is how long the mirror that sends slowly may be silent. Its parts take longer together, and a fiftieth of it each, so that a busy
// machine may delay them.
const slowStall, slowParts = 5 * time.Second, 60

// slowly serves the program in parts.
func slowly(t *testing.T, served, key string) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, _ *http.Request) {
		content, err := os.ReadFile(filepath.Join(served, key, "pause.gz"))
		if err != nil {
			t.Error(err)
		}
		for part := range slowParts {
			_, _ = w.Write(content[part*len(content)/slowParts : (part+1)*len(content)/slowParts])
			_ = http.NewResponseController(w).Flush()
			time.Sleep(slowStall / 50)
		}
	}
}
