package ranks

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agent/files"
	"opendatahub.io/mpijob/internal/agent/mpirun"
	"opendatahub.io/mpijob/internal/agentapi"
)

// withoutInterface returns the setting by which a rank with an environment uses none of the pod's network interfaces; nil if there is
// none.
func withoutInterface(env []string) *agentapi.InterfaceSetting {
	parameters := parametersFor(env)
	if !mpirun.NamesInterfaces(env, parameters) {
		return nil
	}
	pod := podNetwork()
	if len(pod.Interfaces) == 0 {
		return nil
	}
	return mpirun.WithoutInterface(env, parameters, pod)
}

// parametersFor returns the parameters that Open MPI reads from files for a rank.
func parametersFor(env []string) map[string]string {
	if environ.Get(env, "OMPI_COMM_WORLD_RANK") == "" {
		return nil
	}
	return Parameters(environ.Get(env, "HOME"))
}

// Parameters returns the parameters that Open MPI, and PRRTE in version 5, read from files: those of the user with a home folder, and
// then those of the installation.
func Parameters(home string) map[string]string {
	parameters := map[string]string{}
	for _, pattern := range []string{
		filepath.Join(home, ".openmpi/mca-params.conf"), filepath.Join(home, ".prte/mca-params.conf"),
		"/etc/openmpi*/*-mca-params.conf", "/usr/local/etc/*-mca-params.conf", "/opt/*/etc/*-mca-params.conf",
	} {
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			if text, err := files.Read(name); err == nil {
				mpirun.ParseParameters(string(text), parameters)
			}
		}
	}
	return parameters
}

// podNetwork returns the network interfaces of this pod that are up, and the RDMA devices that it shows.
func podNetwork() (pod mpirun.Network) {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		next := mpirun.Interface{Name: i.Name}
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				next.Addresses = append(next.Addresses, prefix.Addr())
			}
		}
		pod.Interfaces = append(pod.Interfaces, next)
	}
	devices, _ := os.ReadDir("/sys/class/infiniband")
	for _, d := range devices {
		pod.Devices = append(pod.Devices, d.Name())
	}
	return pod
}
