package dashboard

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPositionFitsHeader: a stream of the logs of a large job is continued by a header.
func TestPositionFitsHeader(t *testing.T) {
	t.Parallel()
	position := logPosition{}
	for i := range maxUserLogs {
		position[fmt.Sprintf("resnet-horovod-experiment-%d-worker-%d", 17, i)] = podPosition{Time: 1_764_338_400_000_000_000 + rand.Int64N(3_600_000_000_000), Count: 1} //nolint:gosec // times of a test
	}
	id := position.id()
	if len(id) > maxHeader/2 {
		t.Errorf("the positions of %d pods have %d bytes", len(position), len(id))
	}
	if diff := cmp.Diff(position, parsePosition(id)); diff != "" {
		t.Errorf("the position (-want +got):\n%s", diff)
	}
	for _, id := range []string{"", "x", "1.2", id[:len(id)-2], "_____w"} {
		if got := parsePosition(id); len(got) != 0 {
			t.Errorf("%.10s is the position %v", id, got)
		}
	}
}
