package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/mpi"
)

// small is the smallest valid specification, with changes.
func small(change func(*Spec)) Spec {
	s := Spec{Name: "pi", Namespace: "ns", Image: "i", Command: []string{"pi"}, Workers: 2}
	change(&s)
	return s
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"valid":                   {func(*Spec) {}, ""},
		"nothing set":             {func(s *Spec) { *s = Spec{} }, "name: is required; image: is required without a runtime; command: is required; workers: 0 is not allowed; use 1 or more"},
		"a runtime has the image": {func(s *Spec) { s.Image, s.Runtime = "", "r" }, ""},
		"negative GPUs":           {func(s *Spec) { s.GPU = -1 }, "gpu: -1 is not allowed; use 0 or more"},
		"no slots":                {func(s *Spec) { s.Slots = new(int32(0)) }, "slots: 0 is not allowed; use 1 or more"},
		"negative retries":        {func(s *Spec) { s.Retries = new(int32(-1)) }, "retries: -1 is not allowed; use 0 or more"},
		"root":                    {func(s *Spec) { s.RunAsUser = new(int64(0)) }, "runAsUser: 0 is not allowed; use 1 or more"},
		"a negative TTL":          {func(s *Spec) { s.TTL = new(-time.Second) }, "ttl: -1s is not allowed; use whole seconds, 0 or more"},
		"a TTL of 100 years":      {func(s *Spec) { s.TTL = new(876000 * time.Hour) }, "ttl: 876000h0m0s is too long; use at most 2147483647 seconds"},
		"RDMA":                    {func(s *Spec) { s.RDMA = "maybe" }, "rdma: maybe is not allowed; use required or optional"},
		"half a second":           {func(s *Spec) { s.Deadline = time.Second / 2 }, "deadline: 500ms is not allowed; use whole seconds, or 0 for no deadline"},
		"negative gang timeout":   {func(s *Spec) { s.GangTimeout = -time.Second }, "gangTimeout: -1s is not allowed; use whole seconds, or 0 for the default"},
		"negative grace period":   {func(s *Spec) { s.GracePeriod = new(-time.Second) }, "gracePeriod: -1s is not allowed; use whole seconds, 0 or more"},
		"a relative folder":       {func(s *Spec) { s.WorkDir = "a" }, "workdir: a is not allowed; use an absolute path"},
		"a topology of two words": {func(s *Spec) { s.Topology = "a b" }, "topology: a b is not the key of a node label, such as topology.kubernetes.io/zone"},
		"wrong quantities":        {func(s *Spec) { s.CPU, s.Memory = "four", "0" }, "cpu: four is not a quantity; use a value such as 4, 500m or 16Gi; memory: 0 is not a quantity; use a value such as 4, 500m or 16Gi"},
		"a wrong launcher":        {func(s *Spec) { s.LauncherCPU, s.LauncherMemory = "x", "-1" }, "launcherCpu: x is not a quantity; use a value such as 4, 500m or 16Gi; launcherMemory: -1 is not a quantity; use a value such as 4, 500m or 16Gi"},
		"an unknown MPI":          {func(s *Spec) { s.Implementation = "lam" }, "implementation: lam is not supported; use OpenMPI, Intel or MPICH"},
		"an MPI in any case":      {func(s *Spec) { s.Implementation = "mpich" }, ""},
		"a wrong volume":          {func(s *Spec) { s.Volumes = []Volume{{Source: "tape", Name: "a", Path: "/a"}} }, `volume: has the unknown source "tape"; use claim, configmap, secret, memory or scratch`},
		"two volumes at one path": {func(s *Spec) {
			s.Volumes = []Volume{{Source: VolumeClaim, Name: "a", Path: "/a"}, {Source: VolumeClaim, Name: "b", Path: "/a/"}}
		}, "volume: /a is the path of two volumes"},
		"results at a used path": {func(s *Spec) {
			s.Volumes, s.Output = []Volume{{Source: VolumeClaim, Name: "a", Path: "/a"}}, &Volume{Source: VolumeClaim, Name: "b", Path: "/a"}
		}, "outputDir: /a is the path of two volumes"},
		"results in memory":     {func(s *Spec) { s.Output = &Volume{Source: VolumeMemory, Size: "1Gi", Path: "/a"} }, "outputDir: must be a claim that can be written to"},
		"results that are read": {func(s *Spec) { s.Output = &Volume{Source: VolumeClaim, Name: "a", Path: "/a", ReadOnly: true} }, "outputDir: must be a claim that can be written to"},
		"what a runtime determines": {
			func(s *Spec) {
				s.Runtime, s.Implementation, s.LauncherCPU, s.LauncherMemory = "r", "Intel", "1", "1Gi"
			},
			"implementation: cannot be set with a runtime, which determines the MPI; use a runtime of that MPI; " +
				"launcherCpu: " + launcherSize + "; launcherMemory: " + launcherSize,
		},
		"a folder and an mpirun": {
			func(s *Spec) { s.Runtime, s.WorkDir, s.Command = "r", "/my data", []string{"mpirun", "pi"} },
			`workdir: /my data cannot be combined with a runtime and a command that starts ranks itself; write mpirun --wdir '/my data' in the command`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if errs := small(test.change).Validate(); len(errs) > 0 {
				got = Invalid(errs...).Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestParseVolume(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Volume{
		"data:/data":                    {Source: VolumeClaim, Name: "data", Path: "/data"},
		"claim/data:/data:rw":           {Source: VolumeClaim, Name: "data", Path: "/data"},
		"secret/token:/etc/token:ro":    {Source: VolumeSecret, Name: "token", Path: "/etc/token", ReadOnly: true},
		"ConfigMap/settings:/etc/x":     {Source: VolumeConfigMap, Name: "settings", Path: "/etc/x"},
		"memory/8Gi:/dev/shm":           {Source: VolumeMemory, Size: "8Gi", Path: "/dev/shm"},
		"scratch/50Gi:/scratch/folder/": {Source: VolumeScratch, Size: "50Gi", Path: "/scratch/folder/"},
	} {
		got, err := ParseVolume(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", text, diff)
		}
	}
	for text, want := range map[string]string{
		"data":             "must be [SOURCE/]NAME:PATH[:ro]",
		"data:/data:write": "must be [SOURCE/]NAME:PATH[:ro]",
		"a:b:c:d":          "must be [SOURCE/]NAME:PATH[:ro]",
		"tape/a:/a":        `unknown source "tape"`,
		"Data_1:/data":     `the name "Data_1", which is not valid`,
		"memory/much:/a":   `the size "much", which is not a quantity; use a value such as memory/8Gi:/a`,
		"scratch/0:/a":     `the size "0"`,
		"data:data":        `the path "data"; use an absolute path other than /`,
		"data:/":           `the path "/"`,
	} {
		if _, err := ParseVolume(text); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "volume: "+text) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestParseToleration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]corev1.Toleration{
		"gpu":                      {Key: "gpu", Operator: corev1.TolerationOpExists},
		"nvidia.com/gpu:NoExecute": {Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		"pool=fast":                {Key: "pool", Operator: corev1.TolerationOpEqual, Value: "fast"},
		"pool=fast:NoSchedule":     {Key: "pool", Operator: corev1.TolerationOpEqual, Value: "fast", Effect: corev1.TaintEffectNoSchedule},
	} {
		got, err := ParseToleration(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", text, diff)
		}
	}
	for _, text := range []string{"", "=x", "a b", "gpu:Never", "gpu=a b"} {
		if _, err := ParseToleration(text); err == nil {
			t.Errorf("%q is a toleration", text)
		}
	}
}

func asYAML(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// everything sets every field of an MPIJob.
func everything(s *Spec) {
	*s = Spec{
		Name: "train", Namespace: "ns", Image: "i", Command: []string{"python", "train.py"}, Workers: 2, GPU: 4, CPU: "8", Memory: "64Gi",
		Implementation: "intel", Queue: "team", Priority: "high", Connections: []string{"data", "model"}, Env: []corev1.EnvVar{{Name: "A", Value: "1"}},
		Labels: map[string]string{"a": "b"}, RunAsUser: new(int64(1000)), Retries: new(int32(3)), Deadline: time.Hour, Suspend: true,
		Volumes:      []Volume{{Source: VolumeClaim, Name: "data", Path: "/data", ReadOnly: true}, {Source: VolumeMemory, Size: "8Gi", Path: "/dev/shm"}, {Source: VolumeSecret, Name: "s", Path: "/s"}, {Source: VolumeConfigMap, Name: "c", Path: "/c"}, {Source: VolumeScratch, Size: "1Gi", Path: "/scratch"}},
		Output:       &Volume{Source: VolumeClaim, Name: "data", Path: "/results"},
		NodeSelector: map[string]string{"gpu": "a100"}, Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}, ImagePullSecrets: []string{"registry"},
		ServiceAccount: "trainer", WorkDir: "/app", LauncherCPU: "1", LauncherMemory: "2Gi", Topology: "example.com/rack", TopologyPreferred: true,
		GangTimeout: 10 * time.Minute, GracePeriod: new(2 * time.Minute),
	}
}

func TestBuildMPIJob(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}})
	built, err := c.Build(t.Context(), small(everything))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"mpirun", "-prepend-rank", "-n", "8", "python", "train.py"}; !slices.Equal(built.Command, want) {
		t.Errorf("the command is %v, want %v", built.Command, want)
	}
	const want = `apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  annotations:
    mpi.opendatahub.io/preferred-topology: example.com/rack
    mpi.opendatahub.io/suspend-in-queue: "true"
    opendatahub.io/connections: data,model
  labels:
    a: b
    kueue.x-k8s.io/queue-name: team
  name: train
  namespace: ns
spec:
  mpiImplementation: Intel
  mpiReplicaSpecs:
    Launcher:
      restartPolicy: Never
      template:
        spec:
          containers:
          - command:
            - mpirun
            - -prepend-rank
            - -n
            - "8"
            - python
            - train.py
            env:
            - name: A
              value: "1"
            - name: OUTPUT_DIR
              value: /results
            image: i
            name: launcher
            resources:
              limits:
                memory: 2Gi
              requests:
                cpu: "1"
                memory: 2Gi
            securityContext:
              allowPrivilegeEscalation: false
              capabilities:
                drop:
                - ALL
              runAsNonRoot: true
              runAsUser: 1000
              seccompProfile:
                type: RuntimeDefault
POD    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          containers:
          - env:
            - name: A
              value: "1"
            - name: OUTPUT_DIR
              value: /results
            image: i
            name: worker
            resources:
              limits:
                memory: 64Gi
                nvidia.com/gpu: "4"
              requests:
                cpu: "8"
                memory: 64Gi
                nvidia.com/gpu: "4"
            securityContext:
              allowPrivilegeEscalation: false
              capabilities:
                drop:
                - ALL
              runAsNonRoot: true
              runAsUser: 1000
              seccompProfile:
                type: RuntimeDefault
POD  runPolicy:
    activeDeadlineSeconds: 3600
    backoffLimit: 3
    cleanPodPolicy: Running
    schedulingPolicy:
      scheduleTimeoutSeconds: 600
    suspend: true
  slotsPerWorker: 4
`
	const pod = `            volumeMounts:
            - mountPath: /data
              name: volume-0
              readOnly: true
            - mountPath: /dev/shm
              name: volume-1
            - mountPath: /s
              name: volume-2
            - mountPath: /c
              name: volume-3
            - mountPath: /scratch
              name: volume-4
            - mountPath: /results
              name: volume-0
              subPath: train
            workingDir: /app
          imagePullSecrets:
          - name: registry
          nodeSelector:
            gpu: a100
          priorityClassName: high
          serviceAccountName: trainer
          terminationGracePeriodSeconds: 120
          tolerations:
          - key: gpu
            operator: Exists
          volumes:
          - name: volume-0
            persistentVolumeClaim:
              claimName: data
          - emptyDir:
              medium: Memory
              sizeLimit: 8Gi
            name: volume-1
          - name: volume-2
            secret:
              secretName: s
          - configMap:
              name: c
            name: volume-3
          - emptyDir:
              sizeLimit: 1Gi
            name: volume-4
`
	if diff := cmp.Diff(strings.ReplaceAll(want, "POD", pod), asYAML(t, built.Job)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	plain, err := c.Build(t.Context(), small(func(s *Spec) { s.Namespace, s.Command = "other", []string{"mpirun", "pi"} }))
	if err != nil || plain.Command != nil {
		t.Fatalf("mpirun was added to mpirun: %v, %v", plain.Command, err)
	}
	for _, field := range []string{"runAsNonRoot", "volumes", "annotations", "labels", "terminationGracePeriodSeconds"} {
		if strings.Contains(asYAML(t, plain.Job), field) {
			t.Errorf("the smallest job sets %s", field)
		}
	}
	if _, err := c.Build(t.Context(), Spec{}); err == nil {
		t.Error("an invalid specification is built")
	}
}

const runtimeText = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: mpi-openmpi, annotations: {mpi.opendatahub.io/mpi-implementation: OpenMPI, mpi.opendatahub.io/max-gpus-per-worker: "4"}}
spec:
  mlPolicy: {numNodes: 1, mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI, sshAuthMountPath: /home/mpi/.ssh, runLauncherAsNode: true}}
  template:
    spec:
      replicatedJobs:
      - {name: launcher, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node, image: r}]}}}}}
      - {name: node, template: {spec: {template: {spec: {containers: [{name: node, image: r}]}}}}}
      - {name: initializer, template: {spec: {template: {spec: {containers: [{name: other, image: r}]}}}}}
`

// torchRuntime returns a runtime without MPI, named torch.
func torchRuntime(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	runtime := parsed(t, strings.Replace(strings.Replace(runtimeText, "mpi-openmpi", "torch", 1), "mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI, sshAuthMountPath: /home/mpi/.ssh, runLauncherAsNode: true}", "torch: {}", 1))
	runtime.SetAnnotations(nil)
	return runtime
}

// upstreamRuntime returns an MPI runtime that is none of the operator, named deepspeed.
func upstreamRuntime(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	runtime := parsed(t, strings.Replace(runtimeText, "mpi-openmpi", "deepspeed", 1))
	runtime.SetAnnotations(nil)
	return runtime
}

// schemas stands in for the discovery of a cluster whose TrainJobs have some fields.
type schemas struct {
	discovery.ServerResourcesInterface
	text string
	err  error
}

func (s schemas) OpenAPIV3() openapi.Client { return s }

func (s schemas) Paths() (map[string]openapi.GroupVersion, error) {
	return map[string]openapi.GroupVersion{"apis/trainer.kubeflow.org/v1alpha1": s}, s.err
}

func (s schemas) Schema(string) ([]byte, error) { return []byte(s.text), nil }
func (s schemas) ServerRelativeURL() string     { return "" }
func (s schemas) Hash() (string, error)         { return "", nil }

// TestBuildSuspended: jobs of both kinds stay suspended in a queue, also in the namespace's default queue, whose label Kueue adds.
func TestBuildSuspended(t *testing.T) {
	t.Parallel()
	runtime := parsed(t, runtimeText)
	runtime.SetUID("r")
	c, _ := newServer(t, runtime)
	for _, spec := range []Spec{
		{Name: "train", Namespace: "ns", Image: "i", Command: []string{"x"}, Workers: 1, Suspend: true},
		{Name: "train", Namespace: "ns", Runtime: "mpi-openmpi", Command: []string{"x"}, Workers: 1, Suspend: true},
	} {
		built, err := c.Build(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if job := FromObject(built.Job); !job.Suspended() || built.Job.GetAnnotations()[mpi.AnnotationSuspendInQueue] != "true" {
			t.Errorf("%s: suspended: %t, annotations %v", job.Kind, job.Suspended(), built.Job.GetAnnotations())
		}
	}
}

func TestBuildTrainJob(t *testing.T) {
	t.Parallel()
	runtime := parsed(t, runtimeText)
	runtime.SetUID("r")
	c, _ := newServer(t, runtime)
	spec := Spec{
		Name: "train", Namespace: "ns", Runtime: "mpi-openmpi", Image: "i", Command: []string{"python", "train.py"}, Workers: 2, GPU: 4, Slots: new(int32(4)), Queue: "team", Priority: "high", Deadline: time.Minute, Suspend: true,
		Volumes: []Volume{{Source: VolumeClaim, Name: "data", Path: "/data"}}, NodeSelector: map[string]string{"gpu": "a100"}, Topology: "example.com/rack",
	}
	built, err := c.Build(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	const want = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  annotations:
    mpi.opendatahub.io/required-topology: example.com/rack
    mpi.opendatahub.io/suspend-in-queue: "true"
  labels:
    kueue.x-k8s.io/priority-class: high
    kueue.x-k8s.io/queue-name: team
  name: train
  namespace: ns
spec:
  activeDeadlineSeconds: 60
  PATCHES  runtimeRef:
    kind: ClusterTrainingRuntime
    name: mpi-openmpi
  suspend: true
  trainer:
    command:
    - mpirun
    - --tag-output
    - -n
    - "8"
    - python
    - train.py
    image: i
    numNodes: 2
    numProcPerNode: 4
    resourcesPerNode:
      limits:
        nvidia.com/gpu: "4"
      requests:
        nvidia.com/gpu: "4"
`
	const pod = `spec:
containers:
- name: node
  volumeMounts:
  - mountPath: /data
    name: volume-0
nodeSelector:
  gpu: a100
volumes:
- name: volume-0
  persistentVolumeClaim:
    claimName: data
`
	indented := func(indent int) string {
		lines := strings.Split(strings.TrimSuffix(pod, "\n"), "\n")
		for i := range lines {
			if i > 0 {
				lines[i] = "  " + lines[i]
			}
			lines[i] = strings.Repeat(" ", indent) + lines[i]
		}
		return strings.Join(lines, "\n") + "\n"
	}
	patches := "runtimePatches:\n  - manager: mpi.opendatahub.io/jobs\n    trainingRuntimeSpec:\n      template:\n        spec:\n          replicatedJobs:\n" +
		"          - name: launcher\n            template:\n              spec:\n                template:\n" + indented(18) +
		"          - name: node\n            template:\n              spec:\n                template:\n" + indented(18) +
		"          - name: initializer\n            template:\n              spec:\n                template:\n                  spec:\n                    nodeSelector:\n                      gpu: a100\n"
	overrides := "podTemplateOverrides:\n  - " + strings.TrimLeft(indented(4), " ") + "    targetJobs:\n    - name: launcher\n    - name: node\n" +
		"  - spec:\n      nodeSelector:\n        gpu: a100\n    targetJobs:\n    - name: initializer\n"
	if diff := cmp.Diff(strings.Replace(want, "PATCHES", patches, 1), asYAML(t, built.Job)); diff != "" {
		t.Errorf("Trainer v2.2 (-want +got)\n%s", diff)
	}
	c.discovery = schemas{text: `{"podTemplateOverrides": {}}`}
	if built, err = c.Build(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Replace(want, "PATCHES", overrides, 1), asYAML(t, built.Job)); diff != "" {
		t.Errorf("Trainer v2.1 (-want +got)\n%s", diff)
	}
	spec.GracePeriod = new(time.Minute)
	if _, err = c.Build(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "requires Kubeflow Trainer v2.2") {
		t.Errorf("a grace period with Trainer v2.1: %v", err)
	}
	c.discovery = schemas{err: context.Canceled}
	if _, err = c.Build(t.Context(), spec); !errors.Is(err, context.Canceled) {
		t.Errorf("discovery fails: %v", err)
	}
	c.discovery = schemas{text: `{"runtimePatches": {}}`}
	if _, err = c.Build(t.Context(), spec); err != nil {
		t.Error(err)
	}
	spec.Runtime = "mpi-opnmpi"
	if _, err = c.Build(t.Context(), spec); err == nil || err.Error() != `runtime "mpi-opnmpi" not found; did you mean mpi-openmpi?` {
		t.Errorf("a runtime that does not exist: %v", err)
	}
	spec.Runtime, spec.GPU = "mpi-openmpi", 8
	if _, err = c.Build(t.Context(), spec); err == nil {
		t.Error("more GPUs than the runtime allows are taken")
	} else if _, is := errors.AsType[*RejectedError](err); !is {
		t.Errorf("more GPUs than the runtime allows: %v", err)
	}
}

// TestTrainJobPods: what a TrainJob has no field for is a flag of mpirun, or a patch whose lists have unique keys.
func TestTrainJobPods(t *testing.T) {
	t.Parallel()
	hydra := parsed(t, strings.Replace(runtimeText, "name: mpi-openmpi, annotations: {mpi.opendatahub.io/mpi-implementation: OpenMPI", "name: mpi-mpich, annotations: {mpi.opendatahub.io/mpi-implementation: MPICH", 1))
	c, _ := newServer(t, parsed(t, runtimeText), torchRuntime(t), hydra)
	spec := Spec{
		Name: "train", Namespace: "ns", Runtime: "mpi-openmpi", Command: []string{"pi"}, Workers: 2, WorkDir: "/app", MPIFlags: []string{"-v"}, RunAsUser: new(int64(7)),
		Volumes: []Volume{{Source: VolumeClaim, Name: "data", Path: "/data"}}, Output: &Volume{Source: VolumeClaim, Name: "data", Path: "/results"},
	}
	for name, want := range map[string][]string{
		"mpi-openmpi": {"mpirun", "--tag-output", "--wdir", "/app", "-v", "-n", "2", "pi"},
		"mpi-mpich":   {"mpirun", "-prepend-rank", "-wdir", "/app", "-v", "-n", "2", "pi"},
	} {
		spec.Runtime = name
		built, err := c.Build(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(built.Command, want) {
			t.Errorf("the command with %s is %q, want %q", name, built.Command, want)
		}
		const container = `[{"name":"node","securityContext":{"runAsNonRoot":true,"runAsUser":7},"volumeMounts":[{"mountPath":"/data","name":"volume-0"},{"mountPath":"/results","name":"volume-1","subPath":"train"}]}]`
		for _, got := range valuesAt(t, built.Job, podField(inPods, "containers")) {
			if got != container {
				t.Errorf("the containers with %s are %s, want %s", name, got, container)
			}
		}
	}
	spec.Runtime = "torch"
	if _, err := c.Build(t.Context(), spec); err == nil || err.Error() != "mpiFlags: cannot be set with runtime torch, which does not use MPI; workdir: cannot be set with runtime torch, which does not use MPI; write the folder in the command: sh -c 'cd FOLDER && exec python train.py'" {
		t.Errorf("without MPI: %v", err)
	}
	c.discovery = schemas{text: `{"podTemplateOverrides": {}}`}
	spec.Runtime, spec.GracePeriod = "mpi-openmpi", new(time.Minute)
	if _, err := c.Build(t.Context(), spec); err == nil || err.Error() != "gracePeriod: cannot be set with a runtime in this cluster; it requires Kubeflow Trainer v2.2; runAsUser: cannot be set with a runtime in this cluster; it requires Kubeflow Trainer v2.2" {
		t.Errorf("with Trainer v2.1: %v", err)
	}
}

// TestPodPatches: settings of all pods change the pods of initializers, too; those of the program's container only the pods that have
// it. The SDK is tested with the same file.
func TestPodPatches(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/pod_patches.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Runtime map[string]any
		Cases   []struct {
			Name               string
			Spec               Spec
			Patches, Overrides []any
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, test := range file.Cases {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			c, _ := newServer(t, &unstructured.Unstructured{Object: file.Runtime})
			test.Spec.Name, test.Spec.Namespace, test.Spec.Runtime, test.Spec.Command, test.Spec.Workers = "train", "ns", "torch", []string{"train.py"}, 2
			built, err := c.Build(t.Context(), test.Spec)
			if err != nil {
				t.Fatal(err)
			}
			want := []any{map[string]any{"manager": runtimePatcher, "trainingRuntimeSpec": map[string]any{"template": map[string]any{"spec": map[string]any{"replicatedJobs": test.Patches}}}}}
			if diff := cmp.Diff(decodedJSON(t, want), decodedJSON(t, valueAt(built.Job.Object, "spec.runtimePatches"))); diff != "" {
				t.Errorf("Trainer v2.2 (-want +got)\n%s", diff)
			}
			isRead := func(job *unstructured.Unstructured) {
				t.Helper()
				spec, kept, err := c.SpecOf(t.Context(), FromObject(job))
				if diff := cmp.Diff(test.Spec, spec); err != nil || diff != "" || len(kept) > 0 {
					t.Errorf("it is read with %v, kept %q (-want +got)\n%s", err, kept, diff)
				}
			}
			isRead(built.Job)
			if test.Overrides == nil {
				return
			}
			c.discovery = schemas{text: `{"podTemplateOverrides": {}}`}
			if built, err = c.Build(t.Context(), test.Spec); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decodedJSON(t, test.Overrides), decodedJSON(t, valueAt(built.Job.Object, "spec.podTemplateOverrides"))); diff != "" {
				t.Errorf("Trainer v2.1 (-want +got)\n%s", diff)
			}
			isRead(built.Job)
		})
	}
}

// decodedJSON returns a value as it is decoded from JSON.
func decodedJSON(t *testing.T, value any) (decoded any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &decoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

func TestCreate(t *testing.T) {
	t.Parallel()
	invalid := metav1.Status{Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec.b", Message: "is wrong"}, {Field: "spec.a", Message: "is required"}, {Field: "spec.a", Message: "is required"}}}}
	policy := func(message string) error {
		status := invalid
		status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: message}}}
		return &apierrors.StatusError{ErrStatus: status}
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"a policy": {
			policy("ValidatingAdmissionPolicy 'mpijob-limits' with binding 'mpijob-limits' denied request: spec.x: Invalid value: 5: must be at most 4"),
			"mpijob/pi is not valid: spec.x: Invalid value: 5: must be at most 4",
		},
		"a policy of others": {
			policy("ValidatingAdmissionPolicy 'owners' with binding 'all' denied request: a job needs the label owner"),
			"mpijob/pi is not valid: a job needs the label owner (ValidatingAdmissionPolicy owners)",
		},
		"no field":      {policy("too much"), "mpijob/pi is not valid: too much"},
		"taken":         {statusError(0, ""), ""},
		"invalid":       {&apierrors.StatusError{ErrStatus: invalid}, "mpijob/pi is not valid: spec.a: is required; spec.b: is wrong"},
		"unknown field": {errors.New(`strict decoding error: unknown field "spec.x"`), `mpijob/pi is not valid: unknown field "spec.x"`},
		"another error": {errors.New("x"), "create mpijob/pi: x"},
	} {
		c, s := newServer(t, object(t, mpiJobText))
		s.refuse = func(verb, _ string) error {
			if verb == "create" && name != "taken" {
				return test.err
			}
			return nil
		}
		job := parsed(t, mpiJobText)
		job.SetNamespace("ns")
		err := c.Create(t.Context(), job, DryRunNone)
		if name == "taken" {
			if _, is := errors.AsType[*ExistsError](err); !is {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	c, _ := newServer(t)
	job := parsed(t, mpiJobText)
	job.SetNamespace("ns")
	for _, dryRun := range []DryRun{DryRunClient, DryRunServer, DryRunNone} {
		if err := c.Create(t.Context(), job.DeepCopy(), dryRun); err != nil {
			t.Fatal(err)
		}
		_, err := c.Find(t.Context(), "ns", "pi")
		if exists := err == nil; exists != (dryRun == DryRunNone) {
			t.Errorf("after a dry run %s the job exists: %t", dryRun, exists)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t)
	built, err := c.Build(t.Context(), small(func(*Spec) {}))
	if err != nil {
		t.Fatal(err)
	}
	if warnings, err := Check(built.Job); err != nil || len(warnings) > 0 {
		t.Errorf("a valid job: %v, %v", warnings, err)
	}
	if err := unstructured.SetNestedField(built.Job.Object, int64(-1), "spec", "mpiReplicaSpecs", "Worker", "replicas"); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(built.Job); err == nil || !strings.Contains(err.Error(), "spec.mpiReplicaSpecs[Worker].replicas") {
		t.Errorf("negative workers: %v", err)
	}
	if names := slices.Sorted(maps.Keys(built.Job.Object)); !slices.Equal(names, []string{"apiVersion", "kind", "metadata", "spec"}) {
		t.Errorf("the job has the fields %v", names)
	}
}

func TestMPIFlags(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"a command that starts ranks": {func(s *Spec) { s.Command, s.MPIFlags = []string{"mpirun", "pi"}, []string{"-v"} }, "mpiFlags: -v cannot be combined with a command that starts ranks itself; write the flags in the command"},
		"no flag":                     {func(s *Spec) { s.MPIFlags = []string{"core"} }, "mpiFlags: core is not allowed; use flags of mpirun, such as --bind-to core"},
		"the number of ranks":         {func(s *Spec) { s.MPIFlags = []string{"-v", "-np", "3"} }, "mpiFlags: -v -np 3 is not allowed: -np sets the number of ranks; use workers and slots"},
	} {
		if got := Invalid(small(test.change).Validate()...).Error(); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
	c, _ := newServer(t)
	built, err := c.Build(t.Context(), small(func(s *Spec) { s.MPIFlags = []string{"--bind-to", "core"} }))
	if want := []string{"mpirun", "--tag-output", "--bind-to", "core", "-n", "2", "pi"}; err != nil || !slices.Equal(built.Command, want) {
		t.Errorf("%q, %v", built.Command, err)
	}
}
