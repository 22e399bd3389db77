package report

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// SetSpecification writes the job, as its user wrote it, into a record whose specification has another version or is missing.
// The record of a job that has ended keeps its specification. The object is not changed.
func SetSpecification(status *v1alpha1.JobReportStatus, job mpi.Job, object metav1.Object, mask func(string) string) {
	old := status.Specification
	version := versionOf(object)
	if old != nil && (old.Version == version || status.CompletionTime != nil) {
		return
	}
	next := &v1alpha1.Specification{Version: version, RuntimeVersion: job.RuntimeVersion}
	if old != nil && old.RuntimeVersion != "" {
		next.RuntimeVersion = old.RuntimeVersion
	}
	text, masked, err := manifestOf(job, object, mask)
	if err != nil {
		next.Omitted = phrase.Limit(err.Error(), maxReason)
	} else {
		next.Manifest, next.Size, next.Masked = text, int32(len(text)), masked
	}
	status.Specification = next
}

// notWritten are the annotations that the cluster adds to a job.
var notWritten = []string{"kubectl.kubernetes.io/last-applied-configuration", mpi.AnnotationCreator, mpi.AnnotationSuspendSetBy, mpi.AnnotationChangedBy}

// versionOf identifies what a user can change of a job.
func versionOf(object metav1.Object) string {
	hash := fnv.New64a()
	for _, fields := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if !slices.Contains(notWritten, name) {
				fmt.Fprintf(hash, "%q=%q,", name, fields[name])
			}
		}
		hash.Write([]byte{0})
	}
	return strconv.FormatInt(object.GetGeneration(), 10) + "-" + strconv.FormatUint(hash.Sum64(), 16)
}

// manifestOf returns a job as YAML with secrets masked, and the number of masked values. It fails if that is too large, before
// anything is masked: masking takes milliseconds for 100 kB.
func manifestOf(job mpi.Job, object metav1.Object, mask func(string) string) (text string, masked int32, err error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return "", 0, fmt.Errorf("the job cannot be read: %w", err)
	}
	annotations := maps.Clone(object.GetAnnotations())
	for _, name := range notWritten {
		delete(annotations, name)
	}
	metadata := map[string]any{"name": job.Name, "namespace": job.Namespace}
	for name, values := range map[string]map[string]string{"labels": object.GetLabels(), "annotations": annotations} {
		if len(values) > 0 {
			metadata[name] = asFields(values)
		}
	}
	written := map[string]any{"apiVersion": job.APIVersion, "kind": job.Kind, "metadata": metadata, "spec": withoutNulls(fields["spec"])}
	data, err := json.Marshal(written)
	if err != nil {
		return "", 0, fmt.Errorf("the job cannot be written: %w", err)
	}
	if len(data) > maxManifest {
		return "", 0, tooLarge(len(data))
	}
	m := masking{mask: mask}
	for _, part := range []string{"metadata", "spec"} {
		written[part] = m.value(part, written[part])
	}
	data, err = yaml.Marshal(written)
	if err != nil {
		return "", 0, fmt.Errorf("the job cannot be written: %w", err)
	}
	if quoted := size(string(data)); len(data) > maxManifest || quoted > maxSpecification-1<<10 {
		return "", 0, tooLarge(max(len(data), quoted))
	}
	return string(data), m.count, nil
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

// maskedValue stands where a secret stood, as in package logs.
const maskedValue = "****"

// masking masks the secrets in the fields of a job.
type masking struct {
	mask func(string) string
	// count is the number of values that were masked.
	count int32
}

// value masks a value, which is changed. The name is that of its field.
func (m *masking) value(name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		m.fields(value)
	case []any:
		if words, are := asWords(value); are {
			m.words(words)
			for i := range words {
				value[i] = words[i]
			}
			return value
		}
		for i := range value {
			value[i] = m.value("", value[i])
		}
	case string:
		return m.setting(name, value)
	}
	return value
}

// fields masks the fields of an object. What has a name and a value, such as a variable, is a setting; a command and its
// arguments are one command line.
func (m *masking) fields(object map[string]any) {
	name, hasName := object["name"].(string)
	command, isCommand := asWords(object["command"])
	args, hasArgs := asWords(object["args"])
	isLine := isCommand && hasArgs
	if isLine {
		line := slices.Concat(command, args)
		m.words(line)
		object["command"], object["args"] = asValues(line[:len(command)]), asValues(line[len(command):])
	}
	for _, field := range slices.Sorted(maps.Keys(object)) {
		value, isText := object[field].(string)
		switch {
		case isLine && (field == "command" || field == "args"):
		case hasName && field == "name" && isText && object["value"] != nil:
			object[field] = m.text(name)
		case hasName && field == "value" && isText:
			object[field] = m.setting(name, value)
		default:
			object[field] = m.value(field, object[field])
		}
	}
}

func asWords(value any) ([]string, bool) {
	list, is := value.([]any)
	if !is || len(list) == 0 {
		return nil, false
	}
	words := make([]string, len(list))
	for i, entry := range list {
		if words[i], is = entry.(string); !is {
			return nil, false
		}
	}
	return words, true
}

func asValues(words []string) []any {
	values := make([]any, len(words))
	for i, word := range words {
		values[i] = word
	}
	return values
}

// text masks a text.
func (m *masking) text(text string) string {
	masked := m.mask(text)
	if masked != text {
		m.count++
	}
	return masked
}

// setting masks the value of a setting: all of it if the name is one of a secret, otherwise what looks like a secret.
func (m *masking) setting(name, value string) string {
	if name != "" && value != "" {
		// In quotes, a value with blanks or line breaks is one value.
		set := name + "="
		if masked := m.mask(set + strconv.Quote(value)); masked == set+`"`+maskedValue+`"` || masked != set+strconv.Quote(value) && m.mask(value) == value {
			m.count++
			return maskedValue
		}
	}
	return m.text(value)
}

// words masks the words of a command line, which are changed: each by itself, and values that follow their name in the next word.
func (m *masking) words(words []string) {
	line := make([]string, len(words))
	for i, word := range words {
		words[i] = m.text(word)
		if line[i] = words[i]; word == "" || strings.ContainsFunc(word, isBlank) {
			line[i] = "_" // a script, or one value
		}
	}
	before := strings.Join(line, " ")
	after := m.mask(before)
	if after == before {
		return
	}
	masked := strings.Split(after, " ")
	if len(masked) == len(line) {
		for i := range line {
			if masked[i] != line[i] {
				m.hide(words, i, masked[i])
			}
		}
		return
	}
	// A mask replaced several words: those that are left at both ends are the same.
	first, last := 0, len(line)
	for first < len(masked) && first < len(line) && masked[first] == line[first] {
		first++
	}
	for n := len(masked); last > first && n > first && masked[n-1] == line[last-1]; n-- {
		last--
	}
	for i := first; i < last; i++ {
		m.hide(words, i, maskedValue)
	}
}

// hide replaces a word, and counts it unless it was masked before.
func (m *masking) hide(words []string, i int, masked string) {
	if !strings.Contains(words[i], maskedValue) {
		m.count++
	}
	if strings.ContainsFunc(words[i], isBlank) {
		masked = maskedValue
	}
	words[i] = masked
}

func isBlank(r rune) bool {
	return r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == '\v' || r == '\f'
}
