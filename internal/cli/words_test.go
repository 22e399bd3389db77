package cli

import (
	"testing"
	"time"

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
			got, err := shellWords(text)
			if (err != nil) != test.wrong {
				t.Fatalf("error is %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStartsRanks(t *testing.T) {
	tests := map[string]struct {
		command []string
		want    bool
	}{
		"a program":         {command: []string{"python", "train.py"}},
		"mpirun":            {command: []string{"mpirun", "train"}, want: true},
		"by its path":       {command: []string{"/opt/mpi/bin/mpiexec", "train"}, want: true},
		"in a script":       {command: []string{"sh", "-c", "cd /data; mpirun train"}, want: true},
		"a file of a name":  {command: []string{"python", "mpirun.py"}},
		"after an operator": {command: []string{"sh", "-c", "prepare&&horovodrun -np 4 train"}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := startsRanks(test.command); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	names := []string{"train", "train-2", "tune", "solver"}
	tests := map[string][]string{
		"trian": {"train"}, "tran": {"train"}, "train-": {"train", "train-2"}, "TRAIN": {"train"}, "so": {"solver"}, "xyz": nil, "": nil, "t": nil,
	}
	for written, want := range tests {
		t.Run(written, func(t *testing.T) {
			if diff := cmp.Diff(want, nearest(written, names)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStopwatch(t *testing.T) {
	tests := map[string]string{"0s": "0:00", "42s": "0:42", "62s": "1:02", "3723s": "1:02:03", "-5s": "0:00"}
	for text, want := range tests {
		if got := stopwatch(parseDuration(t, text)); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

func parseDuration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
