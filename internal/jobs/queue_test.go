package jobs

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestFindMissingQueue(t *testing.T) {
	t.Parallel()
	queue := func(namespace, name string) *unstructured.Unstructured {
		return parsed(t, "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: "+name+", namespace: "+namespace+"}}")
	}
	c, s := newServer(t, queue("ns", "gpu"), queue("ns", "cpu"), queue("other", "gpuu"))
	job := func(namespace, labels string) *unstructured.Unstructured {
		return parsed(t, "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: pi, namespace: "+namespace+", labels: {"+labels+"}}}")
	}
	for name, test := range map[string]struct {
		job  *unstructured.Unstructured
		want string
	}{
		"no queue":   {job: job("ns", "team: a")},
		"there":      {job: job("ns", "kueue.x-k8s.io/queue-name: gpu")},
		"misspelled": {job("ns", "kueue.x-k8s.io/queue-name: gpuu"), "namespace ns has no queue gpuu, so the job waits until there is one; the queues of the namespace: cpu, gpu"},
		"none":       {job("empty", "kueue.x-k8s.io/queue-name: gpu"), "namespace empty has no queue gpu, so the job waits until there is one"},
	} {
		missing, err := c.FindMissingQueue(t.Context(), test.job)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if missing != nil {
			got = missing.String()
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	for want, refused := range map[bool]error{false: forbidden("localqueues"), true: errors.New("broken")} {
		s.refuse = func(string, string) error { return refused }
		if missing, err := c.FindMissingQueue(t.Context(), job("ns", "kueue.x-k8s.io/queue-name: gpuu")); missing != nil || (err != nil) != want {
			t.Errorf("%v: %v, %v", refused, missing, err)
		}
	}
}
