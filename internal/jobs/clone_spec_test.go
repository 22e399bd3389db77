package jobs

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// written is an MPIJob as a user writes it, with fields that no specification contains.
const written = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: solver
  labels: {team: x, kueue.x-k8s.io/queue-name: gpus}
  annotations: {note: kept, opendatahub.io/connections: "s3,db"}
spec:
  slotsPerWorker: 2
  runPolicy: {cleanPodPolicy: None, backoffLimit: 2, activeDeadlineSeconds: 3600, suspend: true, schedulingPolicy: {scheduleTimeoutSeconds: 600}}
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: mpi-launcher
            image: quay.io/me/solver
            command: [mpirun, --tag-output, --bind-to, core, -n, "8"]
            args: [./solver, input.dat]
            env: [{name: MODE, value: fast}, {name: OLD, value: x}]
    Worker:
      replicas: 4
      template:
        spec:
          priorityClassName: high
          containers:
          - name: mpi-worker
            image: quay.io/me/solver
            env: [{name: MODE, value: fast}, {name: OLD, value: x}, {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}]
            resources: {requests: {cpu: 2, memory: 8Gi}, limits: {cpu: 2, memory: 8Gi, nvidia.com/gpu: 2}}
            volumeMounts: [{name: data, mountPath: /data}]
          - {name: sidecar, image: quay.io/me/sidecar}
          volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`

func TestSpecOf(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t)
	spec, kept, err := c.SpecOf(t.Context(), FromObject(object(t, written)))
	if err != nil {
		t.Fatal(err)
	}
	want := Spec{
		Name: "solver", Namespace: "ns", Image: "quay.io/me/solver", Command: []string{"./solver", "input.dat"}, MPIFlags: []string{"--bind-to", "core"},
		Workers: 4, GPU: 2, GPUResource: "nvidia.com/gpu", CPU: "2", Memory: "8Gi", Queue: "gpus", Priority: "high", Connections: []string{"s3", "db"},
		Env: []corev1.EnvVar{{Name: "MODE", Value: "fast"}, {Name: "OLD", Value: "x"}}, Retries: new(int32(2)), Deadline: time.Hour, GangTimeout: 10 * time.Minute,
		Labels: map[string]string{"team": "x"},
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, path := range []string{
		"metadata.annotations.note", "spec.runPolicy.cleanPodPolicy",
		"spec.mpiReplicaSpecs.Worker.template.spec.containers[sidecar].image", "spec.mpiReplicaSpecs.Worker.template.spec.containers[mpi-worker].volumeMounts[data].mountPath",
		"spec.mpiReplicaSpecs.Worker.template.spec.containers[mpi-worker].env[KEY].valueFrom.secretKeyRef.key",
	} {
		if !slices.Contains(kept, path) {
			t.Errorf("%s is not kept: %q", path, kept)
		}
	}
	for _, path := range []string{"spec.slotsPerWorker", "spec.mpiReplicaSpecs.Launcher.template.spec.containers[mpi-launcher].command", "spec.mpiReplicaSpecs.Worker.replicas", "metadata.name"} {
		if slices.Contains(kept, path) {
			t.Errorf("%s is in the specification", path)
		}
	}
}

// TestSpecOfBuilt reads the specification of jobs that were built from one.
func TestSpecOfBuilt(t *testing.T) {
	t.Parallel()
	runtime := object(t, `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: torch}
spec: {mlPolicy: {numNodes: 3, torch: {}}, template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {containers: [{name: node, image: i}]}}}}}]}}}
`)
	runtime.SetNamespace("")
	c, _ := newServer(t, runtime, parsed(t, runtimeText))
	pods := func(s *Spec) {
		s.Volumes = []Volume{{Source: VolumeClaim, Name: "data", Path: "/data", ReadOnly: true}, {Source: VolumeMemory, Size: "8Gi", Path: "/dev/shm"}, {Source: VolumeSecret, Name: "s", Path: "/s"}, {Source: VolumeConfigMap, Name: "c", Path: "/c"}, {Source: VolumeScratch, Size: "1Gi", Path: "/scratch"}}
		s.Output = &Volume{Source: VolumeClaim, Name: "data", Path: "/results", SubPath: "old"}
		s.NodeSelector, s.Tolerations, s.ImagePullSecrets = map[string]string{"gpu": "a100"}, []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}, []string{"registry"}
		s.ServiceAccount, s.WorkDir, s.Topology, s.GracePeriod, s.RunAsUser = "trainer", "/app", "example.com/rack", new(time.Minute), new(int64(7))
		s.Labels, s.Env = map[string]string{"team": "a"}, []corev1.EnvVar{{Name: "A", Value: "1"}}
	}
	for name, change := range map[string]func(*Spec){
		"pods":             func(s *Spec) { pods(s); s.TopologyPreferred, s.LauncherCPU, s.LauncherMemory = true, "1", "2Gi" },
		"a launcher's CPU": func(s *Spec) { s.LauncherCPU = "1" },
		"a TrainJob's pods": func(s *Spec) {
			pods(s)
			s.Runtime, s.Slots, s.MPIFlags = "mpi-openmpi", new(int32(2)), []string{"--bind-to", "core"}
		},
		"a TrainJob's folder": func(s *Spec) { s.Runtime, s.WorkDir = "mpi-openmpi", "/app" },
		"a TrainJob's flags":  func(s *Spec) { s.Runtime, s.MPIFlags = "mpi-openmpi", []string{"--bind-to", "core"} },
		"the smallest":        func(*Spec) {},
		"Intel MPI":           func(s *Spec) { s.Implementation, s.MPIFlags = "Intel", []string{"-genv", "A", "1"} },
		"its own mpirun":      func(s *Spec) { s.Command = []string{"mpirun", "-n", "3", "pi"} },
		"slots and a user":    func(s *Spec) { s.Slots, s.RunAsUser = new(int32(4)), new(int64(1000)) },
		"optional RDMA":       func(s *Spec) { s.RDMA = "optional" },
		"a TTL":               func(s *Spec) { s.TTL = new(time.Duration) },
		"a TrainJob's TTL":    func(s *Spec) { s.Runtime, s.TTL = "torch", new(time.Hour) },
		"a TrainJob":          func(s *Spec) { s.Runtime, s.Queue, s.Priority = "torch", "q", "high" },
		"a TrainJob's class":  func(s *Spec) { s.Runtime, s.Priority = "mpi-openmpi", "high" },
		"a TrainJob with GPU": func(s *Spec) { s.Runtime, s.GPU, s.Slots = "torch", 1, new(int32(2)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := small(change)
			built, err := c.Build(t.Context(), want)
			if err != nil {
				t.Fatal(err)
			}
			got, kept, err := c.SpecOf(t.Context(), FromObject(built.Job))
			if err != nil || len(kept) > 0 {
				t.Fatalf("kept %q, %v", kept, err)
			}
			if got.Retries != nil && *got.Retries == 0 {
				got.Retries = nil
			}
			if want.GPU > 0 {
				want.GPUResource = string(nvidiaGPU)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	nodes := object(t, "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: t}\nspec: {runtimeRef: {name: torch}, trainer: {command: [pi]}}")
	if spec, _, err := c.SpecOf(t.Context(), FromObject(nodes)); err != nil || spec.Workers != 3 {
		t.Errorf("%d workers, %v; the runtime has 3", spec.Workers, err)
	}
}

func TestCloneWithSpec(t *testing.T) {
	t.Parallel()
	job := object(t, written)
	c, _ := newServer(t)
	spec, _, err := c.SpecOf(t.Context(), FromObject(job))
	if err != nil {
		t.Fatal(err)
	}
	spec.Name, spec.Workers, spec.CPU, spec.GPU, spec.Slots, spec.Connections = "solver-2", 8, "4", 1, new(int32(2)), nil
	spec.Env = []corev1.EnvVar{{Name: "MODE", Value: "slow"}, {Name: "NEW", Value: "y"}}
	clone, err := c.CloneWithSpec(t.Context(), FromObject(job), spec)
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: solver-2
  labels: {team: x, kueue.x-k8s.io/queue-name: gpus}
  annotations: {note: kept}
spec:
  slotsPerWorker: 2
  runPolicy: {cleanPodPolicy: None, backoffLimit: 2, activeDeadlineSeconds: 3600, schedulingPolicy: {scheduleTimeoutSeconds: 600}}
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: mpi-launcher
            image: quay.io/me/solver
            command: [mpirun, --tag-output, --bind-to, core, -n, "16", ./solver, input.dat]
            env: [{name: MODE, value: slow}, {name: NEW, value: "y"}]
    Worker:
      replicas: 8
      template:
        spec:
          priorityClassName: high
          containers:
          - name: mpi-worker
            image: quay.io/me/solver
            env: [{name: MODE, value: slow}, {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}, {name: NEW, value: "y"}]
            resources: {requests: {cpu: "4", memory: 8Gi, nvidia.com/gpu: "1"}, limits: {cpu: "4", memory: 8Gi, nvidia.com/gpu: "1"}}
            volumeMounts: [{name: data, mountPath: /data}]
          - {name: sidecar, image: quay.io/me/sidecar}
          volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`)
	want.SetUID("")
	if diff := cmp.Diff(want.Object, clone.Job.Object); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	again, err := c.Clone(t.Context(), FromObject(job), "solver-2", clone.ChangesOf()...)
	if err != nil {
		t.Fatalf("%v of the changes %v", err, clone.ChangesOf())
	}
	if diff := cmp.Diff(clone.Job.Object, again.Job.Object); diff != "" {
		t.Errorf("the changes make another job (-want +got)\n%s", diff)
	}

	same, _, err := c.SpecOf(t.Context(), FromObject(job))
	if err != nil {
		t.Fatal(err)
	}
	same.Name = "solver-3"
	if clone, err := c.CloneWithSpec(t.Context(), FromObject(job), same); err != nil || len(clone.ChangesOf()) > 0 {
		t.Errorf("a clone without changes: %v, %v", clone.ChangesOf(), err)
	}
}

// TestCloneWithPods changes volumes and nodes of a clone, and keeps what the original has besides.
func TestCloneWithPods(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t, parsed(t, runtimeText))
	for _, name := range []string{"", "mpi-openmpi"} {
		built, err := c.Build(t.Context(), small(func(s *Spec) {
			s.Runtime, s.NodeSelector, s.GracePeriod = name, map[string]string{"gpu": "a100"}, new(time.Minute)
			s.Volumes = []Volume{{Source: VolumeClaim, Name: "data", Path: "/data"}, {Source: VolumeClaim, Name: "data", Path: "/more", SubPath: "more"}}
		}))
		if err != nil {
			t.Fatal(err)
		}
		spec, _, err := c.SpecOf(t.Context(), FromObject(built.Job))
		if err != nil {
			t.Fatal(err)
		}
		spec.Name, spec.NodeSelector = "pi-2", nil
		spec.Volumes = append(spec.Volumes[:1], Volume{Source: VolumeScratch, Size: "1Gi", Path: "/scratch"})
		clone, err := c.CloneWithSpec(t.Context(), FromObject(built.Job), spec)
		if err != nil {
			t.Fatal(err)
		}
		want, err := c.Build(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asYAML(t, want.Job), asYAML(t, clone.Job)); diff != "" {
			t.Errorf("with the runtime %q (-want +got)\n%s", name, diff)
		}
	}
}

// TestCloneKeepsOverrides: with Trainer v2.1, a clone with changed settings keeps what the user has written besides, in its place.
func TestCloneKeepsOverrides(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t, parsed(t, runtimeText))
	c.discovery = schemas{text: `{"podTemplateOverrides": {}}`}
	own := map[string]any{"targetJobs": []any{map[string]any{"name": "node"}}, "spec": map[string]any{"schedulerName": "mine"}}
	all := func(pool string) []any {
		override := func(names ...string) any {
			var targets []any
			for _, name := range names {
				targets = append(targets, map[string]any{"name": name})
			}
			return map[string]any{"targetJobs": targets, "spec": map[string]any{"nodeSelector": map[string]any{"pool": pool}}}
		}
		return []any{override("launcher", "node"), override("initializer")}
	}
	for name, test := range map[string]struct{ written, want []any }{
		"of another place": {[]any{own}, append([]any{own}, all("b")...)},
		"besides create's": {append(all("a"), own), append(append(all("a"), own), all("b")...)},
		"of create":        {all("a"), all("b")},
		"none":             {nil, all("b")},
	} {
		built, err := c.Build(t.Context(), small(func(s *Spec) { s.Runtime = "mpi-openmpi" }))
		if err != nil {
			t.Fatal(err)
		}
		if test.written != nil {
			if err := unstructured.SetNestedSlice(built.Job.Object, test.written, "spec", "podTemplateOverrides"); err != nil {
				t.Fatal(err)
			}
		}
		clone, err := c.CloneEdited(t.Context(), FromObject(built.Job), "next", func(s *Spec) { s.NodeSelector = map[string]string{"pool": "b"} })
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, valueAt(clone.Job.Object, "spec.podTemplateOverrides")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestCloneKeepsTolerations: a toleration that no setting describes stays, and others follow those of the clone.
func TestCloneKeepsTolerations(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t)
	built, err := c.Build(t.Context(), small(func(s *Spec) { s.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}} }))
	if err != nil {
		t.Fatal(err)
	}
	job := parsed(t, strings.ReplaceAll(asYAML(t, built.Job), "tolerations:", "tolerations:\n          - {key: late, operator: Exists, tolerationSeconds: 60}"))
	clone, err := c.CloneEdited(t.Context(), FromObject(job), "next", func(s *Spec) { s.Tolerations = []corev1.Toleration{{Key: "b", Operator: corev1.TolerationOpExists}} })
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range valuesAt(t, clone.Job, podField(inPods, "tolerations")) {
		if !strings.Contains(text, `"late"`) || !strings.Contains(text, `"b"`) {
			t.Errorf("the tolerations are %s", text)
		}
	}
}

// TestCloneRanks: ranks follow the slots of a clone whose other flags change the command's words, or the slots of each worker, too.
func TestCloneRanks(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t)
	for name, test := range map[string]struct {
		change func(*Spec)
		want   []string
	}{
		"GPUs":            {func(s *Spec) { s.GPU = 2 }, []string{"mpirun", "--tag-output", "-n", "16", "train"}},
		"flags of mpirun": {func(s *Spec) { s.MPIFlags = []string{"--oversubscribe"} }, []string{"mpirun", "--tag-output", "--oversubscribe", "-n", "8", "train"}},
		"a command":       {func(s *Spec) { s.Command = []string{"mpirun", "-n", "4", "other"} }, []string{"mpirun", "-n", "4", "other"}},
	} {
		built, err := c.Build(t.Context(), small(func(s *Spec) { s.Workers, s.Command = 4, []string{"train"} }))
		if err != nil {
			t.Fatal(err)
		}
		spec, _, err := c.SpecOf(t.Context(), FromObject(built.Job))
		if err != nil {
			t.Fatal(err)
		}
		spec.Name = "pi-2"
		test.change(&spec)
		clone, err := c.CloneWithSpec(t.Context(), FromObject(built.Job), spec, Change{Field: "workers", Value: "8"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, FromObject(clone.Job).Summary().Command); diff != "" || clone.Note != "" {
			t.Errorf("%s: the note is %q (-want +got)\n%s", name, clone.Note, diff)
		}
	}
}

// TestCloneRanksOfDeletedJob: the numbers of a manifest in a report are read as those of an object of the API server are.
func TestCloneRanksOfDeletedJob(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t)
	built, err := c.Build(t.Context(), small(func(s *Spec) { s.Workers, s.Command = 4, []string{"train"} }))
	if err != nil {
		t.Fatal(err)
	}
	clone, err := c.Clone(t.Context(), deletedJob("MPIJob", asYAML(t, built.Job)), "again", Change{Field: "workers", Value: "8"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mpirun", "--tag-output", "-n", "8", "train"}, FromObject(clone.Job).Summary().Command); diff != "" || clone.Note != "" {
		t.Errorf("the note is %q (-want +got)\n%s", clone.Note, diff)
	}
}

func TestNoSpec(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t)
	launcherOnly := object(t, "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: l}\nspec: {mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: l, image: i, command: [pi]}]}}}}}")
	if _, is := errors.AsType[*InvalidError](third(c.SpecOf(t.Context(), FromObject(launcherOnly)))); !is {
		t.Error("a job without workers has a specification")
	}
	deleted := FromReport(reportFor("MPIJob", "gone", "g", v1alpha1.JobReportStatus{}))
	if _, is := errors.AsType[*DeletedError](third(c.SpecOf(t.Context(), deleted))); !is {
		t.Error("a deleted job has a specification")
	}
	if _, err := c.CloneWithSpec(t.Context(), FromObject(object(t, written)), small(func(*Spec) {})); err != nil {
		t.Error(err)
	}
}

// third returns the third of three values.
func third[A, B, C any](_ A, _ B, c C) C { return c }
