package codes

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/phrase"
)

// Entry is the definition of a code. Texts may contain placeholders: {name}, or {name|text if the value is unknown}.
type Entry struct {
	Code Code
	// Phase is the phase in which the problem occurs.
	Phase v1alpha1.Phase
	// Severity is the severity of a finding while its job has not failed. If empty, it is Error if the job needs action,
	// and Warning otherwise.
	Severity v1alpha1.Severity
	// Strength is how much the code explains.
	Strength Strength
	// Traits are what else programs need to know about the code.
	Traits Traits
	// Status is the message of the job's status while the code is its reason, or the reason for which its gang waits; empty
	// if it never is.
	Status string
	// Summary and Remedies are the texts of a finding; empty for codes that are only reasons.
	Summary  string
	Remedies []v1alpha1.Remedy
	// Settings are the environment variables that can cause the problem. If a pod template of the job sets one of them, the finding names it.
	Settings []string
}

// IsFinding reports whether the code can be that of a finding, and not only a reason of the status.
func (e Entry) IsFinding() bool { return e.Summary != "" }

// Strength is how much a code explains. The lower the value, the stronger the code. See [Moment.Outranks] for the order of causes.
type Strength int

const (
	// Cause explains the failure.
	Cause Strength = iota
	// Consequence has its cause elsewhere. Next to another finding it is only evidence of it.
	Consequence
	// Ending states how a process ended, and not why. It is a consequence of everything else.
	Ending
	// Unexplained states that no cause is known.
	Unexplained
)

// Traits is a set of properties of a code.
type Traits uint

const (
	// FollowsPodLoss marks what the remaining pods report after a pod was lost.
	FollowsPodLoss Traits = 1 << iota
	// RemovesPods marks the removal of pods. The evidence disappears with them.
	RemovesPods
	// BlocksPods marks that the API server rejects pods.
	BlocksPods
	// BlocksScheduling marks that pods cannot be scheduled.
	BlocksScheduling
	// EndsRank marks how a rank's process ended. Some implementations print its number on another line.
	EndsRank
	// FromProgram marks what a rank's program printed before it ended.
	FromProgram
	// FromSharedGPU marks how ranks that share a GPU can fail.
	FromSharedGPU
	// EndsAttempt marks how an attempt of the launcher can end. It stays true when the attempt's pod is gone.
	EndsAttempt
	// Warns marks what the report of a running job warns of. It gets an event when it begins, whatever else is found.
	Warns
)

// Entries returns all definitions, grouped by topic.
func Entries() []Entry {
	return slices.Concat(refusals, queues, gangs, disruptions, scheduling,
		networks, images, creations, volumes, crashLoops, workers, sidecars, clocks, connections, libraries, memory, exits, stalls, statuses, gangWaits, events)
}

var table = byCode()

// byCode returns the definitions by their codes. What ends connections and programs ends an attempt, unless it is only a
// warning.
func byCode() map[Code]Entry {
	entries := map[Code]Entry{}
	for _, e := range Entries() {
		entries[e.Code] = e
	}
	for _, e := range slices.Concat(connections, libraries, memory, exits) {
		if e.Severity != v1alpha1.SeverityWarning {
			e.Traits |= EndsAttempt
			entries[e.Code] = e
		}
	}
	return entries
}

// Lookup returns the definition of a code. For an unknown code, its Summary names the code.
func Lookup(code Code) Entry {
	if e, found := table[code]; found {
		return e
	}
	return Entry{Code: code, Summary: "Unknown problem: " + code + "."}
}

// Has reports whether a code has all of the traits.
func Has(code Code, traits Traits) bool { return table[code].Traits&traits == traits }

// StrengthOf returns how much a code explains.
func StrengthOf(code Code) Strength { return table[code].Strength }

// Status returns the status message of a reason, with values filled in.
func Status(reason Code, values map[string]string) string { return Fill(table[reason].Status, values) }

var placeholder = regexp.MustCompile(`\{([a-zA-Z]+)(?:\|([^{}]*))?\}`)

// Fill replaces the placeholders of a text. One without a value becomes the text after its bar, or nothing.
func Fill(text string, values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(text, func(match string) string {
		parts := placeholder.FindStringSubmatch(match)
		if value := values[parts[1]]; value != "" {
			return value
		}
		return parts[2]
	})
}

// BothImages is the action of remedies that demand the same image for launcher and workers.
const BothImages = "spec.mpiReplicaSpecs.{Launcher,Worker}.template.spec.containers[0].image"

// ByMPI4Py is the action that runs a Python program so that an exception ends all ranks.
const ByMPI4Py = "mpirun ... python -m mpi4py SCRIPT"

// Actions that several remedies share.
const (
	launcherLog   = "kubectl -n {namespace} logs {logPod}"
	listEvents    = "kubectl -n {namespace} get events --sort-by=.lastTimestamp"
	listPolicies  = "kubectl -n {namespace} get networkpolicy"
	describePod   = "kubectl -n {namespace} describe pod {pod}"
	describeQuota = "kubectl -n {namespace} describe resourcequota"
	nodeResources = "kubectl describe nodes | grep -A 10 -E 'Allocatable|Allocated resources'"
	processStates = "kubectl -n {namespace} exec {worker} -- " + ShowProcesses
	memoryLimit   = "{field}.spec.containers[0].resources.limits.memory"
	// podMemoryLimit is the limit of all containers of a pod together.
	podMemoryLimit = "{field}.spec.resources.limits.memory"
	largerShm      = "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 8Gi}}], mounted at /dev/shm"
)

// ShowProcesses is the command in a pod that shows the state of its processes. It is of use only while they exist.
const ShowProcesses = `sh -c 'for p in /proc/[0-9]*; do echo "$p $(cat $p/comm) $(grep State $p/status) $(cat $p/wchan)"; done'`

// letAgentStart returns the remedy that has the agent start the ranks instead of ssh.
func letAgentStart(text string) v1alpha1.Remedy {
	return v1alpha1.Remedy{Text: text, Action: "metadata.annotations: {mpi.opendatahub.io/launch: agent}", Rerun: true, Changes: set("metadata.annotations[mpi.opendatahub.io/launch]", "agent")}
}

// waitForReady returns the remedy that has the launcher wait for the workers.
func waitForReady(text string) v1alpha1.Remedy {
	return v1alpha1.Remedy{Text: text, Action: "spec.launcherCreationPolicy: WaitForWorkersReady", Rerun: true, Changes: set("spec.launcherCreationPolicy", "WaitForWorkersReady")}
}

// changeCommand is the change of the launcher's command that a remedy describes.
var changeCommand = set(launcherArgs, "{newCommand}")

// setMemory is the change to more memory.
var setMemory = set(memoryLimit, "{moreMemory}")

// rdmaOfNodes is the remedy for nodes whose RDMA no pod can request, with nodesWithRDMA.
const (
	rdmaOfNodes   = "If nodes have RDMA, ask the cluster administrator about its device plugin (NVIDIA Network Operator or SR-IOV) and the resource name that it advertises."
	nodesWithRDMA = "kubectl get nodes -o yaml | grep -i rdma"
)

// setRDMA returns the change of the annotation that selects what happens if no node offers RDMA.
func setRDMA(value string) []v1alpha1.FieldChange {
	return set("metadata.annotations[mpi.opendatahub.io/rdma]", value)
}

// set returns changes of fields, from pairs of a field and its value.
func set(pairs ...string) []v1alpha1.FieldChange {
	var changes []v1alpha1.FieldChange
	for i := 0; i < len(pairs); i += 2 {
		changes = append(changes, v1alpha1.FieldChange{Field: pairs[i], Value: pairs[i+1]})
	}
	return changes
}

// FillAction replaces the placeholders of an action. Values in a command become one word of a shell each, because logs and
// messages of containers contain them. A value that cannot be shown on one line becomes the text after its placeholder's bar, or
// the name of the placeholder in capital letters. A value that is a whole action is taken as it is: its maker quotes it.
func FillAction(action string, values map[string]string) string {
	if !IsCommand(action) {
		return Fill(action, values)
	}
	return placeholder.ReplaceAllStringFunc(action, func(match string) string {
		parts := placeholder.FindStringSubmatch(match)
		switch value := values[parts[1]]; {
		case value == "":
			return parts[2]
		case phrase.OneLine(value) != value || len(value) > maxWord:
			return cmp.Or(parts[2], strings.ToUpper(words.ReplaceAllString(parts[1], "-$0")))
		default:
			return phrase.QuoteWord(value)
		}
	})
}

// maxWord is the maximum length of a value in a command, in bytes: that of the longest names of objects.
const maxWord = 253

// FillRemedy replaces the placeholders of a remedy. If the value of a change is unknown, the remedy is only a text.
func FillRemedy(remedy v1alpha1.Remedy, values map[string]string) v1alpha1.Remedy {
	filled := v1alpha1.Remedy{Text: Fill(remedy.Text, values), Action: FillAction(remedy.Action, values), Rerun: remedy.Rerun}
	for _, change := range remedy.Changes {
		// An empty value removes a variable.
		removes := change.Value == ""
		change = v1alpha1.FieldChange{Field: Fill(change.Field, values), Value: Fill(change.Value, values)}
		if change.Field == "" || change.Value == "" && !removes {
			filled.Rerun, filled.Changes = false, nil
			return filled
		}
		filled.Changes = append(filled.Changes, change)
	}
	return filled
}
