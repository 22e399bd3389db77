package diagnose_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/codes"
)

// raised is a traceback that ends with an exception, raised in a line of the program.
func raised(source, exception string) string {
	return "Traceback (most recent call last):\n  File \"/code/train.py\", line 7, in <module>\n    " + source + "\n" + exception
}

// exceptionCases are the messages of Python's own types and of common libraries.
var exceptionCases = map[string]ownError{
	// Texts that say more than the exception's name.
	"UnicodeDecodeError: 'utf-8' codec can't decode byte 0xe9 in position 49: invalid continuation byte":                                                 {"decoding", "byte 0xe9 in it is not valid in utf-8"},
	raised("text = open(\"/data/a.csv\").read()", "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0"):                              {"decoding", "Name the encoding of /data/a.csv"},
	"UnicodeDecodeError: 'ascii' codec can't decode byte 0xc3 in position 3: ordinal not in range(128)":                                                  {"text", "another format or encoding"},
	raised("f = open(p, \"w\", encoding=\"latin-1\"); f.write(t)", "UnicodeEncodeError: 'latin-1' codec can't encode character '\\u20ac' in position 1"): {"encoding", "latin-1 does not have all"},
	"RecursionError: maximum recursion depth exceeded while pickling an object":                                                                          {"nesting", "nested too deeply"},
	"RecursionError: maximum recursion depth exceeded while encoding a JSON object":                                                                      {"nesting", "nested too deeply"},
	"RecursionError: maximum recursion depth exceeded in comparison":                                                                                     {"nesting", "nested too deeply"},
	"RecursionError: maximum recursion depth exceeded while calling a Python object":                                                                     {"recursion", "A function calls itself"},
	"TypeError: can't compare offset-naive and offset-aware datetimes":                                                                                   {"time zones", "One of the two times has a time zone"},
	"TypeError: can't subtract offset-naive and offset-aware datetimes":                                                                                  {"time zones", "One of the two times has a time zone"},
	"TypeError: Cannot compare tz-naive and tz-aware timestamps":                                                                                         {"time zones", "One of the two times has a time zone"},
	"FileNotFoundError: [Errno 2] No such file or directory: ''":                                                                                         {"empty path", "The path is empty"},
	// Texts, paths and addresses.
	"FileNotFoundError: [Errno 2] No such file or directory: '~/data/a.npy'":                             {"home in a path", "only a shell replaces ~"},
	"OSError: [Errno 36] File name too long: '{\"lr\": 0.1}'":                                            {"name of a file", "255 bytes"},
	"ValueError: embedded null byte":                                                                     {"null byte", "zero byte"},
	"OSError: [Errno 18] Invalid cross-device link: '/tmp/a' -> '/data/a'":                               {"other link", "from one volume to another"},
	"OSError: [Errno 39] Directory not empty: '/results/run'":                                            {"not empty", "files into /results/run"},
	"OSError: [Errno 26] Text file busy: './solver'":                                                     {"busy file", "while it is still written"},
	"ssl.SSLError: [SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)":                       {"wrong protocol", "does not use TLS"},
	raised("run()", "requests.exceptions.MissingSchema: Invalid URL 'mlflow:5000': No scheme supplied."): {"scheme", "must begin with http"},
	"ImportError: Missing optional dependency 'pyarrow'. pyarrow is required for parquet support.":       {"optional package", "Install pyarrow"},
	"ImportError: Unable to find a usable engine; tried using: 'pyarrow', 'fastparquet'.":                {"optional package", "Install pyarrow"},
	"OSError: Not enough free space to write 24000000 bytes":                                             {"space", "Write less"},
	"OSError: 3000000 requested and 1251328 written":                                                     {"space", "Write less"},
	"OSError: [Errno 122] Disk quota exceeded: '/home/u/a'":                                              {"space", "Write less"},
	"sqlite3.OperationalError: database or disk is full":                                                 {"space", "Write less"},
	// Types and their methods.
	"AttributeError: 'list' object has no attribute 'shape'":                                                  {"attribute", "objects of type list do not have it"},
	"AttributeError: 'Tensor' object has no attribute 'numpyy'. Did you mean: 'numpy'?":                       {"attribute", "Correct the name numpyy"},
	"TypeError: 'list' object is not callable":                                                                {"not callable", "a value of type list"},
	"TypeError: 'int' object is not subscriptable":                                                            {"not subscriptable", "A value of type int has no elements"},
	"TypeError: 'tuple' object does not support item assignment":                                              {"not subscriptable", "A value of type tuple"},
	"TypeError: 'int' object is not iterable":                                                                 {"not iterable", "loops over a value of type int"},
	"TypeError: cannot unpack non-iterable float object":                                                      {"not iterable", "a value of type float"},
	"TypeError: argument of type 'int' is not iterable":                                                       {"not iterable", "a value of type int"},
	"ValueError: not enough values to unpack (expected 3, got 2)":                                             {"unpacking", "assigns 3 values at once, and there are 2"},
	"ValueError: too many values to unpack (expected 2)":                                                      {"unpacking", "assigns 2 values at once, and there are more"},
	"TypeError: unhashable type: 'list'":                                                                      {"unhashable", "A value of type list cannot be a key"},
	"TypeError: list indices must be integers or slices, not str":                                             {"index type", "is of type str"},
	"TypeError: 'float' object cannot be interpreted as an integer":                                           {"index type", "is of type float"},
	"IndexError: only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) are valid indices":     {"index type", "use //"},
	"TypeError: only length-1 arrays can be converted to Python scalars":                                      {"index type", "must be an integer"},
	"TypeError: a bytes-like object is required, not 'str'":                                                   {"bytes and text", "mixes text and bytes"},
	"TypeError: can only concatenate str (not \"bytes\") to str":                                              {"bytes and text", "mixes text and bytes"},
	"TypeError: write() argument must be str, not bytes":                                                      {"bytes and text", "mixes text and bytes"},
	"TypeError: Object of type float32 is not JSON serializable":                                              {"not serializable", "Convert the value of type float32"},
	"TypeError: keys must be str, int, float, bool or None, not tuple":                                        {"not serializable", "JSON has only"},
	raised("run()", "io.UnsupportedOperation: not writable"):                                                  {"file mode", "is not open for this"},
	"ValueError: I/O operation on closed file.":                                                               {"file mode", "closed already"},
	raised("batch = next(it)", "StopIteration"):                                                               {"stop of a generator", "next() was called where nothing is left"},
	"RuntimeError: generator raised StopIteration":                                                            {"stop of a generator", "next() was called"},
	"RuntimeError: dictionary changed size during iteration":                                                  {"changed while read", "Loop over a copy"},
	"TypeError: Can't instantiate abstract class Solver without an implementation for abstract method 'step'": {"abstract", "Solver lacks a method"},
	raised("model.step()", "NotImplementedError"):                                                             {"abstract", "lacks a method"},
	"AttributeError: cannot assign module before Module.__init__() call":                                      {"super", "constructor of the base class"},
	"TypeError: not all arguments converted during string formatting":                                         {"format", "do not fit"},
	"TypeError: unsupported format string passed to numpy.ndarray.__format__":                                 {"format", "a value of type numpy.ndarray"},
	"ValueError: Unknown format code 'd' for object of type 'float'":                                          {"format", "do not fit"},
	"IndexError: Replacement index 1 out of range for positional args tuple":                                  {"format", "do not fit"},
	raised("run()", "struct.error: unpack requires a buffer of 4 bytes"):                                      {"binary layout", "The bytes do not fit"},
	"ValueError: buffer size must be a multiple of element size":                                              {"binary layout", "The bytes do not fit"},
	"OverflowError: Python int too large to convert to C long":                                                {"integer range", "outside the range of its type"},
	"OverflowError: Python integer 300 out of bounds for uint8":                                               {"integer range", "outside the range of uint8"},
	"OverflowError: math range error":                                                                         {"integer range", "outside the range"},
	"ValueError: negative dimensions are not allowed":                                                         {"integer range", "outside the range"},
	"ValueError: Exceeds the limit (4300 digits) for integer string conversion":                               {"digits of a number", "more digits"},
	"ValueError: math domain error":                                                                           {"domain", "no value for this number"},
	"ValueError: expected a positive input, got 0.0":                                                          {"domain", "no value for this number"},
	"ValueError: 'adam' is not in list":                                                                       {"not in list", "a value that is missing"},
	"IndexError: pop from empty list":                                                                         {"not in list", "from an empty list"},
	"ValueError: list.remove(x): x not in list":                                                               {"not in list", "a value that is missing"},
	// Arrays, tables and files of data.
	"ValueError: The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()":                  {"truth of an array", "A condition needs one value"},
	"ValueError: The truth value of a Series is ambiguous. Use a.empty, a.bool(), a.item(), a.any() or a.all().":               {"truth of an array", "A condition needs one value"},
	"RuntimeError: Boolean value of Tensor with more than one value is ambiguous":                                              {"truth of an array", "A condition needs one value"},
	"ValueError: setting an array element with a sequence. The requested array has an inhomogeneous shape after 1 dimensions.": {"ragged array", "different lengths"},
	"ValueError: all the input array dimensions except for the concatenation axis must match exactly":                          {"ragged array", "different lengths"},
	"RuntimeError: stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1":                      {"ragged array", "different lengths"},
	"ValueError: Length of values (3) does not match length of index (4)":                                                      {"ragged array", "different lengths"},
	"numpy.exceptions.AxisError: axis 1 is out of bounds for array of dimension 1":                                             {"axis", "The array has 1 dimensions, and the program uses 1"},
	"IndexError: too many indices for array: array is 1-dimensional, but 2 were indexed":                                       {"axis", "fewer dimensions"},
	"IndexError: Dimension out of range (expected to be in range of [-1, 0], but got 1)":                                       {"axis", "fewer dimensions"},
	"numpy._core._exceptions._UFuncOutputCastingError: Cannot cast ufunc 'add' output from dtype('float64') to dtype('int64')": {"casting", "Convert the array to a type"},
	"TypeError: ufunc 'isnan' not supported for the input types":                                                               {"casting", "Convert the array to a type"},
	"ValueError: assignment destination is read-only":                                                                          {"read-only array", "Change a copy"},
	"ValueError: cannot reindex on an axis with duplicate labels":                                                              {"duplicate index", "the same value several times"},
	"KeyError: \"Unable to synchronously open object (object 'weights' doesn't exist)\"":                                       {"HDF5 object", "no object"},
	"ValueError: Unable to synchronously create dataset (name already exists)":                                                 {"HDF5 name", "an object of this name already"},
	"ValueError: h5py was built without MPI support, can't use mpio driver":                                                    {"HDF5 with MPI", "Build h5py"},
	"sqlite3.OperationalError: no such table: runs":                                                                            {"SQL", "runs may be missing"},
	"sqlite3.IntegrityError: UNIQUE constraint failed: runs.id":                                                                {"SQL", "added the same rows"},
	"pandas.errors.ParserError: Error tokenizing data. C error: Expected 3 fields in line 7, saw 4":                            {"CSV", "A line of the table has another form"},
	raised("run()", "_csv.Error: field larger than field limit (131072)"):                                                      {"CSV", "A line of the table has another form"},
	"tarfile.ReadError: not a gzip file":                                                                                       {"archive", "The archive is cut off"},
	raised("run()", "zlib.error: Error -3 while decompressing data: invalid distance too far back"):                            {"archive", "cut off"},
	"KeyError: \"There is no item named 'a.npy' in the archive\"":                                                              {"archive", "lacks a.npy"},
	raised("run()", "http.client.IncompleteRead: IncompleteRead(1024 bytes read, 4096 more expected)"):                         {"HTTP answer", "ended too early"},
	"urllib.error.HTTPError: HTTP Error 405: Method Not Allowed":                                                               {"HTTP answer", "not what the program expects"},
	// Training.
	"RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn":                                   {"gradient", "gradient cannot be computed"},
	"RuntimeError: Trying to backward through the graph a second time":                                                       {"gradient", "gradient cannot be computed"},
	"RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.":                    {"unused parameters", "no part in the loss"},
	"ValueError: Default process group has not been initialized, please make sure to call init_process_group.":               {"process group", "Initialize communication once"},
	"RuntimeError: expected scalar type Float but found Double":                                                              {"types of tensors", "Convert the tensors"},
	"RuntimeError: \"addmm_impl_cpu_\" not implemented for 'Half'":                                                           {"types of tensors", "use bfloat16"},
	"ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 8])":                    {"sizes of layers", "drop it then"},
	"RuntimeError: Given groups=1, weight of size [8, 3, 3, 3], expected input[1, 1, 28, 28] to have 3 channels, but got 1":  {"sizes of layers", "shape that this layer expects"},
	"IndexError: Target 10 is out of bounds.":                                                                                {"targets", "A label or a token"},
	"IndexError: index out of range in self":                                                                                 {"targets", "A label or a token"},
	"tensorflow.python.framework.errors_impl.NotFoundError: Unsuccessful TensorSliceReader constructor: Failed to find any":  {"checkpoint of TensorFlow", "does not fit the model"},
	"OSError: bert-base is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'": {"model from a hub", "neither in a folder"},
	"RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use spawn":     {"start of processes", "main part of the program"},
	"AssertionError: daemonic processes are not allowed to have children":                                                    {"start of processes", "not from a process of a pool"},
	raised("run()", "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly"):   {"broken pool", "A process of the pool ended"},
	"RuntimeError: threads can only be started once":                                                                         {"threads of Python", "not allowed in this thread"},
	"ValueError: signal only works in main thread of the main interpreter":                                                   {"threads of Python", "signals belong to the main thread"},
	raised("item = tasks.get(timeout=5)", "_queue.Empty"):                                                                    {"queue", "stayed empty or full"},
	"ImportError: attempted relative import with no known parent package":                                                    {"entry point", "Start the program as a module"},
	"ImportError: dynamic module does not define module export function (PyInit_core)":                                       {"binary module", "another version of Python"},
	"ImportError: bad magic number in 'core': b'\\xcb\\r\\r\\n'":                                                             {"binary module", "another version of Python"},
	"pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings":                                          {"validation", "the program reads (Settings)"},
	"configparser.NoSectionError: No section: 'train'":                                                                       {"INI option", "lack all of section train"},
	raised("np.log(x)", "RuntimeWarning: divide by zero encountered in log"):                                                 {"warning as an error", "A warning ended the program"},
	"ValueError: Seed must be between 0 and 2**32 - 1":                                                                       {"seed", "as the seed"},
	"shard.py: error: argument --rank: expected one argument":                                                                {"argument of argparse", "Correct the option --rank"},
	"train.py: error: argument --cpu: not allowed with argument --gpu":                                                       {"argument of argparse", "Correct the option --cpu"},
	"train.py: error: ambiguous option: --e could match --epochs, --eval":                                                    {"argument of argparse", "Correct the option --e"},
	raised("assert n == size", "AssertionError"):                                                                             {"assertion", "is false on this rank"},
}

// volumeOf mounts a volume at /ckpt in the workers.
func volumeOf(source corev1.VolumeSource) func(*scene) {
	return func(s *scene) {
		spec := &s.job.Workers.Template.Spec
		spec.Volumes = []corev1.Volume{{Name: "ckpt", VolumeSource: source}}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "ckpt", MountPath: "/ckpt"}}
	}
}

// TestCausesOfExceptions: what a message does not name follows from the program's own line and the specification.
func TestCausesOfExceptions(t *testing.T) {
	t.Parallel()
	size := resource.MustParse("32Mi")
	small := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &size}}
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "results"}}
	noSpace := "[1,1]<stderr>:" + strings.ReplaceAll(raised(`np.save("/ckpt/weights-%d.npy" % epoch, weights)`, "OSError: Not enough free space to write 24000000 bytes"), "\n", "\n[1,1]<stderr>:")
	unknown := func(source string) string {
		return "[1,1]<stderr>:" + strings.ReplaceAll(raised(source, "socket.gaierror: [Errno -2] Name or service not known"), "\n", "\n[1,1]<stderr>:")
	}
	inString := func(source string) string {
		return strings.ReplaceAll(unknown(source), "/code/train.py", "<string>")
	}
	command := func(words ...string) func(*scene) {
		return func(s *scene) { s.job.Launcher.Template.Spec.Containers[0].Command = words }
	}
	const expected = "[1,1]<stderr>:shard.py: error: argument --rank: expected one argument"
	for name, test := range map[string]struct {
		in   scene
		want string
	}{
		"a full emptyDir in memory":                   {failed(1, noSpace).with(volumeOf(small)), "Volume ckpt is full: /ckpt/weights-%d.npy is on it, an emptyDir in memory of 32Mi in each pod. Increase its sizeLimit. Its files count as memory"},
		"a full claim":                                {failed(1, noSpace).with(volumeOf(claim)), "Volume ckpt (claim results) is full"},
		"a name like that of a worker":                {failed(1, unknown(`master = socket.gethostbyname("pi-node-0.pi")`)), "no pod of this job has it. The hosts of the job are pi-worker-0.pi"},
		"a name of a worker of another index":         {failed(1, unknown(`s = socket.create_connection(("pi-worker-9", 29500))`)), "Correct the host name pi-worker-9"},
		"a name of a worker that exists":              {failed(1, unknown(`master = socket.gethostbyname("pi-worker-0.pi")`)), "Correct the host's name pi-worker-0.pi, or"},
		"another name":                                {failed(1, unknown(`s = socket.create_connection(("tracker", 80))`)), "Correct the host's name in tracker:80, or"},
		"a name in a variable":                        {failed(1, unknown(`h = socket.gethostbyname(os.environ["MASTER_ADDR"])`)).with(inWorkers("MASTER_ADDR", "pi-node-0")), "Correct the host name pi-node-0"},
		"a name in a variable, as a tuple":            {failed(1, unknown(`s.connect((os.environ["MASTER_ADDR"], 29500))`)).with(inWorkers("MASTER_ADDR", "pi-node-0")), "Correct the host name pi-node-0"},
		"a name in a variable of the program":         {failed(1, inString(`master = socket.gethostbyname(host)`)).with(command("mpirun", "python3", "-c", "import socket\nhost = \"pi-node-0\"\nmaster = socket.gethostbyname(host)")), "Correct the host name pi-node-0"},
		"a name in a variable of a variable":          {failed(1, inString(`socket.create_connection((host, 29500))`)).with(command("mpirun", "python3", "-c", "import socket, os\nhost = os.environ[\"MASTER_ADDR\"]\nsocket.create_connection((host, 29500))"), inWorkers("MASTER_ADDR", "pi-node-0")), "Correct the host name pi-node-0"},
		"another value of the program's variable":     {failed(1, inString(`socket.gethostbyname(host)`)).with(command("mpirun", "python3", "-c", "import socket\nhost = \"pi-node-0\"\nhost = find()\nsocket.gethostbyname(host)")), "Correct the host's name in this address, or"},
		"a password before a host":                    {failed(1, unknown(`c.connect(password=os.environ["DB_PASSWORD"], host=os.environ["DB_HOST"])`)).with(inWorkers("DB_PASSWORD", "hunter2")), "Correct the host's name in this address, or"},
		"a password before a known host":              {failed(1, unknown(`c.connect(password=os.environ["DB_PASSWORD"], host=os.environ.get("DB_HOST"))`)).with(inWorkers("DB_PASSWORD", "hunter2"), inWorkers("DB_HOST", "tracker")), "Correct the host's name tracker, or"},
		"a secret as a host":                          {failed(1, unknown(`s.connect((os.environ["DB_PASSWORD"], 1))`)).with(inWorkers("DB_PASSWORD", "hunter2"), masksSettings), "Correct the host's name in this address, or"},
		"a secret in an address":                      {failed(1, unknown(`s = socket.create_connection(("hunter2", 80))`)).with(masksAll), "Correct the host's name in ***:80, or"},
		"an option that the launcher's shell emptied": {failed(2, expected).with(command("bash", "-c", `mpirun -n 2 bash -c "python3 /code/shard.py --rank $OMPI_COMM_WORLD_RANK --shards 8"`)), "Without its value, --rank $OMPI_COMM_WORLD_RANK became --rank"},
		"an option with a variable that nobody sets":  {failed(2, expected).with(command("bash", "-c", `mpirun python3 shard.py --rank "$MY_RANK"`)), "Set MY_RANK: it was empty"},
		"an option without a variable":                {failed(2, expected).with(command("bash", "-c", `mpirun python3 shard.py --rank --shards 8`)), "Correct the option --rank"},
		"an option with a variable that is set":       {failed(2, expected).with(command("bash", "-c", `R=1; mpirun python3 shard.py --rank $R`)), "Correct the option --rank"},
	} {
		found := test.in.findings()
		if len(found) == 0 || found[0].Code != codes.ApplicationFailed || len(found[0].Remedies) == 0 || !strings.Contains(found[0].Remedies[0].Text, test.want) {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		for _, remedy := range found[0].Remedies {
			if strings.Contains(remedy.Text+remedy.Action, "hunter2") {
				t.Errorf("%s: the remedy %q has a secret", name, remedy.Text+remedy.Action)
			}
		}
		sound(t, found[0])
	}
}

// masksSettings hides hunter2 as the value of a variable, and masksAll anywhere.
func masksSettings(s *scene) {
	s.evidence.Mask = func(text string) string { return strings.ReplaceAll(text, "PASSWORD=hunter2", "PASSWORD=***") }
}

func masksAll(s *scene) {
	s.evidence.Mask = func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
}

// TestMixedTracebacks: the program's own line is found although the traceback of another rank begins after it.
func TestMixedTracebacks(t *testing.T) {
	t.Parallel()
	const begin = "Traceback (most recent call last):\n  File \"<frozen runpy>\", line 198, in _run_module_as_main\n  File \"/usr/lib/python3/dist-packages/mpi4py/__main__.py\", line 7, in <module>\n"
	const own = "    main()\n  File \"/code/rendezvous.py\", line 4, in <module>\n    master = socket.gethostbyname(\"job-worker-0.job\")\n             ^^^^^^^^^^^^\n"
	const exception = "socket.gaierror: [Errno -2] Name or service not known\n"
	found := failed(1, begin+own+begin+exception+own+exception).findings()
	if len(found) == 0 || !strings.Contains(found[0].Summary, "(rendezvous.py, line 4)") {
		t.Errorf("found %+v", found)
	}
}

// inWorkers sets a variable in the workers.
func inWorkers(name, value string) func(*scene) {
	return func(s *scene) {
		main := &s.job.Workers.Template.Spec.Containers[0]
		main.Env = append(main.Env, corev1.EnvVar{Name: name, Value: value})
	}
}
