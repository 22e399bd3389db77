package jobs

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/mpi"
)

// examples set each setting. Settings without a field in a specification have no entry.
var examples = map[string]func(*Spec){
	"name":            func(s *Spec) { s.Name = "train" },
	"namespace":       func(s *Spec) { s.Namespace = "team" },
	"runtime":         func(s *Spec) { s.Runtime = "mpi-openmpi" },
	"label":           func(s *Spec) { s.Labels = map[string]string{"example.com/team": "a"} },
	"suspend":         func(s *Spec) { s.Suspend = true },
	"image":           func(s *Spec) { s.Image = "train:2" },
	"command":         func(s *Spec) { s.Command = []string{"python", "train.py"} },
	"mpiFlags":        func(s *Spec) { s.MPIFlags = []string{"--bind-to", "core"} },
	"implementation":  func(s *Spec) { s.Implementation = "MPICH" },
	"workdir":         func(s *Spec) { s.WorkDir = "/app" },
	"env":             func(s *Spec) { s.Env = []corev1.EnvVar{{Name: "A", Value: "1"}} },
	"connection":      func(s *Spec) { s.Connections = []string{"data"} },
	"runAsUser":       func(s *Spec) { s.RunAsUser = new(int64(1000)) },
	"workers":         func(s *Spec) { s.Workers = 3 },
	"slots":           func(s *Spec) { s.Slots = new(int32(2)) },
	"gpu":             func(s *Spec) { s.GPU = 1 },
	"gpuResource":     func(s *Spec) { s.GPU, s.GPUResource = 1, "amd.com/gpu" },
	"cpu":             func(s *Spec) { s.CPU = "4" },
	"memory":          func(s *Spec) { s.Memory = "8Gi" },
	"shm":             func(s *Spec) { s.Volumes = []Volume{{Source: VolumeMemory, Size: "8Gi", Path: "/dev/shm"}} },
	"launcherCpu":     func(s *Spec) { s.LauncherCPU = "1" },
	"launcherMemory":  func(s *Spec) { s.LauncherMemory = "2Gi" },
	"volume":          func(s *Spec) { s.Volumes = []Volume{{Source: VolumeClaim, Name: "data", Path: "/data"}} },
	"outputDir":       func(s *Spec) { s.Output = &Volume{Source: VolumeClaim, Name: "results", Path: "/results"} },
	"queue":           func(s *Spec) { s.Queue = "team" },
	"priority":        func(s *Spec) { s.Priority = "high" },
	"nodeSelector":    func(s *Spec) { s.NodeSelector = map[string]string{"gpu": "a100"} },
	"toleration":      func(s *Spec) { s.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}} },
	"topology":        func(s *Spec) { s.Topology = "topology.kubernetes.io/zone" },
	"rdma":            func(s *Spec) { s.RDMA = "required" },
	"profile":         func(s *Spec) { s.Profile = true },
	"waitForQuota":    func(s *Spec) { s.WaitForQuota = true },
	"gangTimeout":     func(s *Spec) { s.GangTimeout = 10 * time.Minute },
	"imagePullSecret": func(s *Spec) { s.ImagePullSecrets = []string{"registry"} },
	"serviceAccount":  func(s *Spec) { s.ServiceAccount = "trainer" },
	"retries":         func(s *Spec) { s.Retries = new(int32(3)) },
	"deadline":        func(s *Spec) { s.Deadline = time.Hour },
	"gracePeriod":     func(s *Spec) { s.GracePeriod = new(2 * time.Minute) },
	"ttl":             func(s *Spec) { s.TTL = new(24 * time.Hour) },
}

func allSettings() (all []Setting) {
	for _, group := range Settings() {
		all = append(all, group.Settings...)
	}
	return all
}

// TestSettingsAreBuilt: each setting is in the field that the table names, or refused with the reason there.
func TestSettingsAreBuilt(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t, parsed(t, runtimeText))
	for _, setting := range allSettings() {
		set, is := examples[setting.Name]
		if !is {
			if setting.Flag != "" {
				t.Errorf("there is no example of %s", setting.Name)
			}
			continue
		}
		for kind, expression := range map[string]Expression{"MPIJob": setting.MPIJob, "TrainJob": setting.TrainJob} {
			base := small(func(s *Spec) {
				if kind == "TrainJob" {
					s.Runtime = "mpi-openmpi"
				}
			})
			with := base
			set(&with)
			if setting.Name == "runtime" {
				if kind == "MPIJob" {
					continue
				}
				base.Runtime = ""
			}
			without, err := c.Build(t.Context(), base)
			if err != nil {
				t.Fatal(err)
			}
			built, err := c.Build(t.Context(), with)
			if expression.Reason != "" {
				if want := setting.Name + ": " + expression.Reason; err == nil || err.Error() != want {
					t.Errorf("%s of a %s: %v, want %s", setting.Name, kind, err, want)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s of a %s: %v", setting.Name, kind, err)
				continue
			}
			before, after := valuesAt(t, without.Job, expression), valuesAt(t, built.Job, expression)
			if len(after) == 0 || slices.Contains(after, "null") || slices.Equal(before, after) {
				t.Errorf("%s of a %s is not at %s %s: before %v, after %v", setting.Name, kind, expression.In, expression.Field, before, after)
			}
		}
	}
}

// TestSettingsNeedRuntimes: a setting that the table restricts to MPI runtimes is refused with other runtimes, and a clone of a job that has
// it nevertheless keeps it.
func TestSettingsNeedRuntimes(t *testing.T) {
	t.Parallel()
	c, _ := newServer(t, parsed(t, runtimeText), torchRuntime(t), upstreamRuntime(t))
	count := 0
	for _, setting := range allSettings() {
		isOurs := strings.HasSuffix(setting.TrainJob.Only, withOurs)
		if !isOurs && !strings.HasSuffix(setting.TrainJob.Only, withMPI) {
			continue
		}
		count++
		build := func(runtime string) (Built, error) {
			return c.Build(t.Context(), small(func(s *Spec) {
				examples[setting.Name](s)
				s.Runtime = runtime
			}))
		}
		built, err := build("mpi-openmpi")
		if err != nil {
			t.Errorf("%s with a runtime of the operator: %v", setting.Name, err)
			continue
		}
		for runtime, want := range map[string]string{
			"torch":     map[bool]string{true: "cannot be set with runtime torch: it " + withOurs, false: "cannot be set with runtime torch, which does not use MPI"}[isOurs],
			"deepspeed": map[bool]string{true: "cannot be set with runtime deepspeed: it " + withOurs}[isOurs],
		} {
			if _, err := build(runtime); want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), setting.Name+": "+want)) {
				t.Errorf("%s with runtime %s: %v, want %q", setting.Name, runtime, err, want)
			}
			job := built.Job.DeepCopy()
			if err := unstructured.SetNestedField(job.Object, runtime, "spec", "runtimeRef", "name"); err != nil {
				t.Fatal(err)
			}
			clone, err := c.CloneEdited(t.Context(), FromObject(job), "next", func(s *Spec) { s.Image = "other" })
			if err != nil {
				t.Errorf("a clone of %s with runtime %s: %v", setting.Name, runtime, err)
				continue
			}
			if !maps.Equal(clone.Job.GetAnnotations(), job.GetAnnotations()) {
				t.Errorf("a clone of %s with runtime %s has the annotations %v, want %v", setting.Name, runtime, clone.Job.GetAnnotations(), job.GetAnnotations())
			}
		}
	}
	if count < 9 {
		t.Errorf("the table has %d settings that need an MPI runtime", count)
	}
}

// valuesAt returns the values at the path of an expression, one for each pod template.
func valuesAt(t *testing.T, job *unstructured.Unstructured, expression Expression) (values []string) {
	t.Helper()
	text, err := json.Marshal(job.Object)
	if err != nil {
		t.Fatal(err)
	}
	var object any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	templates := map[PodRole][]string{
		inJob:      {""},
		inLauncher: {"spec.mpiReplicaSpecs.Launcher.template.spec."},
		inWorkers:  {"spec.mpiReplicaSpecs.Worker.template.spec."},
	}
	templates[inPods] = slices.Concat(templates[inLauncher], templates[inWorkers])
	if job.GetKind() == "TrainJob" {
		// Containers, and the volumes that they mount, are those of launcher and workers; all else is of the initializer, too.
		pods := 3
		if strings.HasPrefix(expression.Field, "containers") || expression.Field == "volumes" {
			pods = 2
		}
		templates[inPods] = nil
		for i := range pods {
			templates[inPods] = append(templates[inPods], fmt.Sprintf("spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[%d].template.spec.template.spec.", i))
		}
	}
	for _, template := range templates[expression.In] {
		found, _ := json.Marshal(valueAt(object, template+expression.Field))
		values = append(values, string(found))
	}
	return values
}

// step is a name, or an index or a key in brackets.
var step = regexp.MustCompile(`[^.\[\]]+|\[[^\]]+\]`)

func valueAt(value any, path string) any {
	for _, name := range step.FindAllString(path, -1) {
		name = strings.Trim(name, "[]")
		switch in := value.(type) {
		case map[string]any:
			value = in[name]
		case []any:
			index, err := strconv.Atoi(name)
			if err != nil || index >= len(in) {
				return nil
			}
			value = in[index]
		default:
			return nil
		}
	}
	return value
}

// TestSettingsAreComplete: the table has every field of a specification, and a reason where an interface lacks a setting.
func TestSettingsAreComplete(t *testing.T) {
	t.Parallel()
	var spec Spec
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		SettingOf(name)
		examples[name](&spec)
	}
	for i := range reflect.TypeFor[Spec]().NumField() {
		name := reflect.TypeFor[Spec]().Field(i).Name
		if reflect.ValueOf(spec).Field(i).IsZero() && name != "TopologyPreferred" { // the prefix prefer: of topology
			t.Errorf("no setting sets Spec.%s", name)
		}
	}
	seen := map[string]bool{}
	for _, s := range allSettings() {
		if seen[s.Name] {
			t.Errorf("%s is in the table twice", s.Name)
		}
		seen[s.Name] = true
		if lacks := s.Flag == "" || s.Python == "" || s.Form == ""; lacks != (s.Absent != "") {
			t.Errorf("%s: flag %q, argument %q, field %q, but the reason for a missing one is %q", s.Name, s.Flag, s.Python, s.Form, s.Absent)
		}
		for kind, e := range map[string]Expression{"MPIJob": s.MPIJob, "TrainJob": s.TrainJob} {
			if (e.Field == "") == (e.Reason == "") {
				t.Errorf("%s of a %s needs either a field or a reason", s.Name, kind)
			}
		}
	}
}

// withoutSetting are the annotations of jobs that are no settings, with the reasons.
var withoutSetting = map[string]string{
	mpi.AnnotationLaunch:            "it is for images of mpi-operator with OpenSSH, whose jobs are written in YAML",
	mpi.AnnotationLinks:             "it can be set on a running job, with kubectl annotate",
	mpi.AnnotationPreferredTopology: "it is the prefix prefer: of topology",
	mpi.AnnotationRequeues:          "it tunes gangTimeout, which few jobs need",
	mpi.AnnotationSilence:           "it can be set on a running job, with kubectl annotate",
	mpi.AnnotationSuspendInQueue:    "suspend sets it for a job in a queue",
	mpi.AnnotationTraceParent:       "programs that create jobs set it",
}

// TestAnnotationsAreSettings: what users set on jobs by annotations, the interfaces set, too.
func TestAnnotationsAreSettings(t *testing.T) {
	t.Parallel()
	set := map[string]bool{}
	for _, s := range allSettings() {
		for _, e := range []Expression{s.MPIJob, s.TrainJob} {
			if name, is := strings.CutPrefix(e.Field, "metadata.annotations["); is {
				set[strings.TrimSuffix(name, "]")] = true
			}
		}
	}
	for _, a := range mpi.Annotations() {
		ofJobs := slices.Contains(a.On, mpi.KindMPIJob) || slices.Contains(a.On, mpi.KindTrainJob)
		if a.SetBy == "" && ofJobs && set[a.Name] == (withoutSetting[a.Name] != "") {
			t.Errorf("%s is a setting: %v, but the reason why it is none is %q", a.Name, set[a.Name], withoutSetting[a.Name])
		}
	}
}
