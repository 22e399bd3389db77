package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TrainingCurves are the figures that the program printed over time, such as its loss.
type TrainingCurves struct {
	// until is when the last line with a figure was written.
	Until metav1.MicroTime `json:"until"`
	// epoch is the last epoch that was printed, in thousandths.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// figures are the curves, in the order in which the program first printed their names.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Figures []TrainingCurve `json:"figures,omitempty"`
}

// TrainingCurve is a figure by step, epoch or time. When a curve has more than 120 points, every second one is left out.
type TrainingCurve struct {
	// name is the name of the figure, such as loss.
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_]{0,31}$`
	Name string `json:"name"`
	// by is what the points are numbered by.
	By CurveAxis `json:"by"`
	// width is the least distance of two points.
	Width int64 `json:"width"`
	// offset is what is added to a step if the program counts the steps of each epoch from the start.
	// +optional
	Offset int64 `json:"offset,omitempty"`
	// epoch is the epoch of the last point in thousandths, if it is known.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// at are the places of the points, in ascending order: steps, thousandths of epochs, or seconds since 1970.
	// +kubebuilder:validation:MaxItems=120
	// +listType=atomic
	// +optional
	At []int64 `json:"at,omitempty"`
	// values are the values at these places: decimal numbers with six digits, NaN, Inf or -Inf. The last one is the latest value.
	// +kubebuilder:validation:MaxItems=120
	// +kubebuilder:validation:items:MaxLength=16
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
	// notFiniteAt is the place of the first value that is NaN or infinite.
	// +optional
	NotFiniteAt *int64 `json:"notFiniteAt,omitempty"`
	// notFiniteCount is how many values in a row were NaN or infinite, up to the latest one.
	// +optional
	NotFiniteCount int32 `json:"notFiniteCount,omitempty"`
}

// CurveAxis is what the points of a curve are numbered by.
// +kubebuilder:validation:Enum=Step;Epoch;Time
type CurveAxis string

// The axes of curves.
const (
	CurveByStep  CurveAxis = "Step"
	CurveByEpoch CurveAxis = "Epoch"
	CurveByTime  CurveAxis = "Time"
)
