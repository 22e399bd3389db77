package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// podMetrics are what a metrics server tells of pods.
var podMetrics = schema.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetrics"}

type topOptions struct {
	*Factory
	everywhere bool
	sortBy     string
}

func newTop(f *Factory) *cobra.Command {
	o := &topOptions{Factory: f}
	c := &cobra.Command{
		Use:   "top [NAME]",
		Short: "Show how much CPU and memory jobs use now, of what they asked for",
		Long: `Show how much CPU and memory the pods of a job use now, and without a name the jobs that have pods. What is used is told by
the cluster's metrics server; GPU is how many GPUs were asked for.`,
		Example: `# The jobs of this namespace
{{name}} top

# The pods of one, the hungriest first
{{name}} top pi --sort-by memory`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	c.Flags().BoolVarP(&o.everywhere, "all-namespaces", "A", false, "The jobs of every namespace")
	c.Flags().StringVar(&o.sortBy, "sort-by", "name", "name, cpu or memory")
	_ = c.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions([]string{"name", "cpu", "memory"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// load is what a pod, or all pods of a job, use and have asked for.
type load struct {
	cpu, memory, cpuAsked, memoryAsked resource.Quantity
	gpus                               int64
	measured                           bool
}

func (l *load) add(other load) {
	l.cpu.Add(other.cpu)
	l.memory.Add(other.memory)
	l.cpuAsked.Add(other.cpuAsked)
	l.memoryAsked.Add(other.memoryAsked)
	l.gpus += other.gpus
	l.measured = l.measured || other.measured
}

func (l load) cells() []cell {
	if !l.measured {
		return plain("-", "-", fmt.Sprint(l.gpus))
	}
	return plain(
		share(fmt.Sprintf("%dm", l.cpu.MilliValue()), l.cpu, l.cpuAsked),
		share(fmt.Sprintf("%dMi", l.memory.Value()>>20), l.memory, l.memoryAsked),
		fmt.Sprint(l.gpus),
	)
}

// share is a figure, and how much that is of what was asked for.
func share(text string, used, asked resource.Quantity) string {
	if asked.IsZero() {
		return text
	}
	return fmt.Sprintf("%s (%d%%)", text, used.MilliValue()*100/asked.MilliValue())
}

func (o *topOptions) run(ctx context.Context, args []string) error {
	if err := oneOf("--sort-by", o.sortBy, "name", "cpu", "memory"); err != nil {
		return err
	}
	if len(args) == 1 {
		if o.everywhere {
			return usagef("the name of a job does not go with -A")
		}
		return o.pods(ctx, args[0])
	}
	return o.jobs(ctx)
}

// row is a row of the table, with what it is sorted by.
type loadRow struct {
	cells []cell
	load  load
}

func (o *topOptions) print(header []string, rows []loadRow) error {
	slices.SortStableFunc(rows, func(a, b loadRow) int {
		switch o.sortBy {
		case "cpu":
			return b.load.cpu.Cmp(a.load.cpu)
		case "memory":
			return b.load.memory.Cmp(a.load.memory)
		}
		return 0
	})
	t := table{header: append(header, "CPU", "MEMORY", "GPU")}
	for _, row := range rows {
		t.rows = append(t.rows, append(row.cells, row.load.cells()...))
	}
	return t.write(o.Factory, o.Out, "", true)
}

// pods shows those of one job.
func (o *topOptions) pods(ctx context.Context, arg string) error {
	job, err := o.Find(ctx, arg)
	if err != nil {
		return err
	}
	loads, err := o.loads(ctx, job.Namespace, client.MatchingLabels(podLabels(job)))
	if err != nil {
		return err
	}
	var rows []loadRow
	for _, pod := range statusOf(job).Pods {
		if l, found := loads[job.Namespace+"/"+pod.Name]; found {
			rows = append(rows, loadRow{plain(pod.Name, cmp.Or(pod.Ranks, "-"), cmp.Or(pod.Node, "-")), l})
		}
	}
	if len(rows) == 0 {
		say(o.ErrOut, "%s has no pods that run. %s.", job, headline(job, o.Now()))
		return nil
	}
	return o.print([]string{"POD", "RANKS", "NODE"}, rows)
}

// podLabels pick the pods of a job.
func podLabels(job Job) map[string]string {
	if job.Kind == trainjob.Kind {
		return map[string]string{trainjob.LabelJobSet: job.Name}
	}
	return mpi.Job{Name: job.Name}.Selector()
}

// jobs shows those that have pods.
func (o *topOptions) jobs(ctx context.Context) error {
	selection, err := o.selection(o.everywhere, "")
	if err != nil {
		return err
	}
	jobs, notes, err := o.Jobs(ctx, selection)
	if err != nil {
		return err
	}
	for _, note := range notes {
		say(o.ErrOut, "note: %s", note)
	}
	loads, err := o.loads(ctx, selection.Namespace)
	if err != nil {
		return err
	}
	header := []string{"NAME", "KIND", "PHASE", "PODS"}
	if o.everywhere {
		header = append([]string{"NAMESPACE"}, header...)
	}
	var rows []loadRow
	for _, job := range jobs {
		sum, pods := sumOf(job, loads)
		if pods == 0 {
			continue
		}
		cells := []cell{{text: job.Name}, {text: job.Kind}, {text: string(job.Phase()), colour: phaseColour(job.Phase())}, {text: fmt.Sprint(pods)}}
		if o.everywhere {
			cells = append(plain(job.Namespace), cells...)
		}
		rows = append(rows, loadRow{cells, sum})
	}
	if len(rows) == 0 {
		say(o.ErrOut, "no job has pods that run")
		return nil
	}
	return o.print(header, rows)
}

func sumOf(job Job, loads map[string]load) (sum load, pods int) {
	for _, pod := range statusOf(job).Pods {
		if l, found := loads[job.Namespace+"/"+pod.Name]; found {
			sum.add(l)
			pods++
		}
	}
	return sum, pods
}

// loads are what pods that run use and have asked for, by namespace and name.
func (o *topOptions) loads(ctx context.Context, namespace string, labels ...client.ListOption) (map[string]load, error) {
	c, err := o.Client()
	if err != nil {
		return nil, err
	}
	options := append([]client.ListOption{client.InNamespace(namespace)}, labels...)
	measured := &unstructured.UnstructuredList{}
	measured.SetGroupVersionKind(podMetrics.GroupVersion().WithKind(podMetrics.Kind + "List"))
	if err := c.List(ctx, measured, options...); err != nil {
		if isNoSuchAPI(err) || meta.IsNoMatchError(err) || strings.Contains(err.Error(), "currently unable to handle the request") {
			return nil, exitf(ExitError, "the cluster does not measure pods (metrics.k8s.io): it has no metrics server; ask whoever runs it for one")
		}
		return nil, fmt.Errorf("list PodMetrics: %w", err)
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, options...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	used := map[string]load{}
	for _, item := range measured.Items {
		used[item.GetNamespace()+"/"+item.GetName()] = usage(item)
	}
	loads := map[string]load{}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		l := used[pod.Namespace+"/"+pod.Name]
		asked := mpi.Requests(pod.Spec)
		l.cpuAsked, l.memoryAsked = *asked.Cpu(), *asked.Memory()
		for _, container := range pod.Spec.Containers {
			l.gpus += mpi.GPUs(container.Resources)
		}
		loads[pod.Namespace+"/"+pod.Name] = l
	}
	return loads, nil
}

// usage is what a pod's containers use together.
func usage(item unstructured.Unstructured) load {
	l := load{measured: true}
	containers, _, _ := unstructured.NestedSlice(item.Object, "containers")
	for _, c := range containers {
		container, _ := c.(map[string]any)
		for name, into := range map[string]*resource.Quantity{"cpu": &l.cpu, "memory": &l.memory} {
			text, _, _ := unstructured.NestedString(container, "usage", name)
			if quantity, err := resource.ParseQuantity(text); err == nil {
				into.Add(quantity)
			}
		}
	}
	return l
}
