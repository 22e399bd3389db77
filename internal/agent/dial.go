package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/launch"
)

const (
	// waitDefault is how long a worker may take to come up: a pod that has its node, image and volumes still to get.
	waitDefault  = 2 * time.Minute
	disbelief    = 15 * time.Second
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
	attemptTime  = 5 * time.Second
)

// trouble is why a host could not be used, in words for people.
type trouble struct {
	code launch.Code
	// why follows the host's name: "its name is not known".
	why string
}

func (t *trouble) Error() string { return t.why }

// dialer connects to workers.
type dialer struct {
	identity identity
	// disbelief is how long a wrong key is not believed: the address may be that of a pod which is gone, given to
	// another job's since, until the name leads to the right one.
	disbelief time.Duration
	// waiting is told of each failed attempt.
	waiting func(t *trouble, since time.Time)
}

// dial connects to a host, and tries again until it has succeeded or the time is over. The error is a *trouble.
func (d dialer) dial(ctx context.Context, t target, wait time.Duration) (*ssh.Client, error) {
	config := &ssh.ClientConfig{
		// The user's name means nothing to an agent; a stock sshd wants the one that it runs as.
		Config: algorithms(), User: t.user(), Timeout: attemptTime,
		Auth:              []ssh.AuthMethod{ssh.PublicKeysCallback(d.identity.signers)},
		HostKeyCallback:   d.identity.checkHost,
		HostKeyAlgorithms: hostKeyAlgorithms,
	}
	if t.anyHostKey {
		config.HostKeyCallback = ssh.InsecureIgnoreHostKey() //nolint:gosec // the user has asked for it by StrictHostKeyChecking=no
		config.HostKeyAlgorithms = nil
	}
	port := t.port
	if port == 0 {
		port = launch.Port
	}
	address := net.JoinHostPort(t.host, strconv.Itoa(port))
	start, pause := time.Now(), firstPause
	for {
		client, err := connect(ctx, address, config)
		if err == nil {
			return client, nil
		}
		found := explain(err, address)
		tried := time.Since(start)
		final := tried > d.disbelief && (found.code == launch.KeyRefused || found.code == launch.HostKeyMismatch)
		if final || tried+pause > wait || ctx.Err() != nil {
			return nil, found
		}
		d.waiting(found, start)
		// Many hosts are waited for at once, often by as many programs: they shall not all try at the same time.
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
		}
		pause = min(pause*3/2, longestPause)
	}
}

// connect makes one attempt.
func connect(ctx context.Context, address string, config *ssh.ClientConfig) (*ssh.Client, error) {
	conn, err := (&net.Dialer{Timeout: attemptTime}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	keepAlive(conn)
	_ = conn.SetDeadline(time.Now().Add(attemptTime))
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	client, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return ssh.NewClient(client, channels, requests), nil
}

// explain says what an error of connecting means.
func explain(err error, address string) *trouble {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return &trouble{launch.Unreachable, "its name is not known (no such host): its pod has no address yet, or the job's Service is missing"}
	case errors.As(err, &dns):
		return &trouble{launch.Unreachable, "its name cannot be looked up: " + dns.Err}
	case errors.Is(err, errHostKey):
		return &trouble{launch.HostKeyMismatch, "what answers at " + address + " is not this job's worker: " + errHostKey.Error()}
	case strings.Contains(err.Error(), "unable to authenticate"):
		return &trouble{launch.KeyRefused, "it does not accept this job's key (Permission denied): do both pods mount the same Secret?"}
	case errors.Is(err, unix.ECONNREFUSED):
		return &trouble{launch.Unreachable, "nothing listens at " + address + " (connection refused): its container has not started, or ended"}
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETUNREACH):
		return &trouble{launch.Unreachable, "there is no way to " + address + " (no route to host): its pod is starting or gone"}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &trouble{launch.Unreachable, address + " does not answer (connection timed out): a NetworkPolicy or a service mesh may drop the traffic, or its node is down"}
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return &trouble{launch.Unreachable, "it closed the connection at once: it is starting or ending, or a service mesh stands between"}
	}
	return &trouble{launch.Unreachable, fmt.Sprintf("connecting to %s failed: %v", address, err)}
}
