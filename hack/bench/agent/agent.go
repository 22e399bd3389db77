// Package agent measures how fast programs are started on the hosts of a job: by our agent, by OpenSSH, and by
// nothing at all.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	"opendatahub.io/mpijob/hack/bench/agent/host"
	"opendatahub.io/mpijob/hack/bench/agent/rootfs"
	"opendatahub.io/mpijob/hack/bench/programs"
	"opendatahub.io/mpijob/hack/bench/report"
)

// Settings say how the suite is run.
type Settings struct {
	// Root is our checkout's, Out the folder for all that is made.
	Root, Out string
	// Names match those of the results to measure.
	Names *regexp.Regexp
	// Full adds cases with hundreds of hosts.
	Full bool
	// Runs is how often each contestant runs each case.
	Runs int
	// Before is a commit whose agent is compared with ours; empty: OpenSSH is.
	Before string
	// Strict is whether a contestant that fails is an error, instead of a reason why it has no figure.
	Strict bool
	// Progress receives a line per run.
	Progress io.Writer
	// Save is called with all results so far after each case.
	Save func(Results) error
}

// Peers returns the contestants other than Ours, in the order of a table. The commit before is that of Settings.
func Peers(before string) []string {
	if before != "" {
		return []string{Before, Floor}
	}
	return []string{OpenSSH, Floor}
}

// sample is the image whose files hosts have: Open MPI 4 and OpenSSH.
const sample = "openmpi-sshd"

// size is the result that takes no run.
var size = result{"size", "MB"}

// Results are what was measured.
type Results struct {
	Cases []report.Case
	// Skipped is by the name of a result why it was not measured. The name of a contestant follows if others were measured.
	Skipped map[string]string
	// Versions are those of what was measured.
	Versions map[string]string
}

// Smallest matches the name of the one case that shows that the suite works.
var Smallest = regexp.MustCompile("^mpirun/2$")

// Run runs the suite. Without a name that matches there are no results.
func Run(ctx context.Context, settings Settings) (results Results, err error) {
	results = Results{Skipped: map[string]string{}, Versions: map[string]string{"ours": programs.Commit(ctx, settings.Root)}}
	chosen := slices.DeleteFunc(bouts(settings.Full), func(b bout) bool { return !settings.wants(b.results...) })
	if len(chosen) > 0 && os.Geteuid() != 0 {
		for _, b := range chosen {
			results.skip("only root can make hosts with a name and files of their own", b.results...)
		}
		chosen = nil
	}
	if len(chosen) == 0 && !settings.wants(size) {
		return results, nil
	}
	agents, err := settings.build(ctx)
	if err != nil {
		return results, err
	}
	if settings.Before != "" {
		if results.Versions[Before], err = programs.Describe(ctx, settings.Root, settings.Before); err != nil {
			return results, err
		}
	}
	if len(chosen) > 0 {
		if err := settings.fight(ctx, agents, chosen, &results); err != nil {
			return results, err
		}
	}
	if settings.wants(size) {
		if err := results.size(agents); err != nil {
			return results, err
		}
	}
	return results, nil
}

func (r *Results) skip(why string, skipped ...result) {
	for _, result := range skipped {
		r.Skipped[result.name] = why
	}
}

// build compiles our agent and, if asked for, that of the commit before. It returns their files by contestant.
func (s Settings) build(ctx context.Context) (agents map[string]string, err error) {
	agents = map[string]string{}
	if agents[Ours], err = programs.Agent(ctx, s.Root, filepath.Join(s.Out, "bin")); err != nil || s.Before == "" {
		return agents, err
	}
	s.tell("building the agent of " + s.Before)
	earlier, err := programs.Checkout(ctx, s.Root, s.Before, filepath.Join(s.Out, "before"))
	if err != nil {
		return nil, err
	}
	agents[Before], err = programs.Agent(ctx, earlier, filepath.Join(s.Out, "bin", "before"))
	return agents, err
}

// size adds the sizes of the agents.
func (r *Results) size(agents map[string]string) error {
	values := map[string][]report.Value{}
	for name, file := range agents {
		info, err := os.Stat(file)
		if err != nil {
			return fmt.Errorf("size of the agent: %w", err)
		}
		values[name] = []report.Value{{Value: float64(info.Size()) / 1e6}}
	}
	r.Cases = append(r.Cases, report.NewCase(size.name, size.unit, Ours, values))
	return nil
}

func (s Settings) wants(all ...result) bool {
	return slices.ContainsFunc(all, func(r result) bool { return s.Names.MatchString(r.name) })
}

func (s Settings) tell(line string) { _, _ = fmt.Fprintln(s.Progress, line) }

// fight runs bouts on a stage that is there for as long.
func (s Settings) fight(ctx context.Context, agents map[string]string, chosen []bout, results *Results) (err error) {
	s.tell("unpacking the sample image " + sample)
	image, err := rootfs.Sample(ctx, s.Root, sample, filepath.Join(s.Out, "images"))
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "bench-agent-")
	if err != nil {
		return fmt.Errorf("set the stage: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	stage := stage{root: image.Root, scratch: filepath.Join(work, "scratch"), logs: filepath.Join(s.Out, "logs", "agent")}
	for _, folder := range []string{stage.scratch, stage.logs} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("set the stage: %w", err)
		}
	}
	contestants, err := meet(ctx, agents, work)
	if err != nil {
		return err
	}
	if stage.network, err = host.NewNetwork(); err != nil {
		return err
	}
	defer stage.network.Close()
	versions, err := stage.versions(ctx, "openmpi-bin", "openssh-server")
	if err != nil {
		return err
	}
	maps.Copy(results.Versions, versions)
	for _, b := range chosen {
		lines, skipped, err := b.run(ctx, stage, s.Runs, contestants, s.tell)
		if err != nil {
			return err
		}
		for name, why := range skipped {
			if s.Strict {
				return fmt.Errorf("%s, %s: %s", b.results[0].name, name, why)
			}
			results.Skipped[b.results[0].name+" of "+name] = why
		}
		results.Cases = append(results.Cases, lines...)
		if err := s.Save(*results); err != nil {
			return err
		}
	}
	return nil
}

// meet returns the contestants, in the order in which they take turns. It installs each agent in a folder below work.
func meet(ctx context.Context, agents map[string]string, work string) ([]contestant, error) {
	k, err := NewKey()
	if err != nil {
		return nil, err
	}
	var all []contestant
	for _, name := range []string{Ours, Before} {
		binary, built := agents[name]
		if !built {
			continue
		}
		folder := filepath.Join(work, name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("install the agent: %w", err)
		}
		if out, err := exec.CommandContext(ctx, binary, "install", folder).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("install the agent: %w\n%s", err, out)
		}
		all = append(all, withAgent(name, k, folder))
	}
	if len(all) == 1 {
		all = append(all, openSSH(k))
	}
	return append(all, floor()), nil
}
