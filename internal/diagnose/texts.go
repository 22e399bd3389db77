package diagnose

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// find returns the finding of a code about pods, with values filled into its texts.
func (p *input) find(code codes.Code, pods []jobPod, more map[string]string) Finding {
	return p.findAs(codes.Lookup(code), pods, more)
}

// findAs is find for a definition other than the code's own.
func (p *input) findAs(entry codes.Entry, pods []jobPod, more map[string]string) Finding {
	values := p.figures(pods)
	maps.Copy(values, more)
	if entry.Code == codes.ProgramMissing && entry.Summary == codes.Lookup(codes.ProgramMissing).Summary {
		entry = p.missingProgram(entry, pods, values)
	}
	if entry.Code == codes.ApplicationFailed && entry.Summary == codes.Lookup(codes.ApplicationFailed).Summary {
		entry = p.ownError(entry, values)
	}
	f := Finding{Code: entry.Code, Severity: p.severityOf(entry), Summary: codes.Fill(entry.Summary, values), Affected: names(pods)}
	sameImage := p.job.Workers.Count > 0 && image(p.template(mpi.RoleWorker)) == image(p.template(mpi.RoleLauncher))
	for _, r := range entry.Remedies {
		if r.Action == codes.BothImages && sameImage {
			continue
		}
		f.Remedies = append(f.Remedies, codes.FillRemedy(r, values))
	}
	if len(pods) > 0 {
		f.Pod = pods[0].Name
	}
	if rank, err := strconv.ParseInt(values["rank"], 10, 32); err == nil {
		f.Rank = new(int32(rank))
	}
	return f
}

// missingProgram returns the definition for a program that was not found, by its name and place.
func (p *input) missingProgram(entry codes.Entry, pods []jobPod, values map[string]string) codes.Entry {
	if values["program"] == "" {
		// There is nothing to look for by a command.
		entry.Remedies = slices.Clone(entry.Remedies)
		entry.Remedies[0].Action = ""
		return entry
	}
	inLauncher := values["where"] == "the launcher"
	if isWorker := len(pods) > 0 && pods[0].role == mpi.RoleWorker; isWorker && path.Base(values["program"]) == "sshd" {
		return codes.ServerMissing
	}
	if own := p.whosePath(entry, values); own.Summary != entry.Summary {
		return own
	}
	if inLauncher {
		return codes.ProgramMissingInLauncher
	}
	return entry
}

// whosePath returns the definition for a program that is looked for in a PATH that is not the image's, or the one given. The
// pod template decides before data connections.
func (p *input) whosePath(entry codes.Entry, values map[string]string) codes.Entry {
	if values["program"] == "" || strings.Contains(values["program"], "/") {
		return entry
	}
	main := p.template(mpi.Role(values["role"])).Containers
	switch {
	case len(main) > 0 && slices.ContainsFunc(main[0].Env, func(env corev1.EnvVar) bool { return env.Name == "PATH" }):
		values["source"], values["reference"] = "the pod template", values["field"]+".spec.containers[0].env"
	case len(p.evidence.PathFrom) > 0:
		values["source"], values["reference"] = fmt.Sprintf("data connection %q", p.evidence.PathFrom[len(p.evidence.PathFrom)-1]), mpi.ConnectionsPath.String()
	default:
		return entry
	}
	return codes.PathReplaced
}

// figures are those that every text may use.
func (p *input) figures(pods []jobPod) map[string]string {
	role, name := mpi.RoleWorker, ""
	if len(pods) > 0 {
		role, name = pods[0].role, pods[0].Name
	} else if launcher := p.launcher(); launcher != nil {
		name = launcher.Name
	}
	// Ranks' output comes through the launcher.
	log := name
	if launcher := p.launcher(); launcher != nil {
		log = launcher.Name
	}
	figures := map[string]string{
		"logPod": log, "worker": p.firstWorker(), "hostPod": p.firstWorker(), "selector": p.selector(), "launcherPods": p.launcherPods(), "kindLower": strings.ToLower(p.job.Kind),
		"workerTemplate": p.field(mpi.RoleWorker), "launcherTemplate": p.field(mpi.RoleLauncher), "slotsField": fieldText(p.job.Fields.Slots, "slots of a worker"), "workersField": fieldText(p.job.Fields.WorkerCount, "number of workers"),
		"deadlineField": fieldText(p.job.Fields.Deadline, "activeDeadlineSeconds"),
		"namespace":     p.job.Namespace, "job": p.job.Name, "kind": p.job.Kind, "service": p.job.ServiceName(), "report": p.job.ReportName(), "secret": p.job.SecretName(),
		"pod": name, "role": string(role), "field": p.field(role), "reference": p.field(role) + ".spec", "who": "A pod", "image": image(p.template(role)), "launcherImage": image(p.template(mpi.RoleLauncher)),
		"workers": strconv.Itoa(int(p.job.Workers.Count)), "workersText": phrase.Count(p.job.Workers.Count, "worker"), "perWorker": strconv.Itoa(int(p.job.SlotsPerWorker)), "ranks": strconv.FormatInt(p.job.Ranks(), 10),
		"limit": bytesText(memoryLimit(p.template(role))),
	}
	if p.job.Launcher.RunsRanks {
		figures["hostsText"] = "the launcher"
		if p.job.Workers.Count > 0 {
			figures["hostsText"] = "the launcher and " + figures["workersText"]
		}
	} else {
		figures["hostsText"] = figures["workersText"]
	}
	figures["slotsText"] = phrase.Count(p.job.SlotsPerWorker, "slot")
	if gpus := p.gpus(mpi.RoleWorker); gpus > 0 {
		figures["gpus"] = strconv.FormatInt(gpus, 10)
	}
	if len(pods) > 0 {
		figures["who"] = subject(pods)
		figures["node"] = pods[0].Spec.NodeName
	}
	return figures
}

// fieldText is how users find a field of the job that they wrote.
func fieldText(at *field.Path, otherwise string) string {
	if at == nil {
		return otherwise
	}
	return at.String()
}

// firstWorker is a worker's pod to look into.
func (p *input) firstWorker() string {
	for _, pod := range p.pods {
		if pod.role == mpi.RoleWorker {
			return pod.Name
		}
	}
	return p.job.WorkerName(0)
}

// selector picks the job's pods. Those of TrainJobs are JobSet's.
func (p *input) selector() string {
	if p.job.Kind == mpi.KindTrainJob {
		return mpi.LabelJobSet + "=" + p.job.Name
	}
	return mpi.LabelJob + "=" + p.job.Name
}

// launcherPods picks the launcher's among them.
func (p *input) launcherPods() string {
	if p.job.Kind == mpi.KindTrainJob {
		return p.selector() + "," + mpi.LabelJobSetJob + "=" + mpi.JobSetLauncher
	}
	return p.selector() + "," + mpi.LabelRole + "=" + string(mpi.RoleLauncher)
}

func image(spec corev1.PodSpec) string {
	if len(spec.Containers) == 0 {
		return ""
	}
	return spec.Containers[0].Image
}

// memoryLimit is what the first container may use of memory at most, in bytes; 0 where there is no limit.
func memoryLimit(spec corev1.PodSpec) int64 {
	if len(spec.Containers) == 0 {
		return 0
	}
	quantity := spec.Containers[0].Resources.Limits[corev1.ResourceMemory]
	return quantity.Value()
}

// bytesText says bytes as people do; empty for 0.
func bytesText(bytes int64) string {
	switch {
	case bytes <= 0:
		return ""
	case bytes < 1<<30:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<40:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(bytes)/(1<<40)), ".0") + " TiB"
	case bytes%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", bytes>>30)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// amount says how much of a resource, with its unit.
func amount(name corev1.ResourceName, q resource.Quantity) string {
	switch name {
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		if text := bytesText(q.Value()); text != "" {
			return text
		}
		return "0"
	case corev1.ResourceCPU:
		return strconv.FormatFloat(float64(q.MilliValue())/1000, 'f', -1, 64)
	}
	return q.String()
}

// thing is what people call a resource.
func thing(name corev1.ResourceName) string {
	switch name {
	case corev1.ResourceCPU:
		return "CPUs"
	case corev1.ResourceMemory:
		return "of memory"
	case corev1.ResourceEphemeralStorage:
		return "of local disk"
	}
	return string(name)
}
