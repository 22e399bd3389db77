package codes

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// inputErrors are kinds of errors whose texts name the place in the program's input that is wrong: files of settings and the arguments of its command. The
// texts are those of CPython 3.9 to 3.14 (Lib/json/decoder.py, Lib/tomllib, Lib/configparser.py, Lib/argparse.py), PyYAML, click, absl and Go.
var inputErrors = []OwnError{
	{
		Name: "YAML", QuotesContent: true, Matches: regexp.MustCompile(`\byaml\.(?:scanner|parser|composer|reader)\.\w+Error: .*\bin "(?:<[^"]*>|(?P<file>[^"]+))", line (?P<line>\d+), column (?P<column>\d+)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct line {line}, column {column}, of {file|what the program reads as YAML}, or the line before it: indent by blanks and not by tabs, write a blank after each colon and dash, and put texts with a colon or # in quotation marks."},
		},
	},
	{
		Name: "TOML", QuotesContent: true, Matches: regexp.MustCompile(`(?i:TOMLDecodeError): .* \((?:at )?line (?P<line>\d+),? column (?P<column>\d+)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct line {line}, column {column}, of {file|what the program reads as TOML}: texts are in quotation marks, true and false in small letters, and each name is given once."},
		},
	},
	{
		Name: "several JSON values", QuotesContent: true, Matches: regexp.MustCompile(`JSONDecodeError: Extra data: line (?P<line>\d+) column (?P<column>\d+)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Another value begins in line {line}, column {column}, of {file|what the program reads}, which is no longer JSON then. If each line is a value (JSON Lines), read it line by line. If not, several ranks may have written it at once: let rank 0 alone write it.", Action: "[json.loads(line) for line in file]"},
		},
	},
	{
		Name: "JSON", QuotesContent: true, Matches: regexp.MustCompile(`JSONDecodeError: (?:Expecting (?:property name|',' delimiter|':' delimiter)|Invalid (?:control character|\\escape|\\\\escape)|Illegal trailing comma|Unterminated string).*: line (?P<line>\d+) column (?P<column>\d+)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct line {line}, column {column}, of {file|what the program reads as JSON}: names and texts are in double quotation marks, no comma follows the last element, and there are no comments. If the file ends there, it is cut off."},
		},
	},
	{
		Name: "INI without sections", QuotesContent: true, Matches: regexp.MustCompile(`MissingSectionHeaderError: File contains no section headers\.(?: file: '(?P<file>[^']+)', line: (?P<line>\d+))?`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Begin {file|the file of settings} with the name of a section in brackets: line {line|1} belongs to none.", Action: "[train]"},
		},
	},
	{
		Name: "INI option", QuotesContent: true, Matches: regexp.MustCompile(`NoSectionError: No section: '(?P<section>[^']*)'|NoOptionError: No option '(?P<option>[^']+)' in section: '(?P<section2>[^']*)'`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The settings that the program has read lack {option|all} of section {section}. Its read() skips files that do not exist: check that the file is in every pod in which a rank runs, and the names in it.", Action: "{programTemplate}.spec.containers[0].volumeMounts"},
			{Text: "Let the program fail at a missing file.", Action: "config.read_file(open(PATH))"},
		},
	},
	{
		Name: "INI line", QuotesContent: true, Matches: regexp.MustCompile(`ParsingError: Source contains parsing errors: '(?P<file>[^']+)'`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the lines of {file} that the log shows after this error: each line is a section in brackets, or a name and a value with = or a colon between them.", Action: launcherLog},
		},
	},
	{
		Name: "INI twice", QuotesContent: true, Matches: regexp.MustCompile(`Duplicate(?:Option|Section)Error: While reading from '(?P<file>[^']+)' \[line +(?P<line>\d+)\]: (?P<object>.+) already exists`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove one of two in {file}: line {line} has {object} again."},
		},
	},
	{
		Name: "choice", Matches: regexp.MustCompile(`argument (?P<option>\S+): invalid choice: '?(?P<value>[^'()]*?)'? \((?:maybe you meant .*, )?choose from (?P<choices>.+)\)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Give {option} one of these values: {choices}. The command has {value|an empty one}.", Action: launcherArgs},
		},
	},
	{
		Name: "argument value", Matches: regexp.MustCompile(`argument (?P<option>\S+): invalid (?P<type>\S+) value: '(?P<value>[^']+)'|Invalid value for '(?P<option2>[^']+)': '(?P<value2>[^']+)' is not a valid (?P<type2>\w+)|\bflag (?P<option3>--?[\w-]+)=(?P<value3>\S+): |invalid value "(?P<value4>[^"]+)" for flag (?P<option4>-[\w-]+)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the value of {option} in the command: {value} is none of type {type|that the program expects}.", Action: launcherArgs},
		},
	},
	{
		Name: "unknown arguments", Matches: regexp.MustCompile(`error: unrecognized arguments: (?P<option>\S.*)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the arguments of the command: the program does not know {option}.", Action: launcherArgs},
		},
	},
	{
		Name: "required arguments", Matches: regexp.MustCompile(`error: the following arguments are required: (?P<option>\S.*)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the arguments of the command: add {option}, which the program requires.", Action: launcherArgs},
		},
	},
	{
		Name: "SQLite lock", Matches: regexp.MustCompile(`database (?:table |schema )?is locked`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Let rank 0 alone write to the database, or give each rank a file of its own: SQLite lets one process write at a time, and its locks do not work on every network file system."},
			{Text: "If the ranks write seldom, let each wait for the others.", Action: "sqlite3.connect(PATH, timeout=60)"},
		},
	},
	{
		Name: "proxy", Matches: regexp.MustCompile(`Tunnel connection failed: (?P<status>\d{3})|\b(?P<status2>407) Proxy Authentication|HTTP Error (?P<status3>407)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The proxy has refused the request with status {status}: it does not allow this address, or asks for a login. For addresses in the cluster, leave the proxy out.", Action: "env: NO_PROXY, no_proxy: localhost,.svc,.cluster.local"},
			{Text: "Correct or remove the variables that name the proxy.", Action: "env: HTTPS_PROXY, https_proxy, HTTP_PROXY, http_proxy"},
		},
	},
	{
		Name: "MPI symbol", Matches: regexp.MustCompile(`undefined symbol: (?P<symbol>(?:ompi|opal|mca|orte|MPIR|MPID|MPIDI|MPL|P?MPIX?|mpi)_\w+)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The program or package was built for another MPI, or another version of it, than the one that it loads, which lacks {symbol}. Build it with the MPI of the image.", Action: "pip install --no-binary=mpi4py --force-reinstall mpi4py"},
			{Text: "See which MPI it loads. LD_LIBRARY_PATH may name the folder of another one.", Action: "ldd <program> | grep mpi"},
		},
	},
}

// failedChecks are kinds of errors of conditions that the program itself tests. They are asked last, since the text is often of another kind.
var failedChecks = []OwnError{
	{
		Name: "check", Matches: regexp.MustCompile(`^AssertionError: \S|^Check failed: `),
		Remedies: []v1alpha1.Remedy{
			{Text: "The condition of this assert, which the program tests itself, is false on this rank. Print the values in it on each rank, and look for the line that computed or received them.", Action: "print(rank, value, flush=True)"},
			{Text: "If the values come from another rank: the buffer of a call that returns at once, such as Isend, Irecv and Ibcast, must not be changed or read before its Wait has returned.", Action: "request.Wait()"},
		},
	},
}

// MisspelledOption are those for an option that the program does not know and that is close to one that it has. They use option and meant.
var MisspelledOption = []v1alpha1.Remedy{
	{Text: "Write {meant} in place of {option} in the command: the program has {meant}, and no {option}.", Action: launcherArgs, Rerun: true, Changes: changeCommand},
}

// BufferChanged are the first remedies for a program that changes the buffer of a call that has only begun. They use call, object, the buffer, first, the
// line of the call, line, that of the change, and script, its text.
var BufferChanged = []v1alpha1.Remedy{
	{Text: "Wait for the request of {call} (line {first}) before line {line} changes its buffer {object}: {script}. MPI may read the buffer until Wait has returned. Or use two buffers.", Action: "request.Wait()"},
}

// BufferRead are those for a program that uses the buffer of a receive that has only begun. They use the same figures.
var BufferRead = []v1alpha1.Remedy{
	{Text: "Wait for the request of {call} (line {first}) before line {line} uses its buffer {object}: {script}. The message is complete only when Wait has returned.", Action: "request.Wait()"},
}

// NumbersWarned is the first remedy for an error about numbers after NumPy has warned of them. It uses warned, such as "overflow encountered in exp
// (train.py, line 12)".
var NumbersWarned = []v1alpha1.Remedy{
	{Text: "See where the numbers became wrong: NumPy warned before, {warned}. Let it raise an exception there to see the calls.", Action: `numpy.seterr(all="raise")`},
}
