package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Spec says how a component is started.
type Spec struct {
	// Name is the component's, also its record's and its log's.
	Name string
	// Args is the command line; Args[0] is the program's absolute path.
	Args []string
	// Env is added to a minimal environment (PATH and HOME).
	Env []string
	// Dir is the working directory; "/" when empty.
	Dir string
	// Log is the file that gets standard output and error, appended to.
	Log string
	// Cgroup, relative to each hierarchy, is joined before the program runs,
	// so that every descendant is in it. It must exist. Empty: none.
	Cgroup string
	// Mounts is the private view of files the component has, or nil.
	Mounts *Mounts
	// StartsPods is whether pods descend from it. They would inherit the urgency
	// that components have, so it has as much of it as they do not inherit.
	StartsPods bool
	// Inputs are files whose content matters: when one has changed since the
	// start, the component is not up to date any more.
	Inputs []string
}

// Record is what is remembered of a started component.
type Record struct {
	Name     string    `json:"name"`
	Identity Identity  `json:"identity"`
	Started  time.Time `json:"started"`
	// Digest is of the specification and the content of its inputs.
	Digest string `json:"digest"`
	Log    string `json:"log"`
}

// Alive reports whether the component still runs.
func (r Record) Alive() bool { return r.Identity.Alive() }

// Table holds the records of one cluster, one file each.
type Table struct {
	// Dir is the folder of the records.
	Dir string
	// Launcher is the command line that runs Launch in this program; the
	// specification's own command line is not run directly because joining a
	// cgroup and a mount namespace must happen in the new process.
	Launcher []string
}

// Get returns the record of a component; ok is false when there is none.
func (t Table) Get(name string) (record Record, ok bool, err error) {
	content, err := os.ReadFile(t.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("record of %s: %w", name, err)
	}
	if err := json.Unmarshal(content, &record); err != nil {
		// A power cut can leave an empty file. It counts as no record: no
		// process survived the power cut.
		return Record{}, false, nil
	}
	return record, true, nil
}

// List returns every record, by name.
func (t Table) List() ([]Record, error) {
	entries, err := os.ReadDir(t.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("process records: %w", err)
	}
	var records []Record
	for _, entry := range entries {
		name, isRecord := strings.CutSuffix(entry.Name(), ".json")
		if !isRecord {
			continue
		}
		record, ok, err := t.Get(name)
		if err != nil {
			return nil, err
		}
		if ok {
			records = append(records, record)
		}
	}
	return records, nil
}

// Running reports whether the component runs and is what spec describes now.
func (t Table) Running(spec Spec) (alive, current bool, err error) {
	record, ok, err := t.Get(spec.Name)
	if err != nil || !ok || !record.Alive() {
		return false, false, err
	}
	digest, err := spec.digest()
	if err != nil {
		return true, false, err
	}
	return true, digest == record.Digest, nil
}

// Ensure makes the component run as spec describes. One that runs so already
// is left alone, one that runs otherwise is stopped first. started reports
// whether it was started now.
func (t Table) Ensure(ctx context.Context, spec Spec) (started bool, err error) {
	alive, current, err := t.Running(spec)
	if err != nil {
		return false, err
	}
	if current {
		return false, nil
	}
	if alive {
		// Short, because the API server would spend the grace period on
		// connections that stay open anyway.
		if err := t.Stop(ctx, spec.Name, 3*time.Second); err != nil {
			return false, err
		}
	}
	return true, t.start(spec)
}

func (t Table) start(spec Spec) error {
	digest, err := spec.digest()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o755); err != nil {
		return fmt.Errorf("log folder of %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("log of %s: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	order, err := json.Marshal(launchOrder{Args: spec.Args, Cgroup: spec.Cgroup, Mounts: spec.Mounts, StartsPods: spec.StartsPods})
	if err != nil {
		return fmt.Errorf("start %s: %w", spec.Name, err)
	}
	command := exec.Command(t.Launcher[0], t.Launcher[1:]...) // no context: it outlives this program on purpose
	command.Env = append([]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root",
		// All of these are programs in Go. A machine for tests has more memory than cores: collect garbage a third as often.
		"GOGC=300",
		launchVariable + "=" + string(order),
	}, spec.Env...)
	command.Dir = spec.Dir
	if command.Dir == "" {
		command.Dir = "/"
	}
	command.Stdout, command.Stderr = log, log
	// A session of its own: no terminal's hang-up or interrupt reaches it.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", spec.Name, err)
	}
	// Wait in the background, or the child stays a zombie if it ends while
	// this program still runs.
	go func() { _ = command.Wait() }()
	identity, err := Identify(command.Process.Pid)
	if err != nil {
		return &EndedError{Name: spec.Name, Log: spec.Log}
	}
	err = t.put(Record{
		Name: spec.Name, Identity: identity, Started: time.Now().Truncate(time.Second),
		Digest: digest, Log: spec.Log,
	})
	if err != nil {
		// What is not recorded must not run.
		return errors.Join(err, command.Process.Kill())
	}
	return nil
}

// EndStrays ends those of the given processes that a Table has started and no
// record names: a command that is killed between the start and the record
// leaves one. Started ones lead a session; their children do not.
func (t Table) EndStrays(ctx context.Context, pids []int) error {
	records, err := t.List()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		identity, err := Identify(pid)
		if err != nil {
			continue // it has just ended
		}
		stat, err := readStat(pid)
		recorded := slices.ContainsFunc(records, func(r Record) bool { return r.Identity == identity })
		if err != nil || stat.session != pid || recorded {
			continue
		}
		if err := End(ctx, identity, 0); err != nil {
			return fmt.Errorf("stray process: %w", err)
		}
	}
	return nil
}

// Stop ends the component: politely, and after the grace period by force. Its
// record goes. It is no error if it does not run.
func (t Table) Stop(ctx context.Context, name string, grace time.Duration) error {
	record, ok, err := t.Get(name)
	if err != nil {
		return err
	}
	if ok {
		if err := End(ctx, record.Identity, grace); err != nil {
			return fmt.Errorf("stop %s: %w", name, err)
		}
	}
	if err := os.Remove(t.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record of %s: %w", name, err)
	}
	return nil
}

// End ends a process: SIGTERM, and SIGKILL after the grace period (at once if
// it is 0). It returns when the process is gone. Another process that has got
// the same id is never signalled.
func End(ctx context.Context, identity Identity, grace time.Duration) error {
	if !identity.Alive() {
		return nil
	}
	// The handle pins the process: if it ends now and its id is reused,
	// no other process gets the signal.
	handle, err := os.FindProcess(identity.PID)
	if err != nil {
		return fmt.Errorf("process %d: %w", identity.PID, err)
	}
	defer func() { _ = handle.Release() }()
	if !identity.Alive() {
		return nil
	}
	signal := func(s os.Signal) error {
		if err := handle.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("signal %v to process %d: %w", s, identity.PID, err)
		}
		return nil
	}
	if grace > 0 {
		if err := signal(syscall.SIGTERM); err != nil {
			return err
		}
		if gone(ctx, identity, grace) {
			return nil
		}
	}
	if err := signal(syscall.SIGKILL); err != nil {
		return err
	}
	const patience = 20 * time.Second
	if !gone(ctx, identity, patience) {
		return fmt.Errorf("process %d is still there %v after SIGKILL", identity.PID, patience)
	}
	return nil
}

func gone(ctx context.Context, identity Identity, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for identity.Alive() {
		select {
		case <-ctx.Done():
			return !identity.Alive()
		case <-tick.C:
		}
	}
	return true
}

// WaitHealthy calls check until it succeeds. It gives up when ctx is done or
// as soon as the component has ended, and then says what its log ends with.
func (t Table) WaitHealthy(ctx context.Context, name string, check func(context.Context) error) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		record, ok, recordErr := t.Get(name)
		if recordErr != nil {
			return recordErr
		}
		if !ok || !record.Alive() {
			return &EndedError{Name: name, Log: record.Log}
		}
		select {
		case <-ctx.Done():
			return &UnhealthyError{Name: name, Log: record.Log, Since: record.Started, Cause: err}
		case <-tick.C:
		}
	}
}

// EndedError is of a component that ended right after its start.
type EndedError struct{ Name, Log string }

func (e *EndedError) Error() string {
	return fmt.Sprintf("%s ended soon after its start\n%s", e.Name, logEnd(e.Log))
}

// UnhealthyError is of a component that runs and does not get healthy.
type UnhealthyError struct {
	Name, Log string
	Since     time.Time
	Cause     error
}

func (e *UnhealthyError) Error() string {
	return fmt.Sprintf("%s runs since %s but is not healthy: %v\n%s", e.Name, e.Since.Format(time.TimeOnly), e.Cause, logEnd(e.Log))
}

func (e *UnhealthyError) Unwrap() error { return e.Cause }

// logEnd is the last lines of a log with its path, for an error message.
func logEnd(path string) string {
	const lines, most = 12, 64 << 10
	file, err := os.Open(path)
	if err != nil {
		return "its log cannot be read: " + err.Error()
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > most {
		_, _ = file.Seek(-most, 2)
	}
	content := make([]byte, most)
	n, _ := file.Read(content)
	all := strings.Split(strings.TrimRight(string(content[:n]), "\n"), "\n")
	all = all[max(0, len(all)-lines):]
	return "the last lines of " + path + ":\n    " + strings.Join(all, "\n    ")
}

func (t Table) file(name string) string { return filepath.Join(t.Dir, name+".json") }

func (t Table) put(record Record) error {
	content, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("record of %s: %w", record.Name, err)
	}
	if err := os.MkdirAll(t.Dir, 0o755); err != nil {
		return fmt.Errorf("record of %s: %w", record.Name, err)
	}
	temporary := t.file(record.Name) + ".new"
	if err := os.WriteFile(temporary, content, 0o644); err != nil {
		return fmt.Errorf("record of %s: %w", record.Name, err)
	}
	if err := os.Rename(temporary, t.file(record.Name)); err != nil {
		return fmt.Errorf("record of %s: %w", record.Name, err)
	}
	return nil
}

// digest changes with whatever would make a restart necessary.
func (s Spec) digest() (string, error) {
	hash := sha256.New()
	// Which namespace the component joins is a matter of the moment.
	s.Mounts = s.Mounts.withoutNamespace()
	if err := json.NewEncoder(hash).Encode(s); err != nil {
		return "", fmt.Errorf("digest of %s: %w", s.Name, err)
	}
	for _, input := range slices.Sorted(slices.Values(s.Inputs)) {
		content, err := os.ReadFile(input)
		if err != nil {
			return "", fmt.Errorf("digest of %s: %w", s.Name, err)
		}
		hash.Write(fmt.Appendln(nil, input, len(content)))
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
