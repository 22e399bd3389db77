package jobs

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/cost"
)

const hour = time.Hour

func TestComparedFields(t *testing.T) {
	t.Parallel()
	a, b := FromObject(object(t, mpiJobText)), FromObject(object(t, mpiJobText))
	a.Object.SetAnnotations(map[string]string{"example.com/note": "x"})
	b.Object.SetName("other")
	if err := Apply(b.Object, Change{Field: "workers", Value: "4"}, Change{Field: "command", Value: "mpirun -n 2 pi"}, Change{Field: "env.A", Value: "1"}); err != nil {
		t.Fatal(err)
	}
	launcher, worker := "spec.mpiReplicaSpecs.Launcher.template.spec.containers", "spec.mpiReplicaSpecs.Worker.template.spec.containers"
	want := []ComparedValue{
		{"metadata.annotations[example.com/note]", "x", ""},
		{launcher + "[a].args", "x", ""},
		{launcher + "[a].command", "mpirun", "mpirun -n 2 pi"},
		{launcher + "[a].env[A].value", "", "1"},
		{"spec.mpiReplicaSpecs.Worker.replicas", "2", "4"},
		{worker + "[b].env[A].value", "", "1"},
	}
	comparison := Compare(a, b, nil, now)
	if diff := cmp.Diff(want, comparison.Differences().Fields); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// The other fields are equal; names of containers are parts of paths, and the jobs' own names are no difference.
	if got, want := len(comparison.Fields), len(want)+5; got != want {
		t.Errorf("%d fields are compared, want %d: %v", got, want, comparison.Fields)
	}
}

func TestComparedLists(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	flatten(map[string]any{
		"words":  []any{"a", int64(2)},
		"named":  []any{map[string]any{"name": "x", "value": true}},
		"plain":  []any{map[string]any{"name": "x"}, map[string]any{"key": "y"}},
		"absent": nil, "empty": []any{}, "dots": map[string]any{"a.b": "c"},
	}, "", got)
	want := map[string]string{"words": "a 2", "named[x].value": "true", "plain[0].name": "x", "plain[1].key": "y", "dots[a.b]": "c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFieldsThatAreNotCompared(t *testing.T) {
	t.Parallel()
	mpi, train := FromObject(object(t, mpiJobText)), FromObject(object(t, trainJobText))
	deleted := Job{Kind: "MPIJob", Name: "gone"}
	for name, test := range map[string]struct {
		a, b Job
		want string
	}{
		"both deleted":    {deleted, deleted, "both jobs are deleted; their reports do not contain the jobs' fields"},
		"the first":       {deleted, mpi, "mpijob/gone is deleted; its report does not contain the job's fields"},
		"the second":      {mpi, deleted, "mpijob/gone is deleted; its report does not contain the job's fields"},
		"different kinds": {mpi, train, "the fields of jobs of different kinds cannot be compared"},
		"comparable":      {mpi, mpi, ""},
	} {
		got := Compare(test.a, test.b, nil, now)
		if got.Note != test.want || (got.Fields == nil) != (test.want != "") {
			t.Errorf("%s: %q with %d fields, want %q", name, got.Note, len(got.Fields), test.want)
		}
	}
}

func TestComparedRuns(t *testing.T) {
	t.Parallel()
	a := reported(t, `
phase: Succeeded
reason: Succeeded
startTime: 2026-11-21T08:00:00Z
runningTime: 2026-11-21T08:10:00Z
completionTime: 2026-11-21T09:00:00Z
phaseTimes: [{phase: Pending, since: 2026-11-21T08:00:00Z, seconds: 600}, {phase: Running, since: 2026-11-21T08:10:00Z, seconds: 3000}, {phase: Succeeded, since: 2026-11-21T09:00:00Z, seconds: 0}]
run: {mpiVersions: [Open MPI 5.0.7]}
mpi: {implementation: OpenMPI, ranks: 4, connectMilliseconds: 1500, initMilliseconds: 20}
workers: {wanted: 2, ready: 0, running: 0, succeeded: 0, failed: 0}
training: {loss: "0.1"}`)
	b := reported(t, `
phase: Running
startTime: 2026-11-21T09:00:00Z
phaseTimes: [{phase: Running, since: 2026-11-21T09:50:00Z, seconds: 60}]`)
	want := []ComparedValue{
		{"phase", "Succeeded", "Running"},
		{"reason", "Succeeded", ""},
		{"MPI", "Open MPI 5.0.7", ""},
		{"ranks", "4", ""},
		{"workers", "2", ""},
		{"time Pending", "10m", ""},
		{"time Running", "50m", "11m"},
		{"until all pods ran", "10m", ""},
		{"total", "60m", ""},
		{"connect", "1.5s", ""},
		{"MPI init", "20ms", ""},
		{"training", "loss 0.1", ""},
	}
	if diff := cmp.Diff(want, Compare(a, b, nil, now).Differences().Run); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestComparedUsage(t *testing.T) {
	t.Parallel()
	a := reported(t, "{consumption: {until: 2026-11-21T10:00:00Z, cpuCoreSeconds: 36000, memoryGiBSeconds: 3600, gpuSeconds: {nvidia.com/gpu: 7200}}}")
	b := reported(t, "{consumption: {until: 2026-11-21T10:00:00Z, cpuCoreSeconds: 3600, memoryGiBSeconds: 3600}}")
	without := []ComparedValue{{"core hours", "10.0", "1.00"}, {"GiB hours", "1.00", "1.00"}, {"nvidia.com/gpu hours", "2.00", "0.00"}}
	prices := &cost.Prices{Currency: "EUR", Rates: cost.Rates{CoreHour: 0.5, DeviceHours: map[string]float64{"nvidia.com/gpu": 2}}}
	with := append(slices.Clip(without), ComparedValue{"cost", "9.00 EUR", "0.50 EUR"})
	if diff := cmp.Diff(without, Compare(a, b, nil, now).Usage); diff != "" {
		t.Errorf("without prices (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(with, Compare(a, b, prices, now).Usage); diff != "" {
		t.Errorf("with prices (-want +got)\n%s", diff)
	}
}

func TestComparedFindings(t *testing.T) {
	t.Parallel()
	a := reported(t, "{findings: [{code: OutOfMemory, summary: rank 1}, {code: NoOutput, summary: quiet}]}")
	b := reported(t, "{findings: [{code: NoOutput, summary: quiet}, {code: Evicted, summary: gone}]}")
	comparison := Compare(a, b, nil, now)
	want := []ComparedValue{{"OutOfMemory", "rank 1", ""}, {"NoOutput", "quiet", "quiet"}, {"Evicted", "", "gone"}}
	if diff := cmp.Diff(want, comparison.Findings); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]ComparedValue{want[0], want[2]}, comparison.Differences().Findings); diff != "" {
		t.Errorf("differences (-want +got)\n%s", diff)
	}
	if len(comparison.Findings) != 3 {
		t.Error("Differences changed the comparison")
	}
}
