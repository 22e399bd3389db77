package logs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Masked stands where a secret stood.
const Masked = "****"

// Masker hides secrets in lines of logs. Its zero value knows the usual ones: private keys, bearer tokens and JWTs,
// passwords given as key=value, in JSON or as flags, credentials in URLs, and the keys of clouds and services by their
// form. It is made to hide rather too much than too little of what looks like a secret, and leaves all else as it is.
// A Masker may be used by several goroutines.
type Masker struct{ extra []*regexp.Regexp }

// NewMasker returns a Masker that hides more patterns too (RE2): of a pattern with a group, what the first group
// matches; otherwise what the pattern matches.
func NewMasker(patterns []string) (Masker, error) {
	var m Masker
	for _, pattern := range patterns {
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			return Masker{}, fmt.Errorf("pattern of secrets %q: %w", pattern, err)
		}
		m.extra = append(m.extra, compiled)
	}
	return m, nil
}

// Lines masks lines that follow each other: a private key reaches over several. The lines given are not changed. A
// tail may begin within a key, whose end alone gives it away.
func (m Masker) Lines(lines []string) []string {
	masked := make([]string, len(lines))
	inside := endsKey(lines)
	for i, line := range lines {
		begins, ends := keyBegin.MatchString(line), keyEnd.MatchString(line)
		switch {
		case begins && ends, begins, inside && ends:
			masked[i] = Masked
		case inside && keyBody.MatchString(line):
			masked[i] = Masked
		default:
			// What does not look like a key's inside ends it: a key whose end is missing hides nothing else.
			inside = false
			masked[i] = m.Line(line)
		}
		switch {
		case ends:
			inside = false
		case begins:
			inside = true
		}
	}
	return masked
}

var (
	keyBegin = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	keyEnd   = regexp.MustCompile(`-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	// Base 64, with headers as in old PEM files, and whatever a logger puts before the line.
	keyBody = regexp.MustCompile(`(?:^|[\s\]>:|"'])[A-Za-z0-9+/=]{16,}["',\\n\s]*$|^[A-Za-z0-9+/=]{1,76}$|^(?:Proc-Type|DEK-Info|Version|Comment): |^\s*$`)
)

// endsKey tells whether lines begin within a private key.
func endsKey(lines []string) bool {
	for _, line := range lines {
		switch {
		case keyEnd.MatchString(line) && !keyBegin.MatchString(line):
			return true
		case !keyBody.MatchString(line):
			return false
		}
	}
	return false
}

// Line masks one line by itself.
func (m Masker) Line(line string) string {
	lowered := strings.ToLower(line)
	for _, rule := range rules {
		if slices.ContainsFunc(rule.words, func(word string) bool { return strings.Contains(lowered, word) }) {
			line = rule.pattern.ReplaceAllString(line, rule.with)
		}
	}
	for _, pattern := range m.extra {
		line = maskGroup(line, pattern)
	}
	return line
}

// rule replaces what a pattern matches.
type rule struct {
	// words: one of them is in the line, in lower case. Looking for them is quicker than the pattern.
	words   []string
	pattern *regexp.Regexp
	with    string
}

// secretName are names of settings that hold secrets. Words that only contain one, such as tokenizer or max_tokens,
// are not among them.
const secretName = `(?:[\w.-]*[_.-])?(?:password|passwd|passphrase|secret|secret[_-]?(?:access[_-]?)?key|secret[_-]?id|client[_-]?secret|api[_-]?key|apikey|access[_-]?key|access[_-]?token|auth[_-]?token|refresh[_-]?token|id[_-]?token|private[_-]?key|encryption[_-]?key|account[_-]?key|token|credentials?)`

var rules = []rule{
	// A key that is written on one line, with its line ends as \n.
	{[]string{"private key"}, regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)`), Masked},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?`), Masked},
	{[]string{"bearer", "basic", "authorization"}, regexp.MustCompile(`(?i)\b((?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|digest|token|negotiate|aws4-hmac-sha256)\s+)?)[^\s"',]+[^"'\n]*`), "${1}" + Masked},
	{[]string{"bearer"}, regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}`), "${1}" + Masked},
	{[]string{"://"}, regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'@]*:[^/\s"']*@`), "${1}" + Masked + "@"},
	{[]string{"://"}, regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[A-Za-z0-9_-]{20,}@`), "${1}" + Masked + "@"},
	// What a service's URL is signed with.
	{[]string{"sig=", "signature=", "credential=", "security-token="}, regexp.MustCompile(`(?i)([?&](?:sig|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature|signature)=)[^&\s"']+`), "${1}" + Masked},
	// Keys that their form gives away: AWS, GitHub, GitLab, Hugging Face, OpenAI and its like, Google, Slack, npm, PyPI,
	// Weights & Biases as wandb login prints it, OpenShift.
	{[]string{"akia", "asia"}, regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), Masked},
	{[]string{"gh", "github_pat_"}, regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})`), Masked},
	{[]string{"glpat-"}, regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{16,}`), Masked},
	{[]string{"hf_", "api_org_"}, regexp.MustCompile(`\b(?:hf_|api_org_)[A-Za-z0-9]{20,}`), Masked},
	{[]string{"sk-"}, regexp.MustCompile(`\bsk-(?:[a-z]+-)*[A-Za-z0-9_-]{20,}`), Masked},
	{[]string{"aiza", "ya29."}, regexp.MustCompile(`\b(?:AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,})`), Masked},
	{[]string{"xox"}, regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}`), Masked},
	{[]string{"npm_", "pypi-"}, regexp.MustCompile(`\b(?:npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,})`), Masked},
	{[]string{"sha256~"}, regexp.MustCompile(`\bsha256~[A-Za-z0-9_-]{20,}`), Masked},
	{[]string{"wandb"}, regexp.MustCompile(`(?i)(wandb[\w .:=/-]{0,40}?)\b[0-9a-f]{40}\b`), "${1}" + Masked},
	// Settings: name: "value", name='value', name=value, --name value. A value in quotes may hold blanks, one without
	// ends at a blank. A number alone is a count and no secret, unless the name is a password's; <pad> and [PAD] are a
	// language model's.
	{secretWords, regexp.MustCompile(`(?i)(["']?\b` + secretName + `["']?\s*(?:=>|[:=])\s*)"(?:[^"\\<\[]|\\.)(?:[^"\\]|\\.)*"`), `${1}"` + Masked + `"`},
	{secretWords, regexp.MustCompile(`(?i)(["']?\b` + secretName + `["']?\s*(?:=>|[:=])\s*)'(?:[^'\\<\[]|\\.)(?:[^'\\]|\\.)*'`), "${1}'" + Masked + "'"},
	{secretWords, regexp.MustCompile(`(?i)(\\"` + secretName + `\\"\s*:\s*\\")[^"\\]*(\\")`), "${1}" + Masked + "${2}"},
	{secretWords, regexp.MustCompile(`(?i)(\b(?:[\w.-]*[_.-])?(?:password|passwd|passphrase)\s*(?:=>|=|: )\s*)[^\s"',;&}\])]+`), "${1}" + Masked},
	// PWD=/folder is where a shell is.
	{[]string{"pwd"}, regexp.MustCompile(`(?i)(\b(?:[\w.-]*[_.-])?pwd\s*(?:=>|=|: )\s*)[^\s"',;&}\])/][^\s"',;&}\])]*`), "${1}" + Masked},
	{secretWords, regexp.MustCompile(`(?i)(\b` + secretName + `\s*(?:=>|=|: )\s*)[^\s"',;&}\])\[(<{]*[^\s"',;&}\])\[(<{0-9.][^\s"',;&}\])]*`), "${1}" + Masked},
	{secretWords, regexp.MustCompile(`(?i)(^|\s)(--?` + secretName + `\s+)([^\s"'-][^\s"']*|"[^"]*"|'[^']*')`), "${1}${2}" + Masked},
	// mysql -psecret, curl -u user:secret.
	{[]string{"-u ", "--user "}, regexp.MustCompile(`(\s(?:-u|--user)\s+["']?[^\s:"']+:)[^\s"']+`), "${1}" + Masked},
}

var secretWords = []string{"passw", "passphrase", "secret", "key", "token", "credential"}

// maskGroup hides the first group of a pattern, or all of it.
func maskGroup(line string, pattern *regexp.Regexp) string {
	var masked strings.Builder
	last := 0
	for _, at := range pattern.FindAllStringSubmatchIndex(line, -1) {
		from, to := at[0], at[1]
		if len(at) > 3 && at[2] >= 0 {
			from, to = at[2], at[3]
		}
		if from == to {
			continue
		}
		masked.WriteString(line[last:from] + Masked)
		last = to
	}
	return masked.String() + line[last:]
}
