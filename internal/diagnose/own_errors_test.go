package diagnose_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// ownError is the kind of an error, and a part of one of its remedies.
type ownError struct{ kind, remedy string }

// TestOwnErrors: the remedies of a program's own error follow from what it reports. All kinds of errors are tried.
func TestOwnErrors(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	cases := map[string]ownError{
		"ModuleNotFoundError: No module named 'encodings'":                                                                                                     {"python", "Python does not find its own library"},
		"ModuleNotFoundError: No module named 'torch.distributed'":                                                                                             {"module", "Install torch.distributed in the image"},
		"ImportError: cannot import name 'Dataset' from 'datasets' (/opt/datasets.py)":                                                                         {"module", "If /opt/datasets.py is not the module datasets"},
		"/work/run.sh: line 2: ./prog: cannot execute binary file: Exec format error":                                                                          {"program", "build it for the CPU"},
		"OSError: [Errno 8] Exec format error: './prog'":                                                                                                       {"program", "build it for the CPU"},
		"python3: can't open file '//prepare.py': [Errno 2] No such file or directory":                                                                         {"file", "Check the path of /prepare.py."},
		"python3: can't open file '/work/train.py': [Errno 2] No such file or directory":                                                                       {"file", "Check the path of /work/train.py."},
		"FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'":                                                                                   {"file", "Check the path of data.csv."},
		"cat: /data/shard-3: No such file or directory":                                                                                                        {"file", "Check the path of /data/shard-3."},
		"terminate called after throwing an instance of 'std::filesystem'\n  what():  filesystem error: cannot open file: No such file or directory [/data/x]": {"file", "Check the path of the file."},
		"OSError: [Errno 30] Read-only file system: '/tmp/x'":                                                                                                  {"read-only", "mount one where /tmp/x is to be"},
		"PermissionError: [Errno 13] Permission denied: '/results/out.csv'":                                                                                    {"permission", "If /results/out.csv is on a volume"},
		"mkdir: cannot create directory '/results/1': Permission denied":                                                                                       {"permission", "If /results/1 is on a volume"},
		"OSError: [Errno 28] No space left on device: '/scratch/part-0'":                                                                                       {"space", "Write less"},
		"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB for an array":                                                                   {"memory", "Allocate less at once"},
		"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc":                                                           {"memory", "Allocate less at once"},
		"KeyError: 'getpwuid(): uid not found: 1000650000'":                                                                                                    {"user", "without an entry in /etc/passwd"},
		"KeyError: 'WORLD_SIZE'":                           {"torch variables", "from the variables of MPI"},
		"KeyError: 'MASTER_ADDR'":                          {"variable", "If MASTER_ADDR is an environment variable, set it: no pod template"},
		"/work/run.sh: line 4: DATA_DIR: unbound variable": {"variable", "Set DATA_DIR: no pod template sets DATA_DIR"},
		"/scripts/step.sh: 2: DATA_DIR: parameter not set": {"variable", "Set DATA_DIR: no pod template sets DATA_DIR"},
		"EOFError: EOF when reading a line":                {"input", "A pod has no standard input"},
		"requests.exceptions.ConnectionError: HTTPConnectionPool(host='x', port=80): Max retries exceeded with url: /":                     {"network", "If jobs are isolated"},
		"Traceback (most recent call last):\n  File \"/a.py\", line 1, in <module>\nsocket.gaierror: [Errno -2] Name or service not known": {"host name", "Correct the host's name"},
		"urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>":                                           {"host name", "Service in the job's own namespace"},
		"curl: (6) Could not resolve host: mlflow":                {"host name", "Correct the host's name"},
		"KeyError: 'SLURM_PROCID'":                                {"scheduler variables", "SLURM_PROCID is one of a batch system"},
		"/scripts/run.sh: line 4: PBS_NODEFILE: unbound variable": {"scheduler variables", "PBS_NODEFILE is one of a batch system"},
		"FileNotFoundError: [Errno 2] No such file or directory: '/tmp/checkpoint.tmp' -> '/tmp/checkpoint.json'": {"file", "Let one rank alone write /tmp/checkpoint.tmp"},
		"mv: cannot stat '/results/model.tmp': No such file or directory":                                         {"file", "Let one rank alone write /results/model.tmp"},
		"cp: cannot stat '/data/model': No such file or directory":                                                {"file", "Check the path of /data/model"},
		"train.py: error: unrecognized arguments: --epoch":                                                        {"unknown arguments", "the program does not know --epoch."},
		"TimeoutError: timed out":                          {"network", "Check the address"},
		"TimeoutError: [Errno 110] Connection timed out":   {"network", "Check the address"},
		"urllib.error.URLError: <urlopen error timed out>": {"network", "Check the address"},
		"Traceback (most recent call last):\n  File \"/app/a.py\", line 9, in <module>\n    x = load(\"/data/a.json\")\n  File \"/app/a.py\", line 4, in load\n    return json.load(file)\n           ^^^^^^^\n  File \"/usr/lib/python3.11/json/__init__.py\", line 293, in load\n    return loads(fp.read(),\njson.decoder.JSONDecodeError: Expecting value: line 2 column 1 (char 7)": {"text", "Check /data/a.json:"},
		"json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)":     {"text", "Check what the program reads"},
		"sh: 1: cd: can't cd to /workspace/run":                                       {"file", "Check the path of /workspace/run."},
		"/scripts/run.sh: 3: cannot open /data/part-3.csv: No such file":              {"file", "Check the path of /data/part-3.csv."},
		"/scripts/run.sh: line 3: /data/part-3.csv: No such file or directory":        {"file", "Check the path of /data/part-3.csv."},
		"/scripts/run.sh: 4: cannot create /results/a/log: Directory nonexistent":     {"file", "Check the path of /results/a/log."},
		"/scripts/run.sh: 6: Syntax error: end of file unexpected (expecting \"fi\")": {"script", "Correct the shell script"},
		"Error: 1e9 is no number (Usage: pi [INTERVALS])":                             {"arguments", "Correct the arguments"},
		"sh: 1: Syntax error: Unterminated quoted string":                             {"script", "Correct the shell script"},
		"/work/run.sh: line 3: syntax error near unexpected token `done'":             {"script", "Correct the shell script"},
		"SyntaxError: invalid syntax":                                                 {"source", "Correct the script"},
		"OSError: [Errno 24] Too many open files: '/data/1'":                          {"files", "If the command sets a limit"},
		"ValueError: shard 2 has no rows":                                             {"", "This is an error of the program itself:"},
		"KeyError: 'loss'":                                                            {"key", "Print the keys that it has"},
		"Traceback (most recent call last):\n  File \"/app/train.py\", line 7, in <module>\n    os.sched_setaffinity(0, {64})\nOSError: [Errno 22] Invalid argument": {"cores of a rank", "Bind only to cores"},
		"ValueError: sleep length must be non-negative": {"negative pause", "The time to sleep is negative"},
		"ValueError: ndarray is not contiguous":         {"memory of an array", "next to each other in memory"},
		"Traceback (most recent call last):\n  File \"/app/train.py\", line 7, in <module>\n    comm.Allreduce(half, total)\nKeyError: 'e'":                                        {"MPI type of an array", "MPI has no datatype"},
		"Traceback (most recent call last):\n  File \"/app/train.py\", line 7, in <module>\n    comm.Bcast([1, 2], root=0)\nTypeError: a bytes-like object is required, not 'int'": {"buffer", "Give this method an array"},
		"ValueError: expecting 2 items, got 3":                                                                         {"items of ranks", "one item for each rank"},
		"ValueError: num_samples should be a positive integer value, but got num_samples=0":                            {"no data", "this rank got no part"},
		"TypeError: train() got an unexpected keyword argument 'lr'":                                                   {"signature", "Correct the arguments of this call"},
		"TypeError: unsupported operand type(s) for +: 'int' and 'str'":                                                {"type", "Convert the values to one type"},
		"TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'":                                           {"none", "A value is None"},
		"OSError: [Errno 30] Read-only file system: '/mnt/sys/out'":                                                    {"read-only", "mount one where /mnt/sys/out is to be"},
		"RuntimeError: DataLoader worker (pid(s) 123) exited unexpectedly":                                             {"loader", "A process of the data loader ended"},
		"RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!": {"devices of tensors", "Move the data and the model"},
		"numpy.linalg.LinAlgError: Singular matrix":                                                                    {"singular", "no inverse"},
		"ValueError: Input X contains NaN.":                                                                            {"missing values", "missing or infinite values"},
		"Traceback (most recent call last):\n  File \"/app/train.py\", line 7, in <module>\n    subprocess.run([\"wget\"], timeout=10)\nsubprocess.TimeoutExpired: Command '['wget']' timed out after 10 seconds": {"called command's time", "did not end in the time"},
		"ValueError: time data '2020' does not match format '%Y-%m'":                                                                            {"time format", "no time of the form"},
		"KeyError: \"['label'] not in index\"":                                                                                                  {"columns", "does not have these columns"},
		"AssertionError: batch size must be divisible by world size":                                                                            {"divisible", "A size does not fit"},
		"ConnectionResetError: [Errno 104] Connection reset by peer":                                                                            {"closed connection", "The other side has closed"},
		"run.sh: 3: [: too many arguments":                                                                                                      {"unquoted value", "A test of the script"},
		"sqlite3.OperationalError: unable to open database file":                                                                                {"database file", "SQLite cannot create"},
		"bash: line 3: /proc/sys/vm/drop_caches: Read-only file system":                                                                         {"kernel settings", "a container cannot change settings of the kernel"},
		"OSError: [Errno 30] Read-only file system: '/proc/sys/vm/overcommit_memory'":                                                           {"kernel settings", "a container cannot change"},
		"ValueError: Cannot load file containing pickled data when allow_pickle=False":                                                          {"array file", "pointer of Git LFS"},
		"_pickle.UnpicklingError: invalid load key, 'v'.":                                                                                       {"array file", "pointer of Git LFS"},
		"taskset: failed to set pid 97's affinity: Invalid argument":                                                                            {"affinity", "Remove taskset or numactl"},
		"libnuma: Warning: cpu argument 16-31 is out of range\nsched_setaffinity: Invalid argument\nerror: sched_setaffinity: Invalid argument": {"affinity", "Remove taskset or numactl"},
		"mkdir: cannot create directory \u2018/tmp/run-17\u2019: File exists":                                                                   {"exists", "Write mkdir -p, which allows that /tmp/run-17 exists"},
		"mkdir: can't create directory '/tmp/run-17': File exists":                                                                              {"exists", "Write mkdir -p, which allows that /tmp/run-17 exists"},
		"KeyError: 'digits-small\\n'":                                                                                                           {"blank at the end", "ends with a line end"},
		"bash: line 1: export: `-np': not a valid identifier":                                                                                   {"joined lines", "in place of >"},
		"ValueError: expected 'adam', got 'sgd' instead":                                                                                        {"", "This is an error of the program itself:"},
		"ValueError: unknown optimizer: 'sgd '":                                                                                                 {"blank at the end", "ends with a line end"},
		"ValueError: invalid literal for int() with base 10: 'tcp://10.96.45.189:9091'":                                                         {"service variable", "Kubernetes has set"},
		// What a pod, its image or a service is, and the program's own lines.
		"BlockingIOError: [Errno 11] Unable to open file (unable to lock file, errno = 11, error message = 'Resource temporarily unavailable')": {"file lock", "Several ranks open the same file"},
		"sqlite3.OperationalError: database is locked":                                                                                   {"SQLite lock", "Let rank 0 alone write"},
		"RuntimeError: can't start new thread":                                                                                           {"threads", "Start fewer threads"},
		"OSError: [Errno 98] Address already in use (while attempting to bind on address ('', 9400))":                                    {"port", "If several ranks run in a pod"},
		"AssertionError: Torch not compiled with CUDA enabled":                                                                           {"no GPU", "Request a GPU"},
		"RuntimeError: CUDA error: no kernel image is available for execution on the device":                                             {"GPU model", "the model of the nodes' GPUs"},
		"./prog: symbol lookup error: ./prog: undefined symbol: ompi_mpi_comm_world":                                                     {"MPI symbol", "Build it with the MPI of the image"},
		"ImportError: numpy.core.multiarray failed to import":                                                                            {"library version", "Build it in the image"},
		"ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed":                                       {"certificate", "Mount the certificate"},
		"botocore.exceptions.NoCredentialsError: Unable to locate credentials":                                                           {"credentials", "Check the credentials"},
		"botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the PutObject operation":                         {"credentials", "Check the credentials"},
		"requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://hub.example/x":                                   {"credentials", "Check the credentials"},
		"botocore.exceptions.ClientError: An error occurred (NoSuchBucket) when calling the ListObjects operation":                       {"no such object", "does not exist"},
		"requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://hub.example/x":                            {"server error", "overloaded or down"},
		"UnicodeEncodeError: 'ascii' codec can't encode character '\\xfc' in position 1":                                                 {"character set", "Set a character set"},
		"FileExistsError: [Errno 17] File exists: '/results/run'":                                                                        {"exists", "Let one rank create /results/run"},
		"IsADirectoryError: [Errno 21] Is a directory: '/data'":                                                                          {"folder", "/data is a folder"},
		"OSError: [Errno 116] Stale file handle: '/data/x'":                                                                              {"storage", "The storage behind the volume"},
		"error: externally-managed-environment":                                                                                          {"root", "Install what the program needs"},
		"ERROR: No matching distribution found for torch==9.9":                                                                           {"package", "Check the package's name"},
		"fatal: detected dubious ownership in repository at '/work'":                                                                     {"git", "Allow git to use the folder"},
		"KeyError: 'OMPI_COMM_WORLD_RANK'":                                                                                               {"variables of Open MPI", "Only Open MPI sets OMPI_COMM_WORLD_RANK"},
		"The Open MPI wrapper compiler was unable to find the specified compiler gcc in your PATH.":                                      {"compiler", "Compile the program when the image is built"},
		"/scripts/shard.sh: 2: OMPI_COMM_WORLD_RANK: parameter not set":                                                                  {"variables of Open MPI", "take PMI_RANK and PMI_SIZE"},
		"run.sh: line 4: PMI_RANK: unbound variable":                                                                                     {"variables of MPICH", "With Open MPI, take OMPI_COMM_WORLD_RANK"},
		"run.sh: line 4: SLURM_NTASKS: unbound variable":                                                                                 {"scheduler variables", "SLURM_NTASKS is one of a batch system"},
		"FloatingPointError: loss is inf in epoch 7, stopping":                                                                           {"overflow", "The numbers overflow"},
		"ValueError: Loss became nan":                                                                                                    {"overflow", "The numbers overflow"},
		"RecursionError: maximum recursion depth exceeded":                                                                               {"recursion", "A function calls itself"},
		"_pickle.PicklingError: Can't pickle <function <lambda>>":                                                                        {"pickle", "Send plain data"},
		"ValueError: invalid literal for int() with base 10: ''":                                                                         {"value", "missing, empty or no number"},
		"TypeError: expected str, bytes or os.PathLike object, not NoneType":                                                             {"value", "missing, empty or no number"},
		"double free or corruption (!prev)":                                                                                              {"heap", "writes outside its memory"},
		"subprocess.CalledProcessError: Command '['prepare']' returned non-zero exit status 9.":                                          {"called command", "what this command printed"},
		"At line 12 of file a.f90 (unit = 10)\nFortran runtime error: End of file":                                                       {"Fortran input", "Check the file that the program reads"},
		"TypeError: 'NoneType' object is not iterable":                                                                                   {"none", "gather and reduce return None"},
		"TypeError: 'NoneType' object is not subscriptable":                                                                              {"none", "A value is None"},
		"AttributeError: 'NoneType' object has no attribute 'shape'":                                                                     {"none", "A value is None"},
		"NameError: name 'np' is not defined":                                                                                            {"name", "Define or import this name"},
		"IndexError: list index out of range":                                                                                            {"length", "over 8 ranks"},
		"ValueError: operands could not be broadcast together with shapes (4,) (5,)":                                                     {"shape", "Two arrays do not fit"},
		"AttributeError: module 'numpy' has no attribute 'float'.":                                                                       {"module", "Install the version of numpy"},
		"AttributeError: module 'random' has no attribute 'randint' (consider renaming '/scripts/random.py' since it has the same name)": {"module", "Rename /scripts/random.py, or the folder random there"},
		"ImportError: cannot import name 'Random' from 'random' (/scripts/..2026_11_27_07_52_00.2382125561/random.py)":                   {"module", "Rename /scripts/random.py, or the folder random there"},
		"Traceback (most recent call last):\n  File \"/scripts/train.py\", line 4, in <module>\n    logging.basicConfig(level=logging.INFO)\n    ^^^^^^^\nAttributeError: module 'logging' has no attribute 'basicConfig'": {"module", "Rename /scripts/logging.py, or the folder logging there: Python looks in the folder of the script"},
		"AttributeError: partially initialized module 'queue' has no attribute 'Queue' (most likely due to a circular import)":                                                                                             {"module", "Rename the program's own file queue.py"},
		"ImportError: cannot import name 'dumps' from 'json' (/app/json/__init__.py)":                                                                                                                                      {"module", "Rename /app/json, or"},
		"AttributeError: module 'collections' has no attribute 'MutableMapping'":                                                                                                                                           {"module", "not every version has collections.MutableMapping"},
		"ImportError: cannot import name 'batched' from 'itertools' (/usr/lib/python3.11/itertools.py)":                                                                                                                    {"module", "Install the version of itertools"},
		"ImportError: cannot import name 'x' from partially initialized module 'a' (most likely due to a circular import) (/app/a.py)":                                                                                     {"module", "If /app/a.py is not the module a"},
		"ImportError: cannot import name 'Tensor' from 'torch' (/usr/lib/python3/dist-packages/torch/__init__.py)":                                                                                                         {"module", "Install the version of torch"},
		"FileNotFoundError: [Errno 2] No such file or directory: '$(DATA_ROOT)/train/samples.csv'":                                                                                                                         {"file", "Check the name: Kubernetes keeps the text $(DATA_ROOT)"},
		"train: error: argument --epochs: invalid int value: '$(EPOCH)'":                                                                                                                                                   {"arguments", "where no variable EPOCH is defined"},
		"/usr/bin/python3: can't find '__main__' module in '/app/train.py'":                                                                                                                                                {"folder", "/app/train.py is a folder"},
		"tomllib.TOMLDecodeError: Invalid value (at line 1, column 5)":                                                                                                                                                     {"TOML", "Correct line 1, column 5"},
		"Traceback (most recent call last):\n  File \"/app/a.py\", line 10, in <module>\n    rev = subprocess.check_output([\"git\", \"describe\"])\n  File \"/usr/lib/python3.11/subprocess.py\", line 1955, in _execute_child\n    raise child_exception_type(errno_num, err_msg, err_filename)\nFileNotFoundError: [Errno 2] No such file or directory: 'git'": {"file", "The program starts the command git"},
		// What the image contains, how programs were built and are configured, and the number of ranks.
		"-------------------------------------------------------\nProgram:     gmx mdrun, version 2022.5\n\nFatal error:\nThere is no domain decomposition for 7 ranks that is compatible with the given\nbox and a minimum cell size of 1.05 nm\nChange the number of ranks or mdrun option -rdd or -dds": {"number of ranks", "cannot divide its input"},
		"HPL ERROR from process # 0, on line 419 of function HPL_pdinfo:\n>>> Need at least 4 processes for these tests <<<":              {"number of ranks", "cannot divide its input"},
		"--> FOAM FATAL ERROR: (openfoam-2312)\nnumber of processor directories = 2 is not equal to the number of processors = 4":         {"number of ranks", "cannot divide its input"},
		"ValueError: the number of processes must be a square, got 8":                                                                     {"number of ranks", "cannot divide its input"},
		"A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.1.3 as it may crash.\nAttributeError: _ARRAY_API not found": {"NumPy", "built for NumPy 1"},
		"RuntimeError: Numpy is not available":                                                                                                                  {"NumPy", "built for NumPy 1"},
		"ImportError: /lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS block":                                                          {"static TLS", "before the others"},
		"RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (9, 1, 0) but found runtime version (8, 9, 2).":                             {"cuDNN", "LD_LIBRARY_PATH"},
		"/usr/bin/ld: cannot find -lopenblas: No such file or directory\ncollect2: error: ld returned 1 exit status":                                            {"build", "-dev"},
		"/usr/bin/ld: /tmp/ccx.o: in function `main':\nsolver.c:(.text+0x9): undefined reference to `dgesv_'":                                                   {"build", "-dev"},
		"solver.c:1:10: fatal error: mpi.h: No such file or directory\n    1 | #include <mpi.h>":                                                                {"build", "by its compilers"},
		"Fatal Error: Cannot open module file 'mpi.mod' for reading at (1): No such file or directory":                                                          {"build", "by its compilers"},
		"torch._inductor.exc.InductorError: RuntimeError: Failed to find C compiler. Please specify via CC environment variable.":                               {"no compiler", "variant of the image"},
		"ERROR: Unrecognized pair style 'eam' is part of the MANYBODY package which is not enabled in this LAMMPS binary. (src/force.cpp:275)":                  {"not built in", "was built with"},
		"ERROR: LoadError: ArgumentError: Package MPI not found in current path.\n- Run `import Pkg; Pkg.add(\"MPI\")` to install the MPI package.":             {"package of a language", "what the message names"},
		"Can't locate Parallel/MPI.pm in @INC (you may need to install it) (@INC contains: /etc/perl) at /app/pi.pl line 2.\nBEGIN failed--compilation aborted": {"package of a language", "what the message names"},
		"importlib.metadata.PackageNotFoundError: No package metadata was found for bitsandbytes":                                                               {"package of a language", "what the message names"},
		"Exception in thread \"main\" java.lang.IllegalStateException: integer 2200000163 does not fit in 'int'":                                                {"size of a message", "in parts"},
		"OverflowError: integer 2200000163 does not fit in 'int'":                                                                                               {"size of a message", "in parts"},
		"Could not override 'optim.lrr'.\nTo append to your config use +optim.lrr=0.1\nKey 'lrr' is not in struct":                                              {"configuration key", "Correct the key"},
		"omegaconf.errors.ConfigAttributeError: Key 'lrr' is not in struct":                                                                                     {"configuration key", "Correct the key"},
		"wandb.errors.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])":                                                 {"login of W&B", "Set the key"},
		"_tkinter.TclError: no display name and no $DISPLAY environment variable":                                                                               {"display", "no display"},
		"qt.qpa.xcb: could not connect to display ":                                                                                                             {"display", "no display"},
		"fatal: destination path 'repo' already exists and is not an empty directory.":                                                                          {"clone", "cloned it already"},
		"NameError: name 'null' is not defined":                                                                                                                 {"notebook", "notebook"},
		"/bin/sh: 1: /usr/bin/python3: Argument list too long":                                                                                                  {"size of the command", "too large"},
		"Usage: train.py [OPTIONS]\nTry 'train.py --help' for help.\n\nError: No such option: --epoch Did you mean --epochs?":                                   {"arguments", "Correct the arguments"},
		"FATAL Flags parsing error:\n  Unknown command line flag 'epoch'. Did you mean: epochs ?":                                                               {"arguments", "Correct the arguments"},
		"Traceback (most recent call last):\n  File \"/app/a.py\", line 8, in <module>\nrequests.exceptions.InvalidHeader: Invalid leading whitespace, reserved character(s), or return character(s) in header value: 'Bearer ****\\n'": {"blank at the end", "ends with a line end"},
		"ValueError: Invalid header value b'Bearer ****\\n'":                                     {"blank at the end", "ends with a line end"},
		"sudo: The \"no new privileges\" flag is set, which prevents sudo from running as root.": {"root", "in the image"},
		"E: Could not open lock file /var/lib/apt/lists/lock - open (13: Permission denied)":     {"root", "in the image"},
		"thread 'main' panicked at src/main.rs:12:44:\ncalled `Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: \"No such file or directory\" }\nnote: run with `RUST_BACKTRACE=1`": {"file", "Check the path"},
		"panic: open /data/in.nc: no such file or directory": {"", "an error of the program itself"},
		"Traceback (most recent call last):\n  File \"/app/io.py\", line 6, in <module>\n    f = MPI.File.Open(comm, '/results/out.bin', MPI.MODE_RDONLY)\n  File \"mpi4py/MPI/File.pyx\", line 98, in mpi4py.MPI.File.Open\nmpi4py.MPI.Exception: MPI_ERR_NO_SUCH_FILE: no such file or directory": {"file", "Check the path of /results/out.bin"},
		// GPUs and their drivers.
		"RuntimeError: The NVIDIA driver on your system is too old (found version 11040).":                                                 {"GPU driver", "older than the CUDA of the image"},
		"RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW":     {"GPU driver", "remove /usr/local/cuda/compat"},
		"RuntimeError: CUDA error: uncorrectable ECC error encountered":                                                                    {"broken GPU", "Report the node"},
		"Failed to initialize NVML: Driver/library version mismatch":                                                                       {"broken GPU", "on other nodes"},
		"RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized":                                  {"broken GPU", "on other nodes"},
		"RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version":                                           {"GPU driver", "Request a GPU"},
		"RuntimeError: NCCL error in: ../torch/csrc/ProcessGroupNCCL.cpp:825, unhandled cuda error (run with NCCL_DEBUG=INFO for details)": {"NCCL and CUDA", "the GPU of its local rank"},
		"tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:":                                           {"memory", "Allocate less at once"},
		"tensorflow.python.framework.errors_impl.ResourceExhaustedError: /results/model.index; No space left on device":                    {"space", "Write less"},
		// Services.
		"botocore.exceptions.ClientError: An error occurred (403) when calling the HeadObject operation: Forbidden": {"credentials", "Check the credentials"},
		"PermissionError: Forbidden":     {"credentials", "Check the credentials"},
		"PermissionError: Access Denied": {"credentials", "Check the credentials"},
		"OSError: When getting information for key 'a' in bucket 'b': AWS Error ACCESS_DENIED during HeadObject operation: No response body.": {"credentials", "Check the credentials"},
		"botocore.exceptions.PartialCredentialsError: Partial credentials found in env, missing: AWS_SECRET_ACCESS_KEY":                       {"credentials", "Check the credentials"},
		"FileNotFoundError: The specified bucket does not exist":                                                                              {"no such object", "does not exist"},
		"botocore.exceptions.NoRegionError: You must specify a region.":                                                                       {"region", "Set the region"},
		"ValueError: Invalid endpoint: minio:9000":                                                                                            {"endpoint", "https:// before the server's name"},
		"google.auth.exceptions.DefaultCredentialsError: Your default credentials were not found.":                                            {"Google's credentials", "key of a service account"},
		"ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1007)":     {"expired certificate", "to renew it"},
		"curl: (60) SSL: no alternative certificate subject name matches target host name '10.0.0.7'":                                         {"certificate name", "that its certificate contains"},
		"requests.exceptions.SSLError: HTTPSConnectionPool(host='minio.corp', port=443): Max retries exceeded with url: / (Caused by SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1007)')))": {"expired certificate", "to renew it"},
		"License server machine is down or not responding.\n See the system administrator about starting the license server system.\n FLEXnet Licensing error:-96,491.":                                                                                                           {"license", "Name the license server"},
		"FLEXnet Licensing error: -15,570. System Error: 115":       {"license", "If jobs are isolated"},
		"Failed to check out license feature cfd_solve_level1":      {"license", "or with fewer ranks"},
		"Fatal: Licensed number of users already reached. (-4,132)": {"license", "or with fewer ranks"},
		// The shell, rights, and what is installed.
		"run.sh: line 3: ulimit: stack size: cannot modify limit: Operation not permitted":                                                      {"ulimit", "the highest value"},
		"sh: 1: ulimit: error setting limit (Operation not permitted)":                                                                          {"ulimit", "or let it fail"},
		"PermissionError: [Errno 1] Operation not permitted":                                                                                    {"privilege", "raise a priority"},
		"PermissionError: [Errno 1] Operation not permitted: '/data/x'":                                                                         {"privilege", "change the owner"},
		"PermissionError: [Errno 13] error while attempting to bind on address ('0.0.0.0', 80): permission denied":                              {"low port", "from 1024 on"},
		"error: Bind to port 22 on 0.0.0.0 failed: Permission denied.":                                                                          {"low port", "Let the agent start the ranks"},
		"[1764353000.1] [pi-worker-0:42   :0]  mm_posix.c:195  UCX  ERROR open(file_name=/proc/2117/fd/28 flags=0x0) failed: Permission denied": {"UCX", "by its name"},
		"ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/usr/local/lib/python3.11/site-packages/x'":        {"installation", "Or install them into a folder"},
		"CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.":                                            {"conda", "conda's functions"},
		"CondaError: Run 'conda init' before 'conda activate'":                                                                                  {"conda", "without activating it"},
		"sh: 1: set: Illegal option -o pipefail":                                                                                                {"bash in sh", "Run the script by bash"},
		"/work/run.sh: 3: Bad substitution":                                                                                                     {"bash in sh", "Run the script by bash"},
		"/work/run.sh: 3: Syntax error: \"(\" unexpected":                                                                                       {"bash in sh", "Run the script by bash"},
		"/work/run.sh: 3: Syntax error: redirection unexpected":                                                                                 {"bash in sh", "Run the script by bash"},
		"/work/run.sh: line 9: syntax error: unexpected end of file":                                                                            {"script", "Correct the shell script"},
		"/work/run.sh: line 9: warning: here-document at line 3 delimited by end-of-file (wanted `EOF')":                                        {"here document", "the end mark"},
		// Programs in Fortran and C.
		"Intel MKL FATAL ERROR: Cannot load libmkl_avx2.so or libmkl_def.so.":                                                    {"MKL", "MKL does not find its own libraries"},
		" %%%%%%%%\n     Error in routine read_namelists (2):\n      bad line in namelist &system: \"  ecutwf = 30\"\n %%%%%%%%": {"namelist", "Correct the namelist"},
		"At line 3 of file a.f90 (unit = 10)\nFortran runtime error: Cannot match namelist object name foo":                      {"namelist", "Correct the namelist"},
		"forrtl: severe (19): invalid reference to variable in NAMELIST input, unit 10, file /data/in.nml":                       {"namelist", "Correct the namelist"},
		"forrtl: severe (9): permission to access file denied, unit 10, file /results/out.dat":                                   {"permission", "If /results/out.dat is on a volume"},
		"forrtl: severe (38): error during write, unit 10, file /results/out.dat":                                                {"space", "Write less"},
		"forrtl: severe (41): insufficient virtual memory":                                                                       {"memory", "Allocate less at once"},
		"forrtl: severe (408): fort: (2): Subscript #1 of the array A has value 11 which is greater than the upper bound of 10":  {"length", "over 8 ranks"},
		"Fortran runtime error: Index '11' of dimension 1 of array 'a' above upper bound of 10":                                  {"length", "over 8 ranks"},
		"Operating system error: Cannot allocate memory\nAllocation would exceed memory limit":                                   {"memory", "Allocate less at once"},
		"ERROR STOP mesh is empty": {"", "This is an error of the program itself:"},
		"[0]PETSC ERROR: --------------------- Error Message --------------------------\n[0]PETSC ERROR: Out of memory. This could be due to allocating":                {"memory", "Allocate less at once"},
		"libgomp: Thread creation failed: Resource temporarily unavailable":                                                                                             {"threads", "Start fewer threads"},
		"OpenBLAS blas_thread_init: pthread_create failed for thread 31 of 64: Resource temporarily unavailable\nTraceback (most recent call last):\nKeyboardInterrupt": {"threads", "Start fewer threads"},
		// Horovod, DeepSpeed and PyTorch.
		"RuntimeError: Error(s) in loading state_dict for Sequential:\n\tMissing key(s) in state_dict: \"0.weight\".":                                                                             {"weights", "save the model within it"},
		"ImportError: Extension horovod.torch has not been built: /opt/hvd/mpi_lib_v2.so not found":                                                                                               {"horovod build", "Install Horovod in the image again"},
		"ValueError: MPI support has not been built.  If this is not expected, ensure MPI is installed":                                                                                           {"horovod build", "Install Horovod in the image again"},
		"horovod.common.exceptions.HorovodVersionMismatchError: Framework torch installed with version 2.1 but found version 2.2.":                                                                {"horovod build", "Install Horovod in the image again"},
		"Exception: horovod does not find an installed MPI.":                                                                                                                                      {"horovod MPI", "in place of horovodrun"},
		"Exception: Timed out waiting for tasks to start. You may need to increase the --start-timeout parameter":                                                                                 {"horovod start", "Or wait longer"},
		"ValueError: Requested to allreduce a tensor with the same name as another tensor that is currently being processed.":                                                                     {"horovod tensor", "Give each tensor a name"},
		"horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception on one of the ranks":                                                         {"another rank", "another rank ended before"},
		"horovod.common.exceptions.HorovodInternalError: Mismatched allreduce tensor shapes: One rank sent a tensor of shape [3, 4], but another rank sent a tensor of shape [2, 4].":             {"horovod tensors", "the same shapes and types"},
		"horovod.common.exceptions.HorovodInternalError: Mismatched data types: One rank had type float32, but another rank had type float64.":                                                    {"horovod tensors", "the same shapes and types"},
		"horovod.common.exceptions.HorovodInternalError: ncclCommInitRank failed: unhandled cuda error":                                                                                           {"NCCL and CUDA", "the GPU of its local rank"},
		"horovod.common.exceptions.HorovodInternalError: [/tmp/third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.244.1.9]:41234":                                     {"another rank", "another rank ended before"},
		"RuntimeError: cannot load MPI library\nlibmpi.so.12: cannot open shared object file: No such file or directory\nlibmpi.so.40: cannot open shared object file: No such file or directory": {"MPI library", "in the path of the loader"},
		"OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.":                                                                                                      {"OpenMP twice", "loads OpenMP twice"},
		"EOFError: Ran out of input": {"cut off", "Delete the file that the program reads"},
		"EOFError: Compressed file ended before the end-of-stream marker was reached":                                                                                                                             {"cut off", "Let rank 0 alone write"},
		"_pickle.UnpicklingError: pickle data was truncated":                                                                                                                                                      {"cut off", "it is cut off"},
		"RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory":                                                                                                          {"cut off", "it is cut off"},
		"safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer":                                                                                                            {"cut off", "it is cut off"},
		"_pickle.UnpicklingError: unpickling stack underflow":                                                                                                                                                     {"array file", "another format"},
		"_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two options, do those steps":                                                                         {"weights only", "If you trust the file"},
		"RuntimeError: launcher 'pdsh' not installed.":                                                                                                                                                            {"deepspeed launcher", "in place of the deepspeed command"},
		"RuntimeError: Using hostfile at /job/hostfile but host=pi-worker-0 was not reachable via ssh.":                                                                                                           {"deepspeed launcher", "in place of the deepspeed command"},
		"ValueError: Hostfile is empty or not formatted correctly, unable to proceed with launching.":                                                                                                             {"deepspeed hosts", "give deepspeed the job's hostfile"},
		"ValueError: No slot '4' specified on host 'pi-worker-0'":                                                                                                                                                 {"deepspeed hosts", "give deepspeed the job's hostfile"},
		"RuntimeError: Unable to proceed, no GPU resources available":                                                                                                                                             {"deepspeed hosts", "uses the GPUs of the workers"},
		"RuntimeError: Unable to JIT load the fused_adam op due to ninja not being installed.":                                                                                                                    {"deepspeed compiler", "devel, not runtime"},
		"op_builder.builder.MissingCUDAException: CUDA_HOME does not exist, unable to compile CUDA op(s)":                                                                                                         {"deepspeed compiler", "devel, not runtime"},
		"op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 12.1 does not match":                                                                                           {"deepspeed build", "the same CUDA version"},
		"AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * 16 != 4 * 1 * 1":                                                                                  {"deepspeed batch", "omit train_batch_size"},
		"deepspeed.runtime.config.DeepSpeedConfigError: tag_validation is not valid":                                                                                                                              {"deepspeed configuration", "Correct the configuration"},
		"ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set":                                                                               {"torch variables", "Set RANK in the program"},
		"torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500":                                                                                    {"torch port", "Let only rank 0"},
		"torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 2/8 clients joined.":                                                                                                  {"torch rendezvous", "Check MASTER_ADDR"},
		"torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (pi-0, 29500).":                                                                            {"torch rendezvous", "Check MASTER_ADDR"},
		"RuntimeError: Distributed package doesn't have MPI built in.":                                                                                                                                            {"torch backend", "Use a backend"},
		"ValueError: Unknown c10d backend type MPI":                                                                                                                                                               {"torch backend", "Use a backend"},
		"*** The MPI_Comm_rank() function was called before MPI_INIT was invoked.\n*** This is disallowed by the MPI standard.":                                                                                   {"MPI not initialized", "Call MPI_Init before"},
		"Attempting to use an MPI routine (internal_Comm_rank) before initializing or after finalizing MPICH":                                                                                                     {"MPI not initialized", "Call MPI_Init before"},
		"Abort(403259397) on node 1 (rank 1 in comm 0): Fatal error in internal_Comm_size: Invalid communicator, error stack:":                                                                                    {"MPI communicator", "the header of another MPI"},
		"Traceback (most recent call last):\n  File \"/app/sweep.py\", line 9, in <module>\n    comm = MPI.COMM_SELF.Spawn(\"work\", maxprocs=8)\nmpi4py.MPI.Exception: MPI_ERR_SPAWN: could not spawn processes": {"spawn", "start fewer processes"},
		"[pi-worker-0:00042] *** An error occurred in MPI_Bcast\n[pi-worker-0:00042] *** reported by process [3398369281,1]\n[pi-worker-0:00042] *** on communicator MPI_COMM_WORLD\n[pi-worker-0:00042] *** MPI_ERR_TRUNCATE: message truncated": {"MPI truncation", "Give MPI_Bcast the same count"},
		"Fatal error in internal_Recv: Message truncated, error stack:":                                                                                              {"MPI truncation", "Make the buffer of the receive at least as long"},
		"[pi-worker-0:00042] *** An error occurred in MPI_Send\n[pi-worker-0:00042] *** MPI_ERR_TYPE: invalid datatype":                                              {"MPI datatype", "before MPI_Send uses it"},
		"Fatal error in PMPI_Send: Invalid datatype, error stack:\nPMPI_Send(112): Datatype has not been committed":                                                  {"MPI datatype", "before MPI_Send uses it"},
		"mpi4py.MPI.Exception: MPI_ERR_TYPE: invalid datatype":                                                                                                       {"MPI datatype", "before a call uses it"},
		"[pi-worker-0:00042] *** MPI_ERR_RANK: invalid rank":                                                                                                         {"MPI rank", "Use a rank of the communicator in this call"},
		"Fatal error in PMPI_Bcast: Invalid root, error stack:":                                                                                                      {"MPI root", "Give MPI_Bcast a root"},
		"[pi-worker-0:00042] *** MPI_ERR_TAG: invalid tag":                                                                                                           {"MPI tag", "Use a tag from 0"},
		"Fatal error in internal_Send: Negative count, error stack:\ninternal_Send(99): Negative count, value is -2":                                                 {"MPI count", "Correct the count of MPI_Send"},
		"Fatal error in internal_Allreduce: Invalid buffer pointer, error stack:\ninternal_Allreduce(9): Buffers must not be aliased":                                {"MPI buffer", "pass MPI_IN_PLACE"},
		"[pi-worker-0:00042] *** MPI_ERR_REQUEST: invalid request":                                                                                                   {"MPI request", "MPI_REQUEST_NULL"},
		"[pi-worker-0:00042] *** MPI_ERR_OP: invalid reduce operation":                                                                                               {"MPI operation", "defined for its datatype"},
		"[pi-worker-0:00042] *** MPI_ERR_IN_STATUS: error code in status":                                                                                            {"MPI status", "the field MPI_ERROR of each status"},
		"[pi-worker-0:00042] *** MPI_ERR_DIMS: invalid topology dimension":                                                                                           {"MPI topology", "their product"},
		"[pi-worker-0:00042] *** MPI_ERR_WIN: invalid window":                                                                                                        {"MPI arguments", "Correct the arguments of this MPI call"},
		"*** The MPI_Reduce() function was called after MPI_FINALIZE was invoked.\n*** This is disallowed by the MPI standard.":                                      {"MPI finalized", "Call MPI_Reduce before MPI_Finalize"},
		"preparing\nmpirun does not support recursive calls":                                                                                                         {"launcher in a rank", "Call mpirun once"},
		"OSError: [Errno 98] Address already in use File \"/usr/lib/python3/dist-packages/mpi4py/run.py\", line 198, in main\nOSError: [Errno 17] File exists: '/a'": {"exists", "create /a"},
		"[mpiexec@pi-launcher] APPLICATION TIMED OUT, TIMEOUT = 60s":                                                                                                 {"time limit", "Remove the time limit"},
	}
	maps.Copy(cases, exceptionCases)
	maps.Copy(cases, inputCases)
	maps.Copy(cases, callCases)
	maps.Copy(cases, gpuCases)
	for log, want := range cases {
		tried[want.kind] = true
		found := failed(1, log).findings()
		if len(found) == 0 || found[0].Code != codes.ApplicationFailed || !slices.ContainsFunc(found[0].Remedies, func(r v1alpha1.Remedy) bool { return strings.Contains(r.Text, want.remedy) }) {
			t.Errorf("%q: found %+v", log, found)
			continue
		}
		// The line is known.
		if slices.ContainsFunc(found[0].Remedies, func(r v1alpha1.Remedy) bool { return strings.Contains(r.Text, "Read its output") }) {
			t.Errorf("%q: remedies are %+v", log, found[0].Remedies)
		}
		for _, f := range found {
			sound(t, f)
		}
	}
	for _, kind := range codes.OwnErrors {
		if !tried[kind.Name] {
			t.Errorf("no error of the kind %q was tried", kind.Name)
		}
	}
}

// TestTracebacksWithinEachOther: the call in the program's own file is found although another rank's traceback begins before its source.
func TestTracebacksWithinEachOther(t *testing.T) {
	t.Parallel()
	const header, own = "Traceback (most recent call last):\n", "  File \"/code/train.py\", line 3, in <module>\n"
	const rest = "    config = json.load(open(\"/code/config.json\"))\n             ^^^^^\n  File \"/usr/lib/python3.11/json/decoder.py\", line 353, in raw_decode\n    obj, end = self.scan_once(s, idx)\n" +
		"json.decoder.JSONDecodeError: Expecting value: line 1 column 2 (char 1)\n"
	for name, log := range map[string]string{"one after the other": header + own + rest + header + own + rest, "within each other": header + own + header + rest + own + rest} {
		found := failed(1, log).findings()
		if len(found) == 0 || !strings.Contains(found[0].Summary, "(train.py, line 3)") || !strings.HasPrefix(found[0].Remedies[0].Text, "Check /code/config.json:") {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// TestScriptThatMayNotBeExecuted: the exit code of the shell tells it from a file that may not be written.
func TestScriptThatMayNotBeExecuted(t *testing.T) {
	t.Parallel()
	for code, want := range map[int32]string{126: "Start ./run.sh by its interpreter", 2: "Write to a folder"} {
		found := failed(code, "sh: 1: ./run.sh: Permission denied").findings()
		if len(found) == 0 || len(found[0].Remedies) == 0 || !strings.HasPrefix(found[0].Remedies[0].Text, want) {
			t.Errorf("exit code %d: found %+v", code, found)
		}
	}
}

// TestOwnCauses: remedies name what in the job itself causes the error of a program.
func TestOwnCauses(t *testing.T) {
	t.Parallel()
	secret := func(mode int32, group *int64) func(*scene) {
		return func(s *scene) {
			for _, template := range []*corev1.PodTemplateSpec{&s.job.Launcher.Template, &s.job.Workers.Template} {
				template.Spec.Volumes = []corev1.Volume{{Name: "login", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s3", DefaultMode: &mode}}}}
				template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "login", MountPath: "/etc/login"}}
				if group != nil {
					template.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: group}
				}
			}
		}
	}
	isolated := func(s *scene) {
		s.seen.Isolation = &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "pi"}}
	}
	mounted := func(source corev1.VolumeSource) func(*scene) {
		return func(s *scene) {
			for _, template := range []*corev1.PodTemplateSpec{&s.job.Launcher.Template, &s.job.Workers.Template} {
				template.Spec.Volumes = []corev1.Volume{{Name: "conf", VolumeSource: source}}
				template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "conf", MountPath: "/conf/"}}
			}
		}
	}
	const denied = "PermissionError: [Errno 13] Permission denied: '/etc/login/key'"
	for name, test := range map[string]struct {
		log    string
		change func(*scene)
		want   string
	}{
		"a secret that its owner alone reads":   {denied, secret(0o400, nil), "/etc/login/key is on volume login, Secret s3 with defaultMode 0400, without fsGroup."},
		"a secret of a group without read mode": {denied, secret(0o400, new(int64(7))), "Secret s3 with defaultMode 0400, with fsGroup 7."},
		"a secret that all may read":            {denied, secret(0o444, nil), "give its group access"},
		"a variable of the launcher": {"KeyError: 'DATA_DIR'", func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "DATA_DIR"}}
		}, "Set DATA_DIR in the workers as well"},
		"a folder of the launcher": {"FileNotFoundError: [Errno 2] No such file or directory: '/tmp/results/rank-0.csv'", func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"bash", "-c", "mkdir -p /tmp/results && mpirun python3 mc.py"}
		}, "Make /tmp/results where the ranks run"},
		"a folder that each pod has": {"FileNotFoundError: [Errno 2] No such file or directory: '/tmp/train.csv'", func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "python3", "train.py"}
		}, "each pod has its own /tmp"},
		"a folder of an init container": {"FileNotFoundError: [Errno 2] No such file or directory: '/tmp/data/train.csv'", func(s *scene) {
			s.job.Workers.Template.Spec.InitContainers = []corev1.Container{{Name: "download", Command: []string{"sh", "-c", "mkdir -p /tmp/data && seq 1 1000 > /tmp/data/train.csv"}}}
		}, "Mount one emptyDir at /tmp/data in init container download and in the container of the ranks"},
		"a token": {"FileNotFoundError: [Errno 2] No such file or directory: '/var/run/secrets/kubernetes.io/serviceaccount/token'", func(*scene) {}, "pods of jobs have no token by default"},
		"a token of a TrainJob": {"FileNotFoundError: [Errno 2] No such file or directory: '/var/run/secrets/kubernetes.io/serviceaccount/token'", func(s *scene) {
			s.job.Kind = mpi.KindTrainJob
			s.job.Recorded.Finish = &mpi.Finish{Reason: "Failed", At: mpitest.Now}
		}, "A patch that names the account mounts it."},
		"what pickle read":            {"_pickle.UnpicklingError: invalid load key, 'v'.", func(*scene) {}, "Check the file that the program reads:"},
		"a file that the call opens":  {"Traceback (most recent call last):\n  File \"/app/train.py\", line 9, in <module>\n    model = pickle.load(open(\"/app/model.pkl\", \"rb\"))\n            ^^^^^^\n_pickle.UnpicklingError: invalid load key, 'v'.", func(*scene) {}, "Check /app/model.pkl:"},
		"a file that the error names": {"PIL.UnidentifiedImageError: cannot identify image file '/data/1.png'", func(*scene) {}, "Check /data/1.png:"},
		"a dash of a document": {"train.py: error: unrecognized arguments: \u2013\u2013epochs 3", func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "python3", "train.py", "\u2013\u2013epochs", "3"}
		}, "\u2013\u2013epochs was copied from a document"},
		"a small volume": {"OSError: [Errno 28] No space left on device", func(s *scene) {
			s.job.Workers.Template.Spec.Volumes = []corev1.Volume{
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("16Mi"))}}},
				{Name: "other", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			}
		}, "volume scratch, an emptyDir of 16Mi in each pod"},
		"a variable of none": {"KeyError: 'DATA_DIR'", func(*scene) {}, "If DATA_DIR is an environment variable, set it: no pod template sets DATA_DIR."},
		"a variable of none, among others": {"[1,1]<stderr>:Traceback (most recent call last):\n[1,1]<stderr>:  File \"/app/a.py\", line 5, in <module>\n[1,1]<stderr>:    data = os.environ[\"DATA_DIR\"]\n[1,1]<stderr>:           ~~~~~~~~~~^^^^^^^^^^^^\n[1,1]<stderr>:  File \"<frozen os>\", line 679, in __getitem__\n[1,1]<stderr>:KeyError: 'DATA_DIR'", func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OMP_NUM_THREADS", Value: "1"}}
		}, "Set DATA_DIR: no pod template sets DATA_DIR, and that of the worker sets only OMP_NUM_THREADS."},
		"a variable that os.environ lacks":  {"Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n  File \"<frozen os>\", line 679, in __getitem__\nKeyError: 'DATA'", func(*scene) {}, "Set DATA: no pod template"},
		"a variable that a program reports": {"RuntimeError: DATA_DIR is not set", func(*scene) {}, "If DATA_DIR is an environment variable, set it: no pod template"},
		"a variable that a program names":   {"RuntimeError: environment variable 'data_dir' is not defined", func(*scene) {}, "Set data_dir: no pod template"},
		"a variable that a script requires": {"run.sh: line 3: DATA_DIR: parameter null or not set", func(*scene) {}, "Set DATA_DIR: no pod template"},
		"a variable that an object may set": {"[1,1]<stderr>:KeyError: 'DATA_DIR'", func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{}}
		}, "If DATA_DIR is an environment variable, set it in both pod templates."},
		"a variable of the launcher's script": {"[1,1]<stderr>:KeyError: 'DATA_DIR'", func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"sh", "-c", "export DATA_DIR=/data; mpirun train"}
		}, "Let mpirun pass DATA_DIR on"},
		"a reference to a later variable": {"[1,1]<stderr>:FileNotFoundError: [Errno 2] No such file or directory: '$(DATA_DIR)/train.txt'", func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TRAIN_FILE", Value: "$(DATA_DIR)/train.txt"}, {Name: "DATA_DIR", Value: "/data"}}
		}, "Move DATA_DIR before TRAIN_FILE in the list env"},
		"a name that a proxy has": {"[1,1]<stderr>:urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>", func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "http_proxy", Value: "http://me:secret@proxy.corp.example:3128"}}
		}, "Check proxy.corp.example, the proxy that http_proxy names"},
		"a name of no request": {"Traceback (most recent call last):\n  File \"/a.py\", line 1, in <module>\nsocket.gaierror: [Errno -2] Name or service not known", func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "http_proxy", Value: "http://proxy.corp.example:3128"}}
		}, "Correct the host's name"},
		"a sum that only the root has": {"[1,1]<stderr>:ZeroDivisionError: float division by zero", func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "python3", "-c", "lib.MPI_Reduce(a, b)\nprint(1 / b)"}
		}, "call MPI_Allreduce in its place"},
		"a sum of rank 0": {"[1,0]<stderr>:ZeroDivisionError: float division by zero", func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "python3", "-c", "lib.MPI_Reduce(a, b)\nprint(1 / b)"}
		}, "Check how the program divides"},
		"a file of a sidecar": {"[1,1]<stderr>:FileNotFoundError: [Errno 2] No such file or directory: '/conf/train.txt'", func(s *scene) {
			mounted(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})(s)
			s.job.Workers.Template.Spec.InitContainers = []corev1.Container{
				{Name: "check", VolumeMounts: []corev1.VolumeMount{{Name: "conf", MountPath: "/conf"}}},
				{Name: "fetch", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), VolumeMounts: []corev1.VolumeMount{{Name: "conf", MountPath: "/x"}}},
			}
		}, "If init container fetch writes /conf/train.txt and then ends, remove its restartPolicy: Always."},
		"a file of another container": {"[1,1]<stderr>:FileNotFoundError: [Errno 2] No such file or directory: '/conf/train.txt'", func(s *scene) {
			mounted(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})(s)
			spec := &s.job.Workers.Template.Spec
			spec.Containers = append(spec.Containers, corev1.Container{Name: "sync", VolumeMounts: []corev1.VolumeMount{{Name: "conf", MountPath: "/x"}}})
		}, "If container sync writes /conf/train.txt, do that in an init container"},
		"a misspelled variable of Open MPI":     {"/scripts/run.sh: line 4: OMPI_COMM_WORLD_LOCALRANK: unbound variable", func(*scene) {}, "Write OMPI_COMM_WORLD_LOCAL_RANK in place of OMPI_COMM_WORLD_LOCALRANK: Open MPI sets"},
		"a variable of Open MPI without a word": {"KeyError: 'OMPI_LOCAL_RANK'", func(*scene) {}, "Write OMPI_COMM_WORLD_LOCAL_RANK in place of OMPI_LOCAL_RANK"},
		"a misspelled variable of MPICH":        {"KeyError: 'MPI_LOCAL_RANKID'", func(s *scene) { mpich(&s.job) }, "Write MPI_LOCALRANKID in place of MPI_LOCAL_RANKID: MPICH sets"},
		"a variable of another MPI":             {"KeyError: 'OMPI_COMM_WORLD_LOCALRANK'", func(s *scene) { mpich(&s.job) }, "Only Open MPI sets"},
		"a misspelled variable of the job": {"KeyError: 'DATADIR'", func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "DATA_DIR", Value: "/data"}}
		}, "Write DATA_DIR in place of DATADIR, if that is meant"},
		"a misspelled variable of the command": {"KeyError: 'LEARNING_RAET'", func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "-x", "LEARNING_RATE=0.1", "train"}
		}, "Write LEARNING_RATE in place of LEARNING_RAET"},
		"an argument that nothing replaced": {"ValueError: invalid literal for int() with base 10: '$STEPS'", func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "train", "$SEED", "$STEPS"}
		}, "Write $(STEPS), which Kubernetes replaces"},
		"an argument in an error of no kind": {"ValueError: no data set of the name ${DATA}", func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "train", "${DATA}"}
		}, "Write $(DATA), which Kubernetes replaces"},
		"an argument of a shell": {"ValueError: invalid literal for int() with base 10: '$STEPS'", func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"sh", "-c", "mpirun train '$STEPS'"}
		}, "Check the data, arguments and variables"},
		"fewer devices than ranks": {"IndexError: list index out of range", func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CUDA_VISIBLE_DEVICES", Value: "0"}}
		}, "Remove CUDA_VISIBLE_DEVICES=0, or list as many devices as a pod has ranks: it shows 1 device to 2 ranks"},
		"as many devices as ranks": {"IndexError: list index out of range", func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CUDA_VISIBLE_DEVICES", Value: "0,1"}}
		}, "Check how the program divides its data"},
		"the job's policy":             {"requests.exceptions.ConnectionError: HTTPConnectionPool(host='data.example', port=80): Max retries exceeded with url: /x", isolated, "connect to data.example:80 (http://data.example/x). NetworkPolicy pi isolates it"},
		"the job's policy, curl":       {"+ curl -f http://data.example/x\ncurl: (28) Failed to connect to data.example port 80 after 129 ms: Couldn't connect to server", isolated, "connect to http://data.example/x. NetworkPolicy pi"},
		"the job's policy, a time-out": {"Traceback (most recent call last):\n  File \"/app/a.py\", line 6, in <module>\n    db = socket.create_connection((\"203.0.113.9\", 5432), timeout=10)\n         ^^^^^^^^\n  File \"/usr/lib/python3.11/socket.py\", line 851, in create_connection\n    raise exceptions[0]\nTimeoutError: timed out", isolated, "connect to 203.0.113.9:5432. NetworkPolicy pi isolates it"},
		"the job's policy, libpq":      {`psycopg2.OperationalError: connection to server at "db.corp" (10.0.0.3), port 5432 failed: timeout expired`, isolated, "connect to db.corp:5432."},
		"the job's policy, the agent":  {"mpi-agent: no progress: the only rank is idle, since 10:00:00 UTC; blocked: 0; pi-worker-0 gets no answer from 10.0.0.7:80\nTimeoutError: timed out", isolated, "connect to 10.0.0.7:80."},
		"the job's policy, MySQL":      {`pymysql.err.OperationalError: (2003, "Can't connect to MySQL server on 'db.corp' (timed out)")`, isolated, "connect to db.corp. NetworkPolicy pi"},
		"the job's policy, MongoDB":    {"pymongo.errors.ServerSelectionTimeoutError: mongo.corp:27017: timed out (configured timeouts: connectTimeoutMS: 20000.0ms)", isolated, "connect to mongo.corp:27017."},
		"the job's policy, Redis":      {"redis.exceptions.TimeoutError: Error 110 connecting to redis.corp:6379. Connection timed out.", isolated, "connect to redis.corp:6379."},
		"the job's policy, Go":         {"Error: migrate at 12:30: dial tcp 10.0.0.7:5432: i/o timeout", isolated, "connect to 10.0.0.7:5432."},
		"the job's policy, gRPC":       {"grpc._channel.RpcError: failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.7:8080: connection attempt timed out before receiving SETTINGS frame", isolated, "connect to 10.0.0.7:8080."},
		"the job's policy, aiohttp":    {"aiohttp.client_exceptions.ConnectionTimeoutError: Connection timeout to host http://api.corp:81/x", isolated, "connect to http://api.corp:81/x."},
		"the job's policy, no address": {"redis.exceptions.TimeoutError: Timeout connecting to server", isolated, "connect to this address."},
		"a database that refuses":      {`psycopg2.OperationalError: connection to server at "db.corp" (10.0.0.3), port 5432 failed: Connection refused`, isolated, "a program listens at db.corp:5432,"},
		"a program that refuses":       {"ConnectionRefusedError: [Errno 111] Connection refused", isolated, "If the address is localhost, it is each pod itself."},
		"a file on a ConfigMap that is written": {"OSError: [Errno 30] Read-only file system: '/conf/log.txt'", mounted(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
		}}), "Write /conf/log.txt elsewhere: it is on volume conf (ConfigMap settings)"},
		"a file that a ConfigMap lacks": {"FileNotFoundError: [Errno 2] No such file or directory: '/conf/settings.json'", mounted(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
		}}), "Check the keys of ConfigMap settings, which are the files in /conf: the pod had no settings.json there"},
		"a file that a claim lacks": {"FileNotFoundError: [Errno 2] No such file or directory: '/conf/a/settings.json'", mounted(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
			ClaimName: "data",
		}}), "Check the path of /conf/a/settings.json: it is on volume conf (claim data), which is mounted at /conf."},
		"a Python elsewhere": {pythonElsewhere, func(s *scene) {
			s.job.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PYTHONHOME", Value: "/opt/py"}}
		}, "Remove PYTHONHOME. It is /opt/py, where Python does not find its own library. The pod template of the worker sets it."},
		"a Python elsewhere by the image":    {pythonElsewhere, func(*scene) {}, "Remove PYTHONHOME. It is /opt/py, where Python does not find its own library. The command, the image or"},
		"the job's policy, a license server": {"License server machine is down or not responding.", isolated, "NetworkPolicy pi isolates the job"},
		"memory of JAX without GPUs": {"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 40000000000 bytes.", func(s *scene) {
			delete(s.job.Workers.Template.Spec.Containers[0].Resources.Limits, "nvidia.com/gpu")
		}, "Allocate less at once"},
		"a driver that is too old":              {"[1,1]<stderr>:RuntimeError: CUDA driver version is insufficient for CUDA runtime version", func(*scene) {}, "The driver of the node's GPUs is older"},
		"a job without its policy":              {"curl: (28) Failed to connect to data.example port 80 after 129 ms: Couldn't connect to server", func(*scene) {}, "If jobs are isolated"},
		"a name that is unknown, with a policy": {"+ curl -f http://data/x\ncurl: (6) Could not resolve host: data", isolated, "Correct the host's name data, or create its Service"},
		"a folder in place of a key": {"IsADirectoryError: [Errno 21] Is a directory: '/etc/train/config.json'", func(s *scene) {
			spec := &s.job.Workers.Template.Spec
			spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "tft-config"}}}}}
			spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/etc/train/config.json", SubPath: "config.json"}}
		}, "Correct subPath config.json: ConfigMap tft-config has no such key"},
	} {
		found := failed(1, test.log).with(test.change).findings()
		if len(found) == 0 || !slices.ContainsFunc(found[0].Remedies, func(r v1alpha1.Remedy) bool { return strings.Contains(r.Text, test.want) }) {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// pythonElsewhere is what Python prints if it does not find its library (3.11), tagged by mpirun.
const pythonElsewhere = `[1,1]<stderr>:Could not find platform independent libraries <prefix>
[1,1]<stderr>:Python path configuration:
[1,1]<stderr>:  PYTHONHOME = '/opt/py'
[1,1]<stderr>:  PYTHONPATH = (not set)
[1,1]<stderr>:  program name = 'python3'
[1,1]<stderr>:Fatal Python error: init_fs_encoding: failed to get the Python codec of the filesystem encoding
[1,1]<stderr>:Python runtime state: core initialized
[1,1]<stderr>:ModuleNotFoundError: No module named 'encodings'
[1,1]<stderr>:
[1,1]<stderr>:Current thread 0x00007f1c2a3b4c40 (most recent call first):
[1,1]<stderr>:  <no Python frame>`

// TestLimitsOfTheCommand: a limit that the job's own command sets is named if the error is about it.
func TestLimitsOfTheCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		command []string
		log     string
		code    int32
		// want is the limit that is named, or "".
		want string
	}{
		"files":                      {[]string{"sh", "-c", "ulimit -n 16 && mpirun -n 8 python train.py"}, "OSError: [Errno 24] Too many open files: '/data/1'", 1, "ulimit -n 16"},
		"files, by options":          {[]string{"bash", "-c", "ulimit -S -n $FILES; mpirun train"}, "OSError: [Errno 24] Too many open files: '/data/1'", 1, "ulimit -S -n $FILES"},
		"memory":                     {[]string{"mpirun", "-n", "8", "bash", "-c", "ulimit -v 200000; exec python train.py"}, "MemoryError", 1, "ulimit -v 200000"},
		"memory of a library":        {[]string{"sh", "-c", "ulimit -Sd 20000; train"}, "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc", 134, "ulimit -Sd 20000"},
		"processes":                  {[]string{"sh", "-c", "ulimit -u 10\nmpirun train"}, "RuntimeError: can't start new thread", 1, "ulimit -u 10"},
		"the size of files":          {[]string{"sh", "-c", "ulimit -f 10; train"}, "OSError: [Errno 27] File too large", 1, "ulimit -f 10"},
		"the size of files, default": {[]string{"sh", "-c", "ulimit 10; train"}, "", 128 + 25, "ulimit 10"},
		"stack":                      {[]string{"sh", "-c", "ulimit -s 64; mpirun train"}, "", 139, "ulimit -s 64"},
		"no limit":                   {[]string{"sh", "-c", "ulimit -n unlimited; mpirun train"}, "OSError: [Errno 24] Too many open files: '/data/1'", 1, ""},
		"no core dumps":              {[]string{"sh", "-c", "ulimit -c 0; mpirun train"}, "OSError: [Errno 24] Too many open files: '/data/1'", 1, ""},
		"another error":              {[]string{"sh", "-c", "ulimit -n 16; mpirun train"}, "ValueError: shard 2 has no rows", 1, ""},
	} {
		found := failed(test.code, test.log, func(j *mpi.Job) { j.Launcher.Template.Spec.Containers[0].Command = test.command }).findings()
		if len(found) == 0 || len(found[0].Remedies) == 0 {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		want := "The command of the launcher sets this limit: " + test.want + ". Raise or remove it."
		if test.want != "" && found[0].Remedies[0].Text != want || test.want == "" && strings.Contains(found[0].Remedies[0].Text, "sets this limit") {
			t.Errorf("%s: the remedies are %+v, want %q first", name, found[0].Remedies, test.want)
		}
		sound(t, found[0])
	}
}

// TestRanksOfExceptions: the rank that an exception ended is named by what MPI's launcher prints, if no agent saw its end and lines
// have no tags.
func TestRanksOfExceptions(t *testing.T) {
	t.Parallel()
	const traceback = `Traceback (most recent call last):
  File "/app/train.py", line 4, in <module>
    rows = open("/data/names.csv").read()
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "<frozen codecs>", line 322, in decode
UnicodeDecodeError: 'utf-8' codec can't decode byte 0xe9 in position 3: invalid continuation byte
`
	oneSlot := func(j *mpi.Job) { j.SlotsPerWorker = 1 }
	for name, test := range map[string]struct {
		end    string
		change []func(*mpi.Job)
		pod    string
	}{
		"Open MPI 4": {"--------------------------------------------------------------------------\nmpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n  Process name: [[47513,1],2]\n  Exit code:    1\n--------------------------------------------------------------------------", nil, "pi-worker-1"},
		"Open MPI 5": {"--------------------------------------------------------------------------\nprterun detected that one or more processes exited with non-zero status,\nthus causing the job to be terminated. The first process to do so was:\n\n   Process name: [prterun-pi-launcher-1@1,2]\n   Exit code:    1\n--------------------------------------------------------------------------", nil, "pi-worker-1"},
		"Intel MPI":  {"===================================================================================\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 2 PID 57 RUNNING AT pi-worker-1\n=   EXIT STATUS: 1\n===================================================================================", []func(*mpi.Job){intelMPI}, "pi-worker-1"},
		"MPICH":      {"===================================================================================\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 57 RUNNING AT pi-worker-2\n=   EXIT CODE: 1\n=   CLEANING UP REMAINING PROCESSES\n=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES\n===================================================================================", []func(*mpi.Job){mpich, oneSlot}, "pi-worker-2"},
	} {
		found := failed(1, traceback+test.end, test.change...).findings()
		if len(found) == 0 || found[0].Code != codes.ApplicationFailed || found[0].Rank == nil || *found[0].Rank != 2 || found[0].Pod != test.pod ||
			!strings.Contains(found[0].Summary, "UnicodeDecodeError") || !strings.Contains(found[0].Summary, "rank 2") || !strings.Contains(found[0].Remedies[0].Text, "Name the encoding of /data/names.csv") {
			t.Errorf("%s: found %+v", name, found)
		}
	}
	// Two ranks are on the host, or the process was killed: none is named.
	for name, test := range map[string]struct {
		code  string
		slots int32
	}{"two slots": {"1", 2}, "killed by Hydra": {"9", 1}} {
		end := "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 57 RUNNING AT pi-worker-2\n=   EXIT CODE: " + test.code
		for _, f := range failed(1, traceback+end, mpich, func(j *mpi.Job) { j.SlotsPerWorker = test.slots }).findings() {
			if f.Rank != nil && f.Code == codes.ApplicationFailed {
				t.Errorf("%s: found rank %d: %+v", name, *f.Rank, f)
			}
		}
	}
}

// TestFileOfTheLauncher: a file that a rank does not find is on a volume that only the launcher mounts.
func TestFileOfTheLauncher(t *testing.T) {
	t.Parallel()
	mount := func(template *corev1.PodTemplateSpec, at string) {
		template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "code", MountPath: at}}
	}
	const log = "[1,1]<stderr>:python3: can't open file '/work/src/train.py': [Errno 2] No such file or directory"
	for name, test := range map[string]struct {
		change func(*mpi.Job)
		want   string
	}{
		"only the launcher mounts it": {func(j *mpi.Job) { mount(&j.Launcher.Template, "/work/") }, "Mount volume code in the workers as well: /work/src/train.py is on it"},
		"both mount it":               {func(j *mpi.Job) { mount(&j.Launcher.Template, "/work"); mount(&j.Workers.Template, "/work/src") }, "Check the path of /work/src/train.py: it is on volume code, which is mounted at /work/src."},
		"it is beside the volume":     {func(j *mpi.Job) { mount(&j.Launcher.Template, "/work/s") }, "Check the path of /work/src/train.py."},
	} {
		found := failed(2, log, test.change).findings()
		if len(found) == 0 || len(found[0].Remedies) == 0 || !strings.Contains(found[0].Remedies[0].Text, test.want) {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// TestOthersThatMPIEnded: it is said that MPI ended other ranks only if ranks were started.
func TestOthersThatMPIEnded(t *testing.T) {
	t.Parallel()
	const ended = "MPI then ended all other ranks."
	for name, test := range map[string]struct {
		scene scene
		want  bool
	}{
		"no MPI":                {failed(1, "ValueError: no"), false},
		"mpirun reports it":     {failed(1, "ValueError: no\n--------------------------------------------------------------------------\nPrimary job  terminated normally, but 1 process returned"), true},
		"a rank is known":       {failed(1, "[1,1]<stderr>:ValueError: no"), true},
		"the agent saw no rank": {failed(1, "ValueError: no").with(launcherLeft(agentapi.Summary{HostsExpected: 4, HostsReached: 4, HostsIdle: 4}, 1)), false},
		"the agent saw ranks":   {failed(1, "ValueError: no").with(launcherLeft(agentapi.Summary{HostsExpected: 4, HostsReached: 4}, 1)), true},
	} {
		found := test.scene.findings()
		if len(found) == 0 || strings.Contains(found[0].Summary, ended) != test.want {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// TestMessagesOfMPI: a message of Open MPI that no table knows is quoted, unless it only sums up, or the program says more.
func TestMessagesOfMPI(t *testing.T) {
	t.Parallel()
	const ruler = "\n--------------------------------------------------------------------------\n"
	conflict := ruler + "A call was made to launch additional processes, but this process has\nno active transports.\n\n  App: ranks" + ruler
	ended := ruler + "Primary job  terminated normally, but 1 process returned\na non-zero exit code." + ruler
	const quoted = "A call was made to launch additional processes, but this process has no active transports"
	for name, test := range map[string]struct {
		log  string
		want bool
	}{
		"alone":                   {conflict, true},
		"after a summary":         {ended + conflict, true},
		"after a warning":         {ruler + "A deprecated MCA variable value was specified." + ruler + conflict, true},
		"only a summary":          {ended, false},
		"the program says more":   {conflict + "ValueError: no", false},
		"cut off":                 {strings.TrimSuffix(conflict, ruler), false},
		"without another message": {"step 1", false},
	} {
		found := failed(1, test.log).findings()
		if len(found) == 0 || found[0].Code != codes.ApplicationFailed || strings.Contains(found[0].Summary, quoted) != test.want {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// TestRemediesForMessagesOfMPI: what MPI reports of a rank is no error of the program. All kinds of messages are tried.
func TestRemediesForMessagesOfMPI(t *testing.T) {
	t.Parallel()
	const ruler = "\n--------------------------------------------------------------------------\n"
	const full = "It appears as if there is not enough space for FOLDER/vader_segment.pi-worker-0.0.7e150001.1 (the shared-memory backing\nfile). It is likely that your MPI job will now either abort or experience\nperformance degradation.\n\n  Local host:  pi-worker-0"
	tried := map[string]bool{}
	for name, test := range map[string]struct{ log, kind, summary, remedy string }{
		"shared memory":       {ruler + strings.ReplaceAll(full, "FOLDER", "/dev/shm") + ruler, "shared memory", "not enough space for /dev/shm/", "Give the pods more shared memory"},
		"the folder of files": {ruler + strings.ReplaceAll(full, "FOLDER", "/tmp/ompi.pi-worker-0.0/pid.1/1") + ruler, "backing file", "not enough space for /tmp/", "Mount a volume at the folder"},
		"no start": {ruler + "It looks like MPI_INIT failed for some reason; your parallel process is\nlikely to abort.  There are many reasons that a parallel process can\nfail during MPI_INIT; some of which are due to configuration or environment\nproblems.  This failure appears to be an internal failure; here's some\n" +
			"additional information (which may only be relevant to an Open MPI\ndeveloper):\n\n  PML add procs failed\n  --> Returned \"Not found\" (-13) instead of \"Success\" (0)" + ruler, "MPI_INIT", "It looks like MPI_INIT failed for some reason: PML add procs failed: Not found.", "names the part of MPI that could not start"},
		"Omni-Path":        {ruler + "PSM2 was unable to open an endpoint. Please make sure that the network link is\nactive on the node and the hardware is functioning.\n\n  Error: Failure in initializing endpoint" + ruler, "Omni-Path", "PSM2 was unable", "Let Open MPI use TCP"},
		"memory":           {"[pi-worker-0:00042] Read -1, expected 131072, errno = 1\n[pi-worker-0:00042] Read -1, expected 4067, errno = 1", "single copy", "Read -1, expected 131072, errno = 1.", "shared memory alone"},
		"memory, with UCX": {"[1764350000.1] [pi-worker-0:42   :0]         cma_ep.c:87   UCX  ERROR process_vm_readv(pid=43 {0x7f00,131072}-->{0x7f01,131072}) returned -1: Operation not permitted", "single copy of UCX", "process_vm_readv(pid=43", "Let UCX exchange messages"},
		"another message":  {ruler + "Buffers are too small." + ruler, "", "Buffers are too small", "one of MPI and not of the program"},
		"after a summary":  {ruler + "The library attempted to open the following supporting CUDA libraries,\nbut each of them failed.  CUDA-aware support is disabled.\nlibcuda.so.1: cannot open shared object file: No such file or directory" + ruler + ruler + "Buffers are too small." + ruler, "", "Buffers are too small", "one of MPI and not of the program"},
	} {
		tried[test.kind] = true
		found := failed(1, test.log).with(launcherLeft(agentapi.Summary{HostsExpected: 4, HostsReached: 4, RanksSeen: 8, ExitCode: new(int32(1))}, 1)).findings()
		if len(found) == 0 || found[0].Code != codes.ApplicationFailed || !strings.Contains(found[0].Summary, test.summary) || !strings.Contains(found[0].Remedies[0].Text, test.remedy) {
			t.Errorf("%s: found %+v", name, found)
		}
	}
	for _, kind := range codes.LauncherErrors {
		if !tried[kind.Name] {
			t.Errorf("no message of the kind %q was tried", kind.Name)
		}
	}
}

// TestWhyProgramsAbort: the error of a program that ends by SIGABRT is named with its remedies, whoever reports the signal.
func TestWhyProgramsAbort(t *testing.T) {
	t.Parallel()
	const ruler = "\n--------------------------------------------------------------------------\n"
	noticed := ruler + "mpirun noticed that process rank 3 with PID 27 on node pi-worker-1 exited on signal 6 (Aborted)." + ruler
	rank := agentapi.Summary{Code: agentapi.RankFailed, ExitCode: new(int32(134)), HostsExpected: 4, HostsReached: 4, RanksSeen: 8, Ranks: []agentapi.RankEnd{{Rank: 3, ExitCode: 134, Signal: 6, Program: "solver"}}}
	for log, want := range map[string]struct{ summary, remedy string }{
		"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc": {"std::bad_alloc", "Allocate less at once"},
		"double free or corruption (!prev)": {"double free", "writes outside its memory"},
		"terminate called after throwing an instance of 'std::invalid_argument'\n  what():  stoi":         {": stoi", "missing, empty or no number"},
		"solver: solve.c:88: step: Assertion `n > 0' failed.":                                             {"Assertion `n > 0' failed", "an error of the program itself"},
		"OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.\nOMP: Hint x": {"OMP: Error #15", "loads OpenMP twice"},
		"step 41": {"with signal 6", "Read the last lines"},
	} {
		for name, s := range map[string]scene{
			"Open MPI":               failed(134, log+noticed),
			"Open MPI and the agent": failed(134, log+noticed).with(launcherLeft(rank, 134)),
			"the agent":              failed(134, log, mpich).with(launcherLeft(rank, 134)),
			"the container":          failed(134, log),
		} {
			found := s.findings()
			if len(found) == 0 || found[0].Code != codes.Aborted || !strings.Contains(found[0].Summary, want.summary) || !strings.Contains(found[0].Remedies[0].Text, want.remedy) {
				t.Errorf("%s, %s: found %+v", log, name, found)
			}
		}
	}
}

// TestTopicOfAMessage: mpirun names the topic of a message that more ranks have sent, and an unknown message is quoted with it.
func TestTopicOfAMessage(t *testing.T) {
	t.Parallel()
	const ruler = "\n--------------------------------------------------------------------------\n"
	found := failed(1, ruler+"Buffers are too small."+ruler+"[pi-launcher:1] 3 more processes have sent help message help-x.txt / buffers:small\n").findings()
	if want := "Buffers are too small. (help-x.txt / buffers:small)"; !strings.Contains(found[0].Summary, want) {
		t.Errorf("%q does not contain %q", found[0].Summary, want)
	}
}
