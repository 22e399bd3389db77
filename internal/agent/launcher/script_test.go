package launcher

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agentapi"
)

// TestExplainLineEnds: a command that failed is explained by a shell script with Windows line ends, of the launcher or of the ranks, if
// nothing else explains it.
func TestExplainLineEnds(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	windows, unix := write("windows.sh", "#!/bin/bash\r\nmpirun ranks\r\n"), write("unix.sh", "#!/bin/bash\nmpirun ranks\n")
	plain, python := write("plain", "set -e\r\nmpirun ranks\r\n"), write("train.py", "#!/usr/bin/env python3\r\nprint(1)\r\n")
	env := write("env.sh", "#!/usr/bin/env bash\r\ntrue\r\n")
	failed := func(code int32) agentapi.Summary {
		return agentapi.Summary{Code: agentapi.RankFailed, Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: code}}}
	}
	for name, test := range map[string]struct {
		summary agentapi.Summary
		command []string
		args    []string
		want    string
	}{
		"the launcher's script":           {command: []string{"bash", "-e", windows}, want: "launcher's command \"" + windows},
		"a script without a first line":   {command: []string{"/bin/sh", plain}, want: "launcher's command \"" + plain},
		"env as its interpreter":          {command: []string{env}, want: env},
		"Unix line ends":                  {command: []string{"bash", unix}},
		"a script of the ranks":           {command: []string{"mpirun"}, args: []string{"-n", "2", windows}, want: "ranks' program \"" + windows},
		"by a shell of the ranks":         {summary: failed(127), args: []string{"-n", "2", "sh", plain}, want: plain},
		"Python reads both":               {command: []string{"python3", python}, args: []string{python}},
		"no shell runs it":                {command: []string{"cat", plain}},
		"a rank failed, with exit code 3": {summary: failed(3), args: []string{windows}},
		"another cause":                   {summary: agentapi.Summary{Code: agentapi.OutOfMemory}, command: []string{windows}},
		"a file that does not exist":      {command: []string{"sh", filepath.Join(folder, "missing.sh")}},
		"a folder in place of a script":   {command: []string{"sh", folder}},
		"the shell's own command":         {command: []string{"sh", "-c", "mpirun ranks"}},
		"a word that looks like a shell":  {command: []string{"trash", plain}},
	} {
		summary := test.summary
		explainLineEnds(&summary, test.command, []outcome.Launch{{Launcher: outcome.Launcher{Args: test.args}}})
		got := ""
		if summary.Code == agentapi.WindowsLineEnds {
			got = summary.Message
		}
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
