package diagnose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// input is what is known of a job, of which checks make findings.
type input struct{ *facts.Facts }

// figures are those that every text may use.
func (p *input) figures(pods []facts.Pod) map[string]string {
	role, name := mpi.RoleWorker, ""
	if len(pods) > 0 {
		role, name = pods[0].Role, pods[0].Name
	} else if launcher := p.Launcher(); launcher != nil {
		name = launcher.Name
	}
	// Ranks' output comes through the launcher.
	log := name
	if launcher := p.Launcher(); launcher != nil {
		log = launcher.Name
	}
	figures := map[string]string{
		"logPod": log, "worker": p.firstWorker(), "hostPod": p.firstWorker(), "selector": p.selector(), "launcherPods": p.launcherPods(), "kindLower": strings.ToLower(p.Job.Kind), "jobKinds": p.jobKinds(),
		"workerTemplate": p.field(mpi.RoleWorker), "launcherTemplate": p.field(mpi.RoleLauncher), "slotsField": fieldText(p.Job.Fields.Slots, "slots of a worker"), "workersField": fieldText(p.Job.Fields.WorkerCount, "number of workers"),
		"mpiField":      p.mpiField(),
		"jobHosts":      p.Job.HostRange(),
		"deadlineField": fieldText(p.Job.Fields.Deadline, "activeDeadlineSeconds"),
		"namespace":     p.Job.Namespace, "job": p.Job.Name, "kind": p.Job.Kind, "service": p.Job.ServiceName(), "report": p.Job.ReportName(), "secret": p.Job.SecretName(),
		"pod": name, "role": string(role), "field": p.field(role), "reference": p.field(role) + ".spec", "who": "A pod", "image": facts.Image(p.Template(role)), "launcherImage": facts.Image(p.Template(mpi.RoleLauncher)),
		"workers": strconv.Itoa(int(p.Job.Workers.Count)), "workersText": phrase.Count(p.Job.Workers.Count, "worker"), "perWorker": strconv.Itoa(int(p.Job.SlotsPerWorker)), "ranks": strconv.FormatInt(p.Job.Ranks(), 10),
		"limit": bytesText(facts.MemoryLimit(p.Template(role))),
	}
	if p.Job.Launcher.RunsRanks {
		figures["hostsText"] = "the launcher"
		if p.Job.Workers.Count > 0 {
			figures["hostsText"] = "the launcher and " + figures["workersText"]
		}
	} else {
		figures["hostsText"] = figures["workersText"]
	}
	figures["slotsText"] = phrase.Count(p.Job.SlotsPerWorker, "slot")
	if gpus := p.Gpus(mpi.RoleWorker); gpus > 0 {
		figures["gpus"] = strconv.FormatInt(gpus, 10)
	}
	if len(pods) > 0 {
		figures["who"] = subject(pods)
		figures["node"] = pods[0].Spec.NodeName
	}
	return figures
}

// field is how users find a pod's container in the job that they wrote.
func (p *input) field(role mpi.Role) string {
	at := p.Job.Fields.WorkerTemplate
	switch role {
	case mpi.RoleLauncher:
		at = p.Job.Fields.LauncherTemplate
	case mpi.RoleWorker:
	default:
		return initializerTemplate(role)
	}
	if at == nil {
		return "the " + string(role) + "'s template"
	}
	return at.String()
}

// fieldText is how users find a field of the job that they wrote.
func fieldText(at *field.Path, otherwise string) string {
	if at == nil {
		return otherwise
	}
	return at.String()
}

// mpiField is where users choose the MPI of a job. A TrainJob has that of its runtime.
func (p *input) mpiField() string {
	if p.Job.Kind == mpi.KindTrainJob {
		return "spec.runtimeRef.name"
	}
	return "spec.mpiImplementation"
}

// firstWorker is a worker's pod to look into.
func (p *input) firstWorker() string {
	for _, pod := range p.Pods {
		if pod.Role == mpi.RoleWorker {
			return pod.Name
		}
	}
	return p.Job.WorkerName(0)
}

// jobKinds are the kinds of jobs that the cluster surely has, as kubectl names them.
func (p *input) jobKinds() string {
	if p.Job.Kind == mpi.KindTrainJob {
		return "mpijobs,trainjobs"
	}
	return "mpijobs"
}

// selector picks the job's pods. Those of TrainJobs are JobSet's.
func (p *input) selector() string {
	if p.Job.Kind == mpi.KindTrainJob {
		return mpi.LabelJobSet + "=" + p.Job.Name
	}
	return mpi.LabelJob + "=" + p.Job.Name
}

// launcherPods picks the launcher's among them.
func (p *input) launcherPods() string {
	if p.Job.Kind == mpi.KindTrainJob {
		return p.selector() + "," + mpi.LabelJobSetJob + "=" + mpi.JobSetLauncher
	}
	return p.selector() + "," + mpi.LabelRole + "=" + string(mpi.RoleLauncher)
}

// subject names pods at the beginning of a sentence.
func subject(pods []facts.Pod) string {
	const most = 4
	var workers []string
	launcher := false
	for _, p := range pods {
		switch p.Role {
		case mpi.RoleLauncher:
			launcher = true
			continue
		case mpi.RoleWorker:
		default:
			return p.Title()
		}
		workers = append(workers, fmt.Sprint(p.Index))
	}
	var text string
	switch n := len(workers); {
	case n == 0:
		return "The launcher"
	case n == 1:
		text = "worker " + workers[0]
	case n <= most:
		text = "workers " + strings.Join(workers[:n-1], ", ") + " and " + workers[n-1]
	default:
		text = fmt.Sprintf("%d workers (%s and %d more)", n, strings.Join(workers[:most-1], ", "), n-most+1)
	}
	if launcher {
		return "The launcher and " + text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func names(pods []facts.Pod) []string {
	var list []string
	for _, p := range pods {
		list = append(list, p.Name)
	}
	return list
}

func lower(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// nodesText names the nodes of pods if they are few, such as " on node-a, node-b", or counts them; "" if the pods have none.
func nodesText(pods []facts.Pod) string {
	const most = 3
	var nodes []string
	for _, pod := range pods {
		if name := pod.Spec.NodeName; name != "" && !slices.Contains(nodes, name) {
			nodes = append(nodes, name)
		}
	}
	switch {
	case len(nodes) == 0:
		return ""
	case len(nodes) > most:
		return " on " + phrase.Count(len(nodes), "node")
	}
	slices.Sort(nodes)
	return " on " + strings.Join(nodes, ", ")
}

func anyIn(text string, words ...string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
