package proof

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"

	"opendatahub.io/mpijob/hack/bench/report"
)

// A plot shows how a figure of a suite grows with the number of jobs. Both axes are logarithmic.
type plot struct {
	suite, file, title, unit string
	figure                   report.Figure
}

// plots are in the order of the page.
var plots = []plot{
	{"scale", "scale-created.svg", "Time until half of the jobs have all of their pods", "s", report.Figure{Name: "created/p50"}},
	{"scale", "scale-cpu.svg", "CPU time of the operator until all jobs run", "s", report.Figure{Name: "cpu"}},
	{"scale", "scale-memory.svg", "Largest memory of the operator", "MiB", report.Figure{Name: "memory"}},
	{"scale", "scale-requests.svg", "Requests of the operator until all jobs run", "", report.Figure{Name: "requests", Each: true}},
}

// Plots returns the pictures of the page for the reports, by the name of their file.
func Plots(reports map[string]report.Report) map[string]string {
	files := map[string]string{}
	for _, p := range plots {
		if lines := p.lines(reports[p.suite]); len(lines) > 0 {
			files[p.file] = p.svg(lines)
		}
	}
	for _, w := range waterfalls {
		if c, recorded := w.caseOf(reports[w.suite]); recorded {
			files[w.file] = w.svg(c.Steps[ours])
		}
	}
	return files
}

// line is what one contestant took. It has at least two points, by size.
type line struct {
	name   string
	points []report.Point
}

// lines returns those of all contestants that were measured at two sizes or more, ours first.
func (p plot) lines(r report.Report) []line {
	var lines []line
	found := p.figure.Points(r.Cases)
	names := slices.Sorted(maps.Keys(found))
	if at := slices.Index(names, ours); at > 0 {
		names = slices.Insert(slices.Delete(names, at, at+1), 0, ours)
	}
	for _, name := range names {
		points := slices.DeleteFunc(found[name], func(at report.Point) bool { return at.X <= 0 || at.Y <= 0 })
		slices.SortFunc(points, func(a, b report.Point) int { return cmp.Compare(a.X, b.X) })
		if len(points) > 1 {
			lines = append(lines, line{name, points})
		}
	}
	return lines
}

// heading is the title with the unit.
func (p plot) heading() string {
	if p.unit == "" {
		return p.title
	}
	return p.title + " (" + p.unit + ")"
}

// alt is the text for readers who do not see the picture.
func (p plot) alt(lines []line) string {
	var parts []string
	for _, l := range lines {
		var values []string
		for _, at := range l.points {
			values = append(values, fmt.Sprintf("%s at %s", short(at.Y), short(at.X)))
		}
		parts = append(parts, l.name+" "+strings.Join(values, ", "))
	}
	return fmt.Sprintf("%s, by the number of jobs: %s.", p.heading(), strings.Join(parts, "; "))
}

// The picture, in pixels, and the part of it within the axes.
const (
	width, height            = 720, 400
	left, right, top, bottom = 70, 20, 70, 345
)

// style has the colors for light and dark pages. The picture brings its own background, so that it can be read wherever it is shown.
const style = `<style>
  .back { fill: #ffffff; } text { fill: #1f2328; font: 13px system-ui, sans-serif; } .title { font-weight: 600; font-size: 15px; }
  .grid { stroke: #d1d9e0; } .guide { stroke: #818b98; stroke-dasharray: 5 4; fill: none; }
  .line0 { stroke: #0550ae; fill: none; stroke-width: 2.5; } .mark0 { fill: #0550ae; }
  .line1 { stroke: #bc4c00; fill: none; stroke-width: 2.5; } .mark1 { fill: #bc4c00; }
  .line2 { stroke: #1a7f37; fill: none; stroke-width: 2.5; } .mark2 { fill: #1a7f37; }
  @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117; } text { fill: #e6edf3; } .grid { stroke: #30363d; } .guide { stroke: #8b949e; }
    .line0 { stroke: #79c0ff; } .mark0 { fill: #79c0ff; } .line1 { stroke: #ffa657; } .mark1 { fill: #ffa657; }
    .line2 { stroke: #7ee787; } .mark2 { fill: #7ee787; }
  }
</style>
`

// colors is how many contestants style distinguishes.
const colors = 3

// svg draws lines. Besides them, a dashed line shows what would be proportional to the number of jobs, from our first point on.
func (p plot) svg(lines []line) string {
	x, y := axis{from: left, to: width - right}, axis{from: bottom, to: top}
	for _, l := range lines {
		for _, at := range l.points {
			x.include(at.X)
			y.include(at.Y)
		}
	}
	y.low, y.high = y.low/1.15, y.high*1.15
	x.low, x.high = x.low/1.1, x.high*1.1

	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, "<title>%s</title>\n", html.EscapeString(p.alt(lines)))
	out.WriteString(style)
	fmt.Fprintf(&out, `<rect class="back" width="%d" height="%d" rx="6"/>`+"\n", width, height)
	fmt.Fprintf(&out, `<text class="title" x="%d" y="24">%s</text>`+"\n", left, html.EscapeString(p.heading()))

	for _, value := range y.ticks() {
		fmt.Fprintf(&out, `<path class="grid" d="M%d %.1fH%d"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, y.at(value), width-right, left-8, y.at(value)+4, short(value))
	}
	for _, at := range lines[0].points {
		fmt.Fprintf(&out, `<path class="grid" d="M%.1f %dV%d"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x.at(at.X), top, bottom, x.at(at.X), bottom+18, short(at.X))
	}
	fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="middle">jobs</text>`+"\n", (left+width-right)/2, height-14)

	first := lines[0].points[0]
	// The guide ends at the upper edge or at the right one.
	factor := min(x.high/first.X, y.high/first.Y)
	fmt.Fprintf(&out, `<path class="guide" d="M%.1f %.1fL%.1f %.1f"/>`+"\n", x.at(first.X), y.at(first.Y), x.at(first.X*factor), y.at(first.Y*factor))

	legend := left
	for i, l := range lines {
		var path []string
		var marks strings.Builder
		for _, at := range l.points {
			path = append(path, fmt.Sprintf("%.1f %.1f", x.at(at.X), y.at(at.Y)))
			marks.WriteString(mark(i, x.at(at.X), y.at(at.Y)))
		}
		fmt.Fprintf(&out, `<path class="line%d" d="M%s"/>%s`+"\n", i%colors, strings.Join(path, "L"), marks.String())
		text := l.name
		if exponent, fitted := report.ExponentOf(l.points); fitted {
			text += fmt.Sprintf(" (exponent %s)", short(exponent))
		}
		fmt.Fprintf(&out, `%s<text x="%d" y="50">%s</text>`+"\n", mark(i, float64(legend+5), 46), legend+16, html.EscapeString(text))
		legend += 40 + 7*len(text)
	}
	fmt.Fprintf(&out, `<path class="guide" d="M%d 46h24"/><text x="%d" y="50">proportional</text>`+"\n</svg>\n", legend, legend+30)
	return out.String()
}

// mark draws a point: contestants differ in shape, too.
func mark(i int, x, y float64) string {
	if i%2 == 1 {
		return fmt.Sprintf(`<rect class="mark%d" x="%.1f" y="%.1f" width="9" height="9"/>`, i%colors, x-4.5, y-4.5)
	}
	return fmt.Sprintf(`<circle class="mark%d" cx="%.1f" cy="%.1f" r="5"/>`, i%colors, x, y)
}

// axis is a logarithmic one, from the pixel from to the pixel to.
type axis struct{ from, to, low, high float64 }

func (a *axis) include(value float64) {
	if a.high == 0 {
		a.low = value
	}
	a.low, a.high = min(a.low, value), max(a.high, value)
}

// at returns the pixel of a value.
func (a *axis) at(value float64) float64 {
	return a.from + (a.to-a.from)*math.Log(value/a.low)/math.Log(a.high/a.low)
}

// ticks returns at least four round values, if there are as many.
func (a *axis) ticks() []float64 {
	var found []float64
	for _, steps := range [][]float64{{1}, {1, 3}, {1, 2, 5}, {1, 2, 3, 5, 7}, {1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}} {
		found = nil
		for power := math.Floor(math.Log10(a.low)); power <= math.Log10(a.high); power++ {
			for _, step := range steps {
				if value := step * math.Pow(10, power); value >= a.low && value <= a.high {
					found = append(found, value)
				}
			}
		}
		if len(found) >= 4 {
			break
		}
	}
	return found
}

// short returns a number with at most three digits that are not 0.
func short(value float64) string {
	if value >= 1000 {
		rounded := math.Pow(10, math.Floor(math.Log10(value))-2)
		text := fmt.Sprintf("%.0f", math.Round(value/rounded)*rounded)
		for at := len(text) - 3; at > 0; at -= 3 {
			text = text[:at] + "," + text[at:]
		}
		return text
	}
	return report.Value{Value: value}.String()
}
