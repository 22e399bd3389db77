package proof

import (
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"

	"opendatahub.io/mpijob/hack/bench/report"
)

// A waterfall shows the parts of our median run of a case: when each began, and how long it took.
type waterfall struct{ suite, name, file, title string }

// waterfalls are in the order of the page.
var waterfalls = []waterfall{
	{"start", "first-line/1", "start-1.svg", "An MPIJob of 1 worker"},
	{"start", "first-line/4", "start-4.svg", "An MPIJob of 4 workers"},
	{"start", "first-line-cold/4", "start-cold-4.svg", "An MPIJob of 4 workers whose image no node has"},
	{"start", "first-line-trainjob/4", "start-trainjob-4.svg", "A TrainJob of 4 nodes"},
}

// caseOf returns the case that a waterfall shows, if our parts of it were recorded.
func (w waterfall) caseOf(r report.Report) (c report.Case, recorded bool) {
	at := slices.IndexFunc(r.Cases, func(c report.Case) bool { return c.Name == w.name && len(c.Steps[ours]) > 0 })
	if at < 0 {
		return c, false
	}
	return r.Cases[at], true
}

// end is when the last of some steps ended.
func end(steps []report.Step) (last float64) {
	for _, s := range steps {
		last = max(last, s.Start+s.Seconds)
	}
	return last
}

// heading is the title with the time of all.
func (w waterfall) heading(steps []report.Step) string {
	return fmt.Sprintf("%s: its first line after %s s", w.title, short(end(steps)))
}

// alt is the text for readers who do not see the picture.
func (w waterfall) alt(steps []report.Step) string {
	var parts []string
	for _, s := range steps {
		parts = append(parts, fmt.Sprintf("%s %s s, from %s to %s", s.Name, short(s.Seconds), short(s.Start), short(s.Start+s.Seconds)))
	}
	return w.heading(steps) + ". " + strings.Join(parts, "; ") + "."
}

// The rows of a waterfall, in pixels: the names of steps are left of the bars.
const (
	rowHeight, firstRow = 26, 44
	barLeft, barRight   = 300, 650
)

// svg draws a bar for each step.
func (w waterfall) svg(steps []report.Step) string {
	tall := firstRow + rowHeight*len(steps) + 30
	bottom := firstRow + rowHeight*len(steps)
	x := func(seconds float64) float64 { return barLeft + (barRight-barLeft)*seconds/end(steps) }

	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, tall, width, tall)
	fmt.Fprintf(&out, "<title>%s</title>\n", html.EscapeString(w.alt(steps)))
	out.WriteString(style)
	fmt.Fprintf(&out, `<rect class="back" width="%d" height="%d" rx="6"/>`+"\n", width, tall)
	fmt.Fprintf(&out, `<text class="title" x="20" y="26">%s</text>`+"\n", html.EscapeString(w.heading(steps)))
	for part := range 5 {
		seconds := end(steps) * float64(part) / 4
		fmt.Fprintf(&out, `<path class="grid" d="M%.1f %dV%d"/><text x="%.1f" y="%d" text-anchor="middle">%s s</text>`+"\n", x(seconds), firstRow, bottom, x(seconds), bottom+18, short(seconds))
	}
	for i, s := range steps {
		top := firstRow + rowHeight*i
		fmt.Fprintf(&out, `<text x="20" y="%d">%s</text>`, top+18, html.EscapeString(s.Name))
		fmt.Fprintf(&out, `<rect class="mark%d" x="%.1f" y="%d" width="%.1f" height="%d"/>`, i%colors, x(s.Start), top+5, max(1, x(s.Start+s.Seconds)-x(s.Start)), rowHeight-10)
		fmt.Fprintf(&out, `<text x="%.1f" y="%d">%s</text>`+"\n", x(s.Start+s.Seconds)+6, top+18, short(s.Seconds))
	}
	out.WriteString("</svg>\n")
	return out.String()
}

const waterfallText = `
### Where the time goes

The parts of the median run of each contestant, in seconds since the job was created: how long they took, and when they began. Parts overlap: a part of
pods lasts from the first pod that begins it until the last one that ends it. The times of objects, pods and containers are those at which
a watch returned them, because Kubernetes records whole seconds. The times from mpirun on are those of the JobReport
(` + "`status.startup`" + `), which ` + "`kubectl odh mpijob describe --all`" + ` draws for any job.
`

// writeWaterfalls writes the pictures and tables of a suite's waterfalls.
func writeWaterfalls(page *strings.Builder, suite string, r report.Report) {
	written := false
	for _, w := range waterfalls {
		c, recorded := w.caseOf(r)
		if w.suite != suite || !recorded {
			continue
		}
		if !written {
			page.WriteString(waterfallText)
			written = true
		}
		fmt.Fprintf(page, "\n![%s](proof/%s)\n\n", w.alt(c.Steps[ours]), w.file)
		writeSteps(page, c)
	}
}

// writeSteps writes the parts of a case as a table, with a column for each contestant, ours first.
func writeSteps(page *strings.Builder, c report.Case) {
	names := slices.Sorted(maps.Keys(c.Steps))
	names = slices.Insert(slices.DeleteFunc(names, func(name string) bool { return name == ours }), 0, ours)
	var parts []string
	for _, who := range names {
		for _, s := range c.Steps[who] {
			if !slices.Contains(parts, s.Name) {
				parts = append(parts, s.Name)
			}
		}
	}
	fmt.Fprintf(page, "| `%s` |", c.Name)
	for _, who := range names {
		page.WriteString(" " + who + " | from |")
	}
	page.WriteString("\n|---|" + strings.Repeat("---:|---:|", len(names)) + "\n")
	for _, part := range parts {
		page.WriteString("| " + part + " |")
		for _, who := range names {
			at := slices.IndexFunc(c.Steps[who], func(s report.Step) bool { return s.Name == part })
			if at < 0 {
				page.WriteString("  |  |")
				continue
			}
			s := c.Steps[who][at]
			page.WriteString(" " + short(s.Seconds) + " | " + short(s.Start) + " |")
		}
		page.WriteString("\n")
	}
	page.WriteString("| first line after |")
	for _, who := range names {
		page.WriteString(" " + short(end(c.Steps[who])) + " |  |")
	}
	page.WriteString("\n")
}
