package progress

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestLogGetsALinePerStep(t *testing.T) {
	var out strings.Builder
	r := New(&out)
	r.Step("etcd").Done("started")
	failed := errors.New("no")
	if err := r.Step("kube-apiserver").End(failed); !errors.Is(err, failed) {
		t.Errorf("End returned %v", err)
	}
	r.Say("note   %d nodes", 2)
	r.Close()
	got := regexp.MustCompile(`\([0-9.]+s\)`).ReplaceAllString(out.String(), "(T)")
	want := "ok     etcd: started (T)\nFAILED kube-apiserver (T)\nnote   2 nodes\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		340 * time.Millisecond: "0.3s", 12400 * time.Millisecond: "12s", 130 * time.Second: "2m10s",
	} {
		if got := Elapsed(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
