package codes_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/codes"
)

// TestPages: each code that a finding may have leads to a heading of the page, and to no other's.
func TestPages(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]int{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		headings[strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")]++
	}
	checked := 0
	for _, e := range codes.Entries() {
		if !e.IsFinding() {
			continue
		}
		checked++
		for site, page := range map[string]string{
			"":                               "https://github.com/opendatahub-io/mpijob/blob/main/docs/troubleshooting.md",
			"https://docs.example.com/mpi/":  "https://docs.example.com/mpi/troubleshooting.html",
			"file:///usr/share/doc/mpi/site": "file:///usr/share/doc/mpi/site/troubleshooting.html",
		} {
			at, anchor, _ := strings.Cut(codes.PageURL(site, e.Code), "#")
			if at != page || headings[anchor] != 1 {
				t.Errorf("%s on %q: %s#%s, a heading that exists %d times", e.Code, site, at, anchor, headings[anchor])
			}
		}
	}
	if checked < 50 {
		t.Errorf("%d codes were checked", checked)
	}
	for _, code := range []codes.Code{codes.Running, "Odd", ""} {
		if url := codes.PageURL("", code); url != "" {
			t.Errorf("%q has the page %s", code, url)
		}
	}
}
