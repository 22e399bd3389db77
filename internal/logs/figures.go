package logs

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// figureName matches the names of figures about a program's speed and its communication, with a unit at the end if it has one:
// throughput, bandwidth_gbps, latency_us, message_rate, samples_per_second.
var figureName = regexp.MustCompile(`^(throughput|bandwidth|latency|(message|msg)_rate|(samples|images|tokens|steps|iterations|it)_per_s(ec|econd)?|[gt]flops|learning_rate|lr)(_[a-z]{1,12})?$`)

// maxFigures is the maximum number of figures in a line.
const maxFigures = 8

// ParseFigures returns the figures about speed and communication in a line: key=value pairs, or a JSON object with these names. It
// returns nil if there are none. Lines that mpirun tagged with a rank count only for rank 0.
func ParseFigures(line string) map[string]float64 {
	if !strings.ContainsAny(line, "=:") {
		return nil
	}
	line, counts := untag(line)
	if !counts {
		return nil
	}
	found := figures{}
	if at := strings.IndexByte(line, '{'); at >= 0 && strings.HasSuffix(line, "}") && found.addObject(line[at:]) {
		return found.orNil()
	}
	eachPair(line, found.add)
	return found.orNil()
}

type figures map[string]float64

// add adds a figure, unless it is known, is none, or there are many.
func (f figures) add(name, text string) {
	name = strings.ToLower(name)
	value, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	isNumber := err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
	if _, known := f[name]; isNumber && !known && len(f) < maxFigures && figureName.MatchString(name) {
		f[name] = value
	}
}

// addObject adds the figures of a JSON object. It returns false if the text is none.
func (f figures) addObject(text string) bool {
	object, is := parseObject(text)
	if reported, has := object["training"].(map[string]any); has {
		object = reported
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if text, is := jsonText(object[name]); is {
			f.add(name, text)
		}
	}
	return is
}

func (f figures) orNil() map[string]float64 {
	if len(f) == 0 {
		return nil
	}
	return f
}
