package cli

import (
	"testing"

	"opendatahub.io/mpijob/api/v1alpha1"
)

func TestEncryptionText(t *testing.T) {
	for name, test := range map[string]struct {
		encryption *v1alpha1.Encryption
		all        bool
		want       string
	}{
		"unset":                  {all: true},
		"by two":                 {encryption: &v1alpha1.Encryption{State: v1alpha1.Encrypted, By: []string{"Cilium", "Calico by WireGuard"}}, want: "Cilium and Calico by WireGuard between nodes"},
		"by nothing":             {encryption: &v1alpha1.Encryption{State: v1alpha1.NotEncrypted, Message: "nothing was found"}},
		"by nothing, with --all": {encryption: &v1alpha1.Encryption{State: v1alpha1.NotEncrypted, Message: "nothing was found"}, all: true, want: "none: nothing was found"},
		"past it":                {encryption: &v1alpha1.Encryption{State: v1alpha1.NotEncrypted, By: []string{"Cilium"}, Message: "pods use RDMA"}, want: "none: pods use RDMA"},
		"unknown":                {encryption: &v1alpha1.Encryption{State: v1alpha1.EncryptionUnknown, Message: "forbidden"}, want: "unknown: forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&describeOptions{all: test.all}).encryptionText(test.encryption); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
