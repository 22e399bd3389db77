package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Profile is where the time of a job's ranks went: how long they were in functions of MPI, and in which. It describes one run of MPI's
// launcher, the one that began last, between MPI_Init and MPI_Finalize of each rank. The job asks for it with the annotation mpi.opendatahub.io/profile.
type Profile struct {
	// until is the time of the last measurement.
	Until metav1.Time `json:"until"`
	// since is when the run began: the first of its ranks had called MPI_Init.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// runs is the number of runs of MPI's launcher, such as mpirun, in which ranks were measured. The other figures are those of the run
	// that began last. 33 stands for more than 32.
	// +optional
	Runs int32 `json:"runs,omitempty"`
	// ranks is the number of ranks that were measured.
	Ranks int32 `json:"ranks"`
	// milliseconds and communicationMilliseconds are the sums of all ranks: their time, and that in functions of MPI.
	Milliseconds              int64 `json:"milliseconds"`
	CommunicationMilliseconds int64 `json:"communicationMilliseconds"`
	// communicationPercent is the share of the time in functions of MPI.
	CommunicationPercent int32 `json:"communicationPercent"`
	// imbalancePercent is how much less time the mean rank spent outside of functions of MPI than the one with the most.
	ImbalancePercent int32 `json:"imbalancePercent"`
	// lateRank is the rank that the others wait for. It is unset if there is none.
	// +optional
	LateRank *LateRank `json:"lateRank,omitempty"`
	// calls are the functions of MPI with the most time, of all ranks.
	// +kubebuilder:validation:MaxItems=12
	// +listType=map
	// +listMapKey=call
	// +optional
	Calls []ProfileCall `json:"calls,omitempty"`
	// messageSizes are the numbers of calls by the size of the data that the rank sent or passed to a collective function.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	MessageSizes []MessageSizes `json:"messageSizes,omitempty"`
	// perRank are the ranks. If there are more than 32, those are listed that differ most from the others.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	PerRank []RankProfile `json:"perRank,omitempty"`
}

// LateRank is a rank that the others wait for.
type LateRank struct {
	// rank is the number of the rank.
	Rank int32 `json:"rank"`
	// waitedMilliseconds is how much longer the median of the other ranks was in functions of MPI.
	WaitedMilliseconds int64 `json:"waitedMilliseconds"`
}

// ProfileCall is what the ranks did in a function of MPI.
type ProfileCall struct {
	// call is the name of the function, such as MPI_Allreduce.
	// +kubebuilder:validation:MaxLength=32
	Call string `json:"call"`
	// count is how often the ranks called it.
	Count int64 `json:"count"`
	// milliseconds is the time in it.
	Milliseconds int64 `json:"milliseconds"`
	// bytes is the size of the data that the ranks sent or passed to it; 0 for functions that receive or wait.
	Bytes int64 `json:"bytes"`
}

// MessageSizes is the number of calls with data of some size.
type MessageSizes struct {
	// upToBytes is the largest size, above that of the entry before. It is unset in the last entry.
	// +optional
	UpToBytes *int64 `json:"upToBytes,omitempty"`
	// count is the number of calls.
	Count int64 `json:"count"`
}

// RankProfile is where the time of a rank went.
type RankProfile struct {
	// rank is the number of the rank.
	Rank int32 `json:"rank"`
	// milliseconds is the time between MPI_Init and MPI_Finalize, and communicationMilliseconds that in functions of MPI.
	Milliseconds              int64 `json:"milliseconds"`
	CommunicationMilliseconds int64 `json:"communicationMilliseconds"`
}
