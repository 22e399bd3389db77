// Command vulnerabilities judges what scanners found in what a release contains: govulncheck in the programs, npm audit in the packages of
// the dashboard's pages, and pip-audit in those of the SDK. Its flags name files with their results in JSON. It also reads
// hack/vulnerabilities/exceptions.txt. Its exit code is 1 if a vulnerability has no valid exception. The databases of npm and PyPI change
// from day to day: without -strict, what they have is only printed, as WARNING. What a scanner could not look up is printed as NOT CHECKED.
// Run it at the root, by make vulnerabilities.
package main

import (
	"encoding/json"
	"errors"
	"flag"
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

// scanner reads the result of a program that looks for vulnerabilities. unchecked is what it could not look up, and why; "" if it looked up
// everything.
type scanner struct {
	name, usage string
	// live is set if its database is not pinned.
	live bool
	read func(io.Reader) (found []vulnerability, unchecked string, err error)
}

var scanners = []scanner{
	{"govulncheck", "result of govulncheck -format json", false, readGovulncheck},
	{"npm", "result of npm audit --json", true, readNpm},
	{"pip", "result of pip-audit --format json", true, readPip},
}

func run() error {
	files := make([]*string, len(scanners))
	for i, s := range scanners {
		files[i] = flag.String(s.name, "", "file with the "+s.usage)
	}
	strict := flag.Bool("strict", false, "fail for vulnerabilities of npm and PyPI, too")
	flag.Parse()
	text, err := os.ReadFile(exceptionsFile)
	if err != nil {
		return fmt.Errorf("read the exceptions: %w", err)
	}
	excepted, err := parseExceptions(string(text))
	if err != nil {
		return err
	}
	var pinned, live []vulnerability
	var checked []string
	for i, s := range scanners {
		here, unchecked, err := readFile(*files[i], s)
		if err != nil {
			return err
		}
		if s.live {
			live = append(live, here...)
		} else {
			pinned = append(pinned, here...)
		}
		if unchecked != "" {
			fmt.Printf("NOT CHECKED: %s: %s\n", s.name, unchecked)
			continue
		}
		checked = append(checked, s.name)
	}
	problems, warnings := judgeAll(pinned, live, excepted, len(checked) == len(scanners), *strict, time.Now())
	for _, warning := range warnings {
		fmt.Println("WARNING:", warning)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s\nUpdate what is vulnerable (go get MODULE@VERSION; the toolchain in go.mod; npm update; uv lock --upgrade-package). If it does not concern what is released, write a line into %s",
			strings.Join(problems, "\n"), exceptionsFile)
	}
	if len(warnings) > 0 {
		return nil
	}
	fmt.Printf("no known vulnerabilities by %s, and %d exceptions\n", strings.Join(checked, ", "), len(excepted))
	return nil
}

func readFile(path string, s scanner) (found []vulnerability, unchecked string, err error) {
	if path == "" {
		return nil, "it was not run", nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, "", fmt.Errorf("read the result of %s: %w", s.name, err)
	}
	defer func() { _ = file.Close() }()
	return s.read(file)
}

// readGovulncheck is read for the list of scanners: a scan without a result is an error, since its database is on this machine.
func readGovulncheck(from io.Reader) ([]vulnerability, string, error) {
	found, scanned, err := read(from)
	if err == nil && !scanned {
		err = errors.New("govulncheck wrote no result")
	}
	return found, "", err
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

// judgeAll returns what is wrong, and what is only told because databases that are not pinned may have changed. An exception belongs to
// the pinned database if its name is one of Go's.
func judgeAll(pinned, live []vulnerability, excepted []exception, all, strict bool, now time.Time) (problems, warnings []string) {
	var ofGo, others []exception
	for _, e := range excepted {
		if strings.HasPrefix(e.id, "GO-") {
			ofGo = append(ofGo, e)
		} else {
			others = append(others, e)
		}
	}
	problems, warnings = judge(pinned, ofGo, all, now), judge(live, others, all, now)
	if strict {
		return append(problems, warnings...), nil
	}
	return problems, warnings
}

// judge returns what is wrong at a time: vulnerabilities without an exception, and exceptions that have expired or, if all was checked, are
// not needed.
func judge(found []vulnerability, excepted []exception, all bool, now time.Time) (problems []string) {
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
		if all && !slices.ContainsFunc(found, func(v vulnerability) bool { return v.ID == e.id }) {
			problems = append(problems, e.id+": nothing that is released contains it; remove the exception")
		}
	}
	return problems
}
