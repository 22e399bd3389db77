package docs

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

var (
	testName = regexp.MustCompile("\\b(Test[A-Z]\\w+)( `\\*`)?")
	testFunc = regexp.MustCompile(`(?ms)((?:^//[^\n]*\n)*)^func (Test[A-Z]\w+)\(.*?^}`)
)

// ofBothKinds are tests whose jobs of both kinds are made by other functions.
var ofBothKinds = []string{"TestFailures", "TestHangs", "TestMutants"}

// cellNote is what a cell promises in place of its row, before the names of its tests.
var cellNote = regexp.MustCompile(`^[a-z ]+: `)

// notTested is the text of a cell of the tables of promises that names no test, and mostNotTested is how many there may be. mostNotRecorded
// is how often a cell may name a test that can run as the cell says, and is not recorded to have passed so. mostWithoutRecord is how many tests of
// the one-machine cluster may be named that have no record of the run that they are written for. Lower both with each record.
const (
	notTested         = "not tested"
	mostNotTested     = 0
	mostNotRecorded   = 0
	mostWithoutRecord = 30
)

const (
	promisesPage = root + "/docs/promises.md"
	// recordedTests is when each test has last passed, by its name and by how it was run: what TestPromises -update read of the files below.
	recordedTests = root + "/docs/promises.json"
	// passedTests is where make e2e writes which tests passed: a file for each run, with the way, the commit and the time in its name.
	passedTests = root + "/.bench/tests/*@*@*.json"
	// seenByTests is the title of the table of what tests see.
	seenByTests = "\n## What each test sees\n"
)

// ways are how tests are run on the one-machine cluster, as make e2e names them, and what that is in the table.
var ways = []struct{ name, text string }{{"plain", ""}, {"native", "with PodGroups "}, {"queued", "in a queue "}, {"topology", "with TAS "}}

// promisedTest is a test function with its name, the path of its file and its comment.
type promisedTest struct{ name, path, comment, body string }

// passed is when a test has passed, and the commit of the operator. Rounds is how often it did the same, if it prints that.
type passed struct {
	Time    time.Time `json:"time"`
	Version string    `json:"version"`
	Rounds  int       `json:"rounds,omitempty"`
}

// roundLine is what a test prints after each of its rounds.
var roundLine = regexp.MustCompile(`_test\.go:\d+: round \d+: `)

// TestPromises: the cells of the tables of promises name tests, and these tests run where and for what the cell says. The page has what each
// sees, from its comment, and when it has passed; -update writes this.
func TestPromises(t *testing.T) {
	exist, anywhere, tried := testSources(t), testsAnywhere(t), testsTriedInQueue(t)
	page := read(t, promisesPage)
	promises, seen, found := strings.Cut(page, seenByTests)
	if !found {
		t.Fatalf("%s has no title %q", promisesPage, strings.TrimSpace(seenByTests))
	}
	var columns []string
	tables, named, rows, untested := map[string]bool{}, map[string]bool{}, 0, 0
	var unrecorded []string
	withoutRecord := map[string]bool{}
	for _, match := range testName.FindAllStringSubmatch(promises, -1) {
		named[match[1]] = true
	}
	record := recordedPasses(t, named)
	for line := range strings.Lines(promises) {
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
				way := wayOf(column)
				_, isRecorded := record[found[1]][way]
				isRecorded = isRecorded || way == "queued" && slices.Contains(tried, found[1])
				wrong, needsRecord := exist[found[1]].faults(column, found[2] != "", slices.Contains(anywhere, found[1]))
				for _, fault := range wrong {
					t.Errorf("%s, %s: %s %s", cells[0], column, found[1], fault)
				}
				if exist[found[1]].isE2E() && !needsRecord && !isRecorded {
					// A test that makes its own queue runs as all others do.
					if _, isPlain := record[found[1]]["plain"]; !isPlain {
						withoutRecord[found[1]] = true
					}
				}
				if needsRecord && !isRecorded {
					unrecorded = append(unrecorded, fmt.Sprintf("%s, %s: %s", cells[0], column, found[1]))
				}
			}
		}
	}
	for _, column := range []string{"MPIJob", "TrainJob", "MPIJob in a Kueue queue", "TrainJob in a Kueue queue", "MPIJob with PodGroups", "TrainJob with PodGroups", "either, with Kueue's TAS"} {
		if !tables[column] {
			t.Errorf("there is no column %q", column)
		}
	}
	if rows < 20 || untested > mostNotTested {
		t.Errorf("the tables have %d rows, and %d cells without a test", rows, untested)
	}
	if len(unrecorded) > mostNotRecorded {
		t.Errorf("%d cells name tests that are not recorded to have passed so; run make e2e-promises, and this test with -update:\n%s", len(unrecorded), strings.Join(unrecorded, "\n"))
	}
	if names := slices.Sorted(maps.Keys(withoutRecord)); len(names) > mostWithoutRecord {
		t.Errorf("%d tests are not recorded to have passed, and %d may: run make e2e SUITE=NAME, and this test with -update:\n%s", len(names), mostWithoutRecord, strings.Join(names, "\n"))
	}

	intro, _, _ := strings.Cut(strings.TrimLeft(seen, "\n"), "\n\n")
	var table strings.Builder
	table.WriteString(strings.TrimSpace(intro) + "\n\n| test | what it sees | last passed |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(named)) {
		test := exist[name]
		sees, err := test.sees(name)
		if err != nil {
			t.Errorf("%s: %v", test.path, err)
			continue
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", name, strings.ReplaceAll(sees, "|", "\\|"), test.lastPassed(record[name]))
	}
	if want := promises + seenByTests + "\n" + table.String(); page != want {
		if !*update {
			t.Fatalf("%s is out of date: go test ./test/docs -run TestPromises -update", promisesPage)
		}
		if err := os.WriteFile(promisesPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sees returns what a test sees: the first paragraph of its comment, which starts with the test's name and a colon.
func (p promisedTest) sees(name string) (string, error) {
	var lines []string
	for line := range strings.Lines(p.comment) {
		text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "//"))
		if text == "" {
			break
		}
		lines = append(lines, text)
	}
	text, found := strings.CutPrefix(strings.Join(lines, " "), name+": ")
	if !found || !strings.HasSuffix(text, ".") {
		return "", fmt.Errorf("the comment of %s must start with %q and what the test sees, and end with a period: it is in docs/promises.md", name, name+": ")
	}
	if strings.HasPrefix(text, "the same") || strings.Contains(text, "does the same") {
		return "", fmt.Errorf("the comment of %s must say what the test sees without that of another test: it is in docs/promises.md", name)
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:], nil
}

// isE2E reports whether the test runs on the one-machine cluster.
func (p promisedTest) isE2E() bool { return strings.HasPrefix(p.path, root+"/test/e2e/") }

// lastPassed returns when a test has last passed in each way, for its cell.
func (p promisedTest) lastPassed(record map[string]passed) string {
	if !p.isE2E() {
		return "in each `make unit`"
	}
	var all []string
	for _, way := range ways {
		if when, has := record[way.name]; has {
			rounds := ""
			if when.Rounds > 0 {
				rounds = fmt.Sprintf(", %d rounds", when.Rounds)
			}
			all = append(all, fmt.Sprintf("%s%s (%s%s)", way.text, when.Time.Format(time.DateOnly), when.Version, rounds))
		}
	}
	return cmp.Or(strings.Join(all, ", "), "not recorded")
}

// recordedPasses returns when tests have passed, by their names and by how they were run. With -update it first adds the latest runs of make
// e2e on this machine to the record, those of commits, and removes tests that have failed since, or that are not named.
func recordedPasses(t *testing.T, named map[string]bool) map[string]map[string]passed {
	t.Helper()
	record := map[string]map[string]passed{}
	before, err := os.ReadFile(recordedTests)
	if err == nil {
		err = json.Unmarshal(before, &record)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("read %s: %v", recordedTests, err)
	}
	if !*update {
		return record
	}
	paths, err := filepath.Glob(passedTests)
	if err != nil {
		t.Fatal(err)
	}
	var runs []testRun
	for _, path := range paths {
		parts := strings.Split(filepath.Base(path), "@")
		if strings.HasSuffix(parts[1], "-dirty") {
			// Nobody can repeat it.
			continue
		}
		run := testRun{way: parts[0], version: parts[1]}
		run.passes, run.failures = resultsIn(t, path)
		runs = append(runs, run)
	}
	recordRuns(record, runs)
	maps.DeleteFunc(record, func(name string, ways map[string]passed) bool { return !named[name] || len(ways) == 0 })
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recordedTests, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	return record
}

// testRun is a run of tests in one way: those that passed at their first try, and when others failed.
type testRun struct {
	way, version string
	passes       map[string]passed
	failures     map[string]time.Time
}

// recordRuns removes what tests have passed before a failure in the same way from a record, and adds the latest passes since. One of fewer
// rounds proves less, and replaces none.
func recordRuns(record map[string]map[string]passed, runs []testRun) {
	type inWay struct{ name, way string }
	failed := map[inWay]time.Time{}
	for _, run := range runs {
		for name, when := range run.failures {
			if key := (inWay{name, run.way}); when.After(failed[key]) {
				failed[key] = when
			}
		}
	}
	for key, when := range failed {
		if !record[key.name][key.way].Time.After(when) {
			delete(record[key.name], key.way)
		}
	}
	for _, run := range runs {
		for name, now := range run.passes {
			last := record[name][run.way]
			if !now.Time.After(failed[inWay{name, run.way}]) || !now.Time.After(last.Time) || now.Rounds < last.Rounds {
				continue
			}
			if record[name] == nil {
				record[name] = map[string]passed{}
			}
			now.Version = run.version
			record[name][run.way] = now
		}
	}
}

// TestFailuresEndRecords: a record of a pass ends with a later failure in the same way, in whatever order the runs are read, and a later pass
// makes a new one.
func TestFailuresEndRecords(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	failed := func(name string, n int) map[string]time.Time { return map[string]time.Time{name: day(n)} }
	pass := func(name string, n, rounds int) map[string]passed {
		return map[string]passed{name: {Time: day(n), Rounds: rounds}}
	}
	of := func(n int, version string, rounds int) passed {
		return passed{Time: day(n), Version: version, Rounds: rounds}
	}
	runs := []testRun{
		{way: "plain", version: "c", failures: failed("TestA", 3)},
		{way: "plain", version: "a", passes: pass("TestA", 1, 0)},
		{way: "queued", version: "a", passes: pass("TestA", 1, 0)},
		{way: "plain", version: "b", passes: pass("TestB", 4, 3)},
		{way: "plain", version: "a", failures: failed("TestB", 2)},
		{way: "plain", version: "b", failures: failed("TestC", 2)},
		{way: "plain", version: "b", passes: pass("TestD", 2, 3)},
	}
	record := map[string]map[string]passed{
		"TestA": {"plain": of(2, "b", 0), "topology": of(1, "a", 0)}, "TestB": {"plain": of(1, "a", 20)}, "TestD": {"plain": of(1, "a", 20)},
	}
	want := map[string]map[string]passed{
		"TestA": {"queued": of(1, "a", 0), "topology": of(1, "a", 0)}, "TestB": {"plain": of(4, "b", 3)}, "TestD": {"plain": of(1, "a", 20)},
	}
	for range 2 {
		recordRuns(record, runs)
		if !reflect.DeepEqual(record, want) {
			t.Errorf("the record is %v, want %v", record, want)
		}
	}
}

// resultsIn returns the tests that have passed in a run of gotestsum, each at its first try, and those that have failed.
func resultsIn(t *testing.T, path string) (passes map[string]passed, failures map[string]time.Time) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	passes, failures = map[string]passed{}, map[string]time.Time{}
	rounds := map[string]int{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var event struct {
			Time                 time.Time
			Action, Test, Output string
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("read %s: %v", path, err)
		}
		switch when := event.Time.UTC().Truncate(time.Second); event.Action {
		case "pass":
			passes[event.Test] = passed{Time: when, Rounds: rounds[event.Test]}
		case "fail":
			failures[event.Test] = when
		case "output":
			if roundLine.MatchString(event.Output) {
				rounds[event.Test]++
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	maps.DeleteFunc(passes, func(name string, _ passed) bool { return !failures[name].IsZero() })
	return passes, failures
}

// testsAnywhere are the tests that make e2e-promises runs, whose jobs can be placed in any way.
func testsAnywhere(t *testing.T) []string {
	t.Helper()
	return listedTests(t, root+"/Makefile", `(?m)^EVERYWHERE := ([\w|]+)$`)
}

// testsTriedInQueue are those of them that make test also runs with jobs that Kueue admits: all but the long ones.
func testsTriedInQueue(t *testing.T) []string {
	t.Helper()
	const script, command = root + "/hack/test.sh", "make e2e-promises QUEUED=1 BRIEF=1\n"
	if !strings.Contains(read(t, script), command) {
		t.Errorf("%s does not run %q", script, command)
	}
	long, anywhere := listedTests(t, root+"/Makefile", `(?m)^LONG := ([\w|]+)$`), testsAnywhere(t)
	for _, name := range long {
		if !slices.Contains(anywhere, name) {
			t.Errorf("the Makefile leaves %s out with BRIEF=1, which make e2e-promises does not run", name)
		}
	}
	return slices.DeleteFunc(anywhere, func(name string) bool { return slices.Contains(long, name) })
}

// listedTests returns the names of tests in a file, where a pattern finds them separated by | and without Test. All of them exist.
func listedTests(t *testing.T, path, pattern string) []string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, path))
	if found == nil {
		t.Fatalf("%s does not have a list %s", path, pattern)
	}
	exist := testSources(t)
	var names []string
	for name := range strings.SplitSeq(found[1], "|") {
		names = append(names, "Test"+name)
		if !exist["Test"+name].isE2E() {
			t.Errorf("%s names Test%s, which is no test of test/e2e", path, name)
		}
	}
	return names
}

// wayOf returns how the tests of a column are run, as make e2e names it; "" without a queue.
func wayOf(column string) string {
	for suffix, way := range map[string]string{"queue": "queued", "PodGroups": "native", "TAS": "topology"} {
		if strings.HasSuffix(column, suffix) {
			return way
		}
	}
	return ""
}

// faults returns why a test does not prove a promise of a column; isMarked is whether the cell says that it runs on an API server alone, and
// isAnywhere whether its jobs can be placed in any way. needsRecord is whether only a record of a run in that way shows that it passes so.
func (p promisedTest) faults(column string, isMarked, isAnywhere bool) (wrong []string, needsRecord bool) {
	if p.body == "" {
		return []string{"does not exist"}, false
	}
	isE2E, way := p.isE2E(), wayOf(column)
	own := map[string]bool{
		"":         true,
		"queued":   strings.Contains(p.body, "queueIn(") || strings.Contains(p.body, "LabelQueue"),
		"native":   strings.Contains(p.body, "nativeGangs(t)"),
		"topology": strings.Contains(p.body, "newTopologyQueue("),
	}[way]
	needsRecord = !own && isAnywhere
	for text, is := range map[string]bool{
		"runs on an API server, and is not marked":       !isE2E && !isMarked,
		"runs on the one-machine cluster, and is marked": isE2E && isMarked,
		"only runs on request":                           strings.Contains(p.body, "whenAsked(") && !needsRecord,
		"needs Kubernetes' PodGroups":                    strings.Contains(p.body, "nativeGangs(t)") && way != "native",
		"does not need Kubernetes' PodGroups":            way == "native" && !own && !needsRecord,
		"has no queue":                                   way == "queued" && !own && !needsRecord,
		"needs Kueue":                                    way != "queued" && strings.Contains(p.body, "queueIn("),
		"does not use TAS":                               way == "topology" && !own && !needsRecord,
		"has no TrainJob":                                strings.HasPrefix(column, "TrainJob") && !strings.Contains(strings.ToLower(p.body), "trainjob") && !slices.Contains(ofBothKinds, p.name),
	} {
		if is {
			wrong = append(wrong, text)
		}
	}
	slices.Sort(wrong)
	return wrong, needsRecord
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
			if old := exist[found[2]]; old.path == "" || strings.HasPrefix(path, root+"/test/e2e/") {
				exist[found[2]] = promisedTest{found[2], path, found[1], strings.TrimPrefix(found[0], found[1])}
			}
		}
	}
	return exist
}

// TestPassesWithRounds: a record of a run has how many rounds each test had, and no test that failed once.
func TestPassesWithRounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	const run = `{"Time":"2026-11-30T01:00:00Z","Action":"output","Test":"TestA","Output":"    a_test.go:7: round 0: both have succeeded after 3s\n"}
{"Time":"2026-11-30T01:00:01Z","Action":"output","Test":"TestA","Output":"    a_test.go:7: round 1: both have succeeded after 3s\n"}
{"Time":"2026-11-30T01:00:01Z","Action":"output","Test":"TestA","Output":"    a_test.go:9: no round 2: it ends\n"}
{"Time":"2026-11-30T01:00:02Z","Action":"pass","Test":"TestA"}
{"Time":"2026-11-30T01:00:03Z","Action":"pass","Test":"TestB"}
{"Time":"2026-11-30T01:00:04Z","Action":"fail","Test":"TestC"}
{"Time":"2026-11-30T01:00:05Z","Action":"pass","Test":"TestC"}
`
	if err := os.WriteFile(path, []byte(run), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(second int) time.Time { return time.Date(2026, 11, 30, 1, 0, second, 0, time.UTC) }
	want := map[string]passed{"TestA": {Time: at(2), Rounds: 2}, "TestB": {Time: at(3)}}
	if got, _ := resultsIn(t, path); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	told := promisedTest{path: root + "/test/e2e/a_test.go"}.lastPassed(map[string]passed{"plain": {Time: at(2), Version: "abc", Rounds: 2}, "queued": {Time: at(3), Version: "abc"}})
	if want := "2026-11-30 (abc, 2 rounds), in a queue 2026-11-30 (abc)"; told != want {
		t.Errorf("the text is %q, want %q", told, want)
	}
}
