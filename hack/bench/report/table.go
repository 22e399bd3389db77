package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Table writes the cases for people: one line each, ours first, then the peers in the order given, each with
// how many times more (or less) than ours it takes. ~ marks what is extrapolated, ≥ what is a lower bound.
func Table(out io.Writer, cases []Case, ours string, peers []string) error {
	heads := []string{"case", "unit", ours}
	for _, peer := range peers {
		heads = append(heads, peer, "×")
	}
	rows := [][]string{heads}
	for _, c := range cases {
		row := []string{c.Name, c.Unit, cell(c.Details[ours])}
		for _, peer := range peers {
			if summary, measured := c.Details[peer]; measured {
				row = append(row, cell(summary), figures(c.Ratios[peer]))
			} else {
				row = append(row, "-", "-")
			}
		}
		rows = append(rows, row)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")+"\t"); err != nil {
			return fmt.Errorf("write table: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func cell(s Summary) string {
	if s.Runs == 0 {
		return "-"
	}
	return mark(s.Extrapolated, s.AtLeast) + figures(s.Median)
}

func mark(extrapolated, atLeast bool) string {
	switch {
	case atLeast:
		return "≥"
	case extrapolated:
		return "~"
	}
	return ""
}

// figures shows three significant figures, or all of a larger whole number.
func figures(value float64) string {
	if value == 0 || math.IsNaN(value) || math.IsInf(value, 0) {
		return strings.ToLower(strconv.FormatFloat(value, 'f', -1, 64))
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(value))))
	text := strconv.FormatFloat(value, 'f', max(0, digits), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
