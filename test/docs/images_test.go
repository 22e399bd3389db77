package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestImagesAreBuiltAsInReleases: the guides build the images of the operator and the agent with the same options as a release.
func TestImagesAreBuiltAsInReleases(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`(?:bin/images|go run(?: -C \S+)? \.) program [^\n]*?--package (\./cmd/\w+)[^\n]*`)
	option := regexp.MustCompile(`--(?:path|library|link|folder)[ =]\S+`)
	options := func(path string) map[string][]string {
		text, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string][]string{}
		for _, match := range command.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\\n", " "), -1) {
			found[match[1]] = append([]string{}, option.FindAllString(match[0], -1)...)
		}
		return found
	}
	want := options("hack/release.sh")
	if len(want["./cmd/agent"]) != 6 {
		t.Fatalf("a release builds the agent with %q", want["./cmd/agent"])
	}
	for _, page := range []string{"docs/install.md", "images/README.md"} {
		got := options(page)
		for _, program := range []string{"./cmd/operator", "./cmd/agent"} {
			if !slices.Equal(got[program], want[program]) {
				t.Errorf("%s builds %s with %q, a release with %q", page, program, got[program], want[program])
			}
		}
	}
}
