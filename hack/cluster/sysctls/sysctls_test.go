package sysctls

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func kernel(t *testing.T, values map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, value := range values {
		put(t, root, name, value)
	}
	return root
}

func put(t *testing.T, root, name, value string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func values(t *testing.T, root string, names ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = strings.TrimSpace(string(content))
	}
	return all
}

var settings = Settings{
	Exact:   map[string]string{"net/forward": "1", "net/absent": "1"},
	AtLeast: map[string]int{"fs/instances": 1024, "fs/watches": 100},
	Watched: []string{"kernel/panic", "kernel/absent"},
}

func TestRestorePutsBackWhatWasBeforeTheFirstApply(t *testing.T) {
	before := map[string]string{"net/forward": "0", "fs/instances": "128", "fs/watches": "5000", "kernel/panic": "0"}
	root, file := kernel(t, before), filepath.Join(t.TempDir(), "saved")
	for range 2 { // "up" twice must not remember its own values
		missing, err := settings.Apply(root, file, "boot-1")
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"net/absent"}; !reflect.DeepEqual(missing, want) {
			t.Errorf("missing %v, want %v", missing, want)
		}
		put(t, root, "kernel/panic", "10") // a component does so
	}
	names := []string{"net/forward", "fs/instances", "fs/watches", "kernel/panic"}
	during := map[string]string{"net/forward": "1", "fs/instances": "1024", "fs/watches": "5000", "kernel/panic": "10"}
	if got := values(t, root, names...); !reflect.DeepEqual(got, during) {
		t.Errorf("while up: %v, want %v", got, during)
	}
	if err := Restore(root, file, "boot-1"); err != nil {
		t.Fatal(err)
	}
	if got := values(t, root, names...); !reflect.DeepEqual(got, before) {
		t.Errorf("after down: %v, want %v", got, before)
	}
}

func TestValuesOfAnEarlierBootAreNotPutBack(t *testing.T) {
	root, file := kernel(t, map[string]string{"net/forward": "0"}), filepath.Join(t.TempDir(), "saved")
	if _, err := settings.Apply(root, file, "boot-1"); err != nil {
		t.Fatal(err)
	}
	if err := Restore(root, file, "boot-2"); err != nil {
		t.Fatal(err)
	}
	if got := values(t, root, "net/forward")["net/forward"]; got != "1" {
		t.Errorf("net/forward is %s: a value of another boot was put back", got)
	}
}

func TestRestoreWithoutAFile(t *testing.T) {
	if err := Restore(t.TempDir(), filepath.Join(t.TempDir(), "none"), "boot-1"); err != nil {
		t.Error(err)
	}
}
