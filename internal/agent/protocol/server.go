// Package protocol speaks SSH between the pods of a job: the keys with which they authenticate, a server, and a client
// that waits for its host.
package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/connections"
	"opendatahub.io/mpijob/internal/agentapi"
)

const (
	// proveWithin is how long a client may take to prove that it belongs to the job: an honest one takes milliseconds.
	proveWithin   = 15 * time.Second
	serverVersion = "SSH-2.0-mpi-agent"
)

// Server accepts SSH connections of the job's own pods.
type Server struct {
	Log      *slog.Logger
	Identity Identity
	// Session serves a channel on which a client starts a program, until the program has ended or the client has gone. id differs
	// from session to session.
	Session func(log *slog.Logger, id string, channel ssh.Channel, requests <-chan *ssh.Request)
	// Ends reports how the ranks of this worker have ended.
	Ends func() agentapi.Summary
	// Usage takes what the job used, as its launcher reports it; nil refuses it.
	Usage func(agentapi.Usage)

	// Stacks returns where the ranks of this worker are in their code: of one rank, or of all if it is nil.
	Stacks func(rank *int32) []agentapi.RankStack

	// unproven are the connections that have not proved yet whose they are.
	unproven connections.Limited
	sessions sync.WaitGroup

	// Accepted, Refused and Dropped count connections, Active is how many sessions are open.
	Accepted, Refused, Dropped, Active, started atomic.Int64
}

// Serve takes connections until the first context ends, and closes them when the second one does.
func (s *Server) Serve(ctx, connected context.Context, listener net.Listener) error {
	config := s.config()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ECONNABORTED):
			s.Log.Warn("cannot take a connection", "error", err)
			time.Sleep(50 * time.Millisecond)
		case err != nil:
			return fmt.Errorf("take connections: %w", err)
		default:
			go s.connection(connected, conn, config)
		}
	}
}

// Wait waits until no session is open.
func (s *Server) Wait() { s.sessions.Wait() }

// config returns which keys and algorithms the server accepts.
func (s *Server) config() *ssh.ServerConfig {
	config := &ssh.ServerConfig{
		Config: algorithms(), ServerVersion: serverVersion, MaxAuthTries: 6, PublicKeyCallback: s.Identity.checkClient,
	}
	config.AddHostKey(s.Identity.host)
	return config
}

// connection serves one client.
func (s *Server) connection(ctx context.Context, conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	s.Dropped.Add(s.unproven.Add(conn))
	connections.KeepAlive(conn)
	_ = conn.SetDeadline(time.Now().Add(proveWithin))
	client, channels, requests, err := ssh.NewServerConn(conn, config)
	dropped := s.unproven.Remove(conn)
	if err != nil {
		s.refuse(conn, err, dropped)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	s.Accepted.Add(1)
	stop := context.AfterFunc(ctx, func() { client.Close() })
	defer stop()
	go s.answer(requests)
	for channel := range channels {
		if kind := channel.ChannelType(); kind != "session" {
			_ = channel.Reject(ssh.UnknownChannelType, "this agent starts programs and does nothing else")
			continue
		}
		accepted, requests, err := channel.Accept()
		if err != nil {
			continue
		}
		id := strconv.FormatInt(s.started.Add(1), 10)
		s.Active.Add(1)
		s.sessions.Go(func() {
			defer s.Active.Add(-1)
			s.Session(s.Log.With("session", id, "from", host(conn)), id, accepted, requests)
		})
	}
}

// refuse counts and reports a client that is not the job's. A client that sends nothing, such as a probe of the port, is
// not counted.
func (s *Server) refuse(conn net.Conn, err error, dropped bool) {
	switch {
	case dropped, errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET):
		s.Log.Debug("connection ended before it began", "from", host(conn))
	default:
		s.Refused.Add(1)
		s.Log.Warn("connection refused: it did not prove that it belongs to this job", "from", host(conn), "error", err)
	}
}

func host(conn net.Conn) string {
	name, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return conn.RemoteAddr().String()
	}
	return name
}

// answer answers the requests of a connection that belong to no session.
func (s *Server) answer(requests <-chan *ssh.Request) {
	for request := range requests {
		if !request.WantReply {
			continue
		}
		switch request.Type {
		case requestEnds:
			data, err := json.Marshal(s.Ends())
			_ = request.Reply(err == nil, data)
		case requestStacks:
			var rank *int32
			ok := s.Stacks != nil && json.Unmarshal(request.Payload, &rank) == nil
			if !ok {
				_ = request.Reply(false, nil)
				continue
			}
			data, err := json.Marshal(agentapi.LimitStacks(s.Stacks(rank), agentapi.MaxStacks))
			_ = request.Reply(err == nil, data)
		case RequestUsage:
			var used agentapi.Usage
			ok := s.Usage != nil && len(request.Payload) <= MaxUsage && json.Unmarshal(request.Payload, &used) == nil
			if ok {
				s.Usage(used)
			}
			_ = request.Reply(ok, nil)
		default:
			_ = request.Reply(false, nil)
		}
	}
}

// RequestSummary carries an agentapi.Summary of a session's ranks, as JSON, from a worker to the client, after each
// change and before the exit status; the last one counts. Other clients leave unknown requests alone (RFC 4254, 6.10 and 5.4).
const RequestSummary = "summary@mpi.opendatahub.io"

// RequestUsage carries what hosts used over time, as JSON. In a session, it is a worker's message to the client: a list of
// agentapi.HostUsage, of the worker itself and of the hosts behind it. Without a session, it is the launcher's message to a worker: the
// agentapi.Usage of the job, for the worker's log. Agents of other versions leave it alone.
const RequestUsage = "usage@mpi.opendatahub.io"

// LeastUse is how long a session lasts whose end reports what the worker used. Launchers run short commands to check a host, and wait for
// them: reading the use takes a tenth of their time, and says nothing.
const LeastUse = time.Second

// MaxUsage is the most bytes of RequestUsage. SSH breaks a connection at 256 KiB.
const MaxUsage = 128 << 10

// requestEnds asks a worker how its ranks have ended. The answer is an agentapi.Summary as JSON. Other servers refuse unknown
// requests (RFC 4254, 4).
const requestEnds = "ends@mpi.opendatahub.io"

// requestStacks asks a worker where its ranks are in their code. It carries the number of a rank, or null for all, as JSON, and the answer
// is a list of agentapi.RankStack. Other servers, and agents of other versions, refuse it.
const requestStacks = "stacks@mpi.opendatahub.io"

// exitSignal is the message about a program that was ended by a signal (RFC 4254, 6.10).
type exitSignal struct {
	Signal      string
	Core        bool
	Error, Lang string
}

// SendExit reports how a session's program has ended.
func SendExit(channel ssh.Channel, status unix.WaitStatus) {
	if status.Signaled() {
		message := exitSignal{Signal: strings.TrimPrefix(unix.SignalName(status.Signal()), "SIG"), Core: status.CoreDump()}
		_, _ = channel.SendRequest("exit-signal", false, ssh.Marshal(message))
		return
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(status.ExitStatus())}))
}

// ReadExit reads the exit code of a session's program, 128 and the signal where a signal ended it; false if the message is another.
func ReadExit(request *ssh.Request) (code int, ended bool) {
	var status struct{ Code uint32 }
	var signal exitSignal
	switch {
	case request.Type == "exit-status" && ssh.Unmarshal(request.Payload, &status) == nil:
		return int(status.Code), true
	case request.Type == "exit-signal" && ssh.Unmarshal(request.Payload, &signal) == nil:
		return 128 + int(unix.SignalNum("SIG"+signal.Signal)), true
	}
	return 0, false
}
