package diagnose

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// warnsWhere is a function of package mpi with warnings about a job, and warningText is how one begins: with the field.
var (
	warnsWhere  = regexp.MustCompile(`^(?:[Ww]arn\w*|Warnings)$`)
	warningText = regexp.MustCompile(`^%s: |^: has no effect`)
)

// warningsOfMPI returns the texts of all warnings in the source of package mpi, without those about annotations, which change no pod.
func warningsOfMPI(t *testing.T) (texts []string) {
	t.Helper()
	files, err := filepath.Glob("../mpi/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "/annotations.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			function, is := declared.(*ast.FuncDecl)
			if is && !warnsWhere.MatchString(function.Name.Name) {
				continue
			}
			ast.Inspect(declared, func(node ast.Node) bool {
				literal, is := node.(*ast.BasicLit)
				if !is || literal.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(literal.Value)
				if err == nil && (function != nil || strings.Contains(text, "the image's sshd starts")) && len(text) > 20 && warningText.MatchString(text) {
					texts = append(texts, text)
				}
				return true
			})
		}
	}
	return texts
}

// TestWarningsAreDecided: for each warning that a job can get when it is created, the table has what it explains when the job fails, and nothing
// for which there is no warning.
func TestWarningsAreDecided(t *testing.T) {
	texts := warningsOfMPI(t)
	if len(texts) < 25 {
		t.Fatalf("only %d warnings were found: %q", len(texts), texts)
	}
	used := map[*warned]int{}
	for _, text := range texts {
		matches := 0
		for i := range warnedOf {
			if strings.Contains(text, warnedOf[i].text) {
				matches++
				used[&warnedOf[i]]++
			}
		}
		if matches != 1 {
			t.Errorf("%d rows decide on the warning %q", matches, text)
		}
	}
	for i := range warnedOf {
		if used[&warnedOf[i]] == 0 {
			t.Errorf("no warning contains %q", warnedOf[i].text)
		}
	}
}

// TestProblemOfWarning: a warning is divided into its problem and what to do.
func TestProblemOfWarning(t *testing.T) {
	for text, want := range map[string]string{
		`the shell runs only "a: b", because a script is one word after -c: write "a: b"`: `the shell runs only "a: b", because a script is one word after -c`,
		`host "x" is none of this job; remove the flag`:                                   `host "x" is none of this job`,
		"it has no effect":                    "it has no effect",
		`"a \" b: c" is one word: write more`: `"a \" b: c" is one word`,
	} {
		if got := text[:problemEnd(text)]; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
