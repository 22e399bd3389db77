package mpirun

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agentapi"
)

// Interface is a network interface of a pod.
type Interface struct {
	Name      string
	Addresses []netip.Addr
}

// Network is the network interfaces of a pod, and its RDMA devices.
type Network struct {
	Interfaces []Interface
	Devices    []string
}

// NamesInterfaces reports whether an environment, or Open MPI's parameters, have settings that name network interfaces.
func NamesInterfaces(env []string, parameters map[string]string) bool {
	return slices.ContainsFunc(settings, func(s setting) bool { return s.valueIn(env, parameters) != "" })
}

// WithoutInterface returns the setting in the environment of a rank, or in Open MPI's parameters, by which the rank uses none of the
// pod's network interfaces, since it names others; nil if there is none.
func WithoutInterface(env []string, parameters map[string]string, pod Network) *agentapi.InterfaceSetting {
	for _, s := range settings {
		value := s.valueIn(env, parameters)
		if value == "" || s.leaves(strings.Split(value, ","), pod) {
			continue
		}
		const mostValue, mostNames = 64, 8
		shown := strings.Map(func(r rune) rune {
			if r > ' ' && r <= unicode.MaxASCII && unicode.IsPrint(r) {
				return r
			}
			return -1
		}, value)
		found := &agentapi.InterfaceSetting{Name: s.name, Value: shown[:min(len(shown), mostValue)]}
		for _, i := range pod.Interfaces[:min(len(pod.Interfaces), mostNames)] {
			found.Has = append(found.Has, i.Name)
		}
		return found
	}
	return nil
}

// ParseParameters adds the parameters in a file of Open MPI (openmpi-mca-params.conf), as lines "name = value", to others. Those that
// are known stay.
func ParseParameters(text string, parameters map[string]string) {
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if _, known := parameters[name]; found && !known && !strings.HasPrefix(name, "#") {
			parameters[name] = strings.TrimSpace(value)
		}
	}
}

// setting is a variable or a parameter of Open MPI whose value is a list of network interfaces.
type setting struct {
	// name is that of the variable; of Open MPI's parameters it is without the prefix mcaPrefix.
	name        string
	isParameter bool
	// leaves reports whether the list leaves an interface of the pod.
	leaves func(list []string, pod Network) bool
}

// settings are those whose libraries have no other interface than the named ones. libfabric (FI_TCP_IFACE) ignores a name that does
// not exist, and Hydra (mpiexec -iface) refuses it.
var settings = []setting{
	// ompi/opal/mca/btl/tcp/btl_tcp_component.c
	{name: "btl_tcp_if_include", isParameter: true, leaves: includesAny},
	{name: "btl_tcp_if_exclude", isParameter: true, leaves: excludesNotAll},
	// src/mpid/ch3/channels/nemesis/netmod/tcp/tcp_getip.c of MPICH
	{name: "MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE", leaves: includesAll},
	// src/ucs/sys/sock.c and src/ucp/core/ucp_context.c of UCX
	{name: "UCX_NET_DEVICES", leaves: isDevice},
	// src/misc/socket.cc of NCCL, which RCCL has taken over
	{name: "NCCL_SOCKET_IFNAME", leaves: hasPrefix},
	// torch/csrc/distributed/c10d/ProcessGroupGloo.cpp and horovod/common/gloo/gloo_context.cc
	{name: "GLOO_SOCKET_IFNAME", leaves: includesAll},
	{name: "HOROVOD_GLOO_IFACE", leaves: includesAll},
}

const mcaPrefix = "OMPI_MCA_"

func (s setting) valueIn(env []string, parameters map[string]string) string {
	if !s.isParameter {
		return strings.TrimSpace(environ.Get(env, s.name))
	}
	if value := strings.TrimSpace(environ.Get(env, mcaPrefix+s.name)); value != "" {
		return value
	}
	return parameters[s.name]
}

// is reports whether an entry of a list names an interface or a network that has its address.
func (i Interface) is(entry string) bool {
	network, err := netip.ParsePrefix(entry)
	if err != nil {
		return i.Name == entry
	}
	return slices.ContainsFunc(i.Addresses, network.Contains)
}

func (n Network) has(entry string) bool {
	return slices.ContainsFunc(n.Interfaces, func(i Interface) bool { return i.is(strings.TrimSpace(entry)) })
}

func includesAny(list []string, pod Network) bool { return slices.ContainsFunc(list, pod.has) }

func includesAll(list []string, pod Network) bool {
	return !slices.ContainsFunc(list, func(entry string) bool { return !pod.has(entry) })
}

// excludesNotAll reports whether a list of what is excluded leaves more than the loopback interface.
func excludesNotAll(list []string, pod Network) bool {
	return slices.ContainsFunc(pod.Interfaces, func(i Interface) bool {
		return !i.isLoopback() && !slices.ContainsFunc(list, func(entry string) bool { return i.is(strings.TrimSpace(entry)) })
	})
}

func (i Interface) isLoopback() bool {
	return i.Name == "lo" || slices.ContainsFunc(i.Addresses, netip.Addr.IsLoopback)
}

// isDevice is includesAny for devices of UCX: an interface, or an RDMA device with its port, such as mlx5_0:1. Patterns may match any.
func isDevice(list []string, pod Network) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		entry = strings.TrimSpace(entry)
		device, _, _ := strings.Cut(entry, ":")
		return entry == "all" || strings.ContainsAny(entry, "^*[") || pod.has(entry) || slices.Contains(pod.Devices, device)
	})
}

// hasPrefix is includesAny for NCCL's list: of beginnings of names, of whole names after "=", and of what is excluded after "^".
func hasPrefix(list []string, pod Network) bool {
	first, excludes := strings.CutPrefix(list[0], "^")
	first, exact := strings.CutPrefix(first, "=")
	list = slices.Concat([]string{first}, list[1:])
	return slices.ContainsFunc(pod.Interfaces, func(i Interface) bool {
		if excludes && i.isLoopback() {
			return false
		}
		named := slices.ContainsFunc(list, func(entry string) bool {
			entry, _, _ = strings.Cut(strings.TrimSpace(entry), ":")
			return i.Name == entry || !exact && entry != "" && strings.HasPrefix(i.Name, entry)
		})
		return named != excludes
	})
}
