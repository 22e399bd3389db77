package logs

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// The names that programs use for them.
var progressNames = map[string]func(*v1alpha1.Training) *string{
	"epoch":       func(p *v1alpha1.Training) *string { return &p.Epoch },
	"step":        func(p *v1alpha1.Training) *string { return &p.Step },
	"global_step": func(p *v1alpha1.Training) *string { return &p.Step },
	"iteration":   func(p *v1alpha1.Training) *string { return &p.Step },
	"loss":        func(p *v1alpha1.Training) *string { return &p.Loss },
	"train_loss":  func(p *v1alpha1.Training) *string { return &p.Loss },
	"accuracy":    func(p *v1alpha1.Training) *string { return &p.Accuracy },
	"acc":         func(p *v1alpha1.Training) *string { return &p.Accuracy },
	"progress":    func(p *v1alpha1.Training) *string { return &p.Progress },
}

var (
	// What mpirun puts before a line that it tags: [1,0]<stdout>: or [0] or [job,0]<stdout>.
	rankTag = regexp.MustCompile(`^\[(?:[^\],]*,)?(?:MPI_COMM_WORLD,)?(\d+)\](?:<\w+>)?:? ?`)
	// A quote before and after the name is Python's way to print a dictionary, as Hugging Face's trainer does.
	pair = regexp.MustCompile(`(?:^|[\s,;|(\[{])'?([A-Za-z_]+)'?\s?[=:]\s?([-+]?(?:\d[\d,._]*(?:[eE][-+]?\d+)?(?:/\d+)?%?|nan|NaN|inf|Infinity))(?:$|[\s,;|)\]}])`)
	// As text, as in the examples of Keras and PyTorch: Epoch 3/10, Epoch: [3][10/500], Loss 0.25 (0.31).
	inWords = regexp.MustCompile(`(?:^|[\s,;|(\[{])(?:([Ee]poch):?\s+\[?(\d+(?:/\d+)?)|([Ll]oss|[Aa]ccuracy|[Aa]cc)\s+(\d+\.\d+(?:[eE][-+]?\d+)?))(?:$|[\s,;|:)\]}])`)
)

// ParseTraining reads the progress in a line, if there is any: a JSON object, key=value pairs, or the words of common
// libraries, with epoch, step, loss, accuracy or progress. Lines that mpirun tagged with a rank count only for rank 0.
func ParseTraining(line string) (v1alpha1.Training, bool) {
	line, counts := untag(line)
	if !counts {
		return v1alpha1.Training{}, false
	}
	var p v1alpha1.Training
	if at := strings.IndexByte(line, '{'); at >= 0 && strings.HasSuffix(line, "}") && readJSON(&p, line[at:]) {
		return p, says(p)
	}
	eachPair(line, func(name, value string) { set(&p, name, strings.TrimRight(value, ",._")) })
	readWords(&p, line)
	return p, says(p)
}

// untag returns a line without the tag of mpirun, and whether its figures count: those of other ranks than 0 do not, and neither do those
// in the agent's own lines, such as "no progress: 1 of 2 ranks wait".
func untag(line string) (text string, counts bool) {
	const agent = "mpi-agent: "
	line = strings.TrimSpace(line)
	tag := rankTag.FindStringSubmatch(line)
	if tag == nil {
		return line, !strings.HasPrefix(line, agent)
	}
	return line[len(tag[0]):], tag[1] == "0"
}

// LastTraining returns the last value of each figure in the lines, and whether there is any. Its time is not set.
func LastTraining(lines []string) (v1alpha1.Training, bool) {
	var last v1alpha1.Training
	for _, line := range lines {
		if p, found := ParseTraining(line); found {
			add(&last, p)
		}
	}
	return last, last != v1alpha1.Training{}
}

// ProgressAt returns when the last line with progress was written of the last lines of a log, each of which has the time that the kubelet puts
// before it. It returns zero if none has progress, or its time is unknown.
func ProgressAt(log string, most int) time.Time {
	for log = strings.TrimRight(log, "\r\n"); log != "" && most > 0; most-- {
		start := strings.LastIndexByte(log, '\n') + 1
		stamp, text, _ := strings.Cut(log[start:], " ")
		if _, found := ParseTraining(Clean(text)); found {
			at, _ := time.Parse(time.RFC3339Nano, stamp)
			return at
		}
		log = log[:max(start-1, 0)]
	}
	return time.Time{}
}

// says reports whether there is more than an ambiguous number: a step counts only together with another figure, an epoch
// also by its name.
func says(p v1alpha1.Training) bool {
	return p.Epoch != "" || p.Loss != "" || p.Accuracy != "" || p.Progress != ""
}

func add(p *v1alpha1.Training, other v1alpha1.Training) {
	for _, values := range [][2]*string{
		{&p.Epoch, &other.Epoch}, {&p.Step, &other.Step}, {&p.Loss, &other.Loss}, {&p.Accuracy, &other.Accuracy}, {&p.Progress, &other.Progress},
	} {
		if *values[1] != "" {
			*values[0] = *values[1]
		}
	}
}

func set(p *v1alpha1.Training, name, value string) {
	const most = 32
	field := progressNames[strings.ToLower(name)]
	if field == nil || value == "" || len(value) > most {
		return
	}
	if into := field(p); *into == "" {
		*into = value
	}
}

func readJSON(p *v1alpha1.Training, text string) bool {
	object, is := parseObject(text)
	if !is {
		return false
	}
	if reported, is := object["training"].(map[string]any); is {
		object = reported
	}
	// In the order of the names, so that of two names for one thing the same counts each time.
	for _, name := range jsonNames {
		if value, is := jsonText(object[name]); is {
			set(p, name, value)
		}
	}
	return true
}

// jsonText returns a number or a text of a JSON object as text.
func jsonText(value any) (string, bool) {
	switch value := value.(type) {
	case json.Number:
		return value.String(), true
	case string:
		return strings.TrimSpace(Clean(value)), true
	}
	return "", false
}

// reportedObject returns the object under "training" of a line that is a JSON object; false if it has none.
func reportedObject(line string) (map[string]any, bool) {
	if !strings.HasPrefix(line, "{") || !strings.Contains(line, `"training"`) {
		return nil, false
	}
	object, _ := parseObject(line)
	reported, is := object["training"].(map[string]any)
	return reported, is
}

// notFinite matches what Python writes into JSON for numbers that are none.
var notFinite = regexp.MustCompile(`([:,\[]\s*)(-?(?:NaN|Infinity))`)

// parseObject parses a JSON object. Numbers stay as they are written, and NaN is a text.
func parseObject(text string) (map[string]any, bool) {
	for _, text := range []string{text, notFinite.ReplaceAllString(text, `$1"$2"`)} {
		var object map[string]any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if decoder.Decode(&object) == nil {
			return object, true
		}
	}
	return nil, false
}

var jsonNames = []string{"epoch", "step", "global_step", "iteration", "loss", "train_loss", "accuracy", "acc", "progress"}

func readWords(p *v1alpha1.Training, line string) {
	line = line[:min(len(line), enough)]
	for {
		found := inWords.FindStringSubmatchIndex(line)
		if found == nil {
			return
		}
		// One of the two alternatives matches: an epoch, or a figure.
		name, value := found[2:4], found[4:6]
		if name[0] < 0 {
			name, value = found[6:8], found[8:10]
		}
		set(p, line[name[0]:name[1]], line[value[0]:value[1]])
		// What ends one figure may begin the next one.
		line = line[value[1]:]
	}
}

// enough is how much of a line is looked at.
const enough = 4 * MaxLine

// eachPair calls found with each key=value pair of a line.
func eachPair(line string, found func(name, value string)) {
	line = line[:min(len(line), enough)]
	for {
		at := pair.FindStringSubmatchIndex(line)
		if at == nil {
			return
		}
		found(line[at[2]:at[3]], line[at[4]:at[5]])
		// What ends one pair may begin the next one.
		line = line[at[5]:]
	}
}
