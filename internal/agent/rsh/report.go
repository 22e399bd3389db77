package rsh

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/cgroup"
	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/mpiversion"
	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

// A launcher whose program only the image defines runs without the agent above it. The rsh's that MPI starts then leave what is
// known of hosts and ranks in its termination message. One of them does so at a time: it reads the records of all.

const (
	// reportEvery is how often the message is written while sessions last: the container ends without notice.
	reportEvery = 2 * time.Second
	// usageEvery is how often the usage of the hosts is added up: workers report it as often.
	usageEvery = 30 * time.Second
	// lockWait is how long an rsh that ends waits for another one that writes as it ends itself.
	lockWait, lockPause = 100 * time.Millisecond, 10 * time.Millisecond
)

// startReport begins to report on the launcher if nothing else does, with the end of the session when end is called.
func startReport() (end func()) {
	if os.Getenv(records.EnvSupervised) != "" || os.Getenv(process.EnvSession) != "" {
		return func() {}
	}
	folder, container := records.Folder(), process.ContainerRun()
	lock, err := os.OpenFile(filepath.Join(folder, "report.lock"), os.O_CREATE|os.O_RDONLY, 0o644) //nolint:gosec // the pod's containers may run as different users
	if err != nil {
		return func() {}
	}
	// What was reported before this session is not complete any more, and the container may end before the next report.
	records.LeaveTermination(agentapi.Summary{Role: agentapi.RoleLauncher, HostsReached: 1})
	used := jobUsage{folder: folder, container: container}
	locked := func() bool { return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil }
	report := func(isLast bool) {
		own := agentapi.Summary{MPIVersions: mpiversion.Kept(folder, container), Usage: used.get(isLast)}
		cgroup.Tell(cgroup.Root, &own)
		// The records of earlier runs of the container do not count.
		sessions := slices.DeleteFunc(records.Read(folder), func(r records.Record) bool { return r.Container != container })
		records.LeaveTermination(outcome.Summarize(own, sessions, hostfile.Read(agentapi.Hostfile), time.Now()))
	}
	endQuery := mpiversion.AskOwnLauncher(folder, container)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(reportEvery)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				if locked() {
					report(false)
				}
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
		endQuery()
		defer lock.Close()
		for deadline := time.Now().Add(lockWait); time.Now().Before(deadline); time.Sleep(lockPause) {
			if locked() {
				report(true)
				return
			}
		}
	}
}

// jobUsage is what the job used, by a folder's records of a run of the container.
type jobUsage struct {
	folder, container string
	at                time.Time
	used              *agentapi.Usage
}

// get adds up the usage of the hosts, if it is due or asked for the last time; nil if it is unknown.
func (u *jobUsage) get(isLast bool) *agentapi.Usage {
	if !isLast && time.Since(u.at) < usageEvery {
		return u.used
	}
	u.at, u.used = time.Now(), nil
	if job, measured := usage.Job(records.ReadUsage(u.folder, u.container)); measured {
		u.used = &job
	}
	return u.used
}
