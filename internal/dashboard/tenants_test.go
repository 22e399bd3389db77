package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/jobs"
)

// tenant is a user who has the role mpijob-user in one namespace and no other rights, with the objects of that namespace.
type tenant struct {
	namespace, user, token string
	// marker is in the texts of every object: annotations, images, variables, log lines and messages. It is in no name that
	// requests contain, except that of the user.
	marker string
	// loss is the number that the programs of the jobs printed.
	loss string
	// template is the name of a template.
	template string
	// jobs are an MPIJob, a TrainJob and a deleted MPIJob.
	jobs []tenantJob
	// removed is the UID of a deleted job without a report.
	removed types.UID
	// cursor is the position in the stream of changes before all jobs.
	cursor string
}

type tenantJob struct {
	kind, name string
	uid        types.UID
	// deleted jobs only have a report.
	deleted bool
}

func (j tenantJob) reference() string { return strings.ToLower(j.kind) + "/" + j.name }

// newTenant creates the namespace and the account of a tenant without jobs.
func newTenant(t *testing.T, name, marker, loss string) *tenant {
	t.Helper()
	ctx := t.Context()
	one := &tenant{namespace: "tenants-" + name, marker: marker, loss: loss, template: name + "-nightly"}
	one.user = "system:serviceaccount:" + one.namespace + ":" + marker
	for _, kind := range []string{"MPIJob", "TrainJob"} {
		one.jobs = append(one.jobs, tenantJob{kind: kind, name: name + "-" + strings.ToLower(kind)})
	}
	one.jobs = append(one.jobs, tenantJob{kind: "MPIJob", name: name + "-deleted", deleted: true})
	must(t, api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: one.namespace}}))
	must(t, api.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: one.namespace, Name: marker}}))
	must(t, api.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: one.namespace, Name: marker}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "mpijob-user"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: one.namespace, Name: marker}},
	}))
	var err error
	one.token, err = tokenOf(ctx, one.namespace, marker)
	must(t, err)
	return one
}

// create creates an object. Texts such as MARKER are replaced by those of the tenant.
func (one *tenant) create(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	text = strings.NewReplacer("NAMESPACE", one.namespace, "MARKER", one.marker, "USER", one.user).Replace(text)
	object := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(text), &object.Object))
	status := object.Object["status"]
	must(t, api.Create(t.Context(), object))
	if status != nil {
		object.Object["status"] = status
		must(t, api.Status().Update(t.Context(), object))
	}
	return object
}

// tenantObjects are the objects of a tenant, apart from jobs and templates.
var tenantObjects = []string{
	`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: tenants-own, namespace: NAMESPACE}, spec: {mlPolicy: {numNodes: 1, mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI}}, template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [{name: node, image: quay.io/MARKER/mpi:1}]}}}}}]}}}}`,
	`{apiVersion: mpi.opendatahub.io/v1alpha1, kind: RuntimeTest, metadata: {name: MARKER, namespace: NAMESPACE}, spec: {runtimeRef: {kind: TrainingRuntime, name: tenants-own}}, status: {phase: Failed, message: MARKER}}`,
	`{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: tenants-queue, namespace: NAMESPACE}, spec: {clusterQueue: MARKER}, status: {pendingWorkloads: 1}}`,
	`{apiVersion: v1, kind: ResourceQuota, metadata: {name: MARKER, namespace: NAMESPACE}, spec: {hard: {pods: "90"}}, status: {hard: {pods: "90"}, used: {pods: "1"}}}`,
	`{apiVersion: v1, kind: Secret, metadata: {name: MARKER, namespace: NAMESPACE, labels: {opendatahub.io/dashboard: "true"}}, stringData: {AWS_SECRET_ACCESS_KEY: MARKER}}`,
}

var tenantJobs = map[string]string{
	"MPIJob": `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: NAME, namespace: NAMESPACE, labels: {kueue.x-k8s.io/queue-name: tenants-queue}, annotations: {openshift.io/description: MARKER, mpi.opendatahub.io/created-by: "USER"}}, spec: {mpiReplicaSpecs: {
  Launcher: {template: {spec: {containers: [{name: main, image: "quay.io/MARKER/train:1", command: [mpirun, -n, "2", train], env: [{name: KEY, value: MARKER}]}]}}},
  Worker: {replicas: 2, template: {spec: {containers: [{name: worker, image: "quay.io/MARKER/train:1"}]}}}}}}`,
	"TrainJob": `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: NAME, namespace: NAMESPACE, labels: {kueue.x-k8s.io/queue-name: tenants-queue}, annotations: {openshift.io/description: MARKER, mpi.opendatahub.io/created-by: "USER"}}, spec: {
  runtimeRef: {name: tenants-shared}, trainer: {numNodes: 2, image: "quay.io/MARKER/train:1", command: [train], env: [{name: KEY, value: MARKER}]}}}`,
}

// createObjects creates the jobs and the other objects of a tenant.
func (one *tenant) createObjects(t *testing.T) {
	t.Helper()
	for _, text := range tenantObjects {
		one.create(t, text)
	}
	for i := range one.jobs {
		job := &one.jobs[i]
		object := one.create(t, strings.ReplaceAll(tenantJobs[job.kind], "NAME,", job.name+","))
		job.uid = object.GetUID()
		one.report(t, object)
		must(t, api.Create(t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: one.namespace, Name: job.name}, LastTimestamp: metav1.Now(), Type: corev1.EventTypeWarning, Reason: "Tested", Message: one.marker,
			InvolvedObject: corev1.ObjectReference{Kind: job.kind, Namespace: one.namespace, Name: job.name},
		}))
		if job.deleted {
			must(t, api.Delete(t.Context(), object))
		}
	}
	removed := one.create(t, strings.ReplaceAll(tenantJobs["MPIJob"], "NAME,", "removed,"))
	one.removed = removed.GetUID()
	must(t, api.Delete(t.Context(), removed))
}

// report writes the report of a job: of an MPIJob that has failed, or of a TrainJob that waits in a queue.
func (one *tenant) report(t *testing.T, job *unstructured.Unstructured) {
	t.Helper()
	now, pod := metav1.Now(), one.marker+"-pod-0"
	status := v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseQueued, Message: one.marker, StartTime: &now, Run: &v1alpha1.Run{Image: "quay.io/" + one.marker + "/train:1", Creator: one.user},
		Pods:       []v1alpha1.PodStatus{{Role: "worker", Name: pod, Node: one.marker}},
		Timeline:   []v1alpha1.TimelineEntry{{Time: now, Event: "Created", Detail: "The job was created. By " + one.user + "."}},
		Scheduling: &v1alpha1.SchedulingStatus{Backend: "kueue", Queue: "tenants-queue", Message: one.marker},
		Waited:     &v1alpha1.Waited{Backend: "kueue", Queue: "tenants-queue", Pods: 3, Seconds: 7, Until: now},
		Failure:    &v1alpha1.Failure{Code: one.marker, Pod: pod, LogTail: []string{"[" + pod + "] step=1 loss=" + one.loss + " " + one.marker}},
	}
	if job.GetKind() == "MPIJob" {
		status.Phase, status.CompletionTime, status.Scheduling = v1alpha1.PhaseFailed, &now, nil
		status.Findings = []v1alpha1.Finding{{Code: one.marker, Severity: v1alpha1.SeverityError, Summary: one.marker, Evidence: []string{one.marker}}}
	}
	must(t, api.Create(t.Context(), &v1alpha1.JobReport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: one.namespace, Name: strings.ToLower(job.GetKind()) + "-" + job.GetName(),
			Labels: map[string]string{"mpi.opendatahub.io/job-name": job.GetName(), "mpi.opendatahub.io/job-kind": job.GetKind()},
		},
		Spec:   v1alpha1.JobReportSpec{JobRef: v1alpha1.JobReference{APIVersion: job.GetAPIVersion(), Kind: job.GetKind(), Name: job.GetName(), UID: job.GetUID()}},
		Status: status,
	}))
}

// found returns what a response shows of a tenant that its request does not contain.
func (one *tenant) found(request, response string) []string {
	words := []string{one.marker, one.loss, one.namespace, one.user, one.token, one.template, string(one.removed)}
	for _, job := range one.jobs {
		words = append(words, job.name, string(job.uid))
	}
	return slices.DeleteFunc(words, func(word string) bool { return strings.Contains(request, word) || !strings.Contains(response, word) })
}

// tenantRequest is a request of a tenant for what belongs to another.
type tenantRequest struct {
	path string
	body any
}

// requestsOf returns the requests of a tenant for what belongs to another.
type requestsOf func(own, other *tenant) []tenantRequest

// with returns requests to the same paths, with each of some bodies.
func (r requestsOf) with(bodies ...any) requestsOf {
	return func(own, other *tenant) []tenantRequest {
		var all []tenantRequest
		for _, request := range r(own, other) {
			for _, body := range bodies {
				all = append(all, tenantRequest{request.path, body})
			}
		}
		return all
	}
}

// at returns requests to paths. OWN and OTHER are replaced by the namespaces of the tenants, and MINE by a job of the first. The
// other texts are replaced by what belongs to the other: MPIJOB, TRAINJOB and DELETED by jobs, UIDS by the UIDs of all jobs as
// parameters, TEMPLATE and USER by names. CURSOR is replaced by the position before all jobs.
func at(paths ...string) requestsOf {
	return func(own, other *tenant) []tenantRequest {
		uids := "id=" + string(other.removed)
		for _, job := range other.jobs {
			uids += "&id=" + string(job.uid)
		}
		replacer := strings.NewReplacer(
			"OWN", own.namespace, "OTHER", other.namespace, "TEMPLATE", other.template, "USER", url.QueryEscape(other.user), "UIDS", uids, "CURSOR", own.cursor,
			"MPIJOB", other.jobs[0].reference(), "TRAINJOB", other.jobs[1].reference(), "DELETED", other.jobs[2].reference(), "MINE", own.jobs[0].reference(),
		)
		var all []tenantRequest
		for _, path := range paths {
			all = append(all, tenantRequest{path: replacer.Replace(path)})
		}
		return all
	}
}

// atJobs returns requests to a part of each job of the other tenant: in both namespaces, with each of some queries, without a
// query, and with the UID of the job.
func atJobs(part string, queries ...string) requestsOf {
	return func(own, other *tenant) []tenantRequest {
		var all []tenantRequest
		for _, job := range other.jobs {
			for _, namespace := range []string{other.namespace, own.namespace} {
				for _, query := range slices.Concat(queries, []string{"", "uid=" + string(job.uid)}) {
					all = append(all, tenantRequest{path: "/namespaces/" + namespace + "/jobs/" + job.reference() + part + "?" + query})
				}
			}
		}
		return all
	}
}

// answer is the expected answer to requests for what belongs to another tenant.
type answer int

const (
	// refused is a status 401, 403 or 404.
	refused answer = iota
	// administered is the same, also for what belongs to the user: the role mpijob-user is not sufficient.
	administered
	// filtered can also be a status 200, without anything of the other.
	filtered
	// drafted can also be a status 200 with the problem Forbidden or NotFound.
	drafted
	// public is a status 200 and does not depend on the user.
	public
	// open is a success even without a login.
	open
)

// tenantRoute contains the requests to a route of the API.
type tenantRoute struct {
	answer   answer
	requests requestsOf
}

// tenantRoutes contains the routes for which defaultRoute has no requests, or too few.
var tenantRoutes = map[string]tenantRoute{
	"GET /openapi.json": {open, at("/openapi.json")},
	"POST /login": {open, func(own, _ *tenant) []tenantRequest {
		return at("/login").with(dashboard.Login{Token: own.token})(own, own)
	}},
	"POST /logout":              {open, at("/logout")},
	"GET /glossary":             {public, at("/glossary")},
	"GET /help":                 {public, at("/help")},
	"GET /me":                   {filtered, at("/me")},
	"GET /namespaces":           {filtered, at("/namespaces")},
	"GET /jobs":                 {filtered, at("/jobs", "/jobs?namespace=OTHER", "/jobs?deleted=true&size=500", "/jobs?q=tenants", "/jobs?user=USER", "/jobs?deleted=true&sort=user&page=2&size=2")},
	"GET /jobs/stream":          {filtered, at("/jobs/stream?cursor=CURSOR", "/jobs/stream?cursor=CURSOR&namespace=OTHER", "/jobs/stream?cursor=CURSOR&UIDS")},
	"GET /quotas":               {filtered, at("/quotas", "/quotas?namespace=OTHER", "/quotas?namespace=OWN,OTHER")},
	"GET /usage":                {filtered, at("/usage", "/usage?namespace=OTHER", "/usage?by=namespace", "/usage?by=user", "/usage?since=1h", "/usage?by=queue", "/usage?by=label%3Dteam", "/usage?since=2d&until=1d")},
	"GET /runtimes":             {filtered, at("/runtimes", "/runtimes?namespace=OTHER")},
	"GET /runtimes/{name}/jobs": {filtered, at("/runtimes/tenants-shared/jobs", "/runtimes/tenants-own/jobs", "/runtimes/tenants-own/jobs?namespace=OTHER")},
	"GET /runtimes/form":        {public, at("/runtimes/form")},
	"POST /runtimes":            {administered, newRuntimes},
	"PUT /runtimes/{name}":      {administered, at("/runtimes/tenants-shared", "/runtimes/tenants-own", "/runtimes/tenants-own?namespace=OTHER").with(jobs.RuntimeSettings{MaxWorkers: new(int32(1))})},
	"DELETE /runtimes/{name}":   {administered, at("/runtimes/tenants-shared", "/runtimes/tenants-own", "/runtimes/tenants-own?namespace=OTHER")},
	"POST /runtimetests":        {refused, newRuntimeTests},
	"POST /jobs":                {drafted, newJobs},

	"GET /namespaces/{namespace}/options":             {filtered, at("/namespaces/OTHER/options")},
	"GET /namespaces/{namespace}/compare":             {refused, at("/namespaces/OTHER/compare?job=MPIJOB&job=TRAINJOB", "/namespaces/OTHER/compare?job=DELETED,MPIJOB", "/namespaces/OWN/compare?job=MINE&job=MPIJOB", "/namespaces/OWN/compare?job=TRAINJOB&job=MINE")},
	"POST /namespaces/{namespace}/templates":          {drafted, newTemplates},
	"DELETE /namespaces/{namespace}/templates/{name}": {refused, at("/namespaces/OTHER/templates/TEMPLATE", "/namespaces/OWN/templates/TEMPLATE")},

	"GET " + jobRoute + "/logs":    {refused, atJobs("/logs", "download=true", "follow=true", "previous=true&launcher=true")},
	"POST " + jobRoute + "/cancel": {refused, atJobs("/cancel").with(dashboard.CancelRequest{}, dashboard.CancelRequest{GraceSeconds: new(int64)})},
	"POST " + jobRoute + "/clone":  {refused, atJobs("/clone").with(dashboard.CloneRequest{DryRun: true}, dashboard.CloneRequest{Name: "copied", Changes: []string{"workers=1"}})},
}

const jobRoute = "/namespaces/{namespace}/jobs/{kind}/{name}"

// defaultRoute returns the requests to a route of a namespace or of a job; false for other routes and for those with a body,
// which have to be in tenantRoutes.
func defaultRoute(path string, hasBody bool) (tenantRoute, bool) {
	part, ofJob := strings.CutPrefix(path, jobRoute)
	requests := atJobs(part)
	if !ofJob {
		part = strings.TrimPrefix(path, "/namespaces/{namespace}")
		requests = at("/namespaces/OTHER" + part)
	}
	return tenantRoute{refused, requests}, !hasBody && part != path && !strings.Contains(part, "{")
}

// newRuntimes returns requests that create runtimes of the cluster and of both namespaces, also from those of another tenant.
func newRuntimes(own, other *tenant) []tenantRequest {
	var all []any
	for _, namespace := range []string{"", own.namespace, other.namespace} {
		for _, from := range []string{"tenants-shared", "tenants-own", "trainingruntime/tenants-own", "shipped/mpi-openmpi"} {
			all = append(all, dashboard.NewRuntime{From: from, Name: "copied", Namespace: namespace})
		}
	}
	return at("/runtimes").with(all...)(own, other)
}

func newRuntimeTests(_, other *tenant) []tenantRequest {
	return at("/runtimetests").with(
		dashboard.TestRequest{Namespace: other.namespace, Kind: "TrainingRuntime", Name: "tenants-own"},
		dashboard.TestRequest{Namespace: other.namespace, Name: "tenants-shared", Image: "quay.io/any/mpi:1", Queue: "tenants-queue"},
	)(other, other)
}

// tenantSpec returns a new job in a namespace.
func tenantSpec(namespace string) dashboard.SpecRequest {
	return dashboard.SpecRequest{Spec: jobs.Spec{Name: "copied", Namespace: namespace, Image: "quay.io/any/train", Workers: 1}, CommandLine: "true"}
}

// stolenJobs returns jobs that are made from jobs and templates of another tenant, in both namespaces.
func stolenJobs(own, other *tenant) []dashboard.SpecRequest {
	var all []dashboard.SpecRequest
	for _, namespace := range []string{other.namespace, own.namespace} {
		for _, original := range other.jobs {
			clone := tenantSpec(namespace)
			clone.Original = original.reference()
			edited := clone
			edited.YAML, edited.OriginalUID = fmt.Sprintf(tenantManifest, "copied"), string(original.uid)
			all = append(all, clone, edited)
		}
		filled := tenantSpec(namespace)
		filled.Template = other.template
		all = append(all, filled)
	}
	return all
}

// tenantManifest is a job with a name.
const tenantManifest = "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: %s}\nspec: {mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: main, image: any}]}}}}}\n"

// foreignJobs returns jobs in the namespace of another tenant.
func foreignJobs(other *tenant) []dashboard.SpecRequest {
	written, qualified := tenantSpec(other.namespace), tenantSpec("")
	written.YAML = fmt.Sprintf(tenantManifest, "copied")
	qualified.YAML = fmt.Sprintf(tenantManifest, "copied, namespace: "+other.namespace)
	taken, ofRuntime := tenantSpec(other.namespace), tenantSpec(other.namespace)
	taken.Spec.Name, ofRuntime.Spec.Runtime = other.jobs[0].name, "tenants-own"
	return []dashboard.SpecRequest{tenantSpec(other.namespace), written, qualified, taken, ofRuntime}
}

func newJobs(own, other *tenant) []tenantRequest {
	var all []tenantRequest
	for _, job := range append(foreignJobs(other), stolenJobs(own, other)...) {
		tried := job
		tried.DryRun = true
		all = append(all, tenantRequest{"/jobs", tried}, tenantRequest{"/jobs", job})
	}
	return all
}

// newTemplates returns requests that save jobs of another tenant as own templates, or own jobs as templates of the other.
func newTemplates(own, other *tenant) []tenantRequest {
	var all []tenantRequest
	save := func(namespace string, job dashboard.SpecRequest) {
		all = append(all, tenantRequest{"/namespaces/" + namespace + "/templates", dashboard.TemplateRequest{Name: other.template, Description: "copied", Job: job, Replace: true}})
	}
	for _, job := range stolenJobs(own, other) {
		save(own.namespace, job)
		save(other.namespace, job)
	}
	save(other.namespace, tenantSpec(own.namespace))
	save(other.namespace, tenantSpec(other.namespace))
	return all
}

// tenantServer is a server of the dashboard, with a stand-in for Prometheus that answers every user.
type tenantServer struct{ url string }

func newTenantServer(t *testing.T, tenants ...*tenant) tenantServer {
	t.Helper()
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, one := range tenants {
			if one.namespace == r.URL.Query().Get("namespace") {
				_, _ = fmt.Fprintf(w, `{"data":{"result":[{"metric":{"pod":%q},"values":[[1700000000,"1"]]}]}}`, one.marker)
			}
		}
	}))
	t.Cleanup(prometheus.Close)
	server, err := newServer(dashboard.Options{Prometheus: prometheus.URL})
	must(t, err)
	server.Watch(t.Context())
	listening := httptest.NewServer(server.Handler())
	t.Cleanup(listening.Close)
	s := tenantServer{listening.URL}
	eventually(t, "the server is ready", func() bool {
		response, err := http.Get(s.url + "/readyz")
		must(t, err)
		must(t, response.Body.Close())
		return response.StatusCode == http.StatusOK
	})
	return s
}

// routes returns the routes of the API by name, such as GET /jobs: those of its description, which TestGenerated compares with
// the server's, and those outside of it.
func (s tenantServer) routes(t *testing.T) map[string]tenantRoute {
	t.Helper()
	response, err := http.Get(s.url + "/api/v1/openapi.json")
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	var description struct {
		Paths map[string]map[string]struct{ RequestBody any }
	}
	must(t, json.NewDecoder(response.Body).Decode(&description))
	routes := map[string]tenantRoute{}
	for _, name := range []string{"GET /openapi.json", "POST /login", "POST /logout"} {
		routes[name] = tenantRoutes[name]
	}
	for path, operations := range description.Paths {
		for method, operation := range operations {
			path = strings.TrimPrefix(path, "/api/v1")
			name := strings.ToUpper(method) + " " + path
			route, isKnown := tenantRoutes[name]
			if !isKnown {
				route, isKnown = defaultRoute(path, operation.RequestBody != nil)
			}
			if isKnown {
				routes[name] = route
			} else {
				t.Errorf("%s is not covered: add its requests to tenantRoutes", name)
			}
		}
	}
	for name := range tenantRoutes {
		if _, exists := routes[name]; !exists {
			t.Errorf("there is no route %s: remove it from tenantRoutes", name)
		}
	}
	return routes
}

// send sends a request. It returns the request as text, and the status, headers and body of the response. A stream is read for
// streamed at most, and only until it contains something of a tenant.
func (s tenantServer) send(t *testing.T, token, method string, r tenantRequest, streamed time.Duration, until *tenant) (request string, status int, response string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	body := "{}"
	if r.body != nil {
		data, err := json.Marshal(r.body)
		must(t, err)
		body = string(data)
	}
	if method == http.MethodGet || method == http.MethodDelete {
		body = ""
	}
	request = method + " " + r.path + " " + body
	sent, err := http.NewRequestWithContext(ctx, method, s.url+"/api/v1"+r.path, strings.NewReader(body))
	must(t, err)
	sent.Header.Set("Content-Type", "application/json")
	if token != "" {
		sent.Header.Set("Authorization", "Bearer "+token)
	}
	received, err := http.DefaultClient.Do(sent)
	must(t, err)
	defer func() { _ = received.Body.Close() }()
	isStream := received.Header.Get("Content-Type") == "text/event-stream"
	if isStream {
		time.AfterFunc(streamed, cancel)
	}
	var text strings.Builder
	must(t, received.Header.Write(&text))
	buffer := make([]byte, 64<<10)
	for err == nil {
		var n int
		n, err = received.Body.Read(buffer)
		text.Write(buffer[:n])
		if isStream && until != nil && len(until.found(request, text.String())) > 0 {
			break
		}
	}
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		t.Fatalf("%s: %v", request, err)
	}
	return request, received.StatusCode, text.String()
}

// problemIn returns the code of the problem that a response is or contains; empty if there is none.
func problemIn(response string) string {
	var found struct {
		Code    string
		Problem struct{ Code string }
	}
	_, body, _ := strings.Cut(response, "{")
	_ = json.Unmarshal([]byte("{"+body), &found)
	return found.Code + found.Problem.Code
}

// attempt sends the requests of a tenant to a route for what belongs to another, and returns their number.
func (s tenantServer) attempt(t *testing.T, method string, route tenantRoute, own, other *tenant) int {
	t.Helper()
	all := route.requests(own, other)
	for i, r := range all {
		if i == 0 && route.answer != open {
			if _, status, _ := s.send(t, "", method, r, 0, nil); status != http.StatusUnauthorized {
				t.Errorf("%s %s without a token: status %d", method, r.path, status)
			}
		}
		request, status, response := s.send(t, own.token, method, r, 500*time.Millisecond, other)
		if words := other.found(request, response); len(words) > 0 {
			t.Errorf("%s: the response to %s contains %q of %s: status %d: %s", request, own.user, words, other.user, status, response)
		}
		isRefused := slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}, status)
		switch problem := problemIn(response); {
		case isRefused:
		case status == http.StatusOK && (route.answer == filtered || route.answer == public), status/100 == 2 && route.answer == open:
		case status == http.StatusOK && route.answer == drafted && (problem == "Forbidden" || problem == "NotFound"):
		default:
			t.Errorf("%s by %s is not refused: status %d: %s", request, own.user, status, response)
		}
	}
	return len(all)
}

// control sends the same requests as the other tenant, who has the rights. It fails if none succeeds or, of those that read,
// none shows anything of that tenant: such requests would not detect missing authorization.
func (s tenantServer) control(t *testing.T, name string, route tenantRoute, own, other *tenant) {
	t.Helper()
	method, _, _ := strings.Cut(name, " ")
	var last string
	for _, r := range route.requests(own, other) {
		request, status, response := s.send(t, other.token, method, r, 20*time.Second, other)
		if status == http.StatusOK && problemIn(response) == "" && (method != http.MethodGet || len(other.found(request, response)) > 0) {
			return
		}
		last = fmt.Sprintf("%s: status %d: %s", request, status, response)
	}
	t.Errorf("%s: no request succeeds for the user with the rights; the last one is %s", name, last)
}

// tenantInventory returns the versions of the objects of tenants, and of the runtimes of the cluster.
func tenantInventory(t *testing.T, tenants ...*tenant) map[string]string {
	t.Helper()
	found := map[string]string{}
	list := func(kind schema.GroupVersionKind, options ...client.ListOption) {
		objects := &metav1.PartialObjectMetadataList{}
		objects.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		must(t, api.List(t.Context(), objects, options...))
		for _, object := range objects.Items {
			found[kind.Kind+" "+object.Namespace+"/"+object.Name] = object.ResourceVersion
		}
	}
	kinds := append(jobs.Kinds(), v1alpha1.GroupVersion.WithKind("JobReport"), v1alpha1.GroupVersion.WithKind("RuntimeTest"), schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainingRuntime"})
	for _, name := range []string{"ConfigMap", "Secret", "ResourceQuota", "Pod", "Event"} {
		kinds = append(kinds, corev1.SchemeGroupVersion.WithKind(name))
	}
	for _, kind := range kinds {
		for _, one := range tenants {
			list(kind, client.InNamespace(one.namespace))
		}
	}
	list(schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "ClusterTrainingRuntime"})
	return found
}

// follow reads a stream of changes until it has shown all jobs of a tenant. Nothing of the other may be in it.
func (one *tenant) follow(t *testing.T, events *stream, other *tenant) {
	t.Helper()
	for shown := ""; slices.ContainsFunc(one.jobs, func(job tenantJob) bool { return !strings.Contains(shown, string(job.uid)) }); {
		event := events.next()
		shown += event.data
		if words := other.found("", event.data); len(words) > 0 {
			t.Errorf("the stream of %s contains %q: %s", one.user, words, event.data)
		}
	}
}

// TestTenantsSeeAndChangeOnlyTheirOwn sends requests to every route of the API, as two users with the role mpijob-user, each in
// one namespace. The requests name the namespace and the objects of the other user.
func TestTenantsSeeAndChangeOnlyTheirOwn(t *testing.T) {
	needsServer(t)
	ada, bob := newTenant(t, "ada", "vermilion-7f3a", "7306.25"), newTenant(t, "bob", "cobalt-c94e", "4107.75")
	shared := ada.create(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: tenants-shared}, spec: {mlPolicy: {numNodes: 1, mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI}}, template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [{name: node, image: "quay.io/any/mpi:1"}]}}}}}]}}}}`)
	t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), shared) })
	s := newTenantServer(t, ada, bob)
	pairs := [][2]*tenant{{ada, bob}, {bob, ada}}

	live := map[*tenant]*stream{}
	for _, one := range []*tenant{ada, bob} {
		live[one] = openStreamAt(t, s.url, one.token, "jobs/stream", "")
		one.cursor = live[one].next().id
	}
	for _, one := range []*tenant{ada, bob} {
		one.createObjects(t)
		save := tenantRequest{"/namespaces/" + one.namespace + "/templates", dashboard.TemplateRequest{Name: one.template, Description: one.marker, Job: tenantSpec(one.namespace)}}
		if _, status, response := s.send(t, one.token, http.MethodPost, save, 0, nil); status != http.StatusOK || problemIn(response) != "" {
			t.Fatalf("save a template: status %d: %s", status, response)
		}
	}
	for _, pair := range pairs {
		pair[0].follow(t, live[pair[0]], pair[1])
		pair[0].follow(t, openStreamAt(t, s.url, pair[0].token, "jobs/stream", pair[0].cursor), pair[1])
	}

	before, routes := tenantInventory(t, ada, bob), s.routes(t)
	sent := 0
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		method, _, _ := strings.Cut(name, " ")
		for _, pair := range pairs {
			sent += s.attempt(t, method, routes[name], pair[0], pair[1])
		}
	}
	t.Logf("%d requests to %d routes", sent, len(routes))
	if diff := cmp.Diff(before, tenantInventory(t, ada, bob)); diff != "" {
		t.Errorf("users changed objects (-before +after)\n%s", diff)
	}
	for _, name := range slices.SortedFunc(maps.Keys(routes), inOrderOfEffect) {
		switch routes[name].answer {
		case refused, filtered, drafted:
			s.control(t, name, routes[name], ada, bob)
		}
	}
}

// inOrderOfEffect sorts routes so that those that end or delete objects are last.
func inOrderOfEffect(a, b string) int {
	effect := func(name string) string {
		switch {
		case strings.HasPrefix(name, "GET "):
			return "1"
		case strings.HasPrefix(name, "DELETE "):
			return "4"
		case strings.HasSuffix(name, "/cancel"):
			return "3"
		}
		return "2"
	}
	return strings.Compare(effect(a)+a, effect(b)+b)
}
