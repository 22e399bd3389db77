// Package masking hides secrets in the fields of jobs.
package masking

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maskedValue stands where a secret stood, as in package logs.
const maskedValue = "****"

// Fields masks the secrets in the metadata and the specification of a job, which is changed, and returns the number of masked
// values. A setting with the name of a secret is masked as a whole; otherwise, mask hides what looks like a secret in a text.
func Fields(job map[string]any, mask func(string) string) int32 {
	m := masking{mask: mask}
	for _, part := range []string{"metadata", "spec"} {
		if value, found := job[part]; found {
			job[part] = m.value(part, value)
		}
	}
	return m.count
}

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
