package codes

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// callErrors are kinds of errors of calls whose texts say what was given to them: of mpi4py 3 and 4 (msgbuffer.pxi, asbuffer.pxi), of CPython 3.9 to 3.14
// (Lib/configparser.py, Modules/_localemodule.c). They are tried first.
var callErrors = []OwnError{
	{
		Name: "object as a buffer", Matches: regexp.MustCompile(`TypeError: message: expecting buffer or list/tuple`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use the method with a small first letter, such as bcast: it sends any object of Python, and returns it. Those of mpi4py with a capital one send the memory of an array, and this is none, but an object such as a dict.", Action: "value = comm.bcast(value, root=0)"},
			{Text: "Or give it an array, such as one of NumPy.", Action: "numpy.array(...)"},
		},
	},
	{
		Name: "count of a buffer", Matches: regexp.MustCompile(`ValueError: message: (?:cannot (?:infer|handle) |expecting 2 to 4 items|negative (?:count|dis?placement)|displacement -?\d+ out of bounds|buffer is None but count|buffer too small for requested count|buffer length \d+ is not)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the buffer of {call|this call}: its memory does not hold the elements that the call names. Give it a whole array, whose length Scatter, Gather and the like divide by the number of ranks ({ranks}), or the array with its number of elements and their type.", Action: "[array, count, MPI.DOUBLE]"},
		},
	},
	{
		Name: "buffer that is read-only", Matches: regexp.MustCompile(`ValueError: buffer source array is read-only|BufferError: Object is not writable|(?i:TypeError: .*expect(?:ed|ing) a (?:writ(?:e)?able|read-write) (?:bytes-like object|buffer))`), Source: regexp.MustCompile(callOfBuffers),
		Remedies: []v1alpha1.Remedy{
			{Text: "Receive into an array that can be written to: this one is read-only, as bytes and the memory of a file, a tensor or a broadcast view are.", Action: "buffer = numpy.array(..., copy=True), or numpy.empty(...)"},
		},
	},
	{
		Name: "MPI type of elements", Matches: regexp.MustCompile(`KeyError: ["']cannot map '(?P<type>[^']+)' to MPI datatype`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Convert the array: MPI has no datatype for its elements, of type {type} in NumPy's letters. U and S are text, O is any object, and e is float16.", Action: "array.astype(numpy.float32)"},
			{Text: "Or use the method with a small first letter, which sends any object of Python, more slowly.", Action: "comm.bcast(...)"},
		},
	},
	{
		Name: "reference in settings", QuotesContent: true, Matches: regexp.MustCompile(`InterpolationMissingOptionError: Bad value substitution: option '(?P<option>[^']+)' in section '(?P<object>[^']+)' contains an interpolation key '(?P<name>[^']+)'`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Define {name} in section {object} of the settings, or in section DEFAULT: the value of {option} refers to it as %({name})s. Variables of the environment are no options; the program passes them on as defaults.", Action: "configparser.ConfigParser(os.environ)"},
			{Text: "If it is no reference, turn references off.", Action: "configparser.ConfigParser(interpolation=None)"},
		},
	},
	{
		Name: "locale", Matches: regexp.MustCompile(`locale\.Error: unsupported locale setting|locale\.Error: unknown locale`),
		Remedies: []v1alpha1.Remedy{
			{Text: "If the program calls setlocale with an empty name, the locale comes from LC_ALL or LANG, and the image does not have that one. Set one that each image has.", Action: "env: LC_ALL=C.UTF-8"},
			{Text: "If the program names the locale itself, that does not help: install it in the image, or do without setlocale.", Action: "apt-get install locales; localedef -i de_DE -f UTF-8 de_DE.UTF-8"},
		},
	},
}

// Remedies for errors of calls whose program is known. They may use the figures of OwnError.
var (
	// ObjectAsBuffer are those for an object that a method of mpi4py got which sends memory. They also use call, the method, called, the one for objects, and
	// script, the program's line with it.
	ObjectAsBuffer = []v1alpha1.Remedy{
		{Text: "Use {called} in place of {call}: it sends any object of Python, such as a dict or a list, and returns what this rank gets. {call} sends the memory of an array, and got an object that has none.", Action: "{script}"},
		{Text: "Or give {call} an array, such as one of NumPy.", Action: "numpy.array(...)"},
	}
	// MissingLocale are those for a locale that the program names, name.
	MissingLocale = []v1alpha1.Remedy{
		{Text: "Install the locale {name} in the image of the ranks: it does not have it, and LANG or LC_ALL do not create it.", Action: "{programTemplate}.spec.containers[0].image: localedef -i LANGUAGE_COUNTRY -f UTF-8 {name}"},
		{Text: "Or do without it: leave setlocale out, and replace the separators of numbers and dates in the program. Every image has the locale C.UTF-8.", Action: `text.replace(".", "").replace(",", ".")`},
	}
	// LocaleOfEnvironment are those for a program that takes the locale from its variables. They also use setting, the variable with its value.
	LocaleOfEnvironment = []v1alpha1.Remedy{
		{Text: "Set a locale that the image has: the program takes the one that LC_ALL or LANG names{setting}.", Action: "env: LC_ALL=C.UTF-8", Rerun: true, Changes: set("env.LC_ALL", "C.UTF-8")},
		{Text: "Or install that locale in the image.", Action: "{programTemplate}.spec.containers[0].image"},
	}
	// LocalAddress are those for a refused connection to localhost. They also use address, meant, what usually listens at this port, and
	// variable, the one with the address.
	LocalAddress = []v1alpha1.Remedy{
		{Text: "Nothing listens at {address} in this pod: localhost is the pod itself, not the machine of another program. Use the name of the Service of {meant|the server that is to answer}, which a variable can hold.", Action: `env: {variable|SERVER_HOST}=NAME.NAMESPACE.svc`},
		{Text: "See the Services of this namespace.", Action: "kubectl -n {namespace} get services"},
	}
	// LocalAddressOfRank is the last one if another rank may have to listen. It also uses host.
	LocalAddressOfRank = []v1alpha1.Remedy{
		{Text: "If a rank of this job listens, name its host, and let it listen before the others connect.", Action: "{host|HOST}"},
	}
	// BinaryData are the first remedies for an archive on a ConfigMap. They use file, mounted, the ConfigMap, and key.
	BinaryData = []v1alpha1.Remedy{
		{Text: "Put {key} into {mounted} as binaryData, if it is base64 text there: values of data are not decoded, those of binaryData are. kubectl does so for files that are not text.", Action: "kubectl -n {namespace} create configmap NAME --from-file={key}"},
	}
	// OverflowHint is a hint for a number of an error that may be the result of an overflow. It uses wrapped, the number, and unwrapped, what it may have been.
	OverflowHint = v1alpha1.Remedy{
		Text: "The number {wrapped} may be an overflow of 32-bit integers: {unwrapped}. If it is a count or a sum, use 64 bits for it and for all arrays that it is computed from.", Action: `dtype="int64" (MPI_INT64_T)`,
	}
	// OwnLock are the remedies, after ThreadLock, for ranks each of which may wait for a lock that it holds. They use object, the lock, and first and second, the
	// function that may hold it and the one that it calls.
	OwnLock = []v1alpha1.Remedy{
		{Text: "If {first} holds {object} when it calls {second}, the thread waits for itself: a Lock is not given to the same thread twice. Use an RLock, or call {second} after the lock is released.", Action: "threading.RLock()"},
	}
)
