package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// readNpm returns what "npm audit --json" found. A vulnerability is reported once for its package; those that only depend on that name it.
func readNpm(from io.Reader) (found []vulnerability, unchecked string, err error) {
	var result struct {
		// Message is that of a registry that does not answer.
		Message         string
		AuditReport     int `json:"auditReportVersion"`
		Vulnerabilities map[string]struct {
			Via []json.RawMessage
		}
	}
	if err := json.NewDecoder(from).Decode(&result); errors.Is(err, io.EOF) {
		return nil, "it wrote no result: the registry may not answer", nil
	} else if err != nil {
		return nil, "", fmt.Errorf("read the result of npm audit: %w", err)
	}
	if result.AuditReport == 0 {
		return nil, "the registry does not answer: " + firstLine(result.Message), nil
	}
	for _, name := range slices.Sorted(maps.Keys(result.Vulnerabilities)) {
		for _, via := range result.Vulnerabilities[name].Via {
			var advisory struct{ Name, Title, URL, Range string }
			if json.Unmarshal(via, &advisory) != nil {
				continue // the name of a package
			}
			found = add(found, vulnerability{ID: path.Base(advisory.URL), Summary: advisory.Title, In: []string{"npm " + advisory.Name + " " + advisory.Range}})
		}
	}
	return found, "", nil
}

// readPip returns what pip-audit found. It succeeds although it could not look up packages, which it only names.
func readPip(from io.Reader) (found []vulnerability, unchecked string, err error) {
	var result struct {
		Dependencies []struct {
			Name, Version string
			Skipped       string `json:"skip_reason"`
			Vulns         []struct {
				ID, Description string
				Fixed           []string `json:"fix_versions"`
			}
		}
	}
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, "", fmt.Errorf("read the result of pip-audit: %w", err)
	}
	if len(text) == 0 {
		return nil, "it wrote no result: the index may not answer", nil
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return nil, "", fmt.Errorf("read the result of pip-audit: %w", err)
	}
	skipped, reason := 0, ""
	for _, d := range result.Dependencies {
		if d.Skipped != "" {
			skipped, reason = skipped+1, d.Skipped
		}
		for _, v := range d.Vulns {
			fixed := "not fixed"
			if len(v.Fixed) > 0 {
				fixed = "fixed in " + strings.Join(v.Fixed, ", ")
			}
			found = add(found, vulnerability{ID: v.ID, Summary: firstLine(v.Description), In: []string{"Python " + d.Name + " " + d.Version + ", " + fixed}})
		}
	}
	switch {
	case len(result.Dependencies) == 0:
		unchecked = "it names no packages"
	case skipped > 0:
		unchecked = fmt.Sprintf("%d of %d packages, such as: %s", skipped, len(result.Dependencies), firstLine(reason))
	}
	return found, unchecked, nil
}

// add adds a vulnerability, or where it is to one that is there.
func add(found []vulnerability, v vulnerability) []vulnerability {
	i := slices.IndexFunc(found, func(other vulnerability) bool { return other.ID == v.ID })
	if i < 0 {
		return append(found, v)
	}
	if !slices.Contains(found[i].In, v.In[0]) {
		found[i].In = append(found[i].In, v.In[0])
	}
	return found
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
