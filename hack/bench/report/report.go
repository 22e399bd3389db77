// Package report turns what runs measured into medians, ratios, a table and a file. It is pure but for Write.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Value is what one run measured.
type Value struct {
	Value float64
	// Extrapolated is true if the run was cut short, and the value is what it would have come to.
	Extrapolated bool
	// AtLeast is true if the run was cut short, and the value can only have grown.
	AtLeast bool
}

// Summary is a contestant's result in a case.
type Summary struct {
	// Median, Min and Max are over the values of the runs.
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Runs is how many there were.
	Runs int `json:"runs"`
	// Extrapolated and AtLeast are true if they are of any run's value.
	Extrapolated bool `json:"extrapolated,omitempty"`
	AtLeast      bool `json:"atLeast,omitempty"`
}

// Summarize condenses the values of at least one run.
func Summarize(values []Value) Summary {
	s := Summary{Runs: len(values)}
	var sorted []float64
	for _, v := range values {
		sorted = append(sorted, v.Value)
		s.Extrapolated = s.Extrapolated || v.Extrapolated
		s.AtLeast = s.AtLeast || v.AtLeast
	}
	slices.Sort(sorted)
	n := len(sorted)
	s.Min, s.Max = sorted[0], sorted[n-1]
	s.Median = (sorted[(n-1)/2] + sorted[n/2]) / 2
	return s
}

// Case is one line of the report: less is better, always.
type Case struct {
	Name string `json:"name"`
	// Unit is s, requests, writes, writes/s, % (of a CPU), bytes, MiB or MB.
	Unit string `json:"unit"`
	// Ours and Peers are medians, in the unit.
	Ours  float64            `json:"ours"`
	Peers map[string]float64 `json:"peers"`
	// Ratios are peers over ours: how many times more a peer takes.
	Ratios map[string]float64 `json:"ratios"`
	// Details are by contestant, ours included.
	Details map[string]Summary `json:"details"`
	// Paired are the ratios of peers over ours run by run, where contestants took turns: the load of the machine changes less within a turn.
	Paired map[string]Summary `json:"paired,omitempty"`
	// Steps are the parts of the median run, by contestant.
	Steps map[string][]Step `json:"steps,omitempty"`
	// Requests are what one job's requests are made of, by contestant; of the last run.
	Requests map[string]map[string]int `json:"requests,omitempty"`
}

// Step is a part of a run, in seconds: when it began, since the run began, and how long it took. Steps may overlap.
type Step struct {
	Name    string  `json:"name"`
	Start   float64 `json:"start"`
	Seconds float64 `json:"seconds"`
}

// MedianRun returns the index of the run whose value is the median of at least one; of an even number, the smaller of the two in the middle.
func MedianRun(values []Value) int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a].Value, values[b].Value) })
	return order[(len(order)-1)/2]
}

// NewCase returns the table row for the values of each contestant's runs; ours is the name of our contestant.
func NewCase(name, unit, ours string, values map[string][]Value) Case {
	c := Case{Name: name, Unit: unit, Peers: map[string]float64{}, Ratios: map[string]float64{}, Details: map[string]Summary{}}
	for contestant, values := range values {
		c.Details[contestant] = Summarize(values)
	}
	c.Ours = c.Details[ours].Median
	for contestant, summary := range c.Details {
		if contestant == ours {
			continue
		}
		c.Peers[contestant] = summary.Median
		if c.Ours > 0 {
			c.Ratios[contestant] = summary.Median / c.Ours
		}
	}
	return c
}

// Pair returns the ratios of peers over ours run by run.
func Pair(ours string, values map[string][]Value) map[string]Summary {
	paired := map[string]Summary{}
	for contestant, of := range values {
		if contestant == ours || len(of) != len(values[ours]) {
			continue
		}
		var ratios []Value
		for i, own := range values[ours] {
			if own.Value > 0 {
				ratios = append(ratios, Value{Value: of[i].Value / own.Value, AtLeast: of[i].AtLeast})
			}
		}
		if len(ratios) > 0 {
			paired[contestant] = Summarize(ratios)
		}
	}
	return paired
}

// Report is a whole suite's.
type Report struct {
	Suite   string            `json:"suite"`
	Date    time.Time         `json:"date"`
	Machine Machine           `json:"machine"`
	Version map[string]string `json:"versions"`
	// Latency is how many seconds were added to the API server's answers.
	Latency float64 `json:"latency,omitempty"`
	Cases   []Case  `json:"cases"`
	// Skipped is by the name of a case why it was not measured.
	Skipped map[string]string `json:"skipped,omitempty"`
}

// Machine is where it was measured.
type Machine struct {
	CPUs   int    `json:"cpus"`
	Model  string `json:"model,omitempty"`
	Kernel string `json:"kernel,omitempty"`
}

// Write writes the report to <folder>/<suite>.json and returns that path. A reader sees the old file or the new
// one, never a half.
func (r Report) Write(folder string) (string, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write report: %w", err)
	}
	file := filepath.Join(folder, r.Suite+".json")
	if err := os.WriteFile(file+".new", append(data, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("write report: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return "", fmt.Errorf("write report: %w", err)
	}
	return file, nil
}

// String shows the value with three significant figures, marked as in a Table.
func (v Value) String() string { return mark(v.Extrapolated, v.AtLeast) + figures(v.Value) }
