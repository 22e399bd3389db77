package compute

import (
	"os"
	"regexp"
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
	for _, p := range all {
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
		Profiled: "",
	} {
		if got := strings.Join(bareOptions(who), " "); got != want {
			t.Errorf("%s: %q, want %q", who, got, want)
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
