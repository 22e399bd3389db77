package launcher

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agentapi"
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
			env, decided := bindEnv([]string{"HOME=" + test.home}, test.command, hostfile.Hosts{})
			if isUser := decided.Policy == agentapi.BindUser && decided.By != ""; isUser != test.kept {
				t.Errorf("decided: %+v", decided)
			}
			if kept := environ.Get(env, "PRTE_MCA_hwloc_default_binding_policy") == ""; kept != test.kept {
				t.Errorf("got %q", env)
			}
		})
	}
}

// TestBindEnv: ranks may be bound where each has a core of its own that its pod may own, and the user decides.
func TestBindEnv(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	if err := os.WriteFile(filepath.Join(folder, "mpirun"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	hosts := func(slots ...int32) hostfile.Hosts {
		h := hostfile.Hosts{SlotsOf: map[string]int32{}, Others: int32(len(slots))}
		for i, n := range slots {
			h.SlotsOf[string(rune('a'+i))] = n
		}
		return h
	}
	isHost := hosts(4)
	isHost.OwnSlots = 4
	const variable = "OMPI_MCA_hwloc_base_binding_policy"
	domains := "I_MPI_PIN_DOMAIN=[" + strings.Repeat("ffff,", 128) + "]"
	for name, test := range map[string]struct {
		cores string
		hosts hostfile.Hosts
		env   string
		prrte bool
		want  agentapi.Binding
	}{
		"a core for each slot":             {cores: "4", hosts: hosts(4, 4), want: agentapi.Binding{Policy: agentapi.BindCore}},
		"shared":                           {hosts: hosts(4, 4), want: agentapi.Binding{Policy: agentapi.BindShared}},
		"switched off":                     {cores: "0", hosts: hosts(4), want: agentapi.Binding{Policy: agentapi.BindShared}},
		"several cores for each slot":      {cores: "8", hosts: hosts(4, 4), want: agentapi.Binding{Policy: agentapi.BindSeveral}},
		"several cores for some":           {cores: "4", hosts: hosts(4, 2), want: agentapi.Binding{Policy: agentapi.BindSeveral}},
		"more slots than cores":            {cores: "2", hosts: hosts(2, 4), want: agentapi.Binding{Policy: agentapi.BindShared}},
		"a launcher with ranks":            {cores: "4", hosts: isHost, want: agentapi.Binding{Policy: agentapi.BindShared}},
		"no hosts":                         {cores: "4", hosts: hosts(), want: agentapi.Binding{Policy: agentapi.BindShared}},
		"the user is against":              {cores: "4", hosts: hosts(4), env: variable + "=none", want: agentapi.Binding{Policy: agentapi.BindUser, By: variable + "=none"}},
		"the user binds":                   {cores: "4", hosts: hosts(4), env: variable + "=numa", want: agentapi.Binding{Policy: agentapi.BindUser, By: variable + "=numa"}},
		"the user binds, in many words":    {cores: "4", hosts: hosts(4), env: domains, want: agentapi.Binding{Policy: agentapi.BindUser, By: domains[:agentapi.MaxBoundBy]}},
		"a PRRTE that decides by itself":   {cores: "4", hosts: hosts(4), prrte: true, want: agentapi.Binding{Policy: agentapi.BindVersion}},
		"a PRRTE that need not, for cores": {cores: "8", hosts: hosts(4), prrte: true, want: agentapi.Binding{Policy: agentapi.BindSeveral}},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(folder, "prterun")
			if err := os.RemoveAll(program); err != nil {
				t.Fatal(err)
			}
			if test.prrte {
				if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			env, got := bindEnv([]string{agentapi.EnvCores + "=" + test.cores, test.env}, []string{"mpirun", "train"}, test.hosts)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			bound := environ.Get(env, agentapi.EnvBind) != ""
			if bound != (got.Policy == agentapi.BindCore) {
				t.Errorf("%s is in %q", agentapi.EnvBind, env)
			}
			if value := environ.Get(env, variable); got.Policy != agentapi.BindUser && (value != "none") != bound {
				t.Errorf("%s is %q", variable, value)
			}
		})
	}
}
