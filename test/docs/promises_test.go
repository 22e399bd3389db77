package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile("\\b(Test[A-Z]\\w+)( `\\*`)?")
	testFunc = regexp.MustCompile(`(?ms)^func (Test[A-Z]\w+)\(.*?^}`)
)

// ofBothKinds are tests whose jobs of both kinds are made by other functions.
var ofBothKinds = []string{"TestFailures", "TestHangs", "TestMutants"}

// cellNote is what a cell promises in place of its row, before the names of its tests.
var cellNote = regexp.MustCompile(`^[a-z ]+: `)

// notTested is the text of a cell of the tables of promises that names no test.
const notTested = "not tested"

// promisedTest is a test function with the path of its file.
type promisedTest struct{ path, body string }

// TestPromises: the cells of the tables of promises name tests, and these tests run where and for what the cell says.
func TestPromises(t *testing.T) {
	exist := testSources(t)
	var columns []string
	tables, rows, untested := map[string]bool{}, 0, 0
	for line := range strings.Lines(read(t, root+"/docs/promises.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|-"):
			continue
		case cells[0] == "":
			columns = cells
			continue
		case len(cells) != len(columns):
			t.Errorf("the row has %d cells, and its table %d: %s", len(cells), len(columns), line)
			continue
		}
		rows++
		for i, cell := range cells[1:] {
			column := columns[i+1]
			tables[column] = true
			if cell == notTested {
				untested++
				continue
			}
			if left := strings.Trim(testName.ReplaceAllString(cellNote.ReplaceAllString(cell, ""), ""), ", "); left != "" || cell == "" {
				t.Errorf("%s, %s: %q is neither names of tests nor %q", cells[0], column, cell, notTested)
			}
			for _, found := range testName.FindAllStringSubmatch(cell, -1) {
				for _, wrong := range exist[found[1]].faults(found[1], column, found[2] != "") {
					t.Errorf("%s, %s: %s %s", cells[0], column, found[1], wrong)
				}
			}
		}
	}
	for _, column := range []string{"MPIJob", "TrainJob", "MPIJob in a Kueue queue", "TrainJob in a Kueue queue", "MPIJob with PodGroups", "TrainJob with PodGroups", "either, with Kueue's TAS"} {
		if !tables[column] {
			t.Errorf("there is no column %q", column)
		}
	}
	if rows < 20 || untested > 0 {
		t.Errorf("the tables have %d rows, and %d cells without a test", rows, untested)
	}
}

// faults returns why a test does not prove a promise of a column; isMarked is whether the cell says that it runs on an API server alone.
func (p promisedTest) faults(name, column string, isMarked bool) (wrong []string) {
	if p.body == "" {
		return []string{"does not exist"}
	}
	isE2E := strings.HasPrefix(p.path, root+"/test/e2e/")
	isNative := strings.Contains(p.body, "nativeGangs(t)")
	for text, is := range map[string]bool{
		"runs on an API server, and is not marked":       !isE2E && !isMarked,
		"runs on the one-machine cluster, and is marked": isE2E && isMarked,
		"only runs on request":                           strings.Contains(p.body, "whenAsked("),
		"needs Kubernetes' PodGroups":                    isNative && !strings.HasSuffix(column, "PodGroups"),
		"does not need Kubernetes' PodGroups":            !isNative && strings.HasSuffix(column, "PodGroups"),
		"has no queue":                                   strings.HasSuffix(column, "queue") && !strings.Contains(p.body, "queueIn(") && !strings.Contains(p.body, "LabelQueue"),
		"needs Kueue":                                    !strings.HasSuffix(column, "queue") && strings.Contains(p.body, "queueIn("),
		"has no TrainJob":                                strings.HasPrefix(column, "TrainJob") && !strings.Contains(strings.ToLower(p.body), "trainjob") && !slices.Contains(ofBothKinds, name),
	} {
		if is {
			wrong = append(wrong, text)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// tests returns the names of all tests of the repository.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	exist := map[string]bool{}
	for name := range testSources(t) {
		exist[name] = true
	}
	return exist
}

// testSources returns all tests of the repository by their names. Of two with the same name, it has that of test/e2e.
func testSources(t *testing.T) map[string]promisedTest {
	t.Helper()
	exist := map[string]promisedTest{}
	for _, path := range files(t, "_test.go") {
		for _, found := range testFunc.FindAllStringSubmatch(read(t, path), -1) {
			if old := exist[found[1]]; old.path == "" || strings.HasPrefix(path, root+"/test/e2e/") {
				exist[found[1]] = promisedTest{path, found[0]}
			}
		}
	}
	return exist
}
