package host

import "testing"

func TestParseMemory(t *testing.T) {
	const rollup = `5581e0000000-7ffd7a5fe000 ---p 00000000 00:00 0                          [rollup]
Rss:                5144 kB
Pss:                1890 kB
Shared_Clean:       3500 kB
Private_Clean:       300 kB
Private_Dirty:      1344 kB
`
	got, err := parseMemory(rollup)
	if want := (Memory{Resident: 5144 << 10, Private: 1644 << 10}); err != nil || got != want {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
	if _, err := parseMemory(""); err == nil {
		t.Error("a process without memory is taken for one that runs")
	}
}
