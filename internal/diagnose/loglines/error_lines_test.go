package loglines

import (
	"strings"
	"testing"
)

// cudaMissing and openibUnused are what Open MPI 4 prints in pods without GPU, and in those with RDMA.
const (
	cudaMissing = `--------------------------------------------------------------------------
The library attempted to open the following supporting CUDA libraries,
but each of them failed.  CUDA-aware support is disabled.
libcuda.so.1: cannot open shared object file: No such file or directory
libcuda.dylib: cannot open shared object file: No such file or directory
/usr/lib64/libcuda.so.1: cannot open shared object file: No such file or directory
/usr/lib64/libcuda.dylib: cannot open shared object file: No such file or directory
If you are not interested in CUDA-aware support, then run with
--mca opal_warn_on_missing_libcuda 0 to suppress this message.  If you are interested
in CUDA-aware support, then try setting LD_LIBRARY_PATH to the location
of libcuda.so.1 to get passed this issue.
--------------------------------------------------------------------------
`
	openibUnused = `--------------------------------------------------------------------------
By default, for Open MPI 4.0 and later, infiniband ports on a device
are not used by default.  The intent is to use UCX for these devices.
You can override this policy by setting the btl_openib_allow_ib MCA parameter
to true.

  Local host:              pi-worker-0
  Local adapter:           mlx5_0
  Local port:              1

--------------------------------------------------------------------------
`
)

// TestFirstError has the error lines of programs as they stand in launchers' logs, among lines that are none.
func TestFirstError(t *testing.T) {
	tests := map[string]struct{ log, message, rank string }{
		"Python": {log: `step 1
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    x = d["lr"]
KeyError: 'lr'
MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD`, message: "KeyError: 'lr'"},
		"Python, tagged by mpirun":     {log: "[1,3]<stderr>:Traceback (most recent call last):\n[1,3]<stderr>:ValueError: bad shard\n[1,0]<stderr>:ValueError: later", message: "ValueError: bad shard", rank: "3"},
		"Python, tagged by prterun":    {log: "[prterun-pi-launcher-11@1,3]<stderr>: Traceback (most recent call last):\n[prterun-pi-launcher-11@1,3]<stderr>: ValueError: bad shard", message: "ValueError: bad shard", rank: "3"},
		"a figure":                     {log: "epoch 3\nMeanSquaredError: 0.0123\n[1,0]<stdout>:RelativeError: -1.5e-07\nL2Error: nan\nerror: 1e-3\nMeanAbsoluteError: 3 %"},
		"a number after a traceback":   {log: "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nKeyError: 7", message: "KeyError: 7"},
		"a number with more":           {log: "TimeoutError: 30 seconds", message: "TimeoutError: 30 seconds"},
		"PyTorch":                      {log: "[rank5]: Traceback (most recent call last):\n[rank5]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251", message: "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251", rank: "5"},
		"mpi4py":                       {log: "mpi4py.MPI.Exception: MPI_ERR_TRUNCATE: message truncated", message: "mpi4py.MPI.Exception: MPI_ERR_TRUNCATE: message truncated"},
		"Open MPI":                     {log: "[pi-worker-0:00042] *** An error occurred in MPI_Recv\n[pi-worker-0:00042] *** reported by process [3141599233,1]\n[pi-worker-0:00042] *** on communicator MPI_COMM_WORLD\n[pi-worker-0:00042] *** MPI_ERR_TRUNCATE: message truncated", message: "MPI_ERR_TRUNCATE: message truncated", rank: "1"},
		"MPICH":                        {log: "Abort(269616) on node 1 (rank 1 in comm 0): Fatal error in internal_Recv: Message truncated, error stack:", message: "internal_Recv: Message truncated", rank: "1"},
		"LAMMPS":                       {log: "LAMMPS (2 Aug 2023)\nERROR: Unknown pair style lj/cutt (src/force.cpp:275)\nLast command: pair_style lj/cutt 2.5", message: "Unknown pair style lj/cutt (src/force.cpp:275)"},
		"LAMMPS on one rank":           {log: "ERROR on proc 3: Cannot open input script in.melt: No such file or directory (src/lammps.cpp:542)", message: "Cannot open input script in.melt: No such file or directory (src/lammps.cpp:542)", rank: "3"},
		"GROMACS":                      {log: "-------------------------------------------------------\nProgram:     gmx mdrun, version 2022.5\n\nFatal error:\nThe number of ranks is not a multiple of 3\n\nFor more information", message: "The number of ranks is not a multiple of 3"},
		"Fortran":                      {log: "At line 12 of file heat.f90 (unit = 10, file = 'in.dat')\nFortran runtime error: End of file", message: "Fortran runtime error: End of file"},
		"C++":                          {log: "terminate called after throwing an instance of 'std::runtime_error'\n  what():  mesh is empty", message: "mesh is empty"},
		"OpenMP":                       {log: "[1,3]<stderr>:OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.", message: "OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.", rank: "3"},
		"assert":                       {log: "solver: solve.c:88: step: Assertion `n > 0' failed.", message: "solver: solve.c:88: step: Assertion `n > 0' failed."},
		"glibc":                        {log: "free(): invalid pointer", message: "free(): invalid pointer"},
		"stack smashing":               {log: "*** stack smashing detected ***: terminated", message: "stack smashing detected"},
		"a missing file":               {log: "cat: input.dat: No such file or directory\nmpirun noticed that", message: "cat: input.dat: No such file or directory"},
		"a missing script":             {log: "python3: can't open file '/data/train.py': [Errno 2] No such file or directory", message: "can't open file '/data/train.py': [Errno 2] No such file or directory"},
		"any error":                    {log: "Error: mesh.vtk has no cells", message: "mesh.vtk has no cells"},
		"the specific before the any":  {log: "ERROR: cannot continue\nKeyError: 'lr'", message: "KeyError: 'lr'"},
		"glibc too old":                {log: "/app/solver: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /app/solver)", message: "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /app/solver)"},
		"dash":                         {log: "sh: 1: cd: can't cd to /data/run", message: "cd: can't cd to /data/run"},
		"bash":                         {log: "[1,2]<stderr>:bash: line 3: unexpected EOF while looking for matching `\"'", message: "unexpected EOF while looking for matching `\"'", rank: "2"},
		"dash, of a script":            {log: "/scripts/run.sh: 3: cannot open /data/part-3.csv: No such file", message: "cannot open /data/part-3.csv: No such file"},
		"bash, of a script":            {log: "[1,2]<stderr>:/scripts/run: line 6: /data/x: No such file or directory", message: "/data/x: No such file or directory", rank: "2"},
		"a script without a folder":    {log: "run: line 6: syntax error: unexpected end of file", message: "syntax error: unexpected end of file"},
		"a figure after a name":        {log: "accuracy: 3: good\nhttp://x/y: 404: gone"},
		"a shell that continues":       {log: "sh: 1: nvidia-smi: not found\nError: mesh.vtk has no cells", message: "mesh.vtk has no cells"},
		"Open MPI without CUDA":        {log: cudaMissing + "Error: mesh has negative volume", message: "mesh has negative volume"},
		"only Open MPI without CUDA":   {log: cudaMissing + "step 1"},
		"Open MPI without openib":      {log: openibUnused + cudaMissing + "cat: a: No such file or directory", message: "cat: a: No such file or directory"},
		"a component of Open MPI":      {log: "[pi-worker-0:00042] mca_base_component_repository_open: unable to open mca_btl_openib: librdmacm.so.1: cannot open shared object file: No such file or directory (ignored)\nError: no mesh", message: "no mesh"},
		"a library that is optional":   {log: "2026-11-28 18:00:00.1: W tensorflow/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory"},
		"a script that goes on":        {log: "rm: cannot remove '/results/*.ckpt': No such file or directory\nError: mesh has negative volume", message: "mesh has negative volume"},
		"a script that goes on long":   {log: "[1,0]<stderr>:cat: a: No such file or directory\n" + strings.Repeat("[1,0]<stdout>:step\n", 4) + "[1,0]<stderr>:Error: no mesh", message: "no mesh", rank: "0"},
		"another rank goes on":         {log: "[1,0]<stderr>:cat: a: No such file or directory\n" + strings.Repeat("[1,1]<stdout>:step\n", 4) + "[1,1]<stderr>:Error: no peer", message: "cat: a: No such file or directory", rank: "0"},
		"a file and what it is for":    {log: "in.mesh: No such file or directory\nError: cannot read the mesh", message: "in.mesh: No such file or directory"},
		"a script that ended":          {log: "Error: no cache yet\nrm: cannot remove 'a': No such file or directory", message: "rm: cannot remove 'a': No such file or directory"},
		"launchers are not programs":   {log: "mpirun: Error: unknown option\n[mpiexec@pi-launcher] Error: x\nORTE_ERROR_LOG: Error: y"},
		"PETSc":                        {log: "[2]PETSC ERROR: --------------------- Error Message ---------\n[2]PETSC ERROR: Object is in wrong state\n[2]PETSC ERROR: Matrix is missing diagonal entry 0\n[2]PETSC ERROR: See https://petsc.org/release/faq/ for trouble shooting.", message: "Object is in wrong state: Matrix is missing diagonal entry 0", rank: "2"},
		"PETSc, tagged by mpirun":      {log: "[1,3]<stderr>:[3]PETSC ERROR: Caught signal number 8 FPE: Floating Point Exception,probably divide by zero\n[1,3]<stderr>:[3]PETSC ERROR: Try option -start_in_debugger", message: "Caught signal number 8 FPE: Floating Point Exception,probably divide by zero", rank: "3"},
		"PETSc, of an ended rank":      {log: "[1]PETSC ERROR: Caught signal number 15 Terminate: Some process (or the batch system) has told this process to end\n[1]PETSC ERROR: Try option -start_in_debugger"},
		"OpenFOAM":                     {log: "[1] \n[1] \n[1] --> FOAM FATAL ERROR: (openfoam-2312)\n[1] cannot find file \"/case/0/p\"\n[1] ", message: "cannot find file \"/case/0/p\"", rank: "1"},
		"OpenFOAM, of a file":          {log: "--> FOAM FATAL IO ERROR: \nkeyword nu is undefined", message: "keyword nu is undefined"},
		"Quantum ESPRESSO":             {log: " %%%%%%\n     Error in routine readpp (1):\n     file Ni.UPF not found\n %%%%%%", message: "file Ni.UPF not found"},
		"WRF":                          {log: "-------------- FATAL CALLED ---------------\nFATAL CALLED FROM FILE:  <stdin>  LINE:     419\nprogram wrf: error opening wrfinput_d01\n-----", message: "program wrf: error opening wrfinput_d01"},
		"MKL":                          {log: "Intel oneMKL FATAL ERROR: Cannot load libmkl_avx2.so.2 or libmkl_def.so.2.", message: "Intel oneMKL FATAL ERROR: Cannot load libmkl_avx2.so.2 or libmkl_def.so.2."},
		"ERROR STOP":                   {log: "ERROR STOP mesh is empty\n\nError termination. Backtrace:", message: "ERROR STOP mesh is empty"},
		"list-directed output":         {log: " ERROR: mesh is empty", message: "mesh is empty"},
		"an indented line":             {log: "   Error: Permission denied by a rule"},
		"a license":                    {log: " License server machine is down or not responding.\nFLEXnet Licensing error:-96,7", message: "License server machine is down or not responding."},
		"an interrupt":                 {log: "Traceback (most recent call last):\nKeyboardInterrupt", message: "KeyboardInterrupt"},
		"a wrapped message":            {log: "Fatal error:\nThere is no domain decomposition for 7 ranks that is compatible with the given\nbox and a minimum cell size of 1.05 nm\nChange the number of ranks", message: "There is no domain decomposition for 7 ranks that is compatible with the given box and a minimum cell size of 1.05 nm"},
		"a place before":               {log: "[1,0]<stderr>:HPL ERROR from process # 0, on line 419 of function HPL_pdinfo:\n[1,0]<stderr>:>>> Need at least 4 processes for these tests <<<\n[1,0]<stderr>:", message: "Need at least 4 processes for these tests", rank: "0"},
		"a heading of errors":          {log: "ERROR norms:\n  0.123\nstep 4"},
		"Rust":                         {log: "thread 'main' panicked at src/main.rs:12:44:\nthe mesh that was read from the file has no cells, and a cell is needed\nnote: run with `RUST_BACKTRACE=1`", message: "the mesh that was read from the file has no cells, and a cell is needed"},
		"Go":                           {log: "panic: no mesh\n\ngoroutine 1 [running]:", message: "no mesh"},
		"Java":                         {log: `Exception in thread "main" java.lang.IllegalStateException: no mesh`, message: "java.lang.IllegalStateException: no mesh"},
		"Perl":                         {log: "no mesh at /app/pi.pl line 2.", message: "no mesh at /app/pi.pl line 2."},
		"the linker":                   {log: "/usr/bin/ld: cannot find -lopenblas: No such file or directory\ncollect2: error: ld returned 1 exit status", message: "ld: cannot find -lopenblas"},
		"an energy":                    {log: "E: -1234.5 J\nKey 'a' of 3"},
		"sudo that is not needed":      {log: "sudo: unable to resolve host pi-launcher\n" + strings.Repeat("step\n", 5) + "Error: no mesh", message: "no mesh"},
		"Java, with its cause":         {log: "Exception in thread \"main\" java.lang.RuntimeException: no mesh\n\tat app.Main.main(Main.java:9)\nCaused by: java.io.FileNotFoundException: /data/x (No such file or directory)\n\tat java.base/java.io.FileInputStream.open0(Native Method)\n\t... 3 more", message: "java.lang.RuntimeException: no mesh: java.io.FileNotFoundException: /data/x (No such file or directory)"},
		"Rust, of before 1.73":         {log: "thread 'main' panicked at 'no mesh', src/main.rs:12:44", message: "'no mesh', src/main.rs:12:44"},
		"R":                            {log: "Error in readRDS(\"/data/x.rds\") : error reading from connection\nCalls: main -> readRDS\nExecution halted", message: "error reading from connection"},
		"R, of a package":              {log: "Error in mesh::read(\"a:b\") : no mesh\nExecution halted", message: "no mesh"},
		"R, in two lines":              {log: "[1,3]<stderr>:Error in eval(expr, envir, enclos) : \n[1,3]<stderr>:  object 'rate' not found\n[1,3]<stderr>:Calls: main -> eval", message: "object 'rate' not found", rank: "3"},
		"R, outside of a call":         {log: "Error: object 'rate' not found\nExecution halted", message: "object 'rate' not found"},
		"R, of a file":                 {log: "Error in file(file, \"rt\") : cannot open the connection\nCalls: read.csv -> read.table -> file\nIn addition: Warning message:\nIn file(file, \"rt\") :\n  cannot open file '/data/x.csv': No such file or directory\nExecution halted", message: "cannot open file '/data/x.csv': No such file or directory"},
		"Julia":                        {log: "ERROR: LoadError: UndefVarError: `rate` not defined\nStacktrace:\n [1] top-level scope\n   @ /app/a.jl:3\nin expression starting at /app/a.jl:3", message: "LoadError: UndefVarError: `rate` not defined"},
		"C++ without an exception":     {log: "terminate called without an active exception", message: "terminate called without an active exception"},
		"C++ of LLVM":                  {log: "libc++abi: terminating due to uncaught exception of type std::runtime_error: no mesh", message: "uncaught exception of type std::runtime_error: no mesh"},
		"a virtual call":               {log: "pure virtual method called\nterminate called without an active exception", message: "pure virtual method called"},
		"assert of musl":               {log: "Assertion failed: n > 0 (solve.c: step: 88)", message: "Assertion failed: n > 0 (solve.c: step: 88)"},
		"assert of the loader":         {log: "Inconsistency detected by ld.so: dl-tls.c: 493: _dl_allocate_tls_init: Assertion `listp != NULL' failed!", message: "ld.so: dl-tls.c: 493: _dl_allocate_tls_init: Assertion `listp != NULL' failed!"},
		"glibc's own":                  {log: "Fatal glibc error: malloc.c:2599 (sysmalloc): assertion failed: (old_top == initial_top (av))", message: "malloc.c:2599 (sysmalloc): assertion failed: (old_top == initial_top (av))"},
		"glibc, while it tidies up":    {log: "malloc_consolidate(): unaligned fastbin chunk detected", message: "malloc_consolidate(): unaligned fastbin chunk detected"},
		"a corrupted heap":             {log: "malloc(): corrupted top size", message: "malloc(): corrupted top size"},
		"no error":                     {log: "error norm 0.1\n0 errors\nstep 4 loss 0.3 errors: 0"},
		"mkdir of coreutils":           {log: "mkdir: cannot create directory \u2018/tmp/run-17\u2019: File exists\nmpi-agent: Rank 2 (sh) ended with code 1.", message: "mkdir: cannot create directory \u2018/tmp/run-17\u2019: File exists"},
		"mkdir, and an error after it": {log: "mkdir: cannot create directory \u2018/tmp/a\u2019: File exists\nsolve: error: no mesh", message: "solve: error: no mesh"},
		"glog":                         {log: "F1130 01:00:00.000000    12 mesh.cc:42] Check failed: n > 0 (0 vs. 0) no cells", message: "Check failed: n > 0 (0 vs. 0) no cells"},
		"a compiler":                   {log: "mpicc -o solve solve.c\nsolve.c:12:5: error: unknown type name 'MPI_Com'\nmake: *** [Makefile:3: solve] Error 1", message: "solve.c:12:5: error: unknown type name 'MPI_Com'"},
		"make":                         {log: "make[1]: *** No rule to make target 'solve'.  Stop.", message: "No rule to make target 'solve'.  Stop."},
		"make, of a program":           {log: "solver: diverged at step 12\nmake: *** [Makefile:5: run] Error 3"},
		"a memory policy":              {log: "set_mempolicy: Operation not permitted\nstep 1\nsolver gave up"},
		"a memory policy of a rank":    {log: "[1,0]<stderr>:mbind: Operation not permitted\n[1,0]<stdout>:step 1"},
		"kill":                         {log: "kill: (123): Operation not permitted\nstep 1"},
		"numactl":                      {log: "set_mempolicy: Operation not permitted\nset_mempolicy: Operation not permitted\n--------------------------------------------------------------------------\nmpirun detected that one or more processes exited with non-zero status\n", message: "set_mempolicy: Operation not permitted"},
		"Python's own":                 {log: "Fatal Python error: _PyInterpreterState_Get: no current thread", message: "_PyInterpreterState_Get: no current thread"},
		"a signal of Python":           {log: "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):"},
		"a client of S3":               {log: "\nUnable to locate credentials. You can configure credentials by running \"aws configure\".", message: "Unable to locate credentials. You can configure credentials by running \"aws configure\"."},
		"an archive":                   {log: "gzip: stdin: not in gzip format\ntar: Child returned status 1", message: "gzip: stdin: not in gzip format"},
		"perror":                       {log: "cat: /data/part-3.csv: Stale file handle", message: "cat: /data/part-3.csv: Stale file handle"},
		"a shell that cannot fork":     {log: "step 1\nrun.sh: fork: retry: Resource temporarily unavailable", message: "run.sh: fork: retry: Resource temporarily unavailable"},
		"a locale that is missing":     {log: "bash: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8): No such file or directory\n/scripts/run.sh: line 1: warning: setlocale: LC_ALL: cannot change locale (de_DE.UTF-8)\nstep 1"},
		"YAML":                         {log: "Traceback (most recent call last):\n  File \"/code/a.py\", line 3, in <module>\n    raise ParserError(\"while parsing\")\nyaml.parser.ParserError: while parsing a flow sequence\n  in \"<unicode string>\", line 1, column 4:\n    a: [1, 2\n       ^\nexpected ',' or ']', but got '<stream end>'\n  in \"<unicode string>\", line 2, column 1:\n    \n    ^\nstep 2", message: "yaml.parser.ParserError: while parsing a flow sequence in \"<unicode string>\", line 1, column 4 expected ',' or ']', but got '<stream end>' in \"<unicode string>\", line 2, column 1"},
		"an error stack of mpi4py":     {log: "[1,1]<stderr>:Traceback (most recent call last):\n[1,1]<stderr>:  File \"/code/a.py\", line 3, in <module>\n[1,1]<stderr>:mpi4py.MPI.Exception: Message truncated, error stack:\n[1,1]<stderr>:internal_Recv(127)......: MPI_Recv(buf=0x7f) failed\n[1,1]<stderr>:MPIDIG_recv(81)........: Message from rank 0 and tag 5 truncated; 8 bytes received but buffer size is 4\n[1,1]<stderr>:step 2", message: "mpi4py.MPI.Exception: Message truncated, error stack: Message from rank 0 and tag 5 truncated; 8 bytes received but buffer size is 4", rank: "1"},
		"taskset":                      {log: "taskset: failed to set pid 97's affinity: Invalid argument", message: "taskset: failed to set pid 97's affinity: Invalid argument"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := FirstError(strings.Split(test.log, "\n"))
			if found == nil {
				found = &ErrorLine{}
			}
			if found.Message != test.message || found.Rank != test.rank {
				t.Errorf("got %q of rank %q, want %q of rank %q", found.Message, found.Rank, test.message, test.rank)
			}
		})
	}
}

// TestFortranPlace: libgfortran names the line of source code before the error.
func TestFortranPlace(t *testing.T) {
	t.Parallel()
	const failure = "Fortran runtime error: End of file"
	for log, want := range map[string]string{
		"At line 12 of file src/heat.f90 (unit = 10, file = 'in.dat')\n" + failure:            "heat.f90, line 12",
		"[1,2]<stderr>:At line 3 of file a.f90\n[1,0]<stdout>:step\n[1,2]<stderr>:" + failure: "a.f90, line 3",
		"step\n" + failure: "",
		"":                 "",
	} {
		lines := strings.Split(log, "\n")
		if got := FortranPlace(lines, lines[len(lines)-1]); got != want {
			t.Errorf("%q: got %q, want %q", log, got, want)
		}
	}
}

// TestCallsOfRanks: the call, the host and the rank of an error of Open MPI are those of the process that printed it, also where the lines of several mix.
func TestCallsOfRanks(t *testing.T) {
	t.Parallel()
	const first, second = "[w-0:41] *** ", "[w-1:52] *** "
	for name, test := range map[string]struct{ log, call, host, rank string }{
		"one": {first + "An error occurred in MPI_Recv\n" + first + "reported by process [31,1]\n" + first + "on communicator X\n" + first + "MPI_ERR_TRUNCATE: message truncated", "MPI_Recv", "w-0", "1"},
		"two that mix": {first + "An error occurred in MPI_Recv\n" + first + "reported by process [31,1]\n" + second + "An error occurred in MPI_Bcast\n" + second + "reported by process [31,2]\n" +
			first + "on communicator X\n" + second + "on communicator X\n" + first + "MPI_ERR_TRUNCATE: message truncated\n" + second + "MPI_ERR_TYPE: invalid datatype", "MPI_Recv", "w-0", "1"},
		"only the other's call": {second + "An error occurred in MPI_Bcast\n" + second + "reported by process [31,2]\n" + first + "MPI_ERR_TRUNCATE: message truncated", "", "", ""},
		"version 5":             {"*** An error occurred in MPI_Recv\n*** reported by process [31,1]\n*** on communicator X\n*** MPI_ERR_TRUNCATE: message truncated", "MPI_Recv", "", "1"},
		"tagged":                {"[1,1]<stderr>:" + first + "An error occurred in MPI_Recv\n[1,2]<stderr>:" + second + "An error occurred in MPI_Send\n[1,1]<stderr>:" + first + "MPI_ERR_TRUNCATE: message truncated", "MPI_Recv", "w-0", "1"},
	} {
		found := FirstError(strings.Split(test.log, "\n"))
		if found == nil || found.Call != test.call || found.Host != test.host || found.Rank != test.rank {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}
