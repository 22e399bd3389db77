package ranks

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// argument is a variable that is one of a call, if a comma or parenthesis follows, and ofPath one whose method looks for a file.
	argument = regexp.MustCompile(`[(,]\s*([A-Za-z_]\w*)\s*`)
	ofPath   = regexp.MustCompile(`\b([A-Za-z_]\w*)\.(?:exists|is_file|is_dir|stat)\(`)
	// assigned is a line that gives a variable a value, and bound one that does so in another way.
	assigned = regexp.MustCompile(`^\s*([A-Za-z_]\w*)\s*(?::[^=]*)?=\s*([^=].*)$`)
	bound    = regexp.MustCompile(`^\s*(?:(?:async )?def\b|import\b|from\b|global\b|nonlocal\b)|:=|[-+*/|&%^@]=|^\s*\(?[\w\s,]+\)?\s*=[^=]`)
	// inFor is what a for line binds, and inWith what a with line does.
	inFor  = regexp.MustCompile(`^\s*(?:async )?for\b(.*?)\bin\b`)
	inWith = regexp.MustCompile(`\bas\s+\(?[\w\s,]+`)
	// literal is a text of Python without escape sequences, also one that contains variables, and joined a call that joins texts to a path.
	literal = regexp.MustCompile(`^[rRfF]?(?:"([^"\\]*)"|'([^'\\]*)')$`)
	joined  = regexp.MustCompile(`^(?:(?:os\.path|path|posixpath)\.join|(?:pathlib\.)?Path)\(([^()]*)\)$`)
	comment = regexp.MustCompile(`\s+#[^"']*$`)
	// toldPath and toldAddress match the only values that are shown: others may be secrets.
	secretName  = regexp.MustCompile(`(?i)pass|secret|token|key|cred|auth`)
	toldPath    = regexp.MustCompile(`^(?:~|\.{0,2})/[\w./{}*@+,=:-]+$`)
	toldAddress = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*:\d{1,5}$`)
)

// valuesIn returns the values of the variables in a line of code that are paths or addresses, as a comment such as "  # ready = "/scratch/ready"", by the lines
// before it; "" if there are none.
func valuesIn(before []string, line string) string {
	const most = 2
	var told []string
	names := namesIn(line)
	for i, name := range names {
		if slices.Contains(names[:i], name) || secretName.MatchString(name) || len(told) == most {
			continue
		}
		if value := valueOf(before, name, 2); (toldPath.MatchString(value) || toldAddress.MatchString(value)) && len(value) <= mostLine {
			told = append(told, name+` = "`+value+`"`)
		}
	}
	if len(told) == 0 {
		return ""
	}
	return "  # " + strings.Join(told, ", ")
}

// namesIn returns the variables of a line that can be what its call waits for, the first ones.
func namesIn(line string) (names []string) {
	const most = 8
	for _, at := range argument.FindAllStringSubmatchIndex(line, most) {
		if end := at[1]; end < len(line) && (line[end] == ',' || line[end] == ')') {
			names = append(names, line[at[2]:at[3]])
		}
	}
	for _, found := range ofPath.FindAllStringSubmatch(line, most) {
		names = append(names, found[1])
	}
	return names
}

// valueOf returns the text that was last assigned to a variable; "" if it is none that the line shows. Those of which it consists are looked up
// themselves, so many levels deep.
func valueOf(before []string, name string, depth int) string {
	isName := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`)
	for i, line := range slices.Backward(before) {
		set := assigned.FindStringSubmatch(line)
		switch {
		case set != nil && set[1] == name:
			return textOf(before[:i], strings.TrimSpace(comment.ReplaceAllString(set[2], "")), depth)
		case set == nil && isName.MatchString(line) && isName.MatchString(boundIn(line)):
			return ""
		}
	}
	return ""
}

// boundIn returns the part of a line that may give variables other values; "" if it does not.
func boundIn(line string) string {
	if found := inFor.FindStringSubmatch(line); found != nil {
		return found[1]
	}
	if trimmed := strings.TrimPrefix(strings.TrimSpace(line), "async "); strings.HasPrefix(trimmed, "with ") {
		return strings.Join(inWith.FindAllString(trimmed, -1), " ")
	}
	if bound.MatchString(line) {
		return line
	}
	return ""
}

// textOf returns the text that an expression of Python is, of literals and variables that are some; "" if it is another.
func textOf(before []string, expression string, depth int) string {
	if found := literal.FindStringSubmatch(expression); found != nil {
		return found[1] + found[2]
	}
	parts := joined.FindStringSubmatch(expression)
	if parts == nil || depth == 0 {
		return ""
	}
	var texts []string
	for part := range strings.SplitSeq(parts[1], ",") {
		part = strings.TrimSpace(part)
		text := textOf(before, part, 0)
		if text == "" {
			text = valueOf(before, part, depth-1)
		}
		if text == "" {
			return ""
		}
		texts = append(texts, text)
	}
	return path.Join(texts...)
}
