package diagnose_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
)

// inlined is the traceback of a program that has no file.
func inlined(line, exception string) string {
	return "Traceback (most recent call last):\n  File \"/usr/lib/python3/dist-packages/mpi4py/run.py\", line 30, in run_string\n    return _run_module_code(code)\n" +
		"  File \"<string>\", line " + line + ", in <module>\n" + exception
}

// callCases are the messages of calls that show what was given to them.
var callCases = map[string]ownError{
	"TypeError: message: expecting buffer or list/tuple":                                                                                                  {"object as a buffer", "Use the method with a small first letter"},
	raised("comm.Bcast(config, root=0)", "TypeError: message: expecting buffer or list/tuple"):                                                            {"object as a buffer", "Use bcast in place of Bcast"},
	raised("comm.Scatter(field, part)", "ValueError: message: cannot infer count, number of entries 10 is not a multiple of required number of blocks 4"): {"count of a buffer", "Correct the buffer of comm.Scatter"},
	"ValueError: message: expecting 2 to 4 items":                                                                                                         {"count of a buffer", "Correct the buffer of this call"},
	"ValueError: message: buffer too small for requested count":                                                                                           {"count of a buffer", "Correct the buffer"},
	"ValueError: message: negative count -3":                                                                                                              {"count of a buffer", "Correct the buffer"},
	raised("comm.Recv(view, source=1)", "ValueError: buffer source array is read-only"):                                                                   {"buffer that is read-only", "this one is read-only"},
	raised("comm.Bcast(b\"1234\", root=0)", "BufferError: Object is not writable."):                                                                       {"buffer that is read-only", "this one is read-only"},
	raised("comm.Bcast(names, root=0)", `KeyError: "cannot map 'U5' to MPI datatype"`):                                                                    {"MPI type of elements", "of type U5 in NumPy's letters"},
	"configparser.InterpolationSyntaxError: '%' must be followed by '%' or '(', found: '%Y-%m-%d %H:%M'":                                                  {"INI reference", "Write %% for each percent sign"},
	"ValueError: invalid interpolation syntax in '50%' at position 2":                                                                                     {"INI reference", "Write %% for each percent sign"},
	"configparser.InterpolationMissingOptionError: Bad value substitution: option 'data' in section 'paths' contains an interpolation key 'HOME' which is not a valid option name. Raw value: '%(HOME)s/data'": {"reference in settings", "Define HOME in section paths"},
	raised("locale.setlocale(locale.LC_ALL, name)", "locale.Error: unsupported locale setting"):                                                                                                                {"locale", "If the program calls setlocale with an empty name"},
}

// TestCallsOfPrograms: the first remedy follows from the line of the program that failed, in a file or in the command.
func TestCallsOfPrograms(t *testing.T) {
	t.Parallel()
	const noBuffer, noLocale, refused = "TypeError: message: expecting buffer or list/tuple", "locale.Error: unsupported locale setting", "ConnectionRefusedError: [Errno 111] Connection refused"
	command := func(words ...string) func(*scene) {
		return func(s *scene) { s.job.Launcher.Template.Spec.Containers[0].Command = words }
	}
	program := func(lines ...string) func(*scene) {
		return command("mpirun", "-n", "2", "python3", "-m", "mpi4py", "-c", strings.Join(lines, "\n"))
	}
	none := func(*scene) {}
	withEnv := func(name, value string) func(*scene) {
		return func(s *scene) {
			for _, template := range []*corev1.PodTemplateSpec{&s.job.Launcher.Template, &s.job.Workers.Template} {
				template.Spec.Containers[0].Env = append(template.Spec.Containers[0].Env, corev1.EnvVar{Name: name, Value: value})
			}
		}
	}
	withSidecar := func(s *scene) {
		for _, template := range []*corev1.PodTemplateSpec{&s.job.Launcher.Template, &s.job.Workers.Template} {
			template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: "redis"})
		}
	}
	for name, test := range map[string]struct {
		log                 string
		change              func(*scene)
		want, action, never string
	}{
		"a dict in a command":       {inlined("3", noBuffer), program("from mpi4py import MPI", "comm = MPI.COMM_WORLD", "comm.Bcast(config, root=0)"), "Use bcast in place of Bcast", "config = comm.bcast(config, root=0)", ""},
		"a dict to another rank":    {raised("comm.Isend(part, dest=1, tag=3)  # not Bcast(", noBuffer), none, "Use isend in place of Isend", "comm.isend(part, dest=1, tag=3)", "# not"},
		"an object to receive":      {raised("MPI.COMM_WORLD.Recv(part, source=0)", noBuffer), none, "Use recv in place of Recv", "part = MPI.COMM_WORLD.recv(source=...)", ""},
		"parts of a list":           {raised("comm.Scatterv(parts, mine, root=0)", noBuffer), none, "Use scatter in place of Scatterv", "value = comm.scatter(...)", ""},
		"a collective that returns": {raised("req = comm.Iallreduce(a, b)", noBuffer), none, "Use allreduce in place of Iallreduce", "value = comm.allreduce(...)", ""},

		"a locale":               {inlined("2", noLocale), program("import locale", `locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")`), "Install the locale de_DE.UTF-8 in the image", "localedef -i de_DE -f UTF-8 de_DE.UTF-8", "env:"},
		"a locale as a pair":     {raised(`locale.setlocale(locale.LC_TIME, ("fr_FR", "UTF-8"))`, noLocale), none, "Install the locale fr_FR.UTF-8", "localedef -i fr_FR", "env:"},
		"a locale in a variable": {inlined("3", noLocale), program("import locale", `name = "tr_TR"`, "locale.setlocale(locale.LC_ALL, name)"), "Install the locale tr_TR in", "", "env:"},
		"the locale of a pod":    {raised(`locale.setlocale(locale.LC_ALL, "")`, noLocale), withEnv("LANG", "en_US.UTF-8"), "Set a locale that the image has: the program takes the one that LC_ALL or LANG names (LANG=en_US.UTF-8).", "env: LC_ALL=C.UTF-8", "localedef"},
		"a locale of a setting":  {raised("locale.setlocale(locale.LC_ALL, settings.name)", noLocale), none, "If the program calls setlocale with an empty name", "", ""},

		"Redis in a command":               {inlined("2", refused), program("import socket", `with socket.create_connection(("localhost", 6379), timeout=5) as redis:`), "Nothing listens at localhost:6379 in this pod: localhost is the pod itself, not the machine of another program. Use the name of the Service of Redis", "", "If a rank"},
		"PostgreSQL":                       {`psycopg2.OperationalError: connection to server at "127.0.0.1", port 5432 failed: Connection refused`, none, "Nothing listens at 127.0.0.1:5432 in this pod: localhost is the pod itself, not the machine of another program. Use the name of the Service of PostgreSQL", "", ""},
		"MLflow":                           {"requests.exceptions.ConnectionError: HTTPConnectionPool(host='localhost', port=5000): Max retries exceeded with url: /api (Caused by NewConnectionError('<x>: Failed to establish a new connection: [Errno 111] Connection refused'))", none, "Nothing listens at localhost:5000", "", ""},
		"MySQL":                            {"pymysql.err.OperationalError: (2003, \"Can't connect to MySQL server on 'localhost:3306' ([Errno 111] Connection refused)\")", none, "Nothing listens at localhost:3306", "", ""},
		"a variable of the job":            {raised(`client = connect(os.environ["TRACKER"])`, refused), withEnv("TRACKER", "localhost:5000"), "Nothing listens at localhost:5000", "env: TRACKER=NAME", ""},
		"a variable of the program":        {inlined("2", refused), program(`host = "127.0.0.1"`, "s.connect((host, port))"), "Nothing listens at 127.0.0.1 in this pod", "", ""},
		"an argument":                      {raised("client = connect(args.redis)", refused), command("mpirun", "python3", "/code/search.py", "--redis", "localhost:6379"), "Nothing listens at localhost:6379", "", ""},
		"an address to listen":             {raised("client = connect(args.redis)", refused), command("mpirun", "python3", "/code/search.py", "--metrics-address", "localhost:9090"), "Check that a program listens at this address", "", "Nothing listens"},
		"IPv6":                             {raised(`s.connect(("::1", 9092))`, refused), none, "Nothing listens at ::1:9092 in this pod", "", ""},
		"a port of ranks":                  {raised(`s.connect(("localhost", 29500))`, refused), none, "Nothing listens at localhost:29500 in this pod: localhost is the pod itself, not the machine of another program. Use the name of the Service of the server that", "", ""},
		"another host":                     {raised(`s.connect(("redis", 6379))`, refused), none, "Check that a program listens at redis:6379", "", "Nothing listens"},
		"a sidecar":                        {raised(`s.connect(("localhost", 6379))`, refused), withSidecar, "Check that a program listens at localhost:6379", "", "Nothing listens"},
		"a server of the command":          {raised(`s.connect(("localhost", 6379))`, refused), command("sh", "-c", "redis-server & mpirun train"), "Check that a program listens at localhost:6379", "", "Nothing listens"},
		"two local addresses":              {raised("connect(args)", refused), command("mpirun", "train", "localhost:1234", "localhost:1235"), "Check that a program listens at this address", "", "Nothing listens"},
		"localhost over IPv6":              {raised(`s.connect(("localhost", 6379))`, "OSError: [Errno 99] Cannot assign requested address"), none, "Nothing listens at localhost:6379 in this pod", "", "only listen"},
		"localhost by urllib3":             {raised(`requests.get(url)`, "requests.exceptions.ConnectionError: HTTPConnectionPool(host='localhost', port=5000): Max retries exceeded with url: / (Caused by NewConnectionError('<x>: Failed to establish a new connection: [Errno 99] Cannot assign requested address'))"), none, "Nothing listens at localhost:5000", "", "only listen"},
		"localhost by Redis":               {raised(`client.ping()`, "redis.exceptions.ConnectionError: Error 99 connecting to localhost:6379. Cannot assign requested address."), none, "Nothing listens at localhost:6379", "", "only listen"},
		"no local address of another host": {raised(`s.connect(("redis", 6379))`, "OSError: [Errno 99] Cannot assign requested address"), withEnv("TRACKER", "localhost:5000"), "Check redis:6379", "", "Nothing listens"},
		"a comment":                        {raised(`s.connect(address)  # was ("localhost", 6379)`, refused), none, "Check that a program listens at this address", "", "Nothing listens"},
		"hosts without a proxy":            {raised("client = connect(args.redis)", refused), withEnv("NO_PROXY", "localhost,127.0.0.1,.svc"), "Check that a program listens at this address", "", "Nothing listens"},
		"a proxy's exceptions":             {raised("client = connect(args.redis)", refused), withEnv("no_proxy", "localhost:8080"), "Check that a program listens at this address", "", "Nothing listens"},
		"a list of hosts":                  {raised("client = connect(args.redis)", refused), withEnv("PEERS", "localhost,127.0.0.1,db"), "Check that a program listens at this address", "", "Nothing listens"},
		"a network that MPI leaves out":    {raised("client = connect(args.redis)", refused), command("mpirun", "--mca", "btl_tcp_if_exclude", "127.0.0.1/8", "train"), "Check that a program listens at this address", "", "Nothing listens"},
		"a host of ranks":                  {raised("client = connect(args.redis)", refused), command("mpirun", "--host", "localhost:16", "train"), "Check that a program listens at this address", "", "Nothing listens"},
		"all addresses":                    {raised("client = connect(args.redis)", refused), command("mpirun", "train", "--address", "0.0.0.0:8000"), "Check that a program listens at this address", "", "Nothing listens"},
		"a port as an argument":            {raised(`connect("localhost", port=6379)`, refused), none, "Nothing listens at localhost:6379", "", ""},

		"a % in a file":     {raised(`date = settings["logging"]["date_format"]`, "configparser.InterpolationSyntaxError: '%' must be followed by '%' or '(', found: '%Y-%m-%d %H:%M'"), none, "Write %% for each percent sign", "", "blank"},
		"a name and a text": {"ValueError: cannot mix 'a' and 'b'", none, "This is an error of the program itself", "", "blank"},
	} {
		found := failed(1, test.log).with(test.change).findings()
		if len(found) == 0 || len(found[0].Remedies) == 0 || !strings.HasPrefix(found[0].Remedies[0].Text, test.want) || !strings.Contains(found[0].Remedies[0].Action, test.action) {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		for _, r := range found[0].Remedies {
			if test.never != "" && strings.Contains(r.Text+" "+r.Action, test.never) {
				t.Errorf("%s: %q contains %q", name, r.Text+" "+r.Action, test.never)
			}
		}
		sound(t, found[0])
	}
}

// TestProgramsOfCommands: the line of a program in the command is found in each form in which Python gets one, and in no other.
func TestProgramsOfCommands(t *testing.T) {
	t.Parallel()
	const program = "import locale\nlocale.setlocale(locale.LC_ALL, \"de_DE\")  # as in the files\n"
	const want = `The command has in this line: locale.setlocale(locale.LC_ALL, "de_DE")`
	quoted := strings.ReplaceAll(program, `"`, `\"`)
	for name, test := range map[string]struct {
		words []string
		want  bool
	}{
		"mpi4py":               {[]string{"mpirun", "python3", "-m", "mpi4py", "-c", program}, true},
		"options with values":  {[]string{"mpirun", "python3", "-u", "-W", "ignore", "-X", "dev", "-c", program}, true},
		"mpi4py in a script":   {[]string{"sh", "-c", "mpirun python3 -um mpi4py -c '" + program + "'"}, true},
		"in double quotes":     {[]string{"sh", "-c", "mpirun python3 -c \"" + quoted + "\""}, true},
		"another module":       {[]string{"mpirun", "python3", "-m", "trainer", "-c", program}, false},
		"an option of a file":  {[]string{"mpirun", "python3", "train.py", "-c", program}, false},
		"an option of mpi4py":  {[]string{"mpirun", "python3", "-m", "mpi4py", "train.py", "-c", program}, false},
		"a name with a python": {[]string{"mpirun", "python-wrapper", "-c", program}, false},
	} {
		found := failed(1, inlined("2", "locale.Error: unsupported locale setting")).with(func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = test.words
		}).findings()
		if got := slices.Contains(found[0].Evidence, want); got != test.want {
			t.Errorf("%s: the evidence is %q", name, found[0].Evidence)
		}
	}
}

// TestHintsOfOverflows: a number that only an overflow explains has a hint, after what is known of the error, and other numbers have none.
func TestHintsOfOverflows(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]string{
		raised(`assert total[0] > 0, f"number of tokens is {total[0]}"`, "AssertionError: number of tokens is -694967296"): "-694967296 + 4294967296 = 3600000000",
		"ValueError: length must be non-negative, got -2147483648.":                                                        "-2147483648 + 4294967296 = 2147483648",
		"IndexError: index -1294967296 is out of bounds for axis 0 with size 3000000000":                                   "-1294967296 + 4294967296 = 3000000000",
		"RuntimeError: total of 4294966296 bytes cannot be sent":                                                           "4294966296 - 4294967296 = -1000",
		raised(`check(nTokens)`, "AssertionError: got -694967296"):                                                         "-694967296 + 4294967296 = 3600000000",
		"InvalidParameterError: The 'random_state' parameter of KMeans must be an int in the range [0, 4294967295], an instance of 'numpy.random.mtrand.RandomState' or None. Got -1 instead.": "",
		"struct.error: 'i' format requires -2147483648 <= number <= 2147483647": "",
		"ValueError: number of rows must be between -2147483648 and 2147483647": "",
		"ValueError: count must be less than or equal to 4294967295":            "",
		"ValueError: checksum mismatch: expected -1844674407, got 12345":        "",
		"ValueError: value -1500000000 not supported":                           "",
		"ValueError: node coordinates out of range: -1500000 3":                 "",
		"AssertionError: number of tokens is -42":                               "",
		"AssertionError: number of tokens is -1000000":                          "",
		"AssertionError: number of tokens is 3600000000":                        "",
		"AssertionError: sum of losses is -694967296.5":                         "",
		"AssertionError: sum is -6.94967296e8":                                  "",
		"RuntimeError: step count ended with exit code -1073741819":             "",
		"AssertionError: total of hashes, hash -694967296":                      "",
		"AssertionError: wrong temperature -694967296":                          "",
		"OSError: [Errno -694967296] count of errors":                           "",
	} {
		found := failed(1, log).findings()
		at := slices.IndexFunc(found[0].Remedies, func(r v1alpha1.Remedy) bool { return strings.Contains(r.Text, "may be an overflow") })
		if want == "" && at >= 0 || want != "" && (at != 1 || !strings.Contains(found[0].Remedies[at].Text, want)) {
			t.Errorf("%q: remedies are %+v", log, found[0].Remedies)
		}
		sound(t, found[0])
	}
}

// TestTextsOfNoSpecialKind: messages of the standard library that only look like those of a special kind have its remedies not.
func TestTextsOfNoSpecialKind(t *testing.T) {
	t.Parallel()
	for text, never := range map[string]string{
		"configparser.InterpolationSyntaxError: '%' must be followed by '%' or '(', found: '%Y'":                    "blank at the end",
		"argparse.ArgumentError: argument 'a': expected 'b' or '(', found: 'c d'":                                   "blank at the end",
		"ValueError: 'a' is not 'b' and 'c'":                                                                        "blank at the end",
		"TypeError: can't multiply 'a' by 'b'":                                                                      "blank at the end",
		"ValueError: unterminated ' in 'a":                                                                          "blank at the end",
		"KeyError: \"a 'b' or 'c'\"":                                                                                "blank at the end",
		"ValueError: too many values to unpack (expected 2)":                                                        "unquoted value",
		"ValueError: not enough values to unpack (expected 3, got 2)":                                               "no data",
		"ValueError: Unknown level: 'DEBUGG'":                                                                       "locale",
		"ValueError: Unknown format code 'd' for object of type 'str'":                                              "program",
		"ValueError: unsupported format character 'y' (0x79) at index 3":                                            "length",
		"ValueError: list.remove(x): x not in list":                                                                 "length",
		"ValueError: substring not found":                                                                           "file",
		"ValueError: Single '}' encountered in format string":                                                       "variable",
		"ValueError: unconverted data remains:  12:00":                                                              "blank at the end",
		"ValueError: day is out of range for month":                                                                 "length",
		"ValueError: year 0 is out of range":                                                                        "length",
		"ValueError: math domain error":                                                                             "host name",
		"ValueError: '/data' does not appear to be an IPv4 or IPv6 network":                                         "network",
		"ValueError: Circular reference detected":                                                                   "variable",
		"ValueError: semaphore or lock released too many times":                                                     "file lock",
		"ValueError: I/O operation on closed file.":                                                                 "storage",
		"ValueError: embedded null byte":                                                                            "no data",
		"ValueError: bad marshal data (unknown type code)":                                                          "program",
		"ValueError: mode must be one of 'r', 'w', or 'x '":                                                         "file",
		"TypeError: 'NoneType' object is not callable":                                                              "object as a buffer",
		"TypeError: 'int' object is not iterable":                                                                   "object as a buffer",
		"TypeError: unhashable type: 'list'":                                                                        "object as a buffer",
		"TypeError: string indices must be integers, not 'str'":                                                     "length",
		"TypeError: Object of type int64 is not JSON serializable":                                                  "text",
		"TypeError: a bytes-like object is required, not 'dict'":                                                    "object as a buffer",
		"TypeError: expected string or bytes-like object, got 'NoneType'":                                           "buffer that is read-only",
		"BufferError: Existing exports of data: object cannot be re-sized":                                          "buffer that is read-only",
		"KeyError: 'message: expecting'":                                                                            "object as a buffer",
		"RuntimeError: dictionary changed size during iteration":                                                    "shape",
		"RuntimeError: generator raised StopIteration":                                                              "no data",
		"RuntimeError: cannot schedule new futures after shutdown":                                                  "another rank",
		"RuntimeError: release unlocked lock":                                                                       "file lock",
		"StopIteration":                                                                                             "no data",
		"AttributeError: 'Namespace' object has no attribute 'locale'":                                              "locale",
		"UnboundLocalError: cannot access local variable 'host' where it is not associated with a value":            "variable",
		"NameError: name 'localhost' is not defined. Did you mean: 'locals'?":                                       "network",
		"UnicodeEncodeError: 'ascii' codec can't encode character '\\xe4' in position 0: ordinal not in range(128)": "locale",
		"zipfile.BadZipFile: File is not a zip file":                                                                "array file",
		"struct.error: unpack requires a buffer of 8 bytes":                                                         "count of a buffer",
		"asyncio.exceptions.InvalidStateError: Result is not set.":                                                  "variable",
		"multiprocessing.context.TimeoutError":                                                                      "network",
		"ChildProcessError: [Errno 10] No child processes":                                                          "start of processes",
		"OverflowError: Python int too large to convert to C long":                                                  "memory",
		"email.errors.HeaderParseError: Invalid Domain 'a '":                                                        "host name",
	} {
		if kind := codes.OwnErrorOf(text); kind != nil && kind.Name == never {
			t.Errorf("%q is of the kind %q", text, never)
		}
	}
}

// TestErrorsOfInitContainers: the log of an init container explains why it failed by the rules for ranks, for its own mounts, command and fields.
func TestErrorsOfInitContainers(t *testing.T) {
	t.Parallel()
	unpack := corev1.Container{
		Name: "unpack", Command: []string{"python3", "-c", "import tarfile; tarfile.open('/archive/features.tgz').extractall('/work')"},
		VolumeMounts: []corev1.VolumeMount{{Name: "archive", MountPath: "/archive"}},
	}
	archive := corev1.Volume{Name: "archive", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "features"}}}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container"}}
	const tarError = "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n  File \"/usr/lib/python3.11/tarfile.py\", line 1693, in open\n    raise ReadError(f\"file could not be opened successfully:\\n{error_msgs_summary}\")\n" +
		"tarfile.ReadError: file could not be opened successfully:\n- method gz: ReadError('not a gzip file')\n- method bz2: ReadError('not a bzip2 file')"
	for name, test := range map[string]struct {
		log                    string
		state                  corev1.ContainerState
		launcher               bool
		summary, first, action string
	}{
		"an archive as text":      {tarError, ended, false, "Worker 1 cannot start: init container unpack failed with exit code 1: tarfile.ReadError: file could not be opened successfully: - method gz: ReadError('not a gzip file') (the program of python -c, line 1).", "Put features.tgz into ConfigMap features as binaryData", "create configmap"},
		"in a loop":               {tarError, waits, false, "Worker 1 cannot start: init container unpack ended with exit code 1: tarfile.ReadError: file", "Put features.tgz into ConfigMap features as binaryData", "create configmap"},
		"of the launcher":         {tarError, ended, true, "The launcher cannot start: init container unpack failed with exit code 1: tarfile.ReadError: file", "Put features.tgz into ConfigMap features as binaryData", "create configmap"},
		"a file":                  {"cp: cannot stat '/archive/feature.tgz': No such file or directory", ended, false, "failed with exit code 1: cp: cannot stat '/archive/feature.tgz': No such file or directory.", "Check the keys of ConfigMap features", "describe configmap/features"},
		"a file of the image":     {"cat: /opt/data.csv: No such file or directory", ended, false, "failed with exit code 1: cat: /opt/data.csv: No such file or directory.", "Check the path of /opt/data.csv. It must be in the image of this init container", ".template.spec.initContainers[1].volumeMounts"},
		"a module":                {raised("import boto3", "ModuleNotFoundError: No module named 'boto3'"), ended, false, "ModuleNotFoundError: No module named 'boto3' (train.py, line 7).", "Install boto3 in the image of this init container", ".template.spec.initContainers[1].image"},
		"an error without a rule": {raised("check()", "RuntimeError: the checksum differs"), ended, false, "failed with exit code 1: RuntimeError: the checksum differs (train.py, line 7).", "Read the log of the init container", "logs"},
		"no error":                {"downloads 3 files", ended, false, "init container unpack failed with exit code 1.", "Read the log of the init container", "logs"},
	} {
		spec := func(s *scene) {
			for _, template := range []*corev1.PodTemplateSpec{&s.job.Launcher.Template, &s.job.Workers.Template} {
				template.Spec.InitContainers, template.Spec.Volumes = []corev1.Container{{Name: "first"}, unpack}, []corev1.Volume{archive}
			}
		}
		fail := func(pod *corev1.Pod) {
			failedInit(test.state)(pod)
			pod.Status.InitContainerStatuses[0].Name = "unpack"
			pod.Status.InitContainerStatuses[0].LastTerminationState.Terminated.ExitCode = 1
		}
		phase := corev1.PodFailed
		if test.state.Waiting != nil {
			phase = corev1.PodPending
		}
		s := running(2).with(spec, worker(1, phase, fail))
		pod := "pi-worker-1"
		if test.launcher {
			s = failed(1, "").with(spec)
			pod = s.seen.LauncherPods[0].Name
			fail(s.seen.LauncherPods[0])
		}
		s.evidence.Logs = map[string]jobstate.Log{pod: {Lines: strings.Split(test.log, "\n"), LastAt: mpitest.Now}}
		found := s.findings()
		if len(found) == 0 || !strings.Contains(found[0].Summary, test.summary) || !strings.HasPrefix(found[0].Remedies[0].Text, test.first) || !strings.Contains(found[0].Remedies[0].Action, test.action) {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		if !slices.ContainsFunc(found[0].Remedies, func(r v1alpha1.Remedy) bool { return strings.Contains(r.Action, "logs "+pod+" -c unpack") }) {
			t.Errorf("%s: no remedy reads the log: %+v", name, found[0].Remedies)
		}
		sound(t, found[0])
	}
}

// TestLocksOfRanks: a rank that waits for a lock of its own threads is distinguished from one that waits in MPI, and what may hold the lock is named.
func TestLocksOfRanks(t *testing.T) {
	t.Parallel()
	const stall = "mpi-agent: no progress: all 2 ranks wait, since 10:00:00 UTC; blocked: 0, 1\nmpi-agent: stack of ranks 0, 1: "
	const itself = "Each rank waits for a lock that it may hold itself, and not in MPI."
	for stack, want := range map[string][2]string{
		"History.report (/code/history.py:16) < History.add (/code/history.py:13) < <module> (/code/history.py:22) | with self.lock:     # no other thread may append now": {itself, "If History.add holds self.lock when it calls History.report"},
		"History.report (/code/history.py:16) < History.add (/code/history.py:13) < <module> (/code/history.py:22) | with self.lock: # no other thread may append now":     {itself, "If History.add holds self.lock when it calls History.report"},
		"visit (/code/tree.py:9) < visit (/code/tree.py:12) < <module> (/code/tree.py:20) | lock.acquire()  # of the tree":                                                 {itself, "If visit holds lock when it calls visit"},
		"Inner.report (/code/a.py:16) < Outer.add (/code/a.py:13) < <module> (/code/a.py:22) | with self.lock:":                                                            {"Each rank waits for a lock of its own threads, not for another rank.", "See which thread holds the lock"},
		"Node.visit (/code/a.py:16) < Node.visit (/code/a.py:18) < <module> (/code/a.py:80) | with self.lock:":                                                             {itself, "If Node.visit holds self.lock when it calls Node.visit"},
		"report (/code/a.py:16) < <module> (/code/a.py:22) | with self._locks[name]:":                                                                                      {"Each rank waits for a lock of its own threads, not for another rank.", "See which thread holds the lock"},
		"save (/code/a.py:16) < <module> (/code/a.py:22) | with FileLock(path):":                                                                                           {"The job is probably stuck.", "Python: see in which function"},
		"save (/code/a.py:16) < <module> (/code/a.py:22) | win.Lock(0)  # lock.acquire()":                                                                                  {"The job is probably stuck.", "Python: see in which function"},
		"save (/code/a.py:16) < <module> (/code/a.py:22) | item = jobs.get()  # not from comm.recv()":                                                                      {"Each rank waits for an item or a result", "See why the thread or process that fills the queue"},
	} {
		found := stuck(stall + stack).findings()
		at := 0
		if want[0] == itself {
			// Another thread may hold it as well.
			at = 1
		}
		if len(found) == 0 || found[0].Code != codes.RanksWaiting || !strings.Contains(found[0].Summary, want[0]) || !strings.HasPrefix(found[0].Remedies[at].Text, want[1]) || at == 1 && !strings.HasPrefix(found[0].Remedies[0].Text, "See which thread holds the lock") {
			t.Errorf("%s: found %+v", stack, found)
			continue
		}
		if strings.Contains(found[0].Summary, "#") {
			t.Errorf("the summary has a comment: %q", found[0].Summary)
		}
		sound(t, found[0])
	}
	told := stuck(stall + "wait (/code/a.py:4) < <module> (/code/a.py:9) | while not os.path.exists(ready): time.sleep(1)  # ready = \"/scratch/ready.json\"").findings()
	if !strings.Contains(told[0].Summary, `# ready = "/scratch/ready.json"`) {
		t.Errorf("the value is not told: %q", told[0].Summary)
	}
}
