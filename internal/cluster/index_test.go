package cluster_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/logs"
)

// TestManifestsAreNotCached: the manifests in reports take no memory of the operator.
func TestManifestsAreNotCached(t *testing.T) {
	caches := cluster.CacheOptions(logs.Masker{})
	for object := range caches.ByObject {
		if _, is := object.(*v1alpha1.JobReport); is {
			t.Fatal("without the CRD of JobReports, the operator would not start")
		}
	}
	trim := caches.DefaultTransform
	const reports = 2000
	held := func(manifest string, keep func(any) (any, error)) uint64 {
		report := v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{Message: "x"}}
		report.Status.Specification = &v1alpha1.Specification{Version: "1", Size: int32(len(manifest)), Manifest: manifest}
		text, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		cached := make([]any, reports)
		for i := range cached {
			var read v1alpha1.JobReport
			if err := json.Unmarshal(text, &read); err != nil {
				t.Fatal(err)
			}
			if cached[i], err = keep(&read); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		last := cached[reports-1].(*v1alpha1.JobReport).Status.Specification
		if last == nil || int(last.Size) != len(manifest) {
			t.Errorf("the size is lost: %+v", last)
		}
		runtime.KeepAlive(cached)
		return (after.HeapAlloc - before.HeapAlloc) / reports
	}
	whole := func(object any) (any, error) { return object, nil }
	none, kept, trimmed := held("", whole), held(strings.Repeat("x", 2<<10), whole), held(strings.Repeat("x", 2<<10), trim)
	t.Logf("bytes of memory per report: %d without a manifest, %d with one of 2 KiB, %d with the cache's transform", none, kept, trimmed)
	if trimmed > none+200 {
		t.Errorf("a report takes %d bytes with a manifest and %d without", trimmed, none)
	}
	if kept < none+2000 {
		t.Errorf("the measurement does not see a manifest: %d and %d bytes", kept, none)
	}
}
