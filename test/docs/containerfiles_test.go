package docs

import (
	"regexp"
	"strings"
	"testing"
)

// TestContainerfiles: the Containerfiles of the guide have what their checklist asks for: a base image with a tag, one MPI, and a
// numeric user that is not root; and there is one for each MPI and for Horovod.
func TestContainerfiles(t *testing.T) {
	const page = "docs/how-to/image.md"
	var (
		base = regexp.MustCompile(`(?m)^FROM \S+/\S+:[a-z0-9][\w.-]+( AS \w+)?$`)
		user = regexp.MustCompile(`\nUSER [1-9]\d*\n$`)
		line = regexp.MustCompile(`^(FROM|RUN|COPY|ENV|WORKDIR|USER) \S|^( &&|   ) \S|^$`)
		kind = map[string]*regexp.Regexp{
			"Open MPI": regexp.MustCompile(`\bopenmpi\b|\bopenmpi-bin\b`), "MPICH": regexp.MustCompile(`\bmpich\b`),
			"Intel MPI": regexp.MustCompile(`\bimpi-rt\b`), "Horovod": regexp.MustCompile(`/horovod:`),
		}
	)
	found := map[string]int{}
	blocks, _ := blocksOf(t, page)
	for _, b := range blocks {
		if b.language != "dockerfile" {
			continue
		}
		for text := range strings.Lines(b.text) {
			if !line.MatchString(strings.TrimRight(text, "\n")) {
				t.Errorf("%s:%d: %q is no line of a Containerfile", page, b.line, text)
			}
		}
		stages := strings.Count("\n"+b.text, "\nFROM ")
		if stages == 0 || len(base.FindAllString(b.text, -1)) != stages {
			t.Errorf("%s:%d: not each base image has a registry and a tag", page, b.line)
		}
		if !user.MatchString(b.text) {
			t.Errorf("%s:%d: the last line is no numeric user", page, b.line)
		}
		last := b.text[strings.LastIndex("\n"+b.text, "\nFROM "):]
		kinds := 0
		for name, is := range kind {
			if is.MatchString(last) {
				kinds++
				found[name]++
			}
		}
		if kinds != 1 {
			t.Errorf("%s:%d: %d MPIs", page, b.line, kinds)
		}
	}
	for name := range kind {
		if found[name] == 0 {
			t.Errorf("%s: no Containerfile has %s", page, name)
		}
	}
}
