package dashboard_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/web"
)

// TestPages runs the journeys of web/test/browser.mjs in Chromium. `make dashboard-test` runs it; the variables SCREENSHOTS and
// JOURNEY select a folder for screenshots, and journeys by their names.
func TestPages(t *testing.T) {
	needsServer(t)
	browser := os.Getenv("CHROMIUM")
	if browser == "" {
		t.Skip("SKIPPED: CHROMIUM names no browser; `make dashboard-test` does")
	}
	if status, body := (caller{t, ""}).send("GET", "me", nil); status != 401 {
		t.Fatalf("the server does not answer: status %d: %s", status, body)
	}
	tokens := namespace(t, "ml-team", "user", "viewer", "nobody", "admin")
	// The pages list the runtimes of the cluster, as on a cluster with Kubeflow Trainer.
	must(t, api.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "runtimes"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"trainer.kubeflow.org"}, Resources: []string{"clustertrainingruntimes"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"priorityclasses"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "get"}},
	}}))
	must(t, api.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "runtimes"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "runtimes"}, Subjects: []rbacv1.Subject{
		{Kind: "ServiceAccount", Namespace: "ml-team", Name: "user"}, {Kind: "ServiceAccount", Namespace: "ml-team", Name: "viewer"}, {Kind: "ServiceAccount", Namespace: "ml-team", Name: "admin"},
	}}))
	// The administrator of the project, and that of the cluster.
	tokens["manager"], tokens["admin"] = tokens["admin"], administrator(t, "ml-team")
	tokens["other"] = namespace(t, "other-team", "user")["user"]
	mpiJob(t, "other-team", "other-team-job", nil)
	tokens["limited"] = namespace(t, "full-team", "user")["user"]
	refuseJobs(t)
	fillMLTeam(t)
	hostileJob(t)

	list, err := json.Marshal(tokens)
	must(t, err)
	command := exec.CommandContext(t.Context(), "node", "test/browser.mjs")
	command.Dir = "../../web"
	url, control := behindSwitch(t)
	command.Env = append(os.Environ(), "DASHBOARD_URL="+url, "DASHBOARD_TOKENS="+string(list), "API_CONTROL="+control)
	command.Stdout, command.Stderr = t.Output(), t.Output()
	must(t, command.Run())
}

// behindSwitch starts a server that reaches the API server through a connection that POST /cut and POST /restore of the address
// control switch.
func behindSwitch(t *testing.T) (url, control string) {
	t.Helper()
	api, err := neturl.Parse(config.Host)
	must(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var mu sync.Mutex
	isCut, open := false, map[net.Conn]bool{}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", api.Host)
			mu.Lock()
			if err != nil || isCut {
				_ = from.Close()
				if err == nil {
					_ = to.Close()
				}
				mu.Unlock()
				continue
			}
			open[from], open[to] = true, true
			mu.Unlock()
			for a, b := range map[net.Conn]net.Conn{from: to, to: from} {
				go func() {
					_, _ = io.Copy(a, b)
					_ = a.Close()
					_ = b.Close()
					mu.Lock()
					defer mu.Unlock()
					delete(open, a)
				}()
			}
		}
	}()
	own := rest.AnonymousClientConfig(config)
	own.BearerToken, own.Host = ownToken, "https://"+listener.Addr().String()
	server, err := dashboard.New(own, dashboard.Options{Assets: web.Assets()}, time.Now)
	must(t, err)
	server.Watch(t.Context())
	pages := httptest.NewServer(server.Handler())
	t.Cleanup(pages.Close)
	switches := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		isCut = r.URL.Path == "/cut"
		for connection := range open {
			if isCut {
				_ = connection.Close()
			}
		}
	}))
	t.Cleanup(switches.Close)
	return pages.URL, switches.URL
}

// refuseJobs lets the API server refuse jobs: all in full-team, whose quota is used up, and one by its name in ml-team.
func refuseJobs(t *testing.T) {
	t.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "full-team", Name: "jobs"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/mpijobs.kubeflow.org": resource.MustParse("0"), "pods": resource.MustParse("10")}}}
	must(t, api.Create(t.Context(), quota))
	// The controller of quotas does not run here.
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{"count/mpijobs.kubeflow.org": resource.MustParse("0"), "pods": resource.MustParse("9")}}
	must(t, api.Status().Update(t.Context(), quota))
	for _, text := range []string{
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: refused}, spec: {matchConstraints: {resourceRules: [{apiGroups: [kubeflow.org], apiVersions: ["*"], operations: [CREATE], resources: [mpijobs]}]}, validations: [{expression: "object.metadata.name != 'refused'", message: "jobs of this name are not allowed here"}]}}`,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: refused}, spec: {policyName: refused, validationActions: [Deny]}}`,
	} {
		var object unstructured.Unstructured
		must(t, yaml.Unmarshal([]byte(text), &object.Object))
		must(t, api.Create(t.Context(), &object))
	}
}

// hostile is a text that runs a script where a page takes it for HTML, and writes on a terminal that takes its escapes.
const hostile = `</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">` + "\x1b[31mred\x1b[0m\x1b]0;title\x07\u202e\r\b"

// hostileMarkdown is a description that does so, or calls another site, where a page takes it for more than Markdown.
const hostileMarkdown = hostile + `

# [click](javascript:window.hacked=1) [data](data:text/html,<script>window.hacked=1</script>) [case](JaVaScRiPt:window.hacked=1) [tab](java&#x09;script:window.hacked=1)

![pixel&#x202e;&#27;](https://tracker.example/x.png) <a href="javascript:window.hacked=1">raw</a> &#27;[31m&#x202e;entity [relative](/logout) [mail](mailto:a@example.com)

<svg onload="window.hacked=1"></svg> [guide](https://example.com/guide)
`

// hostileJob creates a failed job with hostile texts wherever users, programs and images can put them.
func hostileJob(t *testing.T) {
	t.Helper()
	job := mpiJob(t, "ml-team", "hostile", func(job *kubeflow.MPIJob) {
		job.Annotations = map[string]string{"mpi.opendatahub.io/created-by": hostile, "openshift.io/description": hostileMarkdown, "openshift.io/display-name": hostile, "example.com/link": "javascript:window.hacked=1"}
		container := &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.Containers[0]
		container.Image, container.Command = "quay.io/"+hostile, []string{"sh", "-c", hostile}
		container.Env = []corev1.EnvVar{{Name: "HOSTILE", Value: hostile}}
	})
	now := metav1.Now()
	report(t, job, v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseFailed, Message: hostile, StartTime: &now, CompletionTime: &now, MPI: v1alpha1.MPIStatus{Implementation: "OpenMPI", SlotsPerWorker: 1},
		Run:      &v1alpha1.Run{MPIVersions: []string{hostile[:64]}},
		Pods:     []v1alpha1.PodStatus{{Role: "launcher", Name: "hostile-launcher", Node: hostile, Phase: "Failed", Reason: "<img src=x onerror=window.hacked=1>\x1b[31m"}},
		Failure:  &v1alpha1.Failure{Code: "ProgramFailed", Pod: "hostile-launcher", LogTail: []string{"[hostile-launcher] " + hostile, "[hostile-launcher] loss=0.5 " + hostile}},
		Training: &v1alpha1.Training{Loss: "<b>0.5</b>", Progress: "<i>5%</i>", At: now},
		Findings: []v1alpha1.Finding{{
			Code: "ProgramFailed", Severity: v1alpha1.SeverityError, Summary: hostile, Evidence: []string{hostile}, Affected: []string{hostile},
			Remedies: []v1alpha1.Remedy{{Text: hostile, Action: hostile, Changes: []v1alpha1.FieldChange{{Field: "spec.slotsPerWorker", Value: hostile}}, Rerun: true}},
		}},
		Timeline: []v1alpha1.TimelineEntry{{Time: now, Event: "<img src=x onerror=window.hacked=1>\x1b[31m", Detail: hostile}},
	})
	must(t, api.Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml-team", GenerateName: "hostile-"}, Reason: "Hostile", Message: hostile, Type: "Warning",
		InvolvedObject: corev1.ObjectReference{Kind: "MPIJob", Namespace: "ml-team", Name: "hostile"}, FirstTimestamp: metav1.Time{Time: now.Add(time.Minute)}, LastTimestamp: metav1.Time{Time: now.Add(time.Minute)},
	}))
}

// usageOf returns what the pods of a job used for a time, up to one: loading, then work with pauses, and a minute without measurements.
func usageOf(until time.Time, lasted time.Duration, pods ...string) *v1alpha1.Usage {
	seconds := int64(10)
	for lasted > 120*time.Duration(seconds)*time.Second {
		seconds *= 2
	}
	count := int(lasted.Seconds()) / int(seconds)
	since := metav1.Time{Time: until.Add(-time.Duration(int64(count)*seconds) * time.Second).Truncate(time.Second)}
	usage := &v1alpha1.Usage{Since: since, Until: metav1.Time{Time: until}, PointsSince: since, PointSeconds: seconds, Pods: int32(len(pods))}
	of := func(metric v1alpha1.MetricName, mean, peak, limit int64) v1alpha1.UsageMetric {
		m := v1alpha1.UsageMetric{Metric: metric, Mean: mean, P95: (mean + peak) / 2, Max: peak, Limit: limit}
		for i := range int64(count) {
			m.Points = append(m.Points, min(peak, mean*min(i, 12)/10)+(i*i*37)%(1+(peak-mean)/4))
		}
		if count > 60 {
			m.Points[50], m.Points[51] = -1, -1
		}
		return m
	}
	n := int64(len(pods))
	usage.Metrics = []v1alpha1.UsageMetric{
		of(v1alpha1.MetricCPU, n*3100, n*3900, n*4000), of(v1alpha1.MetricMemory, n*9300, n*11_800, n*16_384), of(v1alpha1.MetricThrottled, 8, 70, 0), of(v1alpha1.MetricCPUPressure, 30, 220, 0),
		of(v1alpha1.MetricIOPressure, 4, 90, 0), of(v1alpha1.MetricNetwork, n*80_000, n*210_000, 0), of(v1alpha1.MetricIO, n*1200, n*44_000, 0),
	}
	for i, pod := range pods {
		figures := []v1alpha1.UsageMetric{
			{Metric: v1alpha1.MetricCPU, Mean: 3100 - int64(200*i), P95: 3700, Max: 3990, Limit: 4000},
			{Metric: v1alpha1.MetricMemory, Mean: 9300, P95: 11_000, Max: 11_900, Limit: 16_384},
			{Metric: v1alpha1.MetricNetwork, Mean: 80_000, P95: 180_000, Max: 215_000},
		}
		usage.PerPod = append(usage.PerPod, v1alpha1.PodUsage{Pod: pod, Metrics: figures})
		usage.PerRank = append(usage.PerRank, v1alpha1.RankUsage{Rank: int32(2 * i), CPUMillicores: 1550, MemoryMiB: 4600}, v1alpha1.RankUsage{Rank: int32(2*i + 1), CPUMillicores: 1540, MemoryMiB: 5200})
	}
	return usage
}

// figuresOf returns the curves of a loss that falls, is no number from a point on, and of an accuracy and a rate.
func figuresOf(until time.Time, broken int) *v1alpha1.TrainingCurves {
	loss, accuracy := v1alpha1.TrainingCurve{Name: "loss", By: v1alpha1.CurveByStep, Width: 100}, v1alpha1.TrainingCurve{Name: "accuracy", By: v1alpha1.CurveByEpoch, Width: 1}
	rate := v1alpha1.TrainingCurve{Name: "samples_per_second", By: v1alpha1.CurveByTime, Width: 64}
	for i := range int64(100) {
		value := fmt.Sprintf("%.4g", 2.4/(1+float64(i)/8)+float64(i*i%7)/50)
		if i >= int64(broken) {
			value = "NaN"
		}
		loss.At, loss.Values = append(loss.At, 400*(i+1)), append(loss.Values, value)
		rate.At, rate.Values = append(rate.At, until.Unix()-100*(100-i)), append(rate.Values, fmt.Sprint(5000+i*i%170))
	}
	if broken < 100 {
		loss.NotFiniteAt = &loss.At[broken]
	}
	for i := range int64(7) {
		accuracy.At, accuracy.Values = append(accuracy.At, 1000*(i+1)), append(accuracy.Values, fmt.Sprintf("%.3f", 0.9-0.6/float64(i+1)))
	}
	return &v1alpha1.TrainingCurves{Until: metav1.NewMicroTime(until.Truncate(time.Microsecond)), Figures: []v1alpha1.TrainingCurve{loss, accuracy, rate}}
}

// profileOf returns where the time of eight ranks went, of which the others wait for rank 5.
func profileOf(until time.Time) *v1alpha1.Profile {
	profile := &v1alpha1.Profile{
		Until: metav1.Time{Time: until}, Since: &metav1.Time{Time: until.Add(-10_000 * time.Second)}, Runs: 2,
		Ranks: 8, Milliseconds: 80_000_000, CommunicationMilliseconds: 26_600_000, CommunicationPercent: 33, ImbalancePercent: 23,
		LateRank: &v1alpha1.LateRank{Rank: 5, WaitedMilliseconds: 2_400_000},
		Calls: []v1alpha1.ProfileCall{
			{Call: "MPI_Allreduce", Count: 3_296_000, Milliseconds: 21_700_000, Bytes: 44_030_000_000_000},
			{Call: "MPI_Bcast", Count: 412_000, Milliseconds: 1_520_000, Bytes: 98_700_000_000},
			{Call: "MPI_Waitall", Count: 82_400, Milliseconds: 379_000},
			{Call: "MPI_Barrier", Count: 41_200, Milliseconds: 990},
		},
		MessageSizes: []v1alpha1.MessageSizes{{UpToBytes: new(int64(64)), Count: 41_200}, {UpToBytes: new(int64(1 << 10))}, {UpToBytes: new(int64(16 << 10)), Count: 370_800}, {UpToBytes: new(int64(256 << 10))}, {UpToBytes: new(int64(4 << 20))}, {Count: 3_296_000}},
	}
	for rank := range int32(8) {
		waited := 3_200_000 + 10_000*int64(rank)
		if rank == 5 {
			waited = 830_000
		}
		profile.PerRank = append(profile.PerRank, v1alpha1.RankProfile{Rank: rank, Milliseconds: 10_000_000, CommunicationMilliseconds: waited})
	}
	return profile
}

// fillMLTeam creates jobs in all states, as the operator reports them.
func fillMLTeam(t *testing.T) {
	t.Helper()
	now := time.Now()
	at := func(ago time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-ago).Truncate(time.Second)} }
	large := func(workers int32, memory, gpus string) func(*kubeflow.MPIJob) {
		return func(job *kubeflow.MPIJob) {
			worker := job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker]
			worker.Replicas = new(workers)
			worker.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse(memory)},
				Limits:   corev1.ResourceList{"memory": resource.MustParse(memory), "nvidia.com/gpu": resource.MustParse(gpus)},
			}
			job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "gpu-queue"}
			job.Annotations = map[string]string{"mpi.opendatahub.io/created-by": "ada", "openshift.io/description": "Pre-training on the September data"}
		}
	}
	pods := func(name string, workers int32, phase, reason string) []v1alpha1.PodStatus {
		all := []v1alpha1.PodStatus{{Role: "launcher", Name: name + "-launcher-x7k2p", Node: "gpu-node-1", Phase: phase, Ready: phase == "Running"}}
		for i := range workers {
			pod := v1alpha1.PodStatus{Role: "worker", Index: i, Name: fmt.Sprintf("%s-worker-%d", name, i), Node: fmt.Sprintf("gpu-node-%d", i/2+1), Phase: phase, Ready: phase == "Running", Ranks: fmt.Sprintf("%d-%d", 2*i, 2*i+1)}
			if reason != "" && i == workers-1 {
				pod.Phase, pod.Ready, pod.Reason, pod.ExitCode = "Failed", false, reason, new(int32(137))
			}
			all = append(all, pod)
		}
		return all
	}
	mpi := v1alpha1.MPIStatus{Implementation: "OpenMPI", SlotsPerWorker: 2, Ranks: 8, SlotsExpected: 8, SlotsFound: 8, ConnectMilliseconds: 840}
	ran := &v1alpha1.Run{MPIVersions: []string{"Open MPI 5.0.6"}}
	used := &v1alpha1.Consumption{Until: *at(0), CPUCoreSeconds: 320_000, MemoryGiBSeconds: 1_200_000, GPUSeconds: map[string]int64{"nvidia.com/gpu": 80_000}}

	report(t, mpiJob(t, "ml-team", "bert-large", large(4, "64Gi", "2")), v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseRunning, Message: "4 of 4 workers running, launcher running.", MPI: mpi, Workers: v1alpha1.WorkersStatus{Summary: "4/4", Wanted: 4, Ready: 4, Running: 4},
		StartTime: at(3 * time.Hour), RunningTime: at(170 * time.Minute), Pods: pods("bert-large", 4, "Running", ""), Consumption: used,
		PhaseTimes:  []v1alpha1.PhaseTime{{Phase: "Pending", Since: *at(3 * time.Hour), Seconds: 1}, {Phase: "Queued", Since: *at(179 * time.Minute), Seconds: 420}, {Phase: "Initializing", Since: *at(171 * time.Minute), Seconds: 38}, {Phase: "Running", Since: *at(170 * time.Minute)}},
		Training:    &v1alpha1.Training{Epoch: "7", Step: "41200", Loss: "1.8342", Progress: "62%", At: *at(time.Minute)},
		EndEstimate: &v1alpha1.EndEstimate{First: 100_000, FirstAt: *at(150 * time.Minute), Reached: 620_000, ReachedAt: *at(time.Minute), Steps: 52, From: new(metav1.NewTime(now.Add(95 * time.Minute))), By: new(metav1.NewTime(now.Add(2 * time.Hour))), Message: "Expected end: " + now.Add(95*time.Minute).UTC().Format("2006-01-02 15:04") + " to " + now.Add(2*time.Hour).UTC().Format("15:04") + " UTC, by the average pace so far (62%)."},
		Curves:      figuresOf(now, 100),
		Usage:       usageOf(now, 169*time.Minute, "bert-large-worker-0", "bert-large-worker-1", "bert-large-worker-2", "bert-large-worker-3"),
		Profile:     profileOf(now),
		Links:       []v1alpha1.Link{{Title: "MLflow", URL: "https://mlflow.example.com/#/experiments/7"}, {Title: "TensorBoard", URL: "https://tensorboard.example.com/?run=bert-large"}},
		Waited:      &v1alpha1.Waited{Backend: "kueue", Queue: "gpu-queue", Pods: 5, Seconds: 420, Until: *at(171 * time.Minute)},
		Timeline:    []v1alpha1.TimelineEntry{{Time: *at(3 * time.Hour), Event: "Created", Detail: "by ada"}, {Time: *at(179 * time.Minute), Event: "Queued", Detail: "in gpu-queue, position 3"}, {Time: *at(171 * time.Minute), Event: "Admitted"}, {Time: *at(170 * time.Minute), Event: "Running", Detail: "launcher and 4 workers"}},
	})
	const memory = "spec.mpiReplicaSpecs.Worker.template.spec.containers[0].resources.limits.memory"
	byPipeline := func(job *kubeflow.MPIJob) {
		large(4, "4Gi", "1")(job)
		job.Annotations["mpi.opendatahub.io/created-by"] = "system:serviceaccount:ml-platform-experiments:nightly-training-pipeline"
	}
	report(t, mpiJob(t, "ml-team", "resnet-horovod", byPipeline), v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseFailed, Message: "Worker 3 used more than its limit of 4 GiB.", MPI: mpi, Run: ran, Workers: v1alpha1.WorkersStatus{Summary: "4", Wanted: 4, Failed: 1},
		StartTime: at(50 * time.Minute), RunningTime: at(48 * time.Minute), CompletionTime: at(3 * time.Minute), Pods: pods("resnet-horovod", 4, "Gone", "OOMKilled"), Consumption: used,
		PhaseTimes: []v1alpha1.PhaseTime{{Phase: "Pending", Since: *at(50 * time.Minute), Seconds: 1}, {Phase: "Initializing", Since: *at(49 * time.Minute), Seconds: 94}, {Phase: "Running", Since: *at(48 * time.Minute), Seconds: 2700}, {Phase: "Failed", Since: *at(3 * time.Minute)}},
		Failure:    &v1alpha1.Failure{Code: "OutOfMemory", Pod: "resnet-horovod-worker-3", Rank: new(int32(6)), ExitCode: new(int32(137))},
		Findings: []v1alpha1.Finding{
			{
				Code: "OutOfMemory", Severity: v1alpha1.SeverityError, Summary: "Worker 3 used more than its limit of 4 GiB and was ended by the kernel 45 minutes after the start.",
				Evidence: []string{"Container worker of resnet-horovod-worker-3: OOMKilled, exit code 137", "[resnet-horovod-launcher] mpirun noticed that process rank 6 with PID 0 on node worker-3 exited on signal 9 (Killed)"}, Affected: []string{"resnet-horovod-worker-3"},
				Remedies: []v1alpha1.Remedy{{Text: "Raise the memory limit of the workers; for a start 8 GiB.", Action: memory + ": 8Gi", Rerun: true, Changes: []v1alpha1.FieldChange{{Field: memory, Value: "8Gi"}}}, {Text: "Use a smaller batch, such as 64 instead of 128."}, {Text: "See how memory grew.", Action: "kubectl -n ml-team top pod"}},
			},
			{Code: "LauncherFailed", Severity: v1alpha1.SeverityInfo, Summary: "mpirun ended all ranks because one had ended."},
		},
		Timeline: []v1alpha1.TimelineEntry{{Time: *at(50 * time.Minute), Event: "Created", Detail: "by ada"}, {Time: *at(48 * time.Minute), Event: "Running"}, {Time: *at(4 * time.Minute), Event: "WorkerFailed", Detail: "worker 3: OOMKilled"}, {Time: *at(3 * time.Minute), Event: "Failed", Detail: "OutOfMemory"}},
	})
	report(t, mpiJob(t, "ml-team", "gpt-finetune", large(8, "128Gi", "4")), v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseQueued, Message: "Waits in gpu-queue at position 2.", MPI: mpi, Workers: v1alpha1.WorkersStatus{Summary: "0/8", Wanted: 8}, StartTime: at(12 * time.Minute),
		PhaseTimes: []v1alpha1.PhaseTime{{Phase: "Queued", Since: *at(12 * time.Minute)}},
		Scheduling: &v1alpha1.SchedulingStatus{Backend: "kueue", Queue: "gpu-queue", Position: new(int32(2)), Message: "32 GPUs requested, 4 of 12 free in gpu-queue.", WaitP50: new(int64(600)), WaitP90: new(int64(2400)), Samples: 14},
	})
	crashed := mpiJob(t, "ml-team", "crash", func(job *kubeflow.MPIJob) {
		pod := &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec
		pod.Volumes = []corev1.Volume{{Name: "results", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "results"}}}}
		pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "results", MountPath: "/results", SubPath: "crash"}}
		pod.Containers[0].Env = []corev1.EnvVar{{Name: "OUTPUT_DIR", Value: "/results"}}
	})
	failed := pods("crash", 2, "Failed", "Error")
	failed[2].ExitCode = new(int32(3))
	report(t, crashed, v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseFailed, Message: "The program failed.", MPI: mpi, Workers: v1alpha1.WorkersStatus{Summary: "2", Wanted: 2, Failed: 1},
		StartTime: at(20 * time.Minute), RunningTime: at(19 * time.Minute), CompletionTime: at(18 * time.Minute), Pods: failed,
		PhaseTimes: []v1alpha1.PhaseTime{{Phase: "Running", Since: *at(19 * time.Minute), Seconds: 60}, {Phase: "Failed", Since: *at(18 * time.Minute)}},
		Findings: []v1alpha1.Finding{{
			Code: "ApplicationFailed", Severity: v1alpha1.SeverityError, Summary: "The program failed in rank 2 with exit code 3: the batch is empty.", Affected: []string{"crash-worker-1"},
			Remedies: []v1alpha1.Remedy{{Text: "Read the output of this rank before it ended."}},
		}},
		Timeline: []v1alpha1.TimelineEntry{{Time: *at(20 * time.Minute), Event: "Created", Detail: "by ada"}, {Time: *at(18 * time.Minute), Event: "Failed", Detail: "ApplicationFailed"}},
	})
	image := mpiJob(t, "ml-team", "typo", nil)
	report(t, image, v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseInitializing, Message: "The image quay.io/team/trian:1.2 cannot be pulled.", MPI: mpi, Workers: v1alpha1.WorkersStatus{Summary: "0/4", Wanted: 4}, StartTime: at(4 * time.Minute),
		PhaseTimes: []v1alpha1.PhaseTime{{Phase: "Initializing", Since: *at(4 * time.Minute)}}, Pods: pods("typo", 4, "Pending", ""),
		Findings: []v1alpha1.Finding{{Code: "ImagePullFailed", Severity: v1alpha1.SeverityError, Summary: "The image quay.io/team/trian:1.2 does not exist.", Remedies: []v1alpha1.Remedy{{Text: "Correct the image."}}}},
	})
	profiled := func(job *kubeflow.MPIJob) {
		job.Annotations = map[string]string{"mpi.opendatahub.io/profile": "true"}
		job.Spec.RunPolicy.BackoffLimit = new(int32(0))
	}
	report(t, mpiJob(t, "ml-team", "pi", profiled), v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseSucceeded, Message: "The launcher succeeded.", MPI: mpi, Workers: v1alpha1.WorkersStatus{Summary: "4", Wanted: 4, Succeeded: 4}, StartTime: at(26 * time.Hour), RunningTime: at(26 * time.Hour), CompletionTime: at(25 * time.Hour),
		PhaseTimes: []v1alpha1.PhaseTime{{Phase: "Running", Since: *at(26 * time.Hour), Seconds: 3600}}, Pods: pods("pi", 4, "Gone", ""), Consumption: used,
		Usage: usageOf(now.Add(-25*time.Hour), 40*time.Second, "pi-worker-0"),
		Findings: []v1alpha1.Finding{{
			Code: "ProfileMissing", Severity: v1alpha1.SeverityInfo, Summary: "The job has no communication profile. No rank has counted its calls: the program is statically linked with MPI, or does not use MPI.",
			Remedies: []v1alpha1.Remedy{{Text: "If the job needs no profile, remove the annotation.", Action: "metadata.annotations[mpi.opendatahub.io/profile]"}},
		}},
	})
	gone := mpiJob(t, "ml-team", "deleted-job", nil)
	report(t, gone, v1alpha1.JobReportStatus{
		Phase: v1alpha1.PhaseFailed, MPI: mpi, StartTime: at(9 * time.Hour), CompletionTime: at(8 * time.Hour), Pods: pods("deleted-job", 2, "Gone", ""),
		Specification: &v1alpha1.Specification{Version: "1", Masked: 1, Manifest: `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: deleted-job}
spec:
  mpiReplicaSpecs:
    Launcher: {template: {spec: {containers: [{name: launcher, image: "quay.io/team/train:1", command: [mpirun, train], env: [{name: HF_TOKEN, value: "****"}]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: worker, image: "quay.io/team/train:1"}]}}}
`},
		Curves: figuresOf(now.Add(-8*time.Hour), 80),
		Usage:  usageOf(now.Add(-8*time.Hour), 20*time.Minute, "deleted-job-worker-0", "deleted-job-worker-1"),
		Failure: &v1alpha1.Failure{Code: "OutOfGPUMemory", Pod: "deleted-job-worker-1", LogTail: []string{
			"[deleted-job-launcher-x7k2p] [1,0]<stdout>:epoch 1, loss 2.31", "[deleted-job-launcher-x7k2p] [1,3]<stderr>:RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "[deleted-job-launcher-x7k2p] <img src=x onerror=window.hacked=1> \x1b[31mred\x1b[0m",
		}},
		Findings: []v1alpha1.Finding{{Code: "OutOfGPUMemory", Severity: v1alpha1.SeverityError, Summary: "Rank 3 ran out of GPU memory."}},
	})
	must(t, api.Delete(t.Context(), gone))
	must(t, api.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ml-team", Name: "team"}}))
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ml-team", Name: "compute"}}
	must(t, api.Create(t.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{
		Hard: corev1.ResourceList{"requests.cpu": resource.MustParse("128"), "requests.memory": resource.MustParse("1Ti"), "requests.nvidia.com/gpu": resource.MustParse("12"), "pods": resource.MustParse("50")},
		Used: corev1.ResourceList{"requests.cpu": resource.MustParse("64"), "requests.memory": resource.MustParse("512Gi"), "requests.nvidia.com/gpu": resource.MustParse("8"), "pods": resource.MustParse("10")},
	}
	must(t, api.Status().Update(t.Context(), quota))
	for _, event := range []corev1.Event{
		{Reason: "PodsStarting", Message: "0 of 4 workers running, launcher not started.", Type: "Normal", InvolvedObject: corev1.ObjectReference{Kind: "MPIJob", Namespace: "ml-team", Name: "bert-large"}},
		{Reason: "BackOff", Message: "Back-off pulling image", Type: "Warning", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ml-team", Name: "bert-large-worker-2"}, Count: 3},
	} {
		event.Namespace, event.GenerateName = "ml-team", "event-"
		event.FirstTimestamp, event.LastTimestamp = metav1.Time{Time: now.Add(time.Minute)}, metav1.Time{Time: now.Add(time.Minute)}
		must(t, api.Create(t.Context(), &event))
	}
	for _, text := range []string{
		`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: torch-distributed, labels: {trainer.kubeflow.org/framework: torch}}, spec: {mlPolicy: {numNodes: 1, torch: {}}, template: {spec: {replicatedJobs: []}}}}`,
		`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: ClusterTrainingRuntime, metadata: {name: mpi-openmpi, annotations: {mpi.opendatahub.io/max-workers: "16", mpi.opendatahub.io/max-gpus-per-worker: "8"}}, spec: {mlPolicy: {numNodes: 2, mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI, sshAuthMountPath: /home/mpi/.ssh, runLauncherAsNode: false}}, template: {spec: {replicatedJobs: [{name: launcher, template: {spec: {template: {spec: {containers: [{name: node, image: "quay.io/opendatahub/mpi-openmpi:5"}]}}}}}, {name: node, template: {spec: {template: {spec: {containers: [{name: node, image: "quay.io/opendatahub/mpi-openmpi:5"}]}}}}}]}}}}`,
		`{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: llama-sft, namespace: ml-team}, spec: {runtimeRef: {name: torch-distributed}, trainer: {numNodes: 2}}}`,
		`{apiVersion: quota.openshift.io/v1, kind: AppliedClusterResourceQuota, metadata: {name: research, namespace: ml-team}, spec: {quota: {}, selector: {}}, status: {total: {hard: {requests.cpu: "400", requests.nvidia.com/gpu: "32"}, used: {requests.cpu: "212", requests.nvidia.com/gpu: "20"}}, namespaces: []}}`,
		`{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: gpu-queue, namespace: ml-team}, spec: {clusterQueue: gpus}}`,
	} {
		var object unstructured.Unstructured
		must(t, yaml.Unmarshal([]byte(text), &object.Object))
		must(t, api.Create(t.Context(), &object))
	}
	test := &v1alpha1.RuntimeTest{ObjectMeta: metav1.ObjectMeta{Namespace: "ml-team", Name: "mpi-openmpi-1"}, Spec: v1alpha1.RuntimeTestSpec{RuntimeRef: v1alpha1.RuntimeReference{Name: "mpi-openmpi", Kind: "ClusterTrainingRuntime"}}}
	must(t, api.Create(t.Context(), test))
	test.Status = v1alpha1.RuntimeTestStatus{Phase: v1alpha1.TestPassed, Message: "All checks passed in 7 s.", Checks: []v1alpha1.RuntimeCheck{
		{Name: v1alpha1.CheckImagePull, Result: v1alpha1.CheckPass, Milliseconds: 2100},
		{Name: v1alpha1.CheckKeys, Result: v1alpha1.CheckPass},
		{Name: v1alpha1.CheckConnection, Result: v1alpha1.CheckPass, Milliseconds: 310},
		{Name: v1alpha1.CheckProcessStart, Result: v1alpha1.CheckPass, Milliseconds: 640},
		{Name: v1alpha1.CheckRanksDistinct, Result: v1alpha1.CheckPass},
		{Name: v1alpha1.CheckCommunication, Result: v1alpha1.CheckPass, Message: "Latency 10.7µs, bandwidth 1.862 GB/s between two pods on different nodes, measured with Open MPI 5.0.7."},
	}}
	must(t, api.Status().Update(t.Context(), test))
	user := caller{t, ownToken}
	eventually(t, "the server lists the jobs", func() bool {
		status, _ := user.send("GET", "jobs", nil)
		return status == 200
	})
}

// TestStreamReportsAnOutage reads the stream of the list while the API server is away.
func TestStreamReportsAnOutage(t *testing.T) {
	needsServer(t)
	token := namespace(t, "outage", "user")["user"]
	mpiJob(t, "outage", "before", nil)
	url, control := behindSwitch(t)
	turn := func(to string) {
		response, err := http.Post(control+"/"+to, "", nil)
		must(t, err)
		must(t, response.Body.Close())
	}
	eventually(t, "the server is ready", func() bool {
		response, err := http.Get(url + "/readyz")
		must(t, err)
		must(t, response.Body.Close())
		return response.StatusCode == http.StatusOK
	})
	events := openStreamAt(t, url, token, "jobs/stream", "")
	if first := events.next(); first.name != "reset" {
		t.Fatalf("the first event is %q", first.name)
	}
	turn("cut")
	if event := events.next(); !strings.Contains(event.data, `"stale":"The API server does not answer`) {
		t.Errorf("while the API server is away: %+v", event)
	}
	mpiJob(t, "outage", "meanwhile", nil)
	turn("restore")
	if event := events.next(); !strings.Contains(event.data, "meanwhile") && strings.Contains(event.data, "stale") {
		t.Errorf("when it answers again: %+v", event)
	}
}
