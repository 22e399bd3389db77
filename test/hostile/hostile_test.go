package hostile_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/preview"
	"opendatahub.io/mpijob/test/hostile"
)

var settings = plan.Settings{NetworkPolicies: true, AgentImage: "agent", Delivery: plan.InitContainer}

// runtime is the one that config/runtimes installs.
func runtime(t testing.TB) trainjob.Runtime {
	t.Helper()
	data, err := os.ReadFile("../../config/runtimes/base/runtime.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var used trainjob.Runtime
	if err := yaml.Unmarshal(data, &used); err != nil {
		t.Fatal(err)
	}
	used.Name = hostile.Runtime
	return used
}

// try takes a job through decoding, validation, conversion and planning, and reports whether it is accepted. A job that is
// refused must have errors that name their fields and values; one that is accepted must have a plan.
func try(t *testing.T, c hostile.Case, used trainjob.Runtime) bool {
	t.Helper()
	defer func() {
		if recovered := recover(); recovered != nil {
			t.Errorf("%s: panic: %v", c, recovered)
		}
	}()
	object := &unstructured.Unstructured{Object: c.Object}
	object.SetNamespace("hostile")
	var made preview.Preview
	var errs field.ErrorList
	if c.Kind == mpi.KindTrainJob {
		var job trainjob.TrainJob
		if job, errs = preview.DecodeTrainJob(object); len(errs) == 0 {
			made, errs = previewTrainJob(job, used)
		}
	} else {
		made, errs = preview.MPIJob(object, settings)
	}
	for _, err := range errs {
		if problem := unclear(err); problem != "" {
			t.Errorf("%s: %s: %v", c, problem, err)
		}
	}
	if len(errs) > 0 {
		return false
	}
	// The API server drops the status of a new job. A preview shows that nothing is created for one that has ended.
	if _, ended := c.Object["status"]; len(made.Objects) == 0 && !ended {
		t.Errorf("%s: is accepted but makes no objects", c)
	}
	if _, err := made.Known(); err != nil {
		t.Errorf("%s: its objects cannot be written: %v", c, err)
	}
	made.Total()
	made.Fold()
	return true
}

// mostWorkers is how many workers a preview lists at most in these tests, and possibleWorkers how many a job that is accepted
// may have: the operator goes through all of them.
const mostWorkers, possibleWorkers = 1000, 100_000

// previewTrainJob previews a TrainJob, of which it only looks at the first workers.
func previewTrainJob(job trainjob.TrainJob, used trainjob.Runtime) (preview.Preview, field.ErrorList) {
	if errs, _ := trainjob.Check(job, used); len(errs) > 0 {
		return preview.Preview{}, errs
	}
	switch n := trainjob.Convert(job, used).Workers.Count; {
	case n > possibleWorkers:
		panic(fmt.Sprintf("a job with %d workers is accepted", n))
	case n > mostWorkers:
		job.Spec.Trainer.NumNodes = new(int32(mostWorkers))
	}
	return preview.TrainJob(job, used, settings)
}

// unclear returns what an error does not tell its reader.
func unclear(err *field.Error) string {
	value, isText := err.BadValue.(string)
	switch {
	case err.Field == "" || err.Field == "<nil>":
		return "an error without a field"
	case err.Type == field.ErrorTypeRequired, err.Type == field.ErrorTypeForbidden, strings.HasPrefix(err.Detail, "cannot be read: "):
		if err.Detail == "" {
			return "an error without an explanation"
		}
	case err.BadValue == nil:
		return "an error without the value"
	case isText && !strings.Contains(err.Error(), strconv.Quote(value)):
		return "an error without the value"
	}
	return ""
}

// TestHostile takes many jobs to their plans.
func TestHostile(t *testing.T) {
	t.Parallel()
	used := runtime(t)
	accepted, refused := 0, 0
	for seed := range uint64(4) {
		for _, c := range hostile.Generate(seed, 200) {
			if try(t, c, used) {
				accepted++
			} else {
				refused++
			}
		}
	}
	t.Logf("%d accepted, %d refused", accepted, refused)
	if accepted < 100 || refused < 100 {
		t.Errorf("%d accepted and %d refused: too few of one kind to tell anything", accepted, refused)
	}
}

// FuzzHostile takes the jobs of any seed to their plans.
func FuzzHostile(f *testing.F) {
	for seed := range uint64(16) {
		f.Add(seed)
	}
	used := runtime(f)
	f.Fuzz(func(t *testing.T, seed uint64) {
		try(t, hostile.One(rand.New(rand.NewPCG(seed, 1)), "job"), used) //nolint:gosec // the seed makes the job
	})
}

// TestBasesAreAccepted checks that nothing but their hazards is wrong with the jobs.
func TestBasesAreAccepted(t *testing.T) {
	t.Parallel()
	used := runtime(t)
	bases := 0
	for _, c := range hostile.Generate(1, 60) {
		if c.Ends {
			bases++
			if !try(t, c, used) {
				t.Errorf("%s is refused", c)
			}
		}
	}
	if bases == 0 {
		t.Error("no job has only changes after its creation")
	}
}

func TestSameSeedMakesSameJobs(t *testing.T) {
	t.Parallel()
	one, again, other := hostile.Generate(1, 200), hostile.Generate(1, 200), hostile.Generate(2, 200)
	if !reflect.DeepEqual(one, again) {
		t.Error("the same seed makes other jobs")
	}
	if reflect.DeepEqual(one, other) {
		t.Error("another seed makes the same jobs")
	}
	names := map[string]bool{}
	for _, c := range one {
		names[c.Name] = true
	}
	if len(names) != 200 {
		t.Errorf("200 jobs have %d names", len(names))
	}
}

// TestAllAnnotationsAreTried compares the generated jobs with the annotations that the project defines.
func TestAllAnnotationsAreTried(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../../internal/mpi/names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for _, c := range hostile.Generate(1, 4000) {
		for _, h := range c.Hazards {
			if name, is := strings.CutPrefix(h, "metadata annotations "); is {
				tried[name[:strings.Index(name, "=")]] = true
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, is := node.(*ast.ValueSpec)
		if !is || !strings.HasPrefix(spec.Names[0].Name, "Annotation") {
			return true
		}
		value := mpi.Group
		switch expression := spec.Values[0].(type) {
		case *ast.BasicLit:
			value, err = strconv.Unquote(expression.Value)
		case *ast.BinaryExpr:
			rest, failed := strconv.Unquote(expression.Y.(*ast.BasicLit).Value)
			value, err = value+rest, failed
		default:
			err = fmt.Errorf("%T", expression)
		}
		if err != nil {
			t.Fatalf("%s: %v", spec.Names[0].Name, err)
		}
		if !tried[value] {
			t.Errorf("no job has the annotation %s", value)
		}
		return true
	})
	if len(tried) < 10 || slices.Contains(keys(tried), "") {
		t.Errorf("the annotations that were tried are %v", keys(tried))
	}
}

func keys(of map[string]bool) (all []string) {
	for key := range of {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}
