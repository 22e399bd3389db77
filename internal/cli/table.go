package cli

import (
	"io"
	"strings"
	"unicode/utf8"

	"opendatahub.io/mpijob/internal/mpi"
)

// table is a list of rows under headings, as wide as its columns need.
type table struct {
	header []string
	rows   [][]cell
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
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	return widths
}

// write prints the table, indented; without headings if wanted.
func (t table) write(f *Factory, to io.Writer, indent string, headings bool) error {
	rows := t.rows
	if headings {
		rows = append([][]cell{plain(t.header...)}, rows...)
	}
	return writeRows(f, to, indent, t.widths(), rows)
}

func writeRows(f *Factory, to io.Writer, indent string, widths []int, rows [][]cell) error {
	const gap = 3
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(indent)
		for i, c := range row {
			text := oneLine(c.text)
			b.WriteString(f.paintOn(to, c.colour, text))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(text))+gap))
			}
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// oneLine is a text of the cluster without what ends a line or moves a terminal's cursor.
func oneLine(text string) string {
	return strings.Join(strings.Fields(mpi.Printable(text)), " ")
}
