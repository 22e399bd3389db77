package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"slices"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/jobs"
)

func TestUsersSeeNothingOfEachOther(t *testing.T) {
	needsServer(t)
	red, blue := namespace(t, "red", "user", "viewer", "nobody"), namespace(t, "blue", "user")
	job := mpiJob(t, "red", "secret-red", nil)
	report(t, job, v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseRunning, Message: "secret message"})
	mpiJob(t, "blue", "secret-blue", nil)
	redUser, blueUser, nobody := caller{t, red["user"]}, caller{t, blue["user"]}, caller{t, red["nobody"]}

	eventually(t, "the list has the job and its report", func() bool {
		list := get[dashboard.List](redUser, "jobs?namespace=red")
		return names(list) == "secret-red" && list.Rows[0].Phase == "Running"
	})
	eventually(t, "each user sees the own job only", func() bool {
		return names(get[dashboard.List](redUser, "jobs")) == "secret-red" && names(get[dashboard.List](blueUser, "jobs")) == "secret-blue"
	})
	if list := get[dashboard.List](nobody, "jobs"); list.Total != 0 || list.Visible != 0 || len(list.Facets) != 0 {
		t.Errorf("a user without rights gets %+v", list)
	}
	paths := []string{
		"namespaces/red/jobs/mpijob/secret-red", "namespaces/red/jobs/mpijob/secret-red/pods", "namespaces/red/jobs/mpijob/secret-red/events",
		"namespaces/red/jobs/mpijob/secret-red/yaml", "namespaces/red/jobs/mpijob/secret-red/logs", "namespaces/red/jobs/mpijob/secret-red/logs?download=true",
		"namespaces/red/jobs/mpijob/secret-red?uid=" + string(job.UID), "namespaces/red/compare?job=mpijob/secret-red&job=mpijob/secret-red",
		"usage?namespace=red", "quotas?namespace=red", "namespaces", "usage", "quotas", "runtimes", "namespaces/red/options", "jobs?namespace=red&q=secret",
	}
	for _, path := range paths {
		for who, user := range map[string]caller{"a user of another project": blueUser, "a user without rights": nobody} {
			if _, body := user.send(http.MethodGet, path, nil); strings.Contains(string(body), "secret message") || strings.Contains(string(body), string(job.UID)) && !strings.Contains(path, "uid=") || strings.Contains(string(body), "quay.io/team") {
				t.Errorf("%s reads of %s: %s", who, path, body)
			}
		}
		status, _ := caller{t, ""}.send(http.MethodGet, path, nil)
		if status != http.StatusUnauthorized {
			t.Errorf("%s without a token: status %d", path, status)
		}
	}
	for _, write := range []struct{ method, path string }{
		{http.MethodDelete, "namespaces/red/jobs/mpijob/secret-red"},
		{http.MethodPost, "namespaces/red/jobs/mpijob/secret-red/suspend"},
		{http.MethodPost, "namespaces/red/jobs/mpijob/secret-red/resume"},
		{http.MethodPost, "namespaces/red/jobs/mpijob/secret-red/clone"},
	} {
		if status, body := blueUser.send(write.method, write.path, map[string]any{}); status != http.StatusForbidden && status != http.StatusNotFound && status != http.StatusUnprocessableEntity {
			t.Errorf("%s %s by a user of another project: status %d: %s", write.method, write.path, status, body)
		}
	}
	viewer := caller{t, red["viewer"]}
	can := get[dashboard.Detail](viewer, "namespaces/red/jobs/mpijob/secret-red").Can
	if can.Delete || can.Suspend || can.Clone {
		t.Errorf("a viewer may %+v", can)
	}
	if status, body := viewer.send(http.MethodDelete, "namespaces/red/jobs/mpijob/secret-red", nil); status != http.StatusForbidden {
		t.Errorf("a viewer deletes: status %d: %s", status, body)
	}
	if names(get[dashboard.List](redUser, "jobs")) != "secret-red" {
		t.Error("the job was changed by users without the right")
	}
}

// TestFlagsAndImagesOfRuntimes creates TrainJobs of runtimes with and without MPI.
func TestFlagsAndImagesOfRuntimes(t *testing.T) {
	needsServer(t)
	namespace(t, "form-runtimes", "user")
	admin := caller{t, administrator(t, "form-runtimes")}
	for name, policy := range map[string]string{"form-mpi": "mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI, runLauncherAsNode: true}", "form-torch": "torch: {}"} {
		annotations := map[string]string{"form-mpi": "mpi.opendatahub.io/mpi-implementation: OpenMPI"}[name]
		var runtime unstructured.Unstructured
		must(t, yaml.Unmarshal([]byte(`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {namespace: form-runtimes, name: `+name+`, annotations: {`+annotations+`}}, spec: {mlPolicy: {numNodes: 1, `+policy+`}, template: {spec: {replicatedJobs: [{name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node, image: "quay.io/team/`+name+`:1"}]}}}}}]}}}}`), &runtime.Object))
		must(t, api.Create(t.Context(), &runtime))
	}
	mpiJob(t, "form-runtimes", "earlier", nil)
	images := get[dashboard.Choices](admin, "namespaces/form-runtimes/options").Images
	mpi, torch := slices.Index(images, "quay.io/team/form-mpi:1"), slices.Index(images, "quay.io/team/form-torch:1")
	if mpi < 1 || torch < 1 {
		t.Errorf("the images are %q; want those of jobs, and then those of runtimes", images)
	}

	request := dashboard.SpecRequest{Spec: jobs.Spec{Name: "first", Namespace: "form-runtimes", Runtime: "form-mpi", Workers: 2}, CommandLine: "python train.py", FlagLine: "--bind-to core", GangTimeoutSeconds: 60, DryRun: true}
	draft := post[dashboard.Draft](admin, "jobs", request)
	if draft.Problem != nil || !slices.Contains(draft.Words, "mpirun gets the flags --bind-to core.") || !strings.Contains(draft.Commands[0].Text, "--mpi-flags '--bind-to core'") || !strings.Contains(draft.Commands[0].Text, "--gang-timeout 1m0s") {
		t.Errorf("with a runtime of MPI, the draft is %+v, %+v", draft, draft.Problem)
	}
	if python := draft.Commands[1].Text; !strings.Contains(python, `mpi_flags=["--bind-to", "core"]`) || !strings.Contains(python, `command=["python", "train.py"]`) {
		t.Errorf("in Python it is %s", python)
	}
	for change, test := range map[string]struct {
		change func(*dashboard.SpecRequest)
		want   string
	}{
		"a runtime without MPI":  {func(r *dashboard.SpecRequest) { r.Spec.Runtime, r.GangTimeoutSeconds = "form-torch", 0 }, "mpiFlags cannot be set with runtime form-torch, which does not use MPI"},
		"a size of its launcher": {func(r *dashboard.SpecRequest) { r.Spec.LauncherCPU = "1" }, "launcherCpu"},
	} {
		changed := request
		test.change(&changed)
		problem := post[dashboard.Draft](admin, "jobs", changed).Problem
		if problem == nil || len(problem.Fields) != 1 || !strings.Contains(problem.Fields[0].Field+" "+problem.Fields[0].Reason, test.want) {
			t.Errorf("with %s, the problem is %+v", change, problem)
		}
	}
}

type jobList = dashboard.List

func TestLogin(t *testing.T) {
	needsServer(t)
	token := namespace(t, "login", "user")["user"]
	logIn := func(token string) *http.Response {
		response, err := http.Post(address+"/api/v1/login", "application/json", strings.NewReader(fmt.Sprintf(`{"token":%q}`, token)))
		must(t, err)
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return response
	}
	good := logIn(token)
	cookie := good.Header.Get("Set-Cookie")
	if good.StatusCode != http.StatusNoContent || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "Secure") || !strings.Contains(cookie, "SameSite=Strict") || !strings.HasPrefix(cookie, "__Host-") || strings.Contains(cookie, "Domain") {
		t.Errorf("status %d, cookie %q", good.StatusCode, strings.ReplaceAll(cookie, token, "TOKEN"))
	}
	for name, wrong := range map[string]string{"unknown": "abc.def.ghi", "with a line break": "abc\ndef", "too long": strings.Repeat("x", 5000), "empty": ""} {
		if response := logIn(wrong); response.StatusCode/100 != 4 || response.Header.Get("Set-Cookie") != "" {
			t.Errorf("a token that is %s: status %d", name, response.StatusCode)
		}
	}
	// The header of a proxy counts only if one is trusted.
	for trusted, want := range map[bool]int{true: http.StatusOK, false: http.StatusUnauthorized} {
		server, err := newServer(dashboard.Options{TrustProxy: trusted, BasePath: "/training"})
		must(t, err)
		request := httptest.NewRequest(http.MethodGet, "/training/api/v1/me", nil).WithContext(t.Context())
		request.Header.Set("X-Forwarded-Access-Token", token)
		recorder := httptest.NewRecorder()
		server.Handler().ServeHTTP(recorder, request)
		if recorder.Code != want || want == http.StatusOK && !strings.Contains(recorder.Body.String(), "system:serviceaccount:login:user") {
			t.Errorf("a proxy's token, trusted %v: status %d: %s", trusted, recorder.Code, recorder.Body)
		}
	}
}

func TestHostileTextsStayTexts(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "hostile", "user")["user"]}
	const script = `<script>alert(1)</script>`
	job := mpiJob(t, "hostile", "hostile", func(job *kubeflow.MPIJob) {
		job.Annotations = map[string]string{"openshift.io/description": script, "mpi.opendatahub.io/created-by": script}
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.Containers[0].Command = []string{"sh", "-c", script + "'; rm -rf /"}
	})
	report(t, job, v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseFailed, CompletionTime: &metav1.Time{Time: time.Now()}, Failure: &v1alpha1.Failure{Code: "X", Pod: "hostile-launcher", LogTail: []string{"[hostile-launcher] \x1b[31m" + script + "\x1b]0;title\x07", "[hostile-launcher] data: x", "[hostile-launcher] event: reset"}}})
	status, body := user.send(http.MethodGet, "namespaces/hostile/jobs/mpijob/hostile", nil)
	if status != http.StatusOK || strings.Contains(string(body), "<script>") {
		t.Errorf("status %d; JSON must escape markup: %s", status, body)
	}
	must(t, api.Delete(t.Context(), job))
	eventually(t, "the job is deleted", func() bool {
		status, _ := user.send(http.MethodGet, "namespaces/hostile/jobs/mpijob/hostile/yaml", nil)
		return status == http.StatusGone
	})
	_, logs := user.send(http.MethodGet, "namespaces/hostile/jobs/mpijob/hostile/logs", nil)
	if strings.ContainsAny(string(logs), "\x1b\x07") || strings.Contains(string(logs), "<script>") || strings.Contains(string(logs), "\nevent: reset") {
		t.Errorf("the log contains a control character, markup or an event: %q", logs)
	}
	if !strings.Contains(string(logs), "alert(1)") {
		t.Errorf("the log lines are missing: %q", logs)
	}
	for _, path := range []string{"/" + neturl.PathEscape(script), "/projects/" + neturl.PathEscape("../../etc/passwd") + "/mpijob/x", "/assets/..%2f..%2fgo.mod"} {
		response, err := http.Get(address + path)
		must(t, err)
		data, err := io.ReadAll(response.Body)
		must(t, err)
		_ = response.Body.Close()
		if strings.Contains(string(data), script) || strings.Contains(string(data), "opendatahub.io/mpijob") {
			t.Errorf("%s is reflected or reads a file: %s", path, data)
		}
		if policy := response.Header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") || !strings.Contains(policy, "script-src 'self';") {
			t.Errorf("%s has the policy %q", path, policy)
		}
	}
}

func TestLimits(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "limits", "user")["user"]}
	for name, test := range map[string]struct {
		size, status int
		want         string
	}{
		"1 MiB of YAML":    {1 << 20, http.StatusOK, "must contain one job"},
		"more than 1 MiB":  {1<<20 + 1<<10, http.StatusOK, "has 1025 KiB, which is more than the limit of 1024 KiB"},
		"a body of 3.3 MB": {3 << 20, http.StatusUnprocessableEntity, "larger than the limit of 2112 KiB"},
	} {
		text := strings.Repeat("#\n", test.size/2)
		if status, body := user.send(http.MethodPost, "jobs", dashboard.SpecRequest{YAML: text}); status != test.status || !strings.Contains(string(body), test.want) {
			t.Errorf("%s: status %d: %.200s", name, status, body)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/api/v1/jobs", nil)
	must(t, err)
	request.Header.Set("X-Large", strings.Repeat("x", 2<<20))
	if response, err := http.DefaultClient.Do(request); err == nil {
		if response.StatusCode < 400 {
			t.Errorf("2 MB of headers: status %d", response.StatusCode)
		}
		_ = response.Body.Close()
	}

	server, err := newServer(dashboard.Options{Listen: "127.0.0.1:0"})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	listening, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- server.Run(ctx, func(at net.Addr) { listening <- at.String() }) }()
	at := <-listening
	// A thousand idle connections do not keep others from being served.
	var idle []net.Conn
	for range 1000 {
		connection, err := net.Dial("tcp", at)
		must(t, err)
		idle = append(idle, connection)
	}
	began := time.Now()
	response, err := http.Get("http://" + at + "/healthz")
	must(t, err)
	_ = response.Body.Close()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("a request beside 1000 idle connections took %s", took)
	}
	// A client that does not finish its headers is disconnected after 5 s.
	slow := idle[0]
	_, err = slow.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n"))
	must(t, err)
	must(t, slow.SetReadDeadline(time.Now().Add(15*time.Second)))
	if _, err := io.ReadAll(slow); err != nil {
		t.Errorf("a slow client is still connected: %v", err)
	}
	for _, connection := range idle {
		_ = connection.Close()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if isListening(at) {
		t.Error("the server listens after its end")
	}
}

func TestDetailOfAFailedJob(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "failed", "user")["user"]}
	job := mpiJob(t, "failed", "oom", func(job *kubeflow.MPIJob) {
		job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"memory": resource.MustParse("4Gi")}
	})
	const field = "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].resources.limits.memory"
	report(t, job, v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseFailed, CompletionTime: &metav1.Time{Time: time.Now()},
		Findings: []v1alpha1.Finding{{Code: "OutOfMemory", Severity: v1alpha1.SeverityError, Summary: "Worker 1 used more than its limit of 4 GiB.", Remedies: []v1alpha1.Remedy{{Text: "Raise the limit; for a start 8 GiB", Action: field + ": 8Gi", Rerun: true, Changes: []v1alpha1.FieldChange{{Field: field, Value: "8Gi"}}}, {Text: "Use a smaller batch"}}}},
	})
	detail := get[dashboard.Detail](user, "namespaces/failed/jobs/mpijob/oom")
	remedy := detail.Findings[0].Remedies[0]
	if !remedy.Applicable || remedy.Changes[0] != field+"=8Gi" || !strings.Contains(remedy.Command, "oc odh mpijob clone oom -n failed --set") {
		t.Fatalf("the remedy is %+v", remedy)
	}
	if !detail.Findings[0].Guide || !strings.Contains(detail.Total, "GiB of memory") {
		t.Errorf("the guide is %t, the total is %q", detail.Findings[0].Guide, detail.Total)
	}
	help := get[dashboard.Help](user, "help")
	if at := slices.IndexFunc(help.Topics, func(topic codes.Topic) bool { return topic.Code == "OutOfMemory" }); at < 0 || help.Topics[at].Meaning == "" || len(help.Topics[at].Steps) == 0 {
		t.Errorf("the help does not explain OutOfMemory: %+v", help)
	}
	if detail.Findings[0].Remedies[1].Applicable {
		t.Error("a remedy without a change can be applied")
	}
	clone := post[dashboard.Draft](user, "namespaces/failed/jobs/mpijob/oom/clone", dashboard.CloneRequest{Changes: remedy.Changes, DryRun: true})
	if clone.Problem != nil || !strings.Contains(clone.Diff, "memory: 8Gi") {
		t.Errorf("the clone with the remedy: %+v", clone)
	}
}
