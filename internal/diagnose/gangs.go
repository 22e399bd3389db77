package diagnose

import (
	"strconv"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// isGangFailure contains the reasons of jobs that failed because their pods were not placed.
var isGangFailure = map[codes.Code]bool{codes.GangTimeout: true, codes.GangNeverFits: true, codes.GangImpossible: true}

// unplaceable reports why the pods of a job can never be placed together, or were not in time. A job that only waits
// has no such finding.
func unplaceable(p *input) []Finding {
	gang := p.Seen.Gang
	figures := map[string]string{"pods": strconv.Itoa(int(p.Job.GangSize())), "gangField": fieldText(p.Job.Fields.Gang, "schedulingPolicy")}
	switch {
	case p.Failed() && isGangFailure[p.Outcome.Reason]:
		figures["said"] = p.Outcome.Message
		return []Finding{p.find(p.Outcome.Reason, nil, figures)}
	case gang == nil || !gang.Never || p.Failed():
		return nil
	}
	figures["said"] = facts.Sentence(gang.Message)
	code := codes.GangNeverFits
	switch {
	case gang.Reason == codes.GangImpossible:
		code = codes.GangImpossible
	case gang.Reason == codes.NoMatchingNode && p.Seen.Queue == nil:
		code = codes.NoMatchingNode
		figures["why"] = "none matches the pod's nodeSelector, affinity and tolerations"
		var labels []string
		for _, label := range requiredLabels(p.Template(mpi.RoleWorker)) {
			labels = append(labels, label.String())
		}
		if len(labels) > 0 {
			figures["why"] += " (" + strings.Join(labels[:min(len(labels), maxLabels)], ", ") + ")"
		}
		if gang.NodesTotal != nil {
			figures["nodes"] = phrase.Count(*gang.NodesTotal, "node")
		}
	}
	return []Finding{p.find(code, nil, figures)}
}

// together adds that pods are placed together: a node may have room for each of them alone.
func (p *input) together(f Finding) Finding {
	if gang := p.Seen.Gang; gang.Waits() && f.Code == codes.InsufficientResources && f.Severity != v1alpha1.SeverityError {
		f.Summary = "Waiting for capacity: " + gang.Fits() + "."
	}
	return f
}
