package main

import (
	"slices"
	"strings"
	"testing"
)

// TestRecordsOfTheSmallestCases: they do not replace those of a suite.
func TestRecordsOfTheSmallestCases(t *testing.T) {
	for args, want := range map[string]string{"--out=/out": "/out", "--out=/out --smallest": "/out/smallest"} {
		o, err := parse(append([]string{"--assets", "/assets"}, strings.Fields(args)...))
		if err != nil || o.records() != want {
			t.Errorf("with %s, the records are in %s, want %s (%v)", args, o.records(), want, err)
		}
	}
}

func TestParseBefore(t *testing.T) {
	tests := map[string]struct {
		args []string
		// want are the suites that run, failure is part of the error.
		want    []string
		failure string
	}{
		"all suites but two":          {want: []string{"mpijob", "report", "queue", "gang", "agent", "start"}},
		"all suites that compare":     {args: []string{"--before", "HEAD~5"}, want: suitesBefore},
		"one suite":                   {args: []string{"--suite", "gang"}, want: []string{"gang"}},
		"scale on request":            {args: []string{"--suite", "scale"}, want: []string{"scale"}},
		"a suite that compares":       {args: []string{"--suite", "agent", "--before", "HEAD~5"}, want: []string{"agent"}},
		"a suite that compares none":  {args: []string{"--suite", "gang", "--before", "HEAD~5"}, failure: `--before is not allowed with the suite "gang"; use mpijob`},
		"a suite that does not exist": {args: []string{"--suite", "pods"}, failure: `there is no suite "pods"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o, err := parse(append([]string{"--assets", "/assets"}, test.args...))
			if test.failure != "" {
				if err == nil || !strings.Contains(err.Error(), test.failure) {
					t.Fatalf("got the error %v, want %q", err, test.failure)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(slices.Clone(suites), func(suite string) bool { return !o.wants(suite) })
			if !slices.Equal(got, test.want) {
				t.Errorf("the suites are %v, want %v", got, test.want)
			}
		})
	}
}
