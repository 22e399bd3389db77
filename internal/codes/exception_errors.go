package codes

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// exactErrors are kinds of errors whose texts say more than the exception's name, by which a more general kind would match them: they are tried before
// the others. Named groups of Matches are figures of the remedies. The texts are those of CPython 3.9 to 3.13 (Objects/unicodeobject.c,
// Modules/_datetimemodule.c, Modules/_pickle.c, Python/ceval.c, Lib/pathlib.py) and of NumPy (numpy/_core/src/multiarray/convert.c).
var exactErrors = []OwnError{
	{
		Name: "decoding", QuotesContent: true, Matches: regexp.MustCompile(`UnicodeDecodeError: '(?P<codec>[b-z][\w-]*)' codec can't decode bytes? (?P<bytes>0x[0-9a-f]{2}|in position \d+-\d+)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Name the encoding of {file|the file} when it is opened: byte {bytes} in it is not valid in {codec}. For text of Windows or Western Europe that is usually cp1252 or latin-1. Variables such as LANG do not change the file.", Action: `open(PATH, encoding="cp1252")`},
			{Text: "Or convert the file to UTF-8. If it is not text at all, such as a compressed file, open it in binary mode.", Action: "iconv -f WINDOWS-1252 -t UTF-8"},
		},
	},
	{
		// The modules of packages that pickled objects name.
		Name: "pickled by another version", Matches: regexp.MustCompile(`No module named '(?P<package>numpy|pandas|sklearn|scipy|torch)\.[\w.]+'|Can't get attribute '\w+' on <module '(?P<package2>numpy|pandas|sklearn|scipy|torch)\b|unsupported pickle protocol: \d`), Source: regexp.MustCompile(`\bpickle\.|read_pickle\(|joblib\.load\(|\b(?:np|numpy|torch)\.load\(`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The file was written with another version of {package|Python}: a pickled object needs the modules of that. Use the image in which it was written, or install the same version in this one.", Action: "{programTemplate}.spec.containers[0].image"},
			{Text: "Or write it in a format that does not depend on versions, such as .npy, Parquet or safetensors."},
		},
	},
	{
		Name: "encoding", Matches: regexp.MustCompile(`UnicodeEncodeError: '(?P<codec>latin-1|iso[\w-]+|cp\d+|charmap|idna|utf-?8|utf-?16|ascii)' codec can't encode`), Source: regexp.MustCompile(`encoding=|\.encode\([\"']|request|header`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Encode this text as UTF-8: {codec} does not have all of its characters, and the program names {codec} itself. Variables such as LANG do not change that.", Action: `encoding="utf-8"`},
			{Text: "Or replace the characters that {codec} does not have.", Action: `errors="replace"`},
		},
	},
	{
		Name: "nesting", Matches: regexp.MustCompile(`RecursionError: maximum recursion depth exceeded (?:while (?:pickling an object|encoding a JSON object|decoding a JSON \w+ from a unicode string|getting the (?:repr|str) of an object|traversing|deepcopy)|in comparison$|in __(?:instance|subclass)check__)|RecursionError: (?:maximum|Stack overflow).* (?:during compilation|in ast)|MemoryError: s_push: parser stack overflow|too many nested parentheses|too many statically nested blocks`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The object is nested too deeply for this call, which goes one level down for each level of the object, or it contains itself. Send or store it flat, such as arrays of nodes and of the indices of their children."},
			{Text: "If it is only a little too deep, raise the limit. A limit that is too high ends the rank with a segmentation fault.", Action: "sys.setrecursionlimit(10000)"},
		},
	},
	{
		Name: "time zones", Matches: regexp.MustCompile(`can't (?:compare|subtract) offset-naive and offset-aware (?:date)?times|Cannot (?:compare|subtract|join) tz-naive (?:and|with) tz-aware|(?:Invalid comparison|Cannot compare) .*tz-(?:naive|aware)|Cannot mix tz-aware with tz-naive`),
		Remedies: []v1alpha1.Remedy{
			{Text: "One of the two times has a time zone, and the other has none. Give both one: datetime.now() and datetime.utcnow() have none, and a text with an offset such as +02:00 or Z has one. The variable TZ does not change that.", Action: "datetime.now(timezone.utc)"},
			{Text: "Or leave the offset out of the text from which the other one is read: an argument, a variable or a file."},
		},
	},
	{
		Name: "empty path", Matches: regexp.MustCompile(`FileNotFoundError: \[Errno 2\] No such file or directory: ''`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The path is empty: it comes from a variable, an argument or a setting that is not set. For a file's name without a folder, os.path.dirname is empty, too.", Action: `os.makedirs(os.path.dirname(path) or ".", exist_ok=True)`},
		},
	},
	{
		Name: "home in a path", Matches: regexp.MustCompile(`(?:FileNotFoundError|No such file or directory).*['"]?~/`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Write the whole path: only a shell replaces ~ by the home directory, and programs do not.", Action: "os.path.expanduser(PATH)"},
		},
	},
	{
		Name: "name of a file", Matches: regexp.MustCompile(`(?:OSError|File name too long).*(?:\[Errno 36\]|File name too long)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The name is longer than file systems allow, 255 bytes. It may be the content of a file where its name was meant, or contain all of a run's settings: shorten it."},
		},
	},
	{
		Name: "null byte", Matches: regexp.MustCompile(`embedded null (?:byte|character)|source code (?:string )?cannot contain null bytes`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A text has a zero byte: it comes from a binary file, a buffer of fixed length, or a file in UTF-16. Remove what follows the zero byte, or open the file with its encoding.", Action: `text.split("\0")[0]`},
		},
	},
	{
		Name: "other link", Matches: regexp.MustCompile(`\[Errno 18\]|Invalid cross-device link`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A file cannot be renamed from one volume to another. Write the temporary file in the folder of the final one, or move it.", Action: "shutil.move(SOURCE, TARGET)"},
		},
	},
	{
		Name: "not empty", Matches: regexp.MustCompile(`\[Errno 39\]|Directory not empty`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Another rank or an earlier attempt has written files into {file|this folder}. Let rank 0 alone remove it, before the others use it.", Action: "shutil.rmtree(PATH, ignore_errors=True)"},
		},
	},
	{
		Name: "busy file", Matches: regexp.MustCompile(`\[Errno 26\]|Text file busy`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A program is started while it is still written, or overwritten while it runs: all ranks run the same lines. Let one rank of the pod build or copy it, and the others wait for that.", Action: "comm.Barrier()"},
		},
	},
	{
		Name: "wrong protocol", Matches: regexp.MustCompile(`\[SSL: (?:WRONG_VERSION_NUMBER|HTTP_REQUEST|UNKNOWN_PROTOCOL|RECORD_LAYER_FAILURE)|SSL routines.*wrong version number|gave HTTP response to HTTPS client`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The server does not use TLS at this port. Write http:// in place of https://, or name the port at which it does; a proxy has an address with http:// as well.", Action: "http://HOST:PORT"},
		},
	},
	{
		Name: "scheme", Matches: regexp.MustCompile(`MissingSchema: |No connection adapters were found|unknown url type: |Invalid URL '`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The address is incomplete: it must begin with http:// or https://. It may come from a variable that is empty, or has quotation marks in its value."},
		},
	},
	{
		Name: "optional package", Matches: regexp.MustCompile(`(?:Missing optional dependency|requires (?:the )?(?:package|library)) '?(?P<module>[\w.-]+)'?|ImportError: .*(?:requires|need) (?:the )?(?P<module2>[\w.-]+) (?:library|package)|Unable to find a usable engine; tried using: '(?P<module3>\w+)'`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Install {module|this package} in the image of every pod in which ranks run: the library needs it for this call.", Action: "{programTemplate}.spec.containers[0].image"},
		},
	},
	{
		Name: "index type", Matches: regexp.MustCompile(`TypeError: (?:(?:list|tuple|string|str|range|bytes|bytearray) indices must be integers(?: or slices)?, not '?(?P<type>[\w.]+)'?|slice indices must be integers|'(?P<type2>float|str|complex)' object cannot be interpreted as an integer|only (?:integer scalar arrays|length-1 arrays|size-1 arrays|0-dimensional arrays) can be converted|integer argument expected, got float)|IndexError: (?:only integers, slices|arrays used as indices must be of integer)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A number that counts or is an index must be an integer here, and is of type {type|another type}. A division with / has a float as its result: use //. For text, convert it first.", Action: "n // size, int(...)"},
		},
	},
	{
		Name: "axis", Matches: regexp.MustCompile(`AxisError: axis (?P<axis>-?\d+) is out of bounds for array of dimension (?P<dimensions>\d+)|IndexError: (?:too many indices for (?:array|tensor)\S* ?.*|Dimension out of range .*)|axes don't match array|No axis named`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The array has {dimensions|fewer} dimensions, and the program uses {axis|one} that it does not have. Dimensions are counted from 0. An array with one row or column loses a dimension where it is indexed or squeezed.", Action: "print(array.shape)"},
		},
	},
	{
		Name: "not in list", Matches: regexp.MustCompile(`ValueError: (?:.* is not in (?:list|deque|tuple|range)|list\.remove\(x\): x not in list|tuple\.index\(x\): x not in tuple|substring not found|sequence\.index)|IndexError: pop from (?:an )?empty|KeyError: '(?:pop from an empty set|popitem\(\): dictionary is empty)'`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The program looks for a value that is missing, or takes one from an empty list. Test for it before; this rank may have fewer items than the others."},
		},
	},
	{
		Name: "format", Matches: regexp.MustCompile(`TypeError: (?:not (?:all|enough) arguments (?:converted during|for) (?:string|bytes)? ?format|%[a-z] format: |unsupported format string passed to (?P<type>[\w.]+)\.__format__)|ValueError: (?:unsupported format character|Unknown format code|Invalid format specifier|incomplete format|Single '[{}]' encountered|unexpected '\{' in field name)|IndexError: Replacement index \d+ out of range`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The text and its values do not fit: their number, or a code such as d or .3f for a value of type {type|another type}. A brace or a percent sign that is meant as such is written twice."},
		},
	},
	{
		Name: "bytes and text", Matches: regexp.MustCompile(`TypeError: (?:a bytes-like object is required, not 'str'|.*(?:can't concat str to bytes|must be str, not bytes|can only concatenate str \(not "bytes"\)|cannot use a (?:string|bytes) pattern on a (?:bytes|string)-like object|string argument expected, got 'bytes'|write\(\) argument must be (?:str|bytes)))`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The program mixes text and bytes. Convert one of them, or open the file in the other mode: \"r\" and \"w\" are for text, \"rb\" and \"wb\" for bytes.", Action: `text.encode(), data.decode()`},
		},
	},
	{
		Name: "CSV", Matches: regexp.MustCompile(`_csv\.Error: (?:field larger than field limit|line contains NUL|iterator should return strings|new-line character seen|need to escape)|csv\.Error|Error tokenizing data|DtypeWarning|Expected \d+ fields in line \d+, saw \d+|dict contains fields not in fieldnames`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A line of the table has another form than the first ones: another separator, quotation marks that do not end, or text before the table. See the line, and name the separator and the encoding.", Action: `pandas.read_csv(PATH, sep=";")`},
		},
	},
	{
		Name: "ragged array", Matches: regexp.MustCompile(`setting an array element with a sequence|inhomogeneous shape|expected sequence of length \d+ at dim \d+|all (?:the )?input array(?:s must have same number of dimensions|s must have the same shape| dimensions (?:except for|for) the concatenation axis)|Sizes of tensors must match|stack expects each tensor to be equal size|All arrays must be of the same length|Length of values \(\d+\) does not match length of index \(\d+\)|Found input variables with inconsistent numbers of samples`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The parts have different lengths, and do not make one array. Print their shapes on each rank, and cut or pad them to one length; those of ranks differ where {ranks} ranks do not divide the data evenly."},
		},
	},
	{
		Name: "file mode", Matches: regexp.MustCompile(`UnsupportedOperation: (?:not readable|not writable|read|write|fileno|seek|can't do nonzero \S+ seeks)|ValueError: I/O operation on (?:closed|uninitialized) file|ValueError: (?:read of|write to|seek of) closed file|ValueError: invalid mode: '|Can't (?:read|write) data \(file (?:was )?not open`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The file is closed already, or is not open for this: \"r\" reads, \"w\" replaces the file, \"a\" appends, and \"r+\" reads and writes. Use it within its with block."},
		},
	},
	{
		Name: "targets", Matches: regexp.MustCompile(`Target \d+ is out of bounds|Expected target size|index out of range in self|Assertion .*(?:t >= 0 && t < n_classes|srcIndex < srcSelectDimSize)|Expected input batch_size \(\d+\) to match target batch_size`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A label or a token is larger than the model allows: it has fewer classes or a smaller vocabulary than the data. Labels are counted from 0.", Action: "print(labels.min(), labels.max())"},
		},
	},
	{
		Name: "HDF5 with MPI", Matches: regexp.MustCompile(`h5py was built without MPI support|Unable to (?:synchronously )?(?:open|create) file .*(?:no write intent|already open)|driver 'mpio'|MPI driver|unknown file mode|Parallel HDF5`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Packages of h5py from PyPI cannot write one file from several ranks. Build h5py with the image's MPI and HDF5, or let rank 0 write the file.", Action: "CC=mpicc HDF5_MPI=ON pip install --no-binary=h5py h5py"},
		},
	},
	{
		Name: "binary layout", Matches: regexp.MustCompile(`struct\.error: |(?:buffer|string) size must be a multiple of element|buffer is smaller than requested|cannot fit .* into an array|bytes? must be in range|int too big to convert|can't convert negative int to unsigned`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The bytes do not fit the form by which they are read or written: a file that is cut off, a number that is too large for its field, or another size or order of bytes than was written. Print how many bytes there are, and compare them with the form.", Action: `struct.calcsize("<...")`},
		},
	},
}

// exceptionErrors are kinds of errors of Python's own types and of the libraries that programs use most. The texts are those of CPython 3.9 to 3.13, NumPy,
// pandas, h5py, PyTorch and TensorFlow.
var exceptionErrors = []OwnError{
	{
		Name: "not iterable", Matches: regexp.MustCompile(`TypeError: (?:cannot unpack non-iterable (?P<type>[\w.]+) object|'(?P<type2>[\w.]+)' object is not (?:iterable|an iterator|reversible)|argument of type '(?P<type3>[\w.]+)' is not (?:iterable|a container))`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The program loops over a value of type {type|another type}, or unpacks it: it is one value, not several. For a number of steps, loop over range(n).", Action: "print(type(value))"},
		},
	},
	{
		Name: "attribute", Matches: regexp.MustCompile(`AttributeError: (?:type object )?'?(?P<type>[\w.]+)'? (?:object )?has no attribute '(?P<attribute>\w+)'`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the name {attribute}: objects of type {type} do not have it. The value may be of another type than the program expects, or the package of another version.", Action: "print(type(value), dir(value))"},
		},
	},
	{
		Name: "not callable", Matches: regexp.MustCompile(`TypeError: '(?P<type>[\w.]+)' object is not callable`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The program calls a value of type {type}. A variable may have the name of a function, such as list, max or sum, or a comma is missing between two elements of a list."},
		},
	},
	{
		Name: "not subscriptable", Matches: regexp.MustCompile(`TypeError: '(?P<type>[\w.]+)' object (?:is not subscriptable|does not support item (?:assignment|deletion))`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A value of type {type} has no elements that [ ] reads or changes. Call it with ( ) if it is a function; otherwise see where it gets this type. Annotations such as list[int] need Python 3.9.", Action: "print(type(value))"},
		},
	},
	{
		Name: "unpacking", Matches: regexp.MustCompile(`ValueError: (?:not enough values to unpack \(expected (?:at least )?(?P<expected>\d+), got (?P<got>\d+)\)|too many values to unpack \(expected (?P<expected2>\d+)(?:, got (?P<got2>\d+))?\))`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The line assigns {expected|several} values at once, and there are {got|more}. A line of input may have another number of fields, or the function returns other values in this version of the package."},
		},
	},
	{
		Name: "unhashable", Matches: regexp.MustCompile(`TypeError: unhashable type: '(?P<type>[\w.]+)'|cannot use '(?P<type2>[\w.]+)' as a (?:dict key|set element)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A value of type {type|this type} cannot be a key of a dictionary or an element of a set. Use a tuple in place of a list or an array.", Action: "tuple(value)"},
		},
	},
	{
		Name: "not serializable", Matches: regexp.MustCompile(`TypeError: Object of type (?P<type>\w+) is not JSON serializable|keys must be str, int, float, bool or None|TypeError: Type is not JSON serializable|cannot represent an object|Circular reference detected`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Convert the value of type {type|this type} before it is written: JSON has only text, numbers, lists and dictionaries with text as keys. NumPy's numbers have .item(), its arrays .tolist(), and a Path is text by str().", Action: "json.dumps(value, default=str)"},
		},
	},
	{
		Name: "stop of a generator", Matches: regexp.MustCompile(`^StopIteration|RuntimeError: (?:generator|coroutine) raised StopIteration|generator didn't yield`),
		Remedies: []v1alpha1.Remedy{
			{Text: "next() was called where nothing is left. This rank may have fewer batches or files than others: give it a default, or loop over what there is.", Action: "next(items, None)"},
		},
	},
	{
		Name: "changed while read", Matches: regexp.MustCompile(`RuntimeError: (?:dictionary|OrderedDict|deque|Set|set) (?:changed size|keys changed|mutated) during iteration|deque mutated during iteration`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The loop changes what it loops over, or a thread does. Loop over a copy.", Action: "for key in list(items):"},
		},
	},
	{
		Name: "abstract", Matches: regexp.MustCompile(`TypeError: Can't instantiate abstract class (?P<class>\w+)|^NotImplementedError`),
		Remedies: []v1alpha1.Remedy{
			{Text: "{class|This class} lacks a method that the program has to define, or the call is not supported for this type or device. Define it under the name that the message or the base class has."},
		},
	},
	{
		Name: "super", Matches: regexp.MustCompile(`cannot assign (?:module|parameters?) before (?:Module|Parameter)?\S*__init__\(\) call|super\(\): (?:no arguments|__class__ cell not found)|object has no attribute '_(?:modules|parameters|backward_hooks)'`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Call the constructor of the base class first.", Action: "super().__init__()"},
		},
	},
	{
		Name: "integer range", Matches: regexp.MustCompile(`OverflowError: (?:Python int too large to convert to C (?:long|int|ssize_t)|Python integer -?\d+ out of bounds for (?P<type>\w+)|cannot (?:convert float infinity to integer|fit 'int')|int too large to convert|date value out of range|\(34, |math range error)|ValueError: Maximum allowed size exceeded|ValueError: array is too big|negative dimensions are not allowed`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A number is outside the range of {type|its type}. Use a wider type, such as int64 or float64, and check what it is computed from: a product of sizes, or a division by a number close to 0.", Action: "numpy.int64"},
		},
	},
	{
		Name: "digits of a number", Matches: regexp.MustCompile(`Exceeds the limit \(\d+ digits\) for integer string conversion`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A number has more digits than Python converts by default. Print or read fewer digits, or raise the limit.", Action: "sys.set_int_max_str_digits(0)"},
		},
	},
	{
		Name: "domain", Matches: regexp.MustCompile(`ValueError: (?:math domain error|expected a (?:positive|nonnegative|noninfinite|finite|number in range)\b.*)|cannot convert complex to|negative number cannot be raised to a fractional power`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The function has no value for this number, such as the logarithm of 0 or the root of a negative number. Check the number before the call, and whether it should be 0 or less on this rank.", Action: "math.log(max(x, 1e-300))"},
		},
	},
	{
		Name: "truth of an array", Matches: regexp.MustCompile(`The truth value of an? (?:array with more than one element|empty array|Series|DataFrame|Index)|Boolean value of Tensor with (?:more than one value|no values) is ambiguous|bool value of Tensor with more than one value|Using a (?:symbolic )?` + "`?tf.Tensor`?" + ` as a Python ` + "`?bool`?"),
		Remedies: []v1alpha1.Remedy{
			{Text: "A condition needs one value, and this is an array. Use any() or all() of it, & and | in place of and and or, and len() to ask whether it is empty.", Action: "if (array > 0).all():"},
		},
	},
	{
		Name: "casting", Matches: regexp.MustCompile(`UFuncTypeError|UFuncOutputCastingError|Cannot cast (?:ufunc|array data) .*from dtype\('(?P<from>[^']+)'\) to dtype\('(?P<to>[^']+)'\)|ufunc '\w+' (?:did not contain a loop|not supported for the input types)|TypeError: data type '[^']*' not understood|can't convert np\.ndarray of type numpy\.object_`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Convert the array to a type for which this operation is defined: it is {from|of another type, such as text or object}. An integer array cannot take the result of a division.", Action: "array.astype(numpy.float64)"},
		},
	},
	{
		Name: "read-only array", Matches: regexp.MustCompile(`(?:assignment|output) (?:destination|array) is read-only|cannot set WRITEABLE flag`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Change a copy: this array is the memory of something else, such as of a file, a tensor of JAX or TensorFlow, or of bytes.", Action: "array.copy()"},
		},
	},
	{
		Name: "duplicate index", Matches: regexp.MustCompile(`cannot reindex on an axis with duplicate labels|cannot reindex from a duplicate axis|Index contains duplicate entries|MergeError|You are trying to merge on \w+ and \w+ columns`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The columns by which tables are joined have the same value several times, or different types. Look for it, and convert them to one type.", Action: "frame.index.duplicated().sum(), frame.dtypes"},
		},
	},
	{
		Name: "HDF5 object", Matches: regexp.MustCompile(`Unable to (?:synchronously )?open object|KeyError: "Unable to (?:synchronously )?(?:open|get|access)|Can't open attribute|object '(?P<object>[^']+)' doesn't exist`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The HDF5 file has no object {object|of this name}. Print what it has; names are case-sensitive, and those in groups need the group's name.", Action: "file.visit(print)"},
		},
	},
	{
		Name: "HDF5 name", Matches: regexp.MustCompile(`Unable to (?:synchronously )?create (?:dataset|group|link|attribute) .*(?:name already exists|already exists)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The file has an object of this name already, of an earlier attempt. Open the file with mode \"w\" to start again, or use require_dataset.", Action: "group.require_dataset(...)"},
		},
	},
	{
		Name: "gradient", Matches: regexp.MustCompile(`does not require grad and does not have a grad_fn|Trying to backward through the graph a second time|modified by an inplace operation|leaf Variable that requires grad|Can't call numpy\(\) on Tensor that requires grad`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The tensor's gradient cannot be computed here: it was detached, changed in place, or its graph was used already. Compute the loss again in each step, without .item(), .detach() or += between; detach() what is only printed.", Action: "loss.backward() once for each step"},
		},
	},
	{
		Name: "unused parameters", Matches: regexp.MustCompile(`Expected to have finished reduction in the prior iteration|find_unused_parameters|marked as ready twice`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Some parameters had no part in the loss of the last step. Use all of them, or let DistributedDataParallel look for those that are not used.", Action: "DistributedDataParallel(model, find_unused_parameters=True)"},
		},
	},
	{
		Name: "process group", Matches: regexp.MustCompile(`Default process group has not been initialized|trying to initialize the default process group twice|Invalid process group|Horovod has not been initialized`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Initialize communication once, before other calls use it, and in each process that uses it: worker processes of a data loader do not have it.", Action: "torch.distributed.init_process_group(...), hvd.init()"},
		},
	},
	{
		Name: "types of tensors", Matches: regexp.MustCompile(`to have one of the following scalar types|expected (?:scalar type|m1 and m2 to have the same dtype|all tensors to have the same dtype).*|Found dtype \w+ but expected \w+|mat1 and mat2 must have the same dtype|cannot compute \w+ as input #\d+.*was expected to be a \w+ tensor but is a \w+ tensor|"\w+" not implemented for '\w+'`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Convert the tensors to one type that this operation has. NumPy's arrays are float64 by default, and models float32. On CPUs, some operations have no float16: use bfloat16 or float32.", Action: "tensor.float()"},
		},
	},
	{
		Name: "sizes of layers", Matches: regexp.MustCompile(`Given groups=\d+, weight of size|expected input\[.*\] to have \d+ channels|Expected (?:more than 1 value per channel|\d+D (?:or \d+D )?(?:\(\w+\) )?input)|Calculated padded input size|Given input size: .*Output size is too small|input\.size\(-1\) must be equal to input_size|(?:InvalidArgumentError|ValueError).*(?:Incompatible shapes|Matrix size-incompatible|incompatible with the layer)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The data does not have the shape that this layer expects. Print the shape before it: the order of dimensions, the number of channels, and the size of the last batch, which may be 1; drop it then.", Action: "DataLoader(..., drop_last=True)"},
		},
	},
	{
		Name: "checkpoint of TensorFlow", Matches: regexp.MustCompile(`NotFoundError: (?:Unsuccessful TensorSliceReader|Key .* not found in checkpoint)|DataLossError|Unable to open table file|No such layer: |You are trying to load a weight file containing`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The checkpoint does not fit the model, or is not complete. Name it without its suffix .index or .data, check that all of its files are there, and that the model is the one that was saved."},
		},
	},
	{
		Name: "model from a hub", Matches: regexp.MustCompile(`is not a local folder and is not a valid model identifier|LocalEntryNotFoundError|OfflineModeIsEnabled|RepositoryNotFoundError|HFValidationError|outgoing traffic has been disabled`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The model or data set is neither in a folder of this pod nor in reach. Check its name or path; a gated one needs the variable HF_TOKEN. Without access to the Internet, download it to a volume before, and name its folder.", Action: "env: HF_HOME=/data/hf, HF_HUB_OFFLINE=1"},
		},
	},
	{
		Name: "start of processes", Matches: regexp.MustCompile(`An attempt has been made to start a new process before|Cannot re-initialize CUDA in forked subprocess|daemonic processes are not allowed to have children|context has already been set|can only (?:join|test) a (?:child|started)|cannot (?:join|start) a process`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Start other processes only from the main part of the program, before CUDA and MPI are used there, and not from a process of a pool. With the method spawn, the file is imported again in each.", Action: `if __name__ == "__main__": multiprocessing.set_start_method("spawn")`},
		},
	},
	{
		Name: "broken pool", Matches: regexp.MustCompile(`BrokenProcessPool|BrokenThreadPool|A (?:child )?process (?:in the process pool )?was terminated abruptly|TerminatedWorkerError|Pool not running|cannot schedule new futures after`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A process of the pool ended while it worked, or the pool was closed. Without an error of its own it was probably ended for lack of memory, or crashed in a library: use fewer processes, and see the pod's use of memory.", Action: "ProcessPoolExecutor(max_workers=2)"},
		},
	},
	{
		Name: "threads of Python", Matches: regexp.MustCompile(`RuntimeError: (?:threads can only be started once|cannot join (?:current thread|thread before it is started)|release unlocked lock|cannot (?:release|notify on|wait on) un-?acquired lock|can't create new thread at interpreter shutdown)|signal only works in main thread|There is no current event loop|asyncio\.run\(\) cannot be called from a running event loop|Event loop is closed`),
		Remedies: []v1alpha1.Remedy{
			{Text: "This call is not allowed in this thread, or at this time: signals belong to the main thread, a thread starts once, a lock is released by who holds it, and an event loop belongs to one thread."},
		},
	},
	{
		Name: "queue", Matches: regexp.MustCompile(`^_?(?:queue\.|multiprocessing\.queues\.)?(?:Empty|Full)$|^_queue\.Empty`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The queue stayed empty or full for the time that the program waits. See whether the thread or process at its other side has ended or is slower, or wait longer.", Action: "queue.get(timeout=600)"},
		},
	},
	{
		Name: "SQL", Matches: regexp.MustCompile(`(?:OperationalError|ProgrammingError): (?:no such (?:table|column): (?P<table>\S+)|near "|SQLite objects created in a thread|Cannot operate on a closed|Incorrect number of bindings)|IntegrityError: (?:UNIQUE|NOT NULL|FOREIGN KEY|CHECK) constraint failed|database disk image is malformed|file is not a database`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the statement or the database: {table|a table or column} may be missing as its file is a new, empty one (SQLite makes it where it does not exist), and several ranks may have added the same rows."},
		},
	},
	{
		Name: "archive", QuotesContent: true, Matches: regexp.MustCompile(`tarfile\.\w*Error|ReadError: (?:not a gzip file|file could not be opened|unexpected end of data|empty file|invalid header)|zlib\.error: |LZMAError|lzma\.LZMAError|Invalid data stream|There is no item named '(?P<item>[^']+)' in the archive|OSError: Not a gzipped file|does not look like a tar archive|cannot find or open|[Ff]ile format not recognized|invalid compressed data`),
		Remedies: []v1alpha1.Remedy{
			{Text: "{file|The archive} is cut off, of another format than its name promises, or lacks {item|what the program looks for}. Get it again, and compare its size and checksum with the source. Several ranks may have written it at once.", Action: "sha256sum, tar -tf"},
		},
	},
	{
		Name: "HTTP answer", Matches: regexp.MustCompile(`IncompleteRead\(|ChunkedEncodingError|BadStatusLine|ContentDecodingError|ContentTooShortError|HTTP Error (?:4\d\d)|\b(?:4\d\d) Client Error|InvalidURL: `),
		Remedies: []v1alpha1.Remedy{
			{Text: "The server's answer was not what the program expects, or ended too early. See the answer and the address, let one rank download what all need, and try again after a pause."},
		},
	},
	{
		Name: "entry point", Matches: regexp.MustCompile(`attempted relative import (?:with no known parent package|beyond top-level package)|is a package and cannot be directly executed|No code object available|loader for \S+ cannot handle|Error while finding module specification for '`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Start the program as a module, from the folder that contains its package: a file of a package that is started by its path has no package.", Action: "python3 -m PACKAGE.MODULE"},
		},
	},
	{
		Name: "binary module", Matches: regexp.MustCompile(`wrong ELF class|dynamic module does not define module export function|DLL load failed|bad magic number in|returned (?:a result with|NULL without setting) an exception`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A compiled module or library is missing, or built for another CPU or another version of Python than the image has. Install it in the image, with the image's Python.", Action: "{programTemplate}.spec.containers[0].image"},
		},
	},
	{
		Name: "validation", Matches: regexp.MustCompile(`ValidationError: \d+ validation errors? for (?P<model>\w+)|MissingMandatoryValue|Missing mandatory value: (?P<model2>\S+)|could not determine a constructor for the tag|Additional properties are not allowed|is a required property|(?:NoSectionError|NoOptionError|DuplicateOptionError|MissingSectionHeaderError)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the configuration that the program reads ({model|its keys}): a field is missing, has another type, or is unknown to this version. The message names it."},
		},
	},
	{
		Name: "warning as an error", Matches: regexp.MustCompile(`^(?:Deprecation|Future|Runtime|User|PendingDeprecation|Resource|Syntax|Import)Warning: `),
		Remedies: []v1alpha1.Remedy{
			{Text: "A warning ended the program, since it or a variable turns warnings into errors. Correct its cause, or let warnings be warnings.", Action: "env: PYTHONWARNINGS=default"},
		},
	},
	{
		Name: "seed", Matches: regexp.MustCompile(`Seed must be between 0 and 2\*\*32 - 1|The only supported seed types are|manual_seed expected a long`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use an integer from 0 to 4294967295 as the seed. With the rank in it, take the remainder.", Action: "seed = (base + rank) % 2**32"},
		},
	},
	{
		Name: "argument of argparse", Matches: regexp.MustCompile(`argument (?P<option>\S+): (?:expected|not allowed with argument|ignored explicit argument|conflicting option)|conflicting option strings?: (?P<option2>\S+)|ambiguous option: (?P<option3>\S+)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the option {option|that the message names} in the command.", Action: launcherArgs},
		},
	},
	{
		Name: "assertion", Matches: regexp.MustCompile(`^AssertionError$|^AssertionError: *$`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The condition of this assert is false on this rank. Print the values in it; those that depend on the rank or on {ranks} ranks are the first to look at.", Action: "assert condition, (rank, value)"},
		},
	},
}
