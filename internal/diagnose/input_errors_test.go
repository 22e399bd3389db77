package diagnose_test

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
)

// inputCases are errors that name the place in the program's input that is wrong, and errors of MPI and of conditions.
var inputCases = map[string]ownError{
	raised(`config = yaml.safe_load(open("/code/config.yaml"))`, "yaml.scanner.ScannerError: mapping values are not allowed here\n  in \"/code/config.yaml\", line 3, column 9"):                                                                                                                                                                  {"YAML", "Correct line 3, column 9, of /code/config.yaml,"},
	raised(`config = yaml.safe_load(open("/code/config.yaml"))`, "yaml.parser.ParserError: while parsing a block mapping\n  in \"/code/config.yaml\", line 1, column 1\nexpected <block end>, but found '<block mapping start>'\n  in \"/code/config.yaml\", line 4, column 3"):                                                                   {"YAML", "Correct line 4, column 3, of /code/config.yaml,"},
	raised(`config = yaml.safe_load(text)`, "yaml.scanner.ScannerError: while scanning a quoted scalar\n  in \"<unicode string>\", line 2, column 7:\n    name: \"abc\n          ^\nfound unexpected end of stream\n  in \"<unicode string>\", line 3, column 1:\n    \n    ^"):                                                                   {"YAML", "Correct line 3, column 1, of what the program reads as YAML"},
	raised(`config = tomllib.load(open("/code/train.toml", "rb"))`, "tomllib.TOMLDecodeError: Invalid value (at line 3, column 6)"):                                                                                                                                                                                                               {"TOML", "Correct line 3, column 6, of /code/train.toml"},
	raised(`config = json.load(open("/code/config.json"))`, "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 4 column 1 (char 31)"):                                                                                                                                                                         {"JSON", "Correct line 4, column 1, of /code/config.json"},
	raised(`config = json.load(open("/code/config.json"))`, "json.decoder.JSONDecodeError: Illegal trailing comma before end of object: line 3 column 12 (char 30)"):                                                                                                                                                                              {"JSON", "Correct line 3, column 12, of /code/config.json"},
	raised(`rows = json.load(open("/data/rows.jsonl"))`, "json.decoder.JSONDecodeError: Extra data: line 2 column 1 (char 14)"):                                                                                                                                                                                                                   {"several JSON values", "line 2, column 1, of /data/rows.jsonl"},
	raised(`config.read("/code/train.ini")`, "configparser.MissingSectionHeaderError: File contains no section headers.\nfile: '/code/train.ini', line: 1\n'lr = 0.1\\n'"):                                                                                                                                                                        {"INI without sections", "Begin /code/train.ini with the name of a section in brackets: line 1"},
	raised(`lr = config.get("train", "lr")`, "configparser.NoOptionError: No option 'lr' in section: 'train'"):                                                                                                                                                                                                                                    {"INI option", "lack lr of section train"},
	raised(`config.read("/code/train.ini")`, "configparser.DuplicateOptionError: While reading from '/code/train.ini' [line  4]: option 'lr' in section 'train' already exists"):                                                                                                                                                                  {"INI twice", "in /code/train.ini: line 4 has option 'lr' in section 'train' again"},
	raised(`config.read("/code/train.ini")`, "configparser.ParsingError: Source contains parsing errors: '/code/train.ini'\n\t[line  3]: 'epochs\\n'"):                                                                                                                                                                                            {"INI line", "Correct the lines of /code/train.ini"},
	"usage: train.py [-h] [--epochs EPOCHS]\ntrain.py: error: argument --epochs: invalid int value: 'ten'":                                                                                                                                                                                                                                        {"argument value", "Correct the value of --epochs in the command: ten is none of type int."},
	"usage: train.py [-h] [--optimizer {sgd,adam}]\ntrain.py: error: argument --optimizer: invalid choice: 'adamw' (choose from 'sgd', 'adam')":                                                                                                                                                                                                   {"choice", "Give --optimizer one of these values: 'sgd', 'adam'. The command has adamw."},
	"train.py: error: argument --optimizer: invalid choice: adamw (choose from sgd, adam)":                                                                                                                                                                                                                                                        {"choice", "Give --optimizer one of these values: sgd, adam. The command has adamw."},
	"train.py: error: the following arguments are required: --data, --out":                                                                                                                                                                                                                                                                        {"required arguments", "add --data, --out, which the program requires"},
	"Usage: train.py [OPTIONS]\nTry 'train.py --help' for help.\n\nError: Invalid value for '--epochs': 'ten' is not a valid integer.":                                                                                                                                                                                                            {"argument value", "Correct the value of --epochs in the command: ten is none of type integer."},
	"FATAL Flags parsing error:\n  flag --epochs=ten: invalid literal for int() with base 10: 'ten'":                                                                                                                                                                                                                                              {"argument value", "Correct the value of --epochs in the command: ten"},
	raised(`open_url()`, "urllib.error.URLError: <urlopen error Tunnel connection failed: 403 Forbidden>"):                                                                                                                                                                                                                                        {"proxy", "refused the request with status 403"},
	raised(`from mpi4py import MPI`, "ImportError: /usr/lib/python3/dist-packages/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so: undefined symbol: ompi_mpi_comm_world"):                                                                                                                                                                             {"MPI symbol", "which lacks ompi_mpi_comm_world"},
	"Abort(69817358) on node 1 (rank 1 in comm 0): Fatal error in internal_Recv: Message truncated, error stack:\ninternal_Recv(127).......: MPI_Recv(buf=0x7f, count=500, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, status=0x1) failed\nMPIDIG_recv_type_init(81): Message from rank 0 and tag 5 truncated; 8000 bytes received but buffer size is 4000": {"MPI sizes", "8000 bytes were sent, and it has 4000"},
	raised(`comm.Recv(half, source=0)`, "mpi4py.MPI.Exception: Message truncated, error stack:\ninternal_Recv(127).......: MPI_Recv(buf=0x7f, count=500, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, status=0x1) failed\nMPIDIG_recv_type_init(81): Message from rank 0 and tag 5 truncated; 8000 bytes received but buffer size is 4000"):                  {"MPI sizes", "8000 bytes were sent, and it has 4000"},
	"[pi-worker-1:00042] *** An error occurred in MPI_Send\n[pi-worker-1:00042] *** MPI_ERR_OTHER: known error not in list":                                                                                                                                                                                                                       {"MPI itself", "MPI itself failed in MPI_Send"},
	raised(`assert bad == 0, f"{bad} values are wrong"`, "AssertionError: 2000000 of 2000000 values of the halo are not 7.0"):                                                                                                                                                                                                                     {"check", "must not be changed or read before its Wait"},
	// Values, files and connections.
	raised(`result = future.result(timeout=5)`, "concurrent.futures._base.TimeoutError"): {"time of a wait", "in the time that the program gives it"},
	raised(`barrier.wait(timeout=5)`, "threading.BrokenBarrierError"):                    {"broken barrier", "Another thread or process of this barrier"},
	"ValueError: mismatch in send count 4 and receive count 3":                           {"counts of buffers", "MPI expects 4 elements, and there are 3"},
	"TypeError: object of type 'NoneType' has no len()":                                  {"no length", "a single value of type NoneType"},
	"TypeError: expected str, bytes or os.PathLike object, not int":                      {"path type", "a value of type int"},
	"2026-11-30 01:00:00.1: F tensorflow/core/platform/cpu_feature_guard.cc:38] The TensorFlow library was compiled to use AVX instructions, but these aren't available on your machine.": {"CPU of the node", "for a more common CPU"},
	"/app/solver: /lib64/libc.so.6: CPU ISA level is lower than required":                                                                       {"CPU of the node", "for a more common CPU"},
	"make: *** No rule to make target 'solve'.  Stop.":                                                                                          {"build", "Compile the program when the image is built"},
	"fatal error: An error occurred (404) when calling the HeadObject operation: Key \"data/x\" does not exist":                                 {"no such object", "does not exist"},
	"upload failed: ./out.csv to s3://results/out.csv An error occurred (AccessDenied) when calling the PutObject operation: Access Denied":     {"credentials", "Check the credentials"},
	"tar: This does not look like a tar archive\ntar: Exiting with failure status due to previous errors":                                       {"archive", "Get it again"},
	"TypeError: Descriptors cannot be created directly.":                                                                                        {"protobuf", "another version of protobuf"},
	"RuntimeError: CUDA error: device-side assert triggered":                                                                                    {"GPU assertion", "An index is out of bounds"},
	"RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED":                                                                                   {"memory of cuDNN", "Use a smaller batch"},
	"RuntimeError: received 0 items of ancdata":                                                                                                 {"descriptors of tensors", "by the names of files"},
	raised(`server.bind((address, 5000))`, "OSError: [Errno 99] Cannot assign requested address"):                                               {"address of another pod", "that of rank 0 is pi-worker-0.pi.ns.svc."},
	"OSError: [Errno 99] error while attempting to bind on address ('10.0.0.9', 5000): cannot assign requested address":                         {"address of another pod", "that of rank 0"},
	"error: bind: Cannot assign requested address":                                                                                              {"address of another pod", "that of rank 0 is pi-worker-0.pi.ns.svc."},
	"OSError: [Errno 9] Bad file descriptor":                                                                                                    {"closed file", "is closed already"},
	"OSError: [Errno 16] Device or resource busy: '/data/run/.nfs0001'":                                                                         {"busy device", "still has /data/run/.nfs0001 open"},
	"OSError: [Errno 27] File too large: '/data/out.bin'":                                                                                       {"large file", "Write several files"},
	"ProcessLookupError: [Errno 3] No such process":                                                                                             {"process that is gone", "The process has ended before"},
	raised(`text = open(path, encoding=name).read()`, "LookupError: unknown encoding: utf8mb4"):                                                 {"name of an encoding", "Correct the name utf8mb4"},
	"  File \"/code/a.py\", line 3\nSyntaxError: Non-UTF-8 code starting with '\\xe9' in file /code/a.py on line 3, but no encoding declared":   {"encoding of the source", "Save /code/a.py as UTF-8"},
	raised(`key = base64.b64decode(text)`, "binascii.Error: Incorrect padding"):                                                                 {"Base64", "do not decode them again"},
	raised(`price = Decimal(row[2])`, "decimal.InvalidOperation: [<class 'decimal.ConversionSyntax'>]"):                                         {"decimal number", "is no decimal number"},
	"ValueError: day is out of range for month":                                                                                                 {"date", "There is no such date"},
	raised(`re.compile(name)`, "re.error: unbalanced parenthesis at position 3"):                                                                {"pattern", "Correct the regular expression"},
	"ssl.SSLEOFError: EOF occurred in violation of protocol (_ssl.c:2406)":                                                                      {"TLS", "no version of TLS in common"},
	raised(`get()`, "requests.exceptions.ReadTimeout: HTTPConnectionPool(host='x', port=80): Read timed out. (read timeout=5)"):                 {"slow answer", "has taken the connection"},
	"urllib.error.ContentTooShortError: <urlopen error retrieval incomplete: got only 100 out of 200 bytes>":                                    {"download that ends early", "ended too early"},
	raised(`tree = ElementTree.parse("/data/mesh.xml")`, "xml.etree.ElementTree.ParseError: not well-formed (invalid token): line 3, column 5"): {"XML", "Correct line 3, column 5, of"},
	"configparser.InterpolationSyntaxError: '%' must be followed by '%' or '(', found: '%d'":                                                    {"INI reference", "Write %% for each percent sign"},
	"sqlite3.OperationalError: disk I/O error":                                                                                                  {"SQLite storage", "Keep the file in a folder of the pod"},
	"mpi4py.MPI.Exception: MPI_ERR_AMODE: error in the amode":                                                                                   {"MPI file", "the mode needs MODE_CREATE"},
	"mpi4py.MPI.Exception: MPI_ERR_PORT: invalid port":                                                                                          {"MPI names", "need no ports and names"},
	"KeyError: (0, 1)": {"key", "has no such key"},
	raised(`open_url()`, "requests.exceptions.ProxyError: HTTPSConnectionPool(host='pypi.org', port=443): Max retries exceeded with url: / (Caused by ProxyError('Unable to connect to proxy', NewConnectionError('<urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno 111] Connection refused')))"): {"proxy that does not answer", "the host in the address is not asked"},
	raised(`manager = multiprocessing.Manager()`, "OSError: AF_UNIX path too long"):                                {"socket path", "a shorter folder"},
	raised(`model = pickle.load(open("/data/m.pkl", "rb"))`, "ModuleNotFoundError: No module named 'numpy._core'"): {"pickled by another version", "another version of numpy"},
	"cat: /data/part-3.csv: Stale file handle":                                                                     {"storage", "The storage behind the volume"},
	"bash: ./solver: Text file busy":                                                                               {"busy file", "while it is still written"},
	"run.sh: fork: retry: Resource temporarily unavailable":                                                        {"threads", "Start fewer threads"},
	"cp: error writing '/data/x': Disk quota exceeded":                                                             {"space", "Write less"},
	"/scripts/run.sh: line 4: [: : integer expression expected":                                                    {"unquoted value", "A test of the script"},
	raised(`import yaml`, "ModuleNotFoundError: No module named 'yaml'"):                                           {"module", "Install yaml (package PyYAML) in the image"},
	raised(`import cv2`, "ModuleNotFoundError: No module named 'cv2'"):                                             {"module", "Install cv2 (package opencv-python-headless)"},
}

// TestNumbersThatNumPyWarnedOf: an assertion names the warning of NumPy before it, and the line of that.
func TestNumbersThatNumPyWarnedOf(t *testing.T) {
	t.Parallel()
	const warning = "/code/train.py:12: RuntimeWarning: overflow encountered in exp\n  return 1 / (1 + np.exp(-x))\n"
	failure := raised("assert np.isfinite(loss), loss", "AssertionError: nan")
	for name, test := range map[string]struct{ log, want string }{
		"before it":       {warning + failure, "NumPy warned before, overflow encountered in exp (train.py, line 12)"},
		"of another rank": {"[1,0]<stderr>:/code/train.py:12: RuntimeWarning: overflow encountered in exp\n[1,1]<stderr>:" + strings.ReplaceAll(failure, "\n", "\n[1,1]<stderr>:"), "The condition of this assert"},
		"after it":        {failure + "\n" + warning, "The condition of this assert"},
		"another error":   {warning + raised("open(path)", "FileNotFoundError: [Errno 2] No such file or directory: '/data/x'"), "Check the path"},
	} {
		found := failed(1, test.log).findings()
		if len(found) == 0 || !strings.Contains(found[0].Remedies[0].Text, test.want) {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		sound(t, found[0])
	}
}

// TestAssertionsOfLibraries: a condition that a library tests is none that the program tests, unless the library only tests for it.
func TestAssertionsOfLibraries(t *testing.T) {
	t.Parallel()
	const own = "The condition of this assert, which the program tests itself"
	for file, want := range map[string]bool{
		"/usr/lib/python3/dist-packages/torch/cuda/__init__.py": false, "/usr/lib/python3/dist-packages/numpy/testing/_private/utils.py": true,
		"/usr/lib/python3.12/unittest/case.py": true, "/code/checks.py": true,
	} {
		found := failed(1, "Traceback (most recent call last):\n  File \"/code/train.py\", line 7, in <module>\n    m = use(x)\n  File \""+file+"\", line 4, in use\n    assert 0 <= d\nAssertionError: Invalid device id").findings()
		if len(found) == 0 || strings.HasPrefix(found[0].Remedies[0].Text, own) != want {
			t.Errorf("%s: found %+v", file, found)
			continue
		}
		sound(t, found[0])
	}
}

// TestMisspelledOptions: an option that is close to one that the program lists is corrected in the command.
func TestMisspelledOptions(t *testing.T) {
	t.Parallel()
	const usage = "usage: train.py [-h] [--epochs EPOCHS] [--learning-rate LR]\n                [--data DATA]\n"
	for name, test := range map[string]struct{ log, want, command string }{
		"one":                {usage + "train.py: error: unrecognized arguments: --epcohs 3", "Write --epochs in place of --epcohs in the command", `["mpirun", "train.py", "--epochs", "3"]`},
		"with its value":     {usage + "train.py: error: unrecognized arguments: --epcohs=3", "Write --epochs in place of --epcohs", ""},
		"on a further line":  {usage + "train.py: error: unrecognized arguments: --dtaa /x", "Write --data in place of --dtaa", ""},
		"no such option":     {usage + "train.py: error: unrecognized arguments: --optimizer adam", "the program does not know --optimizer adam", ""},
		"no list of options": {"train.py: error: unrecognized arguments: --epcohs 3", "the program does not know --epcohs 3", ""},
	} {
		s := failed(2, test.log).with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "train.py", "--epcohs", "3"}
		})
		found := s.findings()
		if len(found) == 0 || len(found[0].Remedies) == 0 || !strings.Contains(found[0].Remedies[0].Text, test.want) {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		if changes := found[0].Remedies[0].Changes; test.command != "" && (len(changes) != 1 || changes[0].Value != test.command) {
			t.Errorf("%s: the changes are %+v", name, changes)
		}
		sound(t, found[0])
	}
}

// TestChangedBuffers: if a program in the command changes the buffer of a call before it waits for that, the assertion that fails is explained by it.
func TestChangedBuffers(t *testing.T) {
	t.Parallel()
	const begin = "import numpy as np\nblock = np.full(N, 7.0)\nreq = comm.Isend(block, dest=1)\n"
	for name, test := range map[string]struct{ program, want string }{
		"an element":                 {begin + "block[:] = 0.0\nreq.Wait()", "Wait for the request of Isend (line 3) before line 4 changes its buffer block: block[:] = 0.0."},
		"in place":                   {begin + "block *= 2\nreq.Wait()", "before line 4 changes its buffer block"},
		"a method":                   {begin + "print(1)\nblock.fill(0)\nreq.Wait()", "before line 5 changes its buffer block"},
		"in a list of requests":      {"requests.append(comm.Ibcast([block, MPI.DOUBLE]))\nblock[0] += 1\nMPI.Request.Waitall(requests)", "Ibcast (line 1)"},
		"read before it is received": {"got = np.empty(N)\nreq = comm.Irecv(got, source=0)\nassert (got == 7.0).all()\nreq.Wait()", "Wait for the request of Irecv (line 2) before line 3 uses its buffer got"},
		"several are received":       {"a = comm.Irecv(got[0], source=0)\nb = comm.Irecv(got[1], source=1)\nMPI.Request.Waitall([a, b])\nprint(got)", ""},
		"after the wait":             {begin + "req.Wait()\nblock[:] = 0.0", ""},
		"a wait in the same line":    {"comm.Isend(block, dest=1).Wait()\nblock[0] = 1", ""},
		"a wait after a semicolon":   {"req = comm.Irecv(block, source=0); req.Wait()\nprint(block)", ""},
		"a function that may wait":   {"reqs = [comm.Irecv(block, source=0)]\nfinish(reqs)\nprint(block)", ""},
		"one that gets a list":       {"reqs.append(comm.Irecv(block, source=0))\nfinish(reqs)\nprint(block)", ""},
		"one that gets another":      {begin + "finish(others)\nblock[:] = 0.0\nreq.Wait()", "before line 5 changes its buffer block"},
		"another array":              {begin + "blocks[:] = 0.0\nreq.Wait()", ""},
		"another value of the name":  {begin + "block = np.zeros(N)\nreq.Wait()", ""},
		"it is read":                 {begin + "total = block[:].sum()\nreq.Wait()", ""},
		"in another branch":          {"if rank == 0:\n    req = comm.Isend(block, dest=1)\n    req.Wait()\nelse:\n    block[:] = 1", ""},
		"a call that waits":          {"comm.Send(block, dest=1)\nblock[:] = 0", ""},
	} {
		s := failed(1, "[1,1]<stderr>:Traceback (most recent call last):\n[1,1]<stderr>:  File \"<string>\", line 9, in <module>\n[1,1]<stderr>:AssertionError: 12 values are wrong").with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "-n", "2", "python3", "-c", test.program}
		})
		found := s.findings()
		if len(found) == 0 || len(found[0].Remedies) == 0 {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		first := found[0].Remedies[0].Text
		if test.want != "" && !strings.Contains(first, test.want) || test.want == "" && !strings.HasPrefix(first, "The condition of this assert") {
			t.Errorf("%s: the first remedy is %q", name, first)
		}
		sound(t, found[0])
	}
}

// TestLauncherCalledByARank: the refusal of Open MPI's launcher is the cause, also if the launcher crashes after it.
func TestLauncherCalledByARank(t *testing.T) {
	t.Parallel()
	const refusal = "\n**********************************************************\n\nmpirun does not support recursive calls\n\n**********************************************************\n"
	const crash = "[pi-worker-0:00032] *** Process received signal ***\n[pi-worker-0:00032] Signal: Segmentation fault (11)\n[pi-worker-0:00032] Signal code: Address not mapped (1)\n" + refusal + "[pi-worker-0:00032] *** End of error message ***" +
		ruler + "Primary job  terminated normally, but 1 process returned\na non-zero exit code. Per user-direction, the job has been aborted." + ruler +
		ruler + "mpirun noticed that process rank 1 with PID 32 on node pi-worker-0 exited on signal 11 (Segmentation fault)." + ruler
	rank := agentapi.Summary{Code: agentapi.RankFailed, ExitCode: new(int32(139)), HostsExpected: 4, HostsReached: 4, RanksSeen: 2, Ranks: []agentapi.RankEnd{{Rank: 1, ExitCode: 139, Signal: 11, Program: "mpirun"}}}
	for name, in := range map[string]scene{
		"it ends":                       failed(1, refusal),
		"it crashes":                    failed(139, crash),
		"it crashes, as an agent saw":   failed(139, crash).with(launcherLeft(rank, 139)),
		"only an agent saw the crash":   failed(139, refusal).with(launcherLeft(rank, 139)),
		"it crashes, and nothing noted": failed(139, refusal),
	} {
		found := in.findings()
		if len(found) == 0 || found[0].Code != codes.ApplicationFailed || !strings.Contains(found[0].Summary, "mpirun does not support recursive calls") || !strings.Contains(found[0].Remedies[0].Text, "Call mpirun once") {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		for _, f := range found {
			sound(t, f)
		}
	}
}
