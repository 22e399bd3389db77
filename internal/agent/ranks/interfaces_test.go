package ranks

import (
	"os"
	"path/filepath"
	"testing"
)

// TestInterfacesOfThisHost: the loopback interface exists everywhere, and one of a made-up name does not. Parameters of Open MPI may
// be set in the user's file.
func TestInterfacesOfThisHost(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".openmpi"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".openmpi/mca-params.conf"), []byte("btl_tcp_if_include = ib77\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		env  []string
		want bool
	}{
		"one that exists":               {[]string{"OMPI_COMM_WORLD_RANK=1", "OMPI_MCA_btl_tcp_if_include=lo"}, false},
		"one that does not":             {[]string{"OMPI_COMM_WORLD_RANK=1", "OMPI_MCA_btl_tcp_if_include=ib77"}, true},
		"a network that exists":         {[]string{"OMPI_COMM_WORLD_RANK=1", "OMPI_MCA_btl_tcp_if_include=127.0.0.0/8"}, false},
		"the user's parameters":         {[]string{"OMPI_COMM_WORLD_RANK=1", "HOME=" + home}, true},
		"the variable comes first":      {[]string{"OMPI_COMM_WORLD_RANK=1", "HOME=" + home, "OMPI_MCA_btl_tcp_if_include=lo"}, false},
		"parameters of another MPI":     {[]string{"PMI_RANK=1", "HOME=" + home}, false},
		"a variable of another library": {[]string{"PMI_RANK=1", "NCCL_SOCKET_IFNAME=ib77"}, true},
		"no setting":                    {[]string{"PMI_RANK=1"}, false},
	} {
		if found := withoutInterface(test.env); (found != nil) != test.want {
			t.Errorf("%s: got %+v", name, found)
		}
	}
}
