package mpiversion

import (
	"slices"
	"testing"
)

func TestVersionPrograms(t *testing.T) {
	for path, want := range map[string][]string{
		"/usr/bin/orterun":       {"/usr/bin/orterun"},
		"/usr/bin/mpiexec.hydra": {"/usr/bin/mpiexec.hydra"},
		"/opt/ompi/bin/prterun":  {"/opt/ompi/bin/mpirun.openmpi", "/opt/ompi/bin/mpirun"},
		"/opt/ompi/bin/prte":     {"/opt/ompi/bin/mpirun.openmpi", "/opt/ompi/bin/mpirun"},
	} {
		if got := versionPrograms(path); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

func TestVersionEnv(t *testing.T) {
	got := versionEnv([]string{"PATH=/usr/bin", "AWS_SECRET_ACCESS_KEY=x", "LD_PRELOAD=/x.so", "LD_LIBRARY_PATH=/opt/lib", "PMI_RANK=0", "OMPI_MCA_plm=x"})
	if want := []string{EnvQuery + "=1", "LC_ALL=C", "PATH=/usr/bin", "LD_LIBRARY_PATH=/opt/lib"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
