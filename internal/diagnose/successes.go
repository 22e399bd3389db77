package diagnose

import (
	"fmt"
	"slices"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/mpi"
)

// againstExitCode reports the first sign that a job did not do its work although its command ended with 0: what ended its ranks, a rank that
// failed, one that gave up, and an exception that the program has logged.
func againstExitCode(p *input) []Finding {
	for _, check := range []check{pipeClosed, unnoticed, abortedWithZero, exceptionLast} {
		if found := check(p); len(found) > 0 {
			return found
		}
	}
	return nil
}

// pipeClosed reports that the program which read the output of MPI's launcher ended first, and the launcher with it.
func pipeClosed(p *input) []Finding {
	launcher := p.Launcher()
	if launcher == nil {
		return nil
	}
	line := loglines.PipeClosed(launcher.Log.Lines)
	if line == "" {
		return nil
	}
	figures := map[string]string{"program": mpi.BreaksPipe(p.LauncherCommand())}
	return []Finding{p.findAs(codes.PipeClosed, []facts.Pod{*launcher}, figures, facts.LogLine(*launcher, line))}
}

// abortedWithZero reports a rank that gave up by MPI_Abort, with the error code of success.
func abortedWithZero(p *input) []Finding {
	launcher := p.Launcher()
	if launcher == nil {
		return nil
	}
	rank, line := loglines.AbortWithZero(launcher.Log.Lines)
	if rank == "" {
		return nil
	}
	figures := map[string]string{"rank": rank}
	return []Finding{p.findAs(codes.AbortedWithZero, []facts.Pod{*launcher}, figures, facts.LogLine(*launcher, line))}
}

// exceptionLast reports a program whose last lines are the traceback of an exception, which it has logged and not passed on.
func exceptionLast(p *input) []Finding {
	launcher := p.Launcher()
	if launcher == nil {
		return nil
	}
	found := loglines.EndsWithTraceback(launcher.Log.Lines)
	if found == nil {
		return nil
	}
	figures := p.figures([]facts.Pod{*launcher})
	figures["errorText"], figures["wholeError"], figures["rank"] = ": "+quotedText(found.Message), found.Message, found.Rank
	if found.Rank != "" {
		figures["rankText"] = fmt.Sprintf(" in rank %s", found.Rank)
	}
	evidence := []string{facts.LogLine(*launcher, found.Line)}
	if place, frame := loglines.RaisedAt(launcher.Log.Lines, found.Line); place != "" {
		figures["placeText"] = " (" + quotedText(place) + ")"
		evidence = append(evidence, facts.LogLine(*launcher, frame))
	}
	entry := codes.ExceptionLast
	if kind := codes.OwnErrorOf(found.Message); kind != nil {
		entry.Remedies = slices.Concat(entry.Remedies[:1], p.ownError(codes.Lookup(codes.ApplicationFailed), figures).Remedies[:1], entry.Remedies[1:])
	}
	return []Finding{p.findAs(entry, []facts.Pod{*launcher}, figures, evidence...)}
}
