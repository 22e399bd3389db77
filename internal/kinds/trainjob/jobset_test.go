package trainjob_test

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// made is a JobSet as Trainer makes it.
const made = `
metadata: {name: pi, namespace: ns}
spec:
  suspend: false
  replicatedJobs:
  - name: node
    template: {spec: {template: {metadata: {labels: {a: b}}, spec: {
      initContainers: [{name: mpi-agent}],
      containers: [{name: node, image: runtimes, env: [{name: OURS, value: runtimes}, {name: BOTH, value: runtimes}], command: [serve]}, {name: other, image: others}],
      volumes: [{name: mpi-ssh-auth, secret: {items: [{key: ssh-privatekey, mode: 416, path: id_rsa}]}}]}}}}
  - name: launcher
    template: {spec: {template: {spec: {
      initContainers: [{name: mpi-agent}],
      containers: [{name: node, image: jobs, command: [mpirun, pi], args: [--fast]}]}}}}
  - name: dataset-initializer
    template: {spec: {template: {spec: {containers: [{name: dataset-initializer, image: initializers}]}}}}
`

// wired is what it becomes.
const wired = `
metadata: {name: pi, namespace: ns}
spec:
  suspend: false
  replicatedJobs:
  - name: node
    template: {spec: {template: {metadata: {labels: {a: b, sidecar.istio.io/inject: "false"}, annotations: {sidecar.istio.io/inject: "false"}}, spec: {automountServiceAccountToken: false, 
      initContainers: [{name: mpi-agent}],
      dnsConfig: {searches: [pi.ns.svc.cluster.local]},
      containers: [{name: node, image: jobs, env: [{name: OURS, value: runtimes}, {name: BOTH, value: jobs}, {name: THEIRS, valueFrom: {secretKeyRef: {name: s, key: k}}}], command: [serve]}, {name: other, image: others}],
      volumes: [{name: mpi-ssh-auth, secret: {items: [{key: ssh-privatekey, mode: 292, path: id_rsa}]}}]}}}}
  - name: launcher
    template: {spec: {template: {metadata: {labels: {sidecar.istio.io/inject: "false"}, annotations: {sidecar.istio.io/inject: "false"}}, spec: {automountServiceAccountToken: false, 
      initContainers: [{name: mpi-agent}],
      dnsConfig: {searches: [pi.ns.svc.cluster.local]},
      containers: [{name: node, image: jobs, command: [/opt/mpi-agent/mpi-agent, launch, --, mpirun, pi], args: [--fast]}]}}}}
  - name: dataset-initializer
    template: {spec: {template: {metadata: {labels: {sidecar.istio.io/inject: "false"}, annotations: {sidecar.istio.io/inject: "false"}}, spec: {automountServiceAccountToken: false, containers: [{name: dataset-initializer, image: initializers}]}}}}
`

func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// text is an object as YAML, in which numbers are alike whatever their types.
func text(t *testing.T, object map[string]any) string {
	t.Helper()
	data, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestWireTopology: launcher and workers are kept together, besides the affinity that they have; initializers are not.
func TestWireTopology(t *testing.T) {
	jobSet := tree(t, `
metadata: {name: pi, namespace: ns}
spec:
  replicatedJobs:
  - name: node
    template: {spec: {template: {spec: {affinity: {nodeAffinity: {}, podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a}]}}, containers: [{name: node}]}}}}
  - name: launcher
    template: {spec: {template: {spec: {containers: [{name: node}]}}}}
  - name: dataset-initializer
    template: {spec: {template: {spec: {containers: [{name: node}]}}}}
`)
	from := job(t, "{}")
	from.Annotations = map[string]string{mpi.AnnotationRequiredTopology: "topology.kubernetes.io/zone"}
	if err := trainjob.Wire(jobSet, from, ""); err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, part := range jobSet["spec"].(map[string]any)["replicatedJobs"].([]any) {
		pod := part.(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		data, err := yaml.Marshal(pod["affinity"])
		if err != nil {
			t.Fatal(err)
		}
		have[part.(map[string]any)["name"].(string)] = string(data)
	}
	const term = `  - labelSelector:
      matchLabels:
        jobset.sigs.k8s.io/jobset-name: pi
    topologyKey: topology.kubernetes.io/zone
`
	want := map[string]string{
		"node":                "nodeAffinity: {}\npodAffinity:\n  requiredDuringSchedulingIgnoredDuringExecution:\n  - topologyKey: a\n" + term,
		"launcher":            "podAffinity:\n  requiredDuringSchedulingIgnoredDuringExecution:\n" + term,
		"dataset-initializer": "null\n",
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("affinities are (-want +got):\n%s", diff)
	}
}

func TestWire(t *testing.T) {
	jobSet := tree(t, made)
	from := job(t, "{image: jobs, command: [mpirun, pi], env: [{name: BOTH, value: jobs}, {name: THEIRS, valueFrom: {secretKeyRef: {name: s, key: k}}}]}")
	if err := trainjob.Wire(jobSet, from, ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(t, tree(t, wired)), text(t, jobSet)); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
}

// TestWireRestarts: a TrainJob says how often JobSet starts it again if its program failed, whatever the runtime says. Disruptions do not
// count: without restarts they have the limit of the runtime. An exit code counts if the program itself may end with it.
func TestWireRestarts(t *testing.T) {
	const (
		failed  = "{name: programFailed, action: FailJobSet, onJobFailureReasons: [BackoffLimitExceeded]}"
		late    = "{name: tooLate, action: FailJobSet, onJobFailureReasons: [DeadlineExceeded]}"
		shipped = "maxRestarts: 100, restartStrategy: BlockingRecreate, rules: [" + failed + ", " + late + "]"
		drains  = "{name: disrupted, action: RestartJobSetAndIgnoreMaxRestarts, onJobFailureReasons: [PodFailurePolicy], targetReplicatedJobs: [launcher]}"

		disrupted = "[{action: FailJob, onExitCodes: {containerName: node, operator: In, values: [75]}}, {action: FailJob, onPodConditions: [{type: DisruptionTarget, status: 'True'}, {type: TerminatedByKueue, status: 'True'}]}]"
		code      = "{name: MPI_AGENT_EXIT_DISRUPTED, value: '75'}"
		counted   = "maxRestarts: 1, restartStrategy: BlockingRecreate"
		uncounted = counted + ", rules: [" + drains + "]"
	)
	tests := map[string]struct {
		retries string
		// policy is the runtime's failurePolicy, and pods the podFailurePolicy of its launcher.
		policy, pods, want string
		// container are fields of the launcher's container; the code of the runtimes if there are none.
		container string
	}{
		"3 retries": {retries: "3", policy: shipped, pods: disrupted, want: "maxRestarts: 3, restartStrategy: BlockingRecreate, rules: [" + late + ", " + drains + "]"},
		"none":      {retries: "0", policy: shipped, pods: disrupted, want: shipped},
		"none, with a runtime that restarts programs":  {retries: "0", policy: "maxRestarts: 5, rules: [" + late + "]", pods: disrupted, want: "maxRestarts: 5, rules: [" + failed + ", " + late + "]"},
		"none, with a runtime that restarts nothing":   {retries: "0", pods: disrupted},
		"3 retries, with a runtime without a policy":   {retries: "3", want: "maxRestarts: 3, restartStrategy: BlockingRecreate"},
		"with exit codes of programs":                  {retries: "1", pods: "[{action: FailJob, onExitCodes: {operator: In, values: [42]}}]", want: counted},
		"with exit codes of programs and disruptions":  {retries: "1", pods: "[{action: FailJob, onExitCodes: {containerName: node, operator: In, values: [42, 75]}}]", want: counted},
		"with exit codes of all containers":            {retries: "1", pods: "[{action: FailJob, onExitCodes: {operator: In, values: [75]}}]", want: counted},
		"with exit codes of another container":         {retries: "1", pods: "[{action: FailJob, onExitCodes: {containerName: other, operator: In, values: [75]}}]", want: counted},
		"with other conditions":                        {retries: "1", pods: "[{action: FailJob, onPodConditions: [{type: ConfigIssue}]}]", want: counted},
		"with disrupted pods that are replaced by Job": {retries: "1", pods: "[{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]", want: counted},
		"with disrupted pods alone":                    {retries: "1", pods: "[{action: FailJob, onPodConditions: [{type: DisruptionTarget}]}]", container: "{command: null}", want: counted},
		"with disrupted pods alone, under the agent":   {retries: "1", pods: "[{action: FailJob, onPodConditions: [{type: DisruptionTarget}]}]", want: uncounted},
		"the agent runs its command":                   {retries: "1", pods: disrupted, container: "{command: [/opt/mpi-agent/mpi-agent, launch, --, pi], env: [" + code + "]}", want: uncounted},
		"the agent has no code":                        {retries: "1", pods: disrupted, container: "{}", want: counted},
		"the agent has another code":                   {retries: "1", pods: disrupted, container: "{env: [{name: MPI_AGENT_EXIT_DISRUPTED, value: '76'}]}", want: counted},
		"the user takes the code away":                 {retries: "1", pods: disrupted, container: "{env: [" + code + ", {name: MPI_AGENT_EXIT_DISRUPTED, value: ''}]}", want: counted},
		"the code comes from elsewhere":                {retries: "1", pods: disrupted, container: "{env: [{name: MPI_AGENT_EXIT_DISRUPTED, valueFrom: {configMapKeyRef: {name: c, key: k}}}]}", want: counted},
		"the image runs its own command":               {retries: "1", pods: disrupted, container: "{command: null, env: [" + code + "]}", want: counted},
		"the agent does something else":                {retries: "1", pods: disrupted, container: "{command: [/opt/mpi-agent/mpi-agent, serve], env: [" + code + "]}", want: counted},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			jobSet := tree(t, made)
			spec := jobSet["spec"].(map[string]any)
			launcher := spec["replicatedJobs"].([]any)[1].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			if test.policy != "" {
				spec["failurePolicy"] = tree(t, "{"+test.policy+"}")
			}
			if test.pods != "" {
				launcher["podFailurePolicy"] = tree(t, "{rules: "+test.pods+"}")
			}
			container, _, _ := unstructured.NestedSlice(launcher, "template", "spec", "containers")
			if test.container == "" {
				test.container = "{env: [" + code + "]}"
			}
			maps.Copy(container[0].(map[string]any), tree(t, test.container))
			if err := unstructured.SetNestedSlice(launcher, container, "template", "spec", "containers"); err != nil {
				t.Fatal(err)
			}
			from := job(t, "{}")
			from.Annotations = map[string]string{mpi.AnnotationMaxRestarts: test.retries}
			if err := trainjob.Wire(jobSet, from, ""); err != nil {
				t.Fatal(err)
			}
			policyOf := func(jobSet map[string]any) string {
				policy, _ := jobSet["spec"].(map[string]any)["failurePolicy"].(map[string]any)
				return text(t, policy)
			}
			want := text(t, tree(t, "{"+test.want+"}"))
			if test.want == "" {
				want = text(t, nil)
			}
			if diff := cmp.Diff(want, policyOf(jobSet)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
			// What JobSet does not limit, the launcher's agent does, whatever the user sets.
			if isLimited, uncounted := strings.Contains(text(t, jobSet), "name: MPI_AGENT_RESTART\n"), strings.Contains(test.want, "IgnoreMaxRestarts"); isLimited != uncounted {
				t.Errorf("the agent limits restarts: %t, want %t:\n%s", isLimited, uncounted, text(t, jobSet))
			}
			if limit := regexp.MustCompile(`name: MPI_AGENT_MAX_RESTARTS\n +value: "(\d+)"`).FindStringSubmatch(text(t, jobSet)); limit != nil && limit[1] != "10"+test.retries {
				t.Errorf("the limit is %v", limit)
			}
			applied := tree(t, wired)
			trainjob.Keep(applied, jobSet, false)
			if diff := cmp.Diff(want, policyOf(applied)); diff != "" {
				t.Errorf("applied again: want -, got +\n%s", diff)
			}
		})
	}
	from := job(t, "{}")
	from.Annotations = map[string]string{mpi.AnnotationMaxRestarts: "often"}
	if err := trainjob.Wire(tree(t, wired), from, ""); err == nil || !strings.Contains(err.Error(), "integer from 0 to 100") {
		t.Errorf("with another word: %v", err)
	}
}

// TestConnections: launcher and workers get them, before what the runtime gives; nobody else does; and they stay. What
// RDMA needs, in the templates of the runtime or patched into the JobSet by Trainer, stays as it is.
func TestConnections(t *testing.T) {
	const fabric = `limits: {rdma/hca: "1"}`
	const network = `annotations: {k8s.v1.cni.cncf.io/networks: fabric/rdma`
	changed := strings.NewReplacer("name: node, image: runtimes", "name: node, resources: {"+fabric+"}, envFrom: [{configMapRef: {name: mine}}], image: runtimes",
		"name: node, image: jobs", "name: node, resources: {"+fabric+"}, image: jobs",
		"metadata: {labels: {a: b}}", "metadata: {labels: {a: b}, "+network+"}}",
		"{spec: {template: {spec: {\n      initContainers", "{spec: {template: {metadata: {"+network+"}}, spec: {\n      initContainers").Replace(made)
	jobSet := tree(t, changed)
	from := job(t, "{command: [mpirun, pi]}")
	from.Annotations = map[string]string{mpi.AnnotationConnections: "data, ns/results"}
	if err := trainjob.Wire(jobSet, from, ""); err != nil {
		t.Fatal(err)
	}
	got := text(t, jobSet)
	const first = "envFrom:\n              - secretRef:\n                  name: data\n              - secretRef:\n                  name: results\n"
	if n := strings.Count(got, first); n != 2 {
		t.Errorf("%d containers have them, want launcher and worker:\n%s", n, got)
	}
	if !strings.Contains(got, first+"              - configMapRef:\n                  name: mine\n") {
		t.Errorf("the runtime's own does not follow:\n%s", got)
	}
	if n := strings.Count(got, "rdma/hca: \"1\""); n != 2 {
		t.Errorf("%d containers have the RDMA device, want launcher and worker:\n%s", n, got)
	}
	if n := strings.Count(got, "k8s.v1.cni.cncf.io/networks: fabric/rdma"); n != 2 {
		t.Errorf("%d pods have the network, want launcher and worker:\n%s", n, got)
	}
	again := tree(t, changed)
	trainjob.Keep(again, jobSet, false)
	if diff := cmp.Diff(got, text(t, again)); diff != "" {
		t.Errorf("they do not stay: want -, got +\n%s", diff)
	}

	from.Annotations[mpi.AnnotationConnections] = "other/data"
	if err := trainjob.Wire(tree(t, made), from, ""); err == nil || !strings.Contains(err.Error(), "another namespace") {
		t.Errorf("of another namespace: %v", err)
	}
}

// TestGracePeriodIsPassedOn: the agents know the grace period of pods that set one.
func TestGracePeriodIsPassedOn(t *testing.T) {
	jobSet := tree(t, strings.Replace(made, "{a: b}}, spec: {", "{a: b}}, spec: {terminationGracePeriodSeconds: 300,", 1))
	if err := trainjob.Wire(jobSet, job(t, "{command: [mpirun, pi]}"), ""); err != nil {
		t.Fatal(err)
	}
	if got := text(t, jobSet); strings.Count(got, "name: MPI_AGENT_GRACE\n                value: 300s") != 1 {
		t.Errorf("the workers' agent lacks the grace period:\n%s", got)
	}
}

// TestAddressWaitIsPassedOn: the agents of launcher and workers know how long a pod may have no node, unless the job says it, also when
// Trainer applies the JobSet again.
func TestAddressWaitIsPassedOn(t *testing.T) {
	jobSet, from := tree(t, made), job(t, "{command: [mpirun, pi], env: [{name: MPI_AGENT_ADDRESS_WAIT, value: 1h}]}")
	if err := trainjob.Wire(jobSet, from, ""); err != nil {
		t.Fatal(err)
	}
	trainjob.PassAddressWait(jobSet, 12*time.Minute)
	got := text(t, jobSet)
	if strings.Count(got, "name: MPI_AGENT_ADDRESS_WAIT") != 2 || strings.Count(got, "value: 12m0s") != 1 || strings.Count(got, "value: 1h") != 1 {
		t.Errorf("want the operator's in the launcher, to which Trainer gives the job's variables, and the job's in the workers:\n%s", got)
	}
	again := tree(t, made)
	trainjob.Keep(again, jobSet, false)
	if diff := cmp.Diff(got, text(t, again)); diff != "" {
		t.Errorf("they do not stay: want -, got +\n%s", diff)
	}
}

// TestCoresArePassedOn: the agents of launcher and workers know how many cores a worker may own, if it may.
func TestCoresArePassedOn(t *testing.T) {
	for cores, want := range map[int64]int{0: 0, 4: 2} {
		jobSet := tree(t, made)
		if err := trainjob.Wire(jobSet, job(t, "{command: [mpirun, pi]}"), ""); err != nil {
			t.Fatal(err)
		}
		trainjob.PassCores(jobSet, cores)
		if got := strings.Count(text(t, jobSet), "name: MPI_AGENT_CORES"); got != want {
			t.Errorf("%d cores: %d pods have the variable, want %d", cores, got, want)
		}
	}
}

// TestGPUsAreNotMeasured: the agents of pods that request no GPUs measure none, unless the job says it.
func TestGPUsAreNotMeasured(t *testing.T) {
	for name, test := range map[string]struct {
		trainer string
		gpus    bool
		want    int
	}{
		"none":              {"{command: [mpirun, pi]}", false, 2},
		"in the workers":    {"{command: [mpirun, pi]}", true, 1},
		"none, but measure": {"{command: [mpirun, pi], env: [{name: MPI_AGENT_MEASURE_GPUS, value: 'true'}]}", false, 1},
	} {
		jobSet := tree(t, made)
		if test.gpus {
			jobSet = tree(t, strings.Replace(made, "{name: node, image: runtimes,", "{name: node, image: runtimes, resources: {limits: {nvidia.com/gpu: 1}},", 1))
		}
		if err := trainjob.Wire(jobSet, job(t, test.trainer), ""); err != nil {
			t.Fatal(err)
		}
		if err := trainjob.PassGPUs(jobSet); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text(t, jobSet), "name: MPI_AGENT_MEASURE_GPUS\n                value: \"false\""); got != test.want {
			t.Errorf("%s: %d pods have the variable, want %d\n%s", name, got, test.want, text(t, jobSet))
		}
	}
}

// TestProfileIsPassedOn: the agents of launcher and workers know that the job asks for a profile, if it does.
func TestProfileIsPassedOn(t *testing.T) {
	for value, want := range map[string]int{"": 0, "false": 0, "true": 2} {
		jobSet, from := tree(t, made), job(t, "{command: [mpirun, pi]}")
		from.Annotations = map[string]string{mpi.AnnotationProfile: value}
		if value == "" {
			from.Annotations = nil
		}
		if err := trainjob.Wire(jobSet, from, ""); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text(t, jobSet), "name: MPI_AGENT_PROFILE\n                value: /opt/mpi-agent/run/profile"); got != want {
			t.Errorf("%q: %d pods have the variable, want %d", value, got, want)
		}
	}
}

// TestKeep: whatever Trainer applies later, the JobSet stays in these fields what it was made as, wired or, from before
// the operator, not; and everything else changes.
func TestKeep(t *testing.T) {
	for name, before := range map[string]string{"wired": wired, "not wired": made} {
		t.Run(name, func(t *testing.T) {
			applied := tree(t, strings.Replace(made, "suspend: false", "suspend: true", 1))
			trainjob.Keep(applied, tree(t, before), false)
			if diff := cmp.Diff(text(t, tree(t, strings.Replace(before, "suspend: false", "suspend: true", 1))), text(t, applied)); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
		})
	}
}

// TestPriorityIsPassedOn: all pods have the class of the TrainJob in place of the runtime's, also after Trainer applied the JobSet again. A
// wrong one is refused.
func TestPriorityIsPassedOn(t *testing.T) {
	from := job(t, "{numNodes: 3}")
	ofRuntime := strings.Replace(made, "{a: b}}, spec: {", "{a: b}}, spec: {priorityClassName: low, priority: 7,", 1)
	tests := map[string]struct {
		made, class             string
		urgent, low, priorities int
	}{
		"a class":                           {made: made, class: "urgent", urgent: 3},
		"none":                              {made: made},
		"a class in place of the runtime's": {made: ofRuntime, class: "urgent", urgent: 3},
		"the runtime's":                     {made: ofRuntime, low: 1, priorities: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			jobSet := tree(t, test.made)
			if from.Annotations = map[string]string{mpi.AnnotationPriorityClass: test.class}; test.class == "" {
				from.Annotations = nil
			}
			if err := trainjob.Wire(jobSet, from, ""); err != nil {
				t.Fatal(err)
			}
			got := text(t, jobSet)
			for field, want := range map[string]int{"priorityClassName: urgent": test.urgent, "priorityClassName: low": test.low, "priority: 7": test.priorities} {
				if n := strings.Count(got, field); n != want {
					t.Errorf("%d templates have %s, want %d:\n%s", n, field, want, got)
				}
			}
			applied := tree(t, test.made)
			trainjob.Keep(applied, jobSet, false)
			if diff := cmp.Diff(got, text(t, applied)); diff != "" {
				t.Errorf("applied again: want -, got +\n%s", diff)
			}
		})
	}
	from.Annotations = map[string]string{mpi.AnnotationPriorityClass: ""}
	if err := trainjob.Wire(tree(t, made), from, ""); err == nil || !strings.Contains(err.Error(), "priority-class]: Invalid value") {
		t.Errorf("a class without a name: %v", err)
	}
}

// TestUseKeys: pods mount the operator's keys, also after Trainer applied the JobSet again; other volumes stay.
func TestUseKeys(t *testing.T) {
	const trainers = `
spec:
  replicatedJobs:
  - name: node
    template: {spec: {template: {spec: {volumes: [{name: data, secret: {secretName: data}}, {name: mpi-ssh-auth, secret: {secretName: pi-mpi-ssh-auth}}]}}}}
  - name: dataset-initializer
    template: {spec: {template: {spec: {containers: [{name: dataset-initializer}]}}}}
`
	jobSet := tree(t, trainers)
	trainjob.UseKeys(jobSet, "pi.ssh")
	want := text(t, tree(t, strings.Replace(trainers, "pi-mpi-ssh-auth", "pi.ssh", 1)))
	if diff := cmp.Diff(want, text(t, jobSet)); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	applied := tree(t, trainers)
	trainjob.Keep(applied, jobSet, false)
	if diff := cmp.Diff(want, text(t, applied)); diff != "" {
		t.Errorf("after Trainer applied it again: want -, got +\n%s", diff)
	}
}

// TestRemoveRDMA: no pod of the JobSet requests RDMA, also not after Trainer applied it again, and other requests stay.
func TestRemoveRDMA(t *testing.T) {
	const requesting = `
metadata: {name: pi, namespace: ns}
spec:
  replicatedJobs:
  - name: node
    template: {spec: {template: {spec: {initContainers: [{name: init, resources: {limits: {rdma/hca: 1}}}], containers: [{name: node, resources: {limits: {cpu: 2, rdma/hca: "1"}, requests: {rdma/hca: "1"}}}, {name: other}]}}}}
  - name: launcher
    template: {spec: {template: {spec: {containers: [{name: node, resources: {requests: {cpu: 1}}}]}}}}
`
	jobSet := tree(t, requesting)
	pods, err := trainjob.PodSpecs(jobSet)
	if err != nil || len(pods) != 2 || !mpi.LacksRDMA(pods, []corev1.ResourceList{{"cpu": resource.MustParse("1")}}) {
		t.Fatalf("the pods are %+v (%v)", pods, err)
	}
	trainjob.RemoveRDMA(jobSet)
	want := strings.NewReplacer("{name: pi, namespace: ns}", `{name: pi, namespace: ns, labels: {mpi.opendatahub.io/without-rdma: "true"}}`, `, rdma/hca: "1"`, "", "rdma/hca: 1", "", `rdma/hca: "1"`, "").Replace(requesting)
	if diff := cmp.Diff(text(t, tree(t, want)), text(t, jobSet)); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	again := tree(t, requesting)
	trainjob.Keep(again, jobSet, false)
	if diff := cmp.Diff(text(t, jobSet), text(t, again)); diff != "" {
		t.Errorf("applied again: want -, got +\n%s", diff)
	}
	if _, err := trainjob.PodSpecs(tree(t, "{spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: 7}}}}}]}}")); err == nil {
		t.Error("pods that are none are read")
	}
}

// TestJobWithoutRDMA: the job of a marked JobSet requests what its pods do.
func TestJobWithoutRDMA(t *testing.T) {
	from := job(t, "{resourcesPerNode: {limits: {cpu: 2, rdma/hca: 1}}}")
	for name, labels := range map[string]map[string]string{"marked": {mpi.LabelWithoutRDMA: "true"}, "not marked": nil} {
		converted, _ := trainjob.Job{TrainJob: from, Runtime: base(t), JobSet: &metav1.ObjectMeta{Labels: labels}}.Convert()
		if got, want := mpi.RequestsRDMA(converted.PodSpecs()), labels == nil; got != want {
			t.Errorf("%s: requests RDMA: %v, want %v", name, got, want)
		}
	}
}

func TestPods(t *testing.T) {
	pod := func(name, job, index, restart string, second int) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.Unix(int64(second), 0),
			Labels: map[string]string{
				"jobset.sigs.k8s.io/replicatedjob-name": job, "jobset.sigs.k8s.io/restart-attempt": restart,
				"batch.kubernetes.io/job-completion-index": index, "jobset.sigs.k8s.io/job-index": "0",
			},
		}}
	}
	launchers, workers := trainjob.Pods(base(t), []*corev1.Pod{
		pod("of-the-try-before", "node", "0", "0", 1),
		pod("second", "launcher", "0", "1", 5),
		pod("first", "launcher", "0", "1", 3),
		pod("w10", "node", "10", "1", 2),
		pod("w2", "node", "2", "1", 2),
		pod("w2-anew", "node", "2", "1", 4),
		pod("data", "dataset-initializer", "0", "1", 4),
	})
	if len(launchers) != 2 || launchers[0].Name != "first" {
		t.Errorf("launchers are %v", launchers)
	}
	if diff := cmp.Diff([]string{"2 w2-anew", "10 w10"}, names(workers)); diff != "" {
		t.Error(diff)
	}
	_, workers = trainjob.Pods(base(t, "    mpi:\n", "    torch:\n"), []*corev1.Pod{pod("t0", "node", "0", "0", 1), pod("t1", "node", "1", "0", 1)})
	if len(workers) != 2 {
		t.Errorf("workers are %v", names(workers))
	}
}

func names(workers []jobstate.Worker) []string {
	var all []string
	for _, w := range workers {
		all = append(all, fmt.Sprint(w.Index, " ", w.Pod.Name))
	}
	return all
}

// TestGate: neither Trainer nor what a TrainJob adds to its runtime resumes a JobSet whose gate is closed. Only the operator's own
// change lets its pods be created, once.
func TestGate(t *testing.T) {
	type state struct {
		gate    string
		suspend bool
	}
	for name, test := range map[string]struct {
		before, applied, want state
		byOperator            bool
	}{
		"Trainer resumes it":                   {before: state{"closed", true}, applied: state{"closed", false}, want: state{"closed", true}},
		"Trainer applies it without":           {before: state{"closed", true}, applied: state{"", false}, want: state{"closed", true}},
		"Trainer applies a patch that opens":   {before: state{"closed", true}, applied: state{"open", false}, want: state{"closed", true}},
		"the operator opens it":                {before: state{"closed", true}, applied: state{"open", false}, want: state{"open", false}, byOperator: true},
		"Trainer applies it while it runs":     {before: state{"open", false}, applied: state{"open", false}, want: state{"open", false}},
		"Trainer applies a patch that closes":  {before: state{"open", false}, applied: state{"closed", false}, want: state{"open", false}},
		"its user suspends it":                 {before: state{"open", false}, applied: state{"open", true}, want: state{"suspended", true}},
		"its user suspends it while it waits":  {before: state{"closed", true}, applied: state{"closed", true}, want: state{"suspended", true}},
		"its user resumes it":                  {before: state{"suspended", true}, applied: state{"open", false}, want: state{"closed", true}},
		"its user changes it while suspended":  {before: state{"suspended", true}, applied: state{"", true}, want: state{"suspended", true}},
		"an earlier operator left it open":     {before: state{"open", true}, applied: state{"open", false}, want: state{"closed", true}},
		"the operator opens it too early":      {before: state{"suspended", true}, applied: state{"open", false}, want: state{"suspended", true}, byOperator: true},
		"the operator closes it":               {before: state{"open", false}, applied: state{"closed", true}, want: state{"closed", true}, byOperator: true},
		"the operator changes something else":  {before: state{"closed", true}, applied: state{"closed", false}, want: state{"closed", true}, byOperator: true},
		"it has no gate":                       {before: state{"", true}, applied: state{"", false}, want: state{"", false}},
		"somebody adds a gate":                 {before: state{"", false}, applied: state{"open", false}, want: state{"", false}},
		"somebody adds a gate and suspends it": {before: state{"", false}, applied: state{"closed", true}, want: state{"", true}},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(s state) map[string]any {
				object := tree(t, made)
				object["spec"].(map[string]any)["suspend"] = s.suspend
				if s.gate != "" {
					object["metadata"].(map[string]any)["annotations"] = map[string]any{mpi.AnnotationGate: s.gate}
				}
				return object
			}
			got := of(test.applied)
			trainjob.Keep(got, of(test.before), test.byOperator)
			annotations, _ := got["metadata"].(map[string]any)["annotations"].(map[string]any)
			gate, _ := annotations[mpi.AnnotationGate].(string)
			if is := (state{gate, got["spec"].(map[string]any)["suspend"] == true}); is != test.want {
				t.Errorf("it is %+v, want %+v", is, test.want)
			}
		})
	}
}

// TestTokensOfPods: pods have the API token of a service account only if it was chosen, and that stays.
func TestTokensOfPods(t *testing.T) {
	for name, test := range map[string]struct{ spec, want string }{
		"nothing set":        {"{}", "{automountServiceAccountToken: false}"},
		"no account":         {`{serviceAccountName: ""}`, `{serviceAccountName: "", automountServiceAccountToken: false}`},
		"a token":            {"{automountServiceAccountToken: true}", "{automountServiceAccountToken: true}"},
		"no token":           {"{automountServiceAccountToken: false}", "{automountServiceAccountToken: false}"},
		"an account":         {"{serviceAccountName: trainer}", "{serviceAccountName: trainer}"},
		"an account's token": {"{serviceAccountName: trainer, automountServiceAccountToken: true}", "{serviceAccountName: trainer, automountServiceAccountToken: true}"},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(spec string) map[string]any {
				return tree(t, "{spec: {replicatedJobs: [{name: model-initializer, template: {spec: {template: {spec: "+spec+"}}}}]}}")
			}
			pod := func(jobSet map[string]any) map[string]any {
				job := jobSet["spec"].(map[string]any)["replicatedJobs"].([]any)[0].(map[string]any)
				return job["template"].(map[string]any)["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			}
			jobSet, again := of(test.spec), of(test.spec)
			if err := trainjob.Wire(jobSet, job(t, "{}"), ""); err != nil {
				t.Fatal(err)
			}
			trainjob.Keep(again, jobSet, false)
			for _, got := range []map[string]any{jobSet, again} {
				if diff := cmp.Diff(pod(of(test.want)), pod(got)); diff != "" {
					t.Errorf("want -, got +\n%s", diff)
				}
			}
			if before := of(test.spec); test.want != test.spec {
				changed := of(test.spec)
				trainjob.Keep(changed, before, false)
				if diff := cmp.Diff(pod(before), pod(changed)); diff != "" {
					t.Errorf("made before the operator: want -, got +\n%s", diff)
				}
			}
		})
	}
}
