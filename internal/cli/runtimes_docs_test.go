package cli

import (
	"os"
	"strings"
	"testing"
)

// TestSettingsOfRuntimesAreDocumented: docs/trainjob.md says what update changes of a runtime.
func TestSettingsOfRuntimesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/trainjob.md")
	if err != nil {
		t.Fatal(err)
	}
	_, said, _ := strings.Cut(string(text), "`update` changes ")
	said, _, found := strings.Cut(said, "Change other fields")
	if !found {
		t.Fatal("docs/trainjob.md does not say what update changes")
	}
	for _, name := range runtimeSettings {
		if !strings.Contains(said, "`--"+name+"`") {
			t.Errorf("docs/trainjob.md does not say that update changes --%s: %q", name, said)
		}
	}
}
