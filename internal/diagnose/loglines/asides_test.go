package loglines

import (
	"fmt"
	"strings"
	"testing"
)

// TestAsides: only exceptions that ended a part of the program, in its own files, count, with the name of that.
func TestAsides(t *testing.T) {
	t.Parallel()
	const title = "Traceback (most recent call last):\n"
	own := title + "  File \"/usr/lib/python3.11/threading.py\", line 975, in run\n    self._target()\n  File \"/code/a.py\", line 14, in writer\n    save(x)\n"
	library := title + "  File \"/usr/lib/python3.11/threading.py\", line 975, in run\n    self._target()\n"
	for name, test := range map[string]struct {
		log  string
		want []string
	}{
		"a thread":                      {"step 1\nException in thread Thread-1 (writer):\n" + own + "OSError: full\nstep 2", []string{"0 Thread-1 (writer): OSError: full, times 1"}},
		"without a text":                {"Exception in thread w:\n" + own + "AssertionError\nstep 2", []string{"0 w: AssertionError, times 1"}},
		"of another name":               {"Exception in thread w:\n" + own + "_queue.Empty\nstep 2", []string{"0 w: _queue.Empty, times 1"}},
		"a chain":                       {"Exception in thread w:\n" + own + "OSError: full\n\nDuring handling of the above exception, another exception occurred:\n\n" + own + "RuntimeError: gave up\n", []string{"0 w: RuntimeError: gave up, times 1"}},
		"by its function":               {"Exception ignored in thread started by: <function writer at 0x7f00>\n" + own + "OSError: full", []string{"0 writer: OSError: full, times 1"}},
		"twice":                         {strings.Repeat("Exception in thread w:\n"+own+"OSError: full\n", 2), []string{"0 w: OSError: full, times 2"}},
		"two":                           {"Exception in thread a:\n" + own + "OSError: full\nException in thread b:\n" + own + "ValueError: no", []string{"0 a: OSError: full, times 1", "0 b: ValueError: no, times 1"}},
		"a line between":                {"Exception in thread w:\n" + strings.Replace(own, "    save(x)\n", "    save(x)\nloss: 0.5\n", 1) + "OSError: full", []string{"0 w: OSError: full, times 1"}},
		"a task":                        {"ERROR:asyncio:Task exception was never retrieved\nfuture: <Task finished name='Task-2' coro=<upload() done, defined at /code/a.py:6> exception=OSError('full')>\n" + own + "OSError: full", []string{"1 upload: OSError: full, times 1"}},
		"a callback":                    {"Exception in callback report(3)\nhandle: <Handle report(3)>\n" + own + "OSError: full", []string{"1 report: OSError: full, times 1"}},
		"a process":                     {"Process ForkProcess-1:\n" + own + "OSError: full", []string{"2 ForkProcess-1: OSError: full, times 1"}},
		"of a library":                  {"Exception in thread w:\n" + library + "OSError: full", nil},
		"at the end of Python":          {"Exception in thread w (most likely raised during interpreter shutdown):\n" + own + "OSError: full", nil},
		"a traceback that is handled":   {own + "OSError: full\nretrying", nil},
		"what Python ignores":           {"Exception ignored in: <function A.__del__ at 0x7f>\n" + own + "OSError: full", nil},
		"a heading":                     {"Process 3:\n  step 1\nOSError: full", nil},
		"a traceback that the log cuts": {"Exception in thread w:\n" + own, nil},
	} {
		var got []string
		for _, aside := range Asides(strings.Split(test.log, "\n")) {
			got = append(got, fmt.Sprintf("%d %s: %s, times %d", aside.Part, aside.Name, aside.Message, aside.Times))
		}
		if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestIgnoredExceptions: what Python ignores is the error only if there is no other one.
func TestIgnoredExceptions(t *testing.T) {
	t.Parallel()
	const ignored = "Exception ignored in: <function Pool.__del__ at 0x7f>\nTraceback (most recent call last):\n  File \"/code/a.py\", line 3, in __del__\n    self.close()\nTypeError: 'NoneType' object is not callable\n"
	for name, test := range map[string]struct{ log, want string }{
		"before the error": {ignored + "ERROR: no such mesh", "no such mesh"},
		"after the error":  {"ValueError: no rows\n" + ignored, "ValueError: no rows"},
		"alone":            {"step 1\n" + ignored, "TypeError: 'NoneType' object is not callable"},
		"of a library":     {"Exception in thread monitor:\nTraceback (most recent call last):\n  File \"/usr/lib/python3.11/threading.py\", line 975, in run\n    self.run()\nConnectionError: closed\nstep 1\nERROR: no such mesh", "no such mesh"},
		"of a thread":      {"Exception in thread w:\nTraceback (most recent call last):\n  File \"/code/a.py\", line 3, in run\n    self.run()\nConnectionError: closed\nstep 1\nERROR: no such mesh", "ConnectionError: closed"},
		"with tags":        {"[1,0]<stderr>:" + strings.ReplaceAll(strings.TrimSpace(ignored), "\n", "\n[1,0]<stderr>:") + "\n[1,1]<stderr>:ERROR: no such mesh", "no such mesh"},
	} {
		found := FirstError(strings.Split(test.log, "\n"))
		if found == nil || found.Message != test.want {
			t.Errorf("%s: found %+v, want %q", name, found, test.want)
		}
	}
}
