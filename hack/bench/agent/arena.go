package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"opendatahub.io/mpijob/hack/bench/agent/host"
)

// arena is where one contestant makes one run: a launcher, and workers that serve.
type arena struct {
	contestant
	launcher *host.Launcher
	workers  []*host.Host
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

// open starts the hosts and waits until each can be reached.
func (s stage) open(ctx context.Context, c contestant, workers int) (*arena, error) {
	a := &arena{contestant: c}
	spec := host.Spec{Root: s.root, Scratch: s.scratch, Files: c.hostFiles(workers), Shared: c.shared, Own: c.own, Env: environment}
	err := func() (err error) {
		log, err := os.Create(filepath.Join(s.logs, c.name+".log"))
		if err != nil {
			return fmt.Errorf("start hosts: %w", err)
		}
		defer log.Close()
		for n := 0; n < workers && c.serve != nil; n++ {
			spec.Name, spec.Command = worker(n), c.serve(address(n))
			started, err := s.network.Start(spec, log)
			if err != nil {
				return err
			}
			a.workers = append(a.workers, started)
		}
		spec.Name = "launcher"
		if a.launcher, err = s.network.StartLauncher(spec); err != nil {
			return err
		}
		if workers > 0 {
			_, err = a.reach(ctx, workers)
		}
		return err
	}()
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// close ends all hosts.
func (a *arena) close() error {
	var errs []error
	if a.launcher != nil {
		errs = append(errs, a.launcher.Stop())
	}
	for _, worker := range a.workers {
		errs = append(errs, worker.Stop())
	}
	return errors.Join(errs...)
}

// run runs programs on the launcher.
func (a *arena) run(ctx context.Context, request host.Request) (host.Reply, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	return a.launcher.Run(ctx, request)
}

// reach runs true on the first so many workers, on all at once.
func (a *arena) reach(ctx context.Context, workers int) (host.Reply, error) {
	var request host.Request
	for n := range workers {
		request.Commands = append(request.Commands, []string{a.rsh, worker(n), "true"})
	}
	return a.run(ctx, request)
}

// versions are those of some packages of the image.
func (s stage) versions(ctx context.Context, packages ...string) (versions map[string]string, err error) {
	a, err := s.open(ctx, floor(), 0)
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
