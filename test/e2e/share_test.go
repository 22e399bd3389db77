package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// inEveryShare are tests that a part of the tests has, too: the ordinary life of both kinds of jobs, and tests that divide their cases
// themselves.
var inEveryShare = []string{
	"TestFailures", "TestHangs", "TestMutants", "TestShares",
	"TestPi", "TestFailingProgram", "TestSuspendAndResume", "TestUpstreamExample", "TestTenantsBorrowNoRights", "TestS3",
	"TestTrainJobReport", "TestTrainJobFails", "TestTrainJobSuspendAndResume",
}

// needNoCluster are the tests of what the other tests are made of. make unit runs them.
var needNoCluster = []string{
	"TestFalseAlarmsAreFound", "TestLostFields", "TestMutantSeeds", "TestMutantsAreTheSame", "TestRemedyForms", "TestRemedyTable", "TestShares", "TestVersionTable",
}

// skipClusterTests has this process leave out the tests that need a cluster.
func skipClusterTests() error {
	tests, err := listTests()
	if err != nil {
		return err
	}
	for _, name := range needNoCluster {
		if !slices.Contains(tests, name) {
			return fmt.Errorf("needNoCluster has %s, and there is no such test", name)
		}
	}
	return skip(slices.DeleteFunc(tests, func(name string) bool { return slices.Contains(needNoCluster, name) }))
}

// listTests returns the names of all tests.
func listTests() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	listed, err := exec.Command(self, "-test.list", "^Test").Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests: %w", err)
	}
	return strings.Fields(string(listed)), nil
}

// skip has this process leave out tests.
func skip(tests []string) error { return flag.Set("test.skip", "^("+strings.Join(tests, "|")+")$") }

// share is a part of the tests, the number'th of so many. The zero share has all.
type share struct{ number, of int }

// has reports whether the i'th of several is in the share. The shares of a number have each once.
func (s share) has(i int) bool { return s.of == 0 || i%s.of == s.number }

// shareOf reads a share, such as 1/4 for the second quarter; "" is the share of all.
func shareOf(text string) (share, error) {
	if text == "" {
		return share{}, nil
	}
	var s share
	if n, err := fmt.Sscanf(text, "%d/%d", &s.number, &s.of); n != 2 || err != nil || s.number < 0 || s.number >= s.of {
		return s, fmt.Errorf("SHARE=%s: must be a number, a slash and a greater number, as 0/4", text)
	}
	return s, nil
}

func mustShare(t *testing.T) share {
	t.Helper()
	s, err := shareOf(os.Getenv("SHARE"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// others returns the tests that are not in the share.
func (s share) others(tests []string) []string {
	tests = slices.Clone(tests)
	slices.Sort(tests)
	var others []string
	i := 0
	for _, name := range tests {
		if slices.Contains(inEveryShare, name) {
			continue
		}
		if !s.has(i) {
			others = append(others, name)
		}
		i++
	}
	return others
}

// skipOthers has this process leave out the tests that are not in the share of SHARE.
func skipOthers() error {
	s, err := shareOf(os.Getenv("SHARE"))
	if err != nil || s.of == 0 {
		return err
	}
	tests, err := listTests()
	if err != nil {
		return err
	}
	others := s.others(tests)
	fmt.Printf("SHARE=%d/%d leaves out %d tests\n", s.number, s.of, len(others))
	return skip(others)
}

// TestShares: the shares have each test once, and each has the ordinary life of jobs.
func TestShares(t *testing.T) {
	tests := append([]string{"TestA", "TestB", "TestC", "TestD", "TestE"}, inEveryShare...)
	runs := map[string]int{}
	for number := range 4 {
		others := share{number, 4}.others(tests)
		for _, name := range tests {
			if !slices.Contains(others, name) {
				runs[name]++
			}
		}
	}
	for _, name := range tests {
		want := 1
		if slices.Contains(inEveryShare, name) {
			want = 4
		}
		if runs[name] != want {
			t.Errorf("%s is in %d of 4 shares, want %d", name, runs[name], want)
		}
	}
	for _, text := range []string{"4/4", "-1/4", "a", "1"} {
		if _, err := shareOf(text); err == nil {
			t.Errorf("SHARE=%s is taken", text)
		}
	}
}
