package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/mpirun"
	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agent/protocol"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agent/resolve"
	"opendatahub.io/mpijob/internal/agent/rsh"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// The tests run the agent as the program that it is: this test binary, under another name.
func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); mpirun.IsLauncher(name) && len(os.Args) == 2 && os.Args[1] == "--version" {
		os.Exit(printVersion(name))
	} else if name == "mpiexec" || name == "prterun" {
		os.Exit(loseFailure(os.Args[1:]))
	}
	if os.Getenv("AGENT_TEST") != "" {
		os.Exit(Main(os.Args))
	}
	os.Exit(m.Run())
}

// world is a job: a key, a folder for records, and a worker that serves.
type world struct {
	t        *testing.T
	key, run string
	address  string
	status   string
	worker   *exec.Cmd
	// grace is the pod's grace period, "4s" if empty.
	grace     string
	workerLog *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, key: mpitest.WriteKey(t), run: t.TempDir(), address: freeAddress(t), status: freeAddress(t), workerLog: &lockedBuffer{}}
	return w
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// agent is a command that runs the agent, under the name that it is called by.
func (w *world) agent(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.CommandContext(w.t.Context(), self)
	cmd.Args = args
	cmd.Env = append(os.Environ(), "AGENT_TEST=1", agentapi.EnvKey+"="+w.key, agentapi.EnvRun+"="+w.run, agentapi.EnvWait+"=10s", agentapi.EnvGrace+"="+cmp.Or(w.grace, "4s"))
	return cmd
}

// serve starts the worker and waits until it listens.
func (w *world) serve() *world {
	w.t.Helper()
	w.worker = w.agent("mpi-agent", "serve", w.address, w.status)
	w.worker.Stderr = w.workerLog
	if err := w.worker.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = w.worker.Process.Signal(os.Interrupt)
		_ = w.worker.Wait()
		if w.t.Failed() {
			w.t.Log("worker:\n" + w.workerLog.String())
		}
	})
	eventually(w.t, "the worker listens", func() bool { return strings.Contains(w.workerLog.String(), `"ready"`) })
	return w
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// ssh is the shim's command line to the worker.
func (w *world) ssh(args ...string) *exec.Cmd {
	host, port, _ := net.SplitHostPort(w.address)
	return w.agent(append([]string{"ssh", "-x", "-p", port, host}, args...)...)
}

func TestCommandRunsOnWorker(t *testing.T) {
	w := newWorld(t).serve()
	tests := map[string]struct {
		command string
		stdin   string
		code    int
		stdout  string
		stderr  string
	}{
		"output":            {command: "echo out; echo err >&2", stdout: "out\n", stderr: "err\n"},
		"exit code":         {command: "exit 42", code: 42},
		"signal":            {command: "kill -SEGV $$", code: 128 + 11},
		"input":             {command: "cat", stdin: "from here\n", stdout: "from here\n"},
		"input ends":        {command: "cat; echo end", stdout: "end\n"},
		"shell syntax":      {command: `a=1; test "$a" = 1 && echo yes | tr a-z A-Z`, stdout: "YES\n"},
		"environment":       {command: `test -n "$PATH" && echo ${MPI_AGENT_SESSION:+marked}`, stdout: "marked\n"},
		"daemon left alone": {command: "sleep 2 & echo started", stdout: "started\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := w.ssh(test.command)
			var stdout, stderr strings.Builder
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(test.stdin), &stdout, &stderr
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != test.code || stdout.String() != test.stdout || stderr.String() != test.stderr {
				t.Errorf("code %d, stdout %q, stderr %q; want %d, %q, %q", code, &stdout, &stderr, test.code, test.stdout, test.stderr)
			}
		})
	}
}

func TestOutputIsIntact(t *testing.T) {
	w := newWorld(t).serve()
	const lines = 1 << 17
	cmd := w.ssh(fmt.Sprintf("seq -f 'out %%09.0f' %d & seq -f 'err %%09.0f' %d >&2; wait", lines, lines))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]*bytes.Buffer{"out": &stdout, "err": &stderr} {
		text := strings.Split(strings.TrimSpace(got.String()), "\n")
		if len(text) != lines {
			t.Errorf("%d lines of %s arrived, want %d", len(text), name, lines)
		}
		for i, line := range text {
			if want := fmt.Sprintf("%s %09d", name, i+1); line != want {
				t.Fatalf("line %d of %s is %q, want %q", i, name, line, want)
			}
		}
	}
}

func TestStockClient(t *testing.T) {
	stock, err := exec.LookPath("ssh")
	if err != nil {
		t.Skip("no OpenSSH client here")
	}
	w := newWorld(t).serve()
	host, port, _ := net.SplitHostPort(w.address)
	cmd := exec.CommandContext(t.Context(), stock, "-F", "none", "-i", w.key, "-p", port, "-o", "BatchMode=yes",
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", host, "cat; exit 7")
	cmd.Stdin = strings.NewReader("hello")
	out, _ := cmd.Output()
	if string(out) != "hello" || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("stock ssh printed %q and ended with %d, want hello and 7", out, cmd.ProcessState.ExitCode())
	}
}

func TestStockServer(t *testing.T) {
	daemon := "/usr/sbin/sshd"
	if _, err := os.Stat(daemon); err != nil {
		t.Skip("no OpenSSH server here")
	}
	w := newWorld(t)
	public := filepath.Join(t.TempDir(), "authorized")
	out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-y", "-f", w.key).Output()
	if err != nil {
		t.Skip("no ssh-keygen here")
	}
	if err := os.WriteFile(public, out, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = os.MkdirAll("/run/sshd", 0o755)
	_, port, _ := net.SplitHostPort(w.address)
	server := exec.CommandContext(t.Context(), daemon, "-D", "-e", "-f", "none", "-p", port, "-h", w.key, "-o", "AuthorizedKeysFile="+public, "-o", "StrictModes=no", "-o", "PidFile=none")
	server.Stderr = w.workerLog
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	got, err := w.ssh("echo from sshd; exit 5").Output()
	if string(got) != "from sshd\n" || !strings.Contains(fmt.Sprint(err), "exit status 5") {
		t.Errorf("printed %q, %v\nsshd: %s", got, err, w.workerLog)
	}
}

func TestRSAKey(t *testing.T) {
	w := newWorld(t)
	key, err := rsa.GenerateKey(rand.Reader, 4096)
	if err != nil {
		t.Fatal(err)
	}
	w.key = mpitest.WritePEM(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
	w.serve()
	if out, err := w.ssh("echo in").CombinedOutput(); err != nil || string(out) != "in\n" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestLateWorkerIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	cmd := w.ssh("echo in time")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the wait is recorded", func() bool {
		found := records.Read(w.run)
		return len(found) == 1 && found[0].Trouble == agentapi.Unreachable
	})
	w.serve()
	if err := cmd.Wait(); err != nil || out.String() != "in time\n" {
		t.Errorf("%v: %s", err, &out)
	}
}

func TestMissingWorkerIsNamed(t *testing.T) {
	w := newWorld(t)
	cmd := w.ssh("true")
	cmd.Env = append(cmd.Env, agentapi.EnvWait+"=300ms")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != rsh.Failed || !strings.Contains(string(out), "mpi-agent: host 127.0.0.1: given up after 0 s: nothing listens at "+w.address) {
		t.Errorf("ended with %d: %s", code, out)
	}
	if r := records.Read(w.run); len(r) != 1 || !r[0].Over || r[0].Trouble != agentapi.Unreachable {
		t.Errorf("records are %+v", r)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	w := newWorld(t).serve()
	stranger := *w
	stranger.key = mpitest.WriteKey(t)
	identity, err := protocol.ReadIdentity(stranger.key)
	if err != nil {
		t.Fatal(err)
	}
	dial := func(anyHostKey bool, foreign func(string) bool) *protocol.Trouble {
		host, port, _ := net.SplitHostPort(w.address)
		number, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		d := protocol.Dialer{Identity: identity, Disbelief: 50 * time.Millisecond, LookUp: (&resolve.Names{}).Check, Foreign: foreign, Waiting: func(*protocol.Trouble, time.Time) {}}
		_, err = d.Dial(t.Context(), host, number, anyHostKey, 5*time.Second)
		found, is := err.(*protocol.Trouble) //nolint:errorlint // dial promises this very type
		if !is {
			t.Fatalf("error %v", err)
		}
		return found
	}
	if found := dial(false, nil); found.Code != agentapi.HostKeyMismatch {
		t.Errorf("a worker with another host key gives %q: %s", found.Code, found.Why)
	}
	ofJob := hostfile.Hosts{SlotsOf: map[string]int32{"127.0.0.1": 1, "127": 1}}
	t.Setenv(agentapi.EnvForeign, "true")
	for name, foreign := range map[string]func(string) bool{"no opt-in": nil, "a host of the job": protocol.ForeignHosts(ofJob)} {
		if found := dial(true, foreign); found.Code != agentapi.HostKeyMismatch {
			t.Errorf("%s: with StrictHostKeyChecking=no a worker with another host key gives %q: %s", name, found.Code, found.Why)
		}
	}
	t.Setenv(agentapi.EnvForeign, "")
	if protocol.ForeignHosts(hostfile.Hosts{})("elsewhere.example.com") {
		t.Error("foreign hosts are not checked although the user does not allow it")
	}
	t.Setenv(agentapi.EnvForeign, "true")
	if found := dial(true, protocol.ForeignHosts(hostfile.Hosts{})); found.Code != agentapi.KeyRefused {
		t.Errorf("a client with another key gives %q: %s", found.Code, found.Why)
	}
	var summary agentapi.Summary
	w.get("/status", &summary)
	if summary.Refused == 0 || !strings.Contains(w.workerLog.String(), "did not prove that it belongs to this job") {
		t.Errorf("the worker counts %d refused and logs: %s", summary.Refused, w.workerLog)
	}
}

// TestStatusOfWorker: a worker's status is refused without the job's key, and a client that cannot read the key says so.
func TestStatusOfWorker(t *testing.T) {
	w := newWorld(t).serve()
	var summary agentapi.Summary
	if w.get("/status", &summary); summary.Role != agentapi.RoleWorker {
		t.Errorf("with the key, the status is %+v", summary)
	}
	stranger := *w
	stranger.key = mpitest.WriteKey(t)
	var text string
	if stranger.get("/status", &text); !strings.Contains(text, "the job's key") {
		t.Errorf("with another key, the status is %s", text)
	}
	keyless := w.agent("mpi-agent", "status")
	keyless.Env = append(keyless.Env, agentapi.EnvKey+"="+filepath.Join(t.TempDir(), "missing"))
	if out, err := keyless.CombinedOutput(); err == nil || !strings.HasPrefix(string(out), "mpi-agent: read the job's key: ") {
		t.Errorf("without a key, mpi-agent status prints %s (%v)", out, err)
	}
}

func (w *world) get(path string, into any) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+w.status+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	identity, err := protocol.ReadIdentity(w.key)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+identity.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if text, is := into.(*string); is {
		*text = string(data)
		return
	}
	if err := json.Unmarshal(data, into); err != nil {
		w.t.Fatalf("%v in %s", err, data)
	}
}

func TestHalfOpenConnectionsMakeRoom(t *testing.T) {
	w := newWorld(t).serve()
	for range 200 {
		conn, err := net.Dial("tcp", w.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if out, err := w.ssh("echo through").CombinedOutput(); err != nil || string(out) != "through\n" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestClientGoneLeavesNothing(t *testing.T) {
	w := newWorld(t).serve()
	marker := filepath.Join(t.TempDir(), "alive")
	// One that ignores TERM, in a session of its own, as MPI's daemons start ranks.
	cmd := w.ssh(fmt.Sprintf(`setsid sh -c 'trap "" TERM; while :; do date +%%s%%N > %s; sleep 0.1; done' & wait`, marker))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command runs", func() bool { _, err := os.Stat(marker); return err == nil })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		before, _ := os.ReadFile(marker)
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("the command still runs 10 s after its client has gone")
		}
		if after, _ := os.ReadFile(marker); bytes.Equal(before, after) {
			return
		}
	}
}

// TestRanksHaveTheGracePeriod: a rank that handles TERM has the pod's grace period, whether its client has gone, its pod ends,
// or the launcher gets TERM; the daemon above it gets TERM only afterwards, since it would kill it.
func TestRanksHaveTheGracePeriod(t *testing.T) {
	for name, stop := range map[string]func(w *world, client *exec.Cmd){
		"client gone":      func(_ *world, client *exec.Cmd) { _ = client.Process.Kill() },
		"worker's pod":     func(w *world, _ *exec.Cmd) { _ = w.worker.Process.Signal(syscall.SIGTERM) },
		"client gets TERM": func(_ *world, client *exec.Cmd) { _ = client.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.grace = "20s"
			w.serve()
			folder := t.TempDir()
			t.Setenv("FOLDER", folder)
			const rank = `PMI_RANK=0 sh -c 'trap "sleep 7; echo written > $FOLDER/checkpoint; exit 0" TERM; echo > $FOLDER/ready; while :; do sleep 0.1; done' & child=$!`
			const daemon = `trap "kill -KILL $child; exit 1" TERM; while kill -0 $child 2>/dev/null; do sleep 0.1; done`
			client := w.ssh("FOLDER=" + folder + "; export FOLDER; " + rank + "; " + daemon)
			if err := client.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Wait() }()
			eventually(t, "the rank is seen", func() bool {
				_, err := os.Stat(folder + "/ready")
				return err == nil && strings.Contains(w.workerLog.String(), "rank started")
			})
			stop(w, client)
			eventually(t, "the checkpoint is written", func() bool { _, err := os.Stat(folder + "/checkpoint"); return err == nil })
			if found := records.Read(w.run); name == "worker's pod" && found[0].Over {
				t.Errorf("the host was lost meanwhile: %+v", found[0])
			}
		})
	}
}

// TestEndOfAPodIsNoFailure: ranks that end because their pod ends have not failed. Their host is lost.
func TestEndOfAPodIsNoFailure(t *testing.T) {
	w := newWorld(t).serve()
	client := w.ssh(`OMPI_COMM_WORLD_RANK=3 sleep 600; true`)
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rank is seen", func() bool { return strings.Contains(w.workerLog.String(), "rank started") })
	if err := w.worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = client.Wait()
	found := records.Read(w.run)
	if len(found) != 1 || found[0].Trouble != agentapi.ConnectionLost || found[0].Worker == nil || !found[0].Worker.Ending || len(found[0].Worker.Ranks) > 0 {
		t.Fatalf("records are %+v", found)
	}
	if got := outcome.Summarize(agentapi.Summary{}, found, hostfile.Hosts{}, time.Now()); got.Code != agentapi.ConnectionLost || len(got.Hosts) != 1 || len(got.Ranks) > 0 {
		t.Errorf("the launcher's summary is %+v", got)
	}
}

func TestRanksAreAttributed(t *testing.T) {
	w := newWorld(t).serve()
	if out, err := w.ssh(`OMPI_COMM_WORLD_RANK=3 sh -c 'sleep 0.3; kill -SEGV $$' & OMPI_COMM_WORLD_RANK=2 sleep 0.5 & wait; exit 1`).CombinedOutput(); err == nil {
		t.Fatalf("no error: %s", out)
	}
	found := records.Read(w.run)
	if len(found) != 1 || found[0].Worker == nil || len(found[0].Worker.Ranks) != 1 {
		t.Fatalf("records are %+v", found)
	}
	if rank := found[0].Worker.Ranks[0]; rank.Rank != 3 || rank.Signal != 11 || rank.ExitCode != 139 {
		t.Errorf("rank is %+v, want 3 by signal 11", rank)
	}
	if found[0].Worker.InitSeconds <= 0 {
		t.Errorf("it is not told how long the first rank took: %+v", found[0].Worker)
	}
	var metrics string
	w.get("/metrics", &metrics)
	for _, want := range []string{"mpi_agent_ranks_failed_total 1\n", "mpi_agent_connections_total 1\n"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %q:\n%s", want, metrics)
		}
	}
	// On a machine that runs other ranks, as no container does, these are seen too.
	if seen, running := value(t, metrics, "mpi_agent_ranks_seen_total"), value(t, metrics, "mpi_agent_ranks_running"); seen-running < 2 {
		t.Errorf("%d ranks were seen and %d run, want 2 that have ended:\n%s", seen, running, metrics)
	}
}

// value is that of a metric.
func value(t *testing.T, metrics, name string) int {
	t.Helper()
	_, rest, found := strings.Cut(metrics, "\n"+name+" ")
	if !found {
		t.Fatalf("there is no metric %s:\n%s", name, metrics)
	}
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLaunch(t *testing.T) {
	script := func(text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "run.sh")
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mpirun := filepath.Join(t.TempDir(), "mpirun")
	if err := os.Symlink("/bin/sh", mpirun); err != nil {
		t.Fatal(err)
	}
	// launch is a run of MPI's launcher that starts no rank of a program, and ends without a message.
	launch := func(program string, args ...string) []string {
		return append([]string{mpirun, "-c", "sleep 1; exit 141", program}, args...)
	}
	tests := map[string]struct {
		command []string
		code    int
		stdout  string
		stderr  string
	}{
		"ranks with Windows line ends": {
			launch(script("#!/bin/sh\r\necho\r\n", 0o700)), 141, "", "run.sh\" cannot be started: the first line, which names the interpreter /bin/sh, ends with a carriage return",
		},
		"ranks without interpreter": {launch(script("#!/opt/no/python\n", 0o700)), 141, "", "run.sh\" cannot be started: its interpreter /opt/no/python is not in the image"},
		"ranks with interpreter":    {launch("sh", script("#!/bin/sh\r\necho\r\n", 0o700)), 141, "", ""},
		"exit code":                 {[]string{"sh", "-c", "echo out; exit 3"}, 3, "out\n", ""},
		"signal":                    {[]string{"sh", "-c", "kill -9 $$"}, 137, "", ""},
		"program missing":           {[]string{"mpirn", "-n", "2"}, 127, "", `The launcher's command "mpirn" is not in its image`},
		"Windows line ends": {
			[]string{script("#!/bin/sh\r\necho\r\n", 0o700)}, 126, "", "the first line, which names the interpreter /bin/sh, ends with a carriage return",
		},
		"interpreter missing": {[]string{script("#! /opt/no/sh -e\necho\n", 0o700)}, 126, "", "its interpreter /opt/no/sh is not in the image"},
		"no interpreter":      {[]string{script("echo\n", 0o700)}, 126, "", "cannot be started: it is a script whose first line is not #!"},
		"ssh in PATH":         {[]string{"sh", "-c", "echo $PATH | cut -d: -f1"}, 0, "/opt/mpi-agent/bin\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := newWorld(t).agent(append([]string{"mpi-agent", "launch", "--"}, test.command...)...)
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != test.code || stdout.String() != test.stdout || !strings.Contains(stderr.String(), test.stderr) || strings.Contains(stderr.String(), "cannot be started") != (test.stderr != "" && test.code != 127) {
				t.Errorf("code %d, stdout %q, stderr %q", code, &stdout, &stderr)
			}
		})
	}
}

// TestLaunchInTheBackground: a command that succeeds before its MPI launcher has ended did not wait for it.
func TestLaunchInTheBackground(t *testing.T) {
	mpirun := filepath.Join(t.TempDir(), "mpirun")
	if err := os.Symlink("/bin/sh", mpirun); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		script string
		want   string
	}{
		"in the background":     {"nohup $M -c 'sleep 30' >/dev/null 2>&1 & echo started", "while mpirun was still running in the background"},
		"awaited":               {"$M -c 'sleep 0.1' & wait", ""},
		"another program":       {"sleep 30 & echo started", ""},
		"a command that failed": {"$M -c 'sleep 30' & exit 3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := newWorld(t).agent("mpi-agent", "launch", "--", "sh", "-c", test.script)
			cmd.Env = append(cmd.Env, "M="+mpirun)
			var stderr strings.Builder
			cmd.Stderr, cmd.WaitDelay = &stderr, time.Second
			_ = cmd.Run()
			if got := stderr.String(); !strings.Contains(got, test.want) || test.want == "" && strings.Contains(got, "background") {
				t.Errorf("stderr is %q", got)
			}
		})
	}
}

func TestInstall(t *testing.T) {
	w := newWorld(t)
	folder := t.TempDir()
	for range 2 {
		if out, err := w.agent("mpi-agent", "install", folder).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	cmd := w.agent("ssh", "-V")
	cmd.Path = filepath.Join(folder, "bin", "ssh")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "mpi-agent") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(folder, "lib")); err == nil {
		t.Error("there is a library that the image does not have")
	}
	image := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	libraries := []string{filepath.Base(agentapi.ProfileLibrary), filepath.Base(agentapi.ExchangeLibrary), filepath.Base(agentapi.GPULibrary)}
	for _, err := range []error{
		os.Mkdir(filepath.Join(image, "lib"), 0o755),
		os.WriteFile(filepath.Join(image, "lib", libraries[0]), []byte(libraries[0]), 0o600),
		os.WriteFile(filepath.Join(image, "lib", libraries[1]), []byte(libraries[1]), 0o600),
		os.WriteFile(filepath.Join(image, "lib", libraries[2]), []byte(libraries[2]), 0o600),
		exec.CommandContext(t.Context(), "cp", self, filepath.Join(image, "mpi-agent")).Run(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		install := w.agent("mpi-agent", "install", folder)
		install.Path = filepath.Join(image, "mpi-agent")
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, name := range libraries {
		library := filepath.Join(folder, "lib", name)
		if data, err := os.ReadFile(library); err != nil || string(data) != name {
			t.Errorf("%s is %q, %v", name, data, err)
		}
		if info, err := os.Stat(library); err == nil && info.Mode().Perm() != 0o755 {
			t.Errorf("%s is %v", name, info.Mode())
		}
	}
	if info, err := os.Stat(filepath.Join(folder, "run")); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("run is %v, %v", info, err)
	}
}
