package diagnose

import (
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
)

// setsLimit is a limit that a shell script sets for what follows, such as "ulimit -n 64" or "ulimit -Sv $KB".
var setsLimit = regexp.MustCompile(`\bulimit((?:\s+-[A-Za-z]+)*)\s+(\d+|\$\{?\w+\}?)`)

// reachedLimits are what programs report when they reach a limit, by the option of ulimit that sets it (setrlimit(2)). The words are
// those of the C library, of shells and of Python.
var reachedLimits = map[byte]*regexp.Regexp{
	'n': regexp.MustCompile(`(?i)too many open files|errno 24`),
	'v': regexp.MustCompile(`(?i)cannot allocate memory|MemoryError|bad_alloc|unable to allocate|failed to map segment|cannot map|out of memory|mmap\b.*fail|errno 12\b`),
	'u': regexp.MustCompile(`(?i)resource temporarily unavailable|can't start new thread|pthread_create|thread creation failed|cannot fork|errno 11\b`),
	'f': regexp.MustCompile(`(?i)SIGXFSZ|file size limit exceeded|file too large|errno 27`),
	't': regexp.MustCompile(`(?i)SIGXCPU|cpu time limit exceeded`),
	'l': regexp.MustCompile(`(?i)locked memory|memlock`),
	's': regexp.MustCompile(codes.SegmentationFault),
}

// addLimit adds to a finding the limit that the job's own command sets and the finding is about, and puts its remedy first.
func (p *input) addLimit(f Finding) Finding {
	shown := strings.Join(append([]string{f.Code, f.Summary}, f.Evidence...), "\n")
	for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
		for _, found := range setsLimit.FindAllStringSubmatch(facts.CommandOf(p.Template(role)), -1) {
			if reached := reachedLimits[limitOption(found[1])]; reached == nil || !reached.MatchString(shown) {
				continue
			}
			figures := map[string]string{"role": string(role), "limitSet": strings.Join(strings.Fields(found[0]), " "), "field": p.field(role)}
			f.Evidence = append(slices.Clone(f.Evidence), codes.Fill("The command of the {role}: {limitSet}", figures))
			f.Remedies = slices.Insert(slices.Clone(f.Remedies), 0, codes.FillRemedy(codes.OwnLimit, figures))
			return f
		}
	}
	return f
}

// limitOption returns the option of ulimit that names the resource; without one, it is the size of files.
func limitOption(options string) byte {
	for _, letter := range []byte(options) {
		switch letter {
		case ' ', '\t', '\n', '-', 'S', 'H':
		case 'd', 'm':
			return 'v'
		default:
			return letter
		}
	}
	return 'f'
}
