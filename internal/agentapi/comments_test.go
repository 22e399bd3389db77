package agentapi

import "testing"

func TestWithoutComment(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"with self.lock:     # no other thread may append now": "with self.lock:",
		"with self.lock:":                   "with self.lock:",
		`print("# 1", '#2')  # "three"`:     `print("# 1", '#2')`,
		`open("it's # one")#2`:              `open("it's # one")`,
		`name = 'it\'s # one'`:              `name = 'it\'s # one'`,
		`text = """begins # here`:           `text = """begins # here`,
		"# nothing else":                    "",
		"    lock.acquire() \t# don't wait": "    lock.acquire()",
		"":                                  "",
	} {
		if got := WithoutComment(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
