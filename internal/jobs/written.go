package jobs

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// Written returns the fields of the job as users wrote them (UserFields): those of the job itself or, if it is deleted, those in
// its report, in which secrets are masked. It fails with DeletedError if the report does not contain them.
func (j Job) Written() (*unstructured.Unstructured, error) {
	specification := j.Status().Specification
	if j.Object != nil {
		written := UserFields(j.Object)
		if isAdmitted(j.Object) && specification != nil {
			mpi.KeepPlacement(written.Object, specification.Manifest)
		}
		return written, nil
	}
	switch {
	case specification == nil:
		return nil, &DeletedError{Job: j}
	case specification.Manifest == "":
		return nil, &DeletedError{Job: j, Reason: specification.Omitted}
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(specification.Manifest), &object.Object); err != nil {
		return nil, &DeletedError{Job: j, Reason: "the manifest is not YAML: " + err.Error()}
	}
	// The reference of the report is immutable, and what this is.
	ref := j.Report.Spec.JobRef
	object.SetAPIVersion(ref.APIVersion)
	object.SetKind(ref.Kind)
	object.SetName(ref.Name)
	object.SetNamespace(j.Namespace)
	return UserFields(object), nil
}

// isAdmitted reports whether Kueue may have written into the fields of a job.
func isAdmitted(job *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(job.Object, editorFor(job.GetKind()).SuspendPath()...)
	return job.GetLabels()[mpi.LabelQueue] != "" && !suspended
}

// MaskedError is a request to create a job from another, in which secrets are masked that are unknown: the other is deleted, and
// its report does not contain them, or it has no such secret.
type MaskedError struct {
	Job Job
	// Fields are the fields whose values contain masked secrets, sorted.
	Fields []MaskedField
}

// MaskedField is a field whose value contains a masked secret.
type MaskedField struct {
	// Path is the path of the field.
	Path string
	// Variable is the name of the environment variable that the field is the value of; empty for other fields.
	Variable string
	// Change is the name of the change that sets the field, such as env.HF_TOKEN.
	Change string
}

func (e *MaskedError) Error() string {
	const most = 5
	var fields []string
	for _, field := range e.Fields {
		name := field.Path
		if field.Variable != "" {
			name = "variable " + field.Variable + " at " + field.Path
		}
		fields = append(fields, name)
	}
	if more := len(fields) - most; more > 0 {
		fields = append(fields[:most], fmt.Sprintf("%d more", more))
	}
	if e.Job.Object != nil {
		return fmt.Sprintf("%s has no secret for %s masked with %s: %s", e.Job, phrase.Count(len(e.Fields), "value"), logs.Masked, strings.Join(fields, ", "))
	}
	return fmt.Sprintf("%s is deleted, and its report does not contain secrets (%s masked): %s", e.Job, phrase.Count(len(e.Fields), "value"), strings.Join(fields, ", "))
}

// Changes returns the changes that set the masked fields, each once.
func (e *MaskedError) Changes() []string {
	var changes []string
	for _, field := range e.Fields {
		if !slices.Contains(changes, field.Change) {
			changes = append(changes, field.Change)
		}
	}
	return changes
}

// checkMasked returns a MaskedError if a field of a new job contains a secret that was masked in the report of the deleted job
// that it is made from. A value that a user wrote as **** counts as masked.
func checkMasked(from Job, clone *unstructured.Unstructured) error {
	if from.Object != nil {
		return nil
	}
	e := &MaskedError{Job: from}
	findMasked(clone.GetKind(), clone.Object, "", &e.Fields)
	if len(e.Fields) == 0 {
		return nil
	}
	return e
}

// warnMasked returns a warning about a job that was saved from the report of a deleted one, and has masked secrets.
func warnMasked(job *unstructured.Unstructured) []string {
	var found []MaskedField
	findMasked(job.GetKind(), job.Object, "", &found)
	if len(found) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: contains %s, which stands for a secret in reports of deleted jobs (%s in this job); set the secret again", found[0].Path, logs.Masked, phrase.Count(len(found), "value"))}
}

// mainEnv is the path of a variable that the change env.NAME sets.
var mainEnv = map[string]*regexp.Regexp{
	trainjob.Kind: regexp.MustCompile(`^spec\.trainer\.env\[\d+\]\.value$`),
	"MPIJob":      regexp.MustCompile(`^spec\.mpiReplicaSpecs\.\w+\.template\.spec\.containers\[0\]\.env\[\d+\]\.value$`),
}

// mainCommand is the path of a word that the change command sets.
var mainCommand = map[string]*regexp.Regexp{
	trainjob.Kind: regexp.MustCompile(`^spec\.trainer\.(?:command|args)\[\d+\]$`),
	"MPIJob":      regexp.MustCompile(`^spec\.mpiReplicaSpecs\.Launcher\.template\.spec\.containers\[0\]\.(?:command|args)\[\d+\]$`),
}

// findMasked adds the masked fields of a value, in the order of their paths. Paths are those that setPath takes.
func findMasked(kind string, value any, path string, found *[]MaskedField) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			at, here := len(*found), joinPath(path, name)
			findMasked(kind, value[name], here, found)
			variable, _ := value["name"].(string)
			if name == "value" && variable != "" && len(*found) == at+1 && (*found)[at].Path == here {
				(*found)[at] = maskedVariable(kind, here, variable)
			}
		}
	case []any:
		for i, entry := range value {
			findMasked(kind, entry, path+"["+strconv.Itoa(i)+"]", found)
		}
	case string:
		if strings.Contains(value, logs.Masked) {
			*found = append(*found, maskedText(kind, path))
		}
	}
}

func maskedVariable(kind, path, variable string) MaskedField {
	field := MaskedField{Path: path, Variable: variable, Change: path}
	if main := mainEnv[kind]; main != nil && main.MatchString(path) {
		field.Change = "env." + variable
	}
	return field
}

func maskedText(kind, path string) MaskedField {
	field := MaskedField{Path: path, Change: path}
	if main := mainCommand[kind]; main != nil && main.MatchString(path) {
		field.Change = "command"
	}
	return field
}

// alignMasked returns a value with masks for the same value without them: of a deleted job and another, both with the secret, the
// fields are equal as far as is known.
func alignMasked(a, b string) (string, string) {
	switch {
	case a == b:
	case matchesMasked(a, b):
		b = a
	case matchesMasked(b, a):
		a = b
	}
	return a, b
}

// matchesMasked reports whether a value may be the one that was masked.
func matchesMasked(masked, value string) bool {
	parts := strings.Split(masked, logs.Masked)
	if len(parts) == 1 || value == "" {
		return false
	}
	rest, found := strings.CutPrefix(value, parts[0])
	if !found {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// RuntimeNote returns how the runtime of a deleted TrainJob has changed since; empty if it has not, or that is unknown. A clone
// runs with the runtime as it is now.
func (c *Client) RuntimeNote(ctx context.Context, job Job) string {
	specification := job.Status().Specification
	if job.Kind != trainjob.Kind || specification == nil || specification.RuntimeVersion == "" {
		return ""
	}
	written, err := job.Written()
	if err != nil {
		return ""
	}
	name, _, _ := unstructured.NestedString(written.Object, "spec", "runtimeRef", "name")
	kind, _, _ := unstructured.NestedString(written.Object, "spec", "runtimeRef", "kind")
	gvk, namespace := trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind), ""
	if kind == trainjob.RuntimeKind {
		gvk, namespace = trainjob.GroupVersion.WithKind(trainjob.RuntimeKind), job.Namespace
	}
	now, err := c.get(ctx, gvk, namespace, name)
	if err != nil || now == nil || trainjob.VersionOf(now) == specification.RuntimeVersion {
		return ""
	}
	uid, generation, _ := strings.Cut(specification.RuntimeVersion, "/")
	if uid != string(now.GetUID()) {
		return fmt.Sprintf("runtime %s was deleted and created again since %s was created; a clone uses the new one", name, job)
	}
	return fmt.Sprintf("runtime %s has changed since %s was created (generation %s, now %d); a clone uses it as it is now", name, job, generation, now.GetGeneration())
}
