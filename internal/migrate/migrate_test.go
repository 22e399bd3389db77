package migrate

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// read is an object in a file of testdata.
func read(t *testing.T, text []byte) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// convert is what a test converts an object to: that is written in the name of its file.
func convert(object map[string]any, to string, options Options) (Result, field.ErrorList, error) {
	of, err := Recognize(object)
	if err != nil {
		return Result{}, nil, err
	}
	var result Result
	var errs field.ErrorList
	switch of {
	case OfSageMaker:
		result, errs = FromSageMaker(object, to == "v2beta1", options)
	case OfOldMPIJob:
		result, errs = ToV2beta1(object, options)
	case OfMPIJob:
		result, errs = ToTrainJob(object, options)
	}
	return result, errs, nil
}

// base is the base of all our runtimes.
func base(t *testing.T) *trainjob.Runtime {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "runtimes", "base", "runtime.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var used trainjob.Runtime
	if err := yaml.Unmarshal(text, &used); err != nil {
		t.Fatal(err)
	}
	return &used
}

// TestConversions: testdata has each job as it was, and as it is now with what is said of it.
func TestConversions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file, to string
		options  Options
	}{
		"gpu":                     {file: "gpu.in.yaml"},
		"gpu-trainer-2.1":         {file: "gpu.in.yaml", options: Options{Overrides: true, Name: "gpu-2"}},
		"cpu":                     {file: "cpu.in.yaml", options: Options{Runtime: trainjob.RuntimeRef{Name: "own", Kind: trainjob.RuntimeKind}, Used: base(t)}},
		"all-fields":              {file: "all-fields.in.yaml"},
		"horovod-one-worker":      {file: "horovod-one-worker.in.yaml", options: Options{Used: base(t)}},
		"v1":                      {file: "v1.in.yaml"},
		"v1-elastic":              {file: "v1-elastic.in.yaml"},
		"v1-elastic-script":       {file: "v1-elastic-script.in.yaml"},
		"v1alpha2":                {file: "v1alpha2.in.yaml"},
		"v1alpha1-gpus":           {file: "v1alpha1-gpus.in.yaml"},
		"v1alpha1-replicas":       {file: "v1alpha1-replicas.in.yaml", options: Options{Name: "renamed"}},
		"sagemaker":               {file: "sagemaker.in.json"},
		"sagemaker-mpijob":        {file: "sagemaker.in.json", to: "v2beta1", options: Options{Connection: "training-data"}},
		"sagemaker-one-instance":  {file: "sagemaker-one-instance.in.json", to: "v2beta1"},
		"sagemaker-own-container": {file: "sagemaker-own-container.in.json", options: Options{Overrides: true, Instance: &Instance{CPUs: 10, MemoryGiB: 20}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("testdata", test.file))
			if err != nil {
				t.Fatal(err)
			}
			from := read(t, text)
			before, _ := yaml.Marshal(from)
			result, errs, err := convert(from, test.to, test.options)
			if err != nil || len(errs) > 0 {
				t.Fatal(err, errs.ToAggregate())
			}
			if after, _ := yaml.Marshal(from); string(after) != string(before) {
				t.Error("the old job was changed")
			}
			object, err := yaml.Marshal(result.Object)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", string(object)+"---\n"+Explain(result.Changes))
		})
	}
}

var rewrite = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestNoFieldIsLostWithoutAWord: every field of a job with all of them is in the new job's description.
func TestNoFieldIsLostWithoutAWord(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "all-fields.in.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	result, errs := ToTrainJob(read(t, text), Options{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	object, _ := yaml.Marshal(result.Object)
	all := string(object) + Explain(result.Changes)
	// What stands there for a value of its own is searched by this value, the rest by its name.
	for _, word := range []string{
		"priorityClassName", "schedulerName", "hostNetwork", "dnsPolicy", "runtimeClassName", "workingDir", "lifecycle", "livenessProbe", "ports", "imagePullPolicy",
		"sidecar", "wait-for-data", "scratch", "/data", "gold", "ttlSecondsAfterFinished", "schedulingPolicy", "pull-secret", "runner", "settings", "training-data",
		"unknownField", "tolerations", "activeDeadlineSeconds",
	} {
		if !strings.Contains(all, word) {
			t.Errorf("%s is lost", word)
		}
	}
}

// TestExplainShowsEveryChange: each change stands below its own heading, with its own text, whatever stands before it.
func TestExplainShowsEveryChange(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		changes []Change
		want    string
	}{
		"no field before another effect": {
			[]Change{{Changed, "", "", "the agent starts the ranks"}, {Lost, "spec.a", "", "there is no such field"}, {Todo, "", "", "check the image"}, {Todo, "spec.b", "", "remove it"}},
			"Changed:\n  - the agent starts the ranks\nNot converted:\n  - spec.a: there is no such field\nTo do:\n  - check the image\n  - spec.b: remove it\n",
		},
		"no field before another text": {
			[]Change{{Changed, "", "", "one"}, {Changed, "spec.a", "", "two"}, {Changed, "spec.b", "", "two"}, {Changed, "spec.c", "spec.d", "two"}},
			"Changed:\n  - one\n  - spec.a, spec.b: two\n  - spec.c -> spec.d: two\n",
		},
		"fields that moved": {[]Change{{Moved, "spec.a", "spec.b", ""}, {Moved, "spec.c", "spec.d", ""}}, "Moved:\n  - spec.a -> spec.b\n  - spec.c -> spec.d\n"},
		"nothing":           {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, Explain(test.changes)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRetriesOfOldJobs: a v1 job whose launcher was not restarted is not retried either, and its description says so.
func TestRetriesOfOldJobs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		version, launcher, policy string
		want                      any
	}{
		"v1":                      {version: "v1", want: int64(0)},
		"v1, Never":               {version: "v1", launcher: "restartPolicy: Never, ", want: int64(0)},
		"v1, with a limit":        {version: "v1", policy: "runPolicy: {backoffLimit: 2}, ", want: int64(2)},
		"v1, with an older field": {version: "v1", policy: "backoffLimit: 3, ", want: int64(3)},
		"v1, OnFailure":           {version: "v1", launcher: "restartPolicy: OnFailure, "},
		"v1alpha2":                {version: "v1alpha2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, errs := ToV2beta1(read(t, []byte("{apiVersion: kubeflow.org/"+test.version+", kind: MPIJob, metadata: {name: pi}, spec: {"+test.policy+"mpiReplicaSpecs: {Launcher: {"+test.launcher+
				"template: {spec: {containers: [{name: main, image: solver, command: [mpirun, solve]}]}}}}}}")), Options{})
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			if got := look(result.Object, "spec", "runPolicy")["backoffLimit"]; got != test.want {
				t.Errorf("backoffLimit is %v, want %v", got, test.want)
			}
			if told := strings.Contains(Explain(result.Changes), "spec.runPolicy.backoffLimit: set to 0"); told != (test.want == int64(0)) {
				t.Errorf("that it is 0 is explained: %v", told)
			}
		})
	}
}

// TestBadInput: all that is wrong is told at once, at its field, with what to do.
func TestBadInput(t *testing.T) {
	t.Parallel()
	const template = "{template: {spec: {containers: [{name: main, image: solver, command: [mpirun, solve]}]}}}"
	for name, test := range map[string]struct {
		text, to string
		options  Options
		want     []string
	}{
		"not an object of ours":  {text: "{apiVersion: v1, kind: Pod}", want: []string{`apiVersion "v1", kind "Pod" is neither an MPIJob nor a SageMaker training job`}},
		"a TrainJob":             {text: "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob}", want: []string{"it is already a TrainJob"}},
		"an unknown version":     {text: "{apiVersion: kubeflow.org/v3, kind: MPIJob}", want: []string{`version "v3" of MPIJobs is not supported`}},
		"an MPIJob without much": {text: "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: Pi}, spec: {slotsPerWorker: -1, mpiImplementation: LAM}}", want: []string{"spec.mpiReplicaSpecs[Launcher]: Required", "spec.slotsPerWorker", `"LAM"`, "metadata.name"}},
		"an MPIJob that is none": {text: "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: pi}, spec: {mpiReplicaSpecs: [1]}}", want: []string{"cannot be read as an MPIJob"}},
		"without workers":        {text: "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: pi}, spec: {mpiReplicaSpecs: {Launcher: " + template + "}}}", want: []string{"keep a job that has only a launcher as an MPIJob"}},
		"without a command": {
			text: "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: pi}, spec: {mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: a, image: b}]}}}, Worker: " + template + "}}}",
			want: []string{"containers[0].command: Required value: set the command of the launcher"},
		},
		"beyond the runtime": {
			text:    "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: pi}, spec: {mpiReplicaSpecs: {Launcher: " + template + ", Worker: {replicas: 9, template: {spec: {containers: [{name: main, image: solver}]}}}}}}",
			options: Options{Used: limited(t)}, want: []string{"spec.trainer.numNodes: Invalid value: 9: must be at most 4"},
		},
		"v1 with unknown words": {
			text: "{apiVersion: kubeflow.org/v1alpha2, kind: MPIJob, metadata: {name: pi}, spec: {slotsPerWorker: two, mpiDistribution: lam, mpiReplicaSpecs: {Launcher: " + template + ", Master: {replicas: 1}}}}",
			want: []string{"spec.slotsPerWorker: Invalid value: \"two\": must be a whole number", `spec.mpiDistribution: Unsupported value: "lam"`, `"Master.replicas"`},
		},
		"v1 without a launcher":   {text: "{apiVersion: kubeflow.org/v1, kind: MPIJob, metadata: {name: pi}, spec: {mpiReplicaSpecs: {Worker: {replicas: 2, template: {}}}}}", want: []string{"spec.mpiReplicaSpecs[Launcher]", "spec.mpiReplicaSpecs[Worker].template.spec.containers"}},
		"v1alpha1 with too much":  {text: "{apiVersion: kubeflow.org/v1alpha1, kind: MPIJob, metadata: {name: pi}, spec: {gpus: 4, replicas: 2, template: {spec: {containers: [{name: a, image: b}]}}}}", want: []string{"only one of gpus, processingUnits and replicas"}},
		"v1alpha1 with too few":   {text: "{apiVersion: kubeflow.org/v1alpha1, kind: MPIJob, metadata: {name: pi}, spec: {template: {spec: {containers: [{name: a, image: b}]}}}}", want: []string{"spec.replicas: Required"}},
		"v1alpha1, an odd number": {text: "{apiVersion: kubeflow.org/v1alpha1, kind: MPIJob, metadata: {name: pi}, spec: {gpus: 10, gpusPerNode: 4, template: {spec: {containers: [{name: a, image: b}]}}}}", want: []string{"spec.gpus: Invalid value: 10: must be a multiple of the number per node, 4"}},
		"v1alpha1 without a pod":  {text: "{apiVersion: kubeflow.org/v1alpha1, kind: MPIJob, metadata: {name: pi}, spec: {gpus: 10}}", want: []string{"spec.template.spec.containers: Required"}},
		"SageMaker, all wrong": {
			text: `{"TrainingJobName": "-job", "HyperParameters": {"sagemaker_mpi_num_of_processes_per_host": "many", "sagemaker_mpi_num_processes": "0", "n": 1}, "ResourceConfig": {"InstanceType": "ml.p9.huge", "InstanceCount": 0},
			  "InputDataConfig": [{"ChannelName": "a", "DataSource": {"S3DataSource": {"S3Uri": "http://x"}}}, {}]}`,
			want: []string{
				`TrainingJobName: Invalid value: "-job"`, "HyperParameters[n]: Invalid value: 1: must be text", "HyperParameters[sagemaker_mpi_enabled]", `"many": must be a whole number`, `"0": must be a whole number`, "ResourceConfig.InstanceCount: Invalid value: 0",
				`"ml.p9.huge": is not in the built-in list`, "AlgorithmSpecification.TrainingImage: Required", "HyperParameters[sagemaker_program]: Required", "S3Uri: Invalid value", "InputDataConfig[1].ChannelName: Required",
			},
		},
		"SageMaker, one instance as TrainJob": {
			text: `{"TrainingJobName": "one", "HyperParameters": {"sagemaker_mpi_enabled": "true", "sagemaker_program": "a.py"}, "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1}, "AlgorithmSpecification": {"TrainingImage": "a"}}`,
			want: []string{"at least 2 pods", "--to v2beta1"},
		},
		"SageMaker, mixed instances": {
			text: `{"TrainingJobName": "one", "HyperParameters": {"sagemaker_mpi_enabled": "true", "sagemaker_program": "a.py"}, "ResourceConfig": {"InstanceGroups": [{"InstanceType": "ml.m5.large", "InstanceCount": 1}]}, "AlgorithmSpecification": {"TrainingImage": "a"}}`,
			want: []string{"InstanceGroups: Forbidden", "InstanceType: Required"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, errs, err := convert(read(t, []byte(test.text)), test.to, test.options)
			if err == nil && len(errs) > 0 {
				err = errs.ToAggregate()
			}
			if err == nil {
				t.Fatal("there is no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in:\n%v", want, strings.ReplaceAll(err.Error(), ", ", ",\n"))
				}
			}
		})
	}
}

// limited is a runtime with a limit.
func limited(t *testing.T) *trainjob.Runtime {
	used := base(t)
	used.Annotations["mpi.opendatahub.io/max-workers"] = "4"
	return used
}

func TestPythons(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"train.py"`: "train.py", "32": "32", "1e-3": "1e-3", "true": "True", "null": "", "plain": "plain", `{"b":1,"a":"x"}`: "a=x,b=1", "[1, 2]": "[1, 2]", "": "", "1 2": "1 2",
	} {
		if got := pythons(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func FuzzConversions(f *testing.F) {
	files, err := filepath.Glob("testdata/*.in.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		data, err := yaml.YAMLToJSON(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(_ *testing.T, text string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil || object == nil {
			return
		}
		for _, to := range []string{"", "v2beta1"} {
			result, _, _ := convert(object, to, Options{})
			_ = Explain(result.Changes)
		}
	})
}

// TestDocumentedExamples: what docs/migration.md shows side by side is what comes out.
func TestDocumentedExamples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "migration.md"))
	if err != nil {
		t.Fatal(err)
	}
	var jobs []map[string]any
	for i, part := range strings.Split(string(text), "```") {
		if block, is := strings.CutPrefix(part, "yaml\n"); is && i%2 == 1 {
			jobs = append(jobs, read(t, []byte(block)))
		}
	}
	if len(jobs) != 4 {
		t.Fatalf("there are %d jobs, want 2 pairs", len(jobs))
	}
	for i := 0; i < len(jobs); i += 2 {
		result, errs := ToTrainJob(jobs[i], Options{})
		if len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		if diff := cmp.Diff(jobs[i+1], result.Object); diff != "" {
			t.Errorf("pair %d (-docs +converted)\n%s", i/2, diff)
		}
	}
}
