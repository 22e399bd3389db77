package mpi

// Host is a pod with slots, as the launcher addresses it.
type Host struct {
	// Name is the pod's DNS name inside the cluster, <pod>.<job>.<namespace>.svc[.<cluster domain>].
	Name  string
	Slots int32
}

// Hosts are the places ranks run on, in rank order: the launcher first where it runs ranks, then the
// workers by index. The domain is the cluster's, such as cluster.local; empty leaves it to the pods' DNS
// search list.
func (j Job) Hosts(domain string) []Host {
	hosts := make([]Host, 0, int(j.Workers.Count)+1)
	if j.Launcher.RunsRanks {
		hosts = append(hosts, Host{Name: j.HostName(j.LauncherName(), domain), Slots: j.SlotsPerWorker})
	}
	for i := range int(j.Workers.Count) {
		hosts = append(hosts, Host{Name: j.HostName(j.WorkerName(i), domain), Slots: j.SlotsPerWorker})
	}
	return hosts
}

// HostName is the DNS name of one of the job's pods.
func (j Job) HostName(pod, domain string) string {
	name := pod + "." + j.ServiceName() + "." + j.Namespace + ".svc"
	if domain != "" {
		name += "." + domain
	}
	return name
}

// Ranks is how many ranks fill every slot of every host.
func (j Job) Ranks() int64 {
	hosts := int64(j.Workers.Count)
	if j.Launcher.RunsRanks {
		hosts++
	}
	return hosts * int64(j.SlotsPerWorker)
}
