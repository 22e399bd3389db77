package mpi_test

import (
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestWarnLauncher(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(3)
	shell := func(script string) []string { return []string{"/bin/bash", "-c", script} }
	for name, test := range map[string]struct {
		command []string
		want    string
	}{
		"plain":                                      {[]string{"mpirun", "-np", "4", "train"}, ""},
		"nothing":                                    {nil, ""},
		"a variable without a shell":                 {[]string{"mpirun", "-np", "$RANKS", "train"}, `spec.command: "$RANKS" is not expanded, because no shell runs this command: write $(RANKS)`},
		"a variable in braces":                       {[]string{"/usr/bin/mpiexec", "python", "${SCRIPT}"}, "write $(SCRIPT)"},
		"a variable of Kubernetes":                   {[]string{"mpirun", "train", "$(SCRIPT)", "$$HOME"}, ""},
		"a variable for a shell of each rank":        {[]string{"mpirun", "sh", "-c", "echo $OMPI_COMM_WORLD_RANK"}, ""},
		"a variable in a shell":                      {shell("mpirun -np $RANKS train"), ""},
		"another program":                            {[]string{"awk", "{print $NF}"}, ""},
		"a script in many words":                     {[]string{"bash", "-c", "mpirun", "-np", "2", "train"}, `spec.command: the shell runs only "mpirun", because a script is one word after -c: write "mpirun -np 2 train" as one word`},
		"a script with arguments":                    {[]string{"bash", "-c", "mpirun -np $1 train", "run", "2"}, ""},
		"Python without MPI":                         {[]string{"/usr/bin/python3.11", "train.py"}, "spec.command: python3.11 runs once, in the launcher"},
		"torchrun":                                   {[]string{"torchrun", "--nproc-per-node", "2", "train.py"}, "torchrun runs once"},
		"in the background":                          {shell("mpirun train &\n"), "spec.command: the last command of the script runs in the background"},
		"in the background, and waited for":          {shell("mpirun train &\nwait"), ""},
		"in the background, awaited after a comment": {shell("mpirun -n 2 train &\n# don't stop\nwait\necho 'done'\n"), ""},
		"in the background, and then a text":         {shell("set -e\nmpirun -n 2 train > log 2>&1 &\necho started\n"), "spec.command: MPI runs in the background, and nothing in the script waits for it"},
		"in the background, in a line":               {shell("mpirun train & echo started"), "MPI runs in the background"},
		"a pipe in the background":                   {shell("set -o pipefail; mpirun train | tee log & date"), "MPI runs in the background"},
		"in the background, with a comment":          {shell("mpirun train &\n# wait\necho started"), "MPI runs in the background"},
		"in the background, and awaited later":       {shell("mpirun train &\npid=1\necho started\nwait"), ""},
		"in the background, and awaited by PID":      {shell("mpirun train &\ntail --pid=$! -f log"), ""},
		"in the background, and watched":             {shell("mpirun train &\nwhile kill -0 $!; do nvidia-smi; done"), ""},
		"a server beside it":                         {shell("mpirun server & mpirun client"), ""},
		"both outputs in a file":                     {shell("mpirun train &> log\necho done"), ""},
		"an error output in a file":                  {shell("mpirun train 2>&1\necho done >& log"), ""},
		"another command in the background":          {shell("monitor &\nmpirun train\necho done"), ""},
		"a variable under time":                      {[]string{"/usr/bin/time", "-v", "mpirun", "-np", "$RANKS", "train"}, `spec.command: "$RANKS" is not expanded`},
		"a variable under env":                       {[]string{"env", "OMP_NUM_THREADS=1", "mpirun", "train", "$DATA"}, "write $(DATA)"},
		"a variable under stdbuf":                    {[]string{"stdbuf", "-oL", "mpirun", "train", "${DATA}"}, "write $(DATA)"},
		"a variable under nice":                      {[]string{"nice", "mpiexec", "train", "$DATA"}, "write $(DATA)"},
		"a variable under time and a shell":          {[]string{"time", "bash", "-c", "mpirun train $DATA"}, ""},
		"a variable under another program":           {[]string{"env", "awk", "{print $NF}"}, ""},
		"two commands":                               {shell("mpirun train && mpirun evaluate"), ""},
		"a pipe":                                     {shell("mpirun train 2>&1 | tee /results/log"), "spec.command: the exit code of MPI is lost in the pipe"},
		"a pipe over two lines":                      {shell("mpirun -np 4 \\\n  train | tee log"), "the exit code of MPI is lost"},
		"a pipe with pipefail":                       {shell("set -euo pipefail\nmpirun train | tee log"), ""},
		"a pipe that head closes":                    {shell("mpirun -n 2 python3 /app/train.py | head -5"), "spec.command: head closes the pipe when it has read enough"},
		"a pipe that head closes, with pipefail":     {shell("set -o pipefail\nmpirun train 2>&1 | head -n 20"), "remove head"},
		"a pipe that grep closes":                    {shell("mpirun train | grep -m1 loss"), "grep -m closes the pipe"},
		"a pipe into grep":                           {shell("set -o pipefail; mpirun train | grep loss"), ""},
		"head before MPI":                            {shell("head -1 /data/x; ls | head -2; mpirun train"), ""},
		"folded by YAML":                             {shell("set -e export INTERVALS=100000000 mpirun pi echo finished\n"), "spec.command: MPI is never started, because its launcher is an argument of set"},
		"folded after export":                        {shell("export A=b mpirun -n 2 train"), "argument of export"},
		"folded after cd":                            {shell("cd /work /opt/mpi/bin/mpirun -n 2 train\n"), "argument of cd"},
		"two commands in a line":                     {shell("set -e; export A=b && mpirun train"), ""},
		"arguments that are set":                     {shell("set -- mpirun -n 2 train; exec \"$@\""), ""},
		"a variable with the launcher":               {shell("export MPI=/usr/bin/mpirun RUN='mpirun -n 2 '\n$MPI train"), ""},
		"a version in a variable":                    {shell("export V=$( mpirun --version )\nmpirun train"), ""},
		"a dash of a document":                       {[]string{"mpirun", "\u2013np", "2", "pi"}, "spec.command: \"\u2013np\" begins with a typographic character"},
		"dashes of a document in a script":           {shell("mpirun -n 2 train \u2014\u2014epochs 3"), "\"\u2014\u2014epochs\" begins"},
		"quotation marks of a document":              {shell("mpirun -n 2 train --name \u201crun\u201d"), "\"\u201crun\u201d\" begins"},
		"a minus sign before a number":               {[]string{"mpirun", "train", "\u22125", "a \u2013 b", "\u201ca b\u201d"}, ""},
		"a text that another command prints":         {shell("echo \u201cstart\u201d; mpirun train"), ""},
		"a pipe in another command":                  {shell("cat hosts | wc -l\nmpirun train"), ""},
		"a pipe within a rank":                       {shell(`mpirun sh -c 'train | grep loss'`), ""},
		"an alternative":                             {shell("mpirun train || exit 3"), ""},
		"a script in flags, in the background":       {[]string{"bash", "-euo", "pipefail", "-c", "mpirun train &"}, "runs in the background"},
		"a script in flags, with a pipe":             {[]string{"bash", "-eu", "-c", "mpirun train | tee log"}, "the exit code of MPI is lost in the pipe"},
		"a script in flags":                          {[]string{"bash", "-euxo", "pipefail", "-c", "mpirun train | tee log"}, ""},
		"flags in one word":                          {[]string{"sh", "-ec", "mpirun train &"}, "in the background"},
		"a file":                                     {[]string{"sh", "run.sh", "&"}, ""},
		"hosts of the job":                           {[]string{"mpirun", "--host", "pi-worker-0:2,pi-worker-1.pi,pi-worker-2.pi.ns.svc", "train"}, ""},
		"another host":                               {[]string{"mpirun", "--host", "worker-0,worker-1", "train"}, `spec.command: host "worker-0" is none of this job, whose hosts are pi-worker-0.pi.ns.svc to pi-worker-2.pi.ns.svc`},
		"another host in a script":                   {shell("cd /work; mpirun -H node1:4 train"), `host "node1" is none`},
		"Hydra's hosts":                              {[]string{"mpiexec", "-hosts", "worker-0", "train"}, `host "worker-0" is none`},
		"hosts of a shell":                           {shell("mpirun -H $(hostname):4 train"), ""},
		"a batch system":                             {[]string{"mpirun", "-bootstrap", "slurm", "-n", "2", "pi"}, `spec.command: "-bootstrap slurm" starts MPI's processes by slurm`},
		"a batch system of Open MPI":                 {shell("mpirun --mca plm slurm pi"), `"--mca plm slurm" starts`},
		"a batch system after a variable":            {shell("cd /work; OMP_NUM_THREADS=2 /opt/mpi/bin/mpirun \\\n  --allow-run-as-root -mca btl self,tcp --mca plm slurm pi"), `"--mca plm slurm" starts`},
		"DeepSpeed's own pdsh":                       {[]string{"deepspeed", "--hostfile", "/etc/mpi/hostfile", "--launcher", "pdsh", "train.py"}, ""},
		"DeepSpeed's own slurm":                      {shell("deepspeed --hostfile /etc/mpi/hostfile --launcher slurm train.py"), ""},
		"a batch system of the program":              {[]string{"mpirun", "--allow-run-as-root", "-n", "4", "python", "train.py", "--launcher", "slurm"}, ""},
		"a batch system of the next program":         {shell("mpirun -n 4 prepare; train --launcher slurm"), ""},
		"Hydra's pdsh":                               {[]string{"mpiexec", "-launcher", "pdsh", "-n", "2", "pi"}, ""},
		"Hydra's ssh":                                {[]string{"mpiexec", "-launcher", "ssh", "pi"}, ""},
		"a file of hosts":                            {[]string{"mpirun", "--hostfile", "/etc/mpi/hostfile", "train"}, ""},
		"a host of a program that is not of MPI":     {[]string{"psql", "--host", "db", "-c", "x"}, ""},
		"options in one word":                        {[]string{"mpirun", "-n 4 train"}, `spec.command: "-n 4 train" is one word, which MPI takes as one option: write each option, value and program as a word of its own, as in ["mpirun" "-n" "4" "train"]`},
		"an option with its value":                   {[]string{"mpirun", "-n", "4", "--map-by node", "train", "--lr 1"}, `"--map-by node" is one word`},
		"an option of the program":                   {[]string{"mpirun", "-n", "4", "train", "--name a b"}, ""},
		"an option of the program alone":             {[]string{"mpirun", "train", "-x y"}, ""},
		"a value without the sign":                   {[]string{"mpirun", "-n", "2", "-x", "LEARNING_RATE", "0.1", "train.py"}, `spec.command: MPI takes "0.1" as the program, because "-x LEARNING_RATE" ends before it: write "-x LEARNING_RATE=0.1"`},
		"a value without the sign, in a script":      {shell("cd /work\nmpirun -x SEED 42 python train.py"), `write "-x SEED=42"`},
		"a value of an option with two":              {[]string{"mpirun", "--mca", "btl_tcp_links", "2", "4", "train"}, `MPI takes "4" as the program, because "--mca btl_tcp_links 2" ends before it: check the values`},
		"two numbers of ranks":                       {[]string{"mpirun", "-np", "2", "1", "train"}, `MPI takes "1" as the program, because "-np 2" ends before it`},
		"a number of an unknown option":              {[]string{"mpirun", "--new-flag", "train", "5"}, ""},
		"a number of the program":                    {[]string{"mpirun", "-x", "SEED", "train", "5"}, ""},
		"a number of a value with a sign":            {[]string{"mpirun", "-x", "SEED=1", "train", "5"}, ""},
		"a host of the program":                      {[]string{"mpirun", "-n", "4", "python", "serve.py", "--host", "0.0.0.0"}, ""},
		"a host of a command before":                 {shell("psql --host db -c x && mpirun train"), ""},
		"a host of a command after":                  {shell("mpirun train; psql --host db"), ""},
		"a host of a command in a comment":           {shell("# mpirun --host node1 train\nmpirun train"), ""},
		"another host of the second program":         {[]string{"mpiexec", "-n", "1", "lead", ":", "-n", "2", "-host", "node7", "train"}, `host "node7" is none`},
		"another host, joined":                       {[]string{"mpirun", "--host=node7", "train"}, `host "node7" is none`},
		"another host in quotes":                     {shell(`mpirun -x "A=b c" --host "node7,node8" train`), `host "node7" is none`},
		"another host of an entrypoint":              {[]string{"/entrypoint.sh", "mpirun", "--host", "node7", "train"}, `host "node7" is none`},
		"a launcher that is a value":                 {[]string{"launch", "--mpi", "mpirun", "--host", "0.0.0.0"}, ""},
		"a pipe of a command after":                  {shell("mpirun train; sort log | head"), ""},
		"a pipe of a command after success":          {shell("mpirun train && cat out | sort"), ""},
		"a pipe of a command after failure":          {shell("mpirun train || cat log | tail"), ""},
		"a pipe beside the background":               {shell("mpirun train & tail -f log | grep loss; wait"), ""},
		"a pipe of a substitution":                   {shell("mpirun train --hosts $(cat hosts | wc -l)"), ""},
		"a pipe in quotes":                           {shell(`mpirun train --sep "|" --by 'a | b'`), ""},
		"a pipe within a substitution":               {shell("out=$(mpirun train | tail -1); echo $out"), "the exit code of MPI is lost"},
		"a pipe of a group":                          {shell("{ date; mpirun train; } 2>&1 | tee log"), "the exit code of MPI is lost"},
		"a pipe of a subshell":                       {shell("(cd /work && mpirun train) |& tee log"), "the exit code of MPI is lost"},
		"a pipe of a function":                       {shell("run() {\n  mpirun train\n}\nrun | tee log"), "the exit code of MPI is lost"},
		"a pipe of a loop":                           {shell("for n in 1 2; do mpirun -n $n train; done | tee log"), "the exit code of MPI is lost"},
		"a pipe after a line's end":                  {shell("mpirun train |\n  tee log"), "the exit code of MPI is lost"},
		"a pipe in a shell of its own":               {shell("time bash -c 'mpirun train | tee log'"), "the exit code of MPI is lost"},
		"a pipe in a shell with pipefail":            {shell("bash -o pipefail -c 'mpirun train | tee log'"), ""},
		"a pipe around a shell with pipefail":        {shell("bash -o pipefail -c 'mpirun train' | tee log"), "the exit code of MPI is lost"},
		"the word pipefail in a comment":             {shell("mpirun train | tee log # no pipefail"), "the exit code of MPI is lost"},
		"the word pipefail in a text":                {shell("echo set -o pipefail\nmpirun train | tee log"), "the exit code of MPI is lost"},
		"pipefail after it":                          {shell("mpirun train | tee log\nset -o pipefail"), "the exit code of MPI is lost"},
		"pipefail that is turned off":                {shell("set -eo pipefail; set +o pipefail; mpirun train | tee log"), "the exit code of MPI is lost"},
		"pipefail of a subshell":                     {shell("(set -o pipefail; date | cat); mpirun train | tee log"), "the exit code of MPI is lost"},
		"pipefail of shopt":                          {shell("shopt -so pipefail; mpirun train | tee log"), ""},
		"pipefail of zsh":                            {[]string{"zsh", "-c", "setopt PIPE_FAIL; mpirun train | tee log"}, ""},
		"pipefail where the shell has it":            {[]string{"sh", "-c", "(set -o pipefail) 2>/dev/null && set -o pipefail; mpirun train | tee log"}, ""},
		"exit codes of the programs in a pipe":       {shell("mpirun train | tee log; exit ${PIPESTATUS[0]}"), ""},
		"head after all has been read":               {shell("set -o pipefail; mpirun train | sort | head -3"), ""},
		"head after a copy":                          {shell("mpirun train | tee log | head -3"), "head closes the pipe"},
		"quiet grep":                                 {shell("mpirun train | grep --quiet done"), "grep --quiet closes the pipe"},
		"grep for a text with m":                     {shell("set -o pipefail; mpirun train | grep -emissing"), ""},
		"a version":                                  {shell("mpirun --version | head -1; which mpirun | head -1; mpirun train"), ""},
		"a script that no shell reads":               {shell("mpirun train | (tee log"), ""},
		"a pipe without a shell":                     {[]string{"mpirun", "train", "|", "tee", "log"}, ""},
		"another command in the background at last":  {shell("mpirun train\ncleanup &"), ""},
		"in the background of a subshell":            {shell("(mpirun train &)\n"), "MPI runs in the background"},
		"in the background by a function":            {shell("run() { mpirun train; }\nrun &\necho started"), "MPI runs in the background"},
		"the launcher itself":                        {[]string{"mpirun", "--host", "localhost", "train"}, ""},
	} {
		got := strings.Join(job.WarnLauncher(test.command, nil, nil, field.NewPath("spec")), "\n")
		if !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: warns %q, want %q", name, got, test.want)
		}
	}
	if got := strings.Join(job.WarnLauncher(nil, []string{"mpirun", "$X"}, nil, field.NewPath("spec")), ""); !strings.HasPrefix(got, "spec.args: ") {
		t.Errorf("for arguments it warns %q", got)
	}
}

func TestWarnDNS(t *testing.T) {
	t.Parallel()
	for policy, warns := range map[corev1.DNSPolicy]bool{"": false, corev1.DNSClusterFirst: false, corev1.DNSDefault: true, corev1.DNSNone: true} {
		job := mpitest.Job(2, func(j *mpi.Job) {
			j.Fields.LauncherTemplate, j.Fields.WorkerTemplate = field.NewPath("launcher"), field.NewPath("worker")
			j.Workers.Template.Spec.DNSPolicy = policy
		})
		if got := strings.Join(mpi.Warnings(job), "\n"); strings.Contains(got, "worker.spec.dnsPolicy") != warns {
			t.Errorf("%q: warns %q", policy, got)
		}
	}
	for servers, warns := range map[string]bool{"10.96.0.10": false, "fd00:10::a": false, "169.254.20.10": false, "100.64.0.10": false, "8.8.8.8": true, "8.8.8.8 172.30.0.10": false, "": true, "dns": true} {
		job := mpitest.Job(2, func(j *mpi.Job) {
			j.Fields.LauncherTemplate, j.Fields.WorkerTemplate = field.NewPath("launcher"), field.NewPath("worker")
			j.Workers.Template.Spec.DNSPolicy = corev1.DNSNone
			j.Workers.Template.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: strings.Fields(servers)}
		})
		if got := strings.Join(mpi.Warnings(job), "\n"); strings.Contains(got, "worker.spec.dnsPolicy") != warns {
			t.Errorf("name servers %q: warns %q", servers, got)
		}
	}
}

// TestLongScripts: what is nested deeply, or is long, is not read, and neither ends the process nor takes long.
func TestLongScripts(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"subshells":     strings.Repeat("(", 1<<20),
		"some brackets": strings.Repeat("( ", 3999) + "mpirun train | tee log" + strings.Repeat(" )", 3999),
		"substitutions": strings.Repeat("$(", 1<<19),
		"conditions":    strings.Repeat("if ", 64<<10/3),
		"pipes":         strings.Repeat("a|", 32<<10-20) + "mpirun train",
		"lists":         strings.Repeat("a&&", 64<<10/3-20) + "mpirun train",
		"long":          "mpirun train | tee log #" + strings.Repeat("x", 64<<10),
		"shells":        "mpirun a | bash -c \"bash -c 'bash -c \\\"bash -c mpirun\\\"'\"",
	} {
		words := []string{"bash", "-c", script}
		want := name == "some brackets" || name == "shells"
		if got := mpi.PipesRanks(words); got != want {
			t.Errorf("%s: the exit code is lost: %t", name, got)
		}
		if program := mpi.BreaksPipe(words); program != "" {
			t.Errorf("%s: %s closes the pipe", name, program)
		}
	}
}

// TestCostOfCommands: no command costs much memory to be read, however its script is nested.
func TestCostOfCommands(t *testing.T) {
	const most = 20 << 20
	pipes, functions := strings.Repeat("mpirun a|", 6400)+"cat", strings.Repeat("f(){ x;", 1990)+"mpirun a"+strings.Repeat(";}", 1990)
	substitutions := "mpirun a"
	for range 30 {
		substitutions = "bash -c $(" + substitutions + ")"
	}
	quoted := strings.Repeat("mpirun a|", 2000) + "cat"
	job := mpitest.Job(3)
	for name, script := range map[string]string{
		"pipes":                            pipes,
		"pipes in a shell":                 "bash -c '" + pipes + "'|cat",
		"pipes in two shells":              "bash -c \"bash -c '" + pipes + "'\"|cat",
		"pipes in two shells, before more": strings.Repeat("a|", 1000) + "bash -c \"bash -c '" + pipes + "'|" + strings.Repeat("a|", 1000) + "cat\"" + strings.Repeat("|a", 1000),
		"many shells with pipes":           strings.Repeat("bash -c 'mpirun a|cat|cat|cat'|", 2000) + "cat",
		"three shells":                     "bash -c \"bash -c '" + "bash -c \\\"" + quoted + "\\\"'\"" + strings.Repeat("|cat", 9000),
		"many shells":                      strings.Repeat("bash -c 'a';", 5400),
		"shells in substitutions":          substitutions,
		"functions in functions":           functions,
		"calls of functions":               functions + strings.Repeat("\nf", 20000),
		"launches":                         strings.Repeat("mpirun a;", 7200),
		"words":                            "mpirun" + strings.Repeat(" a", 32000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		job.WarnLauncher([]string{"bash", "-c", script}, nil, nil, field.NewPath("spec"))
		runtime.ReadMemStats(&after)
		if cost := after.TotalAlloc - before.TotalAlloc; cost > most {
			t.Errorf("%s: it costs %d MiB", name, cost>>20)
		}
	}
}
