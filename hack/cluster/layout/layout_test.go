package layout

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNodeNumber(t *testing.T) {
	for name, want := range map[string]int{
		"node-1": 1, "node-42": 42, "node-250": 250,
		"node-0": 0, "node-01": 0, "node-251": 0, "node-": 0, "node-1x": 0, "worker-1": 0, "": 0,
	} {
		got, ok := NodeNumber(name)
		if ok != (want != 0) || (ok && got != want) {
			t.Errorf("%q: got %d, %v; want %d", name, got, ok, want)
		}
	}
}

func TestFindRepository(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"hack/cluster/build/kubernetes", "docs/deep"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := FindRepository(filepath.Join(root, "docs")); err == nil {
		t.Error("a folder without our builds was taken for a clone")
	}
	if err := os.WriteFile(filepath.Join(root, "hack/cluster/build/kubernetes/go.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".", "docs/deep", "hack/cluster"} {
		got, err := FindRepository(filepath.Join(root, dir))
		if err != nil || got != root {
			t.Errorf("from %s: got %s, %v; want %s", dir, got, err, root)
		}
	}
}
