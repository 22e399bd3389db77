// Package diagnose finds out why a job does not progress or has failed. Findings start with the cause, contain figures
// and remedies, and are written for the users of jobs, not for administrators.
//
// It has three steps, each in a folder of its own: facts (what pods, events, nodes, agents, logs and the specification show), causes
// (here: a file for each subject, and their order in diagnose.go), and texts with remedies (package codes). Texts contain times and
// no ages: a finding stays the same while nothing happens.
package diagnose

import (
	"fmt"
	"runtime/debug"
	"slices"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// check returns the findings of a cause, or nothing if it does not apply.
type check = func(*input) []Finding

// The checks of jobs that have not succeeded, in the order of causes. What happened first explains what happened later, and a pod
// explains what other pods report of it. The order within one group decides between causes that the same facts can show.
var (
	// beforePods are problems before pods exist.
	beforePods = []check{unplaceable, shortOfQuota, refused, keys}
	// podsRemoved are what happened to pods, whatever ran in them.
	podsRemoved = []check{takenAway, rejected, podDeadlines, probes, hooks}
	// podsNotStarted are what happened in a pod, or keeps it from starting. Memory is first: it ends everything else.
	podsNotStarted = []check{
		outOfMemory, commands, images, containers, unstartable, volumes, unplaced, unattended, networkMissing, sandboxes,
		crashes, initializers, waitingInitializers, initContainers, workersDeleted, launcherDeleted, endedWorkers,
	}
	// programs are what agents and logs show of MPI and of the program, the more specific first.
	programs = []check{otherMPI, batchLauncher, unreached, hostfileIgnored, interfaceNotSelected, transportless, symptoms, mixedMPI, sharedGPUs, rdmaNotUsed, clocks, deadline}
	// ends are how processes ended, which does not explain why, and what follows from that.
	ends = []check{firstEnds, summings, lastEnds, nothingStarted, sidecars, failedSidecars}
	// waits are what a job without another cause waits for.
	waits = []check{workersNotReady, probesNotExecuted, earlierJob, waitingForHosts, stalled, silent, slowStart}

	checks = slices.Concat(beforePods, podsRemoved, podsNotStarted, programs, ends, waits)
	// warnings are what can make a running job fail, or waste its resources.
	warnings = []check{memoryGrowing, trainingDiverged, figureConstant, deadlineNear, queueLimitNear, nodesCordoned, throttling, coresShared, gpusIdle}
	// queuedChecks and succeededChecks are those of jobs in these phases.
	queuedChecks    = []check{queued, shortOfQuota}
	succeededChecks = []check{hostfileIgnored, mixedMPI, notAwaited, againstExitCode, rdmaNotUsed, rdmaFallback, throttled, coresWereShared, workersIdle, trainingDiverged, resultsNotKept}
)

// Job returns the findings of a job: the cause first, then its consequences and other observations. A healthy job has
// none. A job that failed or needs action has at least one, even if only to show what is known and where to look.
func Job(job mpi.Job, seen jobstate.Observed, evidence jobstate.Evidence, outcome jobstate.Outcome) []Finding {
	p := &input{facts.New(job, seen, evidence, outcome)}
	var found []Finding
	switch {
	case p.Succeeded():
		found = run(succeededChecks, p)
	case outcome.Phase == v1alpha1.PhaseSuspended:
		found = shortOfQuota(p)
	case outcome.Phase == v1alpha1.PhaseQueued:
		found = run(queuedChecks, p)
	default:
		found = withoutExplainedStarts(run(checks, p))
		if len(found) == 0 {
			found = unknown(p)
		}
		found = append(found, run(warnings, p)...)
		if found = append(found, rdmaFallback(p)...); p.Failed() {
			found = append(found, throttled(p)...)
		}
		for i := range found {
			found[i] = p.addLimit(found[i])
		}
	}
	return p.order(found)
}

// TryJob is Job, and returns an error in place of a panic, so that nothing in a job keeps its report from being written.
func TryJob(job mpi.Job, seen jobstate.Observed, evidence jobstate.Evidence, outcome jobstate.Outcome) (found []Finding, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			found, err = nil, fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return Job(job, seen, evidence, outcome), nil
}

func run(checks []check, p *input) (found []Finding) {
	for _, check := range checks {
		found = append(found, check(p)...)
	}
	return found
}
