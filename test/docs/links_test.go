// Package docs tests what the documents say.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	code    = regexp.MustCompile("(?ms)^ *```.*?^ *```|`[^`\n]*`")
)

// TestLinks: every relative link leads to a file, and to a heading if it names one.
func TestLinks(t *testing.T) {
	for _, path := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, path), ""), -1) {
			if strings.Contains(match[1], "://") || strings.HasPrefix(match[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(match[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: %v", path, match[1], err)
			} else if anchor != "" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s: link to %s: there is no such heading", path, match[1])
			}
		}
	}
}

// documents are the repository's *.md files, but for those in folders that the commands make.
func documents(t *testing.T) []string {
	t.Helper()
	return files(t, ".md")
}

// files returns the files of the repository whose names end so, without those that were built.
func files(t *testing.T, suffix string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		switch {
		case path == root:
		case entry.IsDir() && (strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "dist", "node_modules"}, name)):
			return fs.SkipDir
		case strings.HasSuffix(name, suffix):
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// anchors are the names that GitHub gives a document's headings.
func anchors(document string) []string {
	var all []string
	for _, match := range heading.FindAllStringSubmatch(document, -1) {
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, match[1]))
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
