package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/mpi"
)

// readLogs looks for symptoms in logs of pods in trouble: in a healthy program's output the same words mean nothing.
func (f *Facts) readLogs() []Sign {
	var signs []Sign
	troubled := f.troubled()
	for _, symptom := range implementation.For(f.Job.Implementation).Symptoms() {
		found := findSign(symptom, troubled)
		if code := crashPassedOn(found); code != "" {
			found.Code, found.Umbrella = code, false
		}
		if found.Line != "" && found.Code == codes.SegmentationFault && f.LaunchedInRank() {
			found.Code, found.As, found.Umbrella = codes.ApplicationFailed, nil, true
		}
		if found.Line != "" && (f.mpiCrashed(found) || f.killedAfterwards(found)) {
			f.leaveOut(symptom)
			troubled = f.troubled()
			continue
		}
		// A line shows one problem: the first symptom that matches it is the most specific.
		if found.Line != "" && !slices.ContainsFunc(signs, func(s Sign) bool { return s.explains(found) }) {
			signs = append(signs, found)
		}
	}
	return signs
}

// troubled returns the pods in trouble that have a log.
func (f *Facts) troubled() (pods []Pod) {
	for _, pod := range f.Pods {
		if len(pod.Log.Lines) > 0 && (f.Failed() || pod.End() != nil || f.QuietSince(pod)) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// leaveOut removes the lines of a symptom from the logs, with those before that name its rank: they are about a consequence, and no
// evidence of the cause.
func (f *Facts) leaveOut(symptom implementation.Symptom) {
	for i := range f.Pods {
		log := &f.Pods[i].Log
		var kept []string
		for _, line := range log.Lines {
			if _, is := symptom.Match(line); !is {
				kept = append(kept, line)
				continue
			}
			for j := len(kept) - 1; j >= max(0, len(kept)-preceding); j-- {
				if symptom.AddBefore(map[string]string{}, kept[j]) {
					kept = slices.Delete(kept, j, j+1)
					break
				}
			}
		}
		log.Lines = kept
	}
}

// preceding is the number of lines before one that shows a symptom, in which its rank is named.
const preceding = 4

// killedAfterwards reports whether a rank was killed because another one had exited with an error before, as the agent observed:
// Intel MPI kills the others and only prints these.
func (f *Facts) killedAfterwards(s Sign) bool {
	if s.Code != codes.Killed {
		return false
	}
	if line, _ := f.TimeLimit(); line != "" {
		return true
	}
	first, _ := f.FirstRank()
	switch {
	case first == nil:
		return false
	case first.Signal == 9 && !first.OOM && f.KilledByMPI():
		return true
	}
	return first.Signal == 0 && first.ExitCode > 0 && s.Figures["rank"] != fmt.Sprint(first.Rank)
}

// mpiCrashed reports whether a segmentation fault was one of MPI while it ended the other ranks, after the first rank had
// ended with an exit code of its own: of mpirun, on whose host no ranks run (Open MPI), of the daemon of a host, which
// mpiexec then misses, or of another rank, whose peer is gone (MPICH). It is one, too, if the launcher's agent lost a host and
// saw no rank end but those that were ended: mpirun crashes when it is ended meanwhile (Open MPI 4).
func (f *Facts) mpiCrashed(s Sign) bool {
	first, _ := f.FirstRank()
	if s.Code == codes.SegmentationFault && f.LostWorker() && (first == nil || !first.OOM && (first.Signal == 15 || first.Signal == 9)) {
		return true
	}
	if s.Code != codes.SegmentationFault || first == nil || first.Signal != 0 || first.ExitCode <= 0 || CodeOfCrash(first.ExitCode) != "" {
		return false
	}
	if !f.Job.Launcher.RunsRanks && strings.HasPrefix(s.Line, "["+f.Job.LauncherHost()+":") {
		return true
	}
	// An exception, which has code 1, and MPI's own codes can follow from the crash of a peer.
	if first.ExitCode > 1 && !first.LostPeer() {
		if rank := s.Figures["rank"]; rank != "" && rank != fmt.Sprint(first.Rank) || rank == "" && f.crashedLater(*first) {
			return true
		}
	}
	return slices.ContainsFunc(s.Pods, func(pod Pod) bool {
		return slices.ContainsFunc(pod.Log.Lines, func(line string) bool {
			return strings.HasPrefix(line, "[mpiexec@") && strings.HasSuffix(line, "assert (!closed) failed")
		})
	})
}

// LaunchedInRank reports whether Open MPI's launcher refused to start because a rank called it. It can crash when it ends because of that: with version
// 4, its threads still run.
func (f *Facts) LaunchedInRank() bool {
	return slices.ContainsFunc(f.Pods, func(pod Pod) bool { return loglines.RefusesRecursion(pod.Log.Lines) })
}

// findSign looks for a symptom in the logs of pods; the sign has no line if none shows it.
func findSign(symptom implementation.Symptom, pods []Pod) Sign {
	found := Sign{Symptom: symptom}
	for _, pod := range pods {
		if pod.Deleted && codes.Has(symptom.Code, codes.EndsRank) {
			// mpirun may crash while it cleans up, and reports ranks that it killed.
			continue
		}
		shown := FirstShown(pod, symptom)
		if shown == nil {
			continue
		}
		if found.Line == "" {
			found.Line, found.whole, found.Figures = shown.Line, shown.whole, shown.Figures
		}
		found.Pods = append(found.Pods, pod)
	}
	return found
}

// explains reports whether a later sign is the same line with another code, or a part of the same message.
func (s Sign) explains(later Sign) bool {
	if s.whole == "" {
		return s.Line == later.Line && s.Code != later.Code
	}
	return strings.Contains(s.whole, cmp.Or(later.whole, loglines.OneLine(later.Line)))
}

// FirstShown returns where the log of a pod shows a symptom first, with its figures; nil if it does not.
func FirstShown(pod Pod, symptom implementation.Symptom) *Sign {
	const following = 12
	if symptom.Whole {
		return lookAtMessages(pod, symptom)
	}
	for i, line := range pod.Log.Lines {
		figures, found := matchTagged(symptom, line)
		if !found {
			continue
		}
		for _, before := range slices.Backward(pod.Log.Lines[max(0, i-preceding):i]) {
			if symptom.AddBefore(figures, before) {
				break
			}
		}
		for _, next := range pod.Log.Lines[i+1 : min(len(pod.Log.Lines), i+1+following)] {
			symptom.Add(figures, next)
		}
		return &Sign{Line: line, Figures: figures}
	}
	return nil
}

// lookAtMessages is look for a symptom that whole messages of Open MPI show.
func lookAtMessages(pod Pod, symptom implementation.Symptom) *Sign {
	for _, m := range pod.messages {
		figures, found := symptom.Match(m.Whole)
		if !found {
			continue
		}
		if symptom.Also != nil && !slices.ContainsFunc(pod.messages, func(other loglines.Message) bool { return symptom.AddAlso(figures, other.Whole) }) {
			continue
		}
		return &Sign{Line: m.First, whole: m.Whole, Figures: figures}
	}
	return nil
}

// matchTagged matches a line without the tag of its rank, which is a figure then.
func matchTagged(symptom implementation.Symptom, line string) (figures map[string]string, found bool) {
	tag := loglines.RankTag.FindStringSubmatch(line)
	if figures, found = symptom.Match(line); found {
		if tag != nil && figures["rank"] == "" {
			figures["rank"] = tag[1]
		}
		return figures, true
	}
	if tag == nil {
		return nil, false
	}
	if figures, found = symptom.Match(line[len(tag[0]):]); found && figures["rank"] == "" {
		figures["rank"] = tag[1]
	}
	return figures, found
}

// crashPassedOn returns the code of the crash of a rank whose exit code mpirun prints in a log with a sign that sums up, or
// with which it ends itself; "" if there is none.
func crashPassedOn(s Sign) codes.Code {
	if !s.Umbrella || s.Code != codes.ApplicationFailed {
		return ""
	}
	for _, pod := range s.Pods {
		for _, line := range pod.Log.Lines {
			if printed := loglines.ExitCode.FindStringSubmatch(line); printed != nil {
				code, _ := strconv.ParseInt(printed[1], 10, 32)
				return CodeOfCrash(int32(code))
			}
		}
	}
	for _, pod := range s.Pods {
		if end := pod.End(); end != nil && pod.Role == mpi.RoleLauncher && strings.Contains(s.Line, "a non-zero exit code") {
			return CodeOfCrash(end.ExitCode)
		}
	}
	return ""
}

// Shows reports whether a log shows a symptom.
func (f *Facts) Shows(code codes.Code) bool {
	return slices.ContainsFunc(f.Signs, func(s Sign) bool { return s.Code == code })
}
