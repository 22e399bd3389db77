package layout

import (
	"strconv"
	"testing"
)

func TestKubernetesHasANameForEveryVersion(t *testing.T) {
	for _, name := range KubernetesNames() {
		version, err := Kubernetes(name)
		if err != nil || KubernetesName(version) != name {
			t.Errorf("%s: got %s, %v", name, version, err)
		}
		if got := "1." + strconv.Itoa(Minor(version)); got != name {
			t.Errorf("%s has minor version %s, want %s", version, got, name)
		}
	}
	if version, err := Kubernetes(Newest()); err != nil || version != KubernetesVersion {
		t.Errorf("the newest is %s, %v; want %s", version, err, KubernetesVersion)
	}
	for _, name := range []string{"", "1.28", "v1.29", "1.29.15"} {
		if version, err := Kubernetes(name); err == nil {
			t.Errorf("%q is %s, want an error", name, version)
		}
	}
}
