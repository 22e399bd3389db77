package main

import (
	"strings"
	"testing"
	"time"
)

// result is what govulncheck writes of two vulnerabilities in imported packages and one in a module that is only required.
const result = `
{"config":{"protocol_version":"v1.0.0"}}
{"SBOM":{"go_version":"go1.26.8","modules":[{"path":"stdlib","version":"v1.26.8"}]}}
{"osv":{"id":"GO-2026-2","summary":"Memory exhaustion in net/http"}}
{"osv":{"id":"GO-2026-1","summary":"Panic in x/net"}}
{"osv":{"id":"GO-2026-3","summary":"Never imported"}}
{"finding":{"osv":"GO-2026-2","fixed_version":"v1.26.9","trace":[{"module":"stdlib","version":"v1.26.8"}]}}
{"finding":{"osv":"GO-2026-2","fixed_version":"v1.26.9","trace":[{"module":"stdlib","version":"v1.26.8","package":"net/http"}]}}
{"finding":{"osv":"GO-2026-2","fixed_version":"v1.26.9","trace":[{"module":"stdlib","version":"v1.26.8","package":"net/http"}]}}
{"finding":{"osv":"GO-2026-1","trace":[{"module":"golang.org/x/net","version":"v0.58.0","package":"golang.org/x/net/http2"}]}}
{"finding":{"osv":"GO-2026-3","fixed_version":"v1.2.0","trace":[{"module":"example.com/x","version":"v1.0.0"}]}}
`

// TestJudge: what a program contains needs an exception that has not expired, and exceptions must be needed.
func TestJudge(t *testing.T) {
	now := time.Date(2026, time.November, 28, 22, 0, 0, 0, time.UTC)
	first := "GO-2026-1: Panic in x/net (golang.org/x/net@v0.58.0, not fixed)"
	second := "Memory exhaustion in net/http (net/http of Go v1.26.8, fixed in v1.26.9)"
	for name, test := range map[string]struct {
		result, exceptions string
		problems           []string
		// partly is set if a scanner did not answer.
		partly bool
	}{
		"no exceptions":               {result: result, exceptions: "# none\n", problems: []string{first, "GO-2026-2: " + second}},
		"one exception":               {result: result, exceptions: "GO-2026-2 2026-11-28 nobody calls it\n", problems: []string{first}},
		"expired":                     {result: result, exceptions: "GO-2026-2 2026-11-26 nobody calls it\nGO-2026-1 2027-01-01 as well", problems: []string{"GO-2026-2: the exception ended at 2026-11-26: " + second}},
		"not needed":                  {result: `{"SBOM":{}}`, exceptions: "GO-2026-9 2027-01-01 gone", problems: []string{"GO-2026-9: nothing that is released contains it; remove the exception"}},
		"not checked":                 {result: `{"SBOM":{}}`, exceptions: "GHSA-9 2027-01-01 gone", partly: true},
		"only required, not imported": {result: `{"SBOM":{}}{"finding":{"osv":"GO-2026-3","trace":[{"module":"example.com/x","version":"v1.0.0"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			found, scanned, err := read(strings.NewReader(test.result))
			if err != nil || !scanned {
				t.Fatalf("read: scanned %v, %v", scanned, err)
			}
			excepted, err := parseExceptions(test.exceptions)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Join(judge(found, excepted, !test.partly, now), "\n"), strings.Join(test.problems, "\n"); got != want {
				t.Errorf("the problems are\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestLiveDatabasesOnlyWarn: what npm and PyPI have today fails a release, and not every test.
func TestLiveDatabasesOnlyWarn(t *testing.T) {
	pinned := []vulnerability{{ID: "GO-2026-1", Summary: "a", In: []string{"x"}}}
	live := []vulnerability{{ID: "GHSA-1", Summary: "b", In: []string{"y"}}}
	excepted := []exception{{id: "PYSEC-1", until: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}}
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	ofGo, others := "GO-2026-1: a (x)", "GHSA-1: b (y)|PYSEC-1: nothing that is released contains it; remove the exception"
	for strict, want := range map[bool][2]string{true: {ofGo + "|" + others, ""}, false: {ofGo, others}} {
		problems, warnings := judgeAll(pinned, live, excepted, true, strict, now)
		if got := [2]string{strings.Join(problems, "|"), strings.Join(warnings, "|")}; got != want {
			t.Errorf("strict %v: problems and warnings are %q, want %q", strict, got, want)
		}
	}
}

// TestNothingIsNoResult: a scan that failed is not taken for one without findings, nor are exceptions without a date or a reason.
func TestNothingIsNoResult(t *testing.T) {
	if _, scanned, err := read(strings.NewReader(`{"config":{}}`)); err != nil || scanned {
		t.Errorf("a result without programs: scanned %v, %v", scanned, err)
	}
	if _, _, err := read(strings.NewReader("govulncheck: no such file")); err == nil {
		t.Error("a text that is not JSON has no error")
	}
	for _, line := range []string{"GO-2026-1", "GO-2026-1 2026-11-28", "GO-2026-1 soon nobody calls it", "GO-2026-1 2026-11-28  "} {
		if _, err := parseExceptions(line); err == nil || !strings.Contains(err.Error(), "exceptions.txt:1: ") {
			t.Errorf("%q: %v", line, err)
		}
	}
}
