package mpirun

import (
	"net/netip"
	"strings"
	"testing"
)

func TestWithoutInterface(t *testing.T) {
	address := func(text string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(text)} }
	pod := Network{
		Interfaces: []Interface{{Name: "lo", Addresses: address("127.0.0.1")}, {Name: "eth0", Addresses: address("10.244.1.7")}},
		Devices:    []string{"mlx5_0"},
	}
	for env, want := range map[string]bool{
		"OMPI_MCA_btl_tcp_if_include=ib0":                           true,
		"OMPI_MCA_btl_tcp_if_include=ib0,eth0":                      false,
		"OMPI_MCA_btl_tcp_if_include=eth0":                          false,
		"OMPI_MCA_btl_tcp_if_include=eth":                           true,
		"OMPI_MCA_btl_tcp_if_include=10.244.0.0/16":                 false,
		"OMPI_MCA_btl_tcp_if_include=192.168.0.0/16":                true,
		"OMPI_MCA_btl_tcp_if_exclude=docker0,lo":                    false,
		"OMPI_MCA_btl_tcp_if_exclude=eth0,lo":                       true,
		"OMPI_MCA_btl_tcp_if_exclude=10.0.0.0/8":                    true,
		"OMPI_MCA_btl=ib0":                                          false,
		"MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE=ib0":                   true,
		"UCX_NET_DEVICES=mlx5_0:1":                                  false,
		"UCX_NET_DEVICES=mlx5_2:1":                                  true,
		"UCX_NET_DEVICES=ib0":                                       true,
		"UCX_NET_DEVICES=mlx5_2:1,eth0":                             false,
		"UCX_NET_DEVICES=all":                                       false,
		"UCX_NET_DEVICES=mlx5_[1-3]:1":                              false,
		"NCCL_SOCKET_IFNAME=eth":                                    false,
		"NCCL_SOCKET_IFNAME==eth":                                   true,
		"NCCL_SOCKET_IFNAME==eth0":                                  false,
		"NCCL_SOCKET_IFNAME=ib,bond":                                true,
		"NCCL_SOCKET_IFNAME=^docker,lo":                             false,
		"NCCL_SOCKET_IFNAME=^eth":                                   true,
		"GLOO_SOCKET_IFNAME=eth0,eth1":                              true,
		"GLOO_SOCKET_IFNAME=eth0":                                   false,
		"HOROVOD_GLOO_IFACE=ens5":                                   true,
		"FI_TCP_IFACE=ib0":                                          false,
		"GLOO_SOCKET_IFNAME=":                                       false,
		"OMPI_MCA_btl_tcp_if_include=eth0 HOROVOD_GLOO_IFACE=ens5":  true,
		"OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_btl_tcp_other=x": false,
	} {
		found := WithoutInterface(strings.Fields(env), nil, pod)
		if (found != nil) != want {
			t.Errorf("%s: got %+v", env, found)
		}
	}
	found := WithoutInterface([]string{"OMPI_MCA_btl_tcp_if_include=ib0"}, nil, pod)
	if found.Name != "btl_tcp_if_include" || found.Value != "ib0" || strings.Join(found.Has, " ") != "lo eth0" {
		t.Errorf("got %+v", found)
	}
}

// TestParametersOfOpenMPI: parameters in files count if the environment does not set them, and the first file counts.
func TestParametersOfOpenMPI(t *testing.T) {
	pod := Network{Interfaces: []Interface{{Name: "eth0"}}}
	parameters := map[string]string{}
	ParseParameters("# btl_tcp_if_include = eth9\nbtl_tcp_if_include = ib0\r\nbtl=tcp,self\nnonsense\n", parameters)
	ParseParameters("btl_tcp_if_include = eth0", parameters)
	if !NamesInterfaces(nil, parameters) || NamesInterfaces([]string{"HOME=/root"}, map[string]string{"btl": "tcp"}) {
		t.Error("settings are not recognized")
	}
	if found := WithoutInterface(nil, parameters, pod); found == nil || found.Value != "ib0" {
		t.Errorf("got %+v", found)
	}
	if found := WithoutInterface([]string{"OMPI_MCA_btl_tcp_if_include=eth0"}, parameters, pod); found != nil {
		t.Errorf("the environment does not take precedence: %+v", found)
	}
}
