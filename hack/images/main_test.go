package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"opendatahub.io/mpijob/hack/images/internal/sample"
)

func TestCommandLine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		arguments []string
		err       error
		says      string // in the error or on stdout
	}{
		"help":             {[]string{"help"}, nil, "images program"},
		"list":             {[]string{"list"}, nil, "odh/mpi-sample-openmpi:dev"},
		"flags of program": {[]string{"program", "-h"}, flag.ErrHelp, "-ldflags"},
		"flags of sample":  {[]string{"sample", "--help"}, flag.ErrHelp, "-mirror"},
		"nothing":          {nil, errUsage, "no command"},
		"unknown command":  {[]string{"push"}, errUsage, `"push"`},
		"unknown flag":     {[]string{"program", "--nonsense"}, errUsage, "nonsense"},
		"all that lacks":   {[]string{"program"}, errUsage, "--name, --package, --out"},
		"bad label":        {[]string{"program", "--label", "x"}, errUsage, `"x" is not KEY=value`},
		"no sample":        {[]string{"sample", "--out", "x"}, errUsage, "no sample named"},
		"unknown sample":   {[]string{"sample", "intel", "--out", "x"}, errUsage, `"intel"`},
		"two samples":      {[]string{"sample", "openmpi", "--out", "x", "mpich"}, errUsage, "mpich"},
		"no archives":      {[]string{"layout", "--name", "odh/x:dev", "--out", "x"}, errUsage, "no archives"},
		"no files":         {[]string{"files", "--name", "odh/x:dev", "--out", "x"}, errUsage, "no files"},
		"bad file":         {[]string{"files", "--name", "odh/x:dev", "--out", "x", "/bin/x"}, errUsage, `"/bin/x" is not KEY=value`},
		"nowhere to write": {[]string{"sample", "openmpi"}, errUsage, "--out"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			err := run(t.Context(), test.arguments, &stdout, &stderr)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			said := stdout.String()
			if err != nil {
				said += err.Error()
			}
			if !strings.Contains(said, test.says) {
				t.Errorf("%q does not say %q", said, test.says)
			}
		})
	}
}

func TestFindSamples(t *testing.T) {
	t.Parallel()
	checkout := t.TempDir()
	samples := filepath.Join(checkout, "images", "samples")
	below := filepath.Join(checkout, "hack", "images")
	if err := errors.Join(os.MkdirAll(samples, 0o755), os.MkdirAll(below, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, start := range []string{checkout, below, samples} {
		if got, err := findSamples(start); err != nil || got != samples {
			t.Errorf("from %s: %q, %v", start, got, err)
		}
	}
	if _, err := findSamples(t.TempDir()); err == nil || !strings.Contains(err.Error(), "--samples") {
		t.Errorf("outside a checkout: error %v does not tell of --samples", err)
	}
}

// programFiles are the Containerfiles that compile a program.
var programFiles = []string{"images/operator/Containerfile", "images/agent/Containerfile", "images/dashboard/Containerfile"}

// TestContainerfilesCopySources: the folder of each package that a program is made of is copied before the program is compiled.
func TestContainerfilesCopySources(t *testing.T) {
	t.Parallel()
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	program := regexp.MustCompile(`\./cmd/\w+`)
	for _, file := range programFiles {
		content, err := os.ReadFile(filepath.Join(checkout, file))
		if err != nil {
			t.Error(err)
			continue
		}
		before, build, found := strings.Cut(string(content), "RUN go build")
		if !found {
			t.Errorf("%s compiles nothing", file)
			continue
		}
		var copied []string
		for line := range strings.Lines(before) {
			if words := strings.Fields(line); len(words) > 2 && words[0] == "COPY" {
				copied = append(copied, words[1:len(words)-1]...)
			}
		}
		const ours = `{{if and .Module .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}`
		command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", ours, program.FindString(build))
		command.Dir, command.Env = checkout, append(os.Environ(), "CGO_ENABLED=0")
		sources, err := command.Output()
		if err != nil {
			t.Fatalf("%s: list the packages of the program: %v", file, err)
		}
		for source := range strings.FieldsSeq(string(sources)) {
			source = strings.TrimPrefix(source, checkout+"/")
			if !slices.ContainsFunc(copied, func(path string) bool {
				return source == path || strings.HasPrefix(source, strings.TrimSuffix(path, "/")+"/")
			}) {
				t.Errorf("%s does not copy %s", file, source)
			}
		}
	}
}

// TestContainerfiles checks what can be without a registry: a base image without a version would make another image
// of the same sources, and what is copied must be there.
func TestContainerfiles(t *testing.T) {
	t.Parallel()
	const checkout = "../.."
	files := slices.Clone(programFiles)
	for _, s := range sample.All() {
		if !s.NoContainerfile {
			files = append(files, "images/samples/"+s.Name+"/Containerfile")
		}
	}
	pinned := regexp.MustCompile(`^registry\.access\.redhat\.com/\S+:\d+(\.\d+)+-\d+@sha256:[0-9a-f]{64}( AS \w+)?$`)
	numeric := regexp.MustCompile(`(?m)^USER \d+(:\d+)?$`)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(checkout, file))
		if err != nil {
			t.Error(err)
			continue
		}
		for line := range strings.Lines(string(content)) {
			words := strings.Fields(line)
			base, found := strings.CutPrefix(strings.TrimSpace(line), "FROM ")
			if found && base != "scratch" && !pinned.MatchString(base) {
				t.Errorf("%s: base %q is not a UBI image with a version and a digest", file, base)
			}
			if len(words) == 0 || words[0] != "COPY" || strings.Contains(line, "--from=") {
				continue
			}
			for _, source := range words[1 : len(words)-1] {
				if _, err := os.Stat(filepath.Join(checkout, source)); err != nil && !strings.HasPrefix(source, "--") {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
		if !numeric.Match(content) {
			t.Errorf("%s: no numeric USER, which runAsNonRoot needs", file)
		}
		if !strings.Contains(string(content), "podman build -f "+file+" ") {
			t.Errorf("%s: does not say how it is built", file)
		}
	}
}
