package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestParseLoad(t *testing.T) {
	tests := map[string]struct {
		line string
		want Load
	}{
		"a line of the kernel": {"0.20 0.18 0.12 3/80 11206\n", Load{Newest: "11206", Runnable: 3}},
		"no file":              {"", Load{}},
		"cut off":              {"0.20 0.18 0.12 3/80", Load{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := parseLoad([]byte(test.line)); got != test.want {
				t.Errorf("the load is %+v, want %+v", got, test.want)
			}
		})
	}
	if got := ReadLoad(); got.Runnable < 1 {
		t.Errorf("this test runs, but the load is %+v", got)
	} else if _, err := strconv.Atoi(got.Newest); err != nil {
		t.Error(err)
	}
}

func TestCPUs(t *testing.T) {
	if CPUs() < 1 {
		t.Error("the node has no CPU")
	}
}

// TestNameOfAProcessThatHasEnded: the kernel keeps no arguments of a process that has ended and was not awaited.
func TestNameOfAProcessThatHasEnded(t *testing.T) {
	command := exec.Command("/bin/sh", "-c", "exit 3")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Wait() }()
	for state, _ := ReadStat(command.Process.Pid); state.State != 'Z'; state, _ = ReadStat(command.Process.Pid) {
		time.Sleep(time.Millisecond)
	}
	if got := Name(command.Process.Pid); got != "sh" {
		t.Errorf("its name is %q", got)
	}
	if got := Name(os.Getpid()); got != filepath.Base(os.Args[0]) {
		t.Errorf("the name of this test is %q", got)
	}
}
