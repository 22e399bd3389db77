package logs_test

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/logs"
)

// masked masks lines in one piece and as a stream, which must not differ.
func maskedLines(t *testing.T, lines ...string) string {
	t.Helper()
	whole := strings.Join(logs.Masker{}.Lines(lines), "\n")
	stream := logs.Masker{}.Stream(true)
	var streamed []string
	for _, line := range lines {
		streamed = append(streamed, stream.Line(line))
	}
	if got := strings.Join(streamed, "\n"); got != whole {
		t.Errorf("the stream is %q, the lines are %q", got, whole)
	}
	return whole
}

const place = `  File "/app/train.py", line 42, in exchange`

// TestMaskShowsCalls: a call is code, in lines of source code alone.
func TestMaskShowsCalls(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`    token = comm.recv(source=0)`:                          `    token = comm.recv(source=0)`,
		`    token = comm.recv(source=0, tag=3)`:                   `    token = comm.recv(source=0, tag=3)`,
		`    self.token = await self.comms[0].recv()`:              `    self.token = await self.comms[0].recv()`,
		`    if (token := next_token()) is None:`:                  `    if (token := next_token()) is None:`,
		`    login(token=read_token(),`:                            `    login(token=read_token(),`,
		`    token = exchange(`:                                    `    token = exchange(`,
		`    token = exchange_tokens_between_all_ranks(comm)`:      `    token = exchange_tokens_between_all_ranks(comm)`,
		`    token = login("me", 'hunter2')`:                       `    token = login("****", '****')`,
		`    token = login(f"{user}:hunter2")`:                     `    token = login(f"****")`,
		`    token = login(password="hunter2")`:                    `    token = login(password="****")`,
		`    token = login(password=hunter2, user=me)`:             `    token = login(password=**** user=me)`,
		`    token = login(0123456789abcdef0123456789abcdef)`:      `    token = login(****)`,
		`    token = login(b'abc', "cut off`:                       `    token = login(b'****', "****"`,
		`    token = login("me", "hun…`:                            `    token = login("****", "****"`,
		`    token = login("""hunter2""")`:                         `    token = login("""****""")`,
		`    password, token = "hunter2", get()`:                   `    password, token = "****", get()`,
		`    token = "hf_hunter2"`:                                 `    token = "****"`,
		`    token = hunter2`:                                      `    token = ****`,
		`    token = 3f2a9c3f2a9c3f2a9c3f2a9c(x)`:                  `    token = ****`,
		`    token = f3f2a9c3f2a9c3f2a9c3f2a9c(x)`:                 `    token = ****`,
		`    token = Pa55(word`:                                    `    token = ****`,
		`    return {"Authorization": "Bearer abcdef1234567890"}`:  `    return {"Authorization": "****"}`,
		`    token = f(b"AKIAIOSFODNN7EXAMPLE", "x" + "y\"z" + k)`: `    token = f(b"****", "****" + "****" + k)`,
	} {
		if got := maskedLines(t, "Traceback (most recent call last):", place, line); !strings.HasSuffix(got, "\n"+want) {
			t.Errorf("%q became %q, want %q", line, got, want)
		}
		if got := maskedLines(t, "[1,3]<stderr>:"+place, "[1,3]<stderr>:"+line); !strings.HasSuffix(got, ">:"+want) {
			t.Errorf("%q of a rank became %q, want %q", line, got, want)
		}
		stack := agentapi.StackPrefix + "rank 1: exchange (/app/train.py:42) < main (/app/train.py:60) | "
		if got := maskedLines(t, stack+strings.TrimSpace(line)); got != stack+strings.TrimSpace(want) {
			t.Errorf("%q of a stack became %q, want %q", line, got, want)
		}
	}
}

// TestMaskHidesCallsElsewhere: what looks like a call is a value in any other line, whatever a program prints before.
func TestMaskHidesCallsElsewhere(t *testing.T) {
	t.Parallel()
	const secret = "hunter2(x)"
	for name, lines := range map[string][]string{
		"a line of a log":                        {"token = " + secret},
		"a setting after a line about a file":    {`Reading File "/app/conf.py", line 42, in exchange`, "    token = " + secret},
		"not the next line":                      {place, "    x = 1", "    token = " + secret},
		"a line of another rank":                 {"[1,3]<stderr>:" + place, "[1,2]<stderr>:    token = " + secret},
		"a line without a rank":                  {"[1,3]<stderr>:" + place, "    token = " + secret},
		"a line that is not indented further":    {place, "  token = " + secret},
		"a line without the name of a function":  {`  File "/app/train.py", line 42`, "    token = " + secret},
		"a place with something behind it":       {place + " now", "    token = " + secret},
		"a stack within a line":                  {"INFO " + agentapi.StackPrefix + "rank 1: f (/a.py:1) | token = " + secret},
		"before the source of a stack":           {agentapi.StackPrefix + "rank 1: token = " + secret + " | x = 1"},
		"a setting in YAML":                      {place, "    token: " + secret},
		"a value without quotation marks":        {place, "    token = hunter2"},
		"a value without quotation marks, stack": {agentapi.StackPrefix + "rank 1: f (/a.py:1) | token = hunter2"},
		"the value of a flag":                    {place, "    run --token hunter2"},
		"a private key in a line of code":        {place, "    token = f(-----BEGIN PRIVATE KEY-----hunter2"},
	} {
		if got := maskedLines(t, lines...); strings.Contains(got, "hunter2") {
			t.Errorf("%s: the value shows: %q", name, got)
		}
	}
}

// TestMaskPatternsReachOverCalls: a pattern of the administrator holds in lines of source code, too.
func TestMaskPatternsReachOverCalls(t *testing.T) {
	t.Parallel()
	masker, err := logs.NewMasker([]string{`token = internal\.\w+\(\w+\)`})
	if err != nil {
		t.Fatal(err)
	}
	if got := masker.Lines([]string{place, "    token = internal.vault(prod)"})[1]; strings.Contains(got, "vault") {
		t.Errorf("got %q", got)
	}
}
