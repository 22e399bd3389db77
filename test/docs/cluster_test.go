package docs

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// blockTimeout is how long a block of a page may run: a first image may have to be pulled.
const blockTimeout = 10 * time.Minute

// TestPages runs the blocks of each guide on a real cluster, in the order of the page, as its reader would: in one shell, and its
// Python blocks in one interpreter. PAGES_KUBECONFIG names the cluster, which `make pages-e2e` starts; PAGE picks pages whose name matches. With
// UPDATE=1, outputs in the pages are replaced by those of this run, but for those with "…".
func TestPages(t *testing.T) {
	kubeconfig := os.Getenv("PAGES_KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("SKIPPED: PAGES_KUBECONFIG names no cluster; `make pages-e2e` runs the commands of the guides")
	}
	picked, err := regexp.Compile(os.Getenv("PAGE"))
	if err != nil {
		t.Fatalf("PAGE: %v", err)
	}
	for _, page := range pages(t) {
		if !picked.MatchString(page) {
			continue
		}
		blocks, notRun := blocksOf(t, page)
		t.Run(page, func(t *testing.T) {
			if notRun != "" {
				t.Skip("SKIPPED: " + notRun)
			}
			runPage(t, page, blocks, kubeconfig)
		})
	}
}

func runPage(t *testing.T, page string, blocks []block, kubeconfig string) {
	t.Helper()
	if slices.ContainsFunc(blocks, func(b block) bool { return b.language == "python" && b.mark == "" }) {
		if _, err := exec.LookPath("python3"); err != nil {
			t.Skip("SKIPPED: python3 is not installed")
		}
	}
	removeNamespaces(t, blocks, kubeconfig)
	s := startSession(t, kubeconfig)
	last := ""
	for _, b := range blocks {
		at := fmt.Sprintf("%s:%d", page, b.line)
		switch b.mark {
		case "example":
			t.Logf("%s: not run: %s", at, b.of)
		case "part":
			t.Logf("%s: not run: TestOnAPIServer checks this part of a %s", at, b.of)
		case "file":
			if err := os.WriteFile(filepath.Join(s.folder, b.of), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		case "output":
			checkOutput(t, b, last)
		default:
			began := time.Now()
			output, err := s.run(t.Context(), b)
			t.Logf("%s: %s\n%s%s", at, time.Since(began).Round(100*time.Millisecond), b.text, output)
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			last = output
		}
	}
}

// namespaces matches the namespaces that a page creates.
var namespaces = regexp.MustCompile(`kubectl create namespace (\S+)`)

// removeNamespaces removes the namespaces that a page creates, before and after the test.
func removeNamespaces(t *testing.T, blocks []block, kubeconfig string) {
	t.Helper()
	var names []string
	for _, b := range blocks {
		if b.mark == "" {
			for _, found := range namespaces.FindAllStringSubmatch(b.text, -1) {
				names = append(names, found[1])
			}
		}
	}
	remove := func() {
		for _, name := range names {
			// The test's context is over when it is cleaned up.
			output, err := exec.CommandContext(context.WithoutCancel(t.Context()), "kubectl", "--kubeconfig", kubeconfig, "delete", "namespace", name, "--ignore-not-found", "--timeout=3m").CombinedOutput() //nolint:gosec // the pages are those of the repository
			if err != nil {
				t.Errorf("delete namespace %s: %v\n%s", name, err, output)
			}
		}
	}
	remove()
	t.Cleanup(remove)
}

// A session is a shell in a folder like a clone of the repository, and the Python that the page starts in it.
type session struct {
	folder string
	shell  io.Writer
	python io.Writer
	// output has what both print. A line with the mark and an exit code ends a block.
	output chan string
	mark   string
	began  bool
}

//go:embed testdata/interpreter.py
var interpreter string

func startSession(t *testing.T, kubeconfig string) *session {
	t.Helper()
	s := &session{folder: t.TempDir(), output: make(chan string, 1000), mark: "end-of-block-" + strconv.FormatInt(time.Now().UnixNano(), 36)}
	// What the page writes does not land in the clone.
	clone, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(clone)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, ".") {
			if err := os.Symlink(filepath.Join(clone, name), filepath.Join(s.folder, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The page may select a namespace in it.
	home := t.TempDir()
	config, own := filepath.Join(home, "kubeconfig"), filepath.Join(home, "interpreter.py")
	text, err := os.ReadFile(kubeconfig) //nolint:gosec // the test's caller names it
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{config: text, own: []byte(interpreter)} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	commands, shell := pipe(t)
	code, python := pipe(t)
	s.shell, s.python = shell, python
	read, write := pipe(t)
	bash := exec.CommandContext(t.Context(), "bash", "/dev/fd/3")
	bash.Dir, bash.Stdout, bash.Stderr, bash.ExtraFiles = s.folder, write, write, []*os.File{commands, code}
	bash.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG="+config, "INTERPRETER="+own, "BLOCK_MARK="+s.mark)
	bash.WaitDelay = 5 * time.Second
	if err := bash.Start(); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	readers.Go(func() {
		defer close(s.output)
		lines := bufio.NewReader(read)
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				s.output <- line
			}
			if err != nil {
				return
			}
		}
	})
	for _, file := range []*os.File{commands, code, write} {
		closeFile(t, file)
	}
	t.Cleanup(func() {
		closeFile(t, shell)
		closeFile(t, python)
		_ = bash.Wait()
		closeFile(t, read)
		for range s.output {
		}
		readers.Wait()
	})
	return s
}

func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return read, write
}

func closeFile(t *testing.T, file *os.File) {
	t.Helper()
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

// run runs a block and returns what it printed. It fails if a command fails, or the block does not end with the exit code of its mark.
func (s *session) run(ctx context.Context, b block) (string, error) {
	want := 0
	if b.mark == "exit" {
		want, _ = strconv.Atoi(b.of) // a test checks it
	}
	if b.language == "python" {
		if !s.began {
			s.began = true
			if _, err := io.WriteString(s.shell, "python3 -u \"$INTERPRETER\" <&4 &\n"); err != nil {
				return "", fmt.Errorf("start Python: %w", err)
			}
		}
		text, err := json.Marshal(b.text)
		if err != nil {
			return "", fmt.Errorf("write the block: %w", err)
		}
		if _, err := s.python.Write(append(text, '\n')); err != nil {
			return "", fmt.Errorf("write to Python: %w", err)
		}
	} else {
		// A block that fails on purpose does not end the shell, and changes no variable of it.
		open, end := "set -e\n", "set +e\n"
		if want != 0 {
			open, end = "(\nset -e\n", ")\n"
		}
		if _, err := fmt.Fprintf(s.shell, "%s%s%sprintf '\\n%%s %%s\\n' \"$BLOCK_MARK\" $?\n", open, b.text, end); err != nil {
			return "", fmt.Errorf("write to the shell: %w", err)
		}
	}
	return s.wait(ctx, want)
}

func (s *session) wait(ctx context.Context, want int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, blockTimeout)
	defer cancel()
	var printed bytes.Buffer
	for {
		select {
		case <-ctx.Done():
			return printed.String(), fmt.Errorf("the block has not ended after %s", blockTimeout)
		case line, more := <-s.output:
			if !more {
				return printed.String(), fmt.Errorf("a command failed")
			}
			if code, ends := strings.CutPrefix(strings.TrimSpace(line), s.mark+" "); ends {
				output := strings.TrimSuffix(printed.String(), "\n")
				if got, err := strconv.Atoi(code); err != nil || got != want {
					return output, fmt.Errorf("the exit code is %s, want %d", code, want)
				}
				return output, nil
			}
			printed.WriteString(line)
		}
	}
}
