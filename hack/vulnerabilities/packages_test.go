package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

const npmResult = `{"auditReportVersion": 2, "vulnerabilities": {
"minimist": {"name": "minimist", "severity": "critical", "via": [
  {"source": 1, "name": "minimist", "title": "Prototype Pollution", "url": "https://github.com/advisories/GHSA-1", "range": "<0.2.1"}], "range": "<=0.2.3"},
"mkdirp": {"name": "mkdirp", "via": ["minimist"], "range": "0.4.1 - 0.5.1"}}, "metadata": {}}`

const pipResult = `{"dependencies": [
{"name": "jinja2", "version": "3.1.5", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1.6"], "aliases": ["CVE-1"], "description": "Sandbox escape.\nMore."}]},
{"name": "yaml", "version": "6", "vulns": []}], "fixes": []}`

// TestPackages: results of npm audit and pip-audit, also of those that looked nothing up, which both report without findings.
func TestPackages(t *testing.T) {
	for name, test := range map[string]struct {
		read             func(io.Reader) ([]vulnerability, string, error)
		result           string
		found, unchecked string
	}{
		"npm":                    {readNpm, npmResult, "[{GHSA-1 Prototype Pollution [npm minimist <0.2.1]}]", ""},
		"npm, nothing":           {readNpm, `{"auditReportVersion": 2, "vulnerabilities": {}}`, "[]", ""},
		"npm without a registry": {readNpm, `{"message": "405 Method Not Allowed\nPOST", "method": "POST"}`, "[]", "the registry does not answer: 405 Method Not Allowed"},
		"npm without a result":   {readNpm, "", "[]", "it wrote no result: the registry may not answer"},
		"pip":                    {readPip, pipResult, "[{PYSEC-1 Sandbox escape. [Python jinja2 3.1.5, fixed in 3.1.6]}]", ""},
		"pip, packages unknown": {
			readPip, `{"dependencies": [{"name": "aiohttp", "skip_reason": "Dependency not found on PyPI"}, {"name": "yaml", "version": "6", "vulns": []}]}`, "[]",
			"1 of 2 packages, such as: Dependency not found on PyPI",
		},
		"pip without an index": {readPip, "", "[]", "it wrote no result: the index may not answer"},
		"pip without packages": {readPip, `{"dependencies": []}`, "[]", "it names no packages"},
	} {
		t.Run(name, func(t *testing.T) {
			found, unchecked, err := test.read(strings.NewReader(test.result))
			if err != nil || fmt.Sprint(found) != test.found || unchecked != test.unchecked {
				t.Errorf("got %v, %q, %v; want %s, %q", found, unchecked, err, test.found, test.unchecked)
			}
		})
	}
	for _, read := range []func(io.Reader) ([]vulnerability, string, error){readNpm, readPip} {
		if _, _, err := read(strings.NewReader("command not found")); err == nil {
			t.Error("a text that is not JSON has no error")
		}
	}
	if _, _, err := readGovulncheck(strings.NewReader(`{"config":{}}`)); err == nil {
		t.Error("a result of govulncheck without programs has no error")
	}
}
