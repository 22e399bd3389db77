package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDashboards: the files are current, and all queries and variables ask for what exists.
func TestDashboards(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir(filepath.Join(root, "config", "dashboards"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" {
			return err
		}
		name, _ := filepath.Rel(filepath.Join(root, "config", "dashboards"), path)
		if text := read(t, "config", "dashboards", name); text != string(files[name]) {
			t.Errorf("%s is not what the generator writes: make generate", path)
		}
		found++
		return nil
	})
	if err != nil || found != len(files) {
		t.Errorf("there are %d files, want %d: %v", found, len(files), err)
	}
	all, _ := rules(t)
	known := withRules(metrics(t), all)
	for _, d := range dashboards() {
		values := strings.NewReplacer("$namespace", "ns", "$name", "pi", "$queue", "gpu")
		for _, v := range d.variables {
			check(t, d.name, values.Replace(v.metric), known)
			name, _, _ := strings.Cut(v.metric, "{")
			if !slices.Contains(known[name], v.label) {
				t.Errorf("%s: %s has no label %s", d.name, v.metric, v.label)
			}
		}
		for _, r := range d.rows {
			places, end := r.place(0)
			for i, p := range r.panels {
				if at := places[i]; at.x+at.width > columns || at.y+at.height > end {
					t.Errorf("%s: %s is at %+v", d.name, p.title, at)
				}
				for j := range i {
					if a, b := places[i], places[j]; a.x < b.x+b.width && b.x < a.x+a.width && a.y < b.y+b.height && b.y < a.y+a.height {
						t.Errorf("%s: %s covers %s", d.name, p.title, r.panels[j].title)
					}
				}
				for _, q := range p.queries {
					check(t, d.name+": "+p.title, values.Replace(q.expr), known)
					if strings.Contains(values.Replace(q.expr), "$") {
						t.Errorf("%s: %s has a variable that does not exist: %s", d.name, p.title, q.expr)
					}
				}
			}
		}
	}
}
