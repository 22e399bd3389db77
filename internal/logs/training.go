package logs

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
)

// The names that programs use for them.
var progressNames = map[string]func(*mpi.Training) *string{
	"epoch":       func(p *mpi.Training) *string { return &p.Epoch },
	"step":        func(p *mpi.Training) *string { return &p.Step },
	"global_step": func(p *mpi.Training) *string { return &p.Step },
	"iteration":   func(p *mpi.Training) *string { return &p.Step },
	"loss":        func(p *mpi.Training) *string { return &p.Loss },
	"train_loss":  func(p *mpi.Training) *string { return &p.Loss },
	"accuracy":    func(p *mpi.Training) *string { return &p.Accuracy },
	"acc":         func(p *mpi.Training) *string { return &p.Accuracy },
	"progress":    func(p *mpi.Training) *string { return &p.Progress },
}

var (
	// What mpirun puts before a line that it tags: [1,0]<stdout>: or [0] or [job,0]<stdout>.
	rankTag = regexp.MustCompile(`^\[(?:[^\],]*,)?(?:MPI_COMM_WORLD,)?(\d+)\](?:<\w+>)?:? ?`)
	// A quote before and after the name is Python's way to print a dictionary, as Hugging Face's trainer does.
	pair = regexp.MustCompile(`(?:^|[\s,;|(\[{])'?([A-Za-z_]+)'?\s?[=:]\s?([-+]?(?:\d[\d,._]*(?:[eE][-+]?\d+)?(?:/\d+)?%?|nan|NaN|inf|Infinity))(?:$|[\s,;|)\]}])`)
	// In words, as Keras and PyTorch's examples have it: Epoch 3/10, Epoch: [3][10/500], Loss 0.25 (0.31).
	inWords = regexp.MustCompile(`(?:^|[\s,;|(\[{])(?:([Ee]poch):?\s+\[?(\d+(?:/\d+)?)|([Ll]oss|[Aa]ccuracy|[Aa]cc)\s+(\d+\.\d+(?:[eE][-+]?\d+)?))(?:$|[\s,;|:)\]}])`)
)

// Training reads the progress that a line tells of, if it tells of any: a JSON object, key=value pairs, or the words
// of common libraries, with epoch, step, loss, accuracy or progress. Of lines that mpirun has tagged with a rank only those of rank 0 count.
func Training(line string) (mpi.Training, bool) {
	line = strings.TrimSpace(line)
	if tag := rankTag.FindStringSubmatch(line); tag != nil {
		if tag[1] != "0" {
			return mpi.Training{}, false
		}
		line = line[len(tag[0]):]
	}
	var p mpi.Training
	if at := strings.IndexByte(line, '{'); at >= 0 && strings.HasSuffix(line, "}") && readJSON(&p, line[at:]) {
		return p, says(p)
	}
	readPairs(&p, line)
	readWords(&p, line)
	return p, says(p)
}

// LastTraining is the progress that lines tell of, each value the last one said, and whether any does. When that was
// the lines do not tell.
func LastTraining(lines []string) (mpi.Training, bool) {
	var last mpi.Training
	for _, line := range lines {
		if p, found := Training(line); found {
			add(&last, p)
		}
	}
	return last, last != mpi.Training{}
}

// says tells whether there is more than a number that could be about anything: a lone step or epoch is enough only
// beside one of the others, or by its name epoch.
func says(p mpi.Training) bool {
	return p.Epoch != "" || p.Loss != "" || p.Accuracy != "" || p.Progress != ""
}

func add(p *mpi.Training, other mpi.Training) {
	for _, values := range [][2]*string{
		{&p.Epoch, &other.Epoch}, {&p.Step, &other.Step}, {&p.Loss, &other.Loss}, {&p.Accuracy, &other.Accuracy}, {&p.Progress, &other.Progress},
	} {
		if *values[1] != "" {
			*values[0] = *values[1]
		}
	}
}

func set(p *mpi.Training, name, value string) {
	const most = 32
	field := progressNames[strings.ToLower(name)]
	if field == nil || value == "" || len(value) > most {
		return
	}
	if into := field(p); *into == "" {
		*into = value
	}
}

func readJSON(p *mpi.Training, text string) bool {
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil {
		return false
	}
	// In the order of the names, so that of two names for one thing the same counts each time.
	for _, name := range jsonNames {
		switch value := object[name].(type) {
		case json.Number:
			set(p, name, value.String())
		case string:
			set(p, name, strings.TrimSpace(Clean(value)))
		}
	}
	return true
}

var jsonNames = []string{"epoch", "step", "global_step", "iteration", "loss", "train_loss", "accuracy", "acc", "progress"}

func readWords(p *mpi.Training, line string) {
	for _, found := range inWords.FindAllStringSubmatch(line[:min(len(line), enough)], -1) {
		set(p, found[1]+found[3], found[2]+found[4])
	}
}

// enough is how much of a line is looked at.
const enough = 4 * MaxLine

func readPairs(p *mpi.Training, line string) {
	if len(line) > enough {
		line = line[:enough]
	}
	for len(line) > 0 {
		at := pair.FindStringSubmatchIndex(line)
		if at == nil {
			return
		}
		set(p, line[at[2]:at[3]], strings.TrimRight(line[at[4]:at[5]], ",._"))
		// What ends one pair may begin the next one.
		line = line[at[5]:]
	}
}
