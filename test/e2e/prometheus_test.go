package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// TestPrometheus: a Prometheus with the configuration, the rules and the rights of config/prometheus scrapes the operator over verified
// TLS, and the agents. Alerts fire because of real faults and are resolved when these are mended, and the queries of all dashboards
// have results. Only intervals, and the times for which an alert waits, are shorter.
func TestPrometheus(t *testing.T) {
	needImage(t, "Prometheus", prometheusImage)
	jobs, limited := newNamespace(t), newNamespace(t)
	p := startPrometheus(t)

	// Without the right to read /metrics, it has no metrics of the operator.
	p.firing(t, `MPIJobOperatorDown{}`)
	p.targets(t, "mpijob-operator", operatorKey.Namespace, "down", "403")
	p.targets(t, "other-name", operatorKey.Namespace, "down", "certificate is valid for")
	p.allow(t, "reader.yaml")
	p.targets(t, "mpijob-operator", operatorKey.Namespace, "up", "")
	p.resolved(t, `MPIJobOperatorDown{}`)

	p.scrapeAgents(t, jobs)
	running := openMPI(jobs, 2, "mpirun", "-n", "4", "ranks", "--sleep", "600")
	running.Name = "running"
	create(t, running)
	runtimeIn(t, jobs, "mpi-openmpi")
	train := trainJob(t, jobs, "{numNodes: 2, command: [mpirun, -n, '2', ranks, --sleep, '600']}")
	train.SetName("train")
	createTrainJob(t, train)
	p.has(t, fmt.Sprintf(`mpijob_jobs_failed_total{namespace=%q, kind="MPIJob"} == 0`, jobs))

	mend := p.causeFaults(t, jobs, limited)
	for fault := range mend {
		p.firing(t, fault)
	}
	p.firingOnly(t, []string{jobs, limited}, slices.Collect(maps.Keys(mend)))
	waitFor(t, running, "the job runs", runs)
	reported(t, trainjob.Kind, jobs, "train", "the TrainJob runs", inPhase("Running"))
	p.targets(t, "mpijob-agents", jobs, "up", "")
	p.targets(t, "trainjob-agents", jobs, "up", "")
	// In a namespace without the NetworkPolicy, agents do not answer.
	p.targets(t, "mpijob-agents", limited, "down", "deadline exceeded")
	p.has(t, fmt.Sprintf(`sum(mpi_agent_ranks_running{namespace=%q, pod=~"running-worker-.*"}) == 4`, jobs))
	p.has(t, fmt.Sprintf(`mpi_agent_hosts_expected{namespace=%q, pod=~"train-launcher-.*"} >= 1`, jobs))

	for _, heal := range mend {
		heal()
	}
	for fault := range mend {
		p.resolved(t, fault)
	}
	p.firingOnly(t, []string{jobs, limited}, nil)
	p.dashboards(t, jobs, limited, running.Name)
	p.rules(t)
}

// causeFaults makes a fault for each of some alerts, and returns what mends it, by the alert with its labels.
func (p prometheus) causeFaults(t *testing.T, jobs, limited string) map[string]func() {
	t.Helper()
	mend := map[string]func(){}
	patch := func(object client.Object, text string) {
		t.Helper()
		if err := api.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(text))); err != nil {
			t.Fatal(err)
		}
	}

	pulls := openMPI(jobs, 1, "sleep", "600")
	pulls.Name, worker(pulls).Image = "pulls", "registry.invalid/team/train:1"
	create(t, pulls)
	mend[fmt.Sprintf(`MPIJobImagePullsFail{namespace=%q}`, jobs)] = func() { _ = api.Delete(t.Context(), pulls) }

	secretless := openMPI(jobs, 1, "sleep", "600")
	secretless.Name = "secretless"
	worker(secretless).EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "missing"}}}}
	create(t, secretless)
	mend[fmt.Sprintf(`MPIJobDoesNotStart{kind="MPIJob", namespace=%q}`, jobs)] = func() {
		create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: jobs, Name: "missing"}})
	}

	const seat = "example.com/seat-prometheus"
	seats(t, seat, 1, 1)
	gang := seated(jobs, "gang", seat, 2, "600")
	create(t, gang)
	mend[fmt.Sprintf(`MPIJobGangWaits{kind="MPIJob", namespace=%q}`, jobs)] = func() { seats(t, seat, 2, 2) }

	quotaIn(t, limited, "pods=2")
	full := openMPI(limited, 1, "sleep", "600")
	create(t, full)
	mend[fmt.Sprintf(`MPIJobQuotaNearlyUsed{namespace=%q, quota="team", resource="pods"}`, limited)] = func() {
		patch(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: limited, Name: "team"}}, `{"spec":{"hard":{"pods":"4"}}}`)
	}

	single := func(name string, command ...string) {
		job := openMPI(jobs, 0, command...)
		job.Name = name
		delete(job.Spec.MPIReplicaSpecs, kubeflow.MPIReplicaTypeWorker)
		create(t, job)
	}
	for i := range 3 {
		single(fmt.Sprintf("fails-%d", i), "false")
	}
	mend[fmt.Sprintf(`MPIJobsFail{namespace=%q}`, jobs)] = func() {
		for i := range 3 {
			single(fmt.Sprintf("succeeds-%d", i), "true")
		}
		// The dashboards have how long the start of MPI took from jobs that ended.
		for i := range 2 {
			job := openMPI(jobs, 1, "mpirun", "-n", "2", "ranks", "--sleep", "1")
			job.Name = fmt.Sprintf("computes-%d", i)
			create(t, job)
		}
	}
	return mend
}

// noData are what the queries may find nothing of, and why.
var noData = map[string]string{
	"mpijob_gpu_":               "the nodes have no GPUs",
	"mpi_agent_gpu":             "the nodes have no GPUs",
	"mpi_agent_cpu_limit_cores": "the job has no limit of CPUs",
	"_pressure_":                "the kernel may not measure pressure",
	"mpijob_queue_":             "there is no Kueue",
}

// dashboards asks all queries of the dashboards, with their variables set to namespaces and a job. All but noData have a result.
func (p prometheus) dashboards(t *testing.T, jobs, limited, job string) {
	t.Helper()
	paths, err := filepath.Glob("../../config/dashboards/*/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dashboards are found: %v", err)
	}
	asked := map[string]bool{}
	for _, path := range paths {
		values := strings.NewReplacer("$namespace", jobs+"|"+limited, "$queue", ".*", "$name", job)
		if strings.HasSuffix(path, "mpijob-job.json") {
			values = strings.NewReplacer("$namespace", jobs, "$name", job)
		}
		for _, query := range queriesOf(t, path) {
			asked[values.Replace(query)] = true
		}
	}
	if len(asked) < 45 {
		t.Errorf("only %d queries are found", len(asked))
	}
	empty := slices.Sorted(maps.Keys(asked))
	eventually(t, "the queries of the dashboards have results", 30*time.Second, func() error {
		empty = slices.DeleteFunc(empty, func(query string) bool {
			found := p.query(t, query)
			for metric := range noData {
				if strings.Contains(query, metric) {
					return true
				}
			}
			return found
		})
		if len(empty) > 0 {
			return fmt.Errorf("of %d queries, %d have none:\n%s", len(asked), len(empty), strings.Join(empty, "\n"))
		}
		return nil
	})
	t.Logf("%d queries of %d dashboards have results", len(asked), len(paths))
}

// variable is a query of values of a label, in Grafana's form.
var variable = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// queriesOf returns the queries of a dashboard for Grafana or Perses, and those of its variables.
func queriesOf(t *testing.T, path string) (queries []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard any
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var visit func(any)
	visit = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, one := range value {
				visit(one)
			}
		case map[string]any:
			for key, one := range value {
				query, is := one.(string)
				matchers, _ := value["matchers"].([]any)
				switch {
				case is && (key == "expr" || key == "query" && query != "prometheus"):
					queries = append(queries, query)
				case key == "labelName" && len(matchers) == 1:
					queries = append(queries, fmt.Sprintf("label_values(%s, %s)", matchers[0], query))
				}
				visit(one)
			}
		}
	}
	visit(dashboard)
	if len(queries) < 5 {
		t.Errorf("%s has only %d queries", path, len(queries))
	}
	return queries
}

// prometheusImage is what make prometheus-image builds.
const prometheusImage = "odh/prometheus:dev"

// prometheus is a Prometheus in a namespace of the cluster.
type prometheus struct{ namespace string }

// manifests reads a file of config/prometheus, for a Prometheus in this namespace instead of in "monitoring".
func (p prometheus) manifests(t *testing.T, file string) (objects []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../config/prometheus", file))
	if err != nil {
		t.Fatal(err)
	}
	replaced := strings.NewReplacer(": monitoring\n", ": "+p.namespace+"\n", "prometheus-k8s", "prometheus").Replace(string(text))
	for part := range strings.SplitSeq(replaced, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &object.Object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, object)
	}
	return objects
}

// allow creates the roles and bindings of a file of config/prometheus, with names of their own.
func (p prometheus) allow(t *testing.T, file string) {
	t.Helper()
	for _, object := range p.manifests(t, file) {
		object.SetName(object.GetName() + "-" + p.namespace)
		if name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name"); name == "mpijob-prometheus" {
			_ = unstructured.SetNestedField(object.Object, name+"-"+p.namespace, "roleRef", "name")
		}
		create(t, object)
		t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
	}
}

// scrapeAgents allows that the agents of a namespace are scraped: of MPIJobs as config/prometheus has it, and of the TrainJob "train".
func (p prometheus) scrapeAgents(t *testing.T, namespace string) {
	t.Helper()
	for _, policy := range p.manifests(t, "allow-agents.yaml") {
		policy.SetNamespace(namespace)
		ofTrainJob := policy.DeepCopy()
		ofTrainJob.SetName("train")
		_ = unstructured.SetNestedStringMap(ofTrainJob.Object, map[string]string{"jobset.sigs.k8s.io/jobset-name": "train"}, "spec", "podSelector", "matchLabels")
		create(t, policy)
		create(t, ofTrainJob)
	}
}

const scrapeInterval = "2s"

// longStart matches how long a job may start until an alert fires.
var longStart = regexp.MustCompile(`(mpijob_start_oldest_wait_seconds\{[^}]*\}\)\s*>)\s*\d+`)

// configuration returns the configuration and the rules of config/prometheus/plain, with short intervals and times, and a further job
// that expects the operator's certificate to have another name.
func configuration(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for name, change := range map[string]func(map[string]any){
		"prometheus.yaml": func(config map[string]any) {
			config["global"] = map[string]any{"scrape_interval": scrapeInterval, "evaluation_interval": scrapeInterval}
			jobs := config["scrape_configs"].([]any)
			for _, job := range jobs {
				job.(map[string]any)["scrape_interval"] = scrapeInterval
			}
			other := (&unstructured.Unstructured{Object: jobs[0].(map[string]any)}).DeepCopy().Object
			other["job_name"] = "other-name"
			_ = unstructured.SetNestedField(other, "mpijob-webhook.mpijob-system.example", "tls_config", "server_name")
			config["scrape_configs"] = append(jobs, other)
		},
		"rules.yaml": func(config map[string]any) {
			for _, group := range config["groups"].([]any) {
				for _, rule := range group.(map[string]any)["rules"].([]any) {
					if rule := rule.(map[string]any); rule["for"] != nil {
						rule["for"] = "5s"
						rule["expr"] = longStart.ReplaceAllString(rule["expr"].(string), "$1 5")
					}
				}
			}
		},
	} {
		text, err := os.ReadFile(filepath.Join("../../config/prometheus/plain", name))
		if err != nil {
			t.Fatal(err)
		}
		config := map[string]any{}
		if err := yaml.Unmarshal(text, &config); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		change(config)
		if text, err = yaml.Marshal(config); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "insecure_skip_verify") {
			t.Errorf("%s does not verify certificates", name)
		}
		files[name] = string(text)
	}
	return files
}

// startPrometheus starts a Prometheus that may discover its targets, and may not read the operator's metrics yet.
func startPrometheus(t *testing.T) prometheus {
	t.Helper()
	p := prometheus{newNamespace(t)}
	p.allow(t, "plain/rights.yaml")
	var certificate corev1.Secret
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: operatorKey.Namespace, Name: "mpijob-webhook-certificate"}, &certificate); err != nil {
		t.Fatal(err)
	}
	config := configuration(t)
	config["metrics-ca.crt"] = string(certificate.Data["metrics-ca.crt"])
	metadata := metav1.ObjectMeta{Namespace: p.namespace, Name: "prometheus"}
	create(t, &corev1.ServiceAccount{ObjectMeta: metadata})
	create(t, &corev1.ConfigMap{ObjectMeta: metadata, Data: config})
	pod := &corev1.Pod{ObjectMeta: metadata, Spec: corev1.PodSpec{
		ServiceAccountName: "prometheus",
		Containers: []corev1.Container{{
			Name: "prometheus", Image: prometheusImage, ImagePullPolicy: corev1.PullIfNotPresent, SecurityContext: restricted(),
			Args:           []string{"--config.file=/etc/mpijob/prometheus.yaml", "--storage.tsdb.path=/data"},
			ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: prometheusPort}}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/mpijob"}, {Name: "data", MountPath: "/data"}},
		}},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "prometheus"}}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}}
	create(t, pod)
	eventually(t, "Prometheus answers", time.Minute, func() error { return p.get(t, "status/buildinfo", nil, new(any)) })
	return p
}

var prometheusPort = intstr.FromInt32(9090)

// get asks the API of Prometheus, through the API server.
func (p prometheus) get(t *testing.T, path string, parameters map[string]string, into any) error {
	t.Helper()
	request := logs.CoreV1().RESTClient().Get().Namespace(p.namespace).Resource("pods").Name("prometheus:" + prometheusPort.String()).SubResource("proxy").Suffix("api/v1/" + path)
	for name, value := range parameters {
		request = request.Param(name, value)
	}
	text, err := request.DoRaw(t.Context())
	if err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status != "success" {
		return fmt.Errorf("the answer is %.200s: %w", text, err)
	}
	return nil
}

// query reports whether a query, or one of a variable, has a result that is a number. One that Prometheus rejects fails the test.
func (p prometheus) query(t *testing.T, query string) bool {
	t.Helper()
	if of := variable.FindStringSubmatch(query); of != nil {
		var values []string
		if err := p.get(t, "label/"+of[2]+"/values", map[string]string{"match[]": of[1]}, &values); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return len(values) > 0
	}
	var result struct {
		Result []struct{ Value [2]any }
	}
	if err := p.get(t, "query", map[string]string{"query": query}, &result); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	for _, one := range result.Result {
		if number, err := strconv.ParseFloat(fmt.Sprint(one.Value[1]), 64); err == nil && !math.IsNaN(number) {
			return true
		}
	}
	return false
}

// has waits until a query has a result.
func (p prometheus) has(t *testing.T, query string) {
	t.Helper()
	eventually(t, query, 30*time.Second, func() error {
		if !p.query(t, query) {
			return errors.New("it has no result")
		}
		return nil
	})
}

// targets waits until a job of Prometheus has targets in a namespace, and all are up or down, with words in the error.
func (p prometheus) targets(t *testing.T, job, namespace, health, says string) {
	t.Helper()
	eventually(t, "the targets of "+job+" are "+health, time.Minute, func() error {
		var found struct {
			ActiveTargets []struct {
				ScrapePool, ScrapeURL, Health, LastError string
				DiscoveredLabels                         map[string]string
			}
		}
		if err := p.get(t, "targets", map[string]string{"state": "active"}, &found); err != nil {
			return err
		}
		of := 0
		for _, target := range found.ActiveTargets {
			if target.ScrapePool != job || target.DiscoveredLabels["__meta_kubernetes_namespace"] != namespace {
				continue
			}
			if of++; target.Health != health || !strings.Contains(target.LastError, says) {
				return fmt.Errorf("%s is %s: %s", target.ScrapeURL, target.Health, target.LastError)
			}
		}
		if of == 0 {
			return errors.New("it has none")
		}
		return nil
	})
}

// alerts returns the alerts that fire, such as MPIJobsFail{namespace="a"}, with their summaries. The severity is left out.
func (p prometheus) alerts(t *testing.T) (map[string]string, error) {
	t.Helper()
	var found struct {
		Alerts []struct {
			Labels, Annotations map[string]string
			State               string
		}
	}
	if err := p.get(t, "alerts", nil, &found); err != nil {
		return nil, err
	}
	firing := map[string]string{}
	for _, alert := range found.Alerts {
		if alert.State != "firing" {
			continue
		}
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(alert.Labels)) {
			if name != "alertname" && name != "severity" {
				labels = append(labels, fmt.Sprintf("%s=%q", name, alert.Labels[name]))
			}
		}
		firing[alert.Labels["alertname"]+"{"+strings.Join(labels, ", ")+"}"] = alert.Annotations["summary"]
	}
	return firing, nil
}

// rules checks that Prometheus evaluates all rules without errors.
func (p prometheus) rules(t *testing.T) {
	t.Helper()
	var found struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := p.get(t, "rules", nil, &found); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, group := range found.Groups {
		for _, rule := range group.Rules {
			if n++; rule.Health != "ok" {
				t.Errorf("the rule %s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
	}
	t.Logf("%d rules are evaluated", n)
	if n < 20 {
		t.Error("rules are missing")
	}
}

// firing waits until an alert fires.
func (p prometheus) firing(t *testing.T, alert string) {
	t.Helper()
	eventually(t, alert+" fires", time.Minute, func() error {
		all, err := p.alerts(t)
		if err != nil {
			return err
		}
		if summary, fires := all[alert]; fires {
			t.Logf("%s: %s", alert, summary)
			return nil
		}
		return fmt.Errorf("these fire: %q", slices.Sorted(maps.Keys(all)))
	})
}

// resolved waits until an alert fires no more.
func (p prometheus) resolved(t *testing.T, alert string) {
	t.Helper()
	eventually(t, alert+" is resolved", time.Minute, func() error {
		all, err := p.alerts(t)
		if _, fires := all[alert]; fires {
			return errors.New("it fires")
		}
		return err
	})
}

// firingOnly checks which alerts of namespaces fire.
func (p prometheus) firingOnly(t *testing.T, namespaces, want []string) {
	t.Helper()
	all, err := p.alerts(t)
	if err != nil {
		t.Fatal(err)
	}
	for alert, summary := range all {
		isOurs := slices.ContainsFunc(namespaces, func(name string) bool { return strings.Contains(alert, fmt.Sprintf("namespace=%q", name)) })
		if isOurs && !slices.Contains(want, alert) {
			t.Errorf("%s fires: %s", alert, summary)
		}
	}
}
