package cli

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/jobs"
)

// copyFlags are the flags of create by which clone and update change a copy, besides namedChanges and --env.
type copyFlags struct {
	jobFlags
}

// addCopied adds the flags of create that the command does not have.
func (o *copyFlags) addCopied(c *cobra.Command, f *Factory) {
	create := &cobra.Command{}
	o.add(create, f)
	var names []string
	create.Flags().VisitAll(func(flag *pflag.Flag) {
		if c.Flags().Lookup(flag.Name) == nil {
			c.Flags().AddFlag(flag)
			names = append(names, flag.Name)
		}
	})
	o.names = names
	o.changed = func(name string) bool { return slices.Contains(names, name) && c.Flags().Lookup(name).Changed }
}

// edit returns what the flags change in a specification; nil for nothing. The changes are those that are made after it.
func (o *copyFlags) edit(changes []jobs.Change) (func(*jobs.Spec), error) {
	if len(o.set()) == 0 {
		return nil, nil
	}
	if errs := o.parse(); len(errs) > 0 {
		return nil, jobs.Invalid(errs...)
	}
	return func(spec *jobs.Spec) {
		if o.changed("priority") {
			// The new queue decides which priority a TrainJob gets.
			for _, change := range changes {
				if change.Field == "queue" {
					spec.Queue = change.Value
				}
			}
		}
		for _, name := range o.names {
			if o.changed(name) {
				copied[name](spec, &o.spec)
			}
		}
	}, nil
}

// copied are the changes of a specification by the flags of create. Lists of the original are extended.
var copied = map[string]func(spec, flags *jobs.Spec){
	"gpu":               func(s, f *jobs.Spec) { s.GPU = f.GPU },
	"gpu-resource":      func(s, f *jobs.Spec) { s.GPUResource = f.GPUResource },
	"cpu":               func(s, f *jobs.Spec) { s.CPU = f.CPU },
	"memory":            func(s, f *jobs.Spec) { s.Memory = f.Memory },
	"mpi-flags":         func(s, f *jobs.Spec) { s.MPIFlags = f.MPIFlags },
	"implementation":    func(s, f *jobs.Spec) { s.Implementation = f.Implementation },
	"priority":          func(s, f *jobs.Spec) { s.Priority = f.Priority },
	"connection":        func(s, f *jobs.Spec) { s.Connections = extended(s.Connections, f.Connections) },
	"label":             func(s, f *jobs.Spec) { s.Labels = merged(s.Labels, f.Labels) },
	"runtime":           func(s, f *jobs.Spec) { s.Runtime = f.Runtime },
	"run-as-user":       func(s, f *jobs.Spec) { s.RunAsUser = f.RunAsUser },
	"retries":           func(s, f *jobs.Spec) { s.Retries = f.Retries },
	"deadline":          func(s, f *jobs.Spec) { s.Deadline = f.Deadline },
	"ttl":               func(s, f *jobs.Spec) { s.TTL = f.TTL },
	"rdma":              func(s, f *jobs.Spec) { s.RDMA = f.RDMA },
	"profile":           func(s, f *jobs.Spec) { s.Profile = f.Profile },
	"wait-for-quota":    func(s, f *jobs.Spec) { s.WaitForQuota = f.WaitForQuota },
	"suspend":           func(s, f *jobs.Spec) { s.Suspend = f.Suspend },
	"volume":            addVolumes,
	"shm":               addVolumes,
	"output-dir":        func(s, f *jobs.Spec) { s.Output = f.Output },
	"node-selector":     func(s, f *jobs.Spec) { s.NodeSelector = merged(s.NodeSelector, f.NodeSelector) },
	"toleration":        addTolerations,
	"image-pull-secret": func(s, f *jobs.Spec) { s.ImagePullSecrets = extended(s.ImagePullSecrets, f.ImagePullSecrets) },
	"service-account":   func(s, f *jobs.Spec) { s.ServiceAccount = f.ServiceAccount },
	"workdir":           func(s, f *jobs.Spec) { s.WorkDir = f.WorkDir },
	"launcher-cpu":      func(s, f *jobs.Spec) { s.LauncherCPU = f.LauncherCPU },
	"launcher-memory":   func(s, f *jobs.Spec) { s.LauncherMemory = f.LauncherMemory },
	"topology":          func(s, f *jobs.Spec) { s.Topology, s.TopologyPreferred = f.Topology, f.TopologyPreferred },
	"gang-timeout":      func(s, f *jobs.Spec) { s.GangTimeout = f.GangTimeout },
	"grace-period":      func(s, f *jobs.Spec) { s.GracePeriod = f.GracePeriod },
}

// addVolumes adds volumes, each in place of the one at its path.
func addVolumes(spec, flags *jobs.Spec) {
	for _, volume := range flags.Volumes {
		spec.Volumes = slices.DeleteFunc(slices.Clone(spec.Volumes), func(v jobs.Volume) bool { return v.Path == volume.Path })
		spec.Volumes = append(spec.Volumes, volume)
	}
}

// addTolerations adds tolerations, each in place of the one of its key and effect.
func addTolerations(spec, flags *jobs.Spec) {
	for _, toleration := range flags.Tolerations {
		spec.Tolerations = slices.DeleteFunc(slices.Clone(spec.Tolerations), func(t corev1.Toleration) bool { return t.Key == toleration.Key && t.Effect == toleration.Effect })
		spec.Tolerations = append(spec.Tolerations, toleration)
	}
}

// extended returns a list with the entries of another that it does not have.
func extended(list, more []string) []string {
	all := slices.Clone(list)
	for _, entry := range more {
		if !slices.Contains(all, entry) {
			all = append(all, entry)
		}
	}
	return all
}

// merged returns a map with the entries of another.
func merged(values, more map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, values)
	maps.Copy(all, more)
	return all
}
