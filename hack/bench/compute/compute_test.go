package compute

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRead: each figure is found in what its program prints.
func TestRead(t *testing.T) {
	texts := map[string]string{
		"lammps":        "Loop time of 1.31822 on 2 procs for 3000 steps with 4000 atoms\n",
		"gromacs":       "               Core t (s)   Wall t (s)        (%)\n       Time:       11.180        5.590      200.0\n",
		"hpl":           "HPL_Tflops=0.0123\nHPL_time=0.433\n",
		"ptrans":        "PTRANS_GBs=1.2\nPTRANS_time=0.0123\n",
		"random-access": "MPIRandomAccess_time=1.25\n",
		"ping-pong":     "AvgPingPongLatency_usec=0.61\n",
		"ring":          "NaturallyOrderedRingLatency_usec=1.5\n",
	}
	want := map[string]float64{"lammps": 1.31822, "gromacs": 5.59, "hpl": 0.433, "ptrans": 0.0123, "random-access": 1.25, "ping-pong": 0.61, "ring": 1.5}
	for _, p := range groups[0].programs {
		for _, f := range p.figures {
			got, err := f.read("before\n" + texts[f.name] + "after\n")
			if err != nil || got != want[f.name] {
				t.Errorf("%s is %v, %v; want %v", f.name, got, err, want[f.name])
			}
			if _, err := f.read("nothing"); err == nil || !strings.Contains(err.Error(), f.name) {
				t.Errorf("%s in another text: %v", f.name, err)
			}
		}
	}
}

// TestInput: the input of HPC Challenge has the lines that are changed for the number of ranks.
func TestInput(t *testing.T) {
	text, err := os.ReadFile("../../../images/samples/hpccinf.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`(?m)^400 `, `(?m)^2            Ps`, `(?m)^2            Qs`} {
		if !regexp.MustCompile(line).Match(text) {
			t.Errorf("hpccinf.txt has no line like %s", line)
		}
	}
}

// TestBareOptions: where ranks share cores, they yield in all contestants.
func TestBareOptions(t *testing.T) {
	for who, want := range map[string]string{
		Bare:     "--oversubscribe --mca plm isolated",
		Unbound:  "--oversubscribe --mca plm isolated --bind-to none --mca mpi_yield_when_idle 1",
		Ours:     "",
		Spread:   "",
		Profiled: "", Requested: "", Unsampled: "",
	} {
		if got := strings.Join(bareOptions(who), " "); got != want {
			t.Errorf("%s: %q, want %q", who, got, want)
		}
	}
}

// TestScript: the script of a pod prints what its programs do, with the CPU time meanwhile, and that of a program that was ended.
func TestScript(t *testing.T) {
	tools := t.TempDir()
	for name, text := range map[string]string{
		"mpirun":  `while [ $1 != sh ]; do shift; done; OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0 exec "$@"`,
		"sleep":   "",
		"timeout": `shift; "$@" || exit 124`,
	} {
		if err := os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	g := group{ranks: 2, copies: 1, programs: []program{
		{command: "sed 's/^/it took /; s/x/'$OMPI_COMM_WORLD_RANK'/' <<-E\n\tx.5\n\tE", figures: []figure{{"first", "s", regexp.MustCompile(`it took (\S+)`)}}},
		{command: "false", figures: []figure{{"second", "s", regexp.MustCompile(`never`)}, {"third", "µs", regexp.MustCompile(`never`)}}},
	}}
	command := exec.CommandContext(t.Context(), "sh", "-ec", script(g, bareOptions(Bare)))
	command.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// The first process is no agent here, and not every cgroup of a machine counts.
	if looks := strings.Count(string(out), "use begin ") + strings.Count(string(out), "use end "); looks != 4 {
		t.Errorf("%d looks at the CPU time: %s", looks, out)
	}
	found, err := g.read([]string{string(out)})
	if err != nil {
		t.Fatal(err)
	}
	if _, known := found["third"]; known || found["first"].Value != 0.5 || found["second"].Value != longest.Seconds() || !found["second"].AtLeast {
		t.Errorf("%+v in %s", found, out)
	}
}

// TestReadUse: the CPU time of a container counts once, also if a launcher's runs ranks.
func TestReadUse(t *testing.T) {
	text := "use begin worker 1000000000 20000000\nuse begin launcher 500000000 1000000\nprogram\nuse end launcher 700000000 3000000\nuse end worker 9000000000 60000000\n" +
		"use begin gone 5 5\n"
	if got := readUse(text); got.total < 8.199 || got.total > 8.201 || got.agents < 0.0419 || got.agents > 0.0421 {
		t.Errorf("%+v", got)
	}
	bare := "use begin pod 1000000000 0\nuse begin pod 1000000000 0\nuse end pod 2000000000 0\nuse end pod 3000000000 0\n"
	if got := readUse(bare); got != (use{total: 2}) {
		t.Errorf("bare: %+v", got)
	}
}

// TestShareOfNothing: without a CPU time of the containers, the agents have no share of it.
func TestShareOfNothing(t *testing.T) {
	found, err := group{ranks: 2, copies: 1}.read([]string{"use begin worker 5 1000000\nuse end worker 5 2000000\n"})
	if _, known := found[agentShare]; err != nil || known {
		t.Errorf("%+v %v", found, err)
	}
}

// TestChosen: programs are run whose figures are asked for, and all of them for the CPU time.
func TestChosen(t *testing.T) {
	for names, want := range map[string][]string{
		"^lammps/2$":    {"/2: lammps"},
		"^hpl/|^ring/2": {"/2: hpl ring", "/4: hpl"},
		"^agent-cpu/2$": {"/2: lammps gromacs hpl ptrans random-access ping-pong ring"},
		"shared/":       {"shared//2: lammps"},
		"^nothing$":     nil,
	} {
		var got []string
		for _, g := range chosen(regexp.MustCompile(names)) {
			figures := g.figures()
			text := g.caseName("")
			for i, f := range figures[:len(figures)-2] {
				if i == 0 {
					text += ":"
				}
				text += " " + f.name
			}
			got = append(got, text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", names, got, want)
		}
	}
}

// TestWithoutCluster: each case that was asked for is skipped, with the reason.
func TestWithoutCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	results, err := Run(t.Context(), Settings{Root: t.TempDir(), Out: t.TempDir(), Names: regexp.MustCompile("^lammps/"), Runs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(results.Cases) != 0 || len(results.Skipped) != 2 || !strings.Contains(results.Skipped["lammps/2"], "make deploy") {
		t.Errorf("the results are %+v", results)
	}
}
