package cli

import (
	"cmp"
	"io"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/jobs"
)

// printComparison prints the values of two jobs side by side. All is whether they contain equal ones; if wide, long values
// are not cut. Fields that cannot be compared are nil; the note says why.
func printComparison(to io.Writer, pair [2]jobs.Job, compared jobs.Comparison, all, wide bool) error {
	t := &comparisonTable{table: table{header: []string{"", pair[0].String(), pair[1].String()}, wide: wide}}
	if compared.Fields != nil {
		t.fields(compared.Fields, all)
	}
	t.part("RUN", compared.Run, all)
	t.part("RESERVED", compared.Usage, all)
	t.part("FINDINGS", compared.Findings, all)
	return t.print(to)
}

// comparisonTable is a table of two jobs, in parts.
type comparisonTable struct {
	table
	titles []string
	// ends are the numbers of rows up to the end of each part.
	ends []int
}

// fields adds the fields of the jobs, each group under its path.
func (t *comparisonTable) fields(rows []jobs.ComparedValue, all bool) {
	var grouped []jobs.ComparedValue
	last := ""
	for _, row := range rows {
		group, name := splitField(row.Name)
		if group != last {
			grouped, last = append(grouped, jobs.ComparedValue{Name: group}), group
		}
		row.Name = "  " + name
		grouped = append(grouped, row)
	}
	t.part("FIELDS", grouped, all)
}

var (
	ofContainer = regexp.MustCompile(`^(.*?[cC]ontainers\[[^\]]*\])\.(.+)$`)
	ofEntry     = regexp.MustCompile(`^([^\[\]]+)\[([^\]]+)\]$`)
)

// splitField splits the path of a field into that of its container, or else of the object that contains it, and the rest.
func splitField(path string) (group, name string) {
	for _, pattern := range []*regexp.Regexp{ofContainer, ofEntry} {
		if parts := pattern.FindStringSubmatch(path); parts != nil {
			return parts[1], parts[2]
		}
	}
	at := strings.LastIndexByte(path, '.')
	if open := strings.IndexByte(path, '['); open >= 0 && at > open {
		at = strings.LastIndexByte(path[:open], '.')
	}
	return path[:max(at, 0)], path[at+1:]
}

// part adds rows. Those without a value are the titles of groups.
func (t *comparisonTable) part(title string, rows []jobs.ComparedValue, all bool) {
	most := 60
	if t.wide {
		most = 1 << 20
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(row jobs.ComparedValue) bool {
		return title != "FIELDS" && row.A == "" && row.B == ""
	})
	for _, row := range rows {
		if row.A == "" && row.B == "" {
			t.rows = append(t.rows, plain(row.Name))
			continue
		}
		cells := plain(row.Name, cmp.Or(shortened(row.A, most), "-"), cmp.Or(shortened(row.B, most), "-"))
		if row.A != row.B {
			cells[1].colour, cells[2].colour = yellow, yellow
		}
		t.rows = append(t.rows, cells)
	}
	if len(rows) == 0 {
		title += ": " + map[bool]string{true: "none", false: "no difference"}[all]
	}
	t.titles, t.ends = append(t.titles, title), append(t.ends, len(t.rows))
}

// print prints the parts under their titles.
func (t *comparisonTable) print(to io.Writer) error {
	const indent = "  "
	widths := t.fittedWidths(to, indent)
	for _, row := range t.rows {
		if len(row) == len(widths) {
			row[1].text, row[2].text = apart(row[1].text, row[2].text, min(widths[1], widths[2]))
		}
	}
	if err := writeRows(to, indent, widths, [][]cell{plain(t.header...)}); err != nil {
		return err
	}
	from := 0
	for i, title := range t.titles {
		say(to, "%s", paintOn(to, bold, title))
		if err := writeRows(to, indent, widths, t.rows[from:t.ends[i]]); err != nil {
			return err
		}
		from = t.ends[i]
	}
	return nil
}

// apart returns two different texts so that they still differ when they are cut to a width: without most of the beginning
// that they share.
func apart(a, b string, width int) (string, string) {
	if a == b || shortened(a, width) != shortened(b, width) {
		return a, b
	}
	lettersA, lettersB := []rune(a), []rune(b)
	shared := 0
	for shared < min(len(lettersA), len(lettersB)) && lettersA[shared] == lettersB[shared] {
		shared++
	}
	const least = 4
	room := width - 1 - max(len(lettersA)-shared, len(lettersB)-shared)
	from := max(0, shared-max(least, room))
	return "…" + string(lettersA[from:]), "…" + string(lettersB[from:])
}
