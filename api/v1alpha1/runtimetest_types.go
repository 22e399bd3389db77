package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RuntimeTest tests an MPI runtime of Kubeflow Trainer. The operator runs a TrainJob of 3 pods that prints where its
// ranks run and exchanges messages between them, reports the result of each step, and deletes the TrainJob. A test runs once; create another one to
// repeat it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=runtimetests,singular=runtimetest,shortName=rtt,categories=odh
// +kubebuilder:printcolumn:name="Runtime",type=string,JSONPath=`.spec.runtimeRef.name`,description="The tested runtime."
// +kubebuilder:printcolumn:name="Result",type=string,JSONPath=`.status.phase`,description="The result: Pending, Running, Passed or Failed."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,description="The summary of the result."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RuntimeTest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines what to test. It is immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable; create another RuntimeTest"
	Spec RuntimeTestSpec `json:"spec"`
	// status is the result of the test.
	// +optional
	Status RuntimeTestStatus `json:"status,omitempty"`
}

// RuntimeTestList is a list of tests.
//
// +kubebuilder:object:root=true
type RuntimeTestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RuntimeTest `json:"items"`
}

// RuntimeTestSpec defines what to test.
type RuntimeTestSpec struct {
	// runtimeRef is the runtime to test.
	RuntimeRef RuntimeReference `json:"runtimeRef"`
	// image replaces the runtime's image in all pods, as in a TrainJob.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Image string `json:"image,omitempty"`
	// resourcesPerNode replaces the resources of the runtime's pods, as in a TrainJob, for example to test a runtime
	// for GPUs without GPUs.
	// +optional
	ResourcesPerNode *corev1.ResourceRequirements `json:"resourcesPerNode,omitempty"`
	// timeoutSeconds is how long the test may run before it fails.
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=3600
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// ttlSecondsAfterFinished is how long the test is kept after it finishes. If unset, it is kept until it is
	// deleted. Its TrainJob is always deleted immediately.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// RuntimeReference identifies a runtime of Kubeflow Trainer.
type RuntimeReference struct {
	// name of the runtime.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// kind of the runtime. A TrainingRuntime must be in the namespace of the test.
	// +kubebuilder:validation:Enum=ClusterTrainingRuntime;TrainingRuntime
	// +kubebuilder:default=ClusterTrainingRuntime
	// +optional
	Kind string `json:"kind,omitempty"`
}

// TestPhase is the state of a test.
// +kubebuilder:validation:Enum=Pending;Running;Passed;Failed
type TestPhase string

// The phases of a test.
const (
	// TestPending means that the test has not started.
	TestPending TestPhase = "Pending"
	// TestRunning means that the TrainJob of the test was created.
	TestRunning TestPhase = "Running"
	// TestPassed means that all checks passed or were skipped.
	TestPassed TestPhase = "Passed"
	// TestFailed means that a check failed or could not be completed.
	TestFailed TestPhase = "Failed"
)

// RuntimeTestStatus is the result of a test.
type RuntimeTestStatus struct {
	// phase is Pending (not started), Running, Passed (no check failed) or Failed.
	// +optional
	Phase TestPhase `json:"phase,omitempty"`
	// message summarizes the result for users.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Message string `json:"message,omitempty"`
	// startTime is when the test started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the test finished.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// jobRef is the TrainJob of the test. It is deleted when the test finishes; its JobReport is kept and has more
	// details.
	// +optional
	JobRef *JobReference `json:"jobRef,omitempty"`
	// checks are the results of the startup steps of an MPI job, in order.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Checks []RuntimeCheck `json:"checks,omitempty"`
	// communication is what the ranks measured. It is unset if no MPI library of the image could be loaded; the check
	// Communication has the reason.
	// +optional
	Communication *RuntimeCommunication `json:"communication,omitempty"`
}

// RuntimeCommunication is the latency and bandwidth of MPI messages between ranks 0 and 1, which run in two pods, as medians.
type RuntimeCommunication struct {
	// latencyNanoseconds is half of the round trip of a message of 8 bytes.
	LatencyNanoseconds int64 `json:"latencyNanoseconds"`
	// bytesPerSecond is the bandwidth of messages of 4 MiB.
	BytesPerSecond int64 `json:"bytesPerSecond"`
	// method is the MPI library of the image with which the ranks exchanged the messages, such as Open MPI 5.0.7.
	// +kubebuilder:validation:MaxLength=32
	Method string `json:"method"`
}

// CheckName identifies a check.
// +kubebuilder:validation:Enum=ImagePull;Keys;Connection;ProcessStart;RanksDistinct;Communication
type CheckName string

// The checks, in the order in which a job passes them.
const (
	// CheckImagePull passes if all pods pulled the runtime's image and started.
	CheckImagePull CheckName = "ImagePull"
	// CheckKeys passes if the launcher and the workers accepted each other's keys.
	CheckKeys CheckName = "Keys"
	// CheckConnection passes if the launcher connected to every worker.
	CheckConnection CheckName = "Connection"
	// CheckProcessStart passes if MPI started every rank.
	CheckProcessStart CheckName = "ProcessStart"
	// CheckRanksDistinct passes if each rank ran in a different pod.
	CheckRanksDistinct CheckName = "RanksDistinct"
	// CheckCommunication passes if the ranks exchanged MPI messages, and is skipped if the image has no means to do so.
	CheckCommunication CheckName = "Communication"
)

// CheckResult is the result of a check.
// +kubebuilder:validation:Enum=Pending;Pass;Fail;Skipped;Unknown
type CheckResult string

// The results of a check.
const (
	// CheckPending means that the test has not reached the check.
	CheckPending CheckResult = "Pending"
	// CheckPass means that the check passed.
	CheckPass CheckResult = "Pass"
	// CheckFail means that the check failed.
	CheckFail CheckResult = "Fail"
	// CheckSkipped means that the check cannot be made with the runtime's image.
	CheckSkipped CheckResult = "Skipped"
	// CheckUnknown means that the test ended before the check had a result.
	CheckUnknown CheckResult = "Unknown"
)

// RuntimeCheck is a check and its result.
type RuntimeCheck struct {
	// name is ImagePull (all pods pulled the image), Keys (the pods accepted each other's keys), Connection (the
	// launcher connected to all workers), ProcessStart (MPI started every rank) or RanksDistinct (each rank ran in a
	// different pod). The last is Communication (ranks exchanged MPI messages).
	Name CheckName `json:"name"`
	// result is Pending, Pass, Fail, Skipped if the image lacks what the check needs, or Unknown if the test ended before
	// the check had a result.
	Result CheckResult `json:"result"`
	// message explains the result to users.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// finding is the code of the problem, such as ImagePullFailed, as in JobReports.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Finding string `json:"finding,omitempty"`
	// remedies are suggested fixes, the most likely first.
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +optional
	Remedies []Remedy `json:"remedies,omitempty"`
	// milliseconds is how long the step took, if it was measured.
	// +optional
	Milliseconds int64 `json:"milliseconds,omitempty"`
}
