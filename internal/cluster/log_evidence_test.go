package cluster

import (
	"strings"
	"testing"
)

// TestReadEnd: a log that is read in part begins and ends with whole lines.
func TestReadEnd(t *testing.T) {
	const mib = 1 << 20
	long := strings.Repeat("x", 3*mib)
	for name, test := range map[string]struct {
		log     string
		most    int64
		want    string
		isWhole bool
	}{
		"all of it":                {"a\nb", 100, "a\nb", true},
		"nothing":                  {"", 100, "", true},
		"cut within a line":        {"a\npassword=hunter2\n", 10, "a\n", false},
		"cut after a line":         {"a\nb\nc\n", 4, "a\nb\n", false},
		"cut within the only line": {"password=hunter2", 10, "password=h", false},
		"long":                     {"password=" + long + "\nb\n", 10 * mib, "b\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, isWhole := readEnd(strings.NewReader(test.log), test.most)
			if string(got) != test.want || isWhole != test.isWhole {
				t.Errorf("%d bytes %.100q, whole: %v; want %.100q, %v", len(got), got, isWhole, test.want, test.isWhole)
			}
		})
	}
}
