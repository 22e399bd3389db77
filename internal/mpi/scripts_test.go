package mpi_test

import (
	"slices"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestScriptOf: a shell runs the word after its options, of which those for settings by name have a value.
func TestScriptOf(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]struct {
		script     string
		args       []string
		ends, pipe bool
	}{
		"bash|-c|mpirun train":                           {script: "mpirun train"},
		"/bin/sh|-ec|mpirun train":                       {script: "mpirun train", ends: true},
		"bash|-e|-c|mpirun train":                        {script: "mpirun train", ends: true},
		"bash|-c|-e|mpirun train":                        {script: "mpirun train", ends: true},
		"bash|-euo|pipefail|-c|mpirun train":             {script: "mpirun train", ends: true, pipe: true},
		"bash|-ceuo|pipefail|mpirun train":               {script: "mpirun train", ends: true, pipe: true},
		"bash|-o|errexit|-o|pipefail|-c|mpirun train":    {script: "mpirun train", ends: true, pipe: true},
		"bash|+e|-O|extglob|--rcfile|/x|-lc|--|mpirun|2": {script: "mpirun", args: []string{"2"}},
		"bash|--norc|-c|mpirun|train":                    {script: "mpirun", args: []string{"train"}},
		"bash|+o|pipefail|-c|mpirun train":               {script: "mpirun train"},
		"bash|-e|run.sh|-c|mpirun":                       {},
		"bash|-c":                                        {},
		"bash|-c|-o":                                     {},
		"bash":                                           {},
		"":                                               {},
		"python3|-c|import os":                           {},
		"/data/run.sh|-c|mpirun train":                   {},
	} {
		got, is := mpi.ScriptOf(strings.FieldsFunc(words, func(r rune) bool { return r == '|' }))
		if is != (want.script != "") || got.Text != want.script || !slices.Equal(got.Args, want.args) || got.EndsOnError != want.ends || got.FailsInPipes != want.pipe {
			t.Errorf("%s: %+v, %t", words, got, is)
		}
	}
}
