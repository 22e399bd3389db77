package logs

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var packedAt = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// podLog returns a log with a number of lines of a length, one per second.
func podLog(pod string, lines, length int) PodLog {
	var log PodLog
	for i := range lines {
		text := fmt.Sprintf("%s line %d ", pod, i)
		log.Lines = append(log.Lines, PodLine{Pod: pod, Time: packedAt.Add(time.Duration(i) * time.Second), Text: text + strings.Repeat("x", max(length-len(text), 0))})
	}
	return log
}

func TestPackKeepsLogsInTheOrderOfTime(t *testing.T) {
	launcher, worker := podLog("pi-launcher-0", 3, 0), podLog("pi-worker-0", 2, 0)
	worker.Cut = true
	packed := Pack([]PodLog{launcher, worker, {}}, 1<<20)
	if packed.Lines != 5 || packed.Cut != 1 {
		t.Errorf("%d lines are packed, and %d logs are cut, want 5 and 1", packed.Lines, packed.Cut)
	}
	lines, err := Unpack(packed.Data)
	if err != nil {
		t.Fatal(err)
	}
	want := []PodLine{launcher.Lines[0], worker.Lines[0], launcher.Lines[1], worker.Lines[1], launcher.Lines[2]}
	for i := range want {
		want[i].Text = strings.TrimRight(want[i].Text, " ")
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the lines are %v, want %v", lines, want)
	}
	// It can be read without this program.
	text, err := gzip.NewReader(bytes.NewReader(packed.Data))
	if err != nil {
		t.Fatal(err)
	}
	if all, _ := io.ReadAll(text); !strings.HasPrefix(string(all), "2026-11-21T10:00:00.000000000Z [pi-launcher-0] pi-launcher-0 line 0") {
		t.Errorf("the text is %q", all)
	}
	if none := Pack([]PodLog{{}}, 1<<20); none.Data != nil || none.Lines != 0 {
		t.Errorf("empty logs are packed as %v", none)
	}
}

// TestPackIsBounded: a log that is large takes nothing from the others, whatever it contains.
func TestPackIsBounded(t *testing.T) {
	random := podLog("pi-worker-0", 400, 0)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range random.Lines {
		text := make([]byte, 1000)
		for j := range text {
			text[j] = byte(' ' + 1 + source.IntN(94))
		}
		random.Lines[i].Text = string(text)
	}
	for name, large := range map[string]PodLog{
		"text that cannot be compressed": random,
		"text that can":                  podLog("pi-worker-0", 4000, 1000),
		"long lines":                     podLog("pi-worker-0", 700, MaxPackedLine),
	} {
		const most = 64 << 10
		small := podLog("pi-launcher-0", 20, 100)
		packed := Pack([]PodLog{large, small}, most)
		if len(packed.Data) > most || packed.Cut != 1 {
			t.Errorf("%s: %d bytes, and %d logs are cut", name, len(packed.Data), packed.Cut)
		}
		lines, err := Unpack(packed.Data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		count := map[string]int{}
		for _, line := range lines {
			count[line.Pod]++
		}
		if count["pi-launcher-0"] != 20 || count["pi-worker-0"] == 0 {
			t.Errorf("%s: lines of %v are kept", name, count)
		}
		if last := slices.IndexFunc(lines, func(line PodLine) bool { return line == large.Lines[len(large.Lines)-1] }); last < 0 {
			t.Errorf("%s: the last line is missing", name)
		}
		t.Logf("%s: %d lines in %d bytes", name, packed.Lines, len(packed.Data))
	}
	if packed := Pack([]PodLog{random}, 0); packed.Lines != 0 {
		t.Errorf("%d lines are packed into nothing", packed.Lines)
	}
}

func TestUnpackRefusesWhatPackDidNotWrite(t *testing.T) {
	zipped := func(text string) []byte {
		var data bytes.Buffer
		zip := gzip.NewWriter(&data)
		_, _ = zip.Write([]byte(text))
		_ = zip.Close()
		return data.Bytes()
	}
	const line = "2026-11-21T10:00:00.000000000Z [pod] text\n"
	good := zipped(line)
	for name, data := range map[string][]byte{
		"no gzip":             []byte("text"),
		"cut":                 good[:len(good)-9],
		"no time":             zipped("[pod] text\n"),
		"no pod":              zipped("2026-11-21T10:00:00.000000000Z text\n"),
		"a line that is long": zipped(line + strings.Repeat("x", 1<<20)),
		"a bomb":              zipped(strings.Repeat(line, MaxPackedText/len(line)+100)),
	} {
		if lines, err := Unpack(data); err == nil {
			t.Errorf("%s: %d lines, want an error", name, len(lines))
		}
	}
	lines, err := Unpack(zipped("2026-11-21T10:00:00.000000000Z [pod] a\x1b[31mb\x00c\u202e\n"))
	if err != nil || len(lines) != 1 || lines[0].Text != "abc" {
		t.Errorf("a line with control characters is %v, %v, want abc", lines, err)
	}
	if lines, err = Unpack(zipped(strings.TrimSpace(line) + strings.Repeat("x", 3*MaxPackedLine) + "\n" + line)); err != nil || len(lines) != 2 || len(lines[0].Text) != MaxPackedLine || lines[1].Text != "text" {
		t.Errorf("after a line that is too long there are %d lines: %v", len(lines), err)
	}
}
