package cli

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/internal/jobs"
)

// runtimeFlags are the flags that set what jobs.RuntimeSettings has. ” removes a limit.
type runtimeFlags struct {
	slots                             int32
	maxWorkers, minWorkers, maxGPUs   string
	image, gangTimeout, priorityClass string
	nodeLabels, egress                string
	changed                           func(flag string) bool
}

// runtimeSettings are the names of these flags.
var runtimeSettings = []string{"image", "slots", "max-workers", "min-workers", "max-gpus", "gang-timeout", "priority-class", "required-node-labels", "allow-egress"}

// add adds the flags to a command; image is the description of --image.
func (r *runtimeFlags) add(f *Factory, c *cobra.Command, image string) {
	flags := c.Flags()
	flags.StringVar(&r.image, "image", "", image)
	flags.Int32Var(&r.slots, "slots", 0, "Ranks per node, unless the job sets it")
	flags.StringVar(&r.maxWorkers, "max-workers", "", "Maximum number of nodes of a job; '' for no limit (shipped: 100)")
	flags.StringVar(&r.minWorkers, "min-workers", "", "Minimum number of nodes of a job; '' for no minimum")
	flags.StringVar(&r.maxGPUs, "max-gpus", "", "Maximum number of GPUs per node of a job; '' for no limit (shipped: 16)")
	flags.StringVar(&r.gangTimeout, "gang-timeout", "", "End an attempt to place all pods of a job together after this time, unless the job sets it, such as 10m; '' for the cluster's time")
	flags.StringVar(&r.priorityClass, "priority-class", "", "PriorityClass of the pods; '' for the cluster's default")
	flags.StringVar(&r.nodeLabels, "required-node-labels", "", "Labels of the nodes that the pods run on, which a job cannot change, as key=value,...; '' for any node")
	flags.StringVar(&r.egress, "allow-egress", "", "Destinations that the pods may connect to besides their own job, such as 192.0.2.7:2049,namespace/minio:9000; '' for none")
	_ = c.RegisterFlagCompletionFunc("priority-class", f.completeObjects(priorityClasses))
	r.changed = flags.Changed
}

// areSet reports whether one of the flags is set.
func (r *runtimeFlags) areSet() bool { return slices.ContainsFunc(runtimeSettings, r.changed) }

// apply changes settings as the flags that are set say.
func (r *runtimeFlags) apply(settings *jobs.RuntimeSettings) error {
	for _, text := range []struct {
		flag, text string
		into       *string
	}{
		{"image", r.image, &settings.Image},
		{"priority-class", r.priorityClass, &settings.PriorityClass},
		{"required-node-labels", r.nodeLabels, &settings.RequiredNodeLabels},
		{"allow-egress", r.egress, &settings.AllowEgress},
	} {
		if r.changed(text.flag) {
			*text.into = text.text
		}
	}
	for _, number := range []struct {
		flag, text string
		into       **int32
	}{
		{"max-workers", r.maxWorkers, &settings.MaxWorkers},
		{"min-workers", r.minWorkers, &settings.MinWorkers},
		{"max-gpus", r.maxGPUs, &settings.MaxGPUs},
	} {
		if !r.changed(number.flag) {
			continue
		}
		*number.into = nil
		if number.text == "" {
			continue
		}
		n, err := strconv.ParseInt(number.text, 10, 32)
		if err != nil {
			return usagef("--%s: %s is not allowed; use a whole number, or '' for none", number.flag, number.text)
		}
		*number.into = new(int32(n))
	}
	if r.changed("slots") {
		if settings.Slots = r.slots; r.slots == 0 {
			return usagef("--slots: 0 is not allowed; use 1 or more")
		}
	}
	if !r.changed("gang-timeout") {
		return nil
	}
	settings.GangTimeoutSeconds = nil
	if r.gangTimeout == "" {
		return nil
	}
	timeout, err := time.ParseDuration(r.gangTimeout)
	if err != nil || timeout < time.Second || timeout%time.Second != 0 {
		return usagef("--gang-timeout: %s is not allowed; use whole seconds, 1s or more", r.gangTimeout)
	}
	settings.GangTimeoutSeconds = new(int32(min(timeout/time.Second, math.MaxInt32)))
	return nil
}
