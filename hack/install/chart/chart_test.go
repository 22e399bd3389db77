package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/hack/install/manifests"
)

const (
	root   = "../../.."
	folder = root + "/charts/mpijob-operator"
)

// current is a cluster of a recent Kubernetes, which reports what it serves.
var current = Cluster{Version: "v1.37.1", APIs: []string{
	"v1/Pod", "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy", "trainer.kubeflow.org/v1alpha1/ClusterTrainingRuntime",
	"monitoring.coreos.com/v1/ServiceMonitor",
}}

// values parses values that administrators set.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	var set map[string]any
	if err := yaml.Unmarshal([]byte(text), &set); err != nil {
		t.Fatal(err)
	}
	return set
}

var load = sync.OnceValues(func() (*chartv2.Chart, error) { return Load(folder) })

// chart returns the chart of the source tree.
func chart(t *testing.T) *chartv2.Chart {
	t.Helper()
	loaded, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func render(t *testing.T, text string, cluster Cluster) Rendered {
	t.Helper()
	rendered, err := Render(chart(t), manifests.Namespace, values(t, text), cluster)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

var built = map[string][]*unstructured.Unstructured{}

// build returns the objects of a folder of config, which takes a second for the CRDs.
func build(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	if built[folder] == nil {
		objects, err := manifests.Build(filepath.Join(root, "config", folder))
		if err != nil {
			t.Fatal(err)
		}
		built[folder] = objects
	}
	return built[folder]
}

// find returns an object by its kind and name.
func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	if i < 0 {
		t.Fatalf("the chart renders no %s %s", kind, name)
	}
	return objects[i]
}

func TestGeneratedTemplatesAreCurrent(t *testing.T) {
	want, err := Generate(root)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(folder, Folder))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
		text, err := os.ReadFile(filepath.Join(folder, Folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != want[entry.Name()] {
			t.Errorf("%s/%s does not follow from config/: run make chart, and commit what changes", Folder, entry.Name())
		}
	}
	if expected := slices.Sorted(maps.Keys(want)); !slices.Equal(names, expected) {
		t.Errorf("%s has the files %v, want %v: run make chart", Folder, names, expected)
	}
}

// TestChartEqualsManifests compares each object of the chart with that of kustomize. Intended differences: the namespace is that
// of the release, and not an object of it; Deployments are labeled with the version, as hack/deploy.sh and hack/release.sh do;
// CRDs are kept at uninstallation; an image without a tag has the tag latest.
func TestChartEqualsManifests(t *testing.T) {
	runtimes := "runtimes: {enabled: true, names: [openmpi, openmpi5, intel, mpich, horovod, deepspeed], agentDelivery: %s}\nplatform: %s"
	cases := map[string]struct {
		values  string
		folders []string
	}{
		"default":                   {"", []string{"default"}},
		"prometheus":                {"prometheus: {enabled: true}", []string{"default", "prometheus"}},
		"OpenShift's monitoring":    {"prometheus: {enabled: true, openshift: platform}", []string{"default", "prometheus-openshift"}},
		"user-workload monitoring":  {"prometheus: {enabled: true, openshift: user-workload}", []string{"default", "prometheus-user-workload"}},
		"dashboard":                 {"dashboard: {enabled: true}", []string{"default", "dashboard/base"}},
		"dashboard on OpenShift":    {"platform: openshift\ndashboard: {enabled: true}", []string{"default", "dashboard/openshift"}},
		"dashboard, external OIDC":  {"platform: openshift\ndashboard: {enabled: true, openshift: {auth: token}}", []string{"default", "dashboard/openshift-token"}},
		"runtimes on Kubernetes":    {fmt.Sprintf(runtimes, "init-container", "kubernetes"), []string{"default", "runtimes/kubernetes"}},
		"runtimes on OpenShift":     {fmt.Sprintf(runtimes, "init-container", "openshift"), []string{"default", "runtimes/openshift"}},
		"image volumes, Kubernetes": {fmt.Sprintf(runtimes, "image-volume", "kubernetes"), []string{"default", "runtimes/kubernetes-image-volume"}},
		"image volumes, OpenShift":  {fmt.Sprintf(runtimes, "image-volume", "openshift"), []string{"default", "runtimes/openshift-image-volume"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var want []*unstructured.Unstructured
			for _, folder := range c.folders {
				want = append(want, build(t, folder)...)
			}
			lines, err := Compare(render(t, c.values, current).Objects, want, "latest")
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range lines {
				t.Error(line)
			}
		})
	}
}

// TestCompareFindsChanges proves that the comparison above can fail.
func TestCompareFindsChanges(t *testing.T) {
	for name, c := range map[string]struct{ values, want string }{
		"other replicas":    {"replicas: 3", "Deployment.apps mpijob-system/mpijob-operator: spec.replicas is 3, want 2"},
		"no network policy": {"networkPolicy: {enabled: false}", "NetworkPolicy.networking.k8s.io mpijob-system/mpijob-operator: is missing"},
		"other image":       {"image: {tag: v1}", `Deployment.apps mpijob-system/mpijob-operator: spec.template.spec.containers[0].image is "quay.io/opendatahub/mpijob-operator:v1", want "quay.io/opendatahub/mpijob-operator:latest"`},
		"deleted with CRDs": {"crds: {keep: false}", `CustomResourceDefinition.apiextensions.k8s.io mpijobs.kubeflow.org: the annotation helm.sh/resource-policy is "", want "keep"`},
	} {
		t.Run(name, func(t *testing.T) {
			lines, err := Compare(render(t, c.values, current).Objects, build(t, "default"), "latest")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(lines, c.want) {
				t.Errorf("Compare finds\n%s\nwant the line\n%s", strings.Join(lines, "\n"), c.want)
			}
		})
	}
}

func TestLint(t *testing.T) {
	result := lint.RunAll(folder, nil, manifests.Namespace)
	for _, message := range result.Messages {
		if message.Severity > support.InfoSev {
			t.Errorf("helm lint: %s", message)
		}
	}
}

func TestSchemaRejects(t *testing.T) {
	for set, want := range map[string]string{
		"replica: 3":                         "replica",
		"replicas: two":                      "/replicas",
		"replicas: -1":                       "/replicas",
		"image: {tag: 1.5}":                  "/image/tag",
		"image: {digest: latest}":            "/image/digest",
		"image: quay.io/me/operator:v1":      "/image",
		"platform: OpenShift":                "/platform",
		"settings: {watchNamespaces: a}":     "/settings/watchNamespaces",
		"settings: {reports: {bytes: 1Gi}}":  "/settings/reports/bytes",
		"settings: {trainingProgress: 30}":   "/settings/trainingProgress",
		"runtimes: {names: [pytorch]}":       "/runtimes/names/0",
		"extraArgs: [log-level=debug]":       "/extraArgs/0",
		"imagePullSecrets: [secret]":         "/imagePullSecrets/0",
		"crds: {keep: 'no'}":                 "/crds/keep",
		"dashboard: {openshift: {hosts: a}}": "hosts",
	} {
		t.Run(set, func(t *testing.T) {
			_, err := Render(chart(t), manifests.Namespace, values(t, set), current)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Render = %v, want an error that names %s", err, want)
			}
		})
	}
}

// TestSchemaDescribesAllValues proves that values.yaml and its schema have the same settings.
func TestSchemaDescribesAllValues(t *testing.T) {
	var defaults map[string]any
	text, err := os.ReadFile(filepath.Join(folder, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &defaults); err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if text, err = os.ReadFile(filepath.Join(folder, "values.schema.json")); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var compare func(path string, values, schema map[string]any)
	compare = func(path string, values, schema map[string]any) {
		properties, is := schema["properties"].(map[string]any)
		if !is {
			return // free, as nodeSelector
		}
		if schema["additionalProperties"] != false {
			t.Errorf("%s: the schema allows unknown values", path)
		}
		for name, property := range properties {
			value, has := values[name]
			if !has && path+name != "global" && name != "claims" {
				t.Errorf("values.yaml does not have %s%s", path, name)
			}
			if value, is := value.(map[string]any); is {
				compare(path+name+".", value, property.(map[string]any))
			}
		}
		for name := range values {
			if properties[name] == nil {
				t.Errorf("the schema does not have %s%s", path, name)
			}
		}
	}
	compare("", defaults, schema)
}

const allSettings = `
settings:
  watchNamespaces: [a, b]
  clusterDomain: cluster.local
  agentDelivery: image-volume
  gangScheduling: none
  autoscaler: none
  sshKeyType: rsa-4096
  networkPolicies: false
  isolateAllTrainJobs: true
  requireEncryption: true
  allowEgress: ["10.0.0.7:2049", ns/minio:9000]
  logsLink: "https://logs/?q={name}"
  jobLinks: ["TensorBoard=https://tb/?run={name}", "MLflow=https://mlflow"]
  mask: [first, "sec(o)nd"]
  trainingProgress: "0"
  reports: {retention: 24h, perNamespace: 0, bytesPerNamespace: 16777216, bytes: 104857600, logBytes: 0}
  tls: {minVersion: VersionTLS13, cipherSuites: [A, B]}
  logLevel: debug
extraArgs: [--health-address=:8081]
`

func TestSettingsBecomeFlags(t *testing.T) {
	container := func(text string) map[string]any {
		deployment := find(t, render(t, text, current).Objects, "Deployment", "mpijob-operator")
		containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
		return containers[0].(map[string]any)
	}
	if args := container("")["args"]; args != nil {
		t.Errorf("without settings, the operator has the arguments %v, want none", args)
	}
	want := []any{
		"--watch-namespaces=a,b", "--cluster-domain=cluster.local", "--agent-delivery=image-volume", "--gang-scheduling=none",
		"--autoscaler=none", "--ssh-key-type=rsa-4096", "--network-policies=false", "--isolate-all-trainjobs=true", "--require-encryption=true",
		"--allow-egress=10.0.0.7:2049,ns/minio:9000", "--training-progress=0", "--report-retention=24h", "--max-reports=0",
		"--max-report-bytes=16777216", "--max-total-report-bytes=104857600", "--max-log-bytes=0", "--logs-link=https://logs/?q={name}", "--job-links=TensorBoard=https://tb/?run={name} MLflow=https://mlflow", "--tls-min-version=VersionTLS13",
		"--tls-cipher-suites=A,B", "--log-level=debug", "--mask=first", "--mask=sec(o)nd", "--health-address=:8081",
	}
	if got := container(allSettings)["args"]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the arguments are\n%v, want\n%v", got, want)
	}

	help, err := exec.CommandContext(t.Context(), "go", "run", "-C", root, "./cmd/operator", "--help").CombinedOutput()
	if err != nil && !strings.Contains(string(help), "Usage") {
		t.Fatalf("ask the operator for its flags: %v: %s", err, help)
	}
	for _, argument := range want {
		name, _, _ := strings.Cut(strings.TrimPrefix(argument.(string), "--"), "=")
		if !regexp.MustCompile(`(?m)^  -` + name + `\b`).Match(help) {
			t.Errorf("the operator has no flag --%s", name)
		}
	}
}

// TestTracing: the endpoint, protocol and CA of a collector become variables and a volume of the operator, before extraEnv. Without an
// endpoint there are none.
func TestTracing(t *testing.T) {
	const own = "extraEnv: [{name: OTEL_SERVICE_NAME, value: jobs}]"
	operator := func(text string) (env map[string]any, mounts, volumes any) {
		deployment := find(t, render(t, text, current).Objects, "Deployment", "mpijob-operator")
		pod, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template", "spec")
		container := pod["containers"].([]any)[0].(map[string]any)
		env = map[string]any{}
		for _, variable := range container["env"].([]any) {
			if name := variable.(map[string]any)["name"].(string); strings.HasPrefix(name, "OTEL_") {
				env[name] = variable.(map[string]any)["value"]
			}
		}
		return env, container["volumeMounts"], pod["volumes"]
	}
	if env, mounts, volumes := operator(""); len(env) > 0 || mounts != nil || volumes != nil {
		t.Errorf("without an endpoint, the operator has %v, %v, %v", env, mounts, volumes)
	}
	env, mounts, volumes := operator("{tracing: {endpoint: \"https://c:4317\", protocol: grpc, ca: {configMap: cas, key: service-ca.crt}}, " + own + "}")
	want := map[string]any{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		"OTEL_EXPORTER_OTLP_CERTIFICATE": "/etc/tracing/ca.crt", "OTEL_SERVICE_NAME": "jobs",
	}
	if fmt.Sprint(env) != fmt.Sprint(want) {
		t.Errorf("the variables are %v, want %v", env, want)
	}
	if got, want := fmt.Sprint(mounts, volumes), "[map[mountPath:/etc/tracing name:tracing readOnly:true]] [map[configMap:map[items:[map[key:service-ca.crt path:ca.crt]] name:cas] name:tracing]]"; got != want {
		t.Errorf("the volume is\n%s, want\n%s", got, want)
	}
	if env, mounts, _ := operator("tracing: {endpoint: \"http://c:4318\"}"); len(env) != 1 || mounts != nil {
		t.Errorf("an endpoint alone becomes %v, %v", env, mounts)
	}
}

// TestTrustedCA: operator and dashboard trust the certificates of a ConfigMap, which OpenShift can fill. By default there is none.
func TestTrustedCA(t *testing.T) {
	for set, want := range map[string]struct {
		configMap string
		created   bool
	}{
		"imageRegistry: ''":                                    {},
		"trustedCA: {configMap: cas, key: k}":                  {"cas", false},
		"trustedCA: {openshift: true}":                         {"mpijob-trusted-ca", true},
		"trustedCA: {configMap: cas, openshift: true, key: k}": {"cas", false},
	} {
		for _, platform := range []string{"kubernetes", "openshift"} {
			objects := render(t, set+"\nplatform: "+platform+"\ndashboard: {enabled: true, extraEnv: [{name: HTTPS_PROXY, value: p}]}\nextraEnv: [{name: HTTPS_PROXY, value: p}]", current).Objects
			created := slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "ConfigMap" && o.GetName() == "mpijob-trusted-ca" && o.GetLabels()["config.openshift.io/inject-trusted-cabundle"] == "true"
			})
			if created != want.created {
				t.Errorf("%s: the ConfigMap is created: %v, want %v", set, created, want.created)
			}
			for _, name := range []string{"mpijob-operator", "mpijob-dashboard"} {
				pod, _, _ := unstructured.NestedMap(find(t, objects, "Deployment", name).Object, "spec", "template", "spec")
				container := pod["containers"].([]any)[0].(map[string]any)
				variables, mounts, volumes := fmt.Sprint(container["env"]), fmt.Sprint(container["volumeMounts"]), fmt.Sprint(pod["volumes"])
				if !strings.Contains(variables, "name:HTTPS_PROXY value:p") {
					t.Errorf("%s: %s does not have the variable of extraEnv: %s", set, name, variables)
				}
				key := "ca-bundle.crt"
				if strings.Contains(set, "key: k") {
					key = "k"
				}
				for text, in := range map[string]string{
					"map[name:SSL_CERT_DIR value:/etc/mpijob/trusted-ca]":                                                      variables,
					"map[mountPath:/etc/mpijob/trusted-ca name:trusted-ca readOnly:true]":                                      mounts,
					"map[configMap:map[items:[map[key:" + key + " path:ca.crt]] name:" + want.configMap + "] name:trusted-ca]": volumes,
				} {
					if has := strings.Contains(in, text); has != (want.configMap != "") {
						t.Errorf("%s: %s has %s: %v, in %s", set, name, text, has, in)
					}
				}
			}
		}
	}
}

// TestLogBucket: the log bucket becomes flags of the operator and a volume with its credentials, beside that of traces.
func TestLogBucket(t *testing.T) {
	const values = `{settings: {logBucket: {name: logs, endpoint: "https://s3.example.com", retention: 72h, jobBytes: 1048576, secret: keys}}, tracing: {endpoint: "https://c:4317", ca: {configMap: cas, key: ca.crt}}}`
	deployment := find(t, render(t, values, current).Objects, "Deployment", "mpijob-operator")
	pod, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template", "spec")
	container := pod["containers"].([]any)[0].(map[string]any)
	if got, want := fmt.Sprint(container["args"]), "[--log-bucket=logs --log-bucket-endpoint=https://s3.example.com --log-bucket-retention=72h --log-bucket-job-bytes=1048576]"; got != want {
		t.Errorf("the flags are %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(container["volumeMounts"]), "[map[mountPath:/etc/tracing name:tracing readOnly:true] map[mountPath:/etc/mpijob/log-bucket name:log-bucket readOnly:true]]"; got != want {
		t.Errorf("the mounts are %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(pod["volumes"]), "[map[configMap:map[items:[map[key:ca.crt path:ca.crt]] name:cas] name:tracing] map[name:log-bucket secret:map[optional:true secretName:keys]]]"; got != want {
		t.Errorf("the volumes are %s, want %s", got, want)
	}
}

// TestDocumentedDefaults compares the defaults that the comments of values.yaml name with those of the operator.
func TestDocumentedDefaults(t *testing.T) {
	help, err := exec.CommandContext(t.Context(), "go", "run", "-C", root, "./cmd/operator", "--help").CombinedOutput()
	if err != nil && !strings.Contains(string(help), "Usage") {
		t.Fatalf("ask the operator for its flags: %v: %s", err, help)
	}
	text, err := os.ReadFile(filepath.Join(folder, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for value, flag := range map[string]string{
		"agentDelivery": "agent-delivery", "gangScheduling": "gang-scheduling", "autoscaler": "autoscaler", "sshKeyType": "ssh-key-type",
		"networkPolicies": "network-policies", "trainingProgress": "training-progress", "logBucket.retention": "log-bucket-retention", "reports.retention": "report-retention",
		"perNamespace": "max-reports", "bytesPerNamespace": "max-report-bytes", "bytes": "max-total-report-bytes", "logBytes": "max-log-bytes", "minVersion": "tls-min-version",
	} {
		described := regexp.MustCompile(`(?s)-` + flag + ` \w*\n[^\n]*\(default "?([^"\s)]+)"?\)`).FindSubmatch(help)
		if described == nil {
			described = regexp.MustCompile(`(?s)-` + flag + `\n[^\n]*\(default "?([^"\s)]+)"?\)`).FindSubmatch(help)
		}
		section, name, is := strings.Cut(value, ".")
		from := 0
		if !is {
			name = value
		} else if from = strings.Index(string(text), " "+section+":\n"); from < 0 {
			t.Fatalf("values.yaml has no %s", section)
		}
		commented := regexp.MustCompile(`(?m)Empty: ([A-Za-z0-9-]+).*\n *` + name + `:`).FindSubmatch(text[from:])
		if described == nil || commented == nil {
			t.Errorf("%s: the default is missing in the operator's help (%q) or in values.yaml (%q)", value, described, commented)
			continue
		}
		// Go writes 720h0m0s for 720h.
		if is, says := strings.TrimSuffix(string(described[1]), "0m0s"), string(commented[1]); is != says {
			t.Errorf("values.yaml has the default %s for %s, the operator has %s", says, value, is)
		}
	}
}

func TestImages(t *testing.T) {
	const digest = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	for set, want := range map[string]string{
		"":                                       "quay.io/opendatahub/mpijob-operator:latest",
		"imageRegistry: mirror.example.com:5000": "mirror.example.com:5000/opendatahub/mpijob-operator:latest",
		"image: {registry: '', repository: odh/op, tag: dev}": "odh/op:dev",
		"image: {tag: v1, digest: '" + digest + "'}":          "quay.io/opendatahub/mpijob-operator:v1@" + digest,
	} {
		rendered := render(t, set, current)
		for kind, objects := range map[string][]*unstructured.Unstructured{"Deployment": rendered.Objects, "Pod": rendered.Hooks} {
			name := map[string]string{"Deployment": "mpijob-operator", "Pod": "mpijob-operator-test"}[kind]
			path := map[string][]string{"Deployment": {"spec", "template", "spec", "containers"}, "Pod": {"spec", "containers"}}[kind]
			containers, _, _ := unstructured.NestedSlice(find(t, objects, kind, name).Object, path...)
			if got := containers[0].(map[string]any)["image"]; got != want {
				t.Errorf("%s: the image of the %s is %v, want %s", set, kind, got, want)
			}
		}
	}
}

// TestPodSettings proves that every setting of pods and containers reaches the Deployments.
func TestPodSettings(t *testing.T) {
	const pod = "nodeSelector: {a: b}, tolerations: [{key: x, operator: Exists}], affinity: {nodeAffinity: {c: {}}}, topologySpreadConstraints: [{maxSkew: 2}], priorityClassName: high"
	const container = "resources: {limits: {memory: 1Gi}}, image: {pullPolicy: Always}"
	objects := render(t, "{"+pod+", "+container+", dashboard: {enabled: true, "+pod+", "+container+", extraArgs: [--prometheus=URL]}, "+
		"imagePullSecrets: [{name: pull}], podLabels: {team: a}, podAnnotations: {note: m}, extraEnv: [{name: E, value: v}], goMemoryLimit: 900MiB}", current).Objects
	want := values(t, "{"+pod+", imagePullSecrets: [{name: pull}]}")
	for _, name := range []string{"mpijob-operator", "mpijob-dashboard"} {
		template, _, _ := unstructured.NestedMap(find(t, objects, "Deployment", name).Object, "spec", "template")
		spec := template["spec"].(map[string]any)
		for setting, value := range want {
			got := spec[setting]
			if setting == "affinity" && name == "mpijob-operator" { // Helm merges it with the default
				value.(map[string]any)["podAntiAffinity"] = got.(map[string]any)["podAntiAffinity"]
			}
			if fmt.Sprint(got) != fmt.Sprint(value) {
				t.Errorf("%s: %s is %v, want %v", name, setting, got, value)
			}
			delete(want["affinity"].(map[string]any), "podAntiAffinity")
		}
		is := spec["containers"].([]any)[0].(map[string]any)
		if is["imagePullPolicy"] != "Always" {
			t.Errorf("%s: the pull policy is %v, want Always", name, is["imagePullPolicy"])
		}
		if memory, _, _ := unstructured.NestedString(is, "resources", "limits", "memory"); memory != "1Gi" {
			t.Errorf("%s: the memory limit is %s, want 1Gi", name, memory)
		}
		if name == "mpijob-dashboard" {
			if args := is["args"].([]any); args[len(args)-1] != "--prometheus=URL" || len(args) < 2 {
				t.Errorf("the dashboard's arguments are %v, want --prometheus=URL at the end", args)
			}
			continue
		}
		if metadata := fmt.Sprint(template["metadata"]); !strings.Contains(metadata, "team:a") || !strings.Contains(metadata, "note:m") {
			t.Errorf("the pod has the metadata %s, want the label team and the annotation note", metadata)
		}
		if env := fmt.Sprint(is["env"]); !strings.Contains(env, "name:E value:v") || !strings.Contains(env, "name:GOMEMLIMIT value:900MiB") {
			t.Errorf("the environment is %s, want E and the memory limit of the garbage collector", env)
		}
	}
}

func TestCapabilities(t *testing.T) {
	kinds := func(rendered Rendered) map[string]int {
		count := map[string]int{}
		for _, object := range rendered.Objects {
			count[object.GetAPIVersion()+" "+object.GetKind()]++
		}
		return count
	}
	const policy = "admissionregistration.k8s.io/%s ValidatingAdmissionPolicy"
	for name, c := range map[string]struct {
		cluster Cluster
		values  string
		want    string // the version of policies
	}{
		"serves v1":              {current, "", "v1"},
		"serves v1beta1":         {Cluster{"v1.29.4", []string{"v1/Pod", "admissionregistration.k8s.io/v1beta1/ValidatingAdmissionPolicy"}}, "", "v1beta1"},
		"serves none":            {Cluster{"v1.29.4", []string{"v1/Pod"}}, "", ""},
		"not asked, 1.30":        {Cluster{Version: "v1.30.0"}, "", "v1"},
		"not asked, 1.29":        {Cluster{Version: "v1.29.0"}, "", ""},
		"not asked, 1.31 of GKE": {Cluster{Version: "v1.31.4-gke.1245000"}, "", "v1"},
		"set to v1beta1":         {Cluster{Version: "v1.29.0"}, "admissionPolicies: v1beta1", "v1beta1"},
		"set to none":            {current, "admissionPolicies: none", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rendered := render(t, c.values, c.cluster)
			for _, version := range []string{"v1", "v1beta1"} {
				count, want := kinds(rendered)[fmt.Sprintf(policy, version)], 0
				if version == c.want {
					want = 9
				}
				if count != want {
					t.Errorf("%d policies of %s, want %d", count, version, want)
				}
			}
			if warns := strings.Contains(rendered.Notes, "no ValidatingAdmissionPolicies"); warns != (c.want == "") {
				t.Errorf("the notes warn that there are no policies: %t, want %t", warns, c.want == "")
			}
		})
	}
	t.Run("OpenShift", func(t *testing.T) {
		openshift := current
		openshift.APIs = append(slices.Clone(current.APIs), "security.openshift.io/v1", "security.openshift.io/v1/SecurityContextConstraints")
		rendered := render(t, "dashboard: {enabled: true}", openshift)
		if kinds(rendered)["route.openshift.io/v1 Route"] != 1 {
			t.Error("on OpenShift, the dashboard has no Route")
		}
		if !strings.Contains(rendered.Notes, "OAuthClient") {
			t.Error("the notes do not name the OAuthClient that the dashboard waits for")
		}
		for _, auth := range []string{"oauth", "token"} {
			rendered := render(t, "dashboard: {enabled: true, openshift: {host: d.example.com, auth: "+auth+"}}", openshift)
			link := find(t, rendered.Objects, "ConsoleLink", "mpijob-dashboard")
			if href, _, _ := unstructured.NestedString(link.Object, "spec", "href"); href != "https://d.example.com" {
				t.Errorf("%s: the console's menu leads to %s", auth, href)
			}
			if needed := strings.Contains(rendered.Notes, "OAuthClient"); needed != (auth == "oauth") || kinds(rendered)["oauth.openshift.io/v1 OAuthClient"] != 0 {
				t.Errorf("%s: the notes name an OAuthClient: %t; the chart, which has no secrets, has %d", auth, needed, kinds(rendered)["oauth.openshift.io/v1 OAuthClient"])
			}
		}
	})
}

func TestMissingKindsAreNamed(t *testing.T) {
	for set, want := range map[string]string{
		"runtimes: {enabled: true}":   "install Kubeflow Trainer first",
		"prometheus: {enabled: true}": "install the Prometheus operator first",
	} {
		_, err := Render(chart(t), manifests.Namespace, values(t, set), Cluster{Version: "v1.37.1", APIs: []string{"v1/Pod"}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Render = %v, want an error with %q", set, err, want)
		}
		if _, err := Render(chart(t), manifests.Namespace, values(t, set), Cluster{Version: "v1.37.1"}); err != nil {
			t.Errorf("%s: without a cluster, Render = %v, want no error", set, err)
		}
	}
}

func TestOtherNamespace(t *testing.T) {
	rendered, err := Render(chart(t), "team-mpi", values(t, "prometheus: {enabled: true}\ndashboard: {enabled: true}"), current)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range append(rendered.Objects, rendered.Hooks...) {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), manifests.Namespace) {
			t.Errorf("%s names the namespace %s", manifests.Key(object), manifests.Namespace)
		}
	}
}

func TestOneReplicaHasNoDisruptionBudget(t *testing.T) {
	for _, object := range render(t, "replicas: 1", current).Objects {
		if object.GetKind() == "PodDisruptionBudget" {
			t.Error("the PodDisruptionBudget would prevent that the node of the only replica is drained")
		}
	}
}
