package dashboard

import (
	"regexp"
	"strconv"

	"opendatahub.io/mpijob/internal/jobs"
)

var (
	// reasonField splits a reason of the API server or a check into the path of a field and the rest.
	reasonField = regexp.MustCompile(`^([a-z]\w*(?:\.[^\s:.\[]+|\[[^\]]*\])*): ([\s\S]*)$`)
	// unknownField is an error of the strict decoder of the API server.
	unknownField = regexp.MustCompile(`(unknown|duplicate) field "([^"]+)"`)
	// syntaxLine is the line in an error of the YAML decoder.
	syntaxLine = regexp.MustCompile(`\byaml: (?:unmarshal errors:\s+)?line (\d+): `)
)

// locate adds the fields that the reasons of a problem name, and the lines of fields in the YAML of the request; it does nothing
// without YAML.
func (p *Problem) locate(text string) {
	if text == "" {
		return
	}
	if p.Code == "Exists" {
		p.Fields = append(p.Fields, FieldProblem{Field: "metadata.name", Reason: "is the name of another job; use another name"})
	}
	for _, reason := range p.Reasons {
		unknown := unknownField.FindAllStringSubmatch(reason, -1)
		for _, field := range unknown {
			p.Fields = append(p.Fields, FieldProblem{Field: field[2], Reason: map[string]string{"unknown": "is not a field of this kind", "duplicate": "is set twice"}[field[1]]})
		}
		if parts := reasonField.FindStringSubmatch(reason); parts != nil && unknown == nil {
			p.Fields = append(p.Fields, FieldProblem{Field: parts[1], Reason: parts[2]})
		} else if unknown == nil {
			p.Fields = append(p.Fields, FieldProblem{Reason: reason})
		}
	}
	lineOf := jobs.Lines(text)
	for i := range p.Fields {
		field := &p.Fields[i]
		if parts := syntaxLine.FindStringSubmatch(field.Reason); field.Field == "yaml" && parts != nil {
			field.Line, _ = strconv.Atoi(parts[1])
			continue
		}
		field.Line = lineOf(field.Field)
	}
}
