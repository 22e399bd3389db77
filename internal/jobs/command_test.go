package jobs

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShellWords(t *testing.T) {
	tests := map[string]struct {
		want  []string
		wrong bool
	}{
		"python train.py":                {want: []string{"python", "train.py"}},
		"  a\tb  ":                       {want: []string{"a", "b"}},
		`say "a b" 'c "d"' e\ f`:         {want: []string{"say", "a b", `c "d"`, "e f"}},
		`say "" ''`:                      {want: []string{"say", "", ""}},
		`say "a\"b" 'a\b'`:               {want: []string{"say", `a"b`, `a\b`}},
		`pre"fix"ed`:                     {want: []string{"prefixed"}},
		"cd /data && solve > out":        {want: []string{"sh", "-c", "cd /data && solve > out"}},
		"echo $HOME":                     {want: []string{"sh", "-c", "echo $HOME"}},
		`say "a`:                         {wrong: true},
		`say a\`:                         {wrong: true},
		"":                               {},
		"ünïcode --name=日本 'größer als'": {want: []string{"ünïcode", "--name=日本", "größer als"}},
	}
	for text, test := range tests {
		t.Run(text, func(t *testing.T) {
			got, err := ParseCommand(text)
			if (err != nil) != test.wrong {
				t.Fatalf("error is %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// commands are cases that the tests of the Python SDK read, too.
type commands struct {
	Parse []struct {
		Text string
		Want []string
	}
	StartsRanks []struct {
		Command []string
		Want    bool
	}
}

func readCommands(t *testing.T) commands {
	t.Helper()
	text, err := os.ReadFile("testdata/commands.json")
	if err != nil {
		t.Fatal(err)
	}
	var all commands
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestParseCommand(t *testing.T) {
	for _, test := range readCommands(t).Parse {
		t.Run(test.Text, func(t *testing.T) {
			got, err := ParseCommand(test.Text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.Want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStartsRanks(t *testing.T) {
	for _, test := range readCommands(t).StartsRanks {
		t.Run(strings.Join(test.Command, " "), func(t *testing.T) {
			if got := StartsRanks(test.Command); got != test.Want {
				t.Errorf("got %t", got)
			}
		})
	}
}
