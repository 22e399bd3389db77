package mpirun

import (
	"slices"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/agent/environ"
)

// TestWithoutBinding: ranks are not bound by default, and whatever names a policy or assigns cores is left to MPI.
func TestWithoutBinding(t *testing.T) {
	t.Parallel()
	const ompi, prte, intel = "OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy", "I_MPI_PIN"
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
			got := WithoutBinding(slices.Clone(env), test.files, strings.Join(test.texts, " "))
			if test.kept {
				if !slices.Equal(got, env) {
					t.Errorf("got %q, want %q", got, env)
				}
				return
			}
			for _, variable := range []string{ompi, prte, intel} {
				if value := environ.Get(got, variable); !slices.Contains([]string{"none", "0", "off"}, value) {
					t.Errorf("%s is %q", variable, value)
				}
			}
		})
	}
}
