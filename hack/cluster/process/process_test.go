package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary be the launcher of the tables under test.
func TestMain(m *testing.M) {
	if os.Getenv(launchVariable) != "" {
		if err := Launch(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func newTable(t *testing.T) Table {
	t.Helper()
	table := Table{Dir: t.TempDir(), Launcher: []string{os.Args[0]}}
	t.Cleanup(func() {
		records, err := table.List()
		if err != nil {
			t.Error(err)
		}
		for _, record := range records {
			if err := End(context.Background(), record.Identity, 0); err != nil {
				t.Error(err)
			}
		}
	})
	return table
}

func sleeper(t *testing.T, seconds string, inputs ...string) Spec {
	t.Helper()
	path, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	return Spec{Name: "sleeper", Args: []string{path, seconds}, Log: filepath.Join(t.TempDir(), "log"), Inputs: inputs}
}

func ensure(t *testing.T, table Table, spec Spec) (pid int, started bool) {
	t.Helper()
	started, err := table.Ensure(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	record, ok, err := table.Get(spec.Name)
	if err != nil || !ok || !record.Alive() {
		t.Fatalf("it does not run after Ensure: %+v, %v", record, err)
	}
	return record.Identity.PID, started
}

func TestEnsureLeavesAloneWhatRunsAsItShould(t *testing.T) {
	table, spec := newTable(t), sleeper(t, "1000")
	first, started := ensure(t, table, spec)
	if !started {
		t.Error("the first Ensure says that it did not start it")
	}
	again, started := ensure(t, table, spec)
	if started || again != first {
		t.Errorf("started again (%v), process %d became %d", started, first, again)
	}
}

func TestEnsureStartsAgain(t *testing.T) {
	input := filepath.Join(t.TempDir(), "config")
	write := func(t *testing.T, content string) {
		t.Helper()
		if err := os.WriteFile(input, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]func(t *testing.T, table Table, spec *Spec){
		"when it was killed": func(t *testing.T, table Table, spec *Spec) {
			record, _, err := table.Get(spec.Name)
			if err != nil {
				t.Fatal(err)
			}
			if err := End(t.Context(), record.Identity, 0); err != nil {
				t.Fatal(err)
			}
		},
		"when its command line is another": func(_ *testing.T, _ Table, spec *Spec) { spec.Args = []string{spec.Args[0], "1001"} },
		"when an input has changed":        func(t *testing.T, _ Table, _ *Spec) { write(t, "new") },
		"when its record is empty": func(t *testing.T, table Table, spec *Spec) {
			record, _, err := table.Get(spec.Name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = End(context.Background(), record.Identity, 0) })
			if err := os.WriteFile(table.file(spec.Name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			write(t, "old")
			table, spec := newTable(t), sleeper(t, "1000", input)
			first, _ := ensure(t, table, spec)
			change(t, table, &spec)
			second, started := ensure(t, table, spec)
			if !started || first == second {
				t.Errorf("started is %v, process %d became %d", started, first, second)
			}
		})
	}
}

// TestPriority: what starts pods hands no urgency down to them.
func TestPriority(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may make a process more urgent")
	}
	for startsPods, want := range map[bool]int{false: urgent, true: usual} {
		table, spec := newTable(t), sleeper(t, "1000")
		spec.StartsPods = startsPods
		pid, _ := ensure(t, table, spec)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			if err == nil && string(name) == "sleep\n" {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("it is still %q: %v", name, err)
			}
		}
		// The system call counts from 40, the most urgent, to 1 (getpriority(2)).
		got, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
		if err != nil || 20-got != want {
			t.Errorf("with startsPods %v its priority is %d (%v), want %d", startsPods, 20-got, err, want)
		}
		session, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid))
		if err == nil && !strings.HasSuffix(string(session), fmt.Sprintf(" nice %d\n", urgent)) {
			t.Errorf("with startsPods %v its session has %q", startsPods, session)
		}
	}
}

func TestEndSparesAnotherProcessWithTheSameID(t *testing.T) {
	table, spec := newTable(t), sleeper(t, "1000")
	ensure(t, table, spec)
	record, _, err := table.Get(spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	earlier := record.Identity
	earlier.StartTicks--
	if err := End(t.Context(), earlier, 0); err != nil {
		t.Fatal(err)
	}
	if !record.Alive() {
		t.Error("the process was ended in the name of an earlier one")
	}
}

func TestStop(t *testing.T) {
	table, spec := newTable(t), sleeper(t, "1000")
	ensure(t, table, spec)
	record, _, err := table.Get(spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // twice is fine
		if err := table.Stop(t.Context(), spec.Name, time.Second); err != nil {
			t.Fatal(err)
		}
		if record.Alive() {
			t.Error("it still runs")
		}
		if _, ok, err := table.Get(spec.Name); ok || err != nil {
			t.Errorf("its record is still there (%v), error %v", ok, err)
		}
	}
}

func TestWaitHealthySaysWhatTheLogEndsWith(t *testing.T) {
	table, spec := newTable(t), sleeper(t, "not-a-number")
	if _, err := table.Ensure(t.Context(), spec); err != nil {
		t.Skip("it ended before it was looked at")
	}
	err := table.WaitHealthy(t.Context(), spec.Name, func(context.Context) error { return errors.New("not yet") })
	if _, ok := errors.AsType[*EndedError](err); !ok {
		t.Fatalf("got %v, want an EndedError", err)
	}
	if text := err.Error(); !strings.Contains(text, "not-a-number") || !strings.Contains(text, spec.Log) {
		t.Errorf("the error has neither the log's path nor its end: %s", text)
	}
}

func TestEndStraysEndsWhatNoRecordNames(t *testing.T) {
	table := newTable(t)
	recorded, forgotten := sleeper(t, "1000"), sleeper(t, "1001")
	forgotten.Name = "forgotten"
	kept, _ := ensure(t, table, recorded)
	stray, _ := ensure(t, table, forgotten)
	lost, _, err := table.Get(forgotten.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(table.file(forgotten.Name)); err != nil {
		t.Fatal(err)
	}
	if err := table.EndStrays(t.Context(), []int{kept, stray}); err != nil {
		t.Fatal(err)
	}
	if lost.Alive() {
		t.Error("the stray still runs")
	}
	if alive, _, err := table.Running(recorded); !alive || err != nil {
		t.Errorf("the recorded one runs: %v, error %v", alive, err)
	}
}
