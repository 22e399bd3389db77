package cli

import (
	"io"
	"strings"

	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/preview"
)

// printPreviews prints the objects that jobs create, with the sum of their requests.
func printPreviews(to io.Writer, all []preview.Preview) error {
	s := &linePrinter{to: to}
	for i, p := range all {
		if i > 0 {
			s.line("")
		}
		s.line("%s", paintOn(to, bold, strings.ToLower(p.Job.Kind)+"/"+p.Job.Name))
		t := table{header: []string{"KIND", "NAME", "CREATED BY", "PURPOSE"}, wraps: true}
		for _, object := range p.Fold() {
			t.rows = append(t.rows, plain(object.Kind, object.Name, object.Creator, object.Purpose))
		}
		if err := t.write(to, "  ", true); err != nil {
			return err
		}
		pods, requests := p.Total()
		s.line("  Total: %s, %s, %s", phrase.Count(pods, "pod"), phrase.Count(int(p.Job.Ranks()), "rank"), podspec.Text(requests))
	}
	return s.err
}
