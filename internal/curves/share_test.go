package curves_test

import (
	"testing"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/curves"
)

func TestShareDone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		training v1alpha1.Training
		share    float64
		text     string
	}{
		{v1alpha1.Training{Progress: "40%"}, 0.4, "progress 40%"},
		{v1alpha1.Training{Progress: "0.5"}, 0.5, "progress 0.5"},
		{v1alpha1.Training{Progress: "25"}, 0.25, "progress 25"},
		{v1alpha1.Training{Progress: "0.5%"}, 0.005, "progress 0.5%"},
		{v1alpha1.Training{Progress: "1/4", Epoch: "3/4"}, 0.25, "progress 1/4"},
		{v1alpha1.Training{Progress: "nan", Epoch: "3/4"}, 0.75, "epoch 3/4"},
		{v1alpha1.Training{Epoch: "3", Step: "5_00/1_000"}, 0.5, "step 5_00/1_000"},
		{v1alpha1.Training{Epoch: "3", Step: "100"}, 0, ""},
		{v1alpha1.Training{Progress: "101%"}, 0, ""},
		{v1alpha1.Training{Progress: "-1%"}, 0, ""},
		{v1alpha1.Training{Epoch: "11/10"}, 0, ""},
		{v1alpha1.Training{Epoch: "3/0"}, 0, ""},
		{v1alpha1.Training{Epoch: "3/nan"}, 0, ""},
		{v1alpha1.Training{Epoch: "3/inf"}, 0, ""},
		{v1alpha1.Training{}, 0, ""},
	} {
		share, text, known := curves.ShareDone(test.training)
		if known != (test.text != "") || text != test.text || known && share != test.share {
			t.Errorf("%+v: %v, %q, %t", test.training, share, text, known)
		}
	}
}
