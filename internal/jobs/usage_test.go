package jobs

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cost"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestPricesOfNodes: a job goes by the prices of a label that all of its nodes have.
func TestPricesOfNodes(t *testing.T) {
	t.Parallel()
	prices := priceList{
		byNamespace: map[string]cost.Prices{"ns": {
			Currency: "EUR", Rates: cost.Rates{CoreHour: 1},
			Nodes: []cost.NodePrices{{Label: "pool=fast", Rates: cost.Rates{CoreHour: 10}}},
		}},
		nodes: map[string]map[string]string{"a": {"pool": "fast", "zone": "1"}, "b": {"pool": "fast", "zone": "2"}, "c": {"pool": "slow"}},
	}
	for name, test := range map[string]struct {
		nodes []string
		want  float64
	}{
		"all fast":                        {[]string{"a", "b"}, 10},
		"one slow":                        {[]string{"a", "c"}, 1},
		"one that is gone":                {[]string{"a", "z"}, 1},
		"no pods":                         {nil, 1},
		"a pod that never had a node too": {[]string{"", "b"}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := Job{Namespace: "ns", Name: "pi", Report: &v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{Consumption: &v1alpha1.Consumption{CPUCoreSeconds: 3600}}}}
			for _, node := range test.nodes {
				job.Report.Status.Pods = append(job.Report.Status.Pods, v1alpha1.PodStatus{Node: node})
			}
			if line, _ := (UsageQuery{}).lineOf(job, prices); *line.Cost != test.want {
				t.Errorf("it costs %v, want %v", *line.Cost, test.want)
			}
		})
	}
}

func TestSince(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{"": "0001-01-01T00:00:00Z", "90m": "2026-11-21T08:30:00Z", "30d": "2026-10-22T10:00:00Z", "2026-11-01": "2026-11-01T00:00:00Z", "2026-11-01T08:30:00+02:00": "2026-11-01T08:30:00+02:00"} {
		got, err := ParseSince(text, now)
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q is %s, want %s: %v", text, got.Format(time.RFC3339), want, err)
		}
	}
	for _, text := range []string{"-1h", "0d", "d", "1y", "2026-13-01"} {
		if _, err := ParseSince(text, now); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	used := func(cores, gpus int) string {
		return fmt.Sprintf("consumption: {until: 2026-11-21T09:00:00Z, cpuCoreSeconds: %d, memoryGiBSeconds: 3600, gpuSeconds: {nvidia.com/gpu: %d}}", cores*3600, gpus*3600)
	}
	job := object(t, mpiJobText)
	job.SetAnnotations(map[string]string{mpi.AnnotationCreator: "alice"})
	elsewhere := reportFor("MPIJob", "far", "far", statusOf(t, "{phase: Running, "+used(8, 0)+"}"))
	elsewhere.Namespace = "other"
	objects := []client.Object{
		job,
		reportFor("MPIJob", "pi", "pi-uid", statusOf(t, "{phase: Running, "+used(2, 1)+"}")),
		reportFor("TrainJob", "gone", "gone", statusOf(t, "{phase: Succeeded, completionTime: 2026-11-20T09:00:00Z, timeline: [{time: 2026-11-20T08:00:00Z, event: Created, detail: TrainJob gone with 2 workers. By bob.}], "+used(1, 4)+"}")),
		elsewhere,
		pricesIn("ns", "{currency: EUR, coreHour: 1}"),
	}
	for name, test := range map[string]struct {
		query UsageQuery
		want  []string
	}{
		"jobs, GPUs first": {UsageQuery{}, []string{"ns/gone TrainJob bob 1x 1c 4g 1.00", "ns/pi MPIJob alice 1x 2c 1g 2.00", "other/far MPIJob  1x 8c 0g -"}},
		"by cost":          {UsageQuery{Sort: "cost"}, []string{"ns/pi MPIJob alice 1x 2c 1g 2.00", "ns/gone TrainJob bob 1x 1c 4g 1.00", "other/far MPIJob  1x 8c 0g -"}},
		"by cores":         {UsageQuery{Sort: "cores"}, []string{"other/far MPIJob  1x 8c 0g -", "ns/pi MPIJob alice 1x 2c 1g 2.00", "ns/gone TrainJob bob 1x 1c 4g 1.00"}},
		"by memory":        {UsageQuery{Sort: "memory"}, []string{"ns/gone TrainJob bob 1x 1c 4g 1.00", "ns/pi MPIJob alice 1x 2c 1g 2.00", "other/far MPIJob  1x 8c 0g -"}},
		"by name":          {UsageQuery{Sort: "name", Namespaces: []string{"ns"}}, []string{"ns/gone TrainJob bob 1x 1c 4g 1.00", "ns/pi MPIJob alice 1x 2c 1g 2.00"}},
		"since yesterday":  {UsageQuery{Since: now.Add(-20 * time.Hour)}, []string{"ns/pi MPIJob alice 1x 2c 1g 2.00", "other/far MPIJob  1x 8c 0g -"}},
		"namespaces":       {UsageQuery{By: GroupNamespace, Sort: "jobs"}, []string{"ns/   2x 3c 5g 3.00", "other/   1x 8c 0g -"}},
		"users":            {UsageQuery{By: GroupUser, Sort: "cores"}, []string{"/   1x 8c 0g -", "/  alice 1x 2c 1g 2.00", "/  bob 1x 1c 4g 1.00"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := newServer(t, objects...)
			if test.query.Namespaces == nil {
				test.query.Namespaces = []string{""}
			}
			usage, err := c.Usage(t.Context(), test.query)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, line := range usage.Lines {
				amount := "-"
				if line.Cost != nil {
					amount = fmt.Sprintf("%.2f", *line.Cost)
				}
				got = append(got, fmt.Sprintf("%s/%s %s %s %dx %gc %gg %s", line.Namespace, line.Job, line.Kind, line.CreatedBy, line.Jobs, line.CoreHours, line.GPUHours, amount))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if test.query.Namespaces[0] == "ns" && !slices.Equal(usage.Unpriced, []string{"nvidia.com/gpu"}) {
				t.Errorf("without a price are %v", usage.Unpriced)
			}
		})
	}
	if !slices.Contains(UsageSorts(), "memory") || len(UsageSorts()) != 6 {
		t.Errorf("of %v only some are tested", UsageSorts())
	}
}

// TestUsageWithoutRights: prices of nodes need the right to list them; without it jobs cost the general prices.
func TestUsageWithoutRights(t *testing.T) {
	t.Parallel()
	report := reportFor("MPIJob", "pi", "pi-uid", statusOf(t, "{phase: Running, pods: [{name: a, node: n1}], consumption: {until: 2026-11-21T09:00:00Z, cpuCoreSeconds: 3600, memoryGiBSeconds: 0}}"))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"pool": "fast"}}}
	for name, test := range map[string]struct {
		refuse  string
		err     error
		want    float64
		omitted []string
		fails   bool
	}{
		"all rights":       {want: 10},
		"no nodes":         {refuse: "NodeList", err: forbidden("nodes"), want: 1, omitted: []string{"Node"}},
		"no TrainJobs":     {refuse: "TrainJobList", err: forbidden("trainjobs"), want: 10, omitted: []string{"TrainJob"}},
		"broken prices":    {refuse: "ConfigMap", err: errors.New("broken"), fails: true},
		"unreadable lists": {refuse: "JobReportList", err: errors.New("broken"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s := newServer(t, report.DeepCopy(), node.DeepCopy(), pricesIn("ns", "{currency: EUR, coreHour: 1, nodes: [{label: pool=fast, coreHour: 10}]}"))
			s.refuse = func(_, kind string) error {
				if kind == test.refuse {
					return test.err
				}
				return nil
			}
			usage, err := c.Usage(t.Context(), UsageQuery{Namespaces: []string{"ns"}})
			if test.fails {
				if err == nil {
					t.Error("it does not fail")
				}
				return
			}
			if err != nil || len(usage.Lines) != 1 || *usage.Lines[0].Cost != test.want {
				t.Fatalf("%+v, %v", usage, err)
			}
			var omitted []string
			for _, o := range usage.Omitted {
				omitted = append(omitted, o.Kind)
			}
			if !slices.Equal(omitted, test.omitted) {
				t.Errorf("omitted are %v, want %v", omitted, test.omitted)
			}
		})
	}
}

// TestSumOfUsage: lines with and without a cost.
func TestSumOfUsage(t *testing.T) {
	t.Parallel()
	line := func(amount *float64) UsageLine {
		return UsageLine{Jobs: 1, Cost: amount, Currency: "EUR", use: cost.Use{CoreHours: 2}}
	}
	for name, test := range map[string]struct {
		a, b *float64
		want *float64
	}{
		"both": {new(1.5), new(2.0), new(3.5)}, "the first": {new(1.5), nil, new(1.5)}, "the second": {nil, new(2.0), new(2.0)}, "none": {},
	} {
		sum := line(test.a).Plus(line(test.b))
		if sum.Jobs != 2 || sum.CoreHours != 4 || !cmp.Equal(sum.Cost, test.want) {
			t.Errorf("%s: %+v", name, sum)
		}
	}
}

// TestUsageOfUsers: the jobs of a user in several namespaces are summed up, but not costs of different currencies.
func TestUsageOfUsers(t *testing.T) {
	t.Parallel()
	ran := func(namespace, name, user string) (client.Object, client.Object) {
		job := object(t, "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: "+name+", annotations: {"+mpi.AnnotationCreator+": "+user+"}}}")
		report := reportFor("MPIJob", name, name+"-uid", v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseRunning, Consumption: &v1alpha1.Consumption{CPUCoreSeconds: 3600}})
		job.SetNamespace(namespace)
		report.SetNamespace(namespace)
		return job, report
	}
	prices := func(namespace, currency string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mpijob-prices"}, Data: map[string]string{"prices.yaml": "currency: " + currency + "\ncoreHour: 2\n"}}
	}
	var objects []client.Object
	for _, job := range [][3]string{{"euro", "a", "ann"}, {"euro", "b", "ann"}, {"dollar", "c", "ann"}, {"dollar", "d", "bob"}, {"other", "e", "bob"}} {
		object, report := ran(job[0], job[1], job[2])
		objects = append(objects, object, report)
	}
	c, _ := newServer(t, append(objects, prices("euro", "EUR"), prices("dollar", "USD"))...)
	usage, err := c.Usage(t.Context(), UsageQuery{Namespaces: []string{"euro", "dollar"}, By: GroupUser, Sort: "jobs"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range usage.Lines {
		got = append(got, fmt.Sprintf("%s %d jobs %g hours %g %s", line.CreatedBy, line.Jobs, line.CoreHours, *line.Cost, line.Currency))
	}
	if diff := cmp.Diff([]string{"ann 2 jobs 2 hours 4 EUR", "ann 1 jobs 1 hours 2 USD", "bob 1 jobs 1 hours 2 USD"}, got); diff != "" {
		t.Errorf("usage (-want +got)\n%s", diff)
	}
	if usage, err := c.Usage(t.Context(), UsageQuery{By: GroupUser}); err != nil || len(usage.Lines) != 0 {
		t.Errorf("no namespaces have usage: %+v, %v", usage, err)
	}
}

func TestPeriod(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		since, until string
		fails        string
	}{
		"none":                        {},
		"a month":                     {since: "2026-11-01", until: "2026-12-01"},
		"only an end":                 {until: "30d"},
		"an end before the beginning": {since: "1d", until: "2d", fails: "until"},
		"an empty period":             {since: "2026-11-01", until: "2026-11-01T00:00:00Z", fails: "until"},
		"no time":                     {until: "tomorrow", fails: "until"},
		"no beginning":                {since: "tomorrow", fails: "since"},
	} {
		_, _, err := ParsePeriod(test.since, test.until, now)
		var invalid *InvalidError
		switch {
		case test.fails == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.fails != "" && (!errors.As(err, &invalid) || invalid.Fields[0].Field != test.fails):
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUsageGroups(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"job": {"job"}, "namespace": {"namespace"}, "project": {"namespace"}, "user": {"user"}, "queue": {"queue"}, "label=team": {"label", "team"}, "label=a.example.com/team": {"label", "a.example.com/team"},
	} {
		if by, label, err := ParseUsageGroup(text); err != nil || by != want[0] || label != want[1] {
			t.Errorf("%s is %q, %q, %v", text, by, label, err)
		}
	}
	for _, text := range []string{"", "day", "label", "label=", "label=a b", "user=ann", "project=a"} {
		if by, label, err := ParseUsageGroup(text); err == nil {
			t.Errorf("%q is taken as %q, %q", text, by, label)
		}
	}
}

// TestUsageByQueueAndLabel: queues are those of a namespace; labels of deleted jobs are read from the manifest in the report.
func TestUsageByQueueAndLabel(t *testing.T) {
	t.Parallel()
	labelled := object(t, "{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: a, labels: {team: vision, kueue.x-k8s.io/queue-name: gpu}}}")
	used := "consumption: {until: 2026-11-21T09:00:00Z, cpuCoreSeconds: 3600, memoryGiBSeconds: 0}"
	objects := []client.Object{
		labelled,
		reportFor("MPIJob", "a", "a-uid", statusOf(t, "{phase: Running, "+used+"}")),
		reportFor("MPIJob", "b", "b-uid", statusOf(t, "{phase: Succeeded, waited: {backend: kueue, queue: gpu, pods: 1, seconds: 1, until: 2026-11-21T08:00:00Z}, specification: {version: x, manifest: 'metadata: {labels: {team: vision}}'}, "+used+"}")),
		reportFor("TrainJob", "c", "c-uid", statusOf(t, "{phase: Queued, scheduling: {queue: cpu}, specification: {version: x, manifest: 'not: [yaml'}, "+used+"}")),
		reportFor("MPIJob", "d", "d-uid", statusOf(t, "{phase: Succeeded, "+used+"}")),
	}
	objects[1].(*v1alpha1.JobReport).Spec.JobRef.UID = labelled.GetUID()
	c, _ := newServer(t, objects...)
	for name, test := range map[string]struct {
		query UsageQuery
		want  []string
	}{
		"queues": {UsageQuery{By: GroupQueue, Sort: "jobs"}, []string{"ns gpu  2 jobs 2 hours", "ns   1 jobs 1 hours", "ns cpu  1 jobs 1 hours"}},
		"labels": {UsageQuery{By: GroupLabel, Label: "team", Sort: "jobs"}, []string{"   2 jobs 2 hours", "  vision 2 jobs 2 hours"}},
	} {
		test.query.Namespaces = []string{"ns"}
		usage, err := c.Usage(t.Context(), test.query)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range usage.Lines {
			got = append(got, fmt.Sprintf("%s %s %s %d jobs %g hours", line.Namespace, line.Queue, line.Label, line.Jobs, line.CoreHours))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestUsageOfPeriodsAddsUp: random jobs, one period and its two parts, for every way to sum up. A job that ran over the cut is
// charged in each part with its share.
func TestUsageOfPeriodsAddsUp(t *testing.T) {
	t.Parallel()
	begin := now.Add(-100 * time.Hour)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		objects := []client.Object{pricesIn("ns", "{currency: EUR, coreHour: 1, gibHour: 0.1, deviceHours: {nvidia.com/gpu: 3}}")}
		total := 0.0
		for i := range 15 {
			start := begin.Add(time.Duration(r.IntN(80*3600)) * time.Second)
			until := start.Add(time.Duration(1+r.IntN(20*3600)) * time.Second)
			cores := r.Int64N(1000000)
			total += float64(cores) / 3600
			status := v1alpha1.JobReportStatus{
				Phase: v1alpha1.PhaseSucceeded, StartTime: &metav1.Time{Time: start}, CompletionTime: &metav1.Time{Time: until},
				Run:         &v1alpha1.Run{Creator: []string{"ann", "bob"}[r.IntN(2)]},
				Waited:      &v1alpha1.Waited{Queue: []string{"", "gpu"}[r.IntN(2)]},
				Consumption: &v1alpha1.Consumption{Until: metav1.NewTime(until), CPUCoreSeconds: cores, MemoryGiBSeconds: r.Int64N(1000000), GPUSeconds: map[string]int64{"nvidia.com/gpu": r.Int64N(1000000)}},
			}
			if r.IntN(2) == 0 {
				status.Consumption.Steps = []v1alpha1.ConsumptionStep{{Time: metav1.NewTime(start)}, {Time: metav1.NewTime(start.Add(until.Sub(start) / 3)), CPUCoreSeconds: cores / 2}}
			}
			objects = append(objects, reportFor([]string{"MPIJob", "TrainJob"}[r.IntN(2)], fmt.Sprintf("job-%d", i), fmt.Sprintf("uid-%d", i), status))
		}
		c, _ := newServer(t, objects...)
		cut := begin.Add(time.Duration(r.IntN(100*3600)) * time.Second)
		for _, by := range UsageGroups() {
			sum := func(since, until time.Time) UsageLine {
				usage, err := c.Usage(t.Context(), UsageQuery{Namespaces: []string{"ns"}, Since: since, Until: until, By: by, Label: "team"})
				if err != nil {
					t.Fatal(err)
				}
				var all UsageLine
				for _, line := range usage.Lines {
					all = all.Plus(line)
				}
				return all
			}
			whole, first, second := sum(begin, now), sum(begin, cut), sum(cut, now)
			parts := first.Plus(second)
			for what, pair := range map[string][2]float64{
				"core hours": {whole.CoreHours, parts.CoreHours}, "GiB hours": {whole.GiBHours, parts.GiBHours}, "GPU hours": {whole.GPUHours, parts.GPUHours}, "cost": {*whole.Cost, *parts.Cost}, "all core hours": {total, whole.CoreHours},
			} {
				if math.Abs(pair[0]-pair[1]) > 1e-6 {
					t.Errorf("seed %d by %s: %s of the whole are %g, of the parts %g", seed, by, what, pair[0], pair[1])
				}
			}
			if none := sum(now, time.Time{}); none.Jobs != 0 {
				t.Errorf("seed %d by %s: %d jobs are counted that ended before", seed, by, none.Jobs)
			}
			if none := sum(time.Time{}, begin.Add(-time.Second)); none.Jobs != 0 {
				t.Errorf("seed %d by %s: %d jobs are counted that had not begun", seed, by, none.Jobs)
			}
			if whole.Jobs != 15 || first.Jobs+second.Jobs < 15 {
				t.Errorf("seed %d by %s: %d jobs, in the parts %d and %d", seed, by, whole.Jobs, first.Jobs, second.Jobs)
			}
		}
	}
}

// TestUsageOfPodsThatOutlivedTheirJob: a finished job is part of the periods in which its pods still held resources, and of no later one.
func TestUsageOfPodsThatOutlivedTheirJob(t *testing.T) {
	t.Parallel()
	status := statusOf(t, "{phase: Succeeded, startTime: 2026-11-01T00:00:00Z, completionTime: 2026-11-01T01:00:00Z, consumption: {until: 2026-11-04T01:00:00Z, cpuCoreSeconds: 262800, memoryGiBSeconds: 0, steps: [{time: 2026-11-01T00:00:00Z, cpuCoreSeconds: 0, memoryGiBSeconds: 0}]}}")
	c, _ := newServer(t, reportFor("MPIJob", "pi", "pi-uid", status))
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	for from, want := range map[int]float64{1: 24, 2: 24, 3: 24, 4: 1, 5: 0} {
		usage, err := c.Usage(t.Context(), UsageQuery{Namespaces: []string{"ns"}, Since: day(from), Until: day(from + 1)})
		if err != nil {
			t.Fatal(err)
		}
		var got float64
		for _, line := range usage.Lines {
			got += line.CoreHours
		}
		if math.Abs(got-want) > 0.01 || (want == 0) != (len(usage.Lines) == 0) {
			t.Errorf("on November %d, %d jobs used %g core hours, want %g", from, len(usage.Lines), got, want)
		}
	}
}

// TestUsedHours: the hours that agents measured are beside those that were reserved; of a job without agents they are unknown.
func TestUsedHours(t *testing.T) {
	t.Parallel()
	measured := statusOf(t, `{phase: Succeeded, startTime: 2026-11-01T00:00:00Z, completionTime: 2026-11-01T10:00:00Z,
consumption: {until: 2026-11-01T10:00:00Z, cpuCoreSeconds: 144000, memoryGiBSeconds: 0, steps: [{time: 2026-11-01T00:00:00Z, cpuCoreSeconds: 0, memoryGiBSeconds: 0}]},
usage: {since: 2026-11-01T01:00:00Z, until: 2026-11-01T09:00:00Z, pointsSince: 2026-11-01T01:00:00Z, pointSeconds: 300, pods: 2, metrics: [
{metric: CPU, mean: 500, p95: 600, max: 900}, {metric: Memory, mean: 2048, p95: 3000, max: 3000}]}}`)
	unmeasured := statusOf(t, "{phase: Succeeded, startTime: 2026-11-01T00:00:00Z, completionTime: 2026-11-01T10:00:00Z, consumption: {until: 2026-11-01T10:00:00Z, cpuCoreSeconds: 144000, memoryGiBSeconds: 0}}")
	c, _ := newServer(t, reportFor("MPIJob", "measured", "a", measured), reportFor("MPIJob", "unmeasured", "b", unmeasured))
	at := func(hour int) time.Time { return time.Date(2026, 11, 1, hour, 0, 0, 0, time.UTC) }
	figure := func(hours *float64) string {
		if hours == nil {
			return "unknown"
		}
		return fmt.Sprintf("%g", *hours)
	}
	for name, test := range map[string]struct {
		query UsageQuery
		want  []string
	}{
		"jobs":           {UsageQuery{}, []string{"measured 1: 4 cores, 16 GiB, unknown GPUs", "unmeasured 0: unknown cores, unknown GiB, unknown GPUs"}},
		"a sum":          {UsageQuery{By: GroupNamespace}, []string{" 1: 4 cores, 16 GiB, unknown GPUs"}},
		"a part":         {UsageQuery{By: GroupNamespace, Since: at(2), Until: at(5)}, []string{" 1: 1.5 cores, 6 GiB, unknown GPUs"}},
		"its other part": {UsageQuery{By: GroupNamespace, Since: at(5)}, []string{" 1: 2 cores, 8 GiB, unknown GPUs"}},
		"not measured":   {UsageQuery{By: GroupNamespace, Since: at(9)}, []string{" 0: unknown cores, unknown GiB, unknown GPUs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.query.Namespaces = []string{"ns"}
			usage, err := c.Usage(t.Context(), test.query)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, line := range usage.Lines {
				got = append(got, fmt.Sprintf("%s %d: %s cores, %s GiB, %s GPUs", line.Job, line.Measured, figure(line.UsedCoreHours), figure(line.UsedGiBHours), figure(line.UsedGPUHours)))
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestUsedHoursOfAPeriod: a job that idles first and computes later used what its points show, in every period, and nothing is known of
// times in which it was not measured.
func TestUsedHoursOfAPeriod(t *testing.T) {
	t.Parallel()
	idle := strings.Repeat("0, ", 23)
	status := statusOf(t, `{phase: Succeeded, startTime: 2026-11-30T00:00:00Z, completionTime: 2026-12-02T00:00:00Z,
consumption: {until: 2026-12-02T00:00:00Z, cpuCoreSeconds: 144000, memoryGiBSeconds: 0, steps: [{time: 2026-11-30T00:00:00Z, cpuCoreSeconds: 0, memoryGiBSeconds: 0}]},
usage: {since: 2026-11-30T01:00:30Z, until: 2026-12-01T01:00:00Z, pointsSince: 2026-11-30T01:00:00Z, pointSeconds: 3600, pods: 2, metrics: [
{metric: CPU, mean: 333, p95: 600, max: 8000, points: [`+idle+`8000]}, {metric: Memory, mean: 1024, p95: 1024, max: 1024, points: [1024, -1, `+strings.Repeat("1024, ", 21)+`1024]}]}}`)
	c, _ := newServer(t, reportFor("MPIJob", "pi", "pi-uid", status))
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 11, day, hour, minute, 0, 0, time.UTC) }
	for name, test := range map[string]struct {
		since, until time.Time
		want         string
	}{
		"all of it":        {want: "1: 8 cores, 22.99 GiB"},
		"the idle month":   {time.Time{}, at(31, 0, 0), "1: 0 cores, 21.99 GiB"},
		"the busy month":   {at(31, 0, 0), time.Time{}, "1: 8 cores, 1.00 GiB"},
		"a quarter of it":  {at(31, 0, 15), at(31, 0, 30), "1: 2 cores, 0.25 GiB"},
		"nothing measured": {at(31, 1, 0), time.Time{}, "0: unknown"},
		"before it":        {at(30, 0, 0), at(30, 1, 0), "0: unknown"},
	} {
		usage, err := c.Usage(t.Context(), UsageQuery{Namespaces: []string{"ns"}, Since: test.since, Until: test.until})
		if err != nil || len(usage.Lines) != 1 {
			t.Fatalf("%s: %v %+v", name, err, usage.Lines)
		}
		line := usage.Lines[0]
		got := fmt.Sprintf("%d: unknown", line.Measured)
		if line.UsedCoreHours != nil && line.UsedGiBHours != nil {
			got = fmt.Sprintf("%d: %g cores, %.2f GiB", line.Measured, *line.UsedCoreHours, *line.UsedGiBHours)
		}
		if got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

// TestUsedHoursOfEarlierRuns: a job that was suspended in one month and goes on in the next one used what was measured in each.
func TestUsedHoursOfEarlierRuns(t *testing.T) {
	t.Parallel()
	status := statusOf(t, `{phase: Running, startTime: 2026-11-10T00:00:00Z,
consumption: {until: 2026-12-02T00:00:00Z, cpuCoreSeconds: 144000, memoryGiBSeconds: 0, steps: [{time: 2026-11-10T00:00:00Z, cpuCoreSeconds: 0, memoryGiBSeconds: 0}]},
usage: {since: 2026-12-01T00:00:00Z, until: 2026-12-01T01:00:00Z, pointsSince: 2026-12-01T00:00:00Z, pointSeconds: 3600, pods: 2, metrics: [{metric: CPU, mean: 3000, p95: 3000, max: 3000}],
earlier: [{since: 2026-11-10T00:00:00Z, until: 2026-11-10T10:00:00Z, cpuCoreSeconds: 36000, memoryGiBSeconds: 7200, gpuSeconds: 3600}]}}`)
	c, _ := newServer(t, reportFor("MPIJob", "pi", "pi-uid", status))
	december, tenth := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC)
	figure := func(hours *float64) string {
		if hours == nil {
			return "unknown"
		}
		return fmt.Sprintf("%.2f", *hours)
	}
	for name, test := range map[string]struct {
		since, until time.Time
		want         string
	}{
		"all":             {want: "1: 13.00 2.00 1.00"},
		"November":        {time.Time{}, december, "1: 10.00 2.00 1.00"},
		"December":        {december, time.Time{}, "1: 3.00 unknown unknown"},
		"a part":          {tenth, tenth.Add(5 * time.Hour), "1: 5.00 1.00 0.50"},
		"while suspended": {tenth.Add(48 * time.Hour), december, "0: unknown unknown unknown"},
	} {
		usage, err := c.Usage(t.Context(), UsageQuery{Namespaces: []string{"ns"}, Since: test.since, Until: test.until})
		if err != nil || len(usage.Lines) != 1 {
			t.Fatalf("%s: %v %+v", name, err, usage.Lines)
		}
		line := usage.Lines[0]
		if got := fmt.Sprintf("%d: %s %s %s", line.Measured, figure(line.UsedCoreHours), figure(line.UsedGiBHours), figure(line.UsedGPUHours)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestUsageOfDeletedReports: users who may read the sums of deleted reports get them, without the reports that are counted there. Others
// get the time until which sums are incomplete.
func TestUsageOfDeletedReports(t *testing.T) {
	t.Parallel()
	at := func(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC) }
	sums := cost.Ledger{
		Lines: []cost.LedgerLine{
			{Day: "2026-11-03", User: "ann", Queue: "gpu", Jobs: 2, CPUCoreSeconds: 24 * 3600, DeviceSeconds: map[string]int64{"nvidia.com/gpu": 48 * 3600}},
			{Day: "2026-11-04", User: "ann", Queue: "gpu", Jobs: 1, CPUCoreSeconds: 24 * 3600},
			{Day: "2026-11-04", User: "bob", Jobs: 1, CPUCoreSeconds: 3600},
		},
		Counted: []string{"pruned"},
	}
	text, err := sums.Text()
	if err != nil {
		t.Fatal(err)
	}
	kept := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mpijob-system", Name: cost.LedgerName("ns", "2026-11"), Labels: map[string]string{mpi.LabelUsageOf: "ns"}},
		Data:       map[string]string{cost.LedgerKey: text},
	}
	until := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mpijob-system", Name: cost.DeletedReportsName},
		Data:       map[string]string{cost.NamespaceKey("ns"): "2026-11-04T10:00:00Z,2026-11-01T00:00:00Z", cost.NamespaceKey("other"): "2026-11-09T00:00:00Z,"},
	}
	status := statusOf(t, "{phase: Succeeded, startTime: 2026-11-04T00:00:00Z, completionTime: 2026-11-05T00:00:00Z, run: {creator: ann}, consumption: {until: 2026-11-05T00:00:00Z, cpuCoreSeconds: 360000, memoryGiBSeconds: 0, steps: [{time: 2026-11-04T00:00:00Z, cpuCoreSeconds: 0, memoryGiBSeconds: 0}]}}")
	there, pruned := reportFor("MPIJob", "there", "there", status), reportFor("MPIJob", "pruned", "pruned-job", status)
	there.UID, pruned.UID = "there", "pruned"
	for name, test := range map[string]struct {
		query      UsageQuery
		forbidden  bool
		want       []string
		incomplete string
	}{
		"jobs":               {UsageQuery{Namespaces: []string{"ns"}}, false, []string{"(deleted reports) ann gpu 3x 48c 48g 96.00", "(deleted reports) bob  1x 1c 0g 2.00", "there ann  1x 100c 0g 200.00"}, ""},
		"users":              {UsageQuery{Namespaces: []string{""}, By: GroupUser}, false, []string{" ann  4x 148c 48g 296.00", " bob  1x 1c 0g 2.00"}, ""},
		"a period":           {UsageQuery{Namespaces: []string{"ns"}, By: GroupUser, Since: at(3, 12), Until: at(4, 0)}, false, []string{" ann  2x 12c 24g 24.00"}, ""},
		"later":              {UsageQuery{Namespaces: []string{"ns"}, Since: at(5, 0)}, false, nil, ""},
		"elsewhere":          {UsageQuery{Namespaces: []string{"third"}}, false, nil, ""},
		"without the right":  {UsageQuery{Namespaces: []string{"ns"}, By: GroupUser}, true, []string{" ann  2x 200c 0g 400.00"}, "2026-11-04T10:00:00Z"},
		"everywhere":         {UsageQuery{Namespaces: []string{""}, By: GroupUser}, true, []string{" ann  2x 200c 0g 400.00"}, "2026-11-09T00:00:00Z"},
		"a complete period":  {UsageQuery{Namespaces: []string{"ns"}, By: GroupUser, Since: at(4, 12)}, true, []string{" ann  2x 100c 0g 200.00"}, ""},
		"nothing is deleted": {UsageQuery{Namespaces: []string{"third"}}, true, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s := newServer(t, there.DeepCopy(), pruned.DeepCopy(), kept.DeepCopy(), until.DeepCopy(), pricesIn("ns", "{currency: EUR, coreHour: 2}"))
			s.refuse = func(_, kind string) error {
				if test.forbidden && kind == "ConfigMapList" {
					return forbidden("configmaps")
				}
				return nil
			}
			usage, err := c.Usage(t.Context(), test.query)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			deleted := 0
			for _, line := range usage.Lines {
				got = append(got, fmt.Sprintf("%s %s %s %dx %gc %gg %.2f", line.Job, line.CreatedBy, line.Queue, line.Jobs, line.CoreHours, line.GPUHours, *line.Cost))
				if line.Job == DeletedReports {
					deleted += line.Jobs
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if test.query.By == "" && usage.Deleted != deleted {
				t.Errorf("%d jobs have deleted reports, want %d", usage.Deleted, deleted)
			}
			incomplete := ""
			if !usage.IncompleteUntil.IsZero() {
				incomplete = usage.IncompleteUntil.UTC().Format(time.RFC3339)
			}
			if incomplete != test.incomplete {
				t.Errorf("the sums are incomplete until %q, want %q", incomplete, test.incomplete)
			}
		})
	}
}

// TestUsedAndLabelsOfDeletedReports: the sums of deleted reports have the labels that were kept and what was measured, beside those of
// reports that exist.
func TestUsedAndLabelsOfDeletedReports(t *testing.T) {
	t.Parallel()
	const hour = int64(3600)
	sums := cost.Ledger{Lines: []cost.LedgerLine{
		{Day: "2026-11-03", User: "ann", Labels: "project=x,team=blue", Jobs: 2, CPUCoreSeconds: 24 * hour, Measured: 1, UsedSeconds: cost.UsedSeconds{CPUCores: new(6 * hour), MemoryGiB: new(hour), GPUs: new(int64(0))}},
		{Day: "2026-11-03", User: "bob", Labels: "team=blue", Jobs: 1, CPUCoreSeconds: 12 * hour, Measured: 1, UsedSeconds: cost.UsedSeconds{CPUCores: new(2 * hour)}},
		{Day: "2026-11-04", User: "bob", Labels: "team=red", Jobs: 1, CPUCoreSeconds: hour},
	}}
	text, err := sums.Text()
	if err != nil {
		t.Fatal(err)
	}
	kept := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mpijob-system", Name: cost.LedgerName("ns", "2026-11"), Labels: map[string]string{mpi.LabelUsageOf: "ns"}},
		Data:       map[string]string{cost.LedgerKey: text},
	}
	figure := func(hours *float64) string {
		if hours == nil {
			return "-"
		}
		return fmt.Sprint(*hours)
	}
	for name, test := range map[string]struct {
		query UsageQuery
		want  []string
	}{
		"by label":      {UsageQuery{By: GroupLabel, Label: "team"}, []string{"blue 3x 36 reserved, 8 1 0 used by 2", "red 1x 1 reserved, - - - used by 0"}},
		"another label": {UsageQuery{By: GroupLabel, Label: "project"}, []string{" 2x 13 reserved, 2 - - used by 1", "x 2x 24 reserved, 6 1 0 used by 1"}},
		"unknown label": {UsageQuery{By: GroupLabel, Label: "none"}, []string{" 4x 37 reserved, 8 1 0 used by 2"}},
		"half of a day": {UsageQuery{By: GroupLabel, Label: "team", Until: time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)}, []string{"blue 0x 18 reserved, 4 0.5 0 used by 0"}},
		"by namespace":  {UsageQuery{By: GroupNamespace}, []string{" 4x 37 reserved, 8 1 0 used by 2"}},
	} {
		c, _ := newServer(t, kept.DeepCopy())
		test.query.Namespaces = []string{"ns"}
		usage, err := c.Usage(t.Context(), test.query)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range usage.Lines {
			got = append(got, fmt.Sprintf("%s %dx %g reserved, %s %s %s used by %d", line.Label, line.Jobs, line.CoreHours, figure(line.UsedCoreHours), figure(line.UsedGiBHours), figure(line.UsedGPUHours), line.Measured))
		}
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// TestUsageWithoutDamagedSums: sums that cannot be read are named, and do not hide the others.
func TestUsageWithoutDamagedSums(t *testing.T) {
	t.Parallel()
	ledger := func(month string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "mpijob-system", Name: cost.LedgerName("ns", month), Labels: map[string]string{mpi.LabelUsageOf: "ns"}}, Data: data,
		}
	}
	const lines = `{"lines":[{"day":"2026-11-03","jobs":2,"cpuCoreSeconds":3600,"memoryGiBSeconds":0}]}`
	for name, test := range map[string]struct {
		data map[string]string
		want string
		jobs int
	}{
		"readable":  {map[string]string{cost.LedgerKey: lines}, "", 4},
		"damaged":   {map[string]string{cost.LedgerKey: `{"lines":`}, "usage.json", 2},
		"set aside": {map[string]string{cost.LedgerKey: lines, cost.UnreadableKey: `{"lines":`}, "unreadable.json could not be read", 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := newServer(t, ledger("2026-11", map[string]string{cost.LedgerKey: lines}), ledger("2026-10", test.data))
			usage, err := c.Usage(t.Context(), UsageQuery{Namespaces: []string{"ns"}})
			if err != nil || usage.Deleted != test.jobs {
				t.Errorf("there are %d jobs, want %d: %v", usage.Deleted, test.jobs, err)
			}
			omitted := ""
			for _, one := range usage.Omitted {
				omitted += one.Kind + ": " + one.Err.Error()
			}
			if (omitted == "") != (test.want == "") || !strings.Contains(omitted, test.want) {
				t.Errorf("%q is omitted, want %q", omitted, test.want)
			}
		})
	}
}
