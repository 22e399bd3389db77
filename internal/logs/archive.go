package logs

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// PodLine is a line of the log of a pod.
type PodLine struct {
	Pod  string
	Time time.Time
	Text string
}

// PodLog is the end of the log of a pod, in the order of time. The texts of its lines contain no line ends.
type PodLog struct {
	Lines []PodLine
	// Cut is set if there were earlier lines.
	Cut bool
}

// Packed is the compressed text of the logs of a job's pods.
type Packed struct {
	// Data is compressed with gzip. It has one line for each line of a log, in the order of time: the time, the name of the pod
	// in brackets, and the text.
	Data []byte
	// Lines is the number of lines, and Cut that of the logs with earlier lines, which are not contained.
	Lines, Cut int
}

// Limits of what Pack takes and Unpack returns, in bytes: the text of a job's logs, and that of one line.
const (
	MaxPackedText = 2 << 20
	MaxPackedLine = 4 << 10
)

// stampFormat is the form of times in packed logs. All have the same length, so that their texts are in the order of time.
const stampFormat = "2006-01-02T15:04:05.000000000Z"

// Pack compresses logs to at most so many bytes. If they are larger, it drops the first lines of the largest ones.
func Pack(of []PodLog, most int) Packed {
	text := MaxPackedText
	for {
		packed := packWithin(of, text)
		if len(packed.Data) <= most || packed.Lines == 0 {
			return packed
		}
		// Compression differs little between the parts of a log; a tenth less makes up for it.
		text = min(text, sizeOf(of)) * most / len(packed.Data) * 9 / 10
	}
}

func packWithin(of []PodLog, most int) Packed {
	var packed Packed
	var all []PodLine
	share := shareOf(of, most)
	for _, log := range of {
		kept := log.Last(share)
		if kept.Cut {
			packed.Cut++
		}
		all = append(all, kept.Lines...)
	}
	if len(all) == 0 {
		return packed
	}
	slices.SortStableFunc(all, func(a, b PodLine) int { return a.Time.Compare(b.Time) })
	var data bytes.Buffer
	// Writing to memory does not fail.
	zip := gzip.NewWriter(&data)
	var text []byte
	for _, line := range all {
		text = AppendLine(text[:0], line)
		_, _ = zip.Write(text)
	}
	_ = zip.Close()
	packed.Data, packed.Lines = data.Bytes(), len(all)
	return packed
}

// shareOf returns how many bytes each log may have so that all have at most so many: small ones leave room to the others.
func shareOf(of []PodLog, most int) int {
	sizes := make([]int, len(of))
	for i, log := range of {
		sizes[i] = sizeOf([]PodLog{log})
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		share := most / (len(sizes) - i)
		if size > share {
			return share
		}
		most -= size
	}
	return MaxPackedText
}

func sizeOf(of []PodLog) (bytes int) {
	for _, log := range of {
		for _, line := range log.Lines {
			bytes += packedSize(line)
		}
	}
	return bytes
}

func packedSize(line PodLine) int {
	return len(stampFormat) + len(line.Pod) + len(line.Text) + len(" [] \n")
}

// Last returns the last lines of a log, which take so many bytes.
func (l PodLog) Last(most int) PodLog {
	for i, line := range slices.Backward(l.Lines) {
		if most -= packedSize(line); most < 0 {
			return PodLog{Lines: slices.Clone(l.Lines[i+1:]), Cut: true}
		}
	}
	return l
}

// errPacked is returned by Unpack for data that is not from Pack.
var errPacked = errors.New("the logs in the report are damaged")

// Unpack returns the lines in the data of Packed, each cut to MaxPackedLine. It fails if they are damaged, or larger than what Pack takes.
func Unpack(data []byte) ([]PodLine, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, errors.Join(errPacked, err)
	}
	// What is longer was not written by Pack.
	text, err := io.ReadAll(io.LimitReader(zip, MaxPackedText+1))
	if err != nil {
		return nil, errors.Join(errPacked, err)
	}
	if len(text) > MaxPackedText {
		return nil, fmt.Errorf("%w: they have more than %d bytes", errPacked, MaxPackedText)
	}
	var lines []PodLine
	for text := range strings.Lines(string(text)) {
		line, is := unpackLine(text, MaxPackedLine)
		if !is {
			return nil, errPacked
		}
		lines = append(lines, line)
	}
	return lines, nil
}

func unpackLine(text string, most int) (PodLine, bool) {
	stamp, rest, _ := strings.Cut(text, " [")
	pod, line, found := strings.Cut(rest, "] ")
	at, err := time.Parse(stampFormat, stamp)
	return PodLine{Pod: pod, Time: at, Text: CleanWithin(line, most)}, err == nil && found
}
