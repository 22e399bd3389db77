package report

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/masking"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// NeedsManifest reports whether SetSpecification needs the manifest that the record of an MPIJob contains, and a cache does not: Kueue, which
// has admitted the job, has written into the fields that are to be recorded.
func NeedsManifest(status v1alpha1.JobReportStatus, job mpi.Job, object metav1.Object) bool {
	old := status.Specification
	return old != nil && old.Size > 0 && hasAssignments(job) && !job.External && isOutdated(status, object)
}

// hasAssignments reports whether Kueue may have written into the fields of a job.
func hasAssignments(job mpi.Job) bool { return job.Queue != "" && !job.Lifecycle.Suspended }

// isOutdated reports whether the specification in a record is to be written again. That of a job that has ended is not.
func isOutdated(status v1alpha1.JobReportStatus, object metav1.Object) bool {
	old := status.Specification
	return old == nil || old.Version != versionOf(object) && status.CompletionTime == nil
}

// SetSpecification writes the job, as its user wrote it, into a record whose specification has another version or is missing.
// The record of a job that has ended keeps its specification. The object is not changed.
func SetSpecification(status *v1alpha1.JobReportStatus, job mpi.Job, object metav1.Object, mask func(string) string) {
	if !isOutdated(*status, object) {
		return
	}
	old := status.Specification
	next := &v1alpha1.Specification{Version: versionOf(object), RuntimeVersion: job.RuntimeVersion}
	if old != nil && old.RuntimeVersion != "" {
		next.RuntimeVersion = old.RuntimeVersion
	}
	text, masked, err := manifestOf(job, object, old, mask)
	if err != nil {
		next.Omitted = phrase.Limit(err.Error(), maxReason)
	} else {
		next.Manifest, next.Size, next.Masked = text, int32(len(text)), masked
	}
	status.Specification = next
}

// versionOf identifies what a user can change of a job.
func versionOf(object metav1.Object) string {
	hash := fnv.New64a()
	for _, fields := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if !slices.Contains(mpi.AddedAnnotations, name) {
				fmt.Fprintf(hash, "%q=%q,", name, fields[name])
			}
		}
		hash.Write([]byte{0})
	}
	return strconv.FormatInt(object.GetGeneration(), 10) + "-" + strconv.FormatUint(hash.Sum64(), 16)
}

// manifestOf returns a job as YAML without what Kueue wrote into it, which old shows, with secrets masked, and the number of masked
// values. It fails if that is too large, before anything is masked: masking takes milliseconds for 100 kB.
func manifestOf(job mpi.Job, object metav1.Object, old *v1alpha1.Specification, mask func(string) string) (text string, masked int32, err error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "", 0, fmt.Errorf("the job cannot be read: %w", err)
	}
	annotations := maps.Clone(object.GetAnnotations())
	for _, name := range mpi.AddedAnnotations {
		delete(annotations, name)
	}
	metadata := map[string]any{"name": job.Name, "namespace": job.Namespace}
	for name, values := range map[string]map[string]string{"labels": object.GetLabels(), "annotations": annotations} {
		if len(values) > 0 {
			metadata[name] = asFields(values)
		}
	}
	written := map[string]any{"apiVersion": job.APIVersion, "kind": job.Kind, "metadata": metadata, "spec": withoutNulls(fields["spec"])}
	mpi.RemoveAssignments(written)
	if old != nil && hasAssignments(job) {
		mpi.KeepPlacement(written, old.Manifest)
	}
	mpi.RestoreRDMA(written, mpi.RemovedRDMA(object.GetAnnotations()))
	data, err := json.Marshal(written)
	if err != nil {
		return "", 0, fmt.Errorf("the job cannot be written: %w", err)
	}
	if len(data) > maxManifest {
		return "", 0, tooLarge(len(data))
	}
	masked = masking.Fields(written, mask)
	data, err = yaml.Marshal(written)
	if err != nil {
		return "", 0, fmt.Errorf("the job cannot be written: %w", err)
	}
	if quoted := size(string(data)); len(data) > maxManifest || quoted > maxSpecification-1<<10 {
		return "", 0, tooLarge(max(len(data), quoted))
	}
	return string(data), masked, nil
}

func tooLarge(bytes int) error {
	return fmt.Errorf("the job's fields have %d bytes; reports keep up to %d", bytes, maxManifest)
}

func asFields(values map[string]string) map[string]any {
	fields := make(map[string]any, len(values))
	for name, value := range values {
		fields[name] = value
	}
	return fields
}

// withoutNulls returns a copy of a value of JSON without fields that are null. Go's types write such fields, and users do not.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for name, entry := range value {
			if entry != nil {
				kept[name] = withoutNulls(entry)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i := range value {
			kept[i] = withoutNulls(value[i])
		}
		return kept
	}
	return value
}

// LabelsOf returns those labels with some keys that the job of a report had; empty without its specification.
func LabelsOf(status v1alpha1.JobReportStatus, keys []string) map[string]string {
	if status.Specification == nil || len(keys) == 0 {
		return nil
	}
	var object struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal([]byte(status.Specification.Manifest), &object); err != nil {
		return nil
	}
	labels := map[string]string{}
	for _, key := range keys {
		if value := object.Metadata.Labels[key]; value != "" {
			labels[key] = value
		}
	}
	return labels
}
