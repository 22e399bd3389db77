package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RuntimeTest tries an MPI runtime of Kubeflow Trainer: the operator runs a TrainJob of 3 pods with it that does nothing
// but tell where its ranks are, says of each step whether it went well, and removes the job. A test runs once; make
// another to try again.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=runtimetests,singular=runtimetest,shortName=rtt,categories=odh
// +kubebuilder:printcolumn:name="Runtime",type=string,JSONPath=`.spec.runtimeRef.name`,description="The runtime that is tested."
// +kubebuilder:printcolumn:name="Result",type=string,JSONPath=`.status.phase`,description="How the test stands: Pending, Running, Passed or Failed."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,description="What was found, in words."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RuntimeTest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what to test. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a test cannot be changed: create another one"
	Spec RuntimeTestSpec `json:"spec"`
	// status is what the test has shown.
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

// RuntimeTestSpec says what to test.
type RuntimeTestSpec struct {
	// runtimeRef is the runtime.
	RuntimeRef RuntimeReference `json:"runtimeRef"`
	// image replaces the runtime's in all pods, as a TrainJob's does.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Image string `json:"image,omitempty"`
	// resourcesPerNode replaces what the runtime's pods ask for, as a TrainJob's does: a runtime for GPUs can be tested
	// without any.
	// +optional
	ResourcesPerNode *corev1.ResourceRequirements `json:"resourcesPerNode,omitempty"`
	// timeoutSeconds is how long the test may take before it has failed.
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=3600
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// ttlSecondsAfterFinished is how long the test itself is kept after its end; unset: until somebody deletes it. Its
	// job is removed at once.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// RuntimeReference names a runtime of Kubeflow Trainer.
type RuntimeReference struct {
	// name of the runtime.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// kind of the runtime. A TrainingRuntime is one of the test's namespace.
	// +kubebuilder:validation:Enum=ClusterTrainingRuntime;TrainingRuntime
	// +kubebuilder:default=ClusterTrainingRuntime
	// +optional
	Kind string `json:"kind,omitempty"`
}

// TestPhase is how a test stands.
// +kubebuilder:validation:Enum=Pending;Running;Passed;Failed
type TestPhase string

// The phases of a test.
const (
	// TestPending: nothing has been started.
	TestPending TestPhase = "Pending"
	// TestRunning: the test's job is made or runs.
	TestRunning TestPhase = "Running"
	// TestPassed: every check has passed.
	TestPassed TestPhase = "Passed"
	// TestFailed: a check has failed, or could not be made.
	TestFailed TestPhase = "Failed"
)

// RuntimeTestStatus is what a test has shown.
type RuntimeTestStatus struct {
	// phase is Pending (nothing started), Running, Passed (every check has passed) or Failed.
	// +optional
	Phase TestPhase `json:"phase,omitempty"`
	// message is what was found, in words.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Message string `json:"message,omitempty"`
	// startTime is when the test began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when it was over.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// jobRef is the test's TrainJob. It is deleted at the end; its JobReport stays and knows more.
	// +optional
	JobRef *JobReference `json:"jobRef,omitempty"`
	// checks are the steps that every MPI job goes through, in their order.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Checks []RuntimeCheck `json:"checks,omitempty"`
}

// CheckName names a check.
// +kubebuilder:validation:Enum=ImagePull;Keys;Connection;ProcessStart;RanksDistinct
type CheckName string

// The checks, in the order in which a job gets to them.
const (
	// CheckImagePull: all pods got the runtime's image, and started.
	CheckImagePull CheckName = "ImagePull"
	// CheckKeys: the workers took the job's key, and the launcher theirs.
	CheckKeys CheckName = "Keys"
	// CheckConnection: the launcher reached every worker.
	CheckConnection CheckName = "Connection"
	// CheckProcessStart: MPI started every rank.
	CheckProcessStart CheckName = "ProcessStart"
	// CheckRanksDistinct: each rank ran on a pod of its own.
	CheckRanksDistinct CheckName = "RanksDistinct"
)

// CheckResult is how a check went.
// +kubebuilder:validation:Enum=Pending;Pass;Fail;Unknown
type CheckResult string

// The results.
const (
	// CheckPending: the test has not got there yet.
	CheckPending CheckResult = "Pending"
	// CheckPass: it went well.
	CheckPass CheckResult = "Pass"
	// CheckFail: it did not.
	CheckFail CheckResult = "Fail"
	// CheckUnknown: the test ended before this could be told.
	CheckUnknown CheckResult = "Unknown"
)

// RuntimeCheck is one step and how it went.
type RuntimeCheck struct {
	// name is ImagePull (all pods got the image), Keys (pods know each other), Connection (the launcher reached the
	// workers), ProcessStart (MPI started every rank) or RanksDistinct (each on a pod of its own).
	Name CheckName `json:"name"`
	// result is Pending, Pass, Fail, or Unknown where the test ended before this could be told.
	Result CheckResult `json:"result"`
	// message says it in words.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// finding is the code of what is wrong, such as ImagePullFailed, as in JobReports.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Finding string `json:"finding,omitempty"`
	// remedies are what to do, the most promising first.
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +optional
	Remedies []Remedy `json:"remedies,omitempty"`
	// milliseconds is how long the step took, where that was measured.
	// +optional
	Milliseconds int64 `json:"milliseconds,omitempty"`
}
