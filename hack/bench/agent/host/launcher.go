package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Launcher is a host on which programs can be run and timed.
type Launcher struct {
	*Host
	input    io.Closer
	requests *json.Encoder
	replies  *json.Decoder
}

// Request asks a launcher to run programs, all at once.
type Request struct {
	// Commands are paths and arguments.
	Commands [][]string
	// Env is added to the environment of the launcher.
	Env []string
	// Weigh, if not 0, is how long the programs are left to run before their memory is taken and they are killed.
	Weigh time.Duration
	// MayFail is whether a program that fails is no error of Run's.
	MayFail bool
}

// Reply says how a Request went.
type Reply struct {
	// Took is from the start of the first program until the end of the last.
	Took time.Duration
	// Outputs are what each program wrote to its standard output, Errors to its standard error, and Memory is what it held if it was weighed.
	Outputs, Errors []string
	Memory          []Memory
	// Failure says what is wrong; empty: all programs ended well.
	Failure string
}

// StartLauncher starts a host without a command of its own.
func (n *Network) StartLauncher(spec Spec) (*Launcher, error) {
	spec.Command = nil
	command, err := n.command(spec)
	if err != nil {
		return nil, err
	}
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start host %s: %w", spec.Name, err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start host %s: %w", spec.Name, err)
	}
	started, err := n.start(spec.Name, command)
	if err != nil {
		return nil, err
	}
	started.isOurs = true
	return &Launcher{Host: started, input: input, requests: json.NewEncoder(input), replies: json.NewDecoder(output)}, nil
}

// Run runs programs. A program that fails is an error, and so is the end of the context, which ends the launcher.
func (l *Launcher) Run(ctx context.Context, request Request) (Reply, error) {
	stop := context.AfterFunc(ctx, func() { _ = l.command.Process.Kill() })
	defer stop()
	var reply Reply
	err := l.requests.Encode(request)
	if err == nil {
		err = l.replies.Decode(&reply)
	}
	switch {
	case ctx.Err() != nil:
		return Reply{}, fmt.Errorf("run %s: %w", strings.Join(request.Commands[0], " "), context.Cause(ctx))
	case err != nil:
		return Reply{}, fmt.Errorf("host %s has ended: %w", l.name, err)
	case reply.Failure != "" && !request.MayFail:
		return Reply{}, errors.New(reply.Failure)
	}
	return reply, nil
}

// answer runs what requests ask for until there are no more.
func answer(requests io.Reader, replies io.Writer, env []string) error {
	decoder, encoder := json.NewDecoder(requests), json.NewEncoder(replies)
	for {
		var request Request
		if err := decoder.Decode(&request); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		if err := encoder.Encode(request.run(env)); err != nil {
			return fmt.Errorf("answer a request: %w", err)
		}
	}
}

// run runs a request's programs on this host.
func (r Request) run(env []string) (reply Reply) {
	commands := make([]*exec.Cmd, len(r.Commands))
	outputs := make([]struct{ out, errors bytes.Buffer }, len(r.Commands))
	for i, args := range r.Commands {
		commands[i] = &exec.Cmd{Path: args[0], Args: args, Env: slices.Concat(env, r.Env)}
		commands[i].Stdout, commands[i].Stderr = &outputs[i].out, &outputs[i].errors
	}
	var errs []error
	start := time.Now()
	for _, command := range commands {
		errs = append(errs, command.Start())
	}
	if r.Weigh > 0 {
		time.Sleep(r.Weigh)
	}
	for i, command := range commands {
		if errs[i] != nil {
			continue
		}
		if r.Weigh > 0 {
			var memory Memory
			memory, errs[i] = memoryOf(command.Process.Pid)
			reply.Memory = append(reply.Memory, memory)
			_ = command.Process.Kill()
			_ = command.Wait() // it was killed
			continue
		}
		errs[i] = command.Wait()
	}
	reply.Took = time.Since(start)
	for i, command := range commands {
		reply.Outputs, reply.Errors = append(reply.Outputs, outputs[i].out.String()), append(reply.Errors, outputs[i].errors.String())
		if errs[i] != nil && reply.Failure == "" {
			reply.Failure = fmt.Sprintf("%s: %v\n%s", strings.Join(command.Args, " "), errs[i], outputs[i].errors.String())
		}
	}
	return reply
}

// Stop ends a launcher and all that runs on it.
func (l *Launcher) Stop() error {
	_ = l.input.Close() // which it may have done itself
	return l.Host.Stop()
}
