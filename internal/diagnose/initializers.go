package diagnose

import (
	"fmt"
	"slices"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/mpi"
)

// initializerFields are where a TrainJob configures its initializers, by their names.
var initializerFields = map[string]string{"dataset-initializer": "spec.initializer.dataset", "model-initializer": "spec.initializer.model"}

// fetchErrors are the kinds of errors of programs whose first remedy also helps an initializer.
var fetchErrors = []string{"network", "host name", "certificate", "server error", "space"}

// waitingInitializers reports why initializers of a TrainJob do not start, as of any other pod: its launcher and workers wait for them.
func waitingInitializers(p *input) []Finding {
	preparing := p.OfPendingInitializers()
	if preparing == nil {
		return nil
	}
	found := run([]check{outOfMemory, images, containers, volumes, unplaced, unattended, networkMissing, sandboxes}, &input{preparing})
	for i := range found {
		// An initializer is one pod, however many workers the job has.
		workers := fieldText(p.Job.Fields.WorkerCount, "number of workers")
		found[i].Remedies = slices.DeleteFunc(found[i].Remedies, func(r v1alpha1.Remedy) bool { return r.Action == workers })
	}
	return found
}

// initializers reports an initializer of a TrainJob that failed: the launcher and the workers start when all have succeeded.
func initializers(p *input) []Finding {
	for _, pod := range p.Initializers() {
		end := pod.End()
		if end == nil || pod.DeletionTimestamp != nil {
			continue
		}
		entry, figures := codes.InitializerFailed, map[string]string{
			"container": string(pod.Role), "field": initializerFields[string(pod.Role)], "codeText": exitText(end.ExitCode), "programTemplate": initializerTemplate(pod.Role),
		}
		evidence := []string{fmt.Sprintf("Pod %s: container ended with exit code %d (%s).", pod.Name, end.ExitCode, endReason(end))}
		if found := loglines.FirstError(pod.Log.Lines); found != nil {
			figures["errorText"] = ": " + quotedText(found.Message)
			evidence = append(evidence, facts.LogLine(pod, found.Line))
		} else {
			evidence = append(evidence, facts.LastLines(pod)...)
		}
		switch kind := codes.OwnErrorOf(figures["errorText"]); {
		case end.Reason == "OOMKilled":
			entry.Code, entry.Remedies = codes.OutOfMemory, slices.Insert(slices.Clone(entry.Remedies), 0, codes.InitializerOutOfMemory)
		case kind == nil:
		case kind.Name == "credentials":
			entry.Remedies = slices.Concat([]v1alpha1.Remedy{codes.InitializerLogin}, entry.Remedies[:1], entry.Remedies[2:])
		case slices.Contains(fetchErrors, kind.Name):
			entry.Remedies = slices.Insert(slices.Clone(entry.Remedies), 0, kind.Remedies[0])
		}
		f := p.findAs(entry, []facts.Pod{pod}, figures, evidence...)
		f.ExitCode = &end.ExitCode
		return []Finding{f}
	}
	return nil
}

// initializerTemplate is how users find the pod template of an initializer.
func initializerTemplate(role mpi.Role) string {
	return "the runtime's pod template of the " + string(role)
}
