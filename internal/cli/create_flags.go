package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/kueue"
)

var (
	priorityClasses = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}
	serviceAccounts = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
	secrets         = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

// jobFlags are the flags that describe a job. They cannot be combined with a file.
type jobFlags struct {
	spec           jobs.Spec
	command        string
	mpiFlags       string
	slots, retries int32
	user           int64
	env, labels    []string
	// volumes, shm, results, selectors, tolerations and grace are texts of flags that are parsed into the specification.
	volumes, selectors, tolerations []string
	shm, results, topology          string
	grace, ttl                      time.Duration
	// names are the flags, and changed reports whether the user has set one.
	names   []string
	changed func(flag string) bool
}

func (j *jobFlags) add(c *cobra.Command, f *Factory) {
	flags := c.Flags()
	before := flagNames(c)
	flags.Int32VarP(&j.spec.Workers, "workers", "w", 1, usage("workers"))
	flags.Int32VarP(&j.spec.GPU, "gpu", "g", 0, usage("gpu"))
	flags.StringVar(&j.spec.GPUResource, "gpu-resource", "nvidia.com/gpu", usage("gpu-resource"))
	flags.StringVar(&j.spec.CPU, "cpu", "", usage("cpu"))
	flags.StringVar(&j.spec.Memory, "memory", "", usage("memory"))
	flags.StringVar(&j.spec.Image, "image", "", usage("image"))
	flags.StringVar(&j.command, "command", "", usage("command"))
	flags.StringVar(&j.mpiFlags, "mpi-flags", "", usage("mpi-flags"))
	flags.Int32Var(&j.slots, "slots", 0, usage("slots"))
	flags.StringVar(&j.spec.Implementation, "implementation", "", usage("implementation"))
	flags.StringVar(&j.spec.Queue, "queue", "", usage("queue"))
	flags.StringVar(&j.spec.Priority, "priority", "", usage("priority"))
	flags.StringSliceVar(&j.spec.Connections, "connection", nil, usage("connection"))
	flags.StringArrayVarP(&j.env, "env", "e", nil, usage("env"))
	flags.StringArrayVar(&j.labels, "label", nil, usage("label"))
	flags.StringVar(&j.spec.Runtime, "runtime", "", usage("runtime"))
	flags.Int64Var(&j.user, "run-as-user", 0, usage("run-as-user"))
	flags.Int32Var(&j.retries, "retries", 0, usage("retries"))
	flags.DurationVar(&j.spec.Deadline, "deadline", 0, usage("deadline"))
	flags.DurationVar(&j.ttl, "ttl", 0, usage("ttl"))
	flags.StringVar(&j.spec.RDMA, "rdma", "", usage("rdma"))
	flags.BoolVar(&j.spec.Profile, "profile", false, usage("profile"))
	flags.BoolVar(&j.spec.WaitForQuota, "wait-for-quota", false, usage("wait-for-quota"))
	flags.BoolVar(&j.spec.Suspend, "suspend", false, usage("suspend"))
	flags.StringArrayVar(&j.volumes, "volume", nil, usage("volume"))
	flags.StringVar(&j.shm, "shm", "", usage("shm"))
	flags.StringVar(&j.results, "output-dir", "", usage("output-dir"))
	flags.StringArrayVar(&j.selectors, "node-selector", nil, usage("node-selector"))
	flags.StringArrayVar(&j.tolerations, "toleration", nil, usage("toleration"))
	flags.StringSliceVar(&j.spec.ImagePullSecrets, "image-pull-secret", nil, usage("image-pull-secret"))
	flags.StringVar(&j.spec.ServiceAccount, "service-account", "", usage("service-account"))
	flags.StringVar(&j.spec.WorkDir, "workdir", "", usage("workdir"))
	flags.StringVar(&j.spec.LauncherCPU, "launcher-cpu", "", usage("launcher-cpu"))
	flags.StringVar(&j.spec.LauncherMemory, "launcher-memory", "", usage("launcher-memory"))
	flags.StringVar(&j.topology, "topology", "", usage("topology"))
	flags.DurationVar(&j.spec.GangTimeout, "gang-timeout", 0, usage("gang-timeout"))
	flags.DurationVar(&j.grace, "grace-period", 0, usage("grace-period"))
	for name := range flagNames(c) {
		if !before[name] {
			j.names = append(j.names, name)
		}
	}
	slices.Sort(j.names)
	for name, complete := range map[string]completion{
		"rdma":           cobra.FixedCompletions([]string{"optional", "required"}, cobra.ShellCompDirectiveNoFileComp),
		"implementation": cobra.FixedCompletions([]string{"OpenMPI", "Intel", "MPICH"}, cobra.ShellCompDirectiveNoFileComp),
		"queue":          f.completeObjects(kueue.LocalQueueKind),
		"priority":       f.completeObjects(priorityClasses),
		"connection":     f.completeObjects(secrets),

		"image-pull-secret": f.completeObjects(secrets),
		"service-account":   f.completeObjects(serviceAccounts),
		"runtime":           f.completeObjects(trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind), trainjob.GroupVersion.WithKind(trainjob.RuntimeKind)),
	} {
		_ = c.RegisterFlagCompletionFunc(name, complete)
	}
}

// usage returns the description of a flag, by the table of settings.
func usage(flag string) string {
	for _, group := range jobs.Settings() {
		for _, setting := range group.Settings {
			if setting.Flag == flag {
				return setting.Usage()
			}
		}
	}
	panic("no setting has the flag " + flag) // a test constructs all commands
}

// set returns the flags that the user has set.
func (j *jobFlags) set() []string {
	var set []string
	for _, name := range j.names {
		if j.changed(name) {
			set = append(set, "--"+name)
		}
	}
	return set
}

// complete reads the flags into the specification. All errors are returned at once.
func (j *jobFlags) complete() error {
	errs := j.parse()
	if errs = append(j.spec.Validate(), errs...); len(errs) > 0 {
		return jobs.Invalid(errs...)
	}
	return nil
}

// parse reads the texts of flags into the specification.
func (j *jobFlags) parse() (errs []jobs.FieldError) {
	switch {
	case len(j.spec.Command) > 0 && j.command != "":
		errs = append(errs, jobs.FieldError{Field: "command", Reason: "cannot be combined with a command after --"})
	case j.command != "":
		command, err := jobs.ParseCommand(j.command)
		if err != nil {
			errs = append(errs, jobs.FieldError{Field: "command", Value: j.command, Reason: err.Error()})
			command = []string{j.command}
		}
		j.spec.Command = command
	}
	words, err := jobs.SplitCommand(j.mpiFlags)
	if err != nil {
		errs = append(errs, jobs.FieldError{Field: "mpi-flags", Value: j.mpiFlags, Reason: err.Error()})
	}
	j.spec.MPIFlags = words
	if j.changed("slots") {
		j.spec.Slots = &j.slots
	}
	if j.changed("retries") {
		j.spec.Retries = &j.retries
	}
	if j.changed("ttl") {
		j.spec.TTL = &j.ttl
	}
	if j.changed("run-as-user") {
		j.spec.RunAsUser = &j.user
	}
	for _, text := range j.env {
		name, value, err := parsePair("env", text)
		errs = append(errs, err...)
		j.spec.Env = append(j.spec.Env, corev1.EnvVar{Name: name, Value: value})
	}
	for _, text := range j.labels {
		name, value, err := parsePair("label", text)
		errs = append(errs, err...)
		if j.spec.Labels == nil {
			j.spec.Labels = map[string]string{}
		}
		j.spec.Labels[name] = value
	}
	return append(errs, j.completePods()...)
}

// completePods reads the flags about the pods into the specification.
func (j *jobFlags) completePods() (errs []jobs.FieldError) {
	invalid := func(field string, err error) { errs = append(errs, renamed(field, err)...) }
	for _, text := range j.volumes {
		volume, err := jobs.ParseVolume(text)
		if invalid("volume", err); err == nil {
			j.spec.Volumes = append(j.spec.Volumes, volume)
		}
	}
	if j.shm != "" {
		volume, err := jobs.ParseVolume("memory/" + j.shm + ":/dev/shm")
		if err != nil {
			errs = append(errs, jobs.FieldError{Field: "shm", Value: j.shm, Reason: "is not a quantity; use a value such as 8Gi"})
		} else {
			j.spec.Volumes = append(j.spec.Volumes, volume)
		}
	}
	if j.results != "" {
		volume, err := jobs.ParseVolume(j.results)
		if invalid("output-dir", err); err == nil {
			j.spec.Output = &volume
		}
	}
	for _, text := range j.selectors {
		name, value, wrong := parsePair("node-selector", text)
		errs = append(errs, wrong...)
		if j.spec.NodeSelector == nil {
			j.spec.NodeSelector = map[string]string{}
		}
		j.spec.NodeSelector[name] = value
	}
	for _, text := range j.tolerations {
		toleration, err := jobs.ParseToleration(text)
		if invalid("toleration", err); err == nil {
			j.spec.Tolerations = append(j.spec.Tolerations, toleration)
		}
	}
	j.spec.Topology, j.spec.TopologyPreferred = strings.CutPrefix(j.topology, "prefer:")
	if j.changed("grace-period") {
		j.spec.GracePeriod = &j.grace
	}
	return errs
}

// renamed returns the errors of a text under the name of its flag.
func renamed(field string, err error) (errs []jobs.FieldError) {
	if found, is := errors.AsType[*jobs.InvalidError](err); is {
		for _, one := range found.Fields {
			errs = append(errs, jobs.FieldError{Field: field, Value: one.Value, Reason: one.Reason})
		}
	}
	return errs
}

// parsePair reads NAME=VALUE.
func parsePair(field, text string) (name, value string, errs []jobs.FieldError) {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		errs = append(errs, jobs.FieldError{Field: field, Value: text, Reason: "must be NAME=VALUE"})
	}
	return name, value, errs
}

// question asks for a value that the flags leave out.
type question struct {
	text, defaultAnswer string
	missing             bool
	accept              func(answer string) error
}

// askMissing asks for values that the flags leave out.
func (j *jobFlags) askMissing(f *Factory) error {
	answers := bufio.NewReader(f.In)
	number := func(into *int32) func(string) error {
		return func(answer string) error {
			n, err := strconv.ParseInt(answer, 10, 32)
			if err != nil || n < 0 {
				return fmt.Errorf("%q is not a number; enter a value such as 4", answer)
			}
			*into = int32(n)
			return nil
		}
	}
	required := func(into *string) func(string) error {
		return func(answer string) error {
			if answer == "" {
				return errors.New("a value is required")
			}
			*into = answer
			return nil
		}
	}
	optional := func(into *string) func(string) error {
		return func(answer string) error { *into = answer; return nil }
	}
	s := &j.spec
	for _, q := range []question{
		{"Job name", "", s.Name == "", required(&s.Name)},
		{"Runtime of Kubeflow Trainer (empty to use your own image)", "", s.Runtime == "" && s.Image == "", optional(&s.Runtime)},
	} {
		if err := f.prompt(q, answers); err != nil {
			return err
		}
	}
	for _, q := range []question{
		{"Image", "", s.Image == "" && s.Runtime == "", required(&s.Image)},
		{"Command of each rank, such as python train.py", "", j.command == "" && len(s.Command) == 0, required(&j.command)},
		{"Number of workers", "1", !j.changed("workers"), number(&s.Workers)},
		{"GPUs per worker", "0", !j.changed("gpu"), number(&s.GPU)},
		{"CPU cores per worker, such as 4", "", s.CPU == "", optional(&s.CPU)},
		{"Memory per worker, such as 16Gi", "", s.Memory == "", optional(&s.Memory)},
	} {
		if err := f.prompt(q, answers); err != nil {
			return err
		}
	}
	return nil
}

// prompt repeats a question until the answer is accepted.
func (f *Factory) prompt(q question, answers *bufio.Reader) error {
	for q.missing {
		fmt.Fprint(f.ErrOut, q.text)
		if q.defaultAnswer != "" {
			fmt.Fprintf(f.ErrOut, " [%s]", q.defaultAnswer)
		}
		fmt.Fprint(f.ErrOut, ": ")
		line, err := answers.ReadString('\n')
		if err != nil && (line == "" || !errors.Is(err, io.EOF)) {
			say(f.ErrOut, "")
			return usagef("no answer; use flags instead of --interactive")
		}
		err = q.accept(cmp.Or(strings.TrimSpace(line), q.defaultAnswer))
		if err == nil {
			return nil
		}
		say(f.ErrOut, "  %v", err)
	}
	return nil
}
