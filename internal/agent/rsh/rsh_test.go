package rsh

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestWaitTimes: a host without an address is waited for as long as the operator says, unless the user says how long to wait.
func TestWaitTimes(t *testing.T) {
	tests := map[string]struct {
		user, operator    string
		commandLine       time.Duration
		wait, addressWait time.Duration
	}{
		"nothing is set":                   {wait: 2 * time.Minute, addressWait: 2 * time.Minute},
		"the operator's":                   {operator: "12m0s", wait: 2 * time.Minute, addressWait: 12 * time.Minute},
		"the user's is longer":             {operator: "12m0s", user: "1h", wait: time.Hour, addressWait: time.Hour},
		"the user's is shorter":            {operator: "12m0s", user: "20s", wait: 20 * time.Second, addressWait: 20 * time.Second},
		"the user's is no time":            {operator: "12m0s", user: "soon", wait: 2 * time.Minute, addressWait: 12 * time.Minute},
		"the command line's is longer":     {operator: "12m0s", commandLine: time.Hour, wait: time.Hour, addressWait: time.Hour},
		"the command line's is in between": {operator: "12m0s", commandLine: 5 * time.Minute, wait: 5 * time.Minute, addressWait: 12 * time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(agentapi.EnvWait, test.user)
			t.Setenv(agentapi.EnvAddressWait, test.operator)
			wait, addressWait := waitTimes(target{wait: test.commandLine})
			if wait != test.wait || addressWait != test.addressWait {
				t.Errorf("it waits %s, and %s without an address; want %s and %s", wait, addressWait, test.wait, test.addressWait)
			}
		})
	}
}

// TestOwnNameIsAwaited: before Hydra's proxy is started on a host, the launcher's own name in the hosts' domain leads
// somewhere. Nothing else waits for it.
func TestOwnNameIsAwaited(t *testing.T) {
	self, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	name := self + ".pi.ns.svc"
	const proxy = "/usr/bin/hydra_pmi_proxy --control-port pi-launcher:1 --proxy-id 0"
	tests := map[string]struct {
		host, command string
		// missing is how often the name is asked for in vain.
		missing int
		asked   []string
	}{
		"a name that is there":    {host: "pi-worker-0.pi.ns.svc", command: proxy, asked: []string{name}},
		"a name that comes later": {host: "pi-worker-0.pi.ns.svc", command: proxy, missing: 2, asked: []string{name, name, name}},
		"Intel MPI's proxy":       {host: "pi-worker-0.pi.ns.svc", command: "/opt/intel/hydra_bstrap_proxy --upstream-host pi-launcher", asked: []string{name}},
		"Open MPI's daemon":       {host: "pi-worker-0.pi.ns.svc", command: "orted -mca ess env"},
		"a host without a domain": {host: "pi-worker-0", command: proxy},
		"an address":              {host: "10.1.2.3", command: proxy},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			var asked []string
			target{host: test.host, command: test.command}.awaitOwnName(t.Context(), func(_ context.Context, host string) ([]string, error) {
				asked = append(asked, host)
				if len(asked) <= test.missing {
					return nil, errors.New("no such host")
				}
				return []string{"10.1.2.4"}, nil
			})
			if !slices.Equal(asked, test.asked) {
				t.Errorf("asked for %q, want %q", asked, test.asked)
			}
		})
	}
	t.Run("a name that never comes", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		target{host: "pi-worker-0.pi.ns.svc", command: proxy}.awaitOwnName(ctx, func(context.Context, string) ([]string, error) {
			cancel() // time is over
			return nil, errors.New("no such host")
		})
	})
}

// TestIsThisPodInDNS: where the DNS has no name for this pod, it has none of the job's hosts, and they are not waited for any longer.
func TestIsThisPodInDNS(t *testing.T) {
	for name, test := range map[string]struct {
		host string
		err  error
		want bool
	}{
		"it has":                    {host: "pi-worker-0.pi.ns.svc", want: true},
		"it has not":                {host: "pi-worker-0.pi.ns.svc", err: &net.DNSError{Err: "no such host", IsNotFound: true}},
		"it does not answer":        {host: "pi-worker-0.pi.ns.svc", err: &net.DNSError{Err: "timeout", IsTimeout: true}, want: true},
		"a name without a domain":   {host: "pi-worker-0", err: &net.DNSError{Err: "no such host", IsNotFound: true}, want: true},
		"an address instead of one": {host: "10.244.1.9", err: &net.DNSError{Err: "no such host", IsNotFound: true}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			got := target{host: test.host}.isThisPodInDNS(t.Context(), func(_ context.Context, host string) ([]string, error) {
				asked = host
				return nil, test.err
			})
			if self, _ := os.Hostname(); got != test.want || asked != "" && asked != self+".pi.ns.svc" {
				t.Errorf("%q was asked for, and it is %t", asked, got)
			}
		})
	}
}
