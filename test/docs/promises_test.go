package docs

import (
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile(`\bTest[A-Z]\w+`)
	testFunc = regexp.MustCompile(`(?m)^func (Test[A-Z]\w+)\(`)
)

// TestPromises: each row of the table of promises names tests, and all tests that it names exist.
func TestPromises(t *testing.T) {
	exist := tests(t)
	rows := 0
	for line := range strings.Lines(read(t, root+"/docs/promises.md")) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| |") {
			continue
		}
		rows++
		names := testName.FindAllString(line, -1)
		if len(names) < 2 {
			t.Errorf("the row names %d tests: %s", len(names), line)
		}
		for _, name := range names {
			if !exist[name] {
				t.Errorf("there is no test %s: %s", name, line)
			}
		}
	}
	if rows < 10 {
		t.Errorf("the table has %d rows", rows)
	}
}

// tests returns the names of all tests of the repository.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	exist := map[string]bool{}
	for _, path := range files(t, "_test.go") {
		for _, found := range testFunc.FindAllStringSubmatch(read(t, path), -1) {
			exist[found[1]] = true
		}
	}
	return exist
}
