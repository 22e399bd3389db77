package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		widths []int
		most   int
		want   []int
	}{
		"it fits":                      {[]int{10, 20}, 33, []int{10, 20}},
		"the widest is cut":            {[]int{10, 90, 12}, 80, []int{10, 52, 12}},
		"the last of equal ones first": {[]int{40, 40}, 82, []int{40, 39}},
		"both are cut":                 {[]int{60, 50}, 43, []int{21, 19}},
		"names are cut last":           {[]int{30, 12, 20}, 61, []int{30, 12, 13}},
		"names are cut at last":        {[]int{30, 12, 20}, 42, []int{20, 8, 8}},
		"long names are cut first":     {[]int{60, 12, 20}, 80, []int{42, 12, 20}},
		"no column is cut to nothing":  {[]int{30, 30}, 5, []int{8, 8}},
		"one column":                   {[]int{100}, 80, []int{80}},
	} {
		if got := fit(test.widths, test.most); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestWrapLast(t *testing.T) {
	t.Parallel()
	out := &narrow{width: 50}
	all := table{header: []string{"KIND", "NAME", "PURPOSE"}, wraps: true, rows: [][]cell{
		plain("Pod", "train-worker-0", "8 workers, 2 slots: cpu 4, memory 32Gi"), plain("Service", "train", "host names"),
	}}
	if err := all.write(out, "  ", true); err != nil {
		t.Fatal(err)
	}
	const want = `  KIND      NAME             PURPOSE
  Pod       train-worker-0   8 workers, 2 slots:
                             cpu 4, memory 32Gi
  Service   train            host names
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// What is not a terminal has one line per row.
	var file bytes.Buffer
	if err := all.write(&file, "", false); err != nil || strings.Count(file.String(), "\n") != 2 {
		t.Errorf("a file has %q, %v", &file, err)
	}
}

// narrow is an output of a fixed width, as a terminal has it.
type narrow struct {
	bytes.Buffer
	width int
}

func (n *narrow) Width() int { return n.width }
