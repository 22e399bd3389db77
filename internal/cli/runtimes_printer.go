package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/podspec"
)

// printRuntimes prints runtimes as a table; if wide, with slots, launcher and errors, and whether their MPI is the default.
func printRuntimes(to io.Writer, runtimes []jobs.Runtime, wide bool) error {
	t := table{header: []string{"NAME", "SCOPE", "MPI", "MAX-WORKERS", "MAX-GPUS", "NODES", "IMAGE"}}
	if wide {
		t.header = append(t.header, "SLOTS", "LAUNCHER", "ERROR")
	}
	for _, one := range runtimes {
		implementation := cmp.Or(one.Implementation, "-")
		if wide {
			implementation = implementationText(one)
		}
		row := plain(one.Name, scopeText(one), implementation, cmp.Or(one.MaxWorkers, "-"), cmp.Or(one.MaxGPUs, "-"), cmp.Or(one.NodeLabels, "-"), cmp.Or(one.Image, "-"))
		wrong := cell{text: "-"}
		if len(one.Errors) > 0 {
			wrong = cell{text: shortened(one.Errors[0], 80), colour: red}
		}
		switch {
		case wide:
			row = append(append(row, plain(slotsText(one), launcherText(one))...), wrong)
		case len(one.Errors) > 0:
			row[0].colour = red
		}
		t.rows = append(t.rows, row)
	}
	return t.write(to, "", true)
}

// printRuntime prints what a runtime offers and requires. Program is how users call the command line.
func printRuntime(to io.Writer, one jobs.Runtime, program string) error {
	p := &linePrinter{to: to}
	named := func(name, value string) {
		if value != "" {
			p.line("  %-14s %s", name, oneLine(value))
		}
	}
	p.line("%s, a %s (scope: %s)", paintOn(to, bold, one.Name), one.Kind, scopeText(one))
	named("MPI", implementationText(one))
	switch {
	case one.Unreadable:
	case !one.MPI:
		p.line("It is not an MPI runtime: it has no spec.mlPolicy.mpi.")
		return p.err
	default:
		named("ranks", slotsText(one)+" per node unless the job sets it; with 1, one per GPU")
		named("launcher", launcherText(one)+map[bool]string{true: "; it is the first of the job's nodes", false: "; it is added to the job's nodes"}[one.LauncherRunsRanks])
		named("keys", one.KeyPath)
		p.heading("Limits")
		named("nodes", cmp.Or(one.WorkersText(), "any number"))
		named("GPUs", cmp.Or(one.MaxGPUs, "any number")+" per node")
		named("nodes have", cmp.Or(one.NodeLabels, "any labels"))
		named("connects to", cmp.Or(one.AllowEgress, "its own job, DNS and HTTPS"))
		if seconds := one.Settings().GangTimeoutSeconds; seconds != nil {
			named("gang timeout", (time.Duration(*seconds) * time.Second).String())
		}
		named("priority class", one.PriorityClass)
		p.heading("Pods")
		for _, container := range one.Containers {
			named(container.Job, fmt.Sprintf("%s (%s)", container.Image, podspec.Text(container.Requests)))
		}
	}
	if len(one.Errors) > 0 {
		p.heading("Errors")
		for _, text := range one.Errors {
			p.text("  ", text)
		}
	}
	p.line("")
	if one.Shipped {
		p.line("To create a runtime from it, run %s runtimes create NAME --from %s%s", program, jobs.ShippedPrefix, one.Name)
		return p.err
	}
	p.line("To test it, run %s runtimes test %s", program, one.Name)
	return p.err
}

// scopeText returns where jobs can use a runtime.
func scopeText(one jobs.Runtime) string {
	if one.Shipped {
		return "none; it is shipped with this program"
	}
	if one.Namespace != "" {
		return "namespace"
	}
	return "cluster"
}

func implementationText(one jobs.Runtime) string {
	if one.DefaultImplementation {
		return one.Implementation + " (default)"
	}
	return cmp.Or(one.Implementation, "-")
}

func slotsText(one jobs.Runtime) string {
	if !one.MPI {
		return "-"
	}
	return strconv.Itoa(int(one.Slots))
}

func launcherText(one jobs.Runtime) string {
	switch {
	case !one.MPI:
		return "-"
	case one.LauncherRunsRanks:
		return "runs ranks"
	}
	return "no ranks"
}

// testPrinter prints the progress of a test of a runtime: each check once, when its result is decided.
type testPrinter struct {
	out, errOut io.Writer
	printed     map[v1alpha1.CheckName]bool
	// message is the last one that was printed.
	message string
}

func (p *testPrinter) print(test v1alpha1.RuntimeTest) {
	for _, check := range jobs.DecidedChecks(test) {
		if !p.printed[check.Name] {
			p.printed[check.Name] = true
			printCheck(p.out, check)
		}
	}
	if text := test.Status.Message; test.Status.CompletionTime == nil && text != p.message && text != "" {
		p.message = text
		say(p.errOut, "%s", paintOn(p.errOut, dim, oneLine(text)))
	}
}

var checkColours = map[v1alpha1.CheckResult]colour{v1alpha1.CheckPass: green, v1alpha1.CheckFail: red, v1alpha1.CheckSkipped: yellow, v1alpha1.CheckUnknown: yellow}

// printCheck prints the result of a check with its remedies.
func printCheck(to io.Writer, check v1alpha1.RuntimeCheck) {
	took := ""
	if check.Milliseconds > 0 {
		took = " (" + jobs.MillisecondsText(check.Milliseconds) + ")"
	}
	p := &linePrinter{to: to}
	p.wrapped(fmt.Sprintf("%s  %-13s  ", paintOn(to, checkColours[check.Result], fmt.Sprintf("%-7s", check.Result)), check.Name), oneLine(check.Message)+took)
	for _, remedy := range check.Remedies {
		p.text(fmt.Sprintf("%-24s- ", ""), remedy.Text)
		if remedy.Action != "" {
			p.line("%-26s%s", "", oneLine(remedy.Action))
		}
	}
}

// printTestResult prints how a test ended.
func printTestResult(to io.Writer, test v1alpha1.RuntimeTest) {
	colour := red
	if test.Status.Phase == v1alpha1.TestPassed {
		colour = green
	}
	p := &linePrinter{to: to}
	p.cells("", cell{string(test.Status.Phase), colour}, cell{text: ": " + test.Status.Message})
}
