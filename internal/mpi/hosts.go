package mpi

// Host is a pod with slots, as the launcher addresses it.
type Host struct {
	// Name is the pod's DNS name in the cluster: <pod>.<job>.<namespace>.svc[.<cluster domain>].
	Name  string
	Slots int32
}

// Hosts returns the hosts of the job in rank order: the launcher first if it runs ranks, then the workers by index.
// The domain is that of the cluster, such as cluster.local; if it is empty, names rely on the DNS search list of the
// pods.
func (j Job) Hosts(domain string) []Host {
	hosts := make([]Host, 0, int(j.Workers.Count)+1)
	if j.Launcher.RunsRanks {
		hosts = append(hosts, Host{Name: j.HostName(j.LauncherHost(), domain), Slots: j.SlotsPerWorker})
	}
	for i := range int(j.Workers.Count) {
		hosts = append(hosts, Host{Name: j.HostName(j.WorkerName(i), domain), Slots: j.SlotsPerWorker})
	}
	return hosts
}

// HostName returns the DNS name of a pod of the job.
func (j Job) HostName(pod, domain string) string {
	name := pod + "." + j.ServiceName() + "." + j.Namespace + ".svc"
	if domain != "" {
		name += "." + domain
	}
	return name
}

// Ranks returns the number of ranks if every slot of every host is used.
func (j Job) Ranks() int64 { return int64(j.hostCount()) * int64(j.SlotsPerWorker) }

// hostCount returns the number of hosts of the job.
func (j Job) hostCount() int32 {
	if j.Launcher.RunsRanks {
		return j.Workers.Count + 1
	}
	return j.Workers.Count
}
