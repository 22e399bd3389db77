package jobs

import (
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
			if got := StartsRanks(test.command); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
