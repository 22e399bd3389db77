package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A block is a fenced block of a page.
type block struct {
	page     string
	line     int
	language string
	text     string
	// mark is what the comment in the line before says: "" (run it), "file", "output", "exit", "example" or "part", and of is the rest:
	// the name of a file, an exit code, why the block is not run, or of which object it is a part.
	mark, of string
}

// marker is a comment before a block, or anywhere in a page of which nothing is run.
var (
	marker  = regexp.MustCompile(`^\s*<!-- (file|output|exit|example|part|not run)(?:: (.+?))? -->\s*$`)
	fences  = regexp.MustCompile("^( *)```([a-z]*)\\s*$")
	guides  = []string{"README.md", "docs/index.md", "docs/one-machine.md", "docs/runbooks.md"}
	folders = []string{"docs/tutorials", "docs/how-to", "docs/admin"}
)

// pages returns the pages whose commands are run, or that state why not.
func pages(t *testing.T) []string {
	t.Helper()
	paths := slices.Clone(guides)
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(root, folder, "*.md"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages in %s: %v", folder, err)
		}
		for _, path := range found {
			paths = append(paths, folder+"/"+filepath.Base(path))
		}
	}
	return paths
}

// blocksOf returns the blocks of a page, and why nothing of it is run, or "".
func blocksOf(t *testing.T, page string) (blocks []block, notRun string) {
	t.Helper()
	var mark, of, indent string
	var open *block
	number := 0
	for line := range strings.Lines(read(t, filepath.Join(root, page))) {
		number++
		text := strings.TrimRight(line, "\n")
		fence := fences.FindStringSubmatch(text)
		switch {
		case open != nil && strings.TrimSpace(text) == "```":
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(text, indent) + "\n"
		case fence != nil:
			indent = fence[1]
			open = &block{page: page, line: number, language: fence[2], mark: mark, of: of}
			mark, of = "", ""
		default:
			if found := marker.FindStringSubmatch(text); found != nil {
				mark, of = found[1], found[2]
				if mark == "not run" {
					notRun, mark, of = of, "", ""
				}
			} else if strings.TrimSpace(text) != "" && mark != "" {
				t.Errorf("%s:%d: the mark %q is not followed by a block", page, number, mark)
				mark, of = "", ""
			}
		}
	}
	if open != nil {
		t.Errorf("%s:%d: the block does not end", page, open.line)
	}
	return blocks, notRun
}

// TestBlocksAreRunOrSayWhy: each block of a guide is run by TestPages, is a file or an output of it, or states why not.
func TestBlocksAreRunOrSayWhy(t *testing.T) {
	run, exist := 0, tests(t)
	for _, page := range pages(t) {
		blocks, notRun := blocksOf(t, page)
		for _, name := range testName.FindAllString(notRun, -1) {
			if !exist[name] {
				t.Errorf("%s: there is no test %s: %s", page, name, notRun)
			}
		}
		if notRun != "" {
			for _, b := range blocks {
				if b.mark != "" && b.mark != "part" {
					t.Errorf("%s:%d: the block has the mark %q in a page that is not run", page, b.line, b.mark)
				}
			}
			continue
		}
		ran := false
		for _, b := range blocks {
			switch {
			case b.mark == "file" && b.of == "", b.mark == "exit" && !regexp.MustCompile(`^[1-9]\d*$`).MatchString(b.of):
				t.Errorf("%s:%d: the mark %q has no value", page, b.line, b.mark)
			case b.mark == "example" && len(b.of) < 20:
				t.Errorf("%s:%d: the mark does not state why the block is not run: %q", page, b.line, b.of)
			case b.mark == "output" && !ran:
				t.Errorf("%s:%d: an output before anything was run", page, b.line)
			case b.mark == "part" && b.language != "yaml":
				t.Errorf("%s:%d: only YAML can be a part of an object", page, b.line)
			case b.mark == "" && b.language != "sh" && b.language != "python":
				t.Errorf("%s:%d: a block of %q is not run: mark it as file, output or example", page, b.line, b.language)
			}
			if b.mark == "" || b.mark == "exit" {
				ran = true
				run++
			}
		}
		if !ran {
			t.Errorf("%s: nothing is run: mark the page with <!-- not run: REASON -->", page)
		}
	}
	if run < 30 {
		t.Errorf("%d blocks are run", run)
	}
}
