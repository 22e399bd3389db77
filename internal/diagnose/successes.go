package diagnose

import (
	"fmt"
	"regexp"
	"slices"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/mpi"
)

// againstExitCode reports the first sign that a job did not do its work although its command ended with 0: what ended its ranks, a rank that
// failed, one that gave up, an exception that the program has logged, and one that ended a part of it.
func againstExitCode(p *input) []Finding {
	for _, check := range []check{pipeClosed, unnoticed, abortedWithZero, exceptionLast, partEnded} {
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
	figures := map[string]string{"program": mpi.BreaksPipe(p.LauncherWords())}
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

// partEnded reports a thread, a task or a child process of the program that an exception has ended, without which the program went on.
func partEnded(p *input) []Finding {
	launcher := p.Launcher()
	if launcher == nil {
		return nil
	}
	asides := slices.DeleteFunc(loglines.Asides(launcher.Log.Lines), func(a loglines.Aside) bool { return stopped.MatchString(a.Message) })
	if len(asides) == 0 {
		return nil
	}
	found := asides[0]
	figures := p.figures([]facts.Pod{*launcher})
	figures["rank"] = found.Rank
	evidence := p.addError(*launcher, found.ErrorLine, figures)
	entry := codes.PartEnded
	entry.Remedies = slices.Concat(entry.Remedies, howToFail[found.Part])
	figures["part"] = partText(found)
	if found.Rank != "" {
		figures["rankText"] = " in rank " + found.Rank
	}
	if found.Times > 1 {
		figures["times"] = fmt.Sprintf(" The log shows this %d times.", found.Times)
	}
	if codes.OwnErrorOf(figures["wholeError"]) != nil {
		entry.Remedies = slices.Concat(p.ownError(codes.Lookup(codes.ApplicationFailed), figures).Remedies[:1], entry.Remedies)
	}
	return []Finding{p.findAs(entry, []facts.Pod{*launcher}, figures, evidence...)}
}

// stopped is an exception with which helpers of a program end when it stops them, or is done with their queues.
var stopped = regexp.MustCompile(`^(?:KeyboardInterrupt$|SystemExit\b|BrokenPipeError\b|EOFError$)`)

// howToFail are the last remedies for a part of a program that has failed: how the program notices it.
var howToFail = map[loglines.Part][]v1alpha1.Remedy{
	loglines.Thread: codes.NoticeThread, loglines.Task: codes.NoticeTask, loglines.Process: codes.NoticeProcess,
}

// partText names a part of a program, such as "thread checkpoint-writer".
func partText(of loglines.Aside) string {
	what := map[loglines.Part]string{loglines.Thread: "thread", loglines.Task: "task", loglines.Process: "child process"}[of.Part]
	if of.Name == "" {
		return "a " + what + " of the program"
	}
	return what + " " + quotedText(of.Name)
}
