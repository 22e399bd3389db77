package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/hack/bench/agent/host"
)

// arena is where one contestant makes one run: a launcher, and workers that serve.
type arena struct {
	contestant
	// turn is how many runs each contestant has made before.
	turn     int
	stage    stage
	spec     host.Spec
	link     link
	log      *os.File
	wire     *host.Wire
	launcher *host.Launcher
	// workers are by number; nil: it does not run.
	workers []*host.Host
}

// link is how far hosts are from each other; zero: they share one loopback interface.
type link struct {
	roundTrip time.Duration
	// loss is the share of packets that are lost.
	loss float64
}

// stage is what arenas share.
type stage struct {
	network *host.Network
	// root has the image's files, scratch is for hosts to mount on.
	root, scratch string
	// logs is a folder for the output of workers.
	logs string
}

// limit is how long one thing may take that takes seconds, and errLimit that it took longer.
const limit = 2 * time.Minute

var errLimit = fmt.Errorf("not done after %s", limit)

// open starts the hosts that a bout begins with, and waits until each can be reached.
func (s stage) open(ctx context.Context, c contestant, b bout) (*arena, error) {
	a := &arena{contestant: c, stage: s, link: b.link}
	if c.serve != nil {
		a.workers = make([]*host.Host, b.workers)
	}
	a.spec = host.Spec{Root: s.root, Scratch: s.scratch, Files: c.hostFiles(b.workers, b.link), Shared: c.shared, Own: c.own, Env: environment}
	err := func() (err error) {
		if a.log, err = os.Create(filepath.Join(s.logs, c.name+".log")); err != nil {
			return fmt.Errorf("start hosts: %w", err)
		}
		if b.link != (link{}) {
			a.wire = host.NewWire(b.link.roundTrip/2, b.link.loss)
		}
		if err := a.startWorkers(func(n int) bool { return !b.isLate(n) }); err != nil {
			return err
		}
		spec := a.spec
		spec.Name = "launcher"
		network, err := a.join(b.link.launcher())
		if err != nil {
			return err
		}
		if a.launcher, err = network.StartLauncher(spec); err != nil {
			return err
		}
		return a.await(ctx, b)
	}()
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// join returns the network of a host with an address.
func (a *arena) join(address string) (*host.Network, error) {
	if a.wire == nil {
		return a.stage.network, nil
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return nil, fmt.Errorf("start hosts: %w", err)
	}
	return a.wire.Join(ip)
}

// startWorkers starts some of the workers.
func (a *arena) startWorkers(chosen func(n int) bool) error {
	for n := range a.workers {
		if !chosen(n) {
			continue
		}
		spec := a.spec
		spec.Name, spec.Command = worker(n), a.serve(a.link.worker(n))
		network, err := a.join(a.link.worker(n))
		if err != nil {
			return err
		}
		if a.workers[n], err = network.Start(spec, a.log); err != nil {
			return err
		}
	}
	return nil
}

// await waits until each worker that a bout begins with can be reached. It connects to a few at once: how long many take is what others
// measure.
func (a *arena) await(ctx context.Context, b bout) error {
	const atOnce = 64
	var present []int
	for n := range b.workers {
		if !b.isLate(n) {
			present = append(present, n)
		}
	}
	for some := range slices.Chunk(present, atOnce) {
		if _, err := a.reach(ctx, some...); err != nil {
			return fmt.Errorf("wait for the workers: %s", firstLine(err))
		}
	}
	return nil
}

// close ends all hosts.
func (a *arena) close() error {
	var errs []error
	if a.launcher != nil {
		errs = append(errs, a.launcher.Stop())
	}
	for _, worker := range a.workers {
		if worker != nil {
			errs = append(errs, worker.Stop())
		}
	}
	if a.wire != nil {
		errs = append(errs, a.wire.Close())
	}
	if a.log != nil {
		errs = append(errs, a.log.Close())
	}
	return errors.Join(errs...)
}

// run runs programs on the launcher.
func (a *arena) run(ctx context.Context, request host.Request) (host.Reply, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	return a.launcher.Run(ctx, request)
}

// ended is how a request ended.
type ended struct {
	reply host.Reply
	err   error
	at    time.Time
}

// start is run in the background.
func (a *arena) start(ctx context.Context, request host.Request) <-chan ended {
	end := make(chan ended, 1)
	go func() {
		reply, err := a.run(ctx, request)
		end <- ended{reply, err, time.Now()}
	}()
	return end
}

// mpirun is a request to run a program on so many workers, one rank on each, with further variables.
func (a *arena) mpirun(workers int, env []string, program ...string) host.Request {
	command := append(slices.Clone(a.launch), "/usr/bin/mpirun", "--map-by", "node", "-n", fmt.Sprint(workers))
	return host.Request{Commands: [][]string{append(command, program...)}, Env: append(a.mpi(), env...)}
}

// reach runs true on workers, on all at once.
func (a *arena) reach(ctx context.Context, workers ...int) (host.Reply, error) {
	if len(workers) == 0 {
		return host.Reply{}, nil
	}
	var request host.Request
	for _, n := range workers {
		request.Commands = append(request.Commands, []string{a.rsh, worker(n), "true"})
	}
	return a.run(ctx, request)
}

// firstLine is the first line of an error's text.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// versions are those of some packages of the image.
func (s stage) versions(ctx context.Context, packages ...string) (versions map[string]string, err error) {
	a, err := s.open(ctx, floor(), bout{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	command := append([]string{"/usr/bin/dpkg-query", "--show", "--showformat=${Package} ${Version}\\n"}, packages...)
	reply, err := a.run(ctx, host.Request{Commands: [][]string{command}})
	if err != nil {
		return nil, err
	}
	versions = map[string]string{}
	for line := range strings.Lines(reply.Outputs[0]) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		versions[name] = version
	}
	return versions, nil
}
