package logs

import (
	"regexp"
	"strings"
)

// A line of source code, as Python's tracebacks and stacks of ranks show it, names values more often than it contains them:
//
//	token = comm.recv(source=0)
//
// In such a line alone, a call that a setting is set to is code and no secret; the literals in it are masked. All else is masked as in any
// line, such as a value without quotation marks. What is code follows from the lines around it and its own form.

// codeContext follows lines and finds those of source code.
type codeContext struct {
	// tag and indent are those of the line before, if that names a place in a file of Python.
	tag, indent string
	expected    bool
}

var (
	// pythonPlace is a line of a traceback before a line of source code (traceback.py of Python), with what MPI's launchers put before a
	// rank's lines or without.
	pythonPlace = regexp.MustCompile(`^((?:\[[^\]]*\](?:<\w+>)?:?)?)(\s+)File "[^"]+", line \d+, in \S+$`)
	// stackOfRanks begins a line of a launcher's agent with a line of source code at its end (agentapi.StackPrefix).
	stackOfRanks = regexp.MustCompile(`^mpi-agent: stack of ranks? [^|]* \| `)
	// codeCall is a setting that is set to a call.
	codeCall = regexp.MustCompile(`((?i:` + secretName + `))\s*(?::=|==?)\s*(?:await |yield )?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\w*\])*)\(`)
	// literal is a text in quotation marks, or one whose end was cut.
	literal = regexp.MustCompile(`"(?:[^"\\]|\\.)*(?:"|$)|'(?:[^'\\]|\\.)*(?:'|$)`)
	// longToken is what may be a key or a digest if it has a digit: hexadecimal, or base64.
	longToken = regexp.MustCompile(`[0-9a-fA-F]{16,}|[A-Za-z0-9+/_-]{24,}={0,2}`)
)

// next returns where the source code begins in the next line; -1 if it contains none.
func (c *codeContext) next(line string) int {
	if at := stackOfRanks.FindStringIndex(line); at != nil {
		c.expected = false
		return at[1]
	}
	begin := -1
	if rest, tagged := strings.CutPrefix(line, c.tag); c.expected && tagged && strings.HasPrefix(rest, c.indent+"  ") {
		begin = len(c.tag)
	}
	c.expected = false
	if place := pythonPlace.FindStringSubmatch(line); place != nil {
		c.tag, c.indent, c.expected = place[1], place[2], true
	}
	return begin
}

// maskAt is settings for a line whose source code begins at an index; -1 if it contains none.
func (m Masker) maskAt(line string, code int) string {
	if code < 0 || code > len(line) {
		return m.settings(line)
	}
	for _, r := range m.extra {
		hidden := r.hide(line)
		if hidden != line {
			// A pattern of the administrator may reach over the call.
			return m.settings(line)
		}
	}
	at := codeCall.FindStringSubmatchIndex(line[code:])
	if at == nil || !isCode(line[code+at[4]:code+at[5]], line[code+at[1]:]) {
		return m.settings(line)
	}
	name, call := code+at[3], code+at[4]
	return m.settings(line[:name]) + line[name:call] + maskLiterals(m.maskAt(line[call:], 0))
}

// isCode reports whether a name and what follows its bracket are a call: one that ends in the line, continues in the next one, or is cut.
func isCode(name, after string) bool {
	if maskTokens(name) != name {
		return false
	}
	after = strings.TrimSpace(after)
	return strings.ContainsAny(after, `)"'`) || after == "" || strings.HasSuffix(after, ",") || strings.HasSuffix(after, "…")
}

// maskLiterals hides the literals in code that may be secrets.
func maskLiterals(code string) string {
	code = literal.ReplaceAllStringFunc(code, func(text string) string {
		if len(strings.Trim(text, `"'`)) == 0 {
			return text
		}
		return text[:1] + Masked + text[:1]
	})
	return maskTokens(code)
}

// maskTokens hides what may be a key or a digest.
func maskTokens(code string) string {
	return longToken.ReplaceAllStringFunc(code, func(text string) string {
		if !strings.ContainsAny(text, "0123456789") {
			return text
		}
		return Masked
	})
}
