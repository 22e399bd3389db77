package diagnose

import (
	"strconv"

	"opendatahub.io/mpijob/internal/mpi"
)

var gangTexts = map[mpi.Code]text{
	mpi.CodeGangTimeout: {
		summary: "The job has failed because there was never room for all of its {pods} pods at once, and pods that wait for the others keep their places from other work. {said}",
		remedies: []Remedy{
			{Text: "Ask for fewer workers, or for less in each.", Action: "{workersField}"},
			{Text: "Let it wait longer, or be put back more often.", Action: "{gangField}.scheduleTimeoutSeconds, " + mpi.AnnotationRequeues},
			{Text: "See what uses the machines.", Action: "kubectl describe nodes | grep -A 10 -E 'Allocatable|Allocated resources'"},
		},
	},
	mpi.CodeGangImpossible: {
		summary: "The job's pods cannot be placed together, so that none of them is made: {said}",
		remedies: []Remedy{
			{Text: "Correct what is named here.", Action: "{gangField}"},
		},
	},
	mpi.CodeGangNeverFits: {
		summary: "The job needs {pods} pods placed together, for which the cluster has no room even while nothing else runs, so that waiting does not help: {said}",
		remedies: []Remedy{
			{Text: "Ask for fewer workers, or for less in each.", Action: "{workersField}"},
			{Text: "See what the machines have.", Action: "kubectl describe nodes | grep -A 6 Allocatable"},
			{Text: "Or ask whoever runs the cluster for larger machines, or for more of them."},
		},
	},
}

// reasonImpossible is that of a gang that its back end cannot place (gang.ReasonImpossible).
const reasonImpossible = "GangImpossible"

// unplaceable tells why the pods of a job will never be placed together, or were not in time. That a job simply waits is
// nothing wrong.
func unplaceable(p *patient) []Finding {
	gang := p.seen.Gang
	figures := map[string]string{"pods": strconv.Itoa(int(p.job.GangSize())), "gangField": fieldText(p.job.Fields.Gang, "schedulingPolicy")}
	switch {
	case p.failed() && p.outcome.Reason == mpi.ReasonGangTimeout:
		figures["said"] = p.outcome.Message
		return []Finding{p.find(mpi.CodeGangTimeout, Error, nil, figures)}
	case gang == nil || !gang.Never || p.failed():
		return nil
	}
	figures["said"] = sentence(gang.Message)
	code := mpi.CodeGangNeverFits
	if gang.Reason == reasonImpossible {
		code = mpi.CodeGangImpossible
	}
	return []Finding{p.find(code, Error, nil, figures)}
}

// together says of pods for which there is not enough room that they are placed together: one machine may have room for
// any of them.
func (p *patient) together(f Finding) Finding {
	if gang := p.seen.Gang; gang.Waits() && f.Code == mpi.CodeInsufficient && f.Severity != Error {
		f.Summary = "There is not enough room for all of the job's pods at once, so that none of them starts: the job " + gang.Fits() + "."
	}
	return f
}
