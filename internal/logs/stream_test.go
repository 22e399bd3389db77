package logs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/logs"
)

func TestStreamMasksLineByLine(t *testing.T) {
	full := strings.Repeat("MIIEpAIBAAKCAQEA", 4)
	digest := strings.Repeat("0123456789abcdef", 4)
	tests := map[string]struct {
		middle bool
		lines  []string
		want   []string
	}{
		"a key from its beginning": {
			lines: []string{"before", "-----BEGIN RSA PRIVATE KEY-----", full, "abc=", "-----END RSA PRIVATE KEY-----", "after"},
			want:  []string{"before", "****", "****", "****", "", "after"},
		},
		"a key that had begun": {
			middle: true,
			lines:  []string{full, full, "abc=", "-----END RSA PRIVATE KEY-----", "after"},
			want:   []string{"****", "****", "****", "****", "after"},
		},
		"a rank's": {
			middle: true,
			lines:  []string{"[1,0]<stdout>:" + full, "[1,0]<stdout>:abc="},
			want:   []string{"****", "****"},
		},
		"the keys of two ranks": {
			lines: []string{"[1,0]<stdout>:-----BEGIN RSA PRIVATE KEY-----", "[1,1]<stdout>:-----BEGIN RSA PRIVATE KEY-----", "[1,0]<stdout>:" + full, "[1,0]<stdout>:-----END RSA PRIVATE KEY-----", "[1,1]<stdout>:" + full, "[1,1]<stdout>:-----END RSA PRIVATE KEY-----", "[1,0]<stdout>:after"},
			want:  []string{"[1,0]<stdout>:****", "[1,1]<stdout>:****", "****", "[1,0]<stdout>:", "****", "[1,1]<stdout>:", "[1,0]<stdout>:after"},
		},
		"the keys of two ranks that had begun": {
			middle: true,
			lines:  []string{"[1,0]<stdout>:" + full, "[1,1]<stdout>:" + full, "[1,0]<stdout>:-----END RSA PRIVATE KEY-----", "[1,1]<stdout>:" + full, "[1,1]<stdout>:abc=", "[1,1]<stdout>:-----END RSA PRIVATE KEY-----", "[1,0]<stdout>:after"},
			want:   []string{"****", "****", "[1,0]<stdout>:****", "****", "****", "[1,1]<stdout>:****", "[1,0]<stdout>:after"},
		},
		"no key, in the middle":    {middle: true, lines: []string{"abc=", digest, "epoch=1"}, want: []string{"abc=", digest, "epoch=1"}},
		"no key, at the beginning": {lines: []string{full, "abc="}, want: []string{full, "abc="}},
		"a password":               {lines: []string{"password=hunter22"}, want: []string{"password=****"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stream := logs.Masker{}.Stream(!test.middle)
			var got []string
			for _, line := range test.lines {
				got = append(got, stream.Line(line))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestRank(t *testing.T) {
	tests := map[string]struct {
		line string
		rank int
		text string
	}{
		"Open MPI 4":      {"[1,5]<stdout>:epoch 3", 5, "epoch 3"},
		"Open MPI 4 err":  {"[1,12]<stderr>:Traceback", 12, "Traceback"},
		"Open MPI 5":      {"[prterun-train-launcher-7@1,3]<stdout>: epoch 3", 3, "epoch 3"},
		"Open MPI 5.0":    {"[1,3]<stdout>: epoch 3", 3, "epoch 3"},
		"5.0, indented":   {"[1,3]<stderr>:     raise", 3, "    raise"},
		"4, indented":     {"[1,3]<stderr>:    raise", 3, "    raise"},
		"MPICH":           {"[0] epoch 3", 0, "epoch 3"},
		"MPICH, empty":    {"[3] ", 3, ""},
		"PyTorch":         {"[rank7]: Traceback (most recent call last):", 7, "Traceback (most recent call last):"},
		"horovodrun":      {"[2]<stderr>:  File", 2, "  File"},
		"a list":          {"[1,2]", -1, "[1,2]"},
		"a list of lists": {"[1, 2, 3]", -1, "[1, 2, 3]"},
		"a host":          {"[node-1:00023] mca", -1, "[node-1:00023] mca"},
		"a level":         {"[INFO] started", -1, "[INFO] started"},
		"a time":          {"[2026-11-21 13:00:00] x", -1, "[2026-11-21 13:00:00] x"},
		"an index":        {"[5]=3", -1, "[5]=3"},
		"negative":        {"[-5] x", -1, "[-5] x"},
		"signed":          {"[+5] x", -1, "[+5] x"},
		"nothing":         {"[] x", -1, "[] x"},
		"no end":          {"[1", -1, "[1"},
		"empty":           {"", -1, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rank, text, tagged := logs.Rank(test.line)
			if !tagged {
				rank = -1
			}
			if rank != test.rank || text != test.text {
				t.Errorf("rank %d of %q, want %d of %q", rank, text, test.rank, test.text)
			}
		})
	}
}

// TestMaskLinesOfSeveralBlocks: mpirun may put the tag of a rank into the middle of a line.
func TestMaskLinesOfSeveralBlocks(t *testing.T) {
	for line, want := range map[string]string{
		"[1,0]<stdout>:line 219 has a[1,0]<stdout>:pi_key=0123456789abcdef":       "[1,0]<stdout>:line 219 has api_key=****",
		"[1,0]<stdout>:line 516 has api_key[1,0]<stdout>:=0123456789abcdef":       "[1,0]<stdout>:line 516 has api_key=****",
		"[1,0]<stderr>:password=01234[1,0]<stderr>:56789abcdef and more":          "[1,0]<stderr>:password=**** and more",
		"[run@1,3]<stdout>: line has api_k[run@1,3]<stdout>: ey=0123456789abcdef": "[run@1,3]<stdout>: line has api_key=****",
		"[1,0]<stdout>:-----BEGIN RSA PRI[1,0]<stdout>:VATE KEY-----":             "[1,0]<stdout>:****",
		"[1,0]<stdout>:the other rank's [1,1]<stdout>:line":                       "[1,0]<stdout>:the other rank's [1,1]<stdout>:line",
		"[x y]<std and a >: later, [x y]<std and a >: again":                      "[x y]<std and a >: later, [x y]<std and a >: again",
	} {
		stream := logs.Masker{}.Stream(true)
		if got := stream.Line(line); got != want {
			t.Errorf("%q becomes %q, want %q", line, got, want)
		}
		if got := (logs.Masker{}).Line(line); got != want {
			t.Errorf("%q alone becomes %q, want %q", line, got, want)
		}
		if got := (logs.Masker{}).Lines([]string{line}); got[0] != want {
			t.Errorf("%q in lines becomes %q, want %q", line, got, want)
		}
	}
}

// The tests of the Python SDK read the same lines.
func TestLevelOf(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "levels.json"))
	if err != nil {
		t.Fatal(err)
	}
	var levels map[string][]string
	if err := json.Unmarshal(raw, &levels); err != nil {
		t.Fatal(err)
	}
	for _, want := range []logs.Level{logs.LevelNone, logs.LevelDebug, logs.LevelInfo, logs.LevelWarning, logs.LevelError} {
		if len(levels[want.String()]) == 0 {
			t.Errorf("no lines of level %q", want)
		}
		for _, line := range levels[want.String()] {
			t.Run(want.String()+"/"+line, func(t *testing.T) {
				if got := logs.LevelOf(line); got != want {
					t.Errorf("%q, want %q", got, want)
				}
			})
		}
	}
}

func TestParseLevel(t *testing.T) {
	for name, want := range map[string]logs.Level{"error": logs.LevelError, "WARN": logs.LevelWarning, "Info": logs.LevelInfo, "debug": logs.LevelDebug} {
		if got, err := logs.ParseLevel(name); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := logs.ParseLevel("loud"); err == nil || !strings.Contains(err.Error(), "debug, info, warning or error") {
		t.Errorf("loud: %v", err)
	}
}

func TestCleanWithinKeepsLongLines(t *testing.T) {
	long := strings.Repeat("x", 5000)
	if got := logs.CleanWithin(long, 10000); got != long {
		t.Errorf("%d bytes are left", len(got))
	}
	if got := logs.CleanWithin("\x1b[31mred\x1b[0m\tand  ", 100); got != "red and" {
		t.Errorf("%q", got)
	}
}
