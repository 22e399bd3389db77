package dashboard_test

import (
	"bufio"
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

// TestStreamFiltersByRights reads the streams of two users while jobs of both change.
func TestStreamFiltersByRights(t *testing.T) {
	needsServer(t)
	one, two := namespace(t, "stream-one", "user"), namespace(t, "stream-two", "user")
	events := openStream(t, one["user"], "jobs/stream", "")
	if first := events.next(); first.name != "reset" {
		t.Fatalf("the first event is %q", first.name)
	}
	mpiJob(t, "stream-two", "hidden", nil)
	mpiJob(t, "stream-one", "shown", nil)
	event := events.next()
	if event.name != "rows" || !strings.Contains(event.data, "shown") || strings.Contains(event.data, "hidden") {
		t.Fatalf("the event is %+v", event)
	}
	// A stream that is opened again continues after its last event.
	events.close()
	must(t, api.Delete(t.Context(), &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: "stream-one", Name: "shown"}}))
	again := openStream(t, one["user"], "jobs/stream", event.id)
	if next := again.next(); !strings.Contains(next.data, `"removed":["`) || strings.Contains(next.data, "hidden") {
		t.Errorf("after a new connection the event is %+v", next)
	}
	again.close()
	if unknown := openStream(t, two["user"], "jobs/stream", "otherprocess.17").next(); unknown.name != "reset" {
		t.Errorf("a cursor of another process gets %+v", unknown)
	}
	if status, _ := (caller{t, "expired"}).send(http.MethodGet, "jobs/stream", nil); status != http.StatusUnauthorized {
		t.Errorf("a stream with an invalid token: status %d", status)
	}
}

func TestCreateCloneSuspendDelete(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "create", "user", "viewer")
	user := caller{t, tokens["user"]}
	request := dashboard.SpecRequest{Spec: jobs.Spec{Name: "train", Namespace: "create", Image: "quay.io/me/train", Workers: 2, CPU: "1", Memory: "1Gi"}, CommandLine: "python train.py", Description: "A *first* job", DryRun: true}
	draft := post[dashboard.Draft](user, "jobs", request)
	if draft.Problem != nil || draft.Created || len(draft.Words) == 0 || !strings.Contains(draft.Commands[0].Text, "create train --namespace create --workers 2 --image quay.io/me/train --cpu 1 --memory 1Gi --command 'python train.py'") {
		t.Fatalf("the draft is %+v", draft)
	}
	if list := get[jobList](user, "jobs?namespace=create"); list.Total != 0 {
		t.Fatal("a dry run has created a job")
	}
	request.DryRun = false
	if draft = post[dashboard.Draft](user, "jobs", request); !draft.Created {
		t.Fatalf("the job was not created: %+v", draft)
	}
	if draft = post[dashboard.Draft](user, "jobs", request); draft.Problem == nil || draft.Problem.Code != "Exists" {
		t.Errorf("a second job of the name: %+v", draft.Problem)
	}
	clone := post[dashboard.Draft](user, "namespaces/create/jobs/mpijob/train/clone", dashboard.CloneRequest{Changes: []string{"workers=3"}, DryRun: true})
	if clone.Name != "train-2" || !strings.Contains(clone.Diff, "+      replicas: 3") {
		t.Errorf("the clone is %s with the diff\n%s", clone.Name, clone.Diff)
	}
	if clone = post[dashboard.Draft](user, "namespaces/create/jobs/mpijob/train/clone", dashboard.CloneRequest{Changes: []string{"workers=3"}}); !clone.Created {
		t.Fatalf("the clone was not created: %+v", clone)
	}
	if result := post[dashboard.ActionResult](user, "namespaces/create/jobs/mpijob/train/suspend", struct{}{}); result.Result != "Suspended" {
		t.Errorf("suspend: %+v", result)
	}
	detail := get[dashboard.Detail](user, "namespaces/create/jobs/mpijob/train")
	if !detail.Can.Resume || detail.Can.Suspend || detail.Notes["openshift.io/description"] != "A *first* job" {
		t.Errorf("the suspended job is %+v", detail)
	}
	if result := post[dashboard.ActionResult](user, "namespaces/create/jobs/mpijob/train/resume", struct{}{}); result.Result != "Resumed" {
		t.Errorf("resume: %+v", result)
	}
	if status, body := user.send(http.MethodDelete, "namespaces/create/jobs/mpijob/train", nil); status != http.StatusOK {
		t.Errorf("delete: status %d: %s", status, body)
	}
	if status, body := user.send(http.MethodGet, "namespaces/create/jobs/mpijob/trian-2", nil); status != http.StatusNotFound || !strings.Contains(string(body), `"similar":["train-2"]`) {
		t.Errorf("a name with a typing error: status %d: %s", status, body)
	}
	viewer := post[dashboard.Draft](caller{t, tokens["viewer"]}, "jobs", request)
	if viewer.Created || viewer.Problem == nil || viewer.Problem.Code != "Forbidden" {
		t.Errorf("a viewer creates: %+v", viewer.Problem)
	}
}

// TestCloneForm clones a job through a form: it starts with the job's values, and keeps what it does not show.
func TestCloneForm(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "form", "user", "viewer")
	user := caller{t, tokens["user"]}
	spec := jobs.Spec{
		Name: "first", Namespace: "form", Image: "quay.io/me/train", Workers: 2, CPU: "1", Memory: "1Gi", Env: []corev1.EnvVar{{Name: "MODE", Value: "fast"}},
		Volumes: []jobs.Volume{{Source: jobs.VolumeClaim, Name: "data", Path: "/data"}}, RunAsUser: new(int64(1000)), Priority: "urgent", RDMA: "optional", TTL: new(time.Hour),
	}
	request := dashboard.SpecRequest{Spec: spec, CommandLine: "python train.py | tee log", FlagLine: "--bind-to core", Description: "A *first* job", DeadlineSeconds: 90, GangTimeoutSeconds: 600}
	first := post[dashboard.Draft](user, "jobs", request)
	if !first.Created {
		t.Fatalf("the job was not created: %+v", first.Problem)
	}
	for _, sentence := range []string{
		"mpirun gets the flags --bind-to core.", "Its priority class is urgent.", "The job is ended after 1 minute 30 seconds.",
		"All pods are scheduled together; an attempt ends if not all are scheduled after 10 minutes.",
		"Every rank gets 1 variable of yours: MODE.", "Its programs run as user 1000.", "If no node offers the RDMA that its pods request, the job runs over TCP.", "The job is deleted 1 hour after its end; its report is kept.", "Its description is: A *first* job",
	} {
		if !slices.Contains(first.Words, sentence) {
			t.Errorf("%q is missing in %q", sentence, first.Words)
		}
	}
	for _, flag := range []string{"--mpi-flags '--bind-to core'", "--gang-timeout 10m0s", "--rdma optional", "--ttl 1h0m0s", "--run-as-user 1000", "--priority urgent"} {
		if !strings.Contains(first.Commands[0].Text, flag) {
			t.Errorf("%s is missing in %s", flag, first.Commands[0].Text)
		}
	}
	for _, argument := range []string{`mpi_flags=["--bind-to", "core"]`, `gang_timeout="600s"`, `rdma="optional"`, `ttl="3600s"`, `priority="urgent"`, `run_as_user=1000`, `env={"MODE": "fast"}`} {
		if !strings.Contains(first.Commands[1].Text, argument) {
			t.Errorf("%s is missing in %s", argument, first.Commands[1].Text)
		}
	}

	form := get[dashboard.CloneForm](user, "namespaces/form/jobs/mpijob/first/form")
	asked := form.Request
	if asked.Spec.Name != "first-2" || asked.CommandLine != request.CommandLine || asked.FlagLine != request.FlagLine || asked.Description != request.Description || asked.DeadlineSeconds != 90 || asked.GangTimeoutSeconds != 600 || asked.Spec.Priority != "urgent" || asked.Original != "mpijob/first" {
		t.Errorf("the form is %+v", asked)
	}
	const mount = "spec.mpiReplicaSpecs.Worker.template.spec.containers[worker].volumeMounts[volume-0].mountPath"
	if !slices.Contains(form.Kept, mount) || strings.Contains(strings.Join(form.Kept, " "), "description") || slices.Contains(form.Kept, "spec.sshAuthMountPath") {
		t.Errorf("kept are %q", form.Kept)
	}
	asked.Spec.Workers, asked.Description, asked.DryRun = 3, "", true
	draft := post[dashboard.Draft](user, "jobs", asked)
	if draft.Problem != nil || !strings.Contains(draft.Diff, "+      replicas: 3") || !strings.Contains(draft.YAML, "mountPath: /data") || strings.Contains(draft.YAML, "description") || strings.Contains(draft.Diff+draft.Commands[0].Text, "managedFields") {
		t.Fatalf("the draft is %+v", draft)
	}
	if command := draft.Commands[0].Text; !strings.Contains(command, "clone mpijob/first first-2 -n form") || !strings.Contains(command, "spec.mpiReplicaSpecs.Worker.replicas=3") {
		t.Errorf("the command is %s", command)
	}
	asked.DryRun = false
	if draft = post[dashboard.Draft](user, "jobs", asked); !draft.Created || draft.Name != "first-2" {
		t.Errorf("the clone was not created: %+v", draft.Problem)
	}
	if asked.Original = "mpijob/absent"; post[dashboard.Draft](user, "jobs", asked).Problem.Code != "NotFound" {
		t.Error("a job that does not exist is cloned")
	}
	// A viewer sees the form, and is told that it may not create the clone. A stranger sees nothing.
	asked.Original, asked.Spec.Name = "mpijob/first", "first-3"
	if draft := post[dashboard.Draft](caller{t, tokens["viewer"]}, "jobs", asked); draft.Created || draft.Problem == nil || draft.Problem.Code != "Forbidden" {
		t.Errorf("a viewer clones: %+v", draft)
	}
	stranger := caller{t, namespace(t, "form-stranger", "user")["user"]}
	if status, body := stranger.send(http.MethodGet, "namespaces/form/jobs/mpijob/first/form", nil); status != http.StatusForbidden && status != http.StatusNotFound {
		t.Errorf("a stranger reads the form: status %d: %s", status, body)
	}
	asked.DryRun = true
	if draft := post[dashboard.Draft](stranger, "jobs", asked); draft.Problem == nil || draft.Diff != "" || draft.YAML != "" {
		t.Errorf("a stranger sees the job: %+v", draft)
	}

	// No specification describes a job without workers: the form is its YAML.
	mpiJob(t, "form", "alone", func(job *kubeflow.MPIJob) { delete(job.Spec.MPIReplicaSpecs, kubeflow.MPIReplicaTypeWorker) })
	if form := get[dashboard.CloneForm](user, "namespaces/form/jobs/mpijob/alone/form"); form.Note == "" || !strings.Contains(form.Request.YAML, "name: alone-2") || form.Request.Original != "" {
		t.Errorf("the form of a job without workers is %+v", form)
	}
	invalid := post[dashboard.Draft](user, "jobs", dashboard.SpecRequest{Spec: spec, CommandLine: "mpirun -n 2 x", FlagLine: "-n 3", GangTimeoutSeconds: 1 << 40, DryRun: true})
	var fields []string
	for _, field := range invalid.Problem.Fields {
		fields = append(fields, field.Field)
	}
	if !slices.Contains(fields, "mpiFlags") || !slices.Contains(fields, "gangTimeout") {
		t.Errorf("the errors are about %q", fields)
	}
}

// TestFlagsAndImagesOfRuntimes creates TrainJobs of runtimes with and without MPI.
func TestFlagsAndImagesOfRuntimes(t *testing.T) {
	needsServer(t)
	namespace(t, "form-runtimes", "user")
	admin := caller{t, administrator(t, "form-runtimes")}
	for name, policy := range map[string]string{"form-mpi": "mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI, runLauncherAsNode: true}", "form-torch": "torch: {}"} {
		var runtime unstructured.Unstructured
		must(t, yaml.Unmarshal([]byte(`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {namespace: form-runtimes, name: `+name+`}, spec: {mlPolicy: {numNodes: 1, `+policy+`}, template: {spec: {replicatedJobs: [{name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node, image: "quay.io/team/`+name+`:1"}]}}}}}]}}}}`), &runtime.Object))
		must(t, api.Create(t.Context(), &runtime))
	}
	mpiJob(t, "form-runtimes", "earlier", nil)
	images := get[dashboard.Choices](admin, "namespaces/form-runtimes/options").Images
	mpi, torch := slices.Index(images, "quay.io/team/form-mpi:1"), slices.Index(images, "quay.io/team/form-torch:1")
	if mpi < 1 || torch < 1 {
		t.Errorf("the images are %q; want those of jobs, and then those of runtimes", images)
	}

	request := dashboard.SpecRequest{Spec: jobs.Spec{Name: "first", Namespace: "form-runtimes", Runtime: "form-mpi", Workers: 2}, CommandLine: "python train.py", FlagLine: "--bind-to core", DryRun: true}
	draft := post[dashboard.Draft](admin, "jobs", request)
	if draft.Problem != nil || !slices.Contains(draft.Words, "mpirun gets the flags --bind-to core.") || !strings.Contains(draft.Commands[0].Text, "--mpi-flags '--bind-to core'") {
		t.Errorf("with a runtime of MPI, the draft is %+v, %+v", draft, draft.Problem)
	}
	if python := draft.Commands[1].Text; !strings.Contains(python, `command=["mpirun", "--tag-output", "--bind-to", "core", "-n", "2", "python", "train.py"]`) || strings.Contains(python, "mpi_flags") {
		t.Errorf("in Python it is %s", python)
	}
	for change, test := range map[string]struct {
		change func(*dashboard.SpecRequest)
		want   string
	}{
		"a runtime without MPI": {func(r *dashboard.SpecRequest) { r.Spec.Runtime = "form-torch" }, "mpiFlags cannot be set with runtime form-torch, which does not use MPI"},
		"a gang timeout":        {func(r *dashboard.SpecRequest) { r.GangTimeoutSeconds = 60 }, "gangTimeout"},
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

func TestInvalidRequestsListEveryError(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "invalid", "user")["user"]}
	draft := post[dashboard.Draft](user, "jobs", dashboard.SpecRequest{Spec: jobs.Spec{Name: "Not_DNS", CPU: "many", Memory: "-1Gi"}, DryRun: true})
	if draft.Problem == nil {
		t.Fatal("there is no problem")
	}
	var fields []string
	for _, field := range draft.Problem.Fields {
		fields = append(fields, field.Field)
	}
	if got := strings.Join(fields, " "); got != "name namespace image command workers cpu memory" {
		t.Errorf("errors of the fields %s", got)
	}
	for name, yaml := range map[string]string{
		"not YAML": "\tx: [", "no job": "kind: Pod\napiVersion: v1\nmetadata: {name: x}", "two jobs": "kind: List\nitems: [{kind: MPIJob}, {kind: MPIJob}]", "no name": "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob",
	} {
		if draft := post[dashboard.Draft](user, "jobs", dashboard.SpecRequest{Spec: jobs.Spec{Namespace: "invalid"}, YAML: yaml}); draft.Problem == nil || draft.Problem.Code != "Invalid" {
			t.Errorf("%s: %+v", name, draft)
		}
	}
	for _, path := range []string{
		"jobs?sort=color", "jobs?page=0", "jobs?size=100000", "jobs?phase=Happy", "usage?since=yesterday", "namespaces/invalid/jobs/pod/x", "namespaces/invalid/compare?job=x", "namespaces/invalid/jobs/mpijob/x/logs?to=noon",
		"namespaces/invalid/jobs/mpijob/x/logs?from=2026-11-21T13:00:00Z&to=2026-11-21T12:00:00Z",
	} {
		if status, body := user.send(http.MethodGet, path, nil); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d: %s", path, status, body)
		}
	}
	if status, body := user.send(http.MethodGet, "nothing", nil); status != http.StatusNotFound || !strings.Contains(string(body), "openapi.json") {
		t.Errorf("an unknown path: status %d: %s", status, body)
	}
	if status, body := user.send(http.MethodPost, "jobs", map[string]any{"spec": map[string]any{"name": "x", "wrokers": 2}}); status != http.StatusUnprocessableEntity || !strings.Contains(string(body), "wrokers") {
		t.Errorf("an unknown field: status %d: %s", status, body)
	}
}

func TestRequestsOfOtherSitesAreRefused(t *testing.T) {
	needsServer(t)
	token := namespace(t, "csrf", "user")["user"]
	mpiJob(t, "csrf", "kept", nil)
	send := func(method, path, kind string, headers map[string]string) int {
		request, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader("{}"))
		must(t, err)
		request.AddCookie(&http.Cookie{Name: "__Host-mpijob-login", Value: token})
		request.Header.Set("Content-Type", kind)
		for name, value := range headers {
			request.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(request)
		must(t, err)
		defer func() { _ = response.Body.Close() }()
		return response.StatusCode
	}
	job := "/api/v1/namespaces/csrf/jobs/mpijob/kept"
	for name, got := range map[string]int{
		"deletion by another site":         send(http.MethodDelete, job, "application/json", map[string]string{"Sec-Fetch-Site": "cross-site"}),
		"deletion by a site of the domain": send(http.MethodDelete, job, "application/json", map[string]string{"Sec-Fetch-Site": "same-site"}),
		"an old browser's other origin":    send(http.MethodPost, job+"/suspend", "application/json", map[string]string{"Origin": "https://evil.example"}),
		"a login by another site":          send(http.MethodPost, "/api/v1/login", "text/plain", map[string]string{"Sec-Fetch-Site": "cross-site"}),
	} {
		if got != http.StatusForbidden {
			t.Errorf("%s: status %d", name, got)
		}
	}
	if got := send(http.MethodPost, job+"/suspend", "text/plain", map[string]string{"Sec-Fetch-Site": "same-origin"}); got != http.StatusUnsupportedMediaType {
		t.Errorf("a form: status %d", got)
	}
	if got := send(http.MethodDelete, job, "application/json", map[string]string{"Sec-Fetch-Site": "same-origin"}); got != http.StatusOK {
		t.Errorf("deletion by the page: status %d", got)
	}
}

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

func TestListPagesSortsAndFilters(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "pages", "user")["user"]}
	for i := range 7 {
		job := mpiJob(t, "pages", fmt.Sprintf("job-%d", i), func(job *kubeflow.MPIJob) {
			job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(7 - int32(i))
			job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
		})
		phase := v1alpha1.PhaseRunning
		if i%2 == 1 {
			phase = v1alpha1.PhaseFailed
		}
		report(t, job, v1alpha1.JobReportStatus{Phase: phase, Workers: v1alpha1.WorkersStatus{Wanted: 7 - int32(i)}, Findings: []v1alpha1.Finding{{Code: "OutOfMemory", Severity: "Error"}}})
	}
	eventually(t, "all jobs and reports are listed", func() bool {
		return get[jobList](user, "jobs?namespace=pages&phase=Running,Failed").Total == 7
	})
	for query, want := range map[string]string{
		"sort=name&size=3":            "job-0 job-1 job-2",
		"sort=name&size=3&page=3":     "job-6",
		"sort=name&size=3&page=9":     "",
		"sort=-name&size=2":           "job-6 job-5",
		"sort=workers&size=2":         "job-6 job-5",
		"sort=-gpus&size=1":           "job-0",
		"sort=name&phase=Failed":      "job-1 job-3 job-5",
		"q=JOB-3":                     "job-3",
		"q=outofmem&size=1&sort=name": "job-0",
		"framework=PyTorch":           "",
	} {
		if got := names(get[jobList](user, "jobs?namespace=pages&"+query)); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	list := get[jobList](user, "jobs?namespace=pages&phase=Failed&sort=name")
	if list.Total != 3 || list.Facets["phase"]["Running"] != 4 || list.Rows[0].GPUs != 12 || list.Rows[0].Framework != "MPI" {
		t.Errorf("the list is %+v", list)
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

// stream is a stream of server-sent events.
type stream struct {
	t      *testing.T
	body   io.ReadCloser
	lines  *bufio.Scanner
	cancel func()
}

type streamEvent struct{ name, id, data string }

func openStream(t *testing.T, token, path, lastID string) *stream {
	t.Helper()
	return openStreamAt(t, address, token, path, lastID)
}

// openStreamAt opens a stream of the server at a URL.
func openStreamAt(t *testing.T, url, token, path, lastID string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/"+path, nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: status %d, %s", path, response.StatusCode, response.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	s := &stream{t, response.Body, lines, cancel}
	t.Cleanup(s.close)
	return s
}

func (s *stream) close() {
	s.cancel()
	_ = s.body.Close()
}

// next returns the next event that is not a heartbeat.
func (s *stream) next() streamEvent {
	s.t.Helper()
	var event streamEvent
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "event":
			event.name = value
		case "id":
			event.id = value
		case "data":
			event.data = value
		case "":
			if event.name != "" {
				return event
			}
		}
	}
	s.t.Fatalf("the stream ended: %v", s.lines.Err())
	return event
}
