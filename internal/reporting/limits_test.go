package reporting

import (
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"opendatahub.io/mpijob/api/v1alpha1"
)

func finishedReport(namespace string, i int, phase v1alpha1.Phase, lines ...string) *v1alpha1.JobReport {
	r := &v1alpha1.JobReport{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("job-%06d", i)}}
	r.Status.Phase = phase
	r.Status.CompletionTime = new(metav1.NewTime(time.Unix(int64(i), 0)))
	if len(lines) > 0 {
		r.Status.Failure = &v1alpha1.Failure{LogTail: lines}
	}
	return r
}

// withManifest returns a report as the cache has it: without the manifest, but with its size.
func withManifest(r *v1alpha1.JobReport) *v1alpha1.JobReport {
	r.Status.Specification = &v1alpha1.Specification{Size: 32 << 10}
	return r
}

func TestSurplus(t *testing.T) {
	succeeded, failed := v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed
	running := finishedReport("ns", 0, v1alpha1.PhaseRunning)
	running.Status.CompletionTime = nil
	big := strings.Repeat("x", 100<<10)
	tests := map[string]struct {
		limits  Limits
		reports []*v1alpha1.JobReport
		want    []int
	}{
		"at the limit":                 {Limits{Reports: 2}, []*v1alpha1.JobReport{finishedReport("ns", 1, succeeded), finishedReport("ns", 2, succeeded)}, nil},
		"unfinished jobs do not count": {Limits{Reports: 1}, []*v1alpha1.JobReport{finishedReport("ns", 1, succeeded), running}, nil},
		"the oldest go first":          {Limits{Reports: 2}, []*v1alpha1.JobReport{finishedReport("ns", 3, succeeded), finishedReport("ns", 1, succeeded), finishedReport("ns", 2, succeeded)}, []int{1}},
		"failed jobs go last":          {Limits{Reports: 1}, []*v1alpha1.JobReport{finishedReport("ns", 1, failed), finishedReport("ns", 2, succeeded), finishedReport("ns", 3, succeeded)}, []int{2, 3}},
		"bytes":                        {Limits{Bytes: 150 << 10}, []*v1alpha1.JobReport{finishedReport("ns", 1, succeeded, big), finishedReport("ns", 2, succeeded, big)}, []int{1}},
		"manifests count":              {Limits{Bytes: 60 << 10}, []*v1alpha1.JobReport{withManifest(finishedReport("ns", 1, succeeded)), withManifest(finishedReport("ns", 2, succeeded))}, []int{1}},
		"no limits":                    {Limits{}, []*v1alpha1.JobReport{finishedReport("ns", 1, succeeded, big), finishedReport("ns", 2, succeeded, big)}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var reports []v1alpha1.JobReport
			for _, r := range test.reports {
				reports = append(reports, *r)
			}
			var got []string
			doomed, stripped := test.limits.surplus(reports)
			for _, r := range stripped {
				got = append(got, r.Name+" without logs")
			}
			for _, r := range doomed {
				got = append(got, r.Name)
			}
			var want []string
			for _, i := range test.want {
				want = append(want, fmt.Sprintf("job-%06d", i))
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%v are deleted, want %v", got, want)
			}
		})
	}
}

// TestReportFlood: a user who creates and deletes jobs in a loop leaves a bounded number of reports, and takes a bounded
// amount of memory.
func TestReportFlood(t *testing.T) {
	scheme := apiruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).Build()
	limits := Limits{Reports: 50, Bytes: 2 << 20}
	l := newReportLimiter(limits, api, func(string) {})
	handler := l.eventHandler()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const flood = 400
	most := 0
	for i := range flood {
		lines := make([]string, 50)
		for n := range lines {
			lines[n] = strings.Repeat("x", 1000)
		}
		r := finishedReport("attacker", i, v1alpha1.PhaseSucceeded, lines...)
		if i%7 == 0 {
			r.Namespace = "victim"
			if i > 7*10 {
				continue
			}
		}
		if err := api.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		handler.OnAdd(r, false)
		select {
		case <-l.full:
		default:
			continue
		}
		var list v1alpha1.JobReportList
		if err := api.List(t.Context(), &list, client.InNamespace("attacker")); err != nil {
			t.Fatal(err)
		}
		doomed, _ := limits.surplus(list.Items)
		most = max(most, len(list.Items))
		if err := l.prune(t.Context(), "attacker", limits, namespaceLimit); err != nil {
			t.Fatal(err)
		}
		for _, gone := range doomed {
			handler.OnDelete(gone)
		}
	}
	if !l.isSurplus("attacker", time.Unix(1, 0), false) || l.isSurplus("attacker", time.Unix(flood, 0), false) || l.isSurplus("attacker", time.Unix(1, 0), true) {
		t.Error("reports that were deleted would be written again, or new ones not")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 10
	t.Logf("%d reports of 50 KB created: at most %d at a time, %d KiB of heap", flood, most, used)
	if most > limits.Reports+1 || l.sums["attacker"].bytes > limits.Bytes {
		t.Errorf("at most %d reports at a time, %+v are left", most, l.sums["attacker"])
	}
	if used > 20<<10 {
		t.Errorf("%d KiB of heap are used", used)
	}
	if l.sums["victim"].reports != 11 {
		t.Errorf("another namespace has %d reports, want 11", l.sums["victim"].reports)
	}
}

func TestLargestShare(t *testing.T) {
	for _, test := range []struct {
		sums        []int
		total, want int
	}{
		{[]int{10, 20, 30}, 60, math.MaxInt},
		{[]int{10, 20, 30}, 50, 20},
		{[]int{10, 100, 100, 100}, 100, 30},
		{[]int{10}, 0, 1},
		{nil, 10, math.MaxInt},
	} {
		if got := largestShare(test.sums, test.total); got != test.want {
			t.Errorf("of %v, %d: %d, want %d", test.sums, test.total, got, test.want)
		}
	}
}

// TestReportFloodInManyNamespaces: a user who may create namespaces and fills each of them below its limit leaves a bounded number
// of reports, and displaces none in a namespace with few.
func TestReportFloodInManyNamespaces(t *testing.T) {
	scheme := apiruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).Build()
	limits := Limits{Reports: 50, Bytes: 2 << 20, TotalBytes: 2 << 20}
	deleted := map[string]int{}
	l := newReportLimiter(limits, api, func(limit string) { deleted[limit]++ })
	handler := l.eventHandler()
	add := func(namespace string, i int) {
		t.Helper()
		r := finishedReport(namespace, i, v1alpha1.PhaseFailed, strings.Repeat("x", 20<<10))
		if err := api.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		handler.OnAdd(r, false)
		select {
		case <-l.full:
		default:
			return
		}
		before := reportsIn(t, api)
		if len(l.over) > 0 {
			t.Fatalf("the limits of %v are exceeded", l.over)
		}
		l.pruneTotal(t.Context())
		after := reportsIn(t, api)
		for key, r := range before {
			if _, kept := after[key]; !kept {
				handler.OnDelete(r)
			}
		}
	}
	for i := range 3 {
		add("victim", i)
	}
	most := 0
	for i := range 400 {
		add(fmt.Sprint("attacker-", i/20), i)
		most = max(most, l.total)
	}
	if want := limits.TotalBytes + 30<<10; most > want {
		t.Errorf("%d bytes at a time, want at most %d", most, want)
	}
	if got := l.sums["victim"].reports; got != 3 {
		t.Errorf("another namespace has %d reports, want 3", got)
	}
	if deleted[totalLimit] == 0 || deleted[namespaceLimit] > 0 {
		t.Errorf("the counts of deleted reports are %v", deleted)
	}
	if !l.isSurplus("attacker-0", time.Unix(1, 0), true) {
		t.Error("a report that was deleted would be written again")
	}
}

func reportsIn(t *testing.T, api client.Client) map[client.ObjectKey]*v1alpha1.JobReport {
	t.Helper()
	var list v1alpha1.JobReportList
	if err := api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	all := map[client.ObjectKey]*v1alpha1.JobReport{}
	for i := range list.Items {
		all[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	return all
}

// TestAllOfAReportCounts: pods are most of the report of a large job, and its other lists can be long.
func TestAllOfAReportCounts(t *testing.T) {
	whole := finishedReport("ns", 1, v1alpha1.PhaseFailed, strings.Repeat("x", 10<<10))
	for i := range 1500 {
		whole.Status.Pods = append(whole.Status.Pods, v1alpha1.PodStatus{Role: "worker", Index: int32(i), Name: fmt.Sprintf("large-job-worker-%d", i), Node: fmt.Sprintf("node-%d.cluster.example.com", i), Phase: "Succeeded", Ranks: fmt.Sprint(i)})
	}
	for range 64 {
		whole.Status.Timeline = append(whole.Status.Timeline, v1alpha1.TimelineEntry{Event: "Changed", Detail: strings.Repeat("x", 500)})
	}
	for range 8 {
		whole.Status.Findings = append(whole.Status.Findings, v1alpha1.Finding{Code: "Unknown", Summary: strings.Repeat("x", 1000), Evidence: []string{strings.Repeat("x", 500)}})
	}
	whole.Status.Specification = &v1alpha1.Specification{Manifest: strings.Repeat("x", 30<<10), Size: 30 << 10}
	whole.Status.Logs = &v1alpha1.Logs{Data: make([]byte, 30<<10), Size: 30 << 10}
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	cached := whole.DeepCopy()
	cached.Status.Specification.Manifest, cached.Status.Logs.Data = "", nil
	for name, r := range map[string]*v1alpha1.JobReport{"whole": whole, "as the cache has it": cached} {
		if got := sumOf(r).bytes; got < len(text) || got > len(text)+8<<10 {
			t.Errorf("a report of %d bytes, %s, counts as %d", len(text), name, got)
		}
	}
}
