package agentapi_test

import (
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestValuesOf: an option has as many values as MPI's launchers read.
func TestValuesOf(t *testing.T) {
	t.Parallel()
	for words, want := range map[[2]string]int{
		{"-np", "4"}: 1, {"--mca", "btl"}: 2, {"--mca", "a=b"}: 2, {"-genv", "A"}: 2, {"-genv", "A=1"}: 1, {"--map-by=node", "train"}: 0,
		{"--oversubscribe", "train"}: 0, {"-pernode", "train"}: 0, {"--new-option", "train"}: 1,
	} {
		if got, known := agentapi.ValuesOf(words[0], words[1]); got != want || known != (words[0] != "--new-option") {
			t.Errorf("%s %s: %d values, known: %t", words[0], words[1], got, known)
		}
	}
}
