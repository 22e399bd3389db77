package jobstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/quota"
)

// Evidence is what a diagnosis uses besides Observed. It is only gathered for jobs that need action or have ended,
// because it is read from the API server. All of it is optional: what could not be read is omitted. The order of lists
// is stable. The bounds below limit what is gathered.
type Evidence struct {
	// Events are about the job's objects, the latest last, at most MaxEvents.
	Events []Event
	// Logs are the ends of pods' logs, by the name of the pod.
	Logs map[string]Log
	// Mask hides the secrets in a text of the specification that a finding quotes; nil for none.
	Mask func(string) string
	// Gone are the launcher's pods of a failed job in their last state, if none of them exists, the oldest first. Empty if
	// that state is unknown.
	Gone []*corev1.Pod
	// Nodes are the cluster's nodes, by name, at most MaxNodes; NodesLeft is how many there are beyond.
	Nodes     []Node
	NodesLeft int
	// Cordoned are the names of nodes of a running job's pods that accept no new pods.
	Cordoned []string
	// Quotas are the ResourceQuotas of the job's namespace.
	Quotas []quota.Quota
	// Claims are the PersistentVolumeClaims that the job's pods use.
	Claims []Claim
	// PathFrom are the job's data connections that set PATH in its containers, if a program was not found there.
	PathFrom []string
	// Refusals are the objects of the job that the API server refused.
	Refusals []Refusal
	// Training is the latest progress that the program printed; zero if it prints none.
	Training v1alpha1.Training
	// CurveLines are the lines with figures in the last output of the program, and Curves the curves of the job's report with these.
	CurveLines []curves.Line
	Curves     *v1alpha1.TrainingCurves
	// Advance is when the figures in the last output of the program changed.
	Advance curves.Advance
	// Usage is what the job's agents reported last of its usage, while it runs; nil if they reported none.
	Usage *agentapi.Usage
	// KeptLogs are the ends of the logs of all pods of a job that has ended, for its report; nil if they were not read now.
	KeptLogs *v1alpha1.Logs
	// Used is what a running job has used so far, by Usage and the job's report; nil if that is unknown.
	Used *v1alpha1.Usage
	// LatestMemory is the memory of one of its pods in the last hour: of the one that reaches its limit first; nil if that is unknown.
	LatestMemory *LatestMemory
	// Wait is how long others waited that compare with a job that waits; zero for any other.
	Wait Wait
	// RegistryFails is set if several other jobs cannot pull images from the registry of this one either.
	RegistryFails bool
	// Encryption is what encrypts the traffic between the job's pods; nil if it was not looked up now.
	Encryption *Encryption
}

// Encryption is what encrypts the traffic between the pods of a cluster, as far as it is known.
type Encryption struct {
	// By is empty if nothing is known to do so.
	By []string
	// Err is why more could not be found out; nil for nothing.
	Err error
}

// LatestMemory is what a pod has used of memory in MiB, with the window's bounds. Pod is empty for the only pod of a job that was measured.
type LatestMemory struct {
	Pod string
	agentapi.Window
}

// How much evidence is gathered for a job.
const (
	MaxEvents   = 200
	MaxNodes    = 1000
	MaxLogLines = 200
	// MaxLogPods is how many pods' logs are read: the launcher's, then those of workers that failed, the first first.
	MaxLogPods = 9
)

// Event is a Kubernetes event.
type Event struct {
	// Kind and Name say what it is about, such as Pod and train-worker-3.
	Kind, Name string
	Warning    bool
	// Reason is one word, such as FailedMount; Message is a sentence.
	Reason, Message string
	// Count is how often it happened, 1 or more; Last is when it did last.
	Count int32
	Last  time.Time
}

// Log is the end of the log of a pod's first container: of its latest run that failed, where one did, and of the run
// that goes on otherwise.
type Log struct {
	// Lines are the last ones, at most MaxLogLines; they come cleaned and with secrets masked. Where a log is gone they
	// are the container's termination message, if that is not an agent's.
	Lines []string
	// LastAt is when the last line was written, or zero if that is unknown.
	LastAt time.Time
	// FirstAt is when the first line was written, zero if that is unknown because only the end of the log was read.
	FirstAt time.Time
}

// Node is a machine of the cluster.
type Node struct {
	Name string
	// Allocatable is what pods can have of it, Free what no pod has asked for.
	Allocatable, Free corev1.ResourceList
	Labels            map[string]string
	Taints            []corev1.Taint
	Ready             bool
	// Missing is set where the cluster has no node of this name; the rest is then empty.
	Missing bool
	// Unschedulable is set where an administrator lets no new pods onto the node (cordon).
	Unschedulable bool
}

// Claim is a PersistentVolumeClaim.
type Claim struct {
	Name string
	// Missing is set where there is none of this name; the rest is then empty.
	Missing     bool
	Phase       corev1.PersistentVolumeClaimPhase
	AccessModes []corev1.PersistentVolumeAccessMode
	// Class is the storage class; empty where the claim names none and the cluster has no default.
	Class string
	// Volume is the PersistentVolume that the claim asks for by its name; "" if it takes any. Static is set if the claim names the
	// storage class "", for which no volume is created.
	Volume string
	Static bool
	// Problem is the latest warning about a claim that is not bound; empty if there is none.
	Problem string
}
