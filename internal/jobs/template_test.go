package jobs

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestNewTemplate(t *testing.T) {
	t.Parallel()
	job := parsed(t, "{kind: MPIJob, metadata: {name: pi, namespace: ns, labels: {team: x}}, spec: {runPolicy: {suspend: true}, slotsPerWorker: 1, mpiReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: a, command: ['${HOME}/run']}]}}}}}}")
	template, err := NewTemplate("train", "a test", job, true, Change{Field: "workers", Value: "${WORKERS:-2}"})
	if err != nil {
		t.Fatal(err)
	}
	if template.Job.GetName() != "" || template.Job.GetNamespace() != "" || FromObject(template.Job).Suspended() || template.Job.GetLabels()["team"] != "x" {
		t.Errorf("the template's job is %v", template.Job)
	}
	if got := template.Parameters.String(); got != "WORKERS=2" {
		t.Errorf("with escaped texts, the parameters are %q", got)
	}
	if template, err = NewTemplate("train", "", job, false); err != nil || template.Parameters.String() != "HOME" {
		t.Errorf("without, the parameters are %q: %v", template.Parameters, err)
	}
	for name, wrong := range map[string]error{
		"a name":   second(NewTemplate("A b", "", job, true)),
		"a change": second(NewTemplate("train", "", job, true, Change{Field: "workers", Value: "many"})),
	} {
		if wrong == nil {
			t.Errorf("%s that is wrong is taken", name)
		}
	}
}

func TestTemplatesAreStored(t *testing.T) {
	t.Parallel()
	broken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mpijob-template-broken", Labels: map[string]string{"mpi.opendatahub.io/template": "job"}}, Data: map[string]string{"job.yaml": "items: []"}}
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mpijob-template-foreign"}}
	c, s := newServer(t, broken, foreign)
	save := func(name, description string, replace bool) (bool, error) {
		template, err := NewTemplate(name, description, parsed(t, mpiJobText), true, Change{Field: "image", Value: "${IMAGE}"})
		if err != nil {
			t.Fatal(err)
		}
		return c.SaveTemplate(t.Context(), "ns", template, replace)
	}
	if replaced, err := save("train", "first", false); err != nil || replaced {
		t.Errorf("saved: %t, %v", replaced, err)
	}
	if _, err := save("train", "second", false); err == nil || err.Error() != "template train already exists" {
		t.Errorf("saved again: %v", err)
	}
	if replaced, err := save("train", "second", true); err != nil || !replaced {
		t.Errorf("replaced: %t, %v", replaced, err)
	}
	if _, err := save("foreign", "", true); err == nil || !strings.Contains(err.Error(), "is not a template and was not changed") {
		t.Errorf("over a ConfigMap of another owner: %v", err)
	}

	all, err := c.Templates(t.Context(), "ns")
	if err != nil || len(all) != 2 || all[0].Name != "broken" || all[1].Name != "train" || all[1].Description != "second" {
		t.Errorf("%+v, %v", all, err)
	}
	template, err := c.Template(t.Context(), "ns", "train")
	if err != nil || template.Parameters.String() != "IMAGE" {
		t.Fatalf("%+v, %v", template, err)
	}
	if _, err := c.Template(t.Context(), "ns", "broken"); err == nil || err.Error() != "template broken (ConfigMap mpijob-template-broken) is not valid: key job.yaml does not contain one job" {
		t.Errorf("a broken template: %v", err)
	}
	missing, is := errors.AsType[*NotFoundError](second(c.Template(t.Context(), "ns", "trian")))
	if !is || !cmp.Equal(missing.Similar, []string{"train"}) || len(missing.Names) != 2 {
		t.Errorf("a missing template: %+v", missing)
	}

	job, err := c.JobFromTemplate(t.Context(), "ns", "", template, map[string]string{"IMAGE": "i"}, Change{Field: "workers", Value: "8"})
	if err != nil || job.GetName() != "train-2" || job.GetNamespace() != "ns" || FromObject(job).Summary().Image != "i" {
		t.Errorf("%v, %v", job, err)
	}
	if job, err := c.JobFromTemplate(t.Context(), "ns", "own", template, map[string]string{"IMAGE": "i"}); err != nil || job.GetName() != "own" {
		t.Errorf("%v, %v", job, err)
	}
	for name, err := range map[string]error{
		"a missing value": second(c.JobFromTemplate(t.Context(), "ns", "own", template, nil)),
		"a wrong change":  second(c.JobFromTemplate(t.Context(), "ns", "own", template, map[string]string{"IMAGE": "i"}, Change{Field: "workers", Value: "x"})),
	} {
		if err == nil {
			t.Errorf("%s is taken", name)
		}
	}

	for _, name := range []string{"train", "broken"} {
		if err := c.DeleteTemplate(t.Context(), "ns", name); err != nil {
			t.Errorf("%s cannot be deleted: %v", name, err)
		}
	}
	if _, is := errors.AsType[*NotFoundError](c.DeleteTemplate(t.Context(), "ns", "train")); !is {
		t.Error("a deleted template is deleted again")
	}
	if err := s.api.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: foreign.Name}, foreign); err != nil {
		t.Errorf("the ConfigMap of another owner: %v", err)
	}
}

// TestTemplateRequestsFail: each refused request is reported with what it was for.
func TestTemplateRequestsFail(t *testing.T) {
	t.Parallel()
	template, err := NewTemplate("train", "", parsed(t, mpiJobText), true)
	if err != nil {
		t.Fatal(err)
	}
	for refused, want := range map[string]string{"create": "save template train: ", "get": "read template train: ", "list": "list templates: ", "delete": "delete template train: "} {
		c, s := newServer(t)
		if refused != "create" {
			if _, err := c.SaveTemplate(t.Context(), "ns", template, false); err != nil {
				t.Fatal(err)
			}
		}
		s.refuse = func(verb, _ string) error {
			if verb == refused {
				return forbidden("configmaps")
			}
			return nil
		}
		var got error
		switch refused {
		case "create", "get":
			_, got = c.SaveTemplate(t.Context(), "ns", template, true)
		default:
			got = c.DeleteTemplate(t.Context(), "ns", "train")
		}
		if got == nil || !strings.HasPrefix(got.Error(), want) {
			t.Errorf("%s is refused: %v, want %s", refused, got, want)
		}
	}
}
