package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReplacedDecisions: a decision that another one replaces, in whole or in part, links to it: who reads it learns that it no longer holds.
func TestReplacedDecisions(t *testing.T) {
	folder := filepath.Join(root, "docs", "decisions")
	replaces := regexp.MustCompile(`(?m)^Status: [^\n]*(?:Replaces|Supersedes|Changes) [^\n]*?\]\((\d{4}-[\w-]+\.md)\)`)
	checked := 0
	for _, path := range documents(t) {
		if filepath.Dir(path) != folder {
			continue
		}
		for _, found := range replaces.FindAllStringSubmatch(read(t, path), -1) {
			checked++
			if !strings.Contains(read(t, filepath.Join(folder, found[1])), "("+filepath.Base(path)+")") {
				t.Errorf("%s does not link to %s, which replaces what it says", found[1], filepath.Base(path))
			}
		}
	}
	if checked < 6 {
		t.Errorf("only %d decisions that replace others are found", checked)
	}
}
