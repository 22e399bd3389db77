// Command vulnerabilities judges what govulncheck found in the programs of a release. It reads the JSON of "govulncheck -format json"
// from standard input, and hack/vulnerabilities/exceptions.txt. Its exit code is 1 if a vulnerability has no valid exception. Run it at
// the root, by make vulnerabilities.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

const exceptionsFile = "hack/vulnerabilities/exceptions.txt"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vulnerabilities:", err)
		os.Exit(1)
	}
}

func run() error {
	text, err := os.ReadFile(exceptionsFile)
	if err != nil {
		return fmt.Errorf("read the exceptions: %w", err)
	}
	excepted, err := parseExceptions(string(text))
	if err != nil {
		return err
	}
	found, scanned, err := read(os.Stdin)
	switch {
	case err != nil:
		return err
	case !scanned:
		return errors.New("govulncheck wrote no result")
	}
	problems := judge(found, excepted, time.Now())
	if len(problems) > 0 {
		return fmt.Errorf("%s\nUpdate what is vulnerable (go get MODULE@VERSION; the toolchain in go.mod). If it does not concern these programs, write a line into %s",
			strings.Join(problems, "\n"), exceptionsFile)
	}
	fmt.Printf("no known vulnerabilities, and %d exceptions\n", len(excepted))
	return nil
}

// vulnerability is one of the database, in a package that a program contains.
type vulnerability struct {
	// ID is its name in the database, such as GO-2026-1234.
	ID, Summary string
	// In are the modules or packages of the standard library with the version that is used and the one that is fixed.
	In []string
}

// exception is a line of the file: a vulnerability, the day after which it is judged again, and why it does not matter until then.
type exception struct {
	id, reason string
	until      time.Time
}

// parseExceptions reads lines "ID YYYY-MM-DD REASON". Empty lines and those that start with # are comments.
func parseExceptions(text string) ([]exception, error) {
	var all []exception
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(line, " ", 3)
		if len(fields) < 3 || strings.TrimSpace(fields[2]) == "" {
			return nil, fmt.Errorf("%s:%d: %q is not ID YYYY-MM-DD REASON", exceptionsFile, i+1, line)
		}
		until, err := time.Parse(time.DateOnly, fields[1])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", exceptionsFile, i+1, err)
		}
		all = append(all, exception{id: fields[0], until: until, reason: fields[2]})
	}
	return all, nil
}

// read returns the vulnerabilities in packages that the programs contain, and whether there is a result at all
// (golang.org/x/vuln/internal/govulncheck describes the stream).
func read(from io.Reader) (found []vulnerability, scanned bool, err error) {
	summaries, in := map[string]string{}, map[string][]string{}
	for stream := json.NewDecoder(from); ; {
		var message struct {
			SBOM *struct{}
			OSV  *struct{ ID, Summary string }
			// Finding has one frame if the module is required, with a package if that is imported.
			Finding *struct {
				OSV          string
				FixedVersion string `json:"fixed_version"`
				Trace        []struct{ Module, Version, Package string }
			}
		}
		if err := stream.Decode(&message); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, false, fmt.Errorf("read govulncheck's result: %w", err)
		}
		switch f := message.Finding; {
		case message.SBOM != nil:
			scanned = true
		case message.OSV != nil:
			summaries[message.OSV.ID] = message.OSV.Summary
		case f != nil && len(f.Trace) > 0 && f.Trace[0].Package != "":
			fixed := "not fixed"
			if f.FixedVersion != "" {
				fixed = "fixed in " + f.FixedVersion
			}
			where := fmt.Sprintf("%s@%s, %s", f.Trace[0].Module, f.Trace[0].Version, fixed)
			if f.Trace[0].Module == "stdlib" {
				where = fmt.Sprintf("%s of Go %s, %s", f.Trace[0].Package, f.Trace[0].Version, fixed)
			}
			if !slices.Contains(in[f.OSV], where) {
				in[f.OSV] = append(in[f.OSV], where)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(in)) {
		found = append(found, vulnerability{ID: id, Summary: summaries[id], In: in[id]})
	}
	return found, scanned, nil
}

// judge returns what is wrong at a time: vulnerabilities without an exception, and exceptions that have expired or are not needed.
func judge(found []vulnerability, excepted []exception, now time.Time) (problems []string) {
	for _, v := range found {
		i := slices.IndexFunc(excepted, func(e exception) bool { return e.id == v.ID })
		switch {
		case i < 0:
			problems = append(problems, fmt.Sprintf("%s: %s (%s)", v.ID, v.Summary, strings.Join(v.In, "; ")))
		case now.After(excepted[i].until.AddDate(0, 0, 1)):
			problems = append(problems, fmt.Sprintf("%s: the exception ended at %s: %s (%s)", v.ID, excepted[i].until.Format(time.DateOnly), v.Summary, strings.Join(v.In, "; ")))
		}
	}
	for _, e := range excepted {
		if !slices.ContainsFunc(found, func(v vulnerability) bool { return v.ID == e.id }) {
			problems = append(problems, e.id+": no program contains it; remove the exception")
		}
	}
	return problems
}
