package offline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// maxFile is how large a file of objects may be.
const maxFile = 1 << 30

// Input are the files to read.
type Input struct {
	// Paths are files and folders; - is standard input.
	Paths []string
	// Logs are files of logs by the name of their pod, or of POD/CONTAINER.
	Logs map[string]string
	// Stdin is read for the path -.
	Stdin io.Reader
}

// Saved is what files contain.
type Saved struct {
	objects objects
	logs    logFiles
	// latest is the latest time in the files, and taken that of a must-gather; zero if unknown.
	latest, taken time.Time
	// Problems are files in folders that could not be read, one a line.
	Problems []string
}

// InputError is files that cannot be read, all at once.
type InputError struct{ Problems []string }

func (e *InputError) Error() string { return strings.Join(e.Problems, "; ") }

// Read reads objects and logs. Files are recognized by their content and, in a folder, logs by their names. It fails with
// InputError. A file of a folder that cannot be read is a problem of Saved, since such folders contain much else.
func Read(in Input) (*Saved, error) {
	s := &Saved{objects: newObjects(), logs: logFiles{}}
	var wrong []string
	for _, path := range in.Paths {
		switch info, err := stat(path); {
		case err != nil:
			wrong = append(wrong, err.Error())
		case info != nil && info.IsDir():
			s.readFolder(path)
		default:
			wrong = append(wrong, s.readFile(in, path)...)
		}
	}
	names := make([]string, 0, len(in.Logs))
	for name := range in.Logs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		pod, container, _ := strings.Cut(name, "/")
		if err := s.logs.add(logKey{pod: pod, container: container}, in.Logs[name], true); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	if len(wrong) > 0 {
		return nil, &InputError{wrong}
	}
	s.latest = s.logs.latest(s.latest)
	return s, nil
}

func stat(path string) (fs.FileInfo, error) {
	if path == "-" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if pathError, is := errors.AsType[*fs.PathError](err); is {
		return nil, fmt.Errorf("%s: %w", path, pathError.Err)
	}
	return info, err //nolint:wrapcheck // there is no other error
}

// readFile reads a file of objects, or a log with the name of a pod.
func (s *Saved) readFile(in Input, path string) []string {
	if strings.HasSuffix(path, ".log") {
		if err := s.logs.add(keyOf(path), path, true); err != nil {
			return []string{err.Error()}
		}
		return nil
	}
	var data []byte
	var err error
	name := path
	if path == "-" {
		name = "standard input"
		data, err = io.ReadAll(in.Stdin)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", name, err)}
	}
	return s.readObjects(name, data)
}

// readObjects reads the objects of a file, and returns what is wrong with it.
func (s *Saved) readObjects(name string, data []byte) (wrong []string) {
	for _, part := range documentsOf(data) {
		fields := map[string]any{}
		text, err := yaml.YAMLToJSON(part.text)
		if err == nil && string(text) == "null" {
			continue
		}
		if err == nil {
			err = json.Unmarshal(text, &fields)
		}
		if err != nil {
			wrong = append(wrong, part.describe(name, err))
			continue
		}
		for _, problem := range s.addFields(fields) {
			wrong = append(wrong, fmt.Sprintf("%s: %s", name, problem))
		}
	}
	return wrong
}

// addFields adds an object, or the objects of a list, whose items may have no kind.
func (s *Saved) addFields(fields map[string]any) (wrong []string) {
	object := &unstructured.Unstructured{Object: fields}
	if items, is := fields["items"].([]any); is {
		of := strings.TrimSuffix(object.GetKind(), "List")
		for i, item := range items {
			entry, is := item.(map[string]any)
			if !is {
				wrong = append(wrong, fmt.Sprintf("items[%d]: is not an object", i))
				continue
			}
			if entry["kind"] == nil && of != "" {
				entry["kind"], entry["apiVersion"] = of, fields["apiVersion"]
			}
			for _, problem := range s.addFields(entry) {
				wrong = append(wrong, fmt.Sprintf("items[%d]: %s", i, problem))
			}
		}
		return wrong
	}
	if object.GetKind() == "" {
		return []string{"kind: is missing; this is not an object of Kubernetes. For a log, use --log POD=FILE"}
	}
	asCoreEvent(object)
	if !wanted[object.GroupVersionKind().GroupKind()] {
		return nil
	}
	if err := check(object); err != nil {
		return []string{err.Error()}
	}
	s.objects.add(object)
	s.latest = latestIn(object.Object, s.latest)
	return nil
}

// notPast are fields whose times are no observations: users write them, or they predict or plan something, as estimates, the next
// attempt of a job that was put back, and the end of what is kept for a time.
var notPast = map[string]bool{
	"spec": true, "annotations": true, "data": true,
	"estimate": true, "endEstimate": true, "nextTry": true, "expires": true, "requeueState": true,
}

// latestIn returns the latest of a time and the times in the metadata and the status of an object.
func latestIn(value any, latest time.Time) time.Time {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if !notPast[name] {
				latest = latestIn(field, latest)
			}
		}
	case []any:
		for _, entry := range value {
			latest = latestIn(entry, latest)
		}
	case string:
		if len(value) < len("2006-01-02T15:04:05Z") || value[4] != '-' || value[10] != 'T' {
			break
		}
		if at, err := time.Parse(time.RFC3339Nano, value); err == nil && at.After(latest) {
			return at
		}
	}
	return latest
}

// part is a document of a file.
type part struct {
	text []byte
	// line is the number of the lines before it.
	line int
}

var (
	separator = regexp.MustCompile(`(?m)^---(?:[ \t].*)?$`)
	lineOf    = regexp.MustCompile(`line (\d+)`)
)

// documentsOf splits a file at its lines ---.
func documentsOf(data []byte) (parts []part) {
	from, line := 0, 0
	add := func(to int) {
		if text := data[from:to]; len(bytes.TrimSpace(text)) > 0 {
			parts = append(parts, part{text: text, line: line})
		}
	}
	for _, at := range separator.FindAllIndex(data, -1) {
		add(at[0])
		line += bytes.Count(data[from:at[1]], []byte("\n"))
		from = at[1]
	}
	add(len(data))
	return parts
}

// describe returns a problem with its line in the file.
func (p part) describe(file string, err error) string {
	text := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:\n  "} {
		text = strings.TrimPrefix(text, prefix)
	}
	at := p.line + 1
	if found := lineOf.FindStringSubmatch(text); found != nil {
		number, _ := strconv.Atoi(found[1])
		at = p.line + number
		text = strings.TrimPrefix(strings.Replace(text, found[0], "", 1), ": ")
	} else if strings.Contains(text, "cannot unmarshal") {
		text = "is not an object of Kubernetes; for a log, use --log POD=FILE"
	}
	return fmt.Sprintf("%s: line %d: %s", file, at, strings.TrimSpace(text))
}
