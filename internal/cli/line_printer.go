package cli

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mitchellh/go-wordwrap"

	"opendatahub.io/mpijob/internal/phrase"
)

// linePrinter prints a text line by line. The first error is kept.
type linePrinter struct {
	to  io.Writer
	err error
}

// line prints a line.
func (p *linePrinter) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.to, format+"\n", args...)
	}
}

// table prints a table.
func (p *linePrinter) table(t table) {
	if p.err == nil {
		p.err = t.write(p.to, "", true)
	}
}

// heading starts a part.
func (p *linePrinter) heading(title string) {
	p.line("")
	p.line("%s", paintOn(p.to, bold, title))
}

// text prints a text without colours, wrapped at the width of the terminal.
func (p *linePrinter) text(indent, text string) {
	text = oneLine(text)
	if width := p.width(); width > 0 {
		text = wordwrap.WrapString(text, uint(max(20, width-len(indent))))
	}
	for part := range strings.SplitSeq(text, "\n") {
		p.line("%s%s", indent, part)
		// A number or a bullet is not repeated.
		indent = strings.Repeat(" ", utf8.RuneCountInString(indent))
	}
}

// cells prints coloured texts one after the other, wrapped as text does.
func (p *linePrinter) cells(indent string, cells ...cell) {
	var all strings.Builder
	var colours []colour // of each character that is not a space
	for _, c := range cells {
		text := phrase.Printable(c.text)
		all.WriteString(text)
		colours = append(colours, slices.Repeat([]colour{c.colour}, utf8.RuneCountInString(strings.Join(strings.Fields(text), "")))...)
	}
	text := oneLine(all.String())
	if width := p.width(); width > 0 {
		text = wordwrap.WrapString(text, uint(max(20, width-len(indent))))
	}
	for part := range strings.SplitSeq(text, "\n") {
		n := utf8.RuneCountInString(strings.Join(strings.Fields(part), ""))
		p.line("%s%s", indent, colourEach(p.to, part, colours[:n]))
		colours = colours[n:]
	}
}

// colourEach colours each character of a text that is not a space, where the output is a terminal.
func colourEach(to any, text string, colours []colour) string {
	if !isColoured(to) {
		return text
	}
	var b strings.Builder
	var current colour
	set := func(c colour) {
		if current != "" {
			b.WriteString("\x1b[0m")
		}
		if c != "" {
			b.WriteString("\x1b[" + string(c) + "m")
		}
		current = c
	}
	for _, r := range text {
		if !unicode.IsSpace(r) {
			if colours[0] != current {
				set(colours[0])
			}
			colours = colours[1:]
		}
		b.WriteRune(r)
	}
	set("")
	return b.String()
}

// colourCode is what colours a text (ECMA-48, SGR).
var colourCode = regexp.MustCompile("\x1b\\[[0-9;]*m")

// wrapped prints a text after a name. Its other lines are indented like the first.
func (p *linePrinter) wrapped(name, text string) {
	text = phrase.Printable(text)
	columns := utf8.RuneCountInString(colourCode.ReplaceAllString(name, ""))
	if width := p.width(); width > 0 {
		text = wordwrap.WrapString(text, uint(max(20, width-columns)))
	}
	for part := range strings.SplitSeq(text, "\n") {
		p.line("%s%s", name, part)
		name = strings.Repeat(" ", columns)
	}
}

// width returns the terminal's width, at most 120; 0 if the output is not a terminal.
func (p *linePrinter) width() int {
	const most = 120
	return min(terminalWidth(p.to), most)
}
