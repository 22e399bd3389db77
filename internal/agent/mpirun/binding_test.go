package mpirun

import (
	"slices"
	"strings"
	"testing"
)

// TestAsksForBinding: whatever names a policy or assigns cores is left to MPI.
func TestAsksForBinding(t *testing.T) {
	t.Parallel()
	const ompi, prte = openMPI4, openMPI5
	for name, test := range map[string]struct {
		env   string
		files map[string]string
		texts []string
		kept  bool
	}{
		"by default":                        {texts: []string{"mpirun", "-n", "4", "train"}},
		"a flag, which has precedence":      {texts: []string{"mpirun", "--bind-to", "core", "train"}},
		"another parameter":                 {env: "OMPI_MCA_btl=tcp", files: map[string]string{"btl": "tcp"}},
		"none":                              {env: ompi + "=none"},
		"none in a file":                    {files: map[string]string{"hwloc_base_binding_policy": "none"}},
		"pinning is off":                    {env: "I_MPI_PIN=off"},
		"an empty variable":                 {env: "I_MPI_PIN_DOMAIN="},
		"a mapping without cores":           {env: "OMPI_MCA_rmaps_base_mapping_policy=node:OVERSUBSCRIBE"},
		"a mapping flag without cores":      {texts: []string{"mpirun", "--map-by", "ppr:2:node", "train"}},
		"a script that removes a folder":    {texts: []string{"rm -rf /tmp/x\nmpirun train"}},
		"a script that copies folders":      {texts: []string{"cp -rf /data /tmp/x; chmod -Rf u+w /tmp/x\nmpirun train\nrm -v -rf /tmp/x"}},
		"taskset":                           {texts: []string{"taskset --cpu-list 0-3 prepare\nmpirun train | tee -a log; gzip -rf log"}},
		"a comment":                         {texts: []string{"# unset I_MPI_PIN, and no --map-by slot:PE=2\nmpirun train # --rankfile x"}},
		"a rankfile on the next line":       {texts: []string{"mpirun -np 2 \\\n  -rf ranks train"}, kept: true},
		"another word with =":               {texts: []string{"train", "--type=2", "TYPE=2", "recipe=a"}},
		"one core":                          {texts: []string{"mpirun", "--map-by", "slot:PE=1", "train"}},
		"one core by the mapping":           {env: "OMPI_MCA_rmaps_base_mapping_policy=slot:PE=1"},
		"sixteen cores":                     {texts: []string{"mpirun", "--map-by", "slot:PE=16", "train"}, kept: true},
		"a policy of Open MPI 4":            {env: ompi + "=core", kept: true},
		"a policy of Open MPI 5":            {env: prte + "=core:if-supported", kept: true},
		"pinning":                           {env: "I_MPI_PIN=1", kept: true},
		"a domain":                          {env: "I_MPI_PIN_DOMAIN=omp", kept: true},
		"a list of processors":              {env: "I_MPI_PIN_PROCESSOR_LIST=0-3", kept: true},
		"cells":                             {env: "I_MPI_PIN_CELL=core", kept: true},
		"cores by the mapping":              {env: "OMPI_MCA_rmaps_base_mapping_policy=slot:PE=2", kept: true},
		"cores by the mapping of version 5": {env: "PRTE_MCA_rmaps_default_mapping_policy=pe-list=0,1", kept: true},
		"a file of Open MPI 4":              {files: map[string]string{"hwloc_base_binding_policy": "socket"}, kept: true},
		"a file of Open MPI 5":              {files: map[string]string{"hwloc_default_binding_policy": "numa"}, kept: true},
		"cores by a file":                   {files: map[string]string{"rmaps_base_mapping_policy": "slot:pe=2"}, kept: true},
		"a rankfile in a file":              {files: map[string]string{"rmaps_rank_file_path": "/etc/ranks"}, kept: true},
		"PE":                                {texts: []string{"mpirun", "--map-by", "slot:PE=2", "train"}, kept: true},
		"PE for each socket":                {texts: []string{"mpirun", "-map-by", "ppr:2:socket:pe=4", "train"}, kept: true},
		"PE alone":                          {texts: []string{"mpirun", "--map-by", ":PE=2", "train"}, kept: true},
		"a list of cores":                   {texts: []string{"mpirun", "--map-by", "pe-list=0,1:ordered", "train"}, kept: true},
		"a set of CPUs":                     {texts: []string{"mpirun", "--cpu-set", "0-3", "train"}, kept: true},
		"CPUs per rank":                     {texts: []string{"mpirun", "-cpus-per-proc", "2", "train"}, kept: true},
		"a rankfile":                        {texts: []string{"mpirun", "--rankfile", "ranks", "train"}, kept: true},
		"a rankfile of version 5":           {texts: []string{"mpirun --map-by rankfile:file=ranks train"}, kept: true},
		"a rankfile by its short flag":      {texts: []string{"mpirun -np 2 -rf ranks train"}, kept: true},
		"PE in a script":                    {texts: []string{"#!/bin/sh\nexport OMP_NUM_THREADS=4\nmpirun \\\n  --map-by slot:PE=$OMP_NUM_THREADS train\n"}, kept: true},
		"PE in a program in Python":         {texts: []string{"subprocess.run(['mpirun', '--map-by', f'slot:PE={threads}', 'train'])"}, kept: true},
		"a parameter of the command":        {texts: []string{"mpirun", "--mca", "hwloc_base_binding_policy", "core", "train"}, kept: true},
		"a domain of the command":           {texts: []string{"mpirun", "-genv", "I_MPI_PIN_DOMAIN=omp", "train"}, kept: true},
		"a domain in a script":              {texts: []string{"export I_MPI_PIN_DOMAIN=omp\nmpirun train\n"}, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := strings.Fields("PATH=/bin " + test.env)
			by, asks := UserBinding(env, test.files, strings.Join(test.texts, " "))
			if asks != test.kept || asks && by == "" {
				t.Errorf("asks: %t by %q, want %t", asks, by, test.kept)
			}
		})
	}
}

// TestUserBinding: what the user decided is named, also where it is against binding.
func TestUserBinding(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env   []string
		files map[string]string
		text  string
		want  string
	}{
		"nothing":             {env: []string{"I_MPI_PIN=", "PATH=/bin"}, text: "mpirun --bind-to core train"},
		"against binding":     {env: []string{"I_MPI_PIN=0"}, want: "I_MPI_PIN=0"},
		"against, in a file":  {files: map[string]string{"hwloc_base_binding_policy": "none", "btl": "tcp"}, want: "hwloc_base_binding_policy=none"},
		"a variable":          {env: []string{"OMPI_MCA_hwloc_base_binding_policy=numa"}, want: "OMPI_MCA_hwloc_base_binding_policy=numa"},
		"for, before against": {env: []string{"I_MPI_PIN=0", "PRTE_MCA_hwloc_default_binding_policy=core"}, want: "PRTE_MCA_hwloc_default_binding_policy=core"},
		"cores for each rank": {text: "mpirun -n 4 --map-by slot:PE=2 train", want: "slot:PE=2"},
		"a flag":              {text: "exec mpirun -n 4 \\\n --cpu-set 0-3 train", want: "--cpu-set"},
		"a name":              {text: "export I_MPI_PIN_DOMAIN=omp\nmpirun train", want: "I_MPI_PIN_DOMAIN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if by, _ := UserBinding(test.env, test.files, test.text); by != test.want {
				t.Errorf("got %q, want %q", by, test.want)
			}
		})
	}
}

// TestBindingDefaults: variables of the user stay, and those of the default are the ones that each MPI reads.
func TestBindingDefaults(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set       func(env []string) []string
		env, want []string
	}{
		"unbound":          {WithoutBinding, nil, []string{openMPI4 + "=none", openMPI5 + "=none", intelMPI + "=0"}},
		"unbound, in part": {WithoutBinding, []string{intelMPI + "=off", openMPI5 + "="}, []string{intelMPI + "=off", openMPI4 + "=none", openMPI5 + "=none"}},
		"bound": {
			func(env []string) []string { return WithBinding(env, true) },
			nil,
			[]string{openMPI4 + "=core:overload-allowed,if-supported", openMPI5 + "=core:overload-allowed:if-supported"},
		},
		"bound without Open MPI 5": {func(env []string) []string { return WithBinding(env, false) }, nil, []string{openMPI4 + "=core:overload-allowed,if-supported", openMPI5 + "=none"}},
		"unbound on a worker":      {UnboundHere, nil, []string{"OMPI_MCA_rtc=^hwloc", "PRTE_MCA_rtc=^hwloc", intelMPI + "=0"}},
		"bound on a worker":        {BoundHere, nil, []string{"HYDRA_BINDING=core"}},
		"of the user":              {BoundHere, []string{"HYDRA_BINDING=numa"}, []string{"HYDRA_BINDING=numa"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.set(slices.Clone(test.env)); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// isProgram reports whether a word is a program in these tests.
func isProgram(name string) bool {
	return slices.Contains([]string{"train", "sh", "grep", "a", "b", "x", "python", "node", "ssh", "/usr/bin/ssh", "orted"}, name)
}

func TestBindingFlag(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-n 4 train":                "",
		"--bind-to core -n 4 train": "--bind-to core",
		"-bind-to none -map-by slot -np 2 python train": "-bind-to none",
		"--bind-to=numa train":                          "--bind-to numa",
		"-bind-to-core train":                           "-bind-to-core",
		"--map-by slot:PE=2 train":                      "--map-by slot:PE=2",
		"--map-by ppr:2:node train":                     "",
		"--map-by slot:PE=1 train":                      "",
		"--mca hwloc_base_binding_policy socket train":  "hwloc_base_binding_policy=socket",
		"--prtemca hwloc_default_binding_policy none x": "hwloc_default_binding_policy=none",
		"-genv I_MPI_PIN_DOMAIN omp train":              "I_MPI_PIN_DOMAIN=omp",
		"-genv I_MPI_PIN=1 train":                       "I_MPI_PIN=1",
		"--mca btl tcp,self train":                      "",
		"-rf ranks train":                               "-rf ranks",
		"--bind-to":                                     "--bind-to ",
		"--report-bindings train":                       "",
		"-n 2 train -rf x --bind-to core":               "",
		"-n 2 a : -n 2 --bind-to core b":                "--bind-to core",
		"--map-by node --bind-to core x":                "--bind-to core",
		"-n 2 train --bind":                             "",
		"-launcher ssh --bind-to core train":            "--bind-to core",
		"-bootstrap ssh --bind-to core train":           "--bind-to core",
		"-launcher-exec /usr/bin/ssh --bind-to core x":  "--bind-to core",
		"--launch-agent orted --bind-to core x":         "--bind-to core",
		"--launch-agent node --bind-to core x":          "--bind-to core",
		"--mca plm_rsh_agent ssh --bind-to core x":      "--bind-to core",
		"--mca plm_rsh_agent node --bind-to core x":     "--bind-to core",
		"--prtemca a b --bind-to core x":                "--bind-to core",
		"-genv a b --bind-to core x":                    "--bind-to core",
		"-genv a=1 train --bind-to core":                "",
		"-e ssh --bind-to core x":                       "--bind-to core",
		"-x I_MPI_PIN -np 8 train":                      "I_MPI_PIN",
		"-x I_MPI_PIN=0 -np 8 train":                    "I_MPI_PIN=0",
		"-x PATH -np 8 train":                           "",
	} {
		if got := BindingFlag(slices.Concat(OptionsOf(strings.Fields(args), isProgram)...)); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

// TestFillsCores: ranks get a core each only if there is one for each, and none needs more.
func TestFillsCores(t *testing.T) {
	t.Parallel()
	const slots = 8
	for name, test := range map[string]struct {
		args, env string
		want      bool
	}{
		"all slots":                    {args: "-np 8 train", want: true},
		"all slots by default":         {args: "train", want: true},
		"all, mapped":                  {args: "-np 8 --map-by node train", want: true},
		"some":                         {args: "-np 4 train"},
		"more":                         {args: "--oversubscribe -np 16 train"},
		"one for each node":            {args: "--map-by ppr:1:node train"},
		"one for each node, by number": {args: "-n 2 --map-by ppr:1:node train"},
		"of Intel MPI":                 {args: "-n 8 -ppn 4 train", want: true},
		"some of Intel MPI":            {args: "-ppn 2 train"},
		"on other hosts":               {args: "-host w0 train"},
		"several programs":             {args: "-n 2 a : -n 6 b", want: true},
		"several programs, some slots": {args: "-n 2 a : -n 2 b"},
		"no number":                    {args: "-n x train"},
		"threads":                      {args: "-np 8 train", env: "OMP_NUM_THREADS=4"},
		"one thread":                   {args: "-np 8 -x OMP_NUM_THREADS=1 train", env: "OMP_NUM_THREADS=1", want: true},
		"threads of the flag":          {args: "-np 8 -x OMP_NUM_THREADS=4 train"},
		"threads of Hydra's flag":      {args: "-n 8 -genv OMP_NUM_THREADS 4 train"},
		"the variable, by its name":    {args: "-np 8 -x OMP_NUM_THREADS train", want: true},
		"arguments of the program":     {args: "-np 8 train -n 100 -c x --map-by node", want: true},
		"a shell":                      {args: "-n 8 sh -c grep", want: true},
		"by =":                         {args: "--np=8 train", want: true},
		"some, by ssh":                 {args: "-launcher ssh -n 4 train"},
		"some, by an agent":            {args: "--mca plm_rsh_agent ssh -np 4 train"},
		"all, by ssh":                  {args: "-bootstrap ssh -n 8 train", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			programs := OptionsOf(strings.Fields(test.args), isProgram)
			if got := FillsCores(programs, strings.Fields(test.env), slots); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
