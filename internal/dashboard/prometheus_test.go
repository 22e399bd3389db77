package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/jobs"
)

func TestPrometheusByHTTPS(t *testing.T) {
	for address, allowed := range map[string]bool{
		"https://thanos-querier.openshift-monitoring.svc:9092": true, "http://127.0.0.1:9090": true, "http://localhost:9090": true, "http://[::1]:9090": true,
		"http://prometheus.monitoring.svc:9090": false, "http://localhost.example.com": false, "http://127.0.0.1@example.com": false, "ftp://localhost": false, "prometheus": false,
	} {
		if _, err := newPrometheus(address, ""); (err == nil) != allowed {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// thanos answers like the Thanos of OpenShift to a user with the role view: its proxy takes the method for the verb of RBAC, requires the
// namespace as a parameter of the URL, and the user may only get. It refuses URLs that are too long for many proxies.
func thanos(t *testing.T) *prometheus {
	t.Helper()
	selected := regexp.MustCompile(`namespace="ml",pod=~("[^"]*")`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet || r.URL.Query().Get("namespace") != "ml" || r.Header.Get("Authorization") != "Bearer secret":
			http.Error(w, "Forbidden (user=viewer, verb=create, resource=pods)", http.StatusForbidden)
			return
		case len(r.RequestURI) > 8<<10:
			http.Error(w, "", http.StatusRequestURITooLong)
			return
		}
		query := r.URL.Query().Get("query")
		result := []any{}
		if strings.Contains(query, "container_cpu_usage_seconds_total") {
			names, _ := strconv.Unquote(selected.FindStringSubmatch(query)[1])
			for name := range strings.SplitSeq(names, "|") {
				result = append(result, map[string]any{"metric": map[string]string{"pod": strings.ReplaceAll(name, `\.`, ".")}, "values": [][]any{{1, "0.5"}}})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"result": result}})
	}))
	t.Cleanup(server.Close)
	p, err := newPrometheus(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestChartsOfViewers: a user with the role view sees the charts of jobs on OpenShift, also of a job with many pods.
func TestChartsOfViewers(t *testing.T) {
	for count, charts := range map[int]int{0: 0, 1: 1, 3: 1, 2000: 1} {
		t.Run(fmt.Sprint(count, " pods"), func(t *testing.T) {
			var pods []Pod
			var want []string
			for i := range count {
				name := fmt.Sprintf("a-job-with-a-rather-long-name.v2-worker-%d", i)
				pods, want = append(pods, Pod{Name: name}), append(want, name)
			}
			slices.Sort(want)
			got, err := thanos(t).charts(t.Context(), "secret", jobs.Job{Namespace: "ml"}, pods, time.Now())
			if err != nil || len(got) != charts {
				t.Fatalf("there are %d charts and the error %v, want %d charts", len(got), err, charts)
			}
			if charts == 0 {
				return
			}
			var names []string
			for _, line := range got[0].Lines {
				names = append(names, line.Name)
			}
			if !slices.Equal(names, want) {
				t.Errorf("the chart has %d lines, %.200q, want %d: %.200q", len(names), names, len(want), want)
			}
		})
	}
	if _, err := thanos(t).charts(t.Context(), "of another user", jobs.Job{Namespace: "ml"}, []Pod{{Name: "a"}}, time.Now()); err == nil || !strings.Contains(err.Error(), "you may not read the metrics") {
		t.Errorf("a user without rights gets the error %v, want that metrics may not be read", err)
	}
}
