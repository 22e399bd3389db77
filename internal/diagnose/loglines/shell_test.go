package loglines

import "testing"

// TestScriptPlace: shells name the script and the line, but of a script in the command.
func TestScriptPlace(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"/scripts/run.sh: 3: cannot open x: No such file":     "run.sh, line 3",
		"[1,2]<stderr>:/app/run: line 6: syntax error: x":     "run, line 6",
		"run: line 6: syntax error: unexpected end of file":   "run, line 6",
		"[3] ./run.sh: 2: wget: not found":                    "run.sh, line 2",
		"sh: 1: cd: can't cd to /data":                        "",
		"/bin/bash: -c: line 2: syntax error near token `fi'": "",
		"cat: /data/x: No such file or directory":             "",
		"loss: 3: better": "",
	} {
		if got := ScriptPlace(line); got != want {
			t.Errorf("%q is at %q, want %q", line, got, want)
		}
	}
}
