package protocol

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/connections"
	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agentapi"
)

const (
	// An attempt is made as soon as a worker may listen: the pauses are about a fifth of the time that has passed, and
	// bounded, because jobs have hundreds of hosts.
	firstPause   = 20 * time.Millisecond
	longestPause = 500 * time.Millisecond
	// namelessPause is the longest pause for a host that has had no address for longer than others are waited for: it may have none for
	// minutes, and the job's other hosts ask the same DNS.
	namelessPause = 2 * time.Second
	// Where a network drops packets to a pod that it does not know yet, the kernel repeats the first packet of a
	// connection after 1, 3 and 7 s. New attempts are made sooner.
	shortestDial = 250 * time.Millisecond
	attemptTime  = 5 * time.Second
)

// Trouble is the reason why a host cannot be used, as text for users.
type Trouble struct {
	Code agentapi.Code
	// Why is the text after the host's name, such as "its name cannot be resolved".
	Why string
}

func (t *Trouble) Error() string { return t.Why }

// Dialer connects to workers.
type Dialer struct {
	Identity Identity
	// Disbelief is how long a wrong key is not believed: the address may be that of a pod which is gone, given to
	// another job's since, until the name leads to the right one.
	Disbelief time.Duration
	// LookUp returns the name to look a host up by, or why there is none.
	LookUp func(ctx context.Context, host string) (name string, err error)
	// Waiting is called after each failed attempt.
	Waiting func(t *Trouble, since time.Time)
	// Foreign reports whether a host is none of the job's and may be connected to without a proof; nil: none may. Tools such
	// as horovodrun always pass StrictHostKeyChecking=no, and must not reach another pod than the job's worker.
	Foreign func(host string) bool
	// Job are the hosts of the job. Another one whose name does not exist is not waited for.
	Job hostfile.Hosts
	// AddressWait is how long a host may have no address, as the pod of a worker has none before it has a node, if that is longer than
	// other hosts are waited for. It applies while MayGetAddress reports that the host may still get one: not if it is no longer one of the
	// job's, because that was scaled down, or if the DNS has none of the job's pods. Nil: any host may.
	AddressWait   time.Duration
	MayGetAddress func(host string) bool
}

// Dial connects to a host, and tries again until it has succeeded or the time is over: wait since the host has an address, or AddressWait
// while it has none. A port of 0 is the usual one, and anyHostKey is set if the user wants no proof (see Foreign). The error is a *Trouble.
func (d Dialer) Dial(ctx context.Context, host string, port int, anyHostKey bool, wait time.Duration) (*ssh.Client, error) {
	config := &ssh.ClientConfig{
		// The user's name means nothing to an agent; a stock sshd wants the one that it runs as.
		Config: algorithms(), User: userName(), Timeout: attemptTime,
		Auth:              []ssh.AuthMethod{ssh.PublicKeysCallback(d.Identity.signers)},
		HostKeyCallback:   d.Identity.checkHost,
		HostKeyAlgorithms: hostKeyAlgorithms,
	}
	if anyHostKey && d.Foreign != nil && d.Foreign(host) {
		config.HostKeyCallback = ssh.InsecureIgnoreHostKey() //nolint:gosec // the user has asked for it twice
	}
	port = cmp.Or(port, agentapi.Port)
	address := net.JoinHostPort(host, strconv.Itoa(port))
	start := time.Now()
	tries := attempts{start: start, addressed: start, pause: firstPause, wait: wait, addressWait: max(wait, d.AddressWait)}
	for {
		timeout := min(max(shortestDial, time.Since(start)/2), attemptTime)
		client, err := d.connect(ctx, host, port, timeout, config)
		if err == nil {
			return client, nil
		}
		found := explain(err, address)
		if IsNameless(err) && !d.Job.MayGet(host) {
			found = &Trouble{agentapi.UnknownHost, "it is no host of this job, and its name cannot be resolved; the job's hosts are " + list(d.Job.Names)}
		}
		last := tries.failed(IsNameless(err))
		if IsNameless(err) && time.Since(start)+tries.pause > wait && d.MayGetAddress != nil && !d.MayGetAddress(host) {
			last = start.Add(wait)
		}
		final := found.Code == agentapi.UnknownHost && time.Since(start) > d.Disbelief
		if found.Code == agentapi.KeyRefused || found.Code == agentapi.HostKeyMismatch {
			final = time.Since(tries.addressed) > d.Disbelief
		}
		if final || time.Until(last) < tries.pause || ctx.Err() != nil {
			return nil, found
		}
		d.Waiting(found, start)
		// Many hosts are waited for at once, often by as many programs: they shall not all try at the same time.
		select {
		case <-time.After(tries.pause/2 + rand.N(tries.pause)):
		case <-ctx.Done():
		}
		tries.lengthenPause()
	}
}

// attempts are those to connect to one host.
type attempts struct {
	start time.Time
	// addressed is since when the host has an address; zero while it has none.
	addressed time.Time
	// pause is how long to wait before the next one.
	pause time.Duration
	// wait is how long to wait for a host that has an address, and addressWait for one that has none.
	wait, addressWait time.Duration
}

// failed returns when the last attempt may be, after one that failed. nameless is whether the host has no address.
func (a *attempts) failed(nameless bool) (last time.Time) {
	switch {
	case nameless:
		a.addressed = time.Time{}
		return a.start.Add(a.addressWait)
	case a.addressed.IsZero():
		a.addressed, a.pause = time.Now(), firstPause
	}
	return a.addressed.Add(a.wait)
}

func (a *attempts) lengthenPause() {
	longest := longestPause
	if a.addressed.IsZero() && time.Since(a.start) > a.wait {
		longest = namelessPause
	}
	a.pause = min(a.pause*5/4, longest)
}

// IsNameless reports whether an attempt or a look-up failed because the DNS has no such name. A headless Service has the name of a pod from when the
// pod has an address: a pod without a node looks like one that does not exist.
func IsNameless(err error) bool {
	dns, is := errors.AsType[*net.DNSError](err)
	return is && dns.IsNotFound
}

// connect makes one attempt. The timeout is that of the network's connection.
func (d Dialer) connect(ctx context.Context, host string, port int, timeout time.Duration, config *ssh.ClientConfig) (*ssh.Client, error) {
	name, err := d.LookUp(ctx, host)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{Timeout: timeout}).DialContext(ctx, "tcp", net.JoinHostPort(name, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	connections.KeepAlive(conn)
	_ = conn.SetDeadline(time.Now().Add(attemptTime))
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	client, channels, requests, err := ssh.NewClientConn(conn, net.JoinHostPort(host, strconv.Itoa(port)), config)
	if err != nil {
		conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return ssh.NewClient(client, channels, requests), nil
}

// list returns names as a text, at most three.
func list(names []string) string {
	if n := len(names); n > 3 {
		return fmt.Sprintf("%s, %s to %s", names[0], names[1], names[n-1])
	}
	return strings.Join(names, ", ")
}

// explain says what an error of connecting means.
func explain(err error, address string) *Trouble {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return &Trouble{agentapi.Unreachable, "its name cannot be resolved (no such host): " + agentapi.NoAddress + ", or the job's Service is missing"}
	case errors.As(err, &dns):
		return &Trouble{agentapi.Unreachable, "its name cannot be looked up: " + dns.Err}
	case errors.Is(err, errHostKey):
		return &Trouble{agentapi.HostKeyMismatch, "what answers at " + address + " is not this job's worker: " + errHostKey.Error()}
	case strings.Contains(err.Error(), "unable to authenticate"):
		return &Trouble{agentapi.KeyRefused, "it does not accept this job's key (Permission denied): do both pods mount the same Secret?"}
	case errors.Is(err, unix.ECONNREFUSED):
		return &Trouble{agentapi.Unreachable, "nothing listens at " + address + " (connection refused): its container has not started, or ended"}
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETUNREACH):
		return &Trouble{agentapi.Unreachable, "there is no way to " + address + " (no route to host): its pod is starting or gone"}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &Trouble{agentapi.Unreachable, address + " does not answer (connection timed out): a NetworkPolicy or a service mesh may drop the traffic, or its node is down"}
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return &Trouble{agentapi.Unreachable, "it closed the connection at once: it is starting or ending, or a service mesh stands between"}
	}
	return &Trouble{agentapi.Unreachable, fmt.Sprintf("connecting to %s failed: %v", address, err)}
}

// userName is the name to log in with. It matters to an sshd alone; a user without an entry in passwd is a number there.
func userName() string {
	if me, err := user.Current(); err == nil {
		return me.Username
	}
	return "mpi"
}

// ForeignHosts returns which hosts may be connected to without a proof: if the user allows foreign hosts
// (agentapi.EnvForeign), those that the job's hostfile does not list.
func ForeignHosts(job hostfile.Hosts) func(host string) bool {
	allowed := strings.EqualFold(os.Getenv(agentapi.EnvForeign), "true")
	return func(host string) bool {
		_, own := job.SlotsOf[hostfile.Short(host)]
		return allowed && !own
	}
}

// TellUsage tells a worker what the job used. Workers of other versions refuse it.
func (d Dialer) TellUsage(ctx context.Context, host string, port int, used agentapi.Usage) error {
	data, err := json.Marshal(used)
	if err != nil {
		return fmt.Errorf("tell the job's usage: %w", err)
	}
	switch known, _, err := d.ask(ctx, host, port, RequestUsage, data); {
	case err != nil:
		return fmt.Errorf("tell the job's usage: %w", err)
	case !known:
		return errors.New("it is no agent, or one that does not take the job's usage")
	}
	return nil
}

// AskEnds asks one worker how its ranks have ended.
func (d Dialer) AskEnds(ctx context.Context, host string, port int) (told agentapi.Summary, err error) {
	known, data, err := d.ask(ctx, host, port, requestEnds, nil)
	switch {
	case err != nil:
		return told, err
	case !known:
		return told, errors.New("it is no agent, or one that cannot be asked")
	}
	return told, json.Unmarshal(data, &told)
}

// AskStacks asks one worker where its ranks are in their code: one rank, or all if it is nil.
func (d Dialer) AskStacks(ctx context.Context, host string, port int, rank *int32) (ranks []agentapi.RankStack, err error) {
	payload, err := json.Marshal(rank)
	if err != nil {
		return nil, fmt.Errorf("ask for stacks: %w", err)
	}
	known, data, err := d.ask(ctx, host, port, requestStacks, payload)
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, errors.New("it is no agent, or one that cannot be asked")
	}
	return ranks, json.Unmarshal(data, &ranks)
}

// ask sends a request that belongs to no session, and returns the answer.
func (d Dialer) ask(ctx context.Context, host string, port int, request string, payload []byte) (known bool, answer []byte, err error) {
	client, err := d.Dial(ctx, host, port, false, 0)
	if err != nil {
		return false, nil, err
	}
	defer client.Close()
	stop := context.AfterFunc(ctx, func() { client.Close() })
	defer stop()
	return client.SendRequest(request, true, payload)
}
