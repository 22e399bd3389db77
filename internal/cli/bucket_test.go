package cli_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logs"
)

// bucket serves objects by their paths to those who have a signature.
type bucket struct {
	mu      sync.Mutex
	objects map[string][]byte
	isDown  bool
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, has := b.objects[r.URL.Path]
	if b.isDown || !has || r.URL.Query().Get("signature") != "secret" {
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	}
	_, _ = w.Write(data)
}

// fillBucket is the script command bucket: JOB EXPIRES FILE [cut|down|late] makes a bucket with the lines of a file, and writes its address
// to the job's report. With cut, lines are missing; with down, the bucket does not answer; with late, it has no lines yet.
func fillBucket(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: bucket JOB EXPIRES FILE [cut|down|late]")
	}
	how := append(args, "")[3]
	expires, err := time.Parse(time.RFC3339, args[1])
	ts.Check(err)
	b := &bucket{objects: map[string][]byte{}, isDown: how == "down"}
	server := httptest.NewServer(b)
	ts.Defer(server.Close)
	address := func(path string) string { return server.URL + path + "?signature=secret" }
	texts := map[string]string{}
	var index logs.Index
	kept := v1alpha1.CompleteLogs{Index: address("/index"), Expires: &metav1.Time{Time: expires}}
	for line := range strings.Lines(ts.ReadFile(args[2])) {
		stored, err := logs.ParseLine(strings.TrimSuffix(line, "\n"))
		ts.Check(err)
		if texts[stored.Pod] == "" {
			index.Pods = append(index.Pods, logs.IndexedPod{Name: stored.Pod, Parts: []logs.IndexedPart{{URL: address("/" + stored.Pod), First: stored.Time}}})
		}
		part := &index.Pods[len(index.Pods)-1].Parts[0]
		part.Lines, part.Last = part.Lines+1, stored.Time
		texts[stored.Pod] += line
		kept.Lines++
	}
	for pod, text := range texts {
		var data bytes.Buffer
		zip := gzip.NewWriter(&data)
		_, err := zip.Write([]byte(text))
		ts.Check(err)
		ts.Check(zip.Close())
		b.objects["/"+pod] = data.Bytes()
	}
	b.objects["/index"], err = json.Marshal(index)
	ts.Check(err)
	kept.Pods = int32(len(texts))
	switch how {
	case "cut":
		kept.PodsCut = 1
	case "late":
		kept = v1alpha1.CompleteLogs{Message: "The complete logs are not kept yet: connection refused"}
	}
	ctx := context.Background()
	var reports v1alpha1.JobReportList
	ts.Check(api.List(ctx, &reports, client.InNamespace(ts.Getenv("NAMESPACE"))))
	for i := range reports.Items {
		if report := &reports.Items[i]; report.Spec.JobRef.Name == args[0] {
			report.Status.CompleteLogs = &kept
			ts.Check(api.Update(ctx, report))
			return
		}
	}
	ts.Check(fmt.Errorf("%s has no report", args[0]))
}
