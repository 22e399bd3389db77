package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

func TestIsLauncher(t *testing.T) {
	for program, want := range map[string]bool{
		"mpirun": true, "/usr/bin/mpiexec": true, "mpiexec.hydra": true, "mpirun.openmpi": true, "orterun": true, "/opt/prterun": true,
		"sh": false, "horovodrun": false, "mpirunner": false, "hydra_pmi_proxy": false, "": false,
	} {
		if got := isLauncher(program); got != want {
			t.Errorf("%q: %v, want %v", program, got, want)
		}
	}
}

func TestToleratesFailures(t *testing.T) {
	for name, test := range map[string]struct {
		command string
		env     []string
		want    bool
	}{
		"MPICH":                          {command: "-n 4 train --epochs 3"},
		"MPICH without clean-up":         {command: "-disable-auto-cleanup -n 4 train", want: true},
		"Open MPI 4":                     {command: "-np 4 --mca btl tcp,self train"},
		"Open MPI 4 with recovery":       {command: "--enable-recovery -np 4 train", want: true},
		"Open MPI 4 continuous":          {command: "-continuous -np 4 train", want: true},
		"Open MPI 4 ignores exit codes":  {command: "--mca orte_abort_on_non_zero_status 0 -np 4 train", want: true},
		"Open MPI 4 by its variable":     {command: "-np 4 train", env: []string{"OMPI_MCA_orte_enable_recovery=1"}, want: true},
		"Open MPI 5 fault tolerance":     {command: "--with-ft ulfm -np 4 train", want: true},
		"Open MPI 5 fault tolerance, =":  {command: "--with-ft=mpi -np 4 train", want: true},
		"Open MPI 5 runtime options":     {command: "--rtos recoverable -np 4 train", want: true},
		"Intel MPI continues":            {command: "-n 4 train", env: []string{"I_MPI_FAULT_CONTINUE=on"}, want: true},
		"a file named like an option":    {command: "-n 4 continuous"},
		"variables of the agent's shell": {command: "-n 4 train", env: []string{"OMPI_MCA_mpi_yield_when_idle=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := toleratesFailures(strings.Fields(test.command), test.env); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

var (
	crash  = agentapi.RankEnd{Rank: 1, ExitCode: 139, Signal: 11, Program: "train", At: 6000}
	failed = agentapi.RankEnd{Rank: 2, ExitCode: 42, Program: "train", At: 5000}
	piped  = agentapi.RankEnd{Rank: 0, ExitCode: 141, Signal: 13, Program: "train", At: 1}
	killed = agentapi.RankEnd{Rank: 0, ExitCode: 137, Signal: 9, Program: "train"}
)

// sessionOf returns the record of a session of the launcher 7, in which ranks failed.
func sessionOf(over bool, quietSince int64, ends ...agentapi.RankEnd) record {
	r := record{Host: "pi-worker-0", Process: 100, Ancestors: []int{8, 7}, Over: over, Worker: &agentapi.Summary{Ranks: ends}}
	if !over {
		r.Worker.Activity = &agentapi.Activity{Ranks: []agentapi.RankActivity{{Rank: 3, Doing: agentapi.Polling}}, QuietSince: quietSince}
	}
	return r
}

func TestLauncherIsOverdue(t *testing.T) {
	now := time.Unix(2000, 0)
	quiet := now.Add(-25 * time.Second).Unix()
	disconnected := sessionOf(true, 0, killed)
	disconnected.Trouble = agentapi.ConnectionLost
	ssh := disconnected
	ssh.Worker = nil
	unsampled := sessionOf(false, 0)
	unsampled.Worker = nil
	unreached := record{Host: "pi-worker-7", Process: 100, Ancestors: []int{8, 7}, Over: true, Trouble: agentapi.Unreachable, Why: "no such host"}
	idle := sessionOf(false, quiet)
	idle.Worker.Activity = &agentapi.Activity{}
	another := sessionOf(true, 0, crash)
	another.Ancestors = []int{6}
	for name, test := range map[string]struct {
		records  []record
		own      agentapi.Activity
		tolerant bool
		over     bool
		since    time.Duration
		want     bool
	}{
		"MPI stopped the host, others compute":       {records: []record{sessionOf(true, 0, crash, killed), sessionOf(false, 0)}, since: 20 * time.Second, want: true},
		"exit code, the host's others were killed":   {records: []record{sessionOf(true, 0, failed, killed), sessionOf(false, 0)}, since: 20 * time.Second, want: true},
		"exit code, others wait":                     {records: []record{sessionOf(true, 0, failed), sessionOf(false, quiet)}, since: 20 * time.Second, want: true},
		"exit code, others compute":                  {records: []record{sessionOf(true, 0, failed), sessionOf(false, 0)}, since: time.Hour},
		"exit code on the same host, others wait":    {records: []record{sessionOf(false, quiet, failed)}, since: 20 * time.Second, want: true},
		"killed by somebody, others wait":            {records: []record{sessionOf(false, quiet, killed)}, since: 20 * time.Second, want: true},
		"ranks beside the launcher wait":             {records: []record{sessionOf(true, 0, failed)}, own: *sessionOf(false, quiet).Worker.Activity, since: 20 * time.Second, want: true},
		"ranks beside the launcher compute":          {records: []record{sessionOf(true, 0, failed)}, own: *sessionOf(false, 0).Worker.Activity, since: 20 * time.Second},
		"they have waited for a moment":              {records: []record{sessionOf(true, 0, failed), sessionOf(false, now.Unix()-5)}, since: 20 * time.Second},
		"MPI is about to end the others":             {records: []record{sessionOf(true, 0, crash), sessionOf(false, quiet)}, since: 19 * time.Second},
		"told to continue":                           {records: []record{sessionOf(true, 0, crash, killed), sessionOf(false, quiet)}, since: time.Hour, tolerant: true},
		"the launcher has ended":                     {records: []record{sessionOf(true, 0, crash, killed), sessionOf(false, quiet)}, since: time.Hour, over: true},
		"none is left":                               {records: []record{sessionOf(true, 0, crash, killed)}, since: time.Hour},
		"no rank failed":                             {records: []record{sessionOf(true, 0), sessionOf(false, quiet)}, since: time.Hour},
		"a host was lost, others wait":               {records: []record{disconnected, sessionOf(false, quiet)}, since: 20 * time.Second, want: true},
		"a host was lost, others compute":            {records: []record{disconnected, sessionOf(false, 0)}, since: 20 * time.Second, want: true},
		"all hosts were lost":                        {records: []record{disconnected}, since: 20 * time.Second, want: true},
		"a program's own ssh was disconnected":       {records: []record{ssh, sessionOf(false, quiet)}, since: time.Hour},
		"a host was not reached, no rank started":    {records: []record{unreached, idle}, since: 20 * time.Second, want: true},
		"a host was not reached by a rank's own ssh": {records: []record{unreached, sessionOf(false, quiet)}, since: time.Hour},
		"MPI is about to notice the host":            {records: []record{unreached}, since: 19 * time.Second},
		"MPI is about to notice the lost host":       {records: []record{disconnected}, since: 19 * time.Second},
		"a host was lost, told to continue":          {records: []record{disconnected}, since: time.Hour, tolerant: true},
		"a rank crashed and its worker was deleted":  {records: []record{sessionOf(true, 0, crash), disconnected, sessionOf(false, quiet)}, since: time.Hour, want: true},
		"what the others do is not known":            {records: []record{sessionOf(true, 0, failed), unsampled}, since: time.Hour},
		"the rank of an earlier launcher had failed": {records: []record{another, sessionOf(false, quiet)}, since: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			launchers := []*mpiLauncher{{pid: 6, over: true, code: 139}, {pid: 7, tolerant: test.tolerant, over: test.over, code: -1}}
			all := launches(launchers, nil, test.records, test.own)
			if got := all[1].isOverdue(now.Add(-test.since), 20*time.Second, now); got != test.want {
				t.Errorf("%v, want %v: %+v", got, test.want, all[1])
			}
		})
	}
}

func TestLostFailure(t *testing.T) {
	for name, test := range map[string]struct {
		records  []record
		own      []agentapi.RankEnd
		launcher mpiLauncher
		command  int
		want     int32
	}{
		"the command itself succeeded":              {records: []record{sessionOf(true, 0, killed, failed)}, launcher: mpiLauncher{pid: 7, code: -1}, command: 7, want: 42},
		"others crashed because of it":              {records: []record{sessionOf(true, 0, piped, crash), sessionOf(true, 0, failed)}, launcher: mpiLauncher{pid: 7, code: -1}, command: 7, want: 42},
		"a script's launcher succeeded":             {records: []record{sessionOf(true, 0, failed)}, launcher: mpiLauncher{pid: 7, over: true, code: 0}, command: 5, want: 42},
		"a script handled the failure":              {records: []record{sessionOf(true, 0, failed)}, launcher: mpiLauncher{pid: 7, over: true, code: 42}, command: 5},
		"a script's launcher ended unknown":         {records: []record{sessionOf(true, 0, failed)}, launcher: mpiLauncher{pid: 7, over: true, code: -1}, command: 5},
		"told to continue":                          {records: []record{sessionOf(true, 0, failed)}, launcher: mpiLauncher{pid: 7, over: true, code: 0, tolerant: true}, command: 7},
		"ranks that were ended at the end":          {records: []record{sessionOf(true, 0, killed)}, launcher: mpiLauncher{pid: 7, over: true, code: 0}, command: 7},
		"a rank in the launcher's pod":              {own: []agentapi.RankEnd{crash}, launcher: mpiLauncher{pid: 7, over: true, code: 0}, command: 7, want: 139},
		"a rank in the launcher's pod, long before": {own: []agentapi.RankEnd{crash}, launcher: mpiLauncher{pid: 7, over: true, code: 0, badEnds: 1}, command: 7},
		"all ranks succeeded":                       {records: []record{sessionOf(true, 0)}, launcher: mpiLauncher{pid: 7, over: true, code: 0}, command: 7},
	} {
		t.Run(name, func(t *testing.T) {
			_, end, lost := lostFailure(launches([]*mpiLauncher{&test.launcher}, test.own, test.records, agentapi.Activity{}), test.command)
			if end.ExitCode != test.want || lost != (test.want != 0) {
				t.Errorf("%+v, %v; want %d", end, lost, test.want)
			}
		})
	}
}

// TestSortByCause: the first of a run's failed ranks is the one that failed by itself.
// TestMissedRank: the one rank whose end nobody saw has failed if the launcher ended all others.
func TestMissedRank(t *testing.T) {
	t.Parallel()
	ended := func(signal int32, of int32, numbers ...int32) (ends []agentapi.RankEnd) {
		for _, rank := range numbers {
			ends = append(ends, agentapi.RankEnd{Rank: rank, Of: of, ExitCode: 128 + signal, Signal: signal})
		}
		return ends
	}
	for name, test := range map[string]struct {
		failed   []agentapi.RankEnd
		tolerant bool
		code     int
		want     agentapi.RankEnd
	}{
		"the second of two":        {failed: ended(15, 2, 0), code: 7, want: agentapi.RankEnd{Rank: 1, Of: 2, ExitCode: 7}},
		"the first of four":        {failed: ended(9, 4, 3, 1, 2), code: 1, want: agentapi.RankEnd{Rank: 0, Of: 4, ExitCode: 1}},
		"a crash":                  {failed: ended(15, 2, 0), code: 139, want: agentapi.RankEnd{Rank: 1, Of: 2, ExitCode: 139, Signal: 11}},
		"one of two":               {failed: ended(15, 3, 0), code: 7},
		"another one failed":       {failed: ended(11, 2, 0), code: 7},
		"the launcher was stopped": {failed: ended(15, 2, 0), code: 143},
		"the launcher succeeded":   {failed: ended(15, 2, 0)},
		"the launcher runs":        {failed: ended(15, 2, 0), code: -1},
		"the number is unknown":    {failed: ended(15, 0, 0), code: 7},
		"the same one twice":       {failed: ended(15, 3, 0, 0), code: 7},
		"all were seen":            {failed: ended(15, 2, 0, 1), code: 7},
		"two programs":             {failed: append(ended(15, 3, 0), ended(15, 2, 1)...), code: 7},
		"a rank may fail":          {failed: ended(15, 2, 0), code: 7, tolerant: true},
		"no rank was seen":         {code: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := launch{mpiLauncher: mpiLauncher{tolerant: test.tolerant}, failed: test.failed}
			got, missed := l.missed(test.code)
			if want := test.want != (agentapi.RankEnd{}); missed != want || missed && got != test.want {
				t.Errorf("%+v, %v, want %+v", got, missed, test.want)
			}
		})
	}
}

func TestSortByCause(t *testing.T) {
	segv := func(rank int32, at int64) agentapi.RankEnd {
		return agentapi.RankEnd{Rank: rank, ExitCode: 139, Signal: 11, At: at}
	}
	exit := func(rank, code int32, at int64) agentapi.RankEnd {
		return agentapi.RankEnd{Rank: rank, ExitCode: code, At: at}
	}
	term := agentapi.RankEnd{Rank: 0, ExitCode: 143, Signal: 15, At: 1}
	oom := agentapi.RankEnd{Rank: 3, ExitCode: 137, Signal: 9, OOM: true, At: 9000}
	for name, test := range map[string]struct {
		ends []agentapi.RankEnd
		want []int32
	}{
		"in the order of time":                          {[]agentapi.RankEnd{exit(2, 1, 3000), exit(1, 1, 1000)}, []int32{1, 2}},
		"MPI ended the others":                          {[]agentapi.RankEnd{term, exit(2, 1, 3000)}, []int32{2, 0}},
		"memory first":                                  {[]agentapi.RankEnd{exit(2, 1, 3000), oom}, []int32{3, 2}},
		"others crashed because a rank exited":          {[]agentapi.RankEnd{segv(1, 1100), exit(2, 42, 1000)}, []int32{2, 1}},
		"a rank lost the one that crashed, seen later":  {[]agentapi.RankEnd{segv(1, 1400), exit(3, 14, 1000), exit(2, 14, 1100)}, []int32{1, 3, 2}},
		"a rank lost the one that crashed, seen first":  {[]agentapi.RankEnd{exit(3, 14, 1000), segv(1, 900)}, []int32{1, 3}},
		"an error of MPI, and a crash long afterwards":  {[]agentapi.RankEnd{exit(3, 14, 1000), segv(1, 9000)}, []int32{3, 1}},
		"an error of MPI, and MPI ended the others":     {[]agentapi.RankEnd{term, exit(3, 16, 1000)}, []int32{3, 0}},
		"a rank lost the one that exited, seen later":   {[]agentapi.RankEnd{exit(0, 15, 1000), exit(1, 42, 1200)}, []int32{1, 0}},
		"all lost a peer":                               {[]agentapi.RankEnd{exit(3, 15, 1000), exit(1, 15, 1100)}, []int32{3, 1}},
		"an error that programs have, and then a crash": {[]agentapi.RankEnd{exit(3, 3, 1000), segv(1, 1100)}, []int32{3, 1}},
		"none": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			sortByCause(test.ends)
			var order []int32
			for _, end := range test.ends {
				order = append(order, end.Rank)
			}
			if !slices.Equal(order, test.want) {
				t.Errorf("%v, want %v", order, test.want)
			}
		})
	}
}

// loseFailure is an MPI launcher that loses a failure, as MPICH's does: it runs each argument on the worker, waits for all of
// them, and succeeds. With AGENT_TEST_HANG it hangs instead, as Open MPI's may if it loses its hosts.
func loseFailure(commands []string) int {
	self, err := os.Executable()
	if err != nil {
		return 99
	}
	var started []*exec.Cmd
	for _, command := range commands {
		cmd := exec.Command(self)
		cmd.Args = append(append([]string{"ssh"}, strings.Fields(os.Getenv("AGENT_TEST_WORKER"))...), command)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if cmd.Start() != nil {
			return 98
		}
		started = append(started, cmd)
	}
	for _, cmd := range started {
		_ = cmd.Wait()
	}
	if os.Getenv("AGENT_TEST_HANG") != "" {
		select {}
	}
	return 0
}

// TestLostFailures: a launcher that does not notice that a rank failed is ended, or its success does not count.
func TestLostFailures(t *testing.T) {
	const survivor = "PMI_RANK=0 sleep 600"
	for name, test := range map[string]struct {
		// command is run with $M, the launcher.
		command string
		env     string
		code    int
		stderr  string
	}{
		"others wait":           {command: `exec $M "$CRASH" "$SURVIVOR"`, code: 139, stderr: "Rank 1 (sh) ended by signal 11 (SIGSEGV). mpiexec did not end the other ranks"},
		"others wait, script":   {command: `$M "$CRASH" "$SURVIVOR"; code=$?; echo continued; exit $code`, code: 143, stderr: "mpiexec did not end the other ranks"},
		"none is left":          {command: `exec $M "$CRASH"`, code: 139, stderr: "mpiexec did not notice, and reported success"},
		"none is left, script":  {command: `$M "$CRASH"; true`, code: 139, stderr: "mpiexec did not notice, and reported success"},
		"exit code":             {command: `exec $M "PMI_RANK=2 sh -c 'while [ ! -e $GO ]; do sleep 0.1; done; exit 42'"`, code: 42, stderr: "Rank 2 (sh) ended with code 42"},
		"told to continue":      {command: `exec $M "$CRASH" "PMI_RANK=0 sleep 4"`, env: "I_MPI_FAULT_CONTINUE=1"},
		"disabled by a setting": {command: `$M "$CRASH" "PMI_RANK=0 sleep 4"; exit 3`, env: agentapi.EnvEndAfter + "=never", code: 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).serve()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			launcher := filepath.Join(t.TempDir(), "mpiexec")
			if err := os.Symlink(self, launcher); err != nil {
				t.Fatal(err)
			}
			started := filepath.Join(t.TempDir(), "started")
			address := strings.Split(w.address, ":")
			cmd := w.agent("mpi-agent", "launch", "--", "sh", "-c", test.command)
			cmd.Env = append(
				cmd.Env, agentapi.EnvEndAfter+"=1s", "M="+launcher, "AGENT_TEST_WORKER=-p "+address[1]+" "+address[0],
				"GO="+started, "CRASH=PMI_RANK=1 sh -c 'while [ ! -e "+started+" ]; do sleep 0.1; done; kill -SEGV $$'", "SURVIVOR="+survivor, test.env,
			)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			start := time.Now()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the rank is seen", func() bool {
				return strings.Contains(w.workerLog.String(), `"rank":1`) || strings.Contains(w.workerLog.String(), `"rank":2`)
			})
			if err := os.WriteFile(started, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != test.code || !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("ended with %d after %s, want %d: %s", code, time.Since(start), test.code, &stderr)
			}
			// The worker ends what the launcher left behind.
			eventually(t, "no rank is left", func() bool {
				var metrics string
				w.get("/metrics", &metrics)
				return value(t, metrics, "mpi_agent_sessions_active") == 0
			})
		})
	}
}

// TestLostHost: a launcher that does not notice that a host was lost is ended.
func TestLostHost(t *testing.T) {
	w := newWorld(t).serve()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	launcher := filepath.Join(t.TempDir(), "mpiexec")
	if err := os.Symlink(self, launcher); err != nil {
		t.Fatal(err)
	}
	started := filepath.Join(t.TempDir(), "started")
	address := strings.Split(w.address, ":")
	cmd := w.agent("mpi-agent", "launch", "--", launcher, "echo $$ > "+started+"; PMI_RANK=0 exec sleep 600")
	cmd.Env = append(cmd.Env, agentapi.EnvEndAfter+"=1s", "AGENT_TEST_WORKER=-p "+address[1]+" "+address[0], "AGENT_TEST_HANG=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rank is known to the launcher", func() bool {
		return slices.ContainsFunc(readRecords(w.run), func(r record) bool { return r.Worker != nil })
	})
	// A pod's processes end with its agent, which is their first process.
	pid, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	rank, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err := errors.Join(err, w.worker.Process.Kill(), unix.Kill(rank, unix.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	const want = "was lost: the connection to it was lost while its ranks ran"
	if code := cmd.ProcessState.ExitCode(); code != 128+15 || !strings.Contains(stderr.String(), want) || !strings.Contains(stderr.String(), "mpiexec did not end the other ranks") {
		t.Errorf("ended with %d: %s", code, &stderr)
	}
}

// TestWorkersAreAskedOfSilentHosts: the rank that failed is known although MPI has killed the rsh that would have reported it.
func TestWorkersAreAskedOfSilentHosts(t *testing.T) {
	for name, test := range map[string]struct {
		rank string
		want int
	}{
		"a rank has failed": {"PMI_RANK=2 sh -c 'sleep 0.2; exit 42'", 42},
		"none has failed":   {"PMI_RANK=2 sh -c 'sleep 0.2; exit 0'", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).serve()
			folder := t.TempDir()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(self, filepath.Join(folder, "ssh")); err != nil {
				t.Fatal(err)
			}
			host, port, _ := net.SplitHostPort(w.address)
			// A stopped rsh hears nothing; what it has started goes on.
			script := fmt.Sprintf(`cd %s
./ssh -x -p %s %s "echo > %s/begun; %s; echo > %s/ended; sleep 60" & rsh=$!
until [ -e begun ]; do sleep 0.05; done
kill -STOP $rsh
until [ -e ended ]; do sleep 0.05; done
sleep 0.3
kill -KILL $rsh
exit 15`, folder, port, host, folder, test.rank, folder)
			cmd := w.agent("mpi-agent", "launch", "--", "sh", "-c", script)
			message := filepath.Join(folder, "message")
			cmd.Env = append(cmd.Env, agentapi.EnvTermination+"="+message)
			if err := os.WriteFile(message, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != 15 {
				t.Errorf("ended with %d: %s", code, out)
			}
			data, err := os.ReadFile(message)
			if err != nil {
				t.Fatal(err)
			}
			summary, _ := agentapi.ParseSummary(string(data))
			switch {
			case test.want == 0 && len(summary.Ranks) > 0:
				t.Errorf("it says %s", data)
			case test.want > 0 && (len(summary.Ranks) == 0 || summary.Ranks[0].Rank != 2 || int(summary.Ranks[0].ExitCode) != test.want || summary.Code != agentapi.RankFailed):
				t.Errorf("it says %s, want rank 2 with exit code %d", data, test.want)
			}
		})
	}
}

// TestHaveRanks: a launcher that gets TERM is left alone while ranks of it are known to run.
func TestHaveRanks(t *testing.T) {
	const launcher = 40
	worker := func(seen int32, ended ...agentapi.RankEnd) *agentapi.Summary {
		return &agentapi.Summary{Role: agentapi.RoleWorker, RanksSeen: seen, Ranks: ended}
	}
	for name, test := range map[string]struct {
		record record
		want   bool
	}{
		"ranks run":         {record{Worker: worker(2)}, true},
		"one of two runs":   {record{Worker: worker(2, agentapi.RankEnd{Rank: 1})}, true},
		"all have ended":    {record{Worker: worker(2, agentapi.RankEnd{Rank: 0}, agentapi.RankEnd{Rank: 1})}, false},
		"none has started":  {record{}, false},
		"the session ended": {record{Worker: worker(2), Over: true}, false},
		"another launcher":  {record{Worker: worker(2), Ancestors: []int{7}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &supervisor{folder: t.TempDir(), ranks: newRanks(slog.New(slog.DiscardHandler), t.TempDir())}
			test.record.Host, test.record.Process = "pi-worker-0", 50
			if test.record.Ancestors == nil {
				test.record.Ancestors = []int{45, launcher}
			}
			test.record.write(s.folder)
			if got := s.haveRanks(launcher); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
