package jobs

import (
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestReplace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dryRun DryRun
		// refuse is the number of the create request that is refused, the first of which is the trial.
		refuse int
		// deleted and image are the result; notCreated whether the error is NotCreatedError.
		deleted           []string
		image             string
		fails, notCreated bool
	}{
		"replaced":              {deleted: []string{"MPIJob pi"}, image: "new"},
		"checked by the server": {dryRun: DryRunServer, image: "old"},
		"checked here":          {dryRun: DryRunClient, image: "old"},
		"not valid":             {refuse: 1, image: "old", fails: true},
		"not created":           {refuse: 2, deleted: []string{"MPIJob pi"}, fails: true, notCreated: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := object(t, mpiJobText)
			c, s := newServer(t, old.DeepCopy())
			creates := 0
			refusal := errors.New("refused")
			s.refuse = func(verb, _ string) error {
				if verb == "create" {
					if creates++; creates == test.refuse {
						return refusal
					}
				}
				return nil
			}
			next := UserFields(old)
			if err := Apply(next, Change{Field: "image", Value: "new"}); err != nil {
				t.Fatal(err)
			}
			err := c.Replace(t.Context(), FromObject(old), next, nil, test.dryRun)
			_, notCreated := errors.AsType[*NotCreatedError](err)
			if (err != nil) != test.fails || notCreated != test.notCreated || test.fails && !errors.Is(err, refusal) {
				t.Errorf("the error is %v", err)
			}
			if !slices.Equal(s.deleted, test.deleted) {
				t.Errorf("deleted %v", s.deleted)
			}
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion("kubeflow.org/v2beta1")
			list.SetKind("MPIJobList")
			if err := s.api.List(t.Context(), list, client.InNamespace("ns")); err != nil {
				t.Fatal(err)
			}
			var images []string
			for i := range list.Items {
				images = append(images, list.Items[i].GetName()+" "+FromObject(&list.Items[i]).Summary().Image)
			}
			var want []string
			if test.image != "" {
				want = []string{"pi " + test.image}
			}
			if !slices.Equal(images, want) {
				t.Errorf("there are %v, want %v", images, want)
			}
		})
	}
}

// TestReplaceStopsAtAnError: a step that fails ends the replacement, and nothing is created.
func TestReplaceStopsAtAnError(t *testing.T) {
	t.Parallel()
	for refused, notCreated := range map[string]bool{"list MPIJobList": false, "delete MPIJob": false, "get MPIJob": true} {
		old := object(t, mpiJobText)
		c, s := newServer(t, old.DeepCopy())
		s.refuse = func(verb, kind string) error {
			if verb+" "+kind == refused {
				return errors.New("broken")
			}
			return nil
		}
		err := c.Replace(t.Context(), FromObject(old), UserFields(old), new(time.Minute), DryRunNone)
		failed, is := errors.AsType[*NotCreatedError](err)
		if err == nil || is != notCreated {
			t.Errorf("%s is refused: %v", refused, err)
		}
		if is && failed.Job.GetName() != "pi" {
			t.Errorf("the job that was not created is %s", failed.Job.GetName())
		}
	}
}
