package trainjob_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// base is the runtime that all of ours are made from, as one of the openmpi kind.
func base(t *testing.T, change ...string) trainjob.Runtime {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "runtimes", "base", "runtime.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var found trainjob.Runtime
	if err := yaml.Unmarshal([]byte(strings.NewReplacer(change...).Replace(string(data))), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// job is a TrainJob named pi with a trainer, in YAML.
func job(t *testing.T, trainer string, more ...string) trainjob.TrainJob {
	t.Helper()
	text := "metadata: {name: pi, namespace: ns, uid: u}\nspec:\n  runtimeRef: {name: mpi}\n  trainer: " + trainer + "\n" + strings.Join(more, "\n")
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := trainjob.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

// wants compares errors with the beginnings they shall have.
func wants(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	for i, err := range errs {
		t.Logf("%s", err)
		if i < len(want) && !strings.Contains(err.Error(), want[i]) {
			t.Errorf("error %d is %q, want %q in it", i, err, want[i])
		}
	}
	if len(errs) != len(want) {
		t.Errorf("%d errors, want %d", len(errs), len(want))
	}
}

func TestCheckRuntime(t *testing.T) {
	const annotation = "    mpi.opendatahub.io/mpi-implementation: OpenMPI\nspec:"
	tests := map[string]struct {
		change []string
		want   []string
	}{
		"ours":                     {},
		"4 nodes make 4 launchers": {change: []string{"numNodes: 1", "numNodes: 4"}, want: []string{"spec.mlPolicy.numNodes: Invalid value: 4: must be 1: Trainer would start 4 launchers"}},
		"a gang with an order": {
			change: []string{"  mlPolicy:", "  podGroupPolicy: {coscheduling: {}}\n  mlPolicy:", "- name: launcher", "- name: launcher\n        dependsOn: [{name: node, status: Ready}]"},
			want:   []string{`spec.template.spec.replicatedJobs[1].dependsOn: Invalid value: "node": must be left out`},
		},
		"an order without a gang": {change: []string{"- name: launcher", "- name: launcher\n        dependsOn: [{name: node, status: Ready}]"}},
		"no workers":              {change: []string{"      - name: node\n        template", "      - name: workers\n        template"}, want: []string{`must have a job named "node"`}},
		"a container of another name": {
			change: []string{"                - name: node\n", "                - name: main\n"},
			want:   []string{"replicatedJobs[launcher]: Required", "replicatedJobs[node]: Required"},
		},
		"connections out that are none": {
			change: []string{"mpi-implementation: OpenMPI\nspec", "mpi-implementation: OpenMPI\n    mpi.opendatahub.io/allow-egress: 2049,nfs\nspec"},
			want:   []string{`metadata.annotations[mpi.opendatahub.io/allow-egress]: Invalid value: "2049,nfs": "nfs": must have a port`},
		},
		"node labels that contradict each other": {
			change: []string{annotation, "    mpi.opendatahub.io/mpi-implementation: OpenMPI\n    mpi.opendatahub.io/required-node-labels: pool=a,zone=b,pool=c,zone=b\nspec:"},
			want:   []string{`required-node-labels]: Invalid value: "pool=a,zone=b,pool=c,zone=b": requires both pool=a and pool=c, and a node has one value of a label; remove one of them`},
		},
		"an unknown MPI": {
			change: []string{"mpi-implementation: OpenMPI", "mpi-implementation: LAM"},
			want:   []string{`Unsupported value: "LAM": supported values: "OpenMPI", "Intel", "MPICH"`},
		},
		"annotated above alone": {change: []string{annotation, "    mpi.opendatahub.io/mpi-implementation: MPICH\nspec:"}, want: []string{`must be "MPICH"`}},
		"a minimum above the maximum": {
			change: []string{annotation, "    mpi.opendatahub.io/mpi-implementation: OpenMPI\n    mpi.opendatahub.io/max-workers: '2'\n    mpi.opendatahub.io/min-workers: '3'\nspec:"},
			want:   []string{"min-workers]: Invalid value: \"3\": must be at most 2, which is mpi.opendatahub.io/max-workers"},
		},
		"annotations all wrong at once": {
			change: []string{annotation, "    mpi.opendatahub.io/mpi-implementation: OpenMPI\n    mpi.opendatahub.io/max-workers: many\n    mpi.opendatahub.io/min-workers: few\n    mpi.opendatahub.io/max-gpus-per-worker: '-1'\n    mpi.opendatahub.io/required-node-labels: gpu\nspec:"},
			want:   []string{"min-workers]: Invalid", "max-workers]: Invalid", "max-gpus-per-worker]: Invalid", "required-node-labels]: Invalid"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			wants(t, trainjob.CheckRuntime(base(t, test.change...)), test.want...)
		})
	}
}

func TestCheck(t *testing.T) {
	limits := []string{
		"    mpi.opendatahub.io/mpi-implementation: OpenMPI\nspec:",
		"    mpi.opendatahub.io/mpi-implementation: OpenMPI\n    mpi.opendatahub.io/max-workers: '4'\n    mpi.opendatahub.io/max-gpus-per-worker: '2'\n    mpi.opendatahub.io/required-node-labels: pool=mpi\nspec:",
	}
	const minimum = "    mpi.opendatahub.io/mpi-implementation: OpenMPI\n    mpi.opendatahub.io/min-workers: '3'\nspec:"
	pool := []string{"                securityContext: &user", "                nodeSelector: {pool: mpi}\n                securityContext: &user", "                securityContext: *user", "                nodeSelector: {pool: mpi}\n                securityContext: *user"}
	tests := map[string]struct {
		trainer  string
		more     []string
		change   []string
		want     []string
		warnings []string
	}{
		"good":           {trainer: "{numNodes: 4, command: [mpirun, pi]}"},
		"args will do":   {trainer: "{numNodes: 4, args: [mpirun, pi]}"},
		"nothing to run": {trainer: "{numNodes: 4}", want: []string{"spec.trainer.command: Required"}},
		"one node":       {trainer: "{numNodes: 1, command: [mpirun, pi]}", warnings: []string{"spec.trainer.numNodes: 1 makes 2 pods"}},
		"too few nodes": {
			trainer: "{numNodes: 2, command: [mpirun, pi]}", change: []string{limits[0], minimum}, want: []string{"spec.trainer.numNodes: Invalid value: 2: must be at least 3 with the runtime mpi"},
		},
		"as many nodes as required": {trainer: "{numNodes: 3, command: [mpirun, pi]}", change: []string{limits[0], minimum}},
		"limits alone": {
			trainer:  "{numNodes: 4, command: [mpirun, pi], resourcesPerNode: {limits: {cpu: 8, memory: 1Gi}, requests: {memory: 1Gi}}}",
			warnings: []string{"pods request what the runtime mpi requests (cpu 100m), whatever the limits"},
		},
		"limits and requests": {trainer: "{numNodes: 4, command: [mpirun, pi], resourcesPerNode: {limits: {cpu: 8}, requests: {cpu: 4}}}"},
		"no number of nodes":  {trainer: "{command: [mpirun, pi]}", warnings: []string{"spec.trainer.numNodes: 1 makes 2 pods"}},
		"a runtime of faults": {trainer: "{numNodes: 4, command: [mpirun, pi]}", change: []string{"numNodes: 1", "numNodes: 4"}, want: []string{"spec.runtimeRef.name: Invalid value: \"mpi\": cannot be used"}},
		"sizes that no pod has": {
			trainer: "{numNodes: 4, command: [mpirun, pi], resourcesPerNode: {requests: {memory: 2Gi, nvidia.com/gpu: 1}, limits: {memory: 512Mi}}}",
			want:    []string{`spec.trainer.resourcesPerNode.requests[memory]: Invalid value: "2Gi": must be at most its limit, 512Mi`, "spec.trainer.resourcesPerNode.limits[nvidia.com/gpu]: Required value: must be 1, equal to its request"},
		},
		"slots and GPUs": {
			trainer: "{numNodes: 4, numProcPerNode: 2, command: [mpirun, pi], resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}", warnings: []string{"2 ranks per node with 4 GPUs"},
		},
		"as many slots as GPUs": {trainer: "{numNodes: 4, command: [mpirun, pi], resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}"},
		"size without runLauncherAsNode": {
			trainer: "{numNodes: 4, command: [mpirun, pi], resourcesPerNode: {limits: {cpu: 4}, requests: {cpu: 4}}}", change: []string{"runLauncherAsNode: true", "runLauncherAsNode: false"},
			warnings: []string{"sizes the launcher alone"},
		},
		"image in a runtime that is not ours": {
			trainer: "{numNodes: 4, image: mine, command: [mpirun, pi]}", change: []string{"mpi.opendatahub.io/mpi-implementation: OpenMPI", "{}"},
			warnings: []string{"image and env reach the launcher alone"},
		},
		"every limit at once": {
			trainer: "{numNodes: 5, numProcPerNode: 3, command: [mpirun, pi], resourcesPerNode: {limits: {nvidia.com/gpu: 3}}}", change: limits,
			want: []string{"numNodes: Invalid value: 5: must be at most 4", `"3 GPUs": must be at most 2 GPUs`, `job "launcher" must have pool: mpi`, `job "node" must have pool: mpi`},
		},
		"node labels that contradict each other": {
			trainer: "{numNodes: 4, command: [mpirun, pi]}", change: []string{limits[0], strings.Replace(limits[1], "pool=mpi", "pool=other,pool=mpi", 1)},
			want: []string{`spec.runtimeRef.name: Invalid value: "mpi": cannot be used as it is, ask who maintains it: metadata.annotations[mpi.opendatahub.io/required-node-labels] requires both`, `job "launcher" must have pool: mpi`, `job "node" must have pool: mpi`},
		},
		"a limit that is no number": {
			trainer: "{numNodes: 4, command: [mpirun, pi]}", change: []string{limits[0], strings.Replace(limits[1], "'4'", "'+4'", 1)},
			want: []string{`max-workers] must be a whole number`, `job "launcher" must have pool: mpi`, `job "node" must have pool: mpi`},
		},
		"more nodes than Kubernetes creates pods": {
			trainer: "{numNodes: 2147483647, command: [mpirun, pi]}",
			want:    []string{"spec.trainer.numNodes: Invalid value: 2147483647: must be at most 100000: Kubernetes creates no more pods for it"},
		},
		"within limits": {trainer: "{numNodes: 4, command: [mpirun, pi]}", change: append(limits, pool...)},
		"a patch against a limit": {
			trainer: "{numNodes: 4, command: [mpirun, pi]}", change: append(limits, pool...),
			more: []string{"  runtimePatches: [{manager: me, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {nodeSelector: {pool: other}}}}}}]}}}}]"},
			want: []string{`spec.runtimePatches: Invalid value: "other": the nodeSelector of the job "node" must have pool: mpi`},
		},
		"an override against a limit": {
			trainer: "{numNodes: 4, command: [mpirun, pi]}", change: append(limits, pool...),
			more: []string{"  podTemplateOverrides: [{targetJobs: [{name: launcher}], spec: {nodeSelector: {pool: other}}}]"},
			want: []string{`spec.podTemplateOverrides: Invalid value: "other": the nodeSelector of the job "launcher"`},
		},
		"a patch that heeds it": {
			trainer: "{numNodes: 4, command: [mpirun, pi]}", change: limits,
			more: []string{"  podTemplateOverrides: [{targetJobs: [{name: launcher}, {name: node}], spec: {nodeSelector: {pool: mpi}}}]"},
		},
		"a patch of a job that the runtime lacks": {
			trainer:  "{numNodes: 4, command: [mpirun, pi]}",
			more:     []string{"  runtimePatches: [{manager: me, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: launcher}, {name: worker}]}}}}]"},
			warnings: []string{`replicatedJobs[1].name: the runtime mpi has no job "worker"; its jobs are node, launcher`},
		},
		"an override of a job that the runtime lacks": {
			trainer:  "{numNodes: 4, command: [mpirun, pi]}",
			more:     []string{"  podTemplateOverrides: [{targetJobs: [{name: trainer}], spec: {}}]"},
			warnings: []string{`spec.podTemplateOverrides[0].targetJobs[0].name: the runtime mpi has no job "trainer"`},
		},
		"a PATH that no shell expands": {
			trainer:  "{numNodes: 4, command: [mpirun, pi], env: [{name: A, value: b}, {name: PATH, value: '/opt/conda/bin:$PATH'}]}",
			warnings: []string{"spec.trainer.env[1].value: PATH replaces that of the image, because no shell expands $PATH here"},
		},
		"a PATH without the folders of programs": {
			trainer:  "{numNodes: 4, command: [mpirun, pi], env: [{name: PATH, value: /opt/conda/bin}]}",
			warnings: []string{"spec.trainer.env[0].value: PATH replaces that of the image, and has no /usr/bin"},
		},
		"a PATH with them": {trainer: "{numNodes: 4, command: [mpirun, pi], env: [{name: PATH, value: '/opt/conda/bin:/usr/bin'}]}"},
		"no MPI":           {trainer: "{numNodes: 9}", change: []string{"    mpi:\n", "    torch:\n"}},
		"no MPI, and every limit": {
			trainer: "{numNodes: 5, resourcesPerNode: {limits: {nvidia.com/gpu: 3}}}", change: append([]string{"    mpi:\n", "    torch:\n"}, limits...),
			want: []string{"numNodes: Invalid value: 5: must be at most 4 with the runtime mpi", `"3 GPUs": must be at most 2 GPUs`, `job "launcher" must have pool: mpi`, `job "node" must have pool: mpi`},
		},
		"no MPI, and too few nodes": {
			trainer: "{numNodes: 2}", change: []string{"    mpi:\n", "    torch:\n", limits[0], minimum}, want: []string{"numNodes: Invalid value: 2: must be at least 3 with the runtime mpi"},
		},
		"no MPI, and within limits": {trainer: "{numNodes: 4}", change: slices.Concat([]string{"    mpi:\n", "    torch:\n"}, limits, pool)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			errs, warnings := trainjob.Check(job(t, test.trainer, test.more...), base(t, test.change...))
			wants(t, errs, test.want...)
			if len(warnings) != len(test.warnings) {
				t.Fatalf("warnings are %q, want %q", warnings, test.warnings)
			}
			for i, warning := range warnings {
				if !strings.Contains(warning, test.warnings[i]) {
					t.Errorf("warning is %q, want %q in it", warning, test.warnings[i])
				}
			}
		})
	}
	t.Run("connections", func(t *testing.T) {
		with := job(t, "{numNodes: 4, command: [mpirun, pi]}")
		with.Annotations = map[string]string{mpi.AnnotationConnections: "data,other/results,No"}
		errs, _ := trainjob.Check(with, base(t))
		wants(t, errs, `metadata.annotations[opendatahub.io/connections]: Invalid value: "other/results": is in another namespace`, `"No": must be the name of a Secret`)
		for name, change := range map[string][]string{"no MPI": {"    mpi:\n", "    torch:\n"}, "not ours": {"mpi.opendatahub.io/mpi-implementation: OpenMPI", "{}"}} {
			errs, warnings := trainjob.Check(with, base(t, change...))
			wants(t, errs)
			if len(warnings) != 1 || !strings.Contains(warnings[0], "has no effect with the runtime mpi") {
				t.Errorf("%s: warnings are %q", name, warnings)
			}
		}
	})
	t.Run("a long name", func(t *testing.T) {
		long := job(t, "{numNodes: 4, command: [mpirun, pi]}")
		long.Name = strings.Repeat("a", 52)
		errs, _ := trainjob.Check(long, base(t))
		wants(t, errs, "must have at most 50 characters, this has 52")
	})
}

// TestNamespaceLimits: a TrainJob with any runtime keeps the limits of its namespace, with what its runtime and patches yield.
func TestNamespaceLimits(t *testing.T) {
	const torch, large = "    torch:\n", "{numNodes: 5, resourcesPerNode: {limits: {nvidia.com/gpu: 3}}}"
	limits := map[string]string{mpi.AnnotationMaxWorkers: "4", mpi.AnnotationMaxGPUs: "2", mpi.AnnotationNodeLabels: "pool=mpi, zone=a"}
	inPool := []string{"  podTemplateOverrides: [{targetJobs: [{name: launcher}, {name: node}], spec: {nodeSelector: {pool: mpi, zone: a}}}]"}
	tests := map[string]struct {
		trainer string
		more    []string
		change  []string
		limits  map[string]string
		// defaults are the annotations of the operator's namespace.
		defaults map[string]string
		want     []string
	}{
		"no limits":  {trainer: "{numNodes: 50, resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}"},
		"within":     {trainer: "{numNodes: 4, resourcesPerNode: {limits: {nvidia.com/gpu: 2}}}", more: inPool, limits: limits},
		"the others": {trainer: "{numNodes: 4}", more: inPool, change: []string{"    mpi:\n", torch}, limits: limits},
		"every limit": {
			trainer: "{numNodes: 5, resourcesPerNode: {limits: {nvidia.com/gpu: 3}}}", limits: limits,
			want: []string{
				"spec.trainer.numNodes: Invalid value: 5: must be at most 4, the limit of the namespace ns; ask its administrator for more (annotation mpi.opendatahub.io/max-workers)",
				`spec.trainer.resourcesPerNode: Invalid value: "3 GPUs": a pod of the job "launcher" of the runtime mpi must request at most 2 GPUs or other accelerators, the limit of the namespace ns`,
				`spec.runtimePatches: Invalid value: "": the nodeSelector of the job "launcher" must have pool: mpi, which the namespace ns requires (annotation mpi.opendatahub.io/required-node-labels)`,
				`"launcher" must have zone: a`, `"node" must have pool: mpi`, `"node" must have zone: a`,
			},
		},
		"other frameworks": {
			trainer: "{numNodes: 5}", change: []string{"    mpi:\n", torch}, more: inPool, limits: limits,
			want: []string{"spec.trainer.numNodes: Invalid value: 5"},
		},
		"nodes of the runtime": {
			trainer: "{}", change: []string{"numNodes: 1", "numNodes: 6"}, more: inPool, limits: limits,
			want: []string{"(annotation mpi.opendatahub.io/max-workers); set it, since the runtime mpi has 6 nodes"},
		},
		"a runtime that launches apart": {trainer: "{numNodes: 4}", change: []string{"runLauncherAsNode: true", ""}, more: inPool, limits: limits},
		"invalid limits": {
			trainer: "{numNodes: 1}", limits: map[string]string{mpi.AnnotationMaxWorkers: "x", mpi.AnnotationMaxGPUs: "", mpi.AnnotationNodeLabels: "gpu"},
			want: []string{
				`metadata.namespace: Forbidden: the namespace ns has an invalid limit, ask its administrator to correct it: metadata.annotations[mpi.opendatahub.io/max-workers]: Invalid value: "x": must be a whole number, 0 or more`,
				"max-gpus-per-worker]", `"gpu" must be a label with its value`,
			},
		},
		"defaults of the cluster": {
			trainer: large, defaults: limits,
			want: []string{
				"5: must be at most 4, the limit of the cluster; ask its administrator for more (annotation mpi.opendatahub.io/max-workers of the namespace ns, or of mpijob-system for all)",
				"3 GPUs", `"launcher" must have pool: mpi, which the cluster requires (annotation mpi.opendatahub.io/required-node-labels of the namespace mpijob-system)`,
				`"launcher" must have zone`, `"node" must have pool`, `"node" must have zone`,
			},
		},
		"the namespace's instead of defaults": {
			trainer: large, defaults: limits,
			limits: map[string]string{mpi.AnnotationMaxWorkers: "5", mpi.AnnotationMaxGPUs: "3", mpi.AnnotationNodeLabels: ""},
		},
		"some of both": {
			trainer: large, defaults: map[string]string{mpi.AnnotationMaxGPUs: "2"}, limits: map[string]string{mpi.AnnotationMaxWorkers: "4"},
			want: []string{"5: must be at most 4, the limit of the namespace ns;", "3 GPUs"},
		},
		"an invalid default": {
			trainer: "{numNodes: 1}", defaults: map[string]string{mpi.AnnotationMaxWorkers: "x"},
			want: []string{"the namespace mpijob-system has an invalid limit for all namespaces, ask the cluster's administrator"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			of := job(t, test.trainer, test.more...)
			of.Namespace = "ns"
			wants(t, trainjob.CheckNamespaceLimits(of, base(t, test.change...), trainjob.Limits{Namespace: test.limits, Defaults: test.defaults, DefaultsFrom: "mpijob-system"}), test.want...)
		})
	}
	t.Run("other jobs of the runtime", func(t *testing.T) {
		used := base(t)
		initializer := trainjob.ReplicatedJob{Name: "dataset-initializer"}
		own := trainjob.ReplicatedJob{Name: "own", Replicas: new(int32(3))}
		own.Template.Spec.Template.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"amd.com/gpu": resource.MustParse("4")}}}}
		used.Spec.Template.Spec.ReplicatedJobs = append(used.Spec.Template.Spec.ReplicatedJobs, initializer, own)
		of := job(t, "{numNodes: 3}", inPool...)
		of.Namespace = "ns"
		wants(t, trainjob.CheckNamespaceLimits(of, used, trainjob.Limits{Namespace: limits}), "(annotation mpi.opendatahub.io/max-workers); with other jobs of the runtime mpi there are 5 nodes", `a pod of the job "own" of the runtime mpi`,
			`"dataset-initializer" must have pool`, `"dataset-initializer" must have zone`, `"own" must have pool`, `"own" must have zone`)
	})
}

// TestNamespaceLimitsOfChanges: a TrainJob that was created before a limit can be suspended and resumed, but not grow, also while it is
// suspended. Its nodes are compared when it is resumed.
func TestNamespaceLimitsOfChanges(t *testing.T) {
	limits := map[string]string{mpi.AnnotationMaxWorkers: "4", mpi.AnnotationMaxGPUs: "2", mpi.AnnotationNodeLabels: "pool=mpi"}
	inPool := []string{"  podTemplateOverrides: [{targetJobs: [{name: launcher}, {name: node}], spec: {nodeSelector: {pool: mpi}}}]"}
	const large = "{numNodes: 5, resourcesPerNode: {limits: {nvidia.com/gpu: 3}}}"
	for name, test := range map[string]struct {
		before, after string
		suspended     bool
		elsewhere     bool
		limits        map[string]string
		want          []string
	}{
		"resumed":                {before: large, after: large},
		"suspended":              {before: large, after: large, suspended: true},
		"other variables":        {before: large, after: "{numNodes: 5, resourcesPerNode: {limits: {nvidia.com/gpu: 3}}, env: [{name: A, value: b}]}"},
		"within":                 {before: "{numNodes: 5}", after: "{numNodes: 4}"},
		"grows":                  {before: "{numNodes: 4}", after: "{numNodes: 5}", want: []string{"spec.trainer.numNodes: Invalid value: 5: must be at most 4"}},
		"grows when suspended":   {before: "{numNodes: 4}", after: "{numNodes: 5}", suspended: true, want: []string{"spec.trainer.numNodes: Invalid value: 5: must be at most 4"}},
		"more GPUs":              {before: "{numNodes: 4}", after: "{numNodes: 4, resourcesPerNode: {limits: {nvidia.com/gpu: 3}}}", suspended: true, want: []string{"3 GPUs"}},
		"grows with large nodes": {before: "{numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 3}}}", after: "{numNodes: 3, resourcesPerNode: {limits: {nvidia.com/gpu: 3}}}", want: []string{"3 GPUs"}},
		"resumed elsewhere":      {before: large, after: large, elsewhere: true, want: []string{`"launcher" must have pool: mpi`, `"node" must have pool: mpi`}},
		"suspended elsewhere":    {before: large, after: large, elsewhere: true, suspended: true},
		"invalid limits":         {before: large, after: large, limits: map[string]string{mpi.AnnotationMaxWorkers: "x", mpi.AnnotationMaxGPUs: "x"}},
		"grows, invalid limits":  {before: "{numNodes: 4}", after: "{numNodes: 5}", limits: map[string]string{mpi.AnnotationMaxWorkers: "x"}, want: []string{"invalid limit"}},
		"invalid labels":         {before: large, after: large, limits: map[string]string{mpi.AnnotationNodeLabels: "gpu"}, want: []string{`"gpu" must be a label with its value`}},
	} {
		t.Run(name, func(t *testing.T) {
			more := inPool
			if test.elsewhere {
				more = nil
			}
			before, after := job(t, test.before, more...), job(t, test.after, more...)
			before.Namespace, after.Namespace = "ns", "ns"
			before.Spec.Suspend, after.Spec.Suspend, after.Generation = new(!test.suspended), new(test.suspended), before.Generation+1
			if test.limits == nil {
				test.limits = limits
			}
			wants(t, trainjob.CheckNamespaceChange(before, after, base(t), trainjob.Limits{Namespace: test.limits}), test.want...)
		})
	}
}

// TestRunningTrainerIsFixed: the trainer of a job with an MPI runtime changes only while the job is suspended. Trainer v2.1 accepts other
// changes and leaves the pods as they are.
func TestRunningTrainerIsFixed(t *testing.T) {
	const command = ", command: [mpirun, pi]}"
	other := base(t, "    mpi:\n", "    torch:\n")
	for name, test := range map[string]struct {
		before, after trainjob.TrainJob
		used          trainjob.Runtime
		want          []string
	}{
		"nodes":                    {job(t, "{numNodes: 4"+command), job(t, "{numNodes: 2"+command), base(t), []string{"spec.trainer: Forbidden: cannot be changed while the job runs"}},
		"the command":              {job(t, "{numNodes: 4"+command), job(t, "{numNodes: 4, command: [mpirun, other]}"), base(t), []string{"spec.trainer: Forbidden"}},
		"nothing":                  {job(t, "{numNodes: 4"+command), job(t, "{numNodes: 4"+command), base(t), nil},
		"while it is suspended":    {job(t, "{numNodes: 4"+command, "  suspend: true"), job(t, "{numNodes: 2"+command, "  suspend: true"), base(t), nil},
		"with its suspension":      {job(t, "{numNodes: 4"+command), job(t, "{numNodes: 2"+command, "  suspend: true"), base(t), nil},
		"when it is resumed":       {job(t, "{numNodes: 4"+command, "  suspend: true"), job(t, "{numNodes: 2"+command), base(t), nil},
		"with another framework's": {job(t, "{numNodes: 4"+command), job(t, "{numNodes: 2"+command), other, nil},
	} {
		t.Run(name, func(t *testing.T) {
			errs, _ := trainjob.CheckChange(test.before, test.after, test.used)
			wants(t, errs, test.want...)
		})
	}
}

// TestCheckChange: what was wrong before does not keep a queue from resuming a job.
func TestCheckChange(t *testing.T) {
	before := job(t, "{numNodes: 4}", "  suspend: true")
	errs, _ := trainjob.CheckChange(before, job(t, "{numNodes: 4}", "  suspend: false"), base(t))
	wants(t, errs)
	errs, _ = trainjob.CheckChange(job(t, "{numNodes: 4, command: [mpirun, pi]}"), before, base(t))
	wants(t, errs, "spec.trainer.command")
	over := job(t, "{numNodes: 4}")
	over.Name = "train"
	over.Status.Conditions = []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue}}
	errs, _ = trainjob.CheckChange(over, job(t, "{numNodes: 2}"), base(t))
	wants(t, errs, "spec: Forbidden: "+mpi.FinishedIsFixed("train"))
	errs, _ = trainjob.CheckChange(over, job(t, "{numNodes: 4}", "  suspend: true"), base(t))
	wants(t, errs)
	after := job(t, "{numNodes: 4}", "  suspend: true")
	after.Annotations = map[string]string{mpi.AnnotationConnections: "data"}
	errs, _ = trainjob.CheckChange(before, after, base(t))
	wants(t, errs, "metadata.annotations[opendatahub.io/connections]: Forbidden: cannot be changed after the job was created")
}

func TestConvert(t *testing.T) {
	tests := map[string]struct {
		trainer        string
		change         []string
		workers, slots int32
		runsRanks      bool
	}{
		"by default":           {trainer: "{}", workers: 1, slots: 1, runsRanks: true},
		"4 nodes":              {trainer: "{numNodes: 4, numProcPerNode: 2}", workers: 3, slots: 2, runsRanks: true},
		"1 node":               {trainer: "{numNodes: 1}", workers: 1, slots: 1, runsRanks: true},
		"a launcher apart":     {trainer: "{numNodes: 4}", change: []string{"runLauncherAsNode: true", ""}, workers: 4, slots: 1},
		"slots by GPUs":        {trainer: "{numNodes: 4, resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}", workers: 3, slots: 8, runsRanks: true},
		"slots of the runtime": {trainer: "{numNodes: 4, resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}", change: []string{"numProcPerNode: 1", "numProcPerNode: 3"}, workers: 3, slots: 3, runsRanks: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := trainjob.Convert(job(t, test.trainer), base(t, test.change...))
			if got.Workers.Count != test.workers || got.SlotsPerWorker != test.slots || got.Launcher.RunsRanks != test.runsRanks {
				t.Errorf("workers %d, slots %d, launcher runs ranks %t", got.Workers.Count, got.SlotsPerWorker, got.Launcher.RunsRanks)
			}
			if !got.UsesAgent() || got.SSHMountPath != "/etc/mpi-agent" || got.Implementation != mpi.OpenMPI || got.ManagedBy != "" {
				t.Errorf("got %+v", got)
			}
		})
	}
	t.Run("another framework", func(t *testing.T) {
		got := trainjob.Convert(job(t, "{numNodes: 4, numProcPerNode: auto}"), base(t, "    mpi:\n", "    torch:\n"))
		if got.Workers.Count != 4 || got.SlotsPerWorker != 1 || len(got.Workers.Template.Spec.Containers) != 1 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("hosts", func(t *testing.T) {
		got := trainjob.Convert(job(t, "{numNodes: 3}"), base(t))
		for i, want := range []string{"-launcher-0-0.", "-node-0-0.", "-node-0-1."} {
			if host := got.Hosts("")[i].Name; !strings.HasPrefix(host, got.Name+want+got.Name+".") || !got.IsHost(host) {
				t.Errorf("host %d is %s, want one that begins with %s%s", i, host, got.Name, want)
			}
		}
		if want := got.Name + "-launcher-0-0."; !strings.HasPrefix(got.HostRange(), want) {
			t.Errorf("the hosts are %s, want that they begin with %s", got.HostRange(), want)
		}
	})
	t.Run("over", func(t *testing.T) {
		from := job(t, "{}", "status: {conditions: [{type: Complete, status: 'True', reason: JobsCompleted, lastTransitionTime: '2026-01-02T03:04:05Z'}]}")
		if past := trainjob.Convert(from, base(t)).Recorded; past.Finish == nil || !past.Finish.Succeeded || past.Finish.At.Year() != 2026 {
			t.Errorf("past is %+v", past)
		}
	})
}

// TestRuntimes: those that we ship are good by our own rules, on every kind of cluster.
func TestRuntimes(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("SKIPPED: KUBEBUILDER_ASSETS names no folder with kubectl, which puts the runtimes together; make unit does")
	}
	implementations := map[string]mpi.Implementation{
		"mpi-openmpi": mpi.OpenMPI, "mpi-openmpi5": mpi.OpenMPI, "mpi-intel": mpi.IntelMPI, "mpi-mpich": mpi.MPICH, "mpi-horovod": mpi.OpenMPI, "mpi-deepspeed": mpi.OpenMPI,
	}
	for _, overlay := range []string{"openshift", "kubernetes", "openshift-image-volume", "kubernetes-image-volume"} {
		text, err := exec.CommandContext(t.Context(), filepath.Join(assets, "kubectl"), "kustomize", "../../../config/runtimes/"+overlay).Output()
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var found trainjob.Runtime
			if err := yaml.Unmarshal([]byte(document), &found); err != nil {
				t.Fatal(err)
			}
			seen++
			wants(t, trainjob.CheckRuntime(found))
			want, known := implementations[found.Name]
			if got := trainjob.Convert(job(t, "{numNodes: 2}"), found); !known || got.Implementation != want || !got.UsesAgent() {
				t.Errorf("%s is %s, want %s", found.Name, got.Implementation, want)
			}
		}
		if seen != len(implementations) {
			t.Errorf("%s has %d runtimes, want %d", overlay, seen, len(implementations))
		}
	}
}

// TestCheckTTL: the operator applies the TTL with any runtime, so that it is checked with any.
func TestCheckTTL(t *testing.T) {
	for _, used := range []trainjob.Runtime{base(t), {}} {
		from := job(t, "{numNodes: 4, command: [mpirun, pi]}")
		from.Annotations = map[string]string{mpi.AnnotationTTL: "1h"}
		errs, _ := trainjob.Check(from, used)
		wants(t, errs, `metadata.annotations[mpi.opendatahub.io/ttl-seconds-after-finished]: Invalid value: "1h": must be an integer from 0 to 2147483647`)
	}
}

// TestCheckSlots: numbers with which mpirun fails are refused, and so is the JobSet of a job that was admitted without a webhook.
func TestCheckSlots(t *testing.T) {
	for written, refused := range map[string]bool{"0": true, "-1": true, "'0'": true, "'-1'": true, "' 00'": true, "1": false, "'4'": false, "auto": false, "gpu": false} {
		t.Run(written, func(t *testing.T) {
			from := job(t, "{numNodes: 4, numProcPerNode: "+written+", command: [mpirun, pi]}")
			var want []string
			if refused {
				want = []string{"spec.trainer.numProcPerNode: Invalid value: "}
			}
			errs, _ := trainjob.Check(from, base(t))
			wants(t, errs, want...)
			if err := trainjob.Wire(map[string]any{}, from, ""); (err != nil) != refused {
				t.Errorf("its JobSet: %v", err)
			}
			loaded := trainjob.Job{TrainJob: from, Runtime: base(t)}
			converted, _ := loaded.Convert()
			if out := loaded.Judge(converted, jobstate.Observed{}); (out.Reason == codes.ValidationError) != refused {
				t.Errorf("it is %s of %s: %s", out.Phase, out.Reason, out.Message)
			}
			errs, _ = trainjob.Check(from, trainjob.Runtime{})
			wants(t, errs)
		})
	}
}

// TestCheckAnnotations: a changed annotation is validated like a new one; what was invalid before, and what has no effect any
// more, blocks no change.
func TestCheckAnnotations(t *testing.T) {
	const silence = "metadata.annotations[mpi.opendatahub.io/silent-after]: Invalid value"
	with := func(annotations map[string]string, finished bool) trainjob.TrainJob {
		from := job(t, "{numNodes: 4, command: [mpirun, pi]}")
		from.Annotations = annotations
		if finished {
			from.Status.Conditions = []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue}}
		}
		return from
	}
	bad := map[string]string{mpi.AnnotationSilence: "x y", mpi.AnnotationTTL: "x y", mpi.AnnotationRDMA: "x y", mpi.AnnotationLaunch: "x y", mpi.Group + "/ttl": "1"}
	errs, warnings := trainjob.CheckChange(with(nil, false), with(bad, false), base(t))
	wants(t, errs, "rdma", silence, "ttl-seconds-after-finished")
	if len(warnings) != 2 {
		t.Errorf("warnings are %q", warnings)
	}
	errs, warnings = trainjob.CheckChange(with(bad, false), with(bad, false), base(t))
	wants(t, errs)
	if len(warnings) != 0 {
		t.Errorf("warnings about what did not change are %q", warnings)
	}
	errs, _ = trainjob.CheckChange(with(nil, true), with(bad, true), base(t))
	wants(t, errs, "ttl-seconds-after-finished")
	errs, _ = trainjob.Check(with(bad, false), trainjob.Runtime{})
	wants(t, errs, silence, "ttl-seconds-after-finished")
}

// TestWaitForQuota: a job waits for quota if the operator can hold back its pods. Others are refused, and the annotation causes a warning.
func TestWaitForQuota(t *testing.T) {
	for name, test := range map[string]struct {
		change []string
		waits  bool
	}{
		"a runtime of the operator": {waits: true},
		"without MPI":               {change: []string{"    mpi:\n", "    torch:\n"}},
		"not ours":                  {change: []string{"mpi.opendatahub.io/mpi-implementation: OpenMPI", "{}"}},
		"another gang scheduler":    {change: []string{"  mlPolicy:", "  podGroupPolicy: {coscheduling: {}}\n  mlPolicy:"}},
		"jobs in an order":          {change: []string{"- name: launcher", "- name: launcher\n        dependsOn: [{name: node, status: Ready}]"}},
	} {
		t.Run(name, func(t *testing.T) {
			from, used := job(t, "{numNodes: 4, command: [mpirun, pi]}"), base(t, test.change...)
			if trainjob.Convert(from, used).WaitsForQuota() {
				t.Error("it waits although nobody asked for it")
			}
			from.Annotations = map[string]string{mpi.AnnotationWaitForQuota: "true"}
			if got := trainjob.Convert(from, used).WaitsForQuota(); got != test.waits {
				t.Errorf("it waits: %t", got)
			}
			_, warnings := trainjob.Check(from, used)
			if isWarned := strings.Contains(fmt.Sprint(warnings), "wait-for-quota]: has no effect with the runtime"); isWarned == test.waits {
				t.Errorf("the warnings are %q", warnings)
			}
		})
	}
}

// TestScheduleTimeout: an attempt to place the pods of a job together takes as long as the job says, else its runtime; a job in a queue
// releases its quota then. Runtimes whose pods the operator does not place have no such time.
func TestScheduleTimeout(t *testing.T) {
	own, runtimes, queue := map[string]string{mpi.AnnotationScheduleTimeout: "90"}, map[string]string{mpi.AnnotationScheduleTimeout: "300"}, map[string]string{mpi.LabelQueue: "team"}
	ordered := []string{"- name: launcher", "- name: launcher\n        dependsOn: [{name: node, status: Ready}]"}
	for name, test := range map[string]struct {
		own, runtimes, labels map[string]string
		change                []string
		deadline              *int64
		want                  time.Duration
		isSet, isUnlimited    bool
	}{
		"by default":       {want: 10 * time.Minute},
		"of the runtime":   {runtimes: runtimes, want: 5 * time.Minute},
		"of the job":       {own: own, runtimes: runtimes, want: 90 * time.Second, isUnlimited: true},
		"with a deadline":  {own: own, deadline: new(int64(600)), want: 90 * time.Second},
		"in a queue":       {own: own, labels: queue, want: 90 * time.Second, isSet: true},
		"jobs in an order": {own: own, change: ordered, want: 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			from, used := job(t, "{numNodes: 4, command: [mpirun, pi]}"), base(t, test.change...)
			from.Annotations, from.Labels, from.Spec.ActiveDeadlineSeconds = test.own, test.labels, test.deadline
			maps.Copy(used.Annotations, test.runtimes)
			got := trainjob.Convert(from, used).Gang
			if got.Timeout != test.want || got.TimeoutSet != test.isSet || got.Wanted != (test.want != 10*time.Minute) {
				t.Errorf("the timeout is %s, set: %t", got.Timeout, got.TimeoutSet)
			}
			_, warnings := trainjob.Check(from, used)
			if isWarned := strings.Contains(fmt.Sprint(warnings), "schedule-timeout-seconds]: has no effect with the runtime"); isWarned != (test.change != nil) {
				t.Errorf("the warnings are %q", warnings)
			}
			const unlimited = "a job of which no pod has a node waits without a limit; to end it, set spec.activeDeadlineSeconds"
			if isWarned := strings.Contains(fmt.Sprint(warnings), unlimited); isWarned != test.isUnlimited {
				t.Errorf("the warnings are %q, want that it is not limited: %t", warnings, test.isUnlimited)
			}
			if _, again := trainjob.CheckChange(from, from, used); strings.Contains(fmt.Sprint(again), unlimited) {
				t.Errorf("a change of something else warns again: %q", again)
			}
		})
	}
	for _, bad := range []string{"0", "-1", "10m", ""} {
		from, used := job(t, "{numNodes: 4, command: [mpirun, pi]}"), base(t)
		from.Annotations = map[string]string{mpi.AnnotationScheduleTimeout: bad}
		errs, _ := trainjob.Check(from, used)
		wants(t, errs, "metadata.annotations[mpi.opendatahub.io/schedule-timeout-seconds]: Invalid value: \""+bad+"\": must be a number of seconds, 1 or more")
		used.Annotations[mpi.AnnotationScheduleTimeout] = bad
		wants(t, trainjob.CheckRuntime(used), "must be a number of seconds, 1 or more")
	}
}

// TestPriorityClass: the pods of a job have the class of its annotation, which replaces the runtime's and cannot be changed later. With
// runtimes whose JobSets are not completed, a warning says that it has no effect.
func TestPriorityClass(t *testing.T) {
	from, used := job(t, "{numNodes: 4, command: [mpirun, pi]}"), base(t)
	from.Annotations = map[string]string{mpi.AnnotationPriorityClass: "urgent"}
	for i := range used.Spec.Template.Spec.ReplicatedJobs {
		pod := &used.Spec.Template.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec
		pod.PriorityClassName, pod.Priority = "low", new(int32(1))
	}
	for name, test := range map[string]struct {
		change func()
		want   string
		warns  bool
	}{
		"of the job":     {change: func() {}, want: "urgent"},
		"not ours":       {change: func() { delete(used.Annotations, mpi.AnnotationImplementation) }, want: "low", warns: true},
		"of the runtime": {change: func() { from.Annotations = nil }, want: "low"},
	} {
		t.Run(name, func(t *testing.T) {
			annotations, runtimes := maps.Clone(from.Annotations), maps.Clone(used.Annotations)
			t.Cleanup(func() { from.Annotations, used.Annotations = annotations, runtimes })
			test.change()
			converted := trainjob.Convert(from, used)
			for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
				if got := converted.PriorityClass(role); got != test.want {
					t.Errorf("%s has the class %q", role, got)
				}
				want := ""
				if test.want == "urgent" {
					want = "metadata.annotations[mpi.opendatahub.io/priority-class]"
				}
				if got := trainjob.FieldOf(from, used, role, "spec.priorityClassName"); got != want {
					t.Errorf("the class of %s is from %q", role, got)
				}
			}
			errs, warnings := trainjob.Check(from, used)
			wants(t, errs)
			if isWarned := strings.Contains(fmt.Sprint(warnings), "priority-class]: has no effect with the runtime"); isWarned != test.warns {
				t.Errorf("the warnings are %q", warnings)
			}
		})
	}
	changed := from
	changed.Annotations = map[string]string{mpi.AnnotationPriorityClass: "low"}
	errs, _ := trainjob.CheckChange(from, changed, used)
	wants(t, errs, "metadata.annotations[mpi.opendatahub.io/priority-class]: Forbidden: cannot be changed after the job was created")
	changed.Annotations[mpi.AnnotationPriorityClass] = "Two words"
	errs, _ = trainjob.Check(changed, used)
	wants(t, errs, `metadata.annotations[mpi.opendatahub.io/priority-class]: Invalid value: "Two words": must be the name of a PriorityClass`)
}

// TestCheckRDMA: with a runtime of ours, unknown values are refused; with others, a warning names what has no effect.
func TestCheckRDMA(t *testing.T) {
	from := job(t, "{numNodes: 4, command: [mpirun, pi]}")
	from.Annotations = map[string]string{mpi.AnnotationRDMA: "no"}
	errs, _ := trainjob.Check(from, base(t))
	wants(t, errs, `metadata.annotations[mpi.opendatahub.io/rdma]: Unsupported value: "no": supported values: "required", "optional"`)
	from.Annotations[mpi.AnnotationRDMA] = mpi.RDMAOptional
	errs, warnings := trainjob.Check(from, base(t))
	wants(t, errs)
	if got := trainjob.Convert(from, base(t)).RDMA; !got.Optional || got.Fixed || strings.Contains(fmt.Sprint(warnings), "rdma") {
		t.Errorf("RDMA is %+v, warnings are %q", got, warnings)
	}
	from.Annotations[mpi.AnnotationRemovedRDMA] = `[{"op":"add","path":"/spec/trainer/resourcesPerNode/limits/rdma~1hca","value":1}]`
	if got := trainjob.Convert(from, base(t)).RDMA.Removed; fmt.Sprint(got) != "[rdma/hca]" {
		t.Errorf("after it has left its queue, it is without %v", got)
	}
	other := base(t)
	delete(other.Annotations, mpi.AnnotationImplementation)
	_, warnings = trainjob.Check(from, other)
	if got := trainjob.Convert(from, other).RDMA; got.Optional || !got.Fixed || !strings.Contains(fmt.Sprint(warnings), "metadata.annotations[mpi.opendatahub.io/rdma]: has no effect with the runtime") {
		t.Errorf("with another runtime RDMA is %+v, warnings are %q", got, warnings)
	}
}

// TestPodsOfTrainJobs: what a TrainJob says about its pods' nodes, resources, volumes and variables counts as Trainer applies it. The embedded
// scheduler and the quota check rely on it.
func TestPodsOfTrainJobs(t *testing.T) {
	const pod = "nodeSelector: {pool: gpu}, tolerations: [{key: nvidia.com/gpu, operator: Exists}], affinity: {nodeAffinity: {}}, " +
		"volumes: [{name: scratch, emptyDir: {sizeLimit: 16Mi}}], containers: [{name: node, env: [{name: A, value: b}], volumeMounts: [{name: scratch, mountPath: /scratch}]}]"
	const metadata = "metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: rack}}"
	for name, more := range map[string]string{
		"patches":   "  runtimePatches: [{manager: me, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {" + metadata + ", spec: {" + pod + "}}}}}]}}}}]",
		"overrides": "  podTemplateOverrides: [{targetJobs: [{name: node}], " + metadata + ", spec: {" + pod + "}}]",
	} {
		t.Run(name, func(t *testing.T) {
			got := trainjob.Convert(job(t, "{numNodes: 2, command: [mpirun, pi], resourcesPerNode: {requests: {cpu: 4}, limits: {nvidia.com/gpu: 8}}}", more), base(t))
			workers, launcher := got.Workers.Template.Spec, got.Launcher.Template.Spec
			if workers.NodeSelector["pool"] != "gpu" || len(workers.Tolerations) != 1 || workers.Affinity == nil || workers.Affinity.NodeAffinity == nil {
				t.Errorf("workers are placed by %v, %v, %v", workers.NodeSelector, workers.Tolerations, workers.Affinity)
			}
			if len(launcher.NodeSelector)+len(launcher.Tolerations) > 0 || launcher.Affinity != nil {
				t.Errorf("the launcher is placed by %v, %v, %v", launcher.NodeSelector, launcher.Tolerations, launcher.Affinity)
			}
			if topology := got.WithKueueTopology().Topology; topology.Key != "rack" || got.Launcher.Template.Annotations["kueue.x-k8s.io/podset-required-topology"] != "" {
				t.Errorf("they require the topology %+v", topology)
			}
			main := workers.Containers[0]
			isScratch := func(v corev1.Volume) bool { return v.Name == "scratch" && v.EmptyDir.SizeLimit.String() == "16Mi" }
			isMounted := func(m corev1.VolumeMount) bool { return m.Name == "scratch" && m.MountPath == "/scratch" }
			if !slices.ContainsFunc(workers.Volumes, isScratch) || !slices.ContainsFunc(main.VolumeMounts, isMounted) || !slices.Contains(main.Env, corev1.EnvVar{Name: "A", Value: "b"}) {
				t.Errorf("workers have the volumes %+v, mounted at %+v, and the variables %+v", workers.Volumes, main.VolumeMounts, main.Env)
			}
			resources := main.Resources
			if cpu, memory, gpus := resources.Requests.Cpu().String(), resources.Requests.Memory().String(), resources.Limits["nvidia.com/gpu"]; cpu != "4" || memory != "128Mi" || gpus.String() != "8" {
				t.Errorf("a worker requests %s of cpu and %s of memory, and has %s GPUs; want 4, the runtime's 128Mi, and 8", cpu, memory, gpus.String())
			}
		})
	}
}

// TestDeadlineFrom: Trainer counts a deadline from a TrainJob's creation, or from when it was resumed last.
func TestDeadlineFrom(t *testing.T) {
	created := metav1.NewTime(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))
	later := metav1.NewTime(created.Add(time.Hour))
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       time.Time
	}{
		"created":   {want: created.Time},
		"resumed":   {[]metav1.Condition{{Type: "Suspended", Status: metav1.ConditionFalse, LastTransitionTime: later}}, later.Time},
		"suspended": {[]metav1.Condition{{Type: "Suspended", Status: metav1.ConditionTrue, LastTransitionTime: later}}, created.Time},
	} {
		t.Run(name, func(t *testing.T) {
			job := trainjob.TrainJob{
				ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "ns", CreationTimestamp: created},
				Spec:       trainjob.Spec{ActiveDeadlineSeconds: new(int64(60))}, Status: trainjob.Status{Conditions: test.conditions},
			}
			if got := trainjob.Convert(job, trainjob.Runtime{}).Lifecycle.DeadlineFrom; !got.Equal(test.want) {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
