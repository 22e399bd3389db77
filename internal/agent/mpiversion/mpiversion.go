// Package mpiversion asks MPI launchers for their version.
package mpiversion

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agent/mpirun"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agentapi"
)

// The launcher's agent asks each MPI launcher that it sees for its version, by running the same file with --version. Only the
// image determines what this file does: it gets no input, nothing of the job's environment but where its libraries are, and
// little time.

const (
	// versionWithin is how long a launcher may take to print its version; it takes milliseconds.
	versionWithin = 5 * time.Second
	// mostVersionOutput is how much of its output is read. MPICH prints its build options after the version.
	mostVersionOutput = 8 << 10
	// mostVersionQueries is how many files are asked. A job has one.
	mostVersionQueries = 4
	// EnvQuery marks the process that is asked, and what it starts, as no launch of the job.
	EnvQuery = "MPI_AGENT_VERSION_QUERY"
)

// versionVariables are those that a launcher needs to find its libraries, if it was moved or its libraries are in no
// standard folder: of the loader, Intel MPI (I_MPI_ROOT), Open MPI and what it includes.
var versionVariables = []string{
	"PATH", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "I_MPI_ROOT", "OPAL_PREFIX", "OPAL_LIBDIR", "PRTE_PREFIX", "PMIX_PREFIX",
}

// Queries are the queries of a process.
type Queries struct {
	// Start starts a program.
	Start func(process.Command) (process.Program, error)

	mu sync.Mutex
	// files are those that were asked, running the processes that have not answered yet, and found the answers.
	files   []string
	running map[int]bool
	found   []string
	ended   bool
}

// Ask asks an MPI launcher, a process with this environment, for its version, in the background. Its answer is one of answers.
func (q *Queries) Ask(pid int, env []string) { q.ask(pid, env, q.add) }

// ask calls keep with the answer.
func (q *Queries) ask(pid int, env []string, keep func(version string)) {
	path, err := os.Readlink(process.File(pid, "exe"))
	if err != nil || !isVersionSource(path) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || slices.Contains(q.files, path) || len(q.files) == mostVersionQueries {
		return
	}
	q.files = append(q.files, path)
	env = versionEnv(env)
	go func() {
		for _, path := range versionPrograms(path) {
			if version := mpirun.ParseVersion(q.run(path, env)); version != "" {
				keep(version)
				return
			}
		}
	}()
}

// add keeps an answer.
func (q *Queries) add(version string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !slices.Contains(q.found, version) {
		q.found = append(q.found, version)
	}
}

// Answers returns the versions that are known, sorted.
func (q *Queries) Answers() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Sorted(slices.Values(q.found))
}

// isVersionSource reports whether a program is an MPI launcher, by its name. prte is prterun of Open MPI 5 in some builds.
func isVersionSource(path string) bool {
	return mpirun.IsLauncher(path) || filepath.Base(path) == "prte"
}

// versionPrograms returns the files to ask instead of a launcher's own, best first. Open MPI's mpirun becomes prterun, which
// prints the version of PRRTE.
func versionPrograms(path string) []string {
	if base := filepath.Base(path); base != "prterun" && base != "prte" {
		return []string{path}
	}
	folder := filepath.Dir(path)
	return []string{filepath.Join(folder, "mpirun.openmpi"), filepath.Join(folder, "mpirun")}
}

// versionEnv returns the environment of a query.
func versionEnv(env []string) []string {
	query := []string{EnvQuery + "=1", "LC_ALL=C"}
	for _, name := range versionVariables {
		if value := environ.Get(env, name); value != "" {
			query = append(query, name+"="+value)
		}
	}
	return query
}

// run runs a program with --version and returns what it prints; nothing if it is a script, which may ignore the argument and
// start the job again.
func (q *Queries) run(path string, env []string) string {
	if !isELF(path) {
		return ""
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return ""
	}
	defer null.Close()
	output, input, err := os.Pipe()
	if err != nil {
		return ""
	}
	defer output.Close()
	query, err := q.Start(process.Command{Args: []string{path, "--version"}, Env: env, Files: [3]*os.File{null, input, null}, OwnSession: true})
	input.Close()
	if err != nil {
		return ""
	}
	q.mu.Lock()
	if q.running == nil {
		q.running = map[int]bool{}
	}
	q.running[query.PID] = true
	if q.ended {
		_ = unix.Kill(-query.PID, unix.SIGKILL)
	}
	q.mu.Unlock()
	_ = output.SetReadDeadline(time.Now().Add(versionWithin))
	text, _ := io.ReadAll(io.LimitReader(output, mostVersionOutput))
	q.mu.Lock()
	defer q.mu.Unlock()
	// The whole group is ended: it may have closed its output and continue.
	_ = unix.Kill(-query.PID, unix.SIGKILL)
	delete(q.running, query.PID)
	return string(text)
}

// End ends the queries that are not answered, and starts no more.
func (q *Queries) End() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	for pid := range q.running {
		_ = unix.Kill(-pid, unix.SIGKILL)
	}
}

// AskOwnLauncher asks the MPI launcher that has started this process for its version, if no other process that it has started
// does: a file in a folder shows that, and keeps the answer for Kept. The returned function ends the query.
func AskOwnLauncher(folder, container string) (end func()) {
	q := &Queries{Start: process.Start}
	for _, pid := range process.Ancestors(os.Getpid()) {
		state, runs := process.ReadStat(pid)
		if !runs || !mpirun.IsLauncher(process.Arguments(pid)[0]) {
			continue
		}
		name := filepath.Join(folder, versionFile+container+"."+state.Started)
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // the pod's containers may run as different users
		if err != nil {
			return q.End
		}
		q.ask(pid, process.Environ(pid), func(version string) { _, _ = file.WriteString(version) })
		return func() { q.End(); file.Close() }
	}
	return q.End
}

// versionFile begins the names of the files of AskOwnLauncher. The run of the container and the launcher's start follow.
const versionFile = "mpi-version."

// Kept returns the answers of AskOwnLauncher in a run of the container, sorted.
func Kept(folder, container string) (versions []string) {
	names, _ := filepath.Glob(filepath.Join(folder, versionFile+container+".*"))
	for _, name := range names[:min(len(names), mostVersionQueries)] {
		version := string(process.Head(name, agentapi.MaxMPIVersion+1))
		if agentapi.IsMPIVersion(version) && !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	slices.Sort(versions)
	return versions
}

// isELF reports whether a file is a program that the kernel runs itself, without an interpreter that the file names.
func isELF(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && string(process.Head(path, 4)) == "\x7fELF"
}
