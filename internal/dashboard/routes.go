package dashboard

import (
	"net/http"

	"opendatahub.io/mpijob/internal/jobs"
)

// route is an operation of the API.
type route struct {
	method, path, summary string
	// query are the parameters in the URL.
	query []string
	// in is a value of the type of the body; nil for none. out is one of the result.
	in, out any
	handle  func(*call) (any, error)
	// stream writes the response itself, as server-sent events of the type of out.
	stream func(*call, http.ResponseWriter) error
}

const jobPath = "/namespaces/{namespace}/jobs/{kind}/{name}"

// routes returns the operations of the API. openapi.json is generated from them and from the types of their bodies and results,
// each of which is next to the code that fills it: go test ./internal/dashboard -run TestGenerated -update. The types of the web
// pages, web/src/api/types.ts, are generated from openapi.json: make web-types.
func (s *Server) routes() []route {
	return []route{
		{method: "GET", path: "/me", summary: "Who is logged in", out: Me{}, handle: s.me},
		{method: "GET", path: "/jobs", summary: "A page of the jobs that the user may see", query: []string{"q", "namespace", "kind", "framework", "phase", "queue", "user", "id", "deleted", "sort", "page", "size"}, out: List{}, handle: s.list},
		{method: "GET", path: "/jobs/stream", summary: "Changes of jobs, as server-sent events", query: []string{"cursor", "namespace", "id"}, out: Changes{}, stream: s.streamList},
		{method: "POST", path: "/jobs", summary: "Create or check a job", in: SpecRequest{}, out: Draft{}, handle: s.create},
		{method: "GET", path: jobPath, summary: "A job with its report", query: []string{"uid"}, out: Detail{}, handle: s.detail},
		{method: "DELETE", path: jobPath, summary: "Delete a job", query: []string{"uid"}, out: ActionResult{}, handle: s.remove},
		{method: "POST", path: jobPath + "/cancel", summary: "End a job that has not ended", in: CancelRequest{}, out: ActionResult{}, handle: s.cancel},
		{method: "POST", path: jobPath + "/suspend", summary: "Suspend a job", in: struct{}{}, out: ActionResult{}, handle: s.suspend},
		{method: "POST", path: jobPath + "/resume", summary: "Resume a job", in: struct{}{}, out: ActionResult{}, handle: s.resume},
		{method: "POST", path: jobPath + "/clone", summary: "Run a job again with changes", query: []string{"uid"}, in: CloneRequest{}, out: Draft{}, handle: s.clone},
		{method: "GET", path: jobPath + "/form", summary: "What a form needs to clone a job", out: CloneForm{}, handle: s.form},
		{method: "GET", path: jobPath + "/edit", summary: "The YAML of a job as a new one, to edit", query: []string{"uid"}, out: Edit{}, handle: s.edit},
		{method: "GET", path: jobPath + "/pods", summary: "The pods of a job", query: []string{"uid"}, out: Pods{}, handle: s.pods},
		{method: "GET", path: jobPath + "/events", summary: "The Kubernetes events of a job", query: []string{"uid"}, out: Events{}, handle: s.events},
		{method: "GET", path: jobPath + "/curves", summary: "The loss and the accuracy that a job printed", query: []string{"uid"}, out: Curves{}, handle: s.curves},
		{method: "GET", path: jobPath + "/metrics", summary: "What the pods of a job use", query: []string{"uid"}, out: Metrics{}, handle: s.metrics},
		{method: "GET", path: jobPath + "/yaml", summary: "The YAML of a job", query: []string{"uid"}, out: Manifest{}, handle: s.manifest},
		{method: "GET", path: jobPath + "/logs", summary: "The logs of a job, as server-sent events", query: []string{"uid", "container", "follow", "previous", "launcher", "ranks", "workers", "level", "grep", "since", "from", "to", "tail", "download"}, out: LogEvent{}, stream: s.streamLogs},
		{method: "GET", path: "/namespaces/{namespace}/compare", summary: "Two jobs side by side", query: []string{"job", "uid"}, out: Comparison{}, handle: s.compare},
		{method: "GET", path: "/namespaces", summary: "The namespaces that the user can select", out: Namespaces{}, handle: s.namespaces},
		{method: "GET", path: "/namespaces/{namespace}/options", summary: "What a new job can use", out: Choices{}, handle: s.choices},
		{method: "GET", path: "/namespaces/{namespace}/templates", summary: "The templates of a namespace", out: Templates{}, handle: s.templates},
		{method: "POST", path: "/namespaces/{namespace}/templates", summary: "Save a job as a template", in: TemplateRequest{}, out: TemplateResult{}, handle: s.saveTemplate},
		{method: "DELETE", path: "/namespaces/{namespace}/templates/{name}", summary: "Delete a template", out: ActionResult{}, handle: s.removeTemplate},
		{method: "GET", path: "/glossary", summary: "The words that pages use", out: Glossary{}, handle: s.glossary},
		{method: "GET", path: "/help", summary: "What can be wrong with jobs, and what to do", out: Help{}, handle: s.help},
		{method: "GET", path: "/quotas", summary: "Queues and quotas", query: []string{"namespace"}, out: Quotas{}, handle: s.quotasPage},
		{method: "GET", path: "/runtimes", summary: "Runtimes and their tests", query: []string{"namespace"}, out: Runtimes{}, handle: s.runtimesPage},
		{method: "GET", path: "/runtimes/form", summary: "What a form needs to create a runtime", out: RuntimeForm{}, handle: s.runtimeForm},
		{method: "POST", path: "/runtimes", summary: "Create a runtime from another", in: NewRuntime{}, out: ActionResult{}, handle: s.createRuntime},
		{method: "PUT", path: "/runtimes/{name}", summary: "Change a runtime", query: []string{"namespace"}, in: jobs.RuntimeSettings{}, out: ActionResult{}, handle: s.changeRuntime},
		{method: "DELETE", path: "/runtimes/{name}", summary: "Delete a runtime", query: []string{"namespace"}, out: ActionResult{}, handle: s.removeRuntime},
		{method: "GET", path: "/runtimes/{name}/jobs", summary: "The jobs of a runtime that have not ended", query: []string{"namespace"}, out: RuntimeJobs{}, handle: s.runtimeJobs},
		{method: "POST", path: "/runtimetests", summary: "Test a runtime", in: TestRequest{}, out: ActionResult{}, handle: s.test},
		{method: "GET", path: "/usage", summary: "What jobs have held", query: []string{"since", "until", "sort", "by", "namespace", "all"}, out: Usage{}, handle: s.usage},
	}
}
