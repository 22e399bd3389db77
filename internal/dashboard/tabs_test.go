package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/jobs"
)

func TestCancelEndsJobsThatHaveNotEnded(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "cancel", "user", "viewer")
	user := caller{t, tokens["user"]}
	running := mpiJob(t, "cancel", "running", nil)
	ended := mpiJob(t, "cancel", "ended", nil)
	report(t, ended, v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseSucceeded, CompletionTime: &metav1.Time{Time: time.Now()}})

	can := get[dashboard.Detail](user, "namespaces/cancel/jobs/mpijob/running").Can
	if !can.Cancel || !can.Delete {
		t.Errorf("of a running job: %+v", can)
	}
	if can = get[dashboard.Detail](user, "namespaces/cancel/jobs/mpijob/ended").Can; can.Cancel || !can.Delete {
		t.Errorf("of a job that has ended: %+v", can)
	}
	for name, test := range map[string]struct {
		who    caller
		job    string
		body   any
		status int
	}{
		"by a viewer":                  {caller{t, tokens["viewer"]}, "running", dashboard.CancelRequest{}, http.StatusForbidden},
		"of a job that has ended":      {user, "ended", dashboard.CancelRequest{}, http.StatusConflict},
		"of another UID":               {user, "running", dashboard.CancelRequest{UID: "other"}, http.StatusNotFound},
		"with a wrong grace period":    {user, "running", dashboard.CancelRequest{GraceSeconds: new(int64(-1))}, http.StatusUnprocessableEntity},
		"of a job that does not exist": {user, "none", dashboard.CancelRequest{}, http.StatusNotFound},
	} {
		if status, body := test.who.send(http.MethodPost, "namespaces/cancel/jobs/mpijob/"+test.job+"/cancel", test.body); status != test.status {
			t.Errorf("%s: status %d, want %d: %s", name, status, test.status, body)
		}
	}
	result := post[dashboard.ActionResult](user, "namespaces/cancel/jobs/mpijob/running/cancel", dashboard.CancelRequest{UID: string(running.UID)})
	if result.Result != "Cancelled" {
		t.Errorf("the result is %+v", result)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(running), &kubeflow.MPIJob{}); !apierrors.IsNotFound(err) {
		t.Errorf("the cancelled job: %v", err)
	}
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(ended), &kubeflow.MPIJob{}))
}

func TestTemplatesAreSharedInAProject(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "templates", "user", "viewer")
	user, viewer := caller{t, tokens["user"]}, caller{t, tokens["viewer"]}
	spec := dashboard.SpecRequest{Spec: jobs.Spec{Name: "train", Namespace: "templates", Image: "quay.io/me/train", Workers: 2}, CommandLine: "python train.py"}
	save := dashboard.TemplateRequest{Name: "nightly", Description: "Each night", Job: spec}
	if status, _ := viewer.send(http.MethodPost, "namespaces/templates/templates", save); status != http.StatusForbidden {
		t.Errorf("a viewer saves a template: status %d", status)
	}
	if result := post[dashboard.TemplateResult](user, "namespaces/templates/templates", save); result.Problem != nil || result.Message == "" {
		t.Fatalf("saved: %+v", result)
	}
	if result := post[dashboard.TemplateResult](user, "namespaces/templates/templates", save); result.Problem == nil || result.Problem.Code != "Exists" {
		t.Errorf("saved again: %+v", result)
	}
	save.Replace = true
	save.Job = dashboard.SpecRequest{YAML: "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: x, namespace: templates}\nspec:\n  mpiReplicaSpecs:\n    Launcher: {template: {spec: {containers: [{name: main, image: '${IMAGE}', command: [mpirun, -n, '2', pi]}]}}}\n    Worker: {replicas: '${WORKERS:-2}', template: {spec: {containers: [{name: worker, image: '${IMAGE}'}]}}}\n"}
	if result := post[dashboard.TemplateResult](user, "namespaces/templates/templates", save); result.Problem != nil {
		t.Fatalf("replaced: %+v", result.Problem)
	}
	list := get[dashboard.Templates](viewer, "namespaces/templates/templates").Templates
	if len(list) != 1 || list[0].Name != "nightly" || list[0].Description != "Each night" || len(list[0].Parameters) != 2 || !list[0].Parameters[0].Required {
		t.Fatalf("the list is %+v", list)
	}
	use := dashboard.SpecRequest{Spec: jobs.Spec{Name: "tonight", Namespace: "templates"}, Template: "nightly", DryRun: true}
	if draft := post[dashboard.Draft](user, "jobs", use); draft.Problem == nil || len(draft.Problem.Fields) != 1 || draft.Problem.Fields[0].Field != "IMAGE" {
		t.Errorf("without the required parameter: %+v", draft.Problem)
	}
	use.Values, use.DryRun = map[string]string{"IMAGE": "quay.io/me/train:2", "WORKERS": "3"}, false
	draft := post[dashboard.Draft](user, "jobs", use)
	if draft.Problem != nil || !draft.Created || !strings.Contains(draft.Commands[0].Text, "templates apply nightly tonight -n templates --param IMAGE=quay.io/me/train:2 --param WORKERS=3") {
		t.Fatalf("created: %+v", draft)
	}
	var job kubeflow.MPIJob
	must(t, api.Get(t.Context(), client.ObjectKey{Namespace: "templates", Name: "tonight"}, &job))
	if n := *job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas; n != 3 {
		t.Errorf("the job has %d workers", n)
	}
	if status, body := user.send(http.MethodDelete, "namespaces/templates/templates/nightly", nil); status != http.StatusOK {
		t.Errorf("deleted: status %d: %s", status, body)
	}
	if list := get[dashboard.Templates](user, "namespaces/templates/templates"); len(list.Templates) != 0 {
		t.Errorf("after that: %+v", list)
	}
}

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

func TestAdministratorsSeeAllQuotasAndUsersTheirFailures(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "quota-jobs", "user")["user"]}
	admin := caller{t, administrator(t, "quota-jobs")}
	namespace(t, "quota-idle")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "quota-idle", Name: "compute"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("10")}}}
	must(t, api.Create(t.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"pods": resource.MustParse("9")}}
	must(t, api.Status().Update(t.Context(), quota))
	for name, code := range map[string]string{"one": "OutOfMemory", "two": "OutOfMemory", "three": "NotACode"} {
		report(t, mpiJob(t, "quota-jobs", name, nil), v1alpha1.JobReportStatus{
			Phase: v1alpha1.PhaseFailed, CompletionTime: &metav1.Time{Time: time.Now()}, Findings: []v1alpha1.Finding{{Code: code, Severity: v1alpha1.SeverityError, Summary: "It failed."}},
		})
	}
	report(t, mpiJob(t, "quota-jobs", "long-ago", nil), v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseFailed, CompletionTime: &metav1.Time{Time: time.Now().Add(-48 * time.Hour)}, Findings: []v1alpha1.Finding{{Code: "Killed", Severity: v1alpha1.SeverityError, Summary: "It failed."}},
	})
	want := []dashboard.FailureCount{{Code: "OutOfMemory", Jobs: 2, Guide: true}, {Code: "NotACode", Jobs: 1}}
	eventually(t, "the failures of the last day", func() bool {
		return slices.Equal(get[dashboard.Usage](user, "usage?since=24h&namespace=quota-jobs").Failures, want)
	})
	other := caller{t, namespace(t, "quota-other", "user")["user"]}
	if failures := get[dashboard.Usage](other, "usage?since=24h").Failures; len(failures) != 0 {
		t.Errorf("a user of another project sees the failures %+v", failures)
	}
	has := func(page dashboard.Quotas) bool {
		return slices.ContainsFunc(page.Quotas, func(one dashboard.NamespaceQuotas) bool {
			return one.Namespace == "quota-idle" && len(one.Quotas) == 1 && one.Quotas[0].Used == 9
		})
	}
	if page := get[dashboard.Quotas](admin, "quotas"); !has(page) {
		t.Errorf("an administrator does not see the quota of a project without jobs: %+v", page)
	}
	if page := get[dashboard.Quotas](user, "quotas"); has(page) {
		t.Errorf("a user sees the quota of another project: %+v", page)
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

func TestAdministratorsCreateAndChangeRuntimes(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "runtime-admins", "user")
	user, admin := caller{t, tokens["user"]}, caller{t, administrator(t, "runtime-admins")}
	var from unstructured.Unstructured
	must(t, yaml.Unmarshal([]byte(`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: admins-mpi}, spec: {mlPolicy: {numNodes: 1, mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI, runLauncherAsNode: true}}, template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [{name: node, image: "quay.io/team/mpi:1"}]}}}}}]}}}}`), &from.Object))
	must(t, api.Create(t.Context(), &from))
	t.Cleanup(func() {
		for _, name := range []string{"admins-mpi", "admins-gpu"} {
			from.SetName(name)
			_ = api.Delete(context.WithoutCancel(t.Context()), &from)
		}
	})
	request := dashboard.RuntimeCopy{From: "admins-mpi", Name: "admins-gpu", Settings: jobs.RuntimeSettings{Image: "quay.io/team/mpi:2", Slots: 8, MaxWorkers: new(int32(4)), MaxGPUs: new(int32(8))}}
	for name, test := range map[string]struct {
		who    caller
		change func(*dashboard.RuntimeCopy)
		status int
	}{
		"by a user":                   {user, func(*dashboard.RuntimeCopy) {}, http.StatusForbidden},
		"of one that does not exist":  {admin, func(r *dashboard.RuntimeCopy) { r.From = "none" }, http.StatusNotFound},
		"under a name that is taken":  {admin, func(r *dashboard.RuntimeCopy) { r.Name = "admins-mpi" }, http.StatusConflict},
		"with a limit of zero":        {admin, func(r *dashboard.RuntimeCopy) { r.Settings.MaxWorkers = new(int32(0)) }, http.StatusUnprocessableEntity},
		"under a name not allowed":    {admin, func(r *dashboard.RuntimeCopy) { r.Name = "Not_Allowed" }, http.StatusUnprocessableEntity},
		"under the name of no object": {admin, func(r *dashboard.RuntimeCopy) { r.Name = "" }, http.StatusUnprocessableEntity},
	} {
		changed := request
		test.change(&changed)
		if status, body := test.who.send(http.MethodPost, "runtimes", changed); status != test.status {
			t.Errorf("a copy %s: status %d, want %d: %s", name, status, test.status, body)
		}
	}
	if result := post[dashboard.ActionResult](admin, "runtimes", request); result.Result != "admins-gpu" {
		t.Errorf("the result is %+v", result)
	}
	if status, body := user.send(http.MethodPut, "runtimes/admins-gpu", jobs.RuntimeSettings{}); status != http.StatusForbidden {
		t.Errorf("a change by a user: status %d: %s", status, body)
	}
	if status, body := admin.send(http.MethodPut, "runtimes/admins-gpu", jobs.RuntimeSettings{MaxWorkers: new(int32(2))}); status != http.StatusOK {
		t.Errorf("a change: status %d: %s", status, body)
	}
	page := get[dashboard.Runtimes](admin, "runtimes")
	i := slices.IndexFunc(page.Runtimes, func(r dashboard.Runtime) bool { return r.Name == "admins-gpu" })
	if i < 0 || !page.CanManage {
		t.Fatalf("the administrator sees %+v", page)
	}
	if got := page.Runtimes[i]; got.MaxWorkers != "2" || got.MaxGPUs != "" || got.Slots != "8" || got.Image != "quay.io/team/mpi:2" {
		t.Errorf("the runtime is %+v", got)
	}
	if page := get[dashboard.Runtimes](user, "runtimes?namespace=runtime-admins"); page.CanManage || page.CanDelete {
		t.Error("a user is offered to manage runtimes")
	}
}

func TestAdministratorsDeleteRuntimes(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "runtime-deleters", "user")
	user, admin := caller{t, tokens["user"]}, caller{t, administrator(t, "runtime-deleters")}
	apply := func(text string) {
		var object unstructured.Unstructured
		must(t, yaml.Unmarshal([]byte(text), &object.Object))
		must(t, api.Create(t.Context(), &object))
	}
	clean := func(name string) {
		var object unstructured.Unstructured
		object.SetGroupVersionKind(jobs.RuntimeKinds()[0])
		object.SetName(name)
		_ = api.Patch(context.WithoutCancel(t.Context()), &object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		_ = api.Delete(context.WithoutCancel(t.Context()), &object)
	}
	for name, finalizers := range map[string]string{"deleters-free": "[]", "deleters-kept": "[trainer.kubeflow.org/resource-in-use]"} {
		apply(`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: ` + name + `, finalizers: ` + finalizers + `}, spec: {mlPolicy: {numNodes: 1}, template: {spec: {replicatedJobs: []}}}}`)
		t.Cleanup(func() { clean(name) })
	}
	trainJob := func(name, ref, more string) {
		apply(`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: ` + name + `, namespace: runtime-deleters}, spec: {runtimeRef: ` + ref + more + `}}`)
	}
	trainJob("waits", "{name: deleters-free}", ", suspend: true")
	trainJob("also-waits", "{name: deleters-free, kind: ClusterTrainingRuntime}", "")
	trainJob("of-the-namespace", "{name: deleters-free, kind: TrainingRuntime}", "")
	trainJob("of-another", "{name: deleters-kept}", "")

	// The list follows the cluster in a moment.
	var used dashboard.RuntimeJobs
	eventually(t, "the jobs of the runtime", func() bool {
		used = get[dashboard.RuntimeJobs](user, "runtimes/deleters-free/jobs")
		return used.Waiting >= 2
	})
	if used.Running != 0 || used.Waiting != 2 || len(used.Jobs) != 2 || used.Jobs[0].Name != "also-waits" || used.Jobs[1].Name != "waits" {
		t.Errorf("the jobs of the runtime are %+v", used)
	}
	stranger := caller{t, namespace(t, "runtime-strangers", "user")["user"]}
	if used := get[dashboard.RuntimeJobs](stranger, "runtimes/deleters-free/jobs"); used.Waiting != 0 || len(used.Jobs) != 0 {
		t.Errorf("a user of another namespace sees %+v", used)
	}
	if !get[dashboard.Runtimes](admin, "runtimes").CanDelete {
		t.Error("an administrator is not offered to delete runtimes")
	}
	for name, test := range map[string]struct {
		who     caller
		runtime string
		status  int
	}{
		"by a user":                  {user, "deleters-free", http.StatusForbidden},
		"of one that does not exist": {admin, "none", http.StatusNotFound},
	} {
		if status, body := test.who.send(http.MethodDelete, "runtimes/"+test.runtime, nil); status != test.status {
			t.Errorf("a deletion %s: status %d, want %d: %s", name, status, test.status, body)
		}
	}
	for name, want := range map[string]string{
		"deleters-free": "The runtime deleters-free is deleted. Jobs that run continue.",
		"deleters-kept": "The runtime deleters-kept is deleted when its finalizers allow it: trainer.kubeflow.org/resource-in-use.",
	} {
		if status, body := admin.send(http.MethodDelete, "runtimes/"+name, nil); status != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("the deletion of %s: status %d: %s", name, status, body)
		}
	}
	for _, one := range get[dashboard.Runtimes](admin, "runtimes").Runtimes {
		if one.Name == "deleters-free" || one.Name == "deleters-kept" && !one.Deleting {
			t.Errorf("after its deletion: %+v", one)
		}
	}
}

func TestLogOfARunningJobEndsWithTheJob(t *testing.T) {
	needsServer(t)
	token := namespace(t, "follow", "user")["user"]
	job := mpiJob(t, "follow", "running", nil)
	report(t, job, v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseRunning})
	events := openStream(t, token, "namespaces/follow/jobs/mpijob/running/logs?follow=true", "")
	var found v1alpha1.JobReport
	must(t, api.Get(t.Context(), client.ObjectKey{Namespace: "follow", Name: "mpijob-running"}, &found))
	found.Status.Phase, found.Status.CompletionTime = v1alpha1.PhaseSucceeded, new(metav1.Now())
	must(t, api.Update(t.Context(), &found))
	for event := events.next(); !strings.Contains(event.data, `"done":true`); event = events.next() {
		t.Logf("%s: %s", event.name, event.data)
	}
}

// TestClusterResourceQuotas shows OpenShift's quotas for several projects to those who may read them.
func TestClusterResourceQuotas(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "shared-one", "user", "nobody")
	namespace(t, "shared-two")
	admin := caller{t, administrator(t, "shared-one")}
	mpiJob(t, "shared-one", "seen", nil)
	const amounts = `{total: {hard: {requests.cpu: "40", pods: "20"}, used: {requests.cpu: "30", pods: "4"}}, namespaces: [{namespace: shared-one, status: {}}, {namespace: shared-two, status: {}}]}`
	for _, text := range []string{
		`{apiVersion: quota.openshift.io/v1, kind: AppliedClusterResourceQuota, metadata: {name: team, namespace: shared-one}, spec: {quota: {}, selector: {}}, status: ` + amounts + `}`,
		`{apiVersion: quota.openshift.io/v1, kind: ClusterResourceQuota, metadata: {name: team}, spec: {quota: {}, selector: {}}}`,
		`{apiVersion: v1, kind: ResourceQuota, metadata: {name: own, namespace: shared-one}, spec: {hard: {pods: "9"}}}`,
	} {
		var object unstructured.Unstructured
		must(t, yaml.Unmarshal([]byte(text), &object.Object))
		must(t, api.Create(t.Context(), &object))
		var status map[string]any
		if object.GetKind() == "ClusterResourceQuota" {
			t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), &object) })
			must(t, yaml.Unmarshal([]byte(amounts), &status))
			object.Object["status"] = status
			must(t, api.Status().Update(t.Context(), &object))
		}
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shared-one", Name: "own"}}
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(quota), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"pods": resource.MustParse("1")}}
	must(t, api.Status().Update(t.Context(), quota))

	cpu := dashboard.Quota{Name: "team (ClusterResourceQuota)", Resource: "requests.cpu", Hard: 40, Used: 30, HardText: "40", UsedText: "30", Shared: true}
	pods := dashboard.Quota{Name: "team (ClusterResourceQuota)", Resource: "pods", Hard: 20, Used: 4, HardText: "20", UsedText: "4", Shared: true}
	want := []dashboard.Quota{{Name: "own", Resource: "pods", Hard: 9, Used: 1, HardText: "9", UsedText: "1"}, pods, cpu}
	user, nobody := caller{t, tokens["user"]}, caller{t, tokens["nobody"]}
	choices := get[dashboard.Choices](user, "namespaces/shared-one/options")
	if diff := cmp.Diff(want, choices.Quotas); diff != "" || slices.Contains(choices.Missing, "ClusterResourceQuotas") {
		t.Errorf("the wizard of a user, without %q (-want +got)\n%s", choices.Missing, diff)
	}
	page := get[dashboard.Quotas](user, "quotas?namespace=shared-one")
	if diff := cmp.Diff([]dashboard.NamespaceQuotas{{Namespace: "shared-one", Quotas: want}}, page.Quotas); diff != "" {
		t.Errorf("the page of a user (-want +got)\n%s", diff)
	}
	// OpenShift lists the applied quotas of one namespace at a time: the page of an administrator is of the quotas themselves.
	found := map[string][]dashboard.Quota{}
	for _, each := range get[dashboard.Quotas](admin, "quotas").Quotas {
		found[each.Namespace] = each.Quotas
	}
	if diff := cmp.Diff(map[string][]dashboard.Quota{"shared-one": want, "shared-two": {pods, cpu}}, map[string][]dashboard.Quota{"shared-one": found["shared-one"], "shared-two": found["shared-two"]}); diff != "" {
		t.Errorf("the page of an administrator (-want +got)\n%s", diff)
	}
	closed := get[dashboard.Quotas](nobody, "quotas?namespace=shared-one")
	if len(closed.Quotas) > 0 || !slices.Contains(closed.Missing, "ClusterResourceQuotas of shared-one") {
		t.Errorf("a user without rights sees %+v", closed)
	}
	if closed := get[dashboard.Quotas](user, "quotas?namespace=shared-two"); len(closed.Quotas) > 0 {
		t.Errorf("a user of another project sees %+v", closed.Quotas)
	}
}
