package addon_test

import (
	"io"
	"testing"

	"opendatahub.io/mpijob/hack/cluster/addon"
	"opendatahub.io/mpijob/hack/cluster/binaries"
	"opendatahub.io/mpijob/hack/cluster/progress"
)

// TestSums: the checksums that programs of a mirror must have are those of this repository, and of the programs that were compiled on this
// machine: what another machine has compiled is the same to the byte.
func TestSums(t *testing.T) {
	report := progress.New(io.Discard)
	t.Cleanup(report.Close)
	builder, err := binaries.NewBuilder(t.Context(), "../../..", report)
	if err != nil {
		t.Fatal(err)
	}
	if err := builder.CheckSums(addon.Newest()); err != nil {
		t.Error(err)
	}
}
