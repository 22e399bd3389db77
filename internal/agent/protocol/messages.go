package protocol

import (
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// RequestSummary carries an agentapi.Summary of a session's ranks, as JSON, from a worker to the client, after each
// change and before the exit status; the last one counts. Other clients leave unknown requests alone (RFC 4254, 6.10 and 5.4).
const RequestSummary = "summary@mpi.opendatahub.io"

// requestEnds asks a worker how its ranks have ended. The answer is an agentapi.Summary as JSON. Other servers refuse unknown
// requests (RFC 4254, 4).
const requestEnds = "ends@mpi.opendatahub.io"

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
