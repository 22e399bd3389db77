package logstore

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
)

// partText is how many bytes of text an object contains at most, but for its last line.
const partText = 512 << 10

// run identifies one run of a container: from its start to its end. The API server gives UIDs, so that no user can choose the keys of
// another job's logs.
type runID struct {
	namespace string
	job       types.UID
	pod       string
	podUID    types.UID
	// restarts is how often the container was started before.
	restarts int32
}

func (r runID) jobID() jobID { return jobID{r.namespace, r.job} }

// jobID identifies a job. A UID alone does not: users can write it into reports of other namespaces.
type jobID struct {
	namespace string
	uid       types.UID
}

// prefix begins the keys of all objects of the job.
func (j jobID) prefix(of string) string { return of + j.namespace + "/" + string(j.uid) + "/" }

// part is what the key of an object describes: its lines.
type part struct {
	run runID
	// number counts the parts of a run from 1.
	number      int
	first, last time.Time
	lines       int
	// text is the size of the lines in bytes.
	text int64
	// cut is set if lines before or after these may be missing.
	cut bool
}

const (
	partSuffix = ".gz"
	// whole and cut end the names of objects before their suffix.
	whole, cut = "whole", "cut"
	// indexName is the name of the index of a job's logs. It is no name of a pod's folder, which ends with a slash.
	indexName = "index.json"
	// propertyResume is the property of an object with how far the log was read.
	propertyResume = "resume"
)

// key returns the key of a part's object. The keys of a run's parts are in the order of their lines.
func (p part) key(prefix string) string {
	state := whole
	if p.cut {
		state = cut
	}
	return fmt.Sprintf("%s%s/%s/%04d/%06d_%d_%d_%d_%d_%s%s", p.run.jobID().prefix(prefix), p.run.pod, p.run.podUID, p.run.restarts,
		p.number, p.first.UnixNano(), p.last.UnixNano(), p.lines, p.text, state, partSuffix)
}

// parsePart reads the key of a part's object; false for other objects.
func parsePart(prefix, key string) (part, bool) {
	rest, isOurs := strings.CutPrefix(key, prefix)
	rest, isPart := strings.CutSuffix(rest, partSuffix)
	const folders, fields = 6, 6
	path := strings.Split(rest, "/")
	if !isOurs || !isPart || len(path) != folders {
		return part{}, false
	}
	values := strings.Split(path[folders-1], "_")
	if len(values) != fields {
		return part{}, false
	}
	var numbers [fields]int64
	for i, text := range append([]string{path[4]}, values[:fields-1]...) {
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return part{}, false
		}
		numbers[i] = number
	}
	return part{
		run:    runID{namespace: path[0], job: types.UID(path[1]), pod: path[2], podUID: types.UID(path[3]), restarts: int32(numbers[0])},
		number: int(numbers[1]), first: time.Unix(0, numbers[2]).UTC(), last: time.Unix(0, numbers[3]).UTC(), lines: int(numbers[4]), text: numbers[5],
		cut: values[fields-1] == cut,
	}, true
}

// jobOf returns the job that an object belongs to; false for objects that the operator has not written.
func jobOf(prefix, key string) (jobID, bool) {
	if p, is := parsePart(prefix, key); is {
		return p.run.jobID(), true
	}
	rest, isOurs := strings.CutPrefix(key, prefix)
	path := strings.Split(rest, "/")
	const folders = 3
	if !isOurs || len(path) != folders || path[0] == "" || path[1] == "" || path[2] != indexName {
		return jobID{}, false
	}
	return jobID{path[0], types.UID(path[1])}, true
}

// packed is an object that is ready to be written.
type packed struct {
	part       part
	data       []byte
	properties map[string]string
}

// builder gathers lines for the next part of a run.
type builder struct {
	text        []byte
	lines       int
	first, last time.Time
}

func (b *builder) add(line logs.PodLine) {
	if b.lines == 0 {
		b.first = line.Time
	}
	b.text = logs.AppendLine(b.text, line)
	b.lines++
	b.last = line.Time
}

// pack returns the object of the lines, and forgets them.
func (b *builder) pack(run runID, number int, isCut bool, read logstream.Resume) packed {
	p := packed{part: part{run: run, number: number, first: b.first, last: b.last, lines: b.lines, text: int64(len(b.text)), cut: isCut}}
	var data bytes.Buffer
	// Writing to memory does not fail, nor does encoding times and numbers.
	zip := gzip.NewWriter(&data)
	_, _ = zip.Write(b.text)
	_ = zip.Close()
	p.data = data.Bytes()
	state, _ := json.Marshal(read)
	p.properties = map[string]string{propertyResume: string(state)}
	*b = builder{}
	return p
}

// resumed returns how far a log was read, from the properties of its last part.
func resumed(properties map[string]string) (logstream.Resume, error) {
	var read logstream.Resume
	if err := json.Unmarshal([]byte(properties[propertyResume]), &read); err != nil {
		return read, fmt.Errorf("how far the log was read is unknown: %w", err)
	}
	return read, nil
}
