// Package agent measures how fast programs are started on the hosts of a job: by our agent, by OpenSSH, and by
// nothing at all.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/hack/bench/agent/host"
	"opendatahub.io/mpijob/hack/bench/agent/rootfs"
	"opendatahub.io/mpijob/hack/bench/programs"
	"opendatahub.io/mpijob/hack/bench/report"
)

// Settings say how the suite is run.
type Settings struct {
	// Root is our checkout's, Out the folder for all that is made.
	Root, Out string
	// Names are of the results to measure; nil: all.
	Names *regexp.Regexp
	// Runs is how often each contestant runs each case.
	Runs int
	// Progress is told of every run.
	Progress io.Writer
}

// Peers are the contestants beside Ours, in the order of a table.
var Peers = []string{OpenSSH, Floor, MPIOperator}

// sample is the image whose files hosts have: Open MPI 4 and OpenSSH.
const sample = "openmpi-sshd"

// size is the result that takes no run.
var size = result{"size", "MB"}

// Results are what was measured, and by the name of a result why it was not.
type Results struct {
	Cases   []report.Case
	Skipped map[string]string
}

// Smallest is the name of the one case that shows that the suite works.
const Smallest = "^mpirun/2$"

// Run runs the suite.
func Run(ctx context.Context, settings Settings) (results Results, err error) {
	results.Skipped = map[string]string{}
	chosen := slices.DeleteFunc(bouts(), func(b bout) bool { return !settings.wants(b.results...) })
	if len(chosen) > 0 && os.Geteuid() != 0 {
		for _, b := range chosen {
			for _, r := range b.results {
				results.Skipped[r.name] = "only root can make hosts with a name and files of their own"
			}
		}
		chosen = nil
	}
	binary, err := programs.Agent(ctx, settings.Root, filepath.Join(settings.Out, "bin"))
	if err != nil {
		return results, err
	}
	if len(chosen) > 0 {
		if results.Cases, err = settings.fight(ctx, chosen, binary); err != nil {
			return results, err
		}
	}
	if settings.wants(size) {
		info, err := os.Stat(binary)
		if err != nil {
			return results, fmt.Errorf("size of the agent: %w", err)
		}
		values := map[string][]report.Value{Ours: {{Value: float64(info.Size()) / 1e6}}}
		results.Cases = append(results.Cases, report.NewCase(size.name, size.unit, Ours, values))
	}
	return results, nil
}

func (s Settings) wants(all ...result) bool {
	return slices.ContainsFunc(all, func(r result) bool { return s.Names == nil || s.Names.MatchString(r.name) })
}

func (s Settings) tell(line string) { _, _ = fmt.Fprintln(s.Progress, line) }

// fight runs bouts on a stage that is there for as long.
func (s Settings) fight(ctx context.Context, chosen []bout, binary string) (lines []report.Case, err error) {
	s.tell("unpacking the sample image " + sample)
	image, err := rootfs.Sample(ctx, s.Root, sample, filepath.Join(s.Out, "images"))
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "bench-agent-")
	if err != nil {
		return nil, fmt.Errorf("set the stage: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	stage := stage{root: image.Root, scratch: filepath.Join(work, "scratch"), logs: filepath.Join(s.Out, "logs", "agent")}
	installed := filepath.Join(work, "installed")
	for _, folder := range []string{stage.scratch, stage.logs, installed} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("set the stage: %w", err)
		}
	}
	if out, err := exec.CommandContext(ctx, binary, "install", installed).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("install the agent: %w\n%s", err, out)
	}
	k, err := newKey()
	if err != nil {
		return nil, err
	}
	if stage.network, err = host.NewNetwork(); err != nil {
		return nil, err
	}
	defer stage.network.Close()
	for _, b := range chosen {
		some, err := b.run(ctx, stage, s.Runs, []contestant{ours(k, installed), openSSH(k), floor()}, s.tell)
		if err != nil {
			return nil, err
		}
		lines = append(lines, some...)
	}
	return lines, nil
}

// Versions are those of what is measured.
func Versions(ctx context.Context, root string) map[string]string {
	versions := map[string]string{"ours": "unknown"}
	// A checkout without git can be measured too.
	if commit, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--always", "--dirty").Output(); err == nil {
		versions["ours"] = strings.TrimSpace(string(commit))
	}
	return versions
}
