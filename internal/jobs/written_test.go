package jobs

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

const recordedJob = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: other, namespace: elsewhere, labels: {team: x}}
spec:
  runPolicy: {suspend: true}
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: l, image: mine, command: [mpirun, train, --key, "****"], env: [{name: HF_TOKEN, value: "****"}]}]}}}
    Worker: {replicas: 4, template: {spec: {containers: [{name: w, image: mine, env: [{name: URL, value: "postgres://****@db/x"}]}], volumes: [{name: v, csi: {volumeAttributes: {accessKey: "****"}}}]}}}
`

// deletedJob returns a deleted job whose report contains a manifest.
func deletedJob(kind, manifest string) Job {
	report := reportFor(kind, "gone", "g", v1alpha1.JobReportStatus{Specification: &v1alpha1.Specification{Manifest: manifest, Version: "1"}})
	report.Spec.JobRef.APIVersion = "kubeflow.org/v2beta1"
	return FromReport(report)
}

func TestCloneDeleted(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t)
	deleted := deletedJob("MPIJob", recordedJob)
	_, err := c.Clone(t.Context(), deleted, "")
	masked, is := errors.AsType[*MaskedError](err)
	if !is {
		t.Fatalf("masked secrets are cloned: %v", err)
	}
	const volume = "spec.mpiReplicaSpecs.Worker.template.spec.volumes[0].csi.volumeAttributes.accessKey"
	if diff := cmp.Diff([]string{"command", "env.HF_TOKEN", "env.URL", volume}, masked.Changes()); diff != "" {
		t.Error(diff)
	}
	const want = "mpijob/gone is deleted, and its report does not contain secrets (4 values masked): spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].command[3], variable HF_TOKEN at"
	if !strings.HasPrefix(err.Error(), want) {
		t.Errorf("the error is %q", err)
	}
	changes := []Change{{"command", "mpirun train --key new"}, {"env.HF_TOKEN", "new"}, {"env.URL", ""}}
	if _, err := c.Clone(t.Context(), deleted, "", changes...); err == nil || !strings.Contains(err.Error(), "(1 value masked): "+volume) {
		t.Errorf("a masked volume is cloned: %v", err)
	}
	clone, err := c.Clone(t.Context(), deleted, "", append(changes, Change{volume, "new"})...)
	if err != nil || clone.Job.GetName() != "gone-2" || clone.Job.GetNamespace() != "ns" || FromObject(clone.Job).Suspended() || clone.Job.GetLabels()["team"] != "x" {
		t.Errorf("%v: %v", clone.Job, err)
	}
	// The form of the dashboard starts with the masks, and its clone is refused while they are left.
	spec, _, err := c.SpecOf(t.Context(), deleted)
	if err != nil || !slices.ContainsFunc(spec.Command, func(word string) bool { return word == "****" }) {
		t.Errorf("the specification is %+v: %v", spec, err)
	}
	spec.Name = "again"
	if _, is := errors.AsType[*MaskedError](second(c.CloneWithSpec(t.Context(), deleted, spec))); !is {
		t.Error("a form clones masked secrets")
	}
	if draft, masked, err := c.Editable(t.Context(), deleted); err != nil || draft.GetName() != "gone-2" || masked != 4 {
		t.Errorf("%v with %d masked values: %v", draft, masked, err)
	}
	if warnings := warnMasked(clone.Original); len(warnings) != 1 || !strings.Contains(warnings[0], "4 values in this job") {
		t.Errorf("a saved manifest with masks: %q", warnings)
	}
	if warnings := warnMasked(clone.Job); len(warnings) != 0 {
		t.Errorf("a job without masks: %q", warnings)
	}
}

func TestCloneDeletedTrainJob(t *testing.T) {
	t.Parallel()
	runtime := &unstructured.Unstructured{Object: map[string]any{}}
	runtime.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind))
	runtime.SetName("mpi")
	runtime.SetUID("u")
	runtime.SetGeneration(3)
	c, _ := newServer(t, runtime)
	deleted := deletedJob(trainjob.Kind, "spec: {runtimeRef: {name: mpi}, trainer: {env: [{name: TOKEN, value: '****'}], args: ['--key=****']}}")
	masked, _ := errors.AsType[*MaskedError](second(c.Clone(t.Context(), deleted, "")))
	if masked == nil || !slices.Equal(masked.Changes(), []string{"command", "env.TOKEN"}) {
		t.Errorf("masked are %+v", masked)
	}
	if clone, err := c.Clone(t.Context(), deleted, "", Change{"command", "x"}, Change{"env.TOKEN", "y"}); err != nil || clone.Job.GetName() != "gone-2" {
		t.Errorf("%v: %v", clone.Job, err)
	}
	for version, want := range map[string]string{
		"": "", "u/3": "",
		"u/1": "runtime mpi has changed since trainjob/gone was created (generation 1, now 3); a clone uses it as it is now",
		"v/3": "runtime mpi was deleted and created again since trainjob/gone was created; a clone uses the new one",
	} {
		deleted.Report.Status.Specification.RuntimeVersion = version
		if note := c.RuntimeNote(t.Context(), deleted); note != want {
			t.Errorf("version %q: %q", version, note)
		}
	}
}

func TestWrittenWithoutManifest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		specification *v1alpha1.Specification
		want          string
	}{
		"an old report":  {nil, "mpijob/gone is deleted; its report does not contain the job's fields"},
		"too large":      {&v1alpha1.Specification{Omitted: "the job's fields have 99999 bytes; reports keep up to 32768"}, "mpijob/gone is deleted; its report does not contain the job's fields: the job's fields have 99999 bytes; reports keep up to 32768"},
		"not YAML":       {&v1alpha1.Specification{Manifest: "{"}, "mpijob/gone is deleted; its report does not contain the job's fields: the manifest is not YAML: "},
		"not an object":  {&v1alpha1.Specification{Manifest: "[1]"}, "mpijob/gone is deleted; its report does not contain the job's fields: the manifest is not YAML: "},
		"an empty value": {&v1alpha1.Specification{Manifest: "null"}, ""},
	} {
		job := FromReport(reportFor("MPIJob", "gone", "g", v1alpha1.JobReportStatus{Specification: test.specification}))
		_, err := job.Written()
		if err == nil && test.want == "" {
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCompareWithDeleted(t *testing.T) {
	t.Parallel()
	live := FromObject(object(t, strings.NewReplacer(`--key, "****"`, `--key, "secret"`, "postgres://****@", "postgres://me:pw@", "replicas: 4", "replicas: 8", `value: "****"`, `value: "hf_x"`).Replace(recordedJob)))
	compared := Compare(deletedJob("MPIJob", recordedJob), live, nil, time.Now()).Differences()
	names := make([]string, len(compared.Fields))
	for i, row := range compared.Fields {
		names[i] = row.Name
	}
	// The volume still has a mask in both; the others are equal as far as is known.
	if want := []string{"spec.mpiReplicaSpecs.Worker.replicas"}; !slices.Equal(names, want) {
		t.Errorf("the fields %v differ", names)
	}
	if compared.Note != "secrets are masked in the reports of deleted jobs; whether masked values differ is unknown" {
		t.Errorf("the note is %q", compared.Note)
	}
	for _, test := range []struct {
		masked, value string
		want          bool
	}{
		{"****", "x", true}, {"****", "", false}, {"a=****;b", "a=1;b", true}, {"a=****;b", "a=1;c", false}, {"****@x:****", "me@x:1", true}, {"****@x:****", "me@y:1", false}, {"x", "x", false},
	} {
		if matchesMasked(test.masked, test.value) != test.want {
			t.Errorf("%q and %q", test.masked, test.value)
		}
	}
}
