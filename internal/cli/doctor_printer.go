package cli

import (
	"fmt"
	"io"

	"opendatahub.io/mpijob/internal/doctor"
)

var verdictColours = map[doctor.Verdict]colour{doctor.OK: green, doctor.Warn: yellow, doctor.Fail: red, doctor.None: dim}

// printChecks prints a line for each check, and whether jobs can run.
func printChecks(to io.Writer, namespace string, results []doctor.Result) error {
	p := &linePrinter{to: to}
	counts := map[doctor.Verdict]int{}
	for _, r := range results {
		counts[r.Verdict]++
		p.check(r)
	}
	p.line("")
	switch {
	case counts[doctor.Fail] > 0:
		p.line("%s", paintOn(to, red, fmt.Sprintf("%d of %d checks failed: jobs do not run properly in namespace %s.", counts[doctor.Fail], len(results), namespace)))
	case counts[doctor.Warn] > 0:
		p.line("%s", paintOn(to, yellow, fmt.Sprintf("Jobs can run in namespace %s, with %d of %d checks giving warnings.", namespace, counts[doctor.Warn], len(results))))
	default:
		p.line("%s", paintOn(to, green, fmt.Sprintf("Ready: jobs can run in namespace %s.", namespace)))
	}
	return p.err
}

// check prints a line for a check, and one for what to do.
func (p *linePrinter) check(r doctor.Result) {
	p.wrapped(fmt.Sprintf("%s %-16s ", paintOn(p.to, verdictColours[r.Verdict], fmt.Sprintf("%-5s", r.Verdict)), r.Check), r.Found)
	if r.Remedy != "" {
		p.text(fmt.Sprintf("%23s> ", ""), r.Remedy)
	}
}
