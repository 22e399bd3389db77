// Package stacks asks the hosts of a job where their ranks are in their code.
package stacks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/protocol"
	"opendatahub.io/mpijob/internal/agent/resolve"
	"opendatahub.io/mpijob/internal/agent/status"
	"opendatahub.io/mpijob/internal/agentapi"
)

const (
	// askAtOnce is how many hosts are asked at once, and askTime how long one of them may take.
	askAtOnce = 32
	askTime   = 10 * time.Second
)

// Host is a host to ask. A port of 0 is the usual one.
type Host struct {
	Name string
	Port int
}

// Ask asks hosts, and calls each with every answer, one at a time, as they come. It asks for one rank, or for all if it is nil.
func Ask(ctx context.Context, identity protocol.Identity, hosts []Host, rank *int32, each func(agentapi.HostStacks)) {
	names := resolve.New(resolve.Conf)
	d := protocol.Dialer{Identity: identity, LookUp: names.Check}
	var all sync.WaitGroup
	var one sync.Mutex
	places := make(chan struct{}, askAtOnce)
	for _, host := range hosts {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(ctx, askTime)
			defer cancel()
			answer := agentapi.HostStacks{Host: hostfile.Short(host.Name)}
			ranks, err := d.AskStacks(ctx, host.Name, host.Port, rank)
			if answer.Ranks = ranks; err != nil {
				answer.Error = err.Error()
			}
			one.Lock()
			defer one.Unlock()
			each(answer)
		})
	}
	all.Wait()
}

// Print prints where the ranks of the job are in their code: a line of JSON for each host with ranks, as it answers. It runs in the
// launcher's pod. The arguments are those of mpi-agent stacks.
func Print(args []string, stdout, stderr io.Writer) int {
	rank, err := parseArguments(args)
	if err != nil {
		fmt.Fprintln(stderr, "mpi-agent:", err)
		return 2
	}
	identity, err := protocol.ReadIdentity("")
	if err != nil {
		fmt.Fprintln(stderr, "mpi-agent:", err)
		return 1
	}
	encoder := json.NewEncoder(stdout)
	job := hostfile.Read(agentapi.Hostfile)
	name, _ := os.Hostname()
	own := agentapi.HostStacks{Host: hostfile.Short(name)}
	own.Ranks, err = status.AskStacks(status.LocalAddress(), identity.Token, rank)
	if err != nil && job.OwnSlots > 0 {
		own.Error = "its agent cannot be asked: " + err.Error()
	}
	if len(own.Ranks) > 0 || own.Error != "" {
		_ = encoder.Encode(own)
	}
	var hosts []Host
	for _, name := range job.Full {
		hosts = append(hosts, Host{Name: name})
	}
	Ask(context.Background(), identity, hosts, rank, func(answer agentapi.HostStacks) {
		if len(answer.Ranks) > 0 || answer.Error != "" {
			_ = encoder.Encode(answer)
		}
	})
	return 0
}

// parseArguments returns the rank that the arguments name; nil for all.
func parseArguments(args []string) (*int32, error) {
	switch {
	case len(args) == 0:
		return nil, nil
	case len(args) == 2 && args[0] == "--rank":
		rank, err := strconv.ParseInt(args[1], 10, 32)
		if err != nil || rank < 0 {
			return nil, fmt.Errorf("--rank: %q is not allowed; use 0 or more", args[1])
		}
		return new(int32(rank)), nil
	}
	return nil, errors.New("usage: mpi-agent stacks [--rank N]")
}
