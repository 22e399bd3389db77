package proof

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"opendatahub.io/mpijob/hack/bench/report"
)

// The files in docs/proof that are no reports of the benchmark.
const (
	programsFile = "programs.json"
	listsFile    = "list.json"
)

// Load reads the records of the page's suites in a folder.
func Load(folder string) (Records, error) {
	records := Records{Reports: map[string]report.Report{}}
	for _, suite := range Suites() {
		file := filepath.Join(folder, suite+".json")
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return records, fmt.Errorf("read a record: %w", err)
		}
		if err := records.add(filepath.Base(file), text); err != nil {
			return records, fmt.Errorf("read %s: %w", file, err)
		}
	}
	return records, nil
}

func (r *Records) add(name string, text []byte) error {
	switch name {
	case programsFile:
		return json.Unmarshal(text, &r.Programs)
	case listsFile:
		return json.Unmarshal(text, &r.Lists)
	}
	var of report.Report
	err := json.Unmarshal(text, &of)
	if err == nil && of.Suite+".json" != name {
		err = fmt.Errorf("it is of the suite %q", of.Suite)
	}
	r.Reports[of.Suite] = of
	return err
}

// Measured returns the version of this repository that a suite's record is of; of the programs, that of all of them, or "" if they differ.
// It is "" without a record.
func (r Records) Measured(suite string) string {
	switch suite {
	case SuitePrograms:
		version := ""
		for i, run := range r.Programs.Runs {
			if i > 0 && run.Version != version {
				return ""
			}
			version = run.Version
		}
		return version
	case SuiteList:
		return r.Lists.Version
	}
	return r.Reports[suite].Version[ours]
}

// Write writes the page, as folder.md, and its pictures into folder. Pictures that are of no record are deleted.
func Write(folder string, records Records) error {
	files := Files(folder, records)
	old, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	if err != nil {
		return fmt.Errorf("list the pictures in %s: %w", folder, err)
	}
	for _, file := range old {
		if _, is := files[file]; !is {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("delete a picture: %w", err)
			}
		}
	}
	for file, text := range files {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // a document
			return fmt.Errorf("write the page: %w", err)
		}
	}
	return nil
}

// Files returns the texts of the page and its pictures, by the names of their files.
func Files(folder string, records Records) map[string]string {
	files := map[string]string{strings.TrimSuffix(folder, "/") + ".md": Page(records)}
	for name, picture := range Plots(records.Reports) {
		files[filepath.Join(folder, name)] = picture
	}
	return files
}

// Copy copies a suite's record from the folder of the benchmark to that of the page. Programs that did not run this time keep their record.
func Copy(from, to, suite string) error {
	source, target := filepath.Join(from, suite+".json"), filepath.Join(to, suite+".json")
	text, err := os.ReadFile(source)
	if err != nil {
		return fmt.Errorf("copy a record: %w", err)
	}
	if suite == SuitePrograms {
		if text, err = mergePrograms(text, target); err != nil {
			return fmt.Errorf("copy %s: %w", source, err)
		}
	}
	if err := os.WriteFile(target, text, 0o644); err != nil { //nolint:gosec // a document
		return fmt.Errorf("copy a record: %w", err)
	}
	return nil
}

// mergePrograms adds to new runs those of a file that they do not replace.
func mergePrograms(text []byte, file string) ([]byte, error) {
	var now, before Programs
	if err := json.Unmarshal(text, &now); err != nil {
		return nil, err
	}
	if old, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(old, &before); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
	}
	for _, run := range before.Runs {
		if slices.ContainsFunc(now.Runs, func(r Program) bool { return r.Name == run.Name && r.Kind == run.Kind }) {
			continue
		}
		if run.Version == "" {
			run.Version, run.Date = before.Version, before.Date
		}
		now.Runs = append(now.Runs, run)
	}
	slices.SortFunc(now.Runs, func(a, b Program) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind))
	})
	merged, err := json.MarshalIndent(now, "", "  ")
	return append(merged, '\n'), err
}
