package logs

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Index lists the objects with the complete logs of a job's pods.
type Index struct {
	Pods []IndexedPod `json:"pods"`
}

// IndexedPod is a pod in an Index. A pod that was replaced by one of the same name has an entry of its own.
type IndexedPod struct {
	Name string `json:"name"`
	// Parts are in the order of their lines.
	Parts []IndexedPart `json:"parts"`
}

// IndexedPart is an object with lines of a pod's log.
type IndexedPart struct {
	// URL is the signed address of the object: lines in the form of Packed, compressed with gzip.
	URL string `json:"url"`
	// First and Last are the times of the first and the last line.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Lines int       `json:"lines"`
}

// Limits of complete logs, in bytes: a line, the compressed data of a part, and an index.
const (
	MaxStoredLine = 256 << 10
	MaxPartData   = 1 << 20
	MaxIndex      = 16 << 20
)

// ParseIndex reads an index in JSON.
func ParseIndex(data []byte) (Index, error) {
	var index Index
	if err := json.Unmarshal(data, &index); err != nil {
		return Index{}, fmt.Errorf("the index of the complete logs is damaged: %w", err)
	}
	return index, nil
}

// AppendLine appends a line in the form of packed logs to a text.
func AppendLine(to []byte, line PodLine) []byte {
	to = line.Time.UTC().AppendFormat(to, stampFormat)
	to = append(append(to, " ["...), line.Pod...)
	return append(append(append(to, "] "...), line.Text...), '\n')
}

// errStored is returned by ParseLine for text that is not from AppendLine.
var errStored = errors.New("the complete logs are damaged")

// ParseLine reads a line of AppendLine without its end.
func ParseLine(text string) (PodLine, error) {
	line, is := unpackLine(text, MaxStoredLine)
	if !is {
		return PodLine{}, errStored
	}
	return line, nil
}
