package cli

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mitchellh/go-wordwrap"
	"golang.org/x/term"

	"opendatahub.io/mpijob/internal/phrase"
)

// table is a list of rows under headings. On a terminal, its longest cells are cut so that rows fit, unless it is wide.
type table struct {
	header []string
	rows   [][]cell
	wide   bool
	// wraps wraps the text of the last column where it does not fit, instead of cutting it.
	wraps bool
}

// cell is a text in a table.
type cell struct {
	text   string
	colour colour
}

// plain makes cells of texts.
func plain(texts ...string) []cell {
	cells := make([]cell, len(texts))
	for i, text := range texts {
		cells[i].text = text
	}
	return cells
}

// widths are those of the columns.
func (t table) widths() []int {
	widths := make([]int, len(t.header))
	for i, title := range t.header {
		widths[i] = utf8.RuneCountInString(title)
	}
	for _, row := range t.rows {
		if len(row) < len(t.header) {
			continue // the title of a group
		}
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	return widths
}

// write prints the table, indented; without headings if wanted.
func (t table) write(to io.Writer, indent string, headings bool) error {
	rows := t.rows
	if headings {
		rows = append([][]cell{plain(t.header...)}, rows...)
	}
	widths := t.fittedWidths(to, indent)
	if t.wraps && terminalWidth(to) > 0 {
		rows = wrapLast(rows, widths[len(widths)-1])
	}
	return writeRows(to, indent, widths, rows)
}

// wrapLast adds rows for the text of the last column that does not fit its width.
func wrapLast(rows [][]cell, width int) [][]cell {
	var wrapped [][]cell
	for _, row := range rows {
		last := len(row) - 1
		for part := range strings.SplitSeq(wordwrap.WrapString(oneLine(row[last].text), uint(max(1, width))), "\n") {
			row = slices.Clone(row)
			row[last].text = part
			wrapped = append(wrapped, row)
			row = append(make([]cell, last), row[last])
		}
	}
	return wrapped
}

// gap is the number of spaces between columns.
const gap = 3

// fittedWidths returns the widths of the columns on an output.
func (t table) fittedWidths(to io.Writer, indent string) []int {
	const leastWrapped = 20
	widths := t.widths()
	width := terminalWidth(to)
	if width == 0 || t.wide {
		return widths
	}
	most := width - utf8.RuneCountInString(indent)
	if last := len(widths) - 1; t.wraps && widths[last] > leastWrapped {
		widths[last] = min(widths[last], max(leastWrapped, most-rowWidth(widths)+widths[last]))
	}
	return fit(widths, most)
}

// rowWidth returns the width of a row.
func rowWidth(widths []int) int {
	total := gap * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	return total
}

// fit reduces the widths of the widest columns until a row fits into a width. No column becomes narrower than 8 characters. The
// first one contains names, for copying: up to half of the row, it is only cut after the others.
func fit(widths []int, most int) []int {
	const least = 8
	widths = slices.Clone(widths)
	for total := rowWidth(widths); total > most; total-- {
		widest := 0
		for i, width := range widths {
			isKept := widest == 0 && widths[0] <= most/2 && width > least
			if i > 0 && (isKept || width >= widths[widest]) {
				widest = i
			}
		}
		if widths[widest] <= least {
			break
		}
		widths[widest]--
	}
	return widths
}

// terminalWidth returns the width of a terminal; 0 for other outputs.
func terminalWidth(to io.Writer) int {
	if fixed, is := to.(interface{ Width() int }); is {
		return fixed.Width()
	}
	file, is := to.(interface{ Fd() uintptr })
	if !is {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

func writeRows(to io.Writer, indent string, widths []int, rows [][]cell) error {
	var b strings.Builder
	cuts := terminalWidth(to) > 0
	for _, row := range rows {
		b.WriteString(indent)
		for i, c := range row {
			text := indentOf(c.text) + oneLine(c.text)
			if cuts && widths[i] > 0 && len(row) == len(widths) {
				text = indentOf(c.text) + shortened(c.text, max(1, widths[i]-len(indentOf(c.text))))
			}
			b.WriteString(paintOn(to, c.colour, text))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(text))+gap))
			}
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// indentOf returns the blanks at the beginning of a text.
func indentOf(text string) string { return text[:len(text)-len(strings.TrimLeft(text, " "))] }

// withoutEmptyColumns returns the table without the columns in which every cell is empty, "-" or "0".
func (t table) withoutEmptyColumns() table {
	kept := table{wide: t.wide, wraps: t.wraps, rows: make([][]cell, len(t.rows))}
	for i, title := range t.header {
		isEmpty := !slices.ContainsFunc(t.rows, func(row []cell) bool { return !slices.Contains([]string{"", "-", "0"}, row[i].text) })
		if isEmpty {
			continue
		}
		kept.header = append(kept.header, title)
		for at, row := range t.rows {
			kept.rows[at] = append(kept.rows[at], row[i])
		}
	}
	return kept
}

// oneLine is a text of the cluster without what ends a line or moves a terminal's cursor.
func oneLine(text string) string {
	return strings.Join(strings.Fields(phrase.Printable(text)), " ")
}

// shortened returns the start of a text, at most a number of characters.
func shortened(text string, most int) string {
	letters := []rune(oneLine(text))
	if len(letters) <= most {
		return string(letters)
	}
	return string(letters[:most-1]) + "…"
}
