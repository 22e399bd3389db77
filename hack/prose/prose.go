// Command prose checks texts in Go code for plain technical English: string literals and comments, with the word list
// that rule.mjs applies to documents. Without flags it leaves out tests.
//
//	prose [-tests] [-counts] FOLDER...
//	prose -lines FILE...
//
// It prints each problem and the number of problems in each package, and exits with 1 if there is any. With -lines the
// comments of files with # comments (YAML, shell, make, Containerfiles) are checked.
package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed words.json
var wordsJSON []byte

// rule is an entry of words.json.
type rule struct {
	Pattern string
	Use     string
	Bad     string
	Good    string

	expression *regexp.Regexp
}

// list is words.json.
type list struct {
	MaxWords int
	Rules    []rule
}

// problem is one place in one text.
type problem struct {
	offset int // in the text, in bytes
	text   string
}

// finding is a problem in a file.
type finding struct {
	file string
	line int
	text string
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(arguments []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("prose", flag.ContinueOnError)
	flags.SetOutput(stderr)
	tests := flags.Bool("tests", false, "check _test.go files as well")
	counts := flags.Bool("counts", false, "only print the number of problems in each package")
	lines := flags.Bool("lines", false, "check the # comments of FILEs instead of Go code")
	if err := flags.Parse(arguments); err != nil {
		return 2
	}
	if flags.NArg() == 0 {
		_, _ = fmt.Fprintln(stderr, "prose: name the folders or files to check")
		return 2
	}
	words, err := load(wordsJSON)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "prose:", err)
		return 2
	}
	var found []finding
	for _, path := range flags.Args() {
		var more []finding
		if *lines {
			more, err = words.checkComments(path)
		} else {
			more, err = words.checkFolder(path, *tests)
		}
		if err != nil {
			_, _ = fmt.Fprintln(stderr, "prose:", err)
			return 2
		}
		found = append(found, more...)
	}
	packages := map[string]int{}
	for _, f := range found {
		packages[filepath.Dir(f.file)]++
		if !*counts {
			_, _ = fmt.Fprintf(stdout, "%s:%d: %s\n", f.file, f.line, f.text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		_, _ = fmt.Fprintf(stdout, "%6d  %s\n", packages[name], name)
	}
	if len(found) > 0 {
		_, _ = fmt.Fprintf(stdout, "%6d  in all\n", len(found))
		return 1
	}
	return 0
}

// load compiles the word list: a pattern matches whole words in any case, and its spaces any white space.
func load(data []byte) (*list, error) {
	var words list
	if err := json.Unmarshal(data, &words); err != nil {
		return nil, fmt.Errorf("words.json: %w", err)
	}
	for i := range words.Rules {
		r := &words.Rules[i]
		compiled, err := regexp.Compile(`(?i)(?:^|[^\w-])(` + strings.ReplaceAll(r.Pattern, " ", `\s+`) + `)(?:[^\w-]|$)`)
		if err != nil {
			return nil, fmt.Errorf("words.json: pattern %q: %w", r.Pattern, err)
		}
		r.expression = compiled
	}
	return &words, nil
}

var (
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	// A sentence also ends before an empty line, an indented line, and a comment or command of an example.
	sentenceEnd = regexp.MustCompile(`[.!?:;](\s|$)|\n(\s*\n|  |# |\{\{)|$`)
	word        = regexp.MustCompile(`\w`)
	space       = regexp.MustCompile(`\s+`)
)

// check returns the problems of one text, in their order.
func (l *list) check(text string) []problem {
	if strings.Contains(text, "(?:") { // a regular expression
		return nil
	}
	text = codeSpan.ReplaceAllStringFunc(text, func(code string) string { return strings.Repeat("x", len(code)) })
	var found []problem
	for _, r := range l.Rules {
		for _, match := range r.expression.FindAllStringSubmatchIndex(text, -1) {
			found = append(found, problem{match[2], fmt.Sprintf("%q: use %s", space.ReplaceAllString(text[match[2]:match[3]], " "), r.Use)})
		}
	}
	start := 0
	for _, end := range sentenceEnd.FindAllStringIndex(text, -1) {
		words := 0
		for field := range strings.FieldsSeq(text[start:end[0]]) {
			if word.MatchString(field) {
				words++
			}
		}
		if words > l.MaxWords {
			found = append(found, problem{start, fmt.Sprintf("a sentence of %d words: split it, at most %d", words, l.MaxWords)})
		}
		start = end[1]
	}
	slices.SortStableFunc(found, func(a, b problem) int { return cmp.Compare(a.offset, b.offset) })
	return found
}

// checkFolder checks the Go files below a folder, without those of testdata.
func (l *list) checkFolder(folder string, tests bool) ([]finding, error) {
	var found []finding
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case entry.IsDir(), !strings.HasSuffix(path, ".go"), !tests && strings.HasSuffix(path, "_test.go"):
			return nil
		}
		more, err := l.checkFile(path)
		found = append(found, more...)
		return err
	})
	return found, err
}

// checkFile checks the comments and the string literals of a Go file. Literals that + joins are one text.
func (l *list) checkFile(path string) ([]finding, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	var found []finding
	report := func(line int, text string) {
		for _, p := range l.check(text) {
			found = append(found, finding{path, line + strings.Count(text[:p.offset], "\n"), p.text})
		}
	}
	for _, comment := range file.Comments {
		report(files.Position(comment.Pos()).Line, commentText(comment))
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			// The tag is no text.
			if node.Tag != nil {
				node.Tag = nil
			}
		case *ast.BinaryExpr:
			if text, is := joined(node); is {
				report(files.Position(node.Pos()).Line, text)
				return false
			}
		case *ast.BasicLit:
			if node.Kind == token.STRING {
				report(files.Position(node.Pos()).Line, unquoted(node))
			}
		}
		return true
	})
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(a.line, b.line) })
	return found, nil
}

// joined is the text of a chain of +, with x for what is no literal. It is no text if there is no literal, or if a part
// has literals inside, which are then checked one by one.
func joined(node *ast.BinaryExpr) (string, bool) {
	if node.Op != token.ADD {
		return "", false
	}
	text, literals := "", 0
	for _, side := range []ast.Expr{node.X, node.Y} {
		switch side := side.(type) {
		case *ast.BinaryExpr:
			part, is := joined(side)
			if !is {
				return "", false
			}
			text += part
			literals++
		case *ast.BasicLit:
			if side.Kind != token.STRING {
				return "", false
			}
			text += unquoted(side)
			literals++
		case *ast.Ident, *ast.SelectorExpr:
			text += "x"
		default:
			return "", false
		}
	}
	return text, literals > 0
}

func unquoted(literal *ast.BasicLit) string {
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}

// commentText is a comment with its line breaks, without its markers, directives and indented code.
func commentText(group *ast.CommentGroup) string {
	var lines []string
	for _, comment := range group.List {
		text, isLine := strings.CutPrefix(comment.Text, "//")
		if !isLine {
			text = strings.TrimSuffix(strings.TrimPrefix(text, "/*"), "*/")
		}
		switch trimmed := strings.TrimLeft(text, " "); {
		case isLine && (text != "" && text == trimmed && text[0] != '\t'), strings.HasPrefix(trimmed, "+"), strings.HasPrefix(text, "\t"), strings.HasPrefix(text, " \t"):
			text = "" // a directive such as //go:embed, a marker such as +kubebuilder, code
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

var hashComment = regexp.MustCompile(`^\s*#+!?\s?(.*)$`)

// checkComments checks the # comments of a file; those on lines of their own that follow each other are one text.
func (l *list) checkComments(path string) ([]finding, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var found []finding
	var text strings.Builder
	start := 0
	flush := func() {
		for _, p := range l.check(text.String()) {
			found = append(found, finding{path, start + strings.Count(text.String()[:p.offset], "\n"), p.text})
		}
		text.Reset()
	}
	for i, line := range strings.Split(string(data), "\n") {
		match := hashComment.FindStringSubmatch(line)
		if match == nil {
			flush()
			if _, comment, is := strings.Cut(line, " # "); is {
				start = i + 1
				text.WriteString(comment)
				flush()
			}
			continue
		}
		if text.Len() == 0 {
			start = i + 1
		}
		text.WriteString(match[1] + "\n")
	}
	flush()
	return found, nil
}
