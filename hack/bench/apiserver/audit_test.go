package apiserver

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const auditOf = `{"kind":"Event","stage":"ResponseComplete","verb":"create","user":{"username":"ours"},"objectRef":{"resource":"pods","namespace":"a"}}
{"kind":"Event","stage":"ResponseComplete","verb":"create","user":{"username":"ours"},"objectRef":{"resource":"pods","namespace":"b"}}
{"kind":"Event","stage":"ResponseComplete","verb":"create","user":{"username":"theirs"},"objectRef":{"resource":"pods"}}
{"kind":"Event","stage":"ResponseComplete","verb":"update","user":{"username":"ours"},"objectRef":{"resource":"mpijobs","subresource":"status"}}
`

func TestCountRequests(t *testing.T) {
	tests := map[string]struct {
		log  string
		want Requests
		fail bool
	}{
		"of one user only":                  {log: auditOf, want: Requests{"create pods": 2, "update mpijobs/status": 1}},
		"nothing yet":                       {want: Requests{}},
		"the last line is not complete yet": {log: auditOf + `{"kind":"Event","verb":"cre`, want: Requests{"create pods": 2, "update mpijobs/status": 1}},
		"no audit log":                      {log: "hello", fail: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := countRequests(strings.NewReader(test.log), "ours")
			if (err != nil) != test.fail {
				t.Fatalf("got error %v, want one: %v", err, test.fail)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the count differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestsSince(t *testing.T) {
	earlier, later := Requests{"list pods": 1, "create pods": 2}, Requests{"list pods": 1, "create pods": 66, "get jobs": 3}
	got := later.Since(earlier)
	if diff := cmp.Diff(Requests{"create pods": 64, "get jobs": 3}, got); diff != "" {
		t.Errorf("the difference is wrong (-want +got):\n%s", diff)
	}
	if got.Total() != 67 {
		t.Errorf("total is %d, want 67", got.Total())
	}
}

func TestEachRequest(t *testing.T) {
	const log = `{"verb":"create","user":{"username":"ours"},"objectRef":{"resource":"pods","namespace":"a"},"requestReceivedTimestamp":"2026-01-02T10:00:00.001500Z","stageTimestamp":"2026-01-02T10:00:00.004000Z"}`
	var got []Answered
	if err := eachRequest(strings.NewReader(log), "ours", func(a Answered) { got = append(got, a) }); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	want := []Answered{{What: "create pods", Namespace: "a", Received: at.Add(1500 * time.Microsecond), At: at.Add(4 * time.Millisecond)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the requests differ (-want +got):\n%s", diff)
	}
}
