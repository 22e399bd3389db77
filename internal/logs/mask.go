package logs

import (
	"errors"
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
type Masker struct{ extra []rule }

// NewMasker returns a Masker that hides more patterns too (RE2): of a pattern with a group, what the first group
// matches; otherwise what the pattern matches. The error names every pattern that is none.
func NewMasker(patterns []string) (Masker, error) {
	var m Masker
	var wrong []error
	for _, pattern := range patterns {
		compiled, err := regexp.Compile(pattern)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("%q is not a regular expression that Go knows (RE2): %w", pattern, err))
		case compiled.MatchString(""):
			// It hides less than it seems to: what it finds first may be the nothing before a secret.
			wrong = append(wrong, fmt.Errorf("%q matches an empty text: write + instead of * and leave out ? where nothing else must be there", pattern))
		default:
			m.extra = append(m.extra, rule{pattern: compiled, hidden: []int{min(1, compiled.NumSubexp())}})
		}
	}
	return m, errors.Join(wrong...)
}

// Lines masks lines that follow each other: a private key reaches over several. The lines given are not changed. A
// tail may begin within a key, whose end alone gives it away.
func (m Masker) Lines(lines []string) []string {
	masked := make([]string, 0, len(lines))
	var key keyBlock
	var code codeContext
	for _, line := range lines {
		line = joinParts(line)
		masked = key.add(masked, line, m.inContext(&code, line))
	}
	return masked
}

// Text masks a text that may have several lines.
func (m Masker) Text(text string) string {
	if text == "" {
		return ""
	}
	return strings.Join(m.Lines(strings.Split(text, "\n")), "\n")
}

// Line masks one line by itself.
func (m Masker) Line(line string) string {
	var key keyBlock
	var code codeContext
	line = joinParts(line)
	return key.add(nil, line, m.inContext(&code, line))[0]
}

// inContext returns what masks the next line of a context, whose parts are joined, or a part of it.
func (m Masker) inContext(context *codeContext, line string) func(string) string {
	begin := context.next(line)
	if begin < 0 {
		return m.settings
	}
	return func(text string) string {
		if text != line {
			return m.settings(text)
		}
		return m.maskAt(text, begin)
	}
}

// settings masks all but private keys.
func (m Masker) settings(line string) string {
	var lowered lowered
	lowered.set(line)
	for i := range rules {
		if r := &rules[i]; r.hint.matches(&lowered) {
			line = r.hide(line)
		}
	}
	for _, r := range m.extra {
		line = r.hide(line)
	}
	return line
}

// rule hides some groups of what a pattern matches.
type rule struct {
	hint    hint
	pattern *regexp.Regexp
	hidden  []int
	// spares reports whether a match, its groups by number, is not a secret; nil if all matches are. A group "name" at the
	// beginning also contains the text before it in the same word: patterns that begin with any word are slow.
	spares func(found []string) bool
}

// secretOf makes a rule that hides a pattern's groups whose names begin with "secret", or all that it matches where
// there are none.
func secretOf(hint hint, pattern string, spares func(found []string) bool) rule {
	r := rule{hint: hint, pattern: regexp.MustCompile(pattern), spares: spares}
	for i, name := range r.pattern.SubexpNames() {
		if strings.HasPrefix(name, "secret") {
			r.hidden = append(r.hidden, i)
		}
	}
	if r.hidden == nil {
		r.hidden = []int{0}
	}
	return r
}

func (r rule) hide(line string) string {
	var masked strings.Builder
	last := 0
	for _, at := range r.pattern.FindAllStringSubmatchIndex(line, -1) {
		if r.spares != nil && r.spares(r.groups(line, at)) {
			continue
		}
		for _, i := range r.hidden {
			if from, to := at[2*i], at[2*i+1]; from >= 0 && from < to {
				masked.WriteString(line[last:from] + Masked)
				last = to
			}
		}
	}
	return masked.String() + line[last:]
}

func (r rule) groups(line string, at []int) []string {
	found := make([]string, len(at)/2)
	for i := range found {
		if at[2*i] >= 0 {
			found[i] = line[at[2*i]:at[2*i+1]]
		}
	}
	if r.pattern.SubexpIndex("name") == 1 {
		const most = 64
		from := at[2]
		for from > max(0, at[2]-most) && isNameByte(line[from-1]) {
			from--
		}
		found[1] = line[from:at[3]]
	}
	return found
}

func isNameByte(c byte) bool {
	return c == '_' || c == '.' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

const (
	// secretName matches the end of the names of settings that contain secrets. Words that continue after it, such as
	// tokenizer, max_tokens or password_file, do not match.
	secretName = `(?:pass(?:word|wd|phrase|code)|pwd|(?:ssh|db|[_-])pass|secret|token|credentials?|creds|(?:\b|[_-])cred|auth(?:orization)?|sas|connection[_-]?string|` +
		`(?:api|access|secret|private|account|storage|shared|encryption|signing|master|license|ssh|subscription|service|session|hmac|client|webhook|deploy|signature)[_.-]?(?:access[_.-]?)?key(?:[_.-]?id)?|secret[_-]?id)`
	// secretValue is what is set: in quotes that belong to a text in quotes, in quotes, or up to a blank. What would
	// end it elsewhere, such as a comma, may be part of a password. A quote that is not closed was cut.
	secretValue = `(?:\\["'](?P<secret1>[^"'\\]*)|[bfru]?"(?P<secret2>(?:[^"\\]|\\.)*)|[bfru]?'(?P<secret3>(?:[^'\\]|\\.)*)|(?P<secret4>[^\s"'\\]\S*))`
)

var rules = []rule{
	secretOf(has("eyj"), `\beyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)*`, nil),
	secretOf(has("authorization"), `(?i)\bauthorization\\?["']?\s*[:=]\s*\\?["']?(?:bearer|basic|token|negotiate|apikey)\s+(?P<secret>[^\s"'\\]+[^"'\\]*)`, nil),
	// These name their parts, in quotes of their own.
	secretOf(has("authorization"), `(?i)\bauthorization\\?["']?\s*[:=]\s*\\?["']?(?:digest|oauth|hawk|aws4-hmac-sha256)\s+(?P<secret>.+)`, nil),
	secretOf(has("bearer"), `(?i)\bbearer\s+(?P<secret>[\w.~+/=-]{8,})`, func(found []string) bool { return isProse(found[1]) }),
	secretOf(has("cookie"), `(?i)\bcookie2?\\?["']?:\s*(?P<secret>.+)`, nil),
	// Credentials in URLs. A password with an unescaped slash is understood by databases' clients alone. What was cut
	// may have lost its @.
	secretOf(has("://"), `(?i)\b(?:postgres\w*|mysql|mariadb|mongodb|redis|rediss|amqps?)(?:\+\w+)?://(?P<secret>[^\s"'<>]+)@`, nil),
	secretOf(has("://"), `(?i)\b[a-z][a-z0-9+.-]*://(?P<secret>[^/\s"'<>@]*:[^/\s"'<>]*)(?:@|…$)`, nil),
	secretOf(has("://"), `(?i)\b(?:https?|git)://(?P<secret>[\w.~-]{20,})@`, nil),
	// What the URL of a service is signed with.
	secretOf(has("sig=", "signature=", "sas=", "credential=", "security-token="), `(?i)[?&;](?:sig|signature|sas|x-(?:amz|goog)-(?:signature|credential|security-token))=(?P<secret>[^&\s"'#]+)`, nil),
	secretOf(has("?key=", "&key=", "?code=", "&code="), `(?i)[?&](?:key|code)=(?P<secret>[^&\s"'#]{16,})`, nil),
	secretOf(has("hooks."), `(?i)\bhooks\.[\w.-]+/(?:services|workflows|triggers)/(?P<secret>[^\s"']+)`, nil),
	// Keys that their form gives away: of clouds, code hosts, model hubs and services. What was cut is shorter.
	secretOf(has("akia", "asia"), `\b(?:AKIA|ASIA)[A-Z0-9]{8,}`, nil),
	secretOf(has("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "hf_", "sk_", "rk_", "npm_", "pypi-", "nvapi-", "dckr_", "dop_v1_", "r8_", "api_org_"), `\b(?:gh[pousr]_|github_pat_|glpat-|hf_|api_org_|npm_|pypi-|nvapi-|dckr_[a-z]+_|dop_v1_|r8_|[sr]k_(?:live|test)_)(?:[\w-]{16,}|[\w-]*…$)`, nil),
	secretOf(has("sk-"), `\bsk-[\w-]{20,}`, nil),
	secretOf(has("aiza", "ya29.", "gocspx", "hvs.", "sg."), `\b(?:AIza[\w-]{20,}|ya29\.[\w.-]{20,}|GOCSPX-[\w-]{16,}|hv[sb]\.[\w-]{16,}|SG\.[\w-]{16,}\.[\w-]{16,})`, nil),
	secretOf(has("xox", "xapp"), `\b(?:xox[abeoprs]|xapp)-[\w-]{10,}`, nil),
	secretOf(has("dapi"), `\bdapi[0-9a-f]{32}`, nil),
	secretOf(has("q~"), `[\w~.-]{3}\dQ~[\w~.-]{30,}`, nil),
	secretOf(has("sha256~"), `\bsha256~[\w-]{20,}`, nil),
	secretOf(has("wandb"), `(?i)\bwandb[\w .:=/-]{0,40}?\b(?P<secret>[0-9a-f]{40})\b`, nil),
	// Settings: name=value, name: value, "name": "value"; --name value, "--name", "value"; ENV NAME value; name is value.
	secretOf(hasSetting(), `(?i)(?P<name>`+secretName+`)(?P<set>\\?["']?\s*(?:=>|:=|==?|:)\s*)`+secretValue, isNoSecret),
	secretOf(hasFlag(), `(?i)(?:^|[\s"'\[,])--?[\w.-]*?(?P<name>`+secretName+`)(?P<set>\\?["']?(?:\s*,\s*|\s+))`+secretValue, isNoArgument),
	// KAGGLE_KEY=value: many names end so, most of which hold no secret, so that the value decides.
	secretOf(has("_key", "-key"), `(?i)(?P<name>[_-]key)(?P<set>\\?["']?\s*(?:=>|:=|==?|:)\s*)`+secretValue, isNoKey),
	secretOf(has("_key", "-key"), `(?i)(?:^|[\s"'\[,])--?[\w.-]*?(?P<name>[_-]key)(?P<set>\\?["']?(?:\s*,\s*|\s+))`+secretValue, isNoKey),
	secretOf(has("env "), `(?i)(?:^|\s)ENV\s+[\w.-]*?(?P<name>`+secretName+`)(?P<set>\s+)`+secretValue, isNoSecret),
	secretOf(has("d is", "d was", "phrase is", "phrase was", "secret is", "secret was", "token is", "token was", "key is", "key was"), `(?i)(?:password|passphrase|secret|token|key) (?:is|was):? ["'`+"`"+`]?(?P<secret>[^\s"'`+"`"+`]{4,})`, func(found []string) bool { return isProse(found[1]) || isNumber.MatchString(found[1]) }),
	secretOf(has("passw"), `(?i)(?:^|\s)passw(?:ord|d)\s+(?P<secret>\S*\d\S*)`, nil),
	// Programs with flags of their own.
	secretOf(has("login"), `(?i)\blogin\s+\S+\s+password\s+(?P<secret>\S+)`, nil),
	secretOf(has("login"), `\blogin\b.*?\s-p[\s=]*(?P<secret>\S+)`, nil),
	secretOf(has("configure"), `\baws\b.*?\bconfigure\s+set\s+\S*(?:secret|token|key|password)\S*\s+["']?(?P<secret>[^\s"']+)`, nil),
	secretOf(has("</"), `(?i)<(?:[\w.-]+:)?[\w.-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)[\w.-]*(?:\s[^<>]*)?>(?P<secret>[^<>]+)</`, nil),
	secretOf(has("sshpass"), `\bsshpass\s+-p\s*(?P<secret>\S+)`, nil),
	secretOf(has("mysql", "mariadb"), `\b(?:mysql|mariadb)\w*\s.*?-p(?P<secret>[^\s-]\S*)`, nil),
	secretOf(has("-u", "--user"), `(?:^|\s)(?:-u|--user)(?:\s+|=)["']?[^:\s"']+:(?P<secret>[^\s"']+)`, func(found []string) bool { return isNumber.MatchString(found[1]) }),
}

var (
	// Names of a language model's tokens, whose values are no secrets; and names of what is one only if it is long.
	modelToken = regexp.MustCompile(`(?i)(?:^|[_.-])(?:bos|eos|pad|unk|mask|cls|sep|image|start|stop|end|special|next|first|last|prev|new|per)[_-]?token$`)
	weakName   = regexp.MustCompile(`(?i)(?:auth|authorization|sas|cred(?:ential)?s?|_pass|-pass)$`)
	// Names of settings that hold the path of a file, or a number, just as well.
	pathName   = regexp.MustCompile(`(?i)(?:token|cred(?:ential)?s?|auth|(?:private|ssh|client|signing|api|license)[_.-]?key)$`)
	numberName = regexp.MustCompile(`(?i)(?:token|cred(?:ential)?s?|auth|sas|pass)$`)
	isNumber   = regexp.MustCompile(`^[-+]?\d[\d.,_:]*(?:[eE][-+]?\d+)?[a-z%]{0,3}[,;)\]}]*$`)
	isPath     = regexp.MustCompile(`^(?:~|\.{1,2})?(?:/[\w.-]+)+/?$`)
	// isVariable is the name of where a value comes from.
	isVariable = regexp.MustCompile(`^\$(?:\{[^}]*\}|\([\w.]+\)|[A-Z_][A-Z0-9_]*)$`)
	// isMark is a language model's token, such as <pad>, </s>, [MASK] or <|endoftext|>.
	isMark    = regexp.MustCompile(`^(?:<\|?/?[A-Za-z_]{0,16}\|?>|\[[A-Z_]{1,16}\])[,;)\]}]*$`)
	wordsOnly = regexp.MustCompile(`^[A-Za-z]?[a-z-]*[.,;:!?)]*$`)
	// plainKey is the name of a key that is no secret: of data, of metadata, or a public one.
	plainKey = regexp.MustCompile(`(?i)(?:^|[_.-])(?:public|pub|sort|order|primary|foreign|partition|cache|group|hash|range|row|column|col|index|idx|object|label|taint|node|topology|metric|join|lookup|unique|config|dict|map|image|text|input|output|prompt|feature|target|dataset|rng|prng|random|state|event|dedup|idempotency|routing|shard|tag|field|json|hot|job|run|task|step|worker|pod|trace|span|batch|s3|file|path)[_-]key$`)
	// isKey is a text that may be a key, with letters and digits. Paths and code are none.
	isKey      = regexp.MustCompile(`^[^\s.()\[\]{}:,<>$]{8,}$`)
	hasLetter  = regexp.MustCompile(`[A-Za-z]`)
	hasDigit   = regexp.MustCompile(`[0-9]`)
	beginsPath = regexp.MustCompile(`^(?:[a-z_-]*|~)/`)
)

// nothing are values that say that there is none, or what is wrong with it.
var nothing = []string{
	"", "none", "null", "nil", "<nil>", "undefined", "unset", "empty", "true", "false", "yes", "no", "required", "missing", "invalid", "expired", "incorrect", "ok",
	"redacted", "[redacted]", "<redacted>", "hidden",
}

// ofVolume is what the kubelet writes between the name of a volume, such as "hf-token", and why it cannot be mounted. In JSON, a value in
// quotes follows it.
const ofVolume = `" : `

var slashesAndDots = strings.NewReplacer("/", "", ".", "")

// isNoSecret reports whether a setting contains no secret. It is found as its name, the text between, and the value in one
// of the groups after it.
func isNoSecret(found []string) bool {
	unquoted := found[len(found)-1]
	if found[2] == ofVolume && unquoted != "" && wordsOnly.MatchString(slashesAndDots.Replace(unquoted)) {
		return true
	}
	return spared(found[1], found[2], strings.Join(found[3:], ""))
}

// isNoArgument tells the same of a flag and the argument after it, which may be the next flag.
func isNoArgument(found []string) bool {
	value := strings.Join(found[3:], "")
	return strings.HasPrefix(value, "--") || spared(found[1], "=", value)
}

// isNoKey reports whether a setting whose name ends with "key", such as KAGGLE_KEY, contains no secret.
func isNoKey(found []string) bool {
	value := strings.Join(found[3:], "")
	bare := strings.TrimRight(value, `,;)}]"'`)
	isRandom := isKey.MatchString(bare) && hasLetter.MatchString(bare) && hasDigit.MatchString(bare)
	return !isRandom || strings.HasPrefix(value, "--") || plainKey.MatchString(found[1]) || beginsPath.MatchString(bare) || isNumber.MatchString(value)
}

func spared(name, set, value string) bool {
	bare := strings.TrimRight(value, `,;)}]"'`)
	if strings.HasPrefix(value, Masked) || slices.Contains(nothing, strings.ToLower(bare)) || isVariable.MatchString(strings.TrimRight(value, ",;")) || isMark.MatchString(value) {
		return true
	}
	const short = 16
	spoken := strings.Contains(set, ":") && strings.HasSuffix(set, " ") && !strings.ContainsAny(set, `"'`)
	lowered := strings.ToLower(name)
	switch {
	case modelToken.MatchString(name):
		return len(bare) <= short
	case numberName.MatchString(name) && isNumber.MatchString(value):
		return true
	case strings.HasSuffix(lowered, "pwd"):
		// PWD is the folder that a shell is in.
		return strings.HasPrefix(value, "/")
	case pathName.MatchString(name) && isPath.MatchString(bare):
		return true
	case weakName.MatchString(name) && len(bare) < short && wordsOnly.MatchString(bare):
		return true
	case strings.HasSuffix(lowered, "auth"), strings.HasSuffix(lowered, "sas"):
		return len(bare) < short
	}
	// "unexpected token: identifier" is a sentence; so is "Secret: pi-ssh".
	return spoken && !strings.Contains(lowered, "pass") && len(bare) < short && wordsOnly.MatchString(bare)
}

// isProse reports whether something is made of words, as people write them.
func isProse(text string) bool { return len(text) < 40 && wordsOnly.MatchString(text) }
