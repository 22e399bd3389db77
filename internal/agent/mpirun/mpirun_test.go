package mpirun

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestIsLauncher(t *testing.T) {
	for program, want := range map[string]bool{
		"mpirun": true, "/usr/bin/mpiexec": true, "mpiexec.hydra": true, "mpirun.openmpi": true, "orterun": true, "/opt/prterun": true,
		"sh": false, "horovodrun": false, "mpirunner": false, "hydra_pmi_proxy": false, "": false,
	} {
		if got := IsLauncher(program); got != want {
			t.Errorf("%q: %v, want %v", program, got, want)
		}
	}
}

func TestToleratesFailures(t *testing.T) {
	for name, test := range map[string]struct {
		command string
		env     []string
		want    bool
	}{
		"MPICH":                          {command: "-n 4 train --epochs 3"},
		"MPICH without clean-up":         {command: "-disable-auto-cleanup -n 4 train", want: true},
		"Open MPI 4":                     {command: "-np 4 --mca btl tcp,self train"},
		"Open MPI 4 with recovery":       {command: "--enable-recovery -np 4 train", want: true},
		"Open MPI 4 continuous":          {command: "-continuous -np 4 train", want: true},
		"Open MPI 4 ignores exit codes":  {command: "--mca orte_abort_on_non_zero_status 0 -np 4 train", want: true},
		"Open MPI 4 by its variable":     {command: "-np 4 train", env: []string{"OMPI_MCA_orte_enable_recovery=1"}, want: true},
		"Open MPI 5 fault tolerance":     {command: "--with-ft ulfm -np 4 train", want: true},
		"Open MPI 5 fault tolerance, =":  {command: "--with-ft=mpi -np 4 train", want: true},
		"Open MPI 5 runtime options":     {command: "--rtos recoverable -np 4 train", want: true},
		"Intel MPI continues":            {command: "-n 4 train", env: []string{"I_MPI_FAULT_CONTINUE=on"}, want: true},
		"a file named like an option":    {command: "-n 4 continuous"},
		"variables of the agent's shell": {command: "-n 4 train", env: []string{"OMPI_MCA_mpi_yield_when_idle=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ToleratesFailures(strings.Fields(test.command), test.env); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// TestRankOf: a process is a rank by the variables of its launcher. In mpirun, torchrun starts the processes of a rank.
func TestRankOf(t *testing.T) {
	for env, want := range map[string]struct {
		rank, size int32
		is         bool
	}{
		"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4": {3, 4, true},
		"PMIX_RANK=1":           {1, 0, true},
		"PMI_RANK=0 PMI_SIZE=2": {0, 2, true},
		"HOROVOD_RANK=1 HOROVOD_SIZE=2 HOROVOD_LOCAL_RANK=0": {1, 2, true},
		"HOROVOD_RANK=1":                   {0, 0, false},
		"RANK=5 LOCAL_RANK=1 WORLD_SIZE=8": {5, 8, true},
		"RANK=5 LOCAL_RANK=1":              {0, 0, false},
		"RANK=x WORLD_SIZE=8":              {0, 8, false},
		"LOCAL_RANK=1 WORLD_SIZE=8":        {0, 8, false},
		"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 RANK=5 WORLD_SIZE=8": {1, 2, true},
		"OMPI_COMM_WORLD_RANK=-1": {0, 0, false},
		"":                        {0, 0, false},
	} {
		rank, is := RankOf(strings.Fields(env), nil)
		if size := SizeOf(strings.Fields(env)); rank != want.rank || is != want.is || size != want.size {
			t.Errorf("%s: rank %d of %d, %t", env, rank, size, is)
		}
	}
	for env, want := range map[string]bool{
		"HOROVOD_RANK=1 HOROVOD_SIZE=2": false, "HOROVOD_RANK=1 HOROVOD_SIZE=2 HOROVOD_ELASTIC=1": true,
		"RANK=1 WORLD_SIZE=2 TORCHELASTIC_MAX_RESTARTS=0": false, "RANK=1 WORLD_SIZE=2 TORCHELASTIC_MAX_RESTARTS=3": true, "PMI_RANK=1": false,
	} {
		if got := IsRestarted(strings.Fields(env)); got != want {
			t.Errorf("%s: it is restarted: %t", env, got)
		}
	}
}

// TestRanksBelowOthers: a pod's own RANK makes no process a rank, and a rank of MPI is one although its parent has such a variable.
func TestRanksBelowOthers(t *testing.T) {
	const template, mpi = "RANK=0 WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 RANK=0 WORLD_SIZE=4"
	for name, test := range map[string]struct {
		env, parent, pod string
		is, same         bool
	}{
		"the pod's variables":               {template, template, template, false, false},
		"a rank of MPI in such a pod":       {mpi, template, template, true, false},
		"what it starts":                    {mpi, mpi, template, true, true},
		"a rank below such a launcher":      {mpi, template, "", true, false},
		"a process of torchrun":             {"RANK=0 WORLD_SIZE=2", "", "", true, false},
		"what that starts":                  {template, template, "", true, true},
		"another rank than the parent's":    {"PMI_RANK=1", "PMI_RANK=0", "", true, false},
		"a rank in a pod with MPI's own":    {"PMI_RANK=1", "", "PMI_RANK=1", true, false},
		"a process below a rank without it": {"", mpi, "", false, false},
	} {
		env, parent, pod := strings.Fields(test.env), strings.Fields(test.parent), strings.Fields(test.pod)
		if _, is := RankOf(env, pod); is != test.is {
			t.Errorf("%s: it is a rank: %t", name, is)
		}
		if same := HasRankOf(env, parent, pod); same != test.same {
			t.Errorf("%s: it has its parent's rank: %t", name, same)
		}
	}
}

// TestRankVariablesOfPython: the Python package knows a rank by the same variables, in the same order.
func TestRankVariablesOfPython(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "..", "..", "sdk", "python", "src", "openshift_ai_sdk", "training", "_report.py"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(source), "\nRANK_VARIABLES = (\n")
	list, _, ends := strings.Cut(list, "\n)\n")
	if !found || !ends {
		t.Fatal("_report.py has no RANK_VARIABLES")
	}
	var got [][2]string
	for _, names := range regexp.MustCompile(`\("(\w+)", "(\w*)"\)`).FindAllStringSubmatch(list, -1) {
		got = append(got, [2]string{names[1], names[2]})
	}
	if !slices.Equal(got, rankVariables) || len(got) != strings.Count(list, "(") {
		t.Errorf("Python has %v, the agent %v", got, rankVariables)
	}
}

// TestParseVersion: the outputs are those of the programs.
func TestParseVersion(t *testing.T) {
	for name, test := range map[string]struct{ output, want string }{
		"Open MPI 4": {
			"mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n", "Open MPI 4.1.4",
		},
		"Open MPI 4, as orterun":        {"orterun (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n", "Open MPI 4.1.4"},
		"Open MPI 4, as mpirun.openmpi": {"mpirun.openmpi (OpenRTE) 4.1.4\n", "Open MPI 4.1.4"},
		"Open MPI 5":                    {"mpirun (Open MPI) 5.0.7\n\nReport bugs to https://www.open-mpi.org/community/help/\n", "Open MPI 5.0.7"},
		"a release candidate":           {"mpirun (Open MPI) 5.0.8rc1\n", "Open MPI 5.0.8rc1"},
		"PRRTE":                         {"prterun (PRRTE) 3.0.9\n\nReport bugs to https://github.com/openpmix/prrte/\n", ""},
		"MPICH": {
			"HYDRA build details:\n    Version:                                 4.2.1\n    Release Date:                            Wed Apr 17 15:30:02 CDT 2024\n" +
				"    CC:                              gcc      \n    Configure options:                       '--disable-option-checking' '--prefix=/usr'\n", "MPICH 4.2.1",
		},
		"MPICH 4.0": {"HYDRA build details:\n    Version:                                 4.0.2\n    Release Date:                            Thu Apr  7 12:34:45 CDT 2022\n", "MPICH 4.0.2"},
		"Intel MPI": {
			"Intel(R) MPI Library for Linux* OS, Version 2021.19.0 Build 20260929 (id: 1821d9b)\nCopyright 2003-2026, Intel Corporation.\n", "Intel MPI 2021.19.0",
		},
		"Intel MPI 2019": {
			"Intel(R) MPI Library for Linux* OS, Version 2019 Update 9 Build 20200923 (id: abd58e492)\nCopyright 2003-2020, Intel Corporation.\n", "Intel MPI 2019.9",
		},
		"a message before it":       {"warning: no locale\nmpirun (Open MPI) 5.0.7\n", "Open MPI 5.0.7"},
		"nothing":                   {"", ""},
		"another program":           {"train 1.0\n", ""},
		"no version":                {"mpirun (Open MPI) \n", ""},
		"control characters":        {"mpirun (Open MPI) 5.0\x1b[2J\n", ""},
		"markup":                    {"mpirun (Open MPI) 5.0<script>\n", ""},
		"more words":                {"mpirun (Open MPI) 5.0 is broken, call 555-1234\n", ""},
		"a long version":            {"mpirun (Open MPI) 5." + strings.Repeat("0", 100) + "\n", ""},
		"a version without Hydra":   {"Version: 4.2.1\n", ""},
		"only the version's prefix": {"Intel(R) MPI Library for Linux* OS\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ParseVersion(test.output); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
