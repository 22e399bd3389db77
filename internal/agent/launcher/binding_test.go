package launcher

import (
	"os"
	"path/filepath"
	"testing"

	"opendatahub.io/mpijob/internal/agent/environ"
)

// TestUnboundEnv: what asks for binding may be in a script, in the user's parameters, or in the command.
func TestUnboundEnv(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	binds, plain := write("binds.sh", "#!/bin/sh\nexec mpirun --map-by slot:PE=2 train\n"), write("plain.sh", "#!/bin/sh\nexec mpirun train\n")
	program := write("program", "\x7fELF\x00 --rankfile :PE= ")
	write("bin/in-path", "mpirun --cpu-set 0-3 train\n")
	write("bin/mpirun", "#!/bin/sh\n# reads I_MPI_PIN_DOMAIN\n")
	write("user/.openmpi/mca-params.conf", "hwloc_base_binding_policy = core\n")
	write("user5/.prte/mca-params.conf", "hwloc_default_binding_policy = core\n")
	t.Setenv("PATH", filepath.Join(folder, "bin")+":"+os.Getenv("PATH"))
	for name, test := range map[string]struct {
		command []string
		home    string
		kept    bool
	}{
		"mpirun":                      {command: []string{"mpirun", "-n", "2", "train"}},
		"cores":                       {command: []string{"mpirun", "-n", "2", "--map-by", "slot:PE=2", "train"}, kept: true},
		"cores in one word":           {command: []string{"sh", "-c", "mpirun -n 2 --map-by slot:PE=2 train"}, kept: true},
		"a script":                    {command: []string{plain}},
		"a script that assigns cores": {command: []string{binds}, kept: true},
		"a script of a shell":         {command: []string{"bash", "-e", binds}, kept: true},
		"a script in one word":        {command: []string{"bash", "-c", "exec '" + binds + "'"}, kept: true},
		"a script in PATH":            {command: []string{"in-path"}, kept: true},
		"a program":                   {command: []string{"mpirun", program}},
		"an MPI launcher by its path": {command: []string{filepath.Join(folder, "bin/mpirun"), "train"}},
		"a folder":                    {command: []string{"ls", folder}},
		"parameters of the user":      {command: []string{"mpirun", "train"}, home: filepath.Join(folder, "user"), kept: true},
		"parameters of Open MPI 5":    {command: []string{"mpirun", "train"}, home: filepath.Join(folder, "user5"), kept: true},
		"a user without parameters":   {command: []string{"mpirun", "train"}, home: folder},
	} {
		t.Run(name, func(t *testing.T) {
			env := unboundEnv([]string{"HOME=" + test.home}, test.command)
			if kept := environ.Get(env, "PRTE_MCA_hwloc_default_binding_policy") == ""; kept != test.kept {
				t.Errorf("got %q", env)
			}
		})
	}
}
