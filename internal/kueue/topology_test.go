package kueue_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kueue"
)

// TestSelectsNodes: Kueue selects the nodes of all pods where each flavor has a topology, and of those that request it where some have.
func TestSelectsNodes(t *testing.T) {
	const (
		racks = "flavors: [{name: racks}]"
		mixed = "flavors: [{name: racks}, {name: plain}]"
		plain = "flavors: [{name: plain}]"
	)
	flavors := []*kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}, {ObjectMeta: metav1.ObjectMeta{Name: "racks"}}}
	flavors[1].Spec.TopologyName = "racks"
	for name, test := range map[string]struct {
		queue      string
		annotation string
		want       bool
	}{
		"all flavors have a topology":           {queue: "resourceGroups: [{" + racks + "}]", want: true},
		"in every group":                        {queue: "resourceGroups: [{" + racks + "}, {" + racks + "}]", want: true},
		"none has":                              {queue: "resourceGroups: [{" + plain + "}]"},
		"none has, and pods request one":        {queue: "resourceGroups: [{" + plain + "}]", annotation: "kueue.x-k8s.io/podset-required-topology"},
		"some have":                             {queue: "resourceGroups: [{" + mixed + "}]"},
		"some have, in another group":           {queue: "resourceGroups: [{" + racks + "}, {" + plain + "}]"},
		"some have, and pods require one":       {queue: "resourceGroups: [{" + mixed + "}]", annotation: "kueue.x-k8s.io/podset-required-topology", want: true},
		"some have, and pods prefer one":        {queue: "resourceGroups: [{" + mixed + "}]", annotation: "kueue.x-k8s.io/podset-preferred-topology", want: true},
		"some have, and pods take any":          {queue: "resourceGroups: [{" + mixed + "}]", annotation: "kueue.x-k8s.io/podset-unconstrained-topology", want: true},
		"a flavor that does not exist":          {queue: "resourceGroups: [{flavors: [{name: racks}, {name: lost}]}]"},
		"no flavor":                             {queue: "{}"},
		"other checks before a job is admitted": {queue: "{resourceGroups: [{" + racks + "}], admissionChecksStrategy: {admissionChecks: [{name: multikueue}]}}"},
	} {
		t.Run(name, func(t *testing.T) {
			queue := &kueue.ClusterQueue{}
			if err := yaml.Unmarshal([]byte(test.queue), &queue.Spec); err != nil {
				t.Fatal(err)
			}
			template := corev1.PodTemplateSpec{}
			if test.annotation != "" {
				template.Annotations = map[string]string{test.annotation: "rack"}
			}
			if got := queue.SelectsNodes(template, flavors); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// TestCountsPods: a queue counts pods if any of its groups does.
func TestCountsPods(t *testing.T) {
	for text, want := range map[string]bool{
		"{}": false, "resourceGroups: [{coveredResources: [cpu, memory]}]": false, "resourceGroups: [{coveredResources: [cpu, pods]}]": true,
		"resourceGroups: [{coveredResources: [cpu]}, {coveredResources: [pods]}]": true,
	} {
		queue := &kueue.ClusterQueue{}
		if err := yaml.Unmarshal([]byte(text), &queue.Spec); err != nil {
			t.Fatal(err)
		}
		if got := queue.CountsPods(); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
}
