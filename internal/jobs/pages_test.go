package jobs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
)

func TestPageLimit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ objects, bytes, want int64 }{
		{500, 500 * 3000, 5000},
		{500, 16 << 20, 500},
		{500, 500 * (800 << 10), 20},
		{5000, 16 << 20, 5000},
		{3, 3 * (20 << 20), 1},
		{0, 100, 500},
		{500, 0, 500},
	} {
		if limit := pageLimit(test.objects, test.bytes); limit != test.want {
			t.Errorf("the page after %d objects with %d bytes has %d, want %d", test.objects, test.bytes, limit, test.want)
		}
	}
}

// reportsServer serves reports with a message of so many bytes, and records the limits and tokens of requests. Every second
// report has no run, and findings of its own.
func reportsServer(t *testing.T, objects, messageBytes int) (client.Reader, *[]string) {
	t.Helper()
	var asked []string
	message := strings.Repeat("x", messageBytes)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		asked = append(asked, query.Get("limit")+" from "+query.Get("continue"))
		limit, _ := strconv.Atoi(query.Get("limit"))
		since, _ := strconv.Atoi(query.Get("continue"))
		end := min(since+limit, objects)
		items := make([]any, 0, limit)
		for i := since; i < end; i++ {
			status := map[string]any{"message": message}
			if (i+i/500)%2 == 0 {
				status["run"], status["startTime"] = map[string]any{"creator": strconv.Itoa(i)}, "2026-11-21T09:00:00Z"
			}
			items = append(items, map[string]any{"metadata": map[string]any{"name": strconv.Itoa(i)}, "status": status})
		}
		next := ""
		if end < objects {
			next = strconv.Itoa(end)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "JobReportList", "metadata": map[string]any{"continue": next, "resourceVersion": "1"}, "items": items})
	}))
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	mapper.Add(v1alpha1.GroupVersion.WithKind("JobReport"), meta.RESTScopeNamespace)
	api, err := client.New(&rest.Config{Host: server.URL}, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return api, &asked
}

func TestEachPage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		objects, messageBytes int
		want                  []string
	}{
		"one page": {500, 10, []string{"500 from "}},
		"small objects: the first page is read again": {1200, 10, []string{"500 from ", "5000 from "}},
		"more than the largest page":                  {5600, 10, []string{"500 from ", "5000 from ", "5000 from 5000"}},
		"objects of 20 KB: pages stay small":          {1200, 20_000, []string{"500 from ", "829 from 500"}},
		"large objects: pages get smaller":            {515, 200_000, []string{"500 from ", "83 from 500"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, asked := reportsServer(t, test.objects, test.messageBytes)
			var list v1alpha1.JobReportList
			var reports []v1alpha1.JobReport
			if err := EachPage(t.Context(), api, &list, "ns", nil, func() { reports = append(reports, list.Items...) }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, *asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if len(reports) != test.objects {
				t.Fatalf("%d reports", len(reports))
			}
			for i, report := range reports {
				creator := ""
				if report.Status.Run != nil {
					creator = report.Status.Run.Creator
				}
				want := ""
				if (i+i/500)%2 == 0 {
					want = strconv.Itoa(i)
				}
				if report.Name != strconv.Itoa(i) || creator != want || (report.Status.StartTime != nil) != (want != "") {
					t.Fatalf("report %d is %s of %q, started at %v: a page has changed another", i, report.Name, creator, report.Status.StartTime)
				}
			}
		})
	}
}

func TestEachPageUnstructured(t *testing.T) {
	t.Parallel()
	api, asked := reportsServer(t, 1200, 10)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("JobReportList"))
	var names []string
	if err := EachPage(t.Context(), api, list, "ns", nil, func() {
		for i := range list.Items {
			names = append(names, list.Items[i].GetName())
		}
	}); err != nil {
		t.Fatal(err)
	}
	if len(names) != 1200 || names[1199] != "1199" || len(*asked) != 2 {
		t.Error(fmt.Sprint(len(names)), *asked)
	}
}
