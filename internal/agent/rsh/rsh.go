// Package rsh runs a command on another host of the job: what MPI runs under the name of ssh.
package rsh

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/mpirun"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/protocol"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agent/resolve"
	"opendatahub.io/mpijob/internal/agentapi"
)

// Failed is ssh(1)'s exit code for its own failures, which MPI and others tell from the program's.
const Failed = 255

const (
	// sayEvery is how often a wait is reported.
	sayEvery  = 10 * time.Second
	disbelief = 15 * time.Second
)

// Run runs a command on another host of the job: what MPI starts under the name of ssh.
func Run(args []string, stdin *os.File, stdout, stderr io.Writer) int {
	t, err := parseSSH(args)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "mpi-agent:", err)
		return Failed
	case t.version:
		fmt.Fprintln(stderr, "OpenSSH_9.0 compatible, mpi-agent")
		return 0
	case t.command != "" && hostfile.IsSelf(t.host):
		err := syscall.Exec("/bin/sh", []string{"/bin/sh", "-c", t.command}, os.Environ())
		fmt.Fprintln(stderr, "mpi-agent: cannot start /bin/sh:", err)
		return Failed
	}
	code, err := t.run(stdin, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "mpi-agent: host %s: %v\n", t.host, err)
		return Failed
	}
	return code
}

// run connects and runs the command; its exit code is the command's, 128 and the signal where a signal ended it.
func (t target) run(stdin *os.File, stdout, stderr io.Writer) (int, error) {
	identity, err := protocol.ReadIdentity(t.identity)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	t.host = hostfile.Read(agentapi.Hostfile).FullName(t.host)
	known := records.Record{Host: t.host, Port: t.port, Process: os.Getpid(), Container: process.ContainerRun(), Ancestors: process.Ancestors(os.Getpid()), Since: time.Now()}
	names := resolve.New(resolve.Conf)
	client, err := t.connect(ctx, identity, names, &known, stderr)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	known.Reached, known.Trouble, known.Why = time.Now(), "", ""
	known.Write(records.Folder())
	report := startReport()
	defer report()
	t.awaitOwnName(ctx, names.Lookup)
	code, err := t.execute(client, stdin, stdout, stderr, &known)
	known.Over, known.Seconds = true, int32(time.Since(known.Reached).Seconds())
	known.Write(records.Folder())
	return code, err
}

// connect waits for the host, and reports the wait.
func (t target) connect(ctx context.Context, identity protocol.Identity, names *resolve.Names, known *records.Record, stderr io.Writer) (*ssh.Client, error) {
	said := time.Now()
	supervised := os.Getenv(records.EnvSupervised) != ""
	job := hostfile.Read(agentapi.Hostfile)
	wait, addressWait := waitTimes(t)
	inDNS := false
	d := protocol.Dialer{Identity: identity, Disbelief: disbelief, LookUp: names.Check, Foreign: protocol.ForeignHosts(job), Job: job, AddressWait: addressWait, MayGetAddress: func(host string) bool {
		inDNS = inDNS || t.isThisPodInDNS(ctx, names.Lookup)
		return isOfJob(host) && inDNS
	}, Waiting: func(found *protocol.Trouble, since time.Time) {
		if known.Why != found.Why {
			known.Trouble, known.Why = found.Code, found.Why
			known.Write(records.Folder())
		}
		if !supervised && time.Since(said) >= sayEvery {
			said = time.Now()
			fmt.Fprintf(stderr, "mpi-agent: waiting for %s for %d s: %s\n", t.host, int(time.Since(since).Seconds()), found.Why)
		}
	}}
	client, err := d.Dial(ctx, t.host, t.port, t.anyHostKey, wait)
	if found, is := errors.AsType[*protocol.Trouble](err); is {
		known.SetTrouble(found.Code, found.Why)
		known.Over, known.Seconds = true, int32(time.Since(known.Since).Seconds())
		known.Write(records.Folder())
		return nil, fmt.Errorf("given up after %d s: %w", known.Seconds, found)
	}
	return client, err
}

// isOfJob reports whether the job's hostfile contains a host now; without a hostfile, as on workers, any host may be of the job.
func isOfJob(host string) bool {
	hosts := hostfile.Read(agentapi.Hostfile)
	_, is := hosts.SlotsOf[hostfile.Short(host)]
	return is || len(hosts.Names) == 0
}

// isThisPodInDNS reports whether the DNS has this pod's own name in the domain of the host. Where it has not, as with dnsPolicy: Default or
// without the job's Service, it will not have the host's either. Without a domain nothing is known.
func (t target) isThisPodInDNS(ctx context.Context, lookup func(ctx context.Context, host string) ([]string, error)) bool {
	name := t.ownName()
	if name == "" {
		return true
	}
	_, err := lookup(ctx, name)
	return !protocol.IsNameless(err)
}

// ownName is this pod's name in the domain of the host, which is not in /etc/hosts, unlike the short one; "" if the host has no domain.
func (t target) ownName() string {
	_, domain, found := strings.Cut(t.host, ".")
	self, err := os.Hostname()
	if err != nil || !found || net.ParseIP(t.host) != nil {
		return ""
	}
	return self + "." + domain
}

// awaitOwnName waits until the cluster's DNS knows this pod's own name, where what is to be started asks for it: Hydra's
// proxies call back to the launcher by its name, and give up at once. That entry comes a little after the pod.
func (t target) awaitOwnName(ctx context.Context, lookup func(ctx context.Context, host string) ([]string, error)) {
	const most, pause = 30 * time.Second, 100 * time.Millisecond
	name := t.ownName()
	if name == "" || !strings.Contains(t.command, "hydra_") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		if _, err := lookup(ctx, name); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// waitTimes are how long to wait for a host that has an address, and for one that has none: as the user sets for both (agentapi.EnvWait),
// or else the default, and the operator's time for a pod to get a node. If the command line sets more, it applies.
// Tools set a ConnectTimeout of a few seconds to notice hosts that are down, not pods that are starting.
func waitTimes(t target) (wait, addressWait time.Duration) {
	wait, isSet := durationOf(agentapi.EnvWait)
	addressWait, hasAddressWait := durationOf(agentapi.EnvAddressWait)
	if !isSet {
		wait = agentapi.DefaultWait
	}
	if isSet || !hasAddressWait {
		addressWait = wait
	}
	return max(wait, t.wait), max(addressWait, wait, t.wait)
}

// durationOf returns a variable that contains a duration above 0, if it does.
func durationOf(name string) (time.Duration, bool) {
	value, err := time.ParseDuration(os.Getenv(name))
	return value, err == nil && value > 0
}

// execute runs the command over a connection.
func (t target) execute(client *ssh.Client, stdin *os.File, stdout, stderr io.Writer, known *records.Record) (int, error) {
	channel, requests, err := client.OpenChannel("session", nil)
	if err != nil {
		return 0, fmt.Errorf("open a session: %w", err)
	}
	if name := launchOf(known.Ancestors); name != "" {
		// Another server may refuse it.
		_, _ = channel.SendRequest("env", false, ssh.Marshal(struct{ Name, Value string }{agentapi.EnvLaunch, name}))
	}
	policy, by := binding(known.Ancestors)
	if policy != "" {
		_, _ = channel.SendRequest("env", false, ssh.Marshal(struct{ Name, Value string }{agentapi.EnvBind, string(policy)}))
	}
	if by != "" {
		known.BoundBy = records.Cut(by, agentapi.MaxBoundBy)
		known.Write(records.Folder())
	}
	started := "shell"
	payload := []byte(nil)
	if t.command != "" {
		started, payload = "exec", ssh.Marshal(struct{ Command string }{t.command})
	}
	if ok, err := channel.SendRequest(started, true, payload); err != nil || !ok {
		return 0, errors.Join(errors.New("it cannot start a shell: is there a /bin/sh in its image?"), err)
	}
	var closed atomic.Bool
	stop := forwardSignals(channel, &closed)
	defer stop()
	if t.noInput {
		_ = channel.CloseWrite()
	} else {
		go func() {
			_, _ = io.Copy(channel, stdin)
			_ = channel.CloseWrite()
		}()
	}
	outputs := make(chan error, 2)
	go func() { _, err := io.Copy(stdout, channel); outputs <- err }()
	go func() { _, err := io.Copy(stderr, channel.Stderr()); outputs <- err }()
	code, ended := exitOf(requests, known)
	if err := errors.Join(<-outputs, <-outputs); err != nil && ended {
		return 0, fmt.Errorf("pass on output: %w", err)
	}
	if !ended && closed.Load() {
		return 0, errors.New("a second signal ended the session")
	}
	if !ended {
		known.SetTrouble(agentapi.ConnectionLost, "the connection to it was lost while its ranks ran: its pod ended or was deleted, its node failed, or the network was cut")
		return 0, errors.New(known.Why)
	}
	return code, nil
}

// launchOf returns the name of the run of MPI's launcher to which what a process starts belongs; "" if the job is not profiled. On a worker,
// MPI's daemons start others in the same run.
func launchOf(ancestors []int) string {
	if os.Getenv(agentapi.EnvProfile) == "" || len(ancestors) == 0 {
		return ""
	}
	launcher := 0
	for _, above := range ancestors {
		if mpirun.IsLauncher(process.Arguments(above)[0]) {
			launcher = above
		}
	}
	if outer := os.Getenv(agentapi.EnvLaunch); launcher == 0 && outer != "" {
		return outer
	}
	// Without a launcher, it is what has called ssh.
	launcher = cmp.Or(launcher, ancestors[0])
	state, _ := process.ReadStat(launcher)
	return process.Launch(launcher, state.Started)
}

// binding returns what the worker is to do about binding the ranks that MPI's launcher starts there, "" if that is up to MPI; and the flag
// by which the user decides, "" if there is none. ancestors are this process's: a launcher is among them, or MPI's daemons on a worker, which
// pass on what they got. Without a launcher, as of a program that starts ranks itself, no one knows how many ranks there will be.
func binding(ancestors []int) (policy agentapi.BindingPolicy, by string) {
	decided := agentapi.BindingPolicy(os.Getenv(agentapi.EnvBind))
	if os.Getenv(process.EnvSession) != "" {
		return decided, ""
	}
	for _, above := range slices.Backward(ancestors) {
		args := process.Arguments(above)
		if !mpirun.IsLauncher(args[0]) {
			continue
		}
		programs := mpirun.OptionsOf(args[1:], func(name string) bool { _, err := exec.LookPath(name); return err == nil })
		by := mpirun.BindingFlag(slices.Concat(programs...))
		if decided == "" || by != "" {
			return "", by
		}
		if !mpirun.FillsCores(programs, process.Environ(above), int(hostfile.Read(agentapi.Hostfile).Slots)) {
			return agentapi.BindSeveral, ""
		}
		return decided, ""
	}
	if decided != "" {
		return agentapi.BindSeveral, ""
	}
	return "", ""
}

// exitOf reads the worker's messages about the command until the connection ends; false if there was no exit status.
func exitOf(requests <-chan *ssh.Request, known *records.Record) (code int, ended bool) {
	for request := range requests {
		if request.WantReply {
			_ = request.Reply(false, nil)
		}
		if status, is := protocol.ReadExit(request); is {
			code, ended = status, true
		}
		if request.Type == protocol.RequestUsage {
			var hosts []agentapi.HostUsage
			if json.Unmarshal(request.Payload, &hosts) == nil && len(hosts) > 0 {
				// The job calls the host by this name.
				hosts[0].Host = known.Host
				known.WriteUsage(records.Folder(), hosts)
			}
		}
		if request.Type == protocol.RequestSummary {
			var summary agentapi.Summary
			if json.Unmarshal(request.Payload, &summary) == nil {
				known.Worker = &summary
				if summary.Ending {
					known.SetTrouble(agentapi.ConnectionLost, "its pod was deleted or evicted while its ranks ran")
				}
				known.Write(records.Folder())
			}
		}
	}
	return code, ended
}

// forwardSignals passes signals on to the remote program. The second TERM or INT ends this program itself, and with
// its connection what runs at the other end; closed is set then.
func forwardSignals(channel ssh.Channel, closed *atomic.Bool) (stop func()) {
	asked := false
	return process.OnSignals(func(number unix.Signal) {
		_, _ = channel.SendRequest("signal", false, ssh.Marshal(struct{ Name string }{strings.TrimPrefix(unix.SignalName(number), "SIG")}))
		if number == unix.SIGTERM || number == unix.SIGINT || number == unix.SIGHUP {
			if asked {
				closed.Store(true)
				channel.Close()
			}
			asked = true
		}
	}, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
}
