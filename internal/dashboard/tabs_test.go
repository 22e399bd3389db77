package dashboard_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/dashboard"
)

func TestCurvesOfADeletedJobAreInItsReport(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "curves", "user")["user"]}
	job := mpiJob(t, "curves", "gone", nil)
	report(t, job, v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseFailed, CompletionTime: &metav1.Time{Time: time.Now()}, MPI: v1alpha1.MPIStatus{Implementation: "OpenMPI"},
		Pods:    []v1alpha1.PodStatus{{Role: "launcher", Name: "gone-launcher-abc"}},
		Failure: &v1alpha1.Failure{LogTail: []string{"[gone-launcher-abc] [1,0]<stdout>:step=1 loss=2.5", "[gone-launcher-abc] [1,1]<stdout>:step=1 loss=9.5", "[gone-launcher-abc] step=2 loss=nan"}},
	})
	must(t, api.Delete(t.Context(), job))
	curves := get[dashboard.Curves](user, "namespaces/curves/jobs/mpijob/gone/curves")
	if len(curves.Points) != 2 || *curves.Points[0].Loss != 2.5 || !curves.Points[1].NotANumber || !strings.Contains(curves.Note, "report") {
		t.Errorf("the curves are %+v", curves)
	}
	mpiJob(t, "curves", "silent", nil)
	if curves := get[dashboard.Curves](user, "namespaces/curves/jobs/mpijob/silent/curves"); len(curves.Points) != 0 || !strings.Contains(curves.Reason, "loss") {
		t.Errorf("of a job that printed nothing: %+v", curves)
	}
}

// TestMetricsAreReadAsTheUser asks a stand-in for Prometheus, which accepts the token of one user.
func TestMetricsAreReadAsTheUser(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "metrics", "user", "viewer")
	job := mpiJob(t, "metrics", "train", nil)
	report(t, job, v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseRunning, Pods: []v1alpha1.PodStatus{{Role: "worker", Name: "train-worker-0"}}, StartTime: &metav1.Time{Time: time.Now().Add(-time.Hour)}})
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		must(t, r.ParseForm())
		switch {
		case r.Header.Get("Authorization") != "Bearer "+tokens["user"]:
			http.Error(w, "forbidden", http.StatusForbidden)
		case r.URL.Query().Get("namespace") != "metrics" || !strings.Contains(r.Form.Get("query"), `namespace="metrics",pod=~"train-worker-0"`):
			http.Error(w, "wrong query "+r.Form.Encode(), http.StatusBadRequest)
		case strings.Contains(r.Form.Get("query"), "container_cpu_usage"):
			_, _ = io.WriteString(w, `{"data":{"result":[{"metric":{"pod":"train-worker-0"},"values":[[1700000000,"0.5"],[1700000015,"NaN"],[1700000030,"1.5"]]}]}}`)
		default:
			_, _ = io.WriteString(w, `{"data":{"result":[]}}`)
		}
	}))
	defer prometheus.Close()
	server, err := newServer(dashboard.Options{Prometheus: prometheus.URL})
	must(t, err)
	ask := func(token string) dashboard.Metrics {
		request := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/metrics/jobs/mpijob/train/metrics", nil).WithContext(t.Context())
		request.Header.Set("Authorization", "Bearer "+token)
		recorder := httptest.NewRecorder()
		server.Handler().ServeHTTP(recorder, request)
		var metrics dashboard.Metrics
		must(t, json.Unmarshal(recorder.Body.Bytes(), &metrics))
		return metrics
	}
	metrics := ask(tokens["user"])
	if metrics.Source != "Prometheus" || len(metrics.Charts) != 1 || metrics.Charts[0].Title != "CPU" || len(metrics.Charts[0].Lines[0].Samples) != 2 {
		t.Errorf("the charts are %+v", metrics)
	}
	if metrics := ask(tokens["viewer"]); len(metrics.Charts) != 0 || !strings.Contains(metrics.Reason, "you may not read") {
		t.Errorf("of a user whom Prometheus refuses: %+v", metrics)
	}
	if metrics := get[dashboard.Metrics](caller{t, tokens["user"]}, "namespaces/metrics/jobs/mpijob/train/metrics"); metrics.Source != "" || !strings.Contains(metrics.Reason, "--prometheus") || !strings.Contains(metrics.Reason, "metrics.k8s.io") {
		t.Errorf("without Prometheus: %+v", metrics)
	}
	if _, err := newServer(dashboard.Options{Prometheus: "thanos"}); err == nil {
		t.Error("an address that is no URL is accepted")
	}
}

// TestBehindOAuthProxy puts a stand-in for the OAuth proxy before the server: it knows sessions by a cookie, and passes the
// token of the session on.
func TestBehindOAuthProxy(t *testing.T) {
	needsServer(t)
	tokens := map[string]string{"ada": namespace(t, "proxy-ada", "user")["user"], "bob": namespace(t, "proxy-bob", "user")["user"]}
	mpiJob(t, "proxy-ada", "job-of-ada", nil)
	server, err := newServer(dashboard.Options{TrustProxy: true})
	must(t, err)
	server.Watch(t.Context())
	upstream := httptest.NewServer(server.Handler())
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	must(t, err)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie("_oauth_proxy")
		if err != nil {
			http.Redirect(w, r, "/oauth/start", http.StatusFound)
			return
		}
		(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Header.Set("X-Forwarded-Access-Token", tokens[cookie.Value])
			p.Out.Header.Del("Cookie")
		}}).ServeHTTP(w, r)
	}))
	defer proxy.Close()
	ask := func(session, path, forged string) *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL+"/api/v1/"+path, nil)
		must(t, err)
		if session != "" {
			request.AddCookie(&http.Cookie{Name: "_oauth_proxy", Value: session})
		}
		if forged != "" {
			request.Header.Set("X-Forwarded-Access-Token", forged)
		}
		response, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(request)
		must(t, err)
		return response
	}
	read := func(response *http.Response) string {
		defer func() { _ = response.Body.Close() }()
		data, err := io.ReadAll(response.Body)
		must(t, err)
		return string(data)
	}
	if me := read(ask("ada", "me", "")); !strings.Contains(me, "proxy-ada:user") || !strings.Contains(me, `"canLogOut":false`) {
		t.Errorf("ada is %s", me)
	}
	if me := read(ask("bob", "me", tokens["ada"])); !strings.Contains(me, "proxy-bob:user") {
		t.Errorf("bob with the token of ada in a header is %s", me)
	}
	if response := ask("", "me", tokens["ada"]); response.StatusCode != http.StatusFound {
		t.Errorf("without a session: status %d", response.StatusCode)
	}
	eventually(t, "ada sees her job through the proxy", func() bool { return strings.Contains(read(ask("ada", "jobs", "")), "job-of-ada") })
	if list := read(ask("bob", "jobs", "")); strings.Contains(list, "job-of-ada") {
		t.Errorf("bob sees %s", list)
	}
	// Events of a stream come at once, and not when the stream ends.
	stream := ask("ada", "jobs/stream", "")
	defer func() { _ = stream.Body.Close() }()
	first := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stream.Body)
		for lines.Scan() {
			// Other lines are comments, which keep the connection open, and empty.
			if strings.HasPrefix(lines.Text(), "event: ") {
				first <- lines.Text()
				return
			}
		}
	}()
	select {
	case event := <-first:
		if event != "event: reset" {
			t.Errorf("the first event is %q", event)
		}
	case <-time.After(20 * time.Second):
		t.Error("the stream does not pass the proxy")
	}
}

// TestHostileNamesOfOtherObjects shows objects whose texts try to be markup or terminal escapes.
func TestHostileNamesOfOtherObjects(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "hostile-more", "user")["user"]}
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hostile-more", Name: "mpijob-template-evil", Labels: map[string]string{"mpi.opendatahub.io/template": "job"}, Annotations: map[string]string{"mpi.opendatahub.io/description": "<script>alert(1)</script>"}},
		Data:       map[string]string{"job.yaml": "{{{ \x1b[31m <script>"},
	}
	must(t, api.Create(t.Context(), config))
	list := get[dashboard.Templates](user, "namespaces/hostile-more/templates")
	if len(list.Templates) != 1 || list.Templates[0].Error == "" {
		t.Errorf("an invalid template: %+v", list)
	}
	for _, path := range []string{"namespaces/hostile-more/templates", "glossary"} {
		_, body := user.send(http.MethodGet, path, nil)
		if strings.Contains(string(body), "<script") || strings.Contains(string(body), "\x1b") {
			t.Errorf("%s: %s", path, body)
		}
	}
	if status, _ := user.send(http.MethodDelete, fmt.Sprintf("namespaces/hostile-more/templates/%s", url.PathEscape("../../secrets/x")), nil); status/100 == 2 {
		t.Errorf("a template with a path as name: status %d", status)
	}
}
