package diagnose_test

import (
	"slices"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
)

// TestChainsOfExceptions: the last exception of a chain is the program's error, with the first one beside its place. If only the first one is
// of a known kind, the remedies are those for it.
func TestChainsOfExceptions(t *testing.T) {
	t.Parallel()
	traceback := func(file, line, exception string) string {
		return "Traceback (most recent call last):\n  File \"/app/" + file + "\", line " + line + ", in load\n    return json.load(open(path))\n" + exception
	}
	const direct = "\n\nThe above exception was the direct cause of the following exception:\n\n"
	const handling = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
	for name, test := range map[string]struct{ log, summary, remedy string }{
		"the last one is of no kind": {
			traceback("config.py", "4", "FileNotFoundError: [Errno 2] No such file or directory: '/data/config.json'") + direct + traceback("train.py", "9", "RuntimeError: cannot load the configuration"),
			": RuntimeError: cannot load the configuration (train.py, line 9; after FileNotFoundError: [Errno 2] No such file or directory: '/data/config.json').", "Check the path of /data/config.json.",
		},
		"both are of a kind": {
			traceback("config.py", "4", "KeyError: 'CONFIG_PATH'") + handling + traceback("config.py", "6", "FileNotFoundError: [Errno 2] No such file or directory: '/data/config.json'"),
			" (config.py, line 6; after KeyError: 'CONFIG_PATH').", "Check the path of /data/config.json.",
		},
		"the last one repeats the first": {
			traceback("get.py", "4", "ConnectionRefusedError: [Errno 111] Connection refused") + handling + traceback("get.py", "6", "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>"),
			": urllib.error.URLError: <urlopen error [Errno 111] Connection refused> (get.py, line 6).", "",
		},
		"none is of a kind": {
			traceback("a.py", "4", "ShardError: 7 is empty") + handling + traceback("a.py", "6", "ShardError: no other shard"),
			": ShardError: no other shard (a.py, line 6; after ShardError: 7 is empty).", "This is an error of the program itself",
		},
	} {
		found := failed(1, "step 1\n"+test.log+"\n--------------------------------------------------------------------------\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code.").findings()
		if len(found) == 0 || found[0].Code != codes.ApplicationFailed || !strings.Contains(found[0].Summary, test.summary) || !strings.Contains(found[0].Remedies[0].Text, test.remedy) {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// TestLastLines: of a program that ends with an error without a form that is known, the last lines are quoted: those of the rank that failed
// first, if lines have tags, and no lines of MPI's launcher or the agent.
func TestLastLines(t *testing.T) {
	t.Parallel()
	const ended = "--------------------------------------------------------------------------\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code. Per user-direction, the job has been aborted.\n--------------------------------------------------------------------------\nmpirun detected that one or more processes exited with non-zero status\nmpi-agent: Rank 1 (solver) ended first."
	rank1 := agentapi.Summary{
		Code: agentapi.RankFailed, ExitCode: new(int32(3)), HostsExpected: 4, HostsReached: 4, SlotsExpected: 8, SlotsFound: 8, RanksSeen: 8,
		Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 3, Program: "solver"}},
	}
	for name, test := range map[string]struct {
		log string
		// summary is a part of the summary, evidence are the quoted lines, in their order.
		summary  string
		evidence []string
	}{
		"of a rank": {
			"[1,1]<stdout>:loading shard 7\n[1,1]<stderr>:shard 7 is empty\n[1,0]<stderr>:Error: rank 1 does not answer\n" + ended,
			"exit code 3; its last line is: shard 7 is empty. MPI then",
			[]string{"Log of pi-launcher-0, rank 1: loading shard 7", "Log of pi-launcher-0, rank 1: shard 7 is empty"},
		},
		"of a rank with an error": {
			"[1,0]<stderr>:Error: rank 1 does not answer\n[1,1]<stderr>:Error: shard 7 is empty\n" + ended,
			"exit code 3: shard 7 is empty. MPI then",
			[]string{"Log of pi-launcher-0, rank 1: Error: shard 7 is empty"},
		},
		"of Hydra's ranks": {
			"[0] waiting\n[1] shard 7 is empty\n[0] waiting\n===================================================================================\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n",
			"exit code 3; its last line is: shard 7 is empty. MPI then",
			[]string{"Log of pi-launcher-0, rank 1: shard 7 is empty"},
		},
		"without tags, of a program with lines across the page": {
			"------------------------------------------------------------\nsolver 1.0\n------------------------------------------------------------\nloading shard 7\nshard 7 is empty\n" + ended,
			"exit code 3; the output ends with: shard 7 is empty. MPI then",
			[]string{"Log of pi-launcher-0: solver 1.0", "Log of pi-launcher-0: loading shard 7", "Log of pi-launcher-0: shard 7 is empty"},
		},
		"of a rank that lost its peers": {
			"[1,1]<stderr>:horovod.common.exceptions.HorovodInternalError: Horovod has been shut down.\n[1,0]<stderr>:ValueError: shard 7 is empty\n" + ended,
			"exit code 3: ValueError: shard 7 is empty (printed by rank 0, not by rank 1).",
			[]string{"Log of pi-launcher-0, rank 0: ValueError: shard 7 is empty"},
		},
		"of a rank that printed nothing": {
			"[1,0]<stderr>:ValueError: shard 7 is empty\n" + ended,
			"exit code 3: ValueError: shard 7 is empty (printed by rank 0, not by rank 1).",
			[]string{"Log of pi-launcher-0, rank 0: ValueError: shard 7 is empty"},
		},
	} {
		found := failed(3, test.log).with(launcherLeft(rank1, 3)).findings()
		if len(found) == 0 || found[0].Code != codes.ApplicationFailed || !strings.Contains(found[0].Summary, test.summary) {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		quoted := slices.DeleteFunc(slices.Clone(found[0].Evidence), func(line string) bool { return !strings.HasPrefix(line, "Log of ") })
		if !slices.Equal(quoted, test.evidence) {
			t.Errorf("%s: quoted %q, want %q", name, quoted, test.evidence)
		}
	}
	// Without an agent, and of a script.
	for name, log := range map[string]string{"a program": "step 1\n----------------------------------------\nstep 2\nno mesh\n" + ended, "a script": "+ prepare\nno mesh"} {
		found := failed(3, log).findings()
		if len(found) == 0 || !slices.Contains(found[0].Evidence, "Log of pi-launcher-0: no mesh") {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}
