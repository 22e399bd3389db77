package mpitest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// RunInShell runs commands by sh, one after the other, with a recorder in place of each program. It returns for each command the
// words that the programs were called with, by their names. A program that a command does not name is called only if the command
// executes parts of its words. Names in angle brackets are for readers, who replace them.
func RunInShell(t *testing.T, commands ...string) []map[string][]string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("SKIPPED: there is no sh")
	}
	folder := t.TempDir()
	var script strings.Builder
	for _, program := range []string{"kubectl", "mpirun", "horovodrun", "ldd", "pip", "sed", "grep", "sort", "uniq", "touch"} {
		fmt.Fprintf(&script, "%s() { printf '%%s\\0' \"$@\" >>\"$RECORD.%s\"; }\n", program, program)
	}
	for i, command := range commands {
		fmt.Fprintf(&script, "RECORD=%d\n%s\n", i, reader.ReplaceAllString(command, "$1"))
	}
	run := exec.CommandContext(t.Context(), sh, "-e", "-c", script.String()) //nolint:gosec // there are no programs but the recorders
	run.Dir, run.Env = folder, []string{"PATH=" + folder}
	if output, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
	called := make([]map[string][]string, len(commands))
	for i := range called {
		called[i] = map[string][]string{}
	}
	records, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records {
		content, err := os.ReadFile(filepath.Join(folder, record.Name())) //nolint:gosec // it is in the test's folder
		if err != nil {
			t.Fatal(err)
		}
		number, program, _ := strings.Cut(record.Name(), ".")
		i, err := strconv.Atoi(number)
		if err != nil {
			t.Errorf("the commands have written %s", record.Name())
			continue
		}
		called[i][program] = strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")
	}
	return called
}

var reader = regexp.MustCompile(`<([a-z]+)>`)

// Hostile are texts with what a shell executes, expands or takes as the end of a word.
var Hostile = []string{
	"$(touch x)", "`touch x`", "a;touch x", "a&&touch x", "a|touch x", "a & touch x", "a>x", "<x", "it's", `it"s`, "';touch x;'", `'"'"'$(touch x)`, "!!", "a#b", "#a", "~", "~root", "=ls",
	"a b", "*", "?", "[a]", "{a,b}", `\`, `a\ b`, "$HOME", "${PATH}", "a^b", "a\nb", "a\ntouch x", "\ttouch x", "spec.trainer.spec;touch x;'", "ü", "-rf", "--exec",
}
