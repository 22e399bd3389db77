// Package start measures on a cluster how fast jobs start and end: from the creation of a job until a rank has written its
// first line, and from the last line until the job has succeeded.
package start

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/hack/bench/cluster"
	"opendatahub.io/mpijob/hack/bench/programs"
	"opendatahub.io/mpijob/hack/bench/report"
)

// Names of the contestants, as in the report.
const (
	Ours        = "ours"
	MPIOperator = "mpi-operator"
	// Before is our operator of an earlier commit, with its agent.
	Before = "before"
	Floor  = "floor"
	// Trainer runs a TrainJob without our operator. In the cases of TrainJobs, Ours is a TrainJob whose ranks the agent starts,
	// and MPIJob an MPIJob of our operator.
	Trainer = "trainer"
	MPIJob  = "mpijob"
	// TrainJob is Ours in the cases of TrainJobs.
	TrainJob = "trainjob"
)

// Peers returns the contestants other than Ours, in the order of the table. The commit before is that of Settings.
func Peers(before string) []string {
	if before != "" {
		return []string{Before, Floor}
	}
	return []string{MPIOperator, Trainer, MPIJob, Floor}
}

// Settings are those of a run of the suite.
type Settings struct {
	// Root is our checkout, Out the folder for everything that is built and written.
	Root, Out string
	// Names match those of the cases to measure.
	Names *regexp.Regexp
	// Runs is how often each contestant runs each case.
	Runs int
	// Before is a commit whose operator and agent are compared with ours; empty: mpi-operator and Trainer are.
	Before string
	// Progress receives a line per run.
	Progress io.Writer
}

// Results are what was measured.
type Results struct {
	Cases []report.Case
	// Skipped is why a case was not measured, by its name.
	Skipped map[string]string
	// Versions are those of what was measured.
	Versions map[string]string
}

// sizes are the numbers of workers, each with one rank. The end is measured with the size endSize.
var sizes = []int{1, 4, 16}

const endSize = 4

func firstLine(workers int) string { return fmt.Sprintf("first-line/%d", workers) }

// firstLineCold is firstLine of a job whose image no node has.
func firstLineCold(workers int) string { return fmt.Sprintf("first-line-cold/%d", workers) }

func end(workers int) string { return fmt.Sprintf("end/%d", workers) }

// The cases of TrainJobs: until the first line, until all pods exist, and from the last line until the TrainJob is complete.
var (
	firstLineTrainJob = fmt.Sprintf("first-line-trainjob/%d", endSize)
	podsTrainJob      = fmt.Sprintf("pods-trainjob/%d", endSize)
	endTrainJob       = fmt.Sprintf("end-trainjob/%d", endSize)
)

// Run runs the suite. If no name matches, there are no results.
func Run(ctx context.Context, settings Settings) (results Results, err error) {
	results = Results{Skipped: map[string]string{}, Versions: map[string]string{"ours": programs.Commit(ctx, settings.Root)}}
	var chosen []string
	for _, workers := range sizes {
		chosen = append(chosen, firstLine(workers))
	}
	chosen = append(chosen, end(endSize), firstLineCold(endSize), firstLineTrainJob, podsTrainJob, endTrainJob)
	chosen = slices.DeleteFunc(chosen, func(name string) bool { return !settings.Names.MatchString(name) })
	if len(chosen) == 0 {
		return results, nil
	}
	f, err := settings.openField(ctx)
	if none, is := errors.AsType[cluster.Missing](err); is {
		for _, name := range chosen {
			results.Skipped[name] = none.Why
		}
		return results, nil
	}
	if err != nil {
		return results, err
	}
	defer func() { err = errors.Join(err, f.leave(context.WithoutCancel(ctx))) }()
	if settings.Before != "" {
		results.Versions[Before], err = programs.Describe(ctx, settings.Root, settings.Before)
	} else {
		results.Versions[MPIOperator], err = programs.MPIOperatorVersion(ctx, settings.Root)
	}
	if err != nil {
		return results, err
	}
	values := measurements{values: map[string]map[string][]report.Value{}, steps: map[string]map[string][][]report.Step{}}
	if err := settings.measureMPIJobs(ctx, f, chosen, values); err != nil {
		return results, err
	}
	for _, further := range []struct {
		isOne   func(name string) bool
		measure func(context.Context, *field, measurements, *Results) error
	}{{isCold, settings.measureCold}, {isTrainJobs, settings.measureTrainJobs}} {
		if !slices.ContainsFunc(chosen, further.isOne) {
			continue
		}
		if err := further.measure(ctx, f, values, &results); err != nil {
			return results, err
		}
	}
	for _, name := range chosen {
		if _, skipped := results.Skipped[name]; !skipped {
			results.Cases = append(results.Cases, values.newCase(name))
		}
	}
	return results, nil
}

// measurements are those of contestants by the names of cases.
type measurements struct {
	values map[string]map[string][]report.Value
	// steps are the parts of the runs that values are of.
	steps map[string]map[string][][]report.Step
}

func (m measurements) add(name, who string, value time.Duration, steps []report.Step) {
	if m.values[name] == nil {
		m.values[name], m.steps[name] = map[string][]report.Value{}, map[string][][]report.Step{}
	}
	m.values[name][who] = append(m.values[name][who], report.Value{Value: value.Seconds()})
	m.steps[name][who] = append(m.steps[name][who], steps)
}

// newCase returns the medians of a case, with the parts of each contestant's median run.
func (m measurements) newCase(name string) report.Case {
	c := report.NewCase(name, "s", Ours, m.values[name])
	for who, runs := range m.steps[name] {
		if steps := runs[report.MedianRun(m.values[name][who])]; len(steps) > 0 {
			if c.Steps == nil {
				c.Steps = map[string][]report.Step{}
			}
			c.Steps[who] = steps
		}
	}
	return c
}

// contestants are those of the cases of MPIJobs, in the order of their turns.
func (s Settings) contestants() []string {
	if s.Before != "" {
		return []string{Ours, Before, Floor}
	}
	return []string{Ours, MPIOperator, Floor}
}

func isCold(name string) bool { return name == firstLineCold(endSize) }

func isTrainJobs(name string) bool { return strings.Contains(name, "trainjob") }

// measureMPIJobs measures MPIJobs of the chosen sizes.
func (s Settings) measureMPIJobs(ctx context.Context, f *field, chosen []string, values measurements) error {
	for _, workers := range sizes {
		if !slices.Contains(chosen, firstLine(workers)) && !slices.Contains(chosen, end(workers)) {
			continue
		}
		err := s.measure(ctx, f, firstLine(workers), workers, s.contestants(), func(who string, took times) {
			values.add(firstLine(workers), who, took.first, took.steps)
			values.add(end(workers), who, took.end, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// measureCold measures jobs that have to pull their image from a registry on this machine. The agent's image is in place: nodes
// have it after the first job.
func (s Settings) measureCold(ctx context.Context, f *field, values measurements, results *Results) error {
	name := firstLineCold(endSize)
	if !f.Own {
		results.Skipped[name] = "only the nodes of the one-machine cluster reach a registry on this machine"
		return nil
	}
	images, err := serveColdImages(ctx, f.archive)
	if err != nil {
		return err
	}
	f.cold = images
	err = s.measure(ctx, f, name, endSize, s.contestants(), func(who string, took times) {
		values.add(name, who, took.first, took.steps)
	})
	f.cold = nil
	return errors.Join(err, images.close())
}

// measureTrainJobs measures TrainJobs, if the cluster has Kubeflow Trainer.
func (s Settings) measureTrainJobs(ctx context.Context, f *field, values measurements, results *Results) error {
	skip := func(why string) {
		for _, name := range []string{firstLineTrainJob, podsTrainJob, endTrainJob} {
			results.Skipped[name] = why
		}
	}
	if s.Before != "" {
		skip("only MPIJobs are compared with an earlier commit")
		return nil
	}
	installed, err := f.createRuntimes(ctx, s.Root)
	if err != nil {
		return err
	}
	if !installed {
		skip("Kubeflow Trainer is not installed: `make deploy WITH=trainer` installs it")
		return nil
	}
	return s.measure(ctx, f, firstLineTrainJob, endSize, []string{TrainJob, Trainer, Ours}, func(who string, took times) {
		switch who {
		case TrainJob:
			who = Ours
		case Ours:
			who = MPIJob
		}
		values.add(firstLineTrainJob, who, took.first, took.steps)
		values.add(podsTrainJob, who, took.pods, nil)
		values.add(endTrainJob, who, took.end, nil)
	})
}

// measure has contestants take turns, and passes on what each job took. One that went first in a turn goes last in the next.
func (s Settings) measure(ctx context.Context, f *field, name string, workers int, contestants []string, add func(who string, took times)) error {
	for turn := range s.Runs {
		for i := range contestants {
			who := contestants[(turn+i)%len(contestants)]
			took, err := f.turn(ctx, who, workers)
			if err != nil {
				return fmt.Errorf("%s, %s, run %d: %w", name, who, turn+1, err)
			}
			add(who, took)
			_, _ = fmt.Fprintf(s.Progress, "%-13s run %d/%d  %-13s pods %.3f s, first line %.3f s, end %.3f s\n",
				name, turn+1, s.Runs, who, took.pods.Seconds(), took.first.Seconds(), took.end.Seconds())
		}
	}
	return nil
}

// times are those of one job.
type times struct {
	// pods is from the creation of the job until all of its pods exist, if that was measured.
	pods time.Duration
	// first is from the creation of the job until its first line, end from its last line until its success is observed.
	first, end time.Duration
	// steps are the parts of first, if they were observed.
	steps []report.Step
}
