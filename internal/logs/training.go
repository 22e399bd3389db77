package logs

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// Progress is what a training program tells of itself in a line of its output. Values are as the program wrote them;
// empty: not said.
type Progress struct {
	Epoch, Step, Loss, Accuracy, Progress string
}

// The names that programs use for them.
var progressNames = map[string]func(*Progress) *string{
	"epoch":       func(p *Progress) *string { return &p.Epoch },
	"step":        func(p *Progress) *string { return &p.Step },
	"global_step": func(p *Progress) *string { return &p.Step },
	"iteration":   func(p *Progress) *string { return &p.Step },
	"loss":        func(p *Progress) *string { return &p.Loss },
	"train_loss":  func(p *Progress) *string { return &p.Loss },
	"accuracy":    func(p *Progress) *string { return &p.Accuracy },
	"acc":         func(p *Progress) *string { return &p.Accuracy },
	"progress":    func(p *Progress) *string { return &p.Progress },
}

var (
	// What mpirun puts before a line that it tags: [1,0]<stdout>: or [0] or [job,0]<stdout>.
	rankTag = regexp.MustCompile(`^\[(?:[^\],]*,)?(?:MPI_COMM_WORLD,)?(\d+)\](?:<\w+>)?:? ?`)
	pair    = regexp.MustCompile(`(?:^|[\s,;|(\[{])([A-Za-z_]+)\s?[=:]\s?([-+]?(?:\d[\d,._]*(?:[eE][-+]?\d+)?(?:/\d+)?%?|nan|NaN|inf|Infinity))(?:$|[\s,;|)\]}])`)
)

// Training reads the progress that a line tells of, if it tells of any: a JSON object, or key=value pairs, with epoch,
// step, loss, accuracy or progress. Of lines that mpirun has tagged with a rank only those of rank 0 count.
func Training(line string) (Progress, bool) {
	line = strings.TrimSpace(line)
	if tag := rankTag.FindStringSubmatch(line); tag != nil {
		if tag[1] != "0" {
			return Progress{}, false
		}
		line = line[len(tag[0]):]
	}
	var p Progress
	if at := strings.IndexByte(line, '{'); at >= 0 && strings.HasSuffix(line, "}") && p.readJSON(line[at:]) {
		return p, p.says()
	}
	p.readPairs(line)
	return p, p.says()
}

// LastTraining is the progress that lines tell of, each value the last one said, and whether any does.
func LastTraining(lines []string) (Progress, bool) {
	var last Progress
	for _, line := range lines {
		if p, found := Training(line); found {
			last.add(p)
		}
	}
	return last, last != Progress{}
}

// says tells whether there is more than a number that could be about anything: a lone step or epoch is enough only
// beside one of the others, or by its name epoch.
func (p Progress) says() bool {
	return p.Epoch != "" || p.Loss != "" || p.Accuracy != "" || p.Progress != ""
}

func (p *Progress) add(other Progress) {
	for _, values := range [][2]*string{
		{&p.Epoch, &other.Epoch}, {&p.Step, &other.Step}, {&p.Loss, &other.Loss}, {&p.Accuracy, &other.Accuracy}, {&p.Progress, &other.Progress},
	} {
		if *values[1] != "" {
			*values[0] = *values[1]
		}
	}
}

func (p *Progress) set(name, value string) {
	const most = 32
	field := progressNames[strings.ToLower(name)]
	if field == nil || value == "" || len(value) > most {
		return
	}
	if into := field(p); *into == "" {
		*into = value
	}
}

func (p *Progress) readJSON(text string) bool {
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
			p.set(name, value.String())
		case string:
			p.set(name, strings.TrimSpace(Clean(value)))
		}
	}
	return true
}

var jsonNames = []string{"epoch", "step", "global_step", "iteration", "loss", "train_loss", "accuracy", "acc", "progress"}

func (p *Progress) readPairs(line string) {
	const enough = 4 * MaxLine
	if len(line) > enough {
		line = line[:enough]
	}
	for len(line) > 0 {
		at := pair.FindStringSubmatchIndex(line)
		if at == nil {
			return
		}
		p.set(line[at[2]:at[3]], strings.TrimRight(line[at[4]:at[5]], ",._"))
		// What ends one pair may begin the next one.
		line = line[at[5]:]
	}
}
