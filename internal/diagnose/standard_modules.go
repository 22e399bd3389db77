package diagnose

import (
	"cmp"
	"path"
	"regexp"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
)

// standardModules are the modules of Python's standard library by whose names programs call their own files, of Python 3.8 to 3.14
// (sys.stdlib_module_names).
var standardModules = regexp.MustCompile(`^(?:abc|aifc|annotationlib|argparse|array|ast|asynchat|asyncio|asyncore|atexit|audioop|base64|bdb|binascii|bisect|builtins|bz2|cProfile|calendar|cgi|cgitb|chunk|cmath|cmd|code` +
	`|codecs|codeop|collections|colorsys|compileall|compression|concurrent|configparser|contextlib|contextvars|copy|copyreg|crypt|csv|ctypes|curses|dataclasses|datetime|dbm` +
	`|decimal|difflib|dis|distutils|doctest|email|encodings|ensurepip|enum|errno|faulthandler|fcntl|filecmp|fileinput|fnmatch|fractions|ftplib|functools|gc|getopt|getpass` +
	`|gettext|glob|graphlib|grp|gzip|hashlib|heapq|hmac|html|http|imaplib|imghdr|imp|importlib|inspect|io|ipaddress|itertools|json|keyword|lib2to3|linecache|locale|logging|lzma` +
	`|mailbox|mailcap|marshal|math|mimetypes|mmap|modulefinder|multiprocessing|netrc|nis|nntplib|numbers|opcode|operator|optparse|os|pathlib|pdb|pickle|pickletools|pipes` +
	`|pkgutil|platform|plistlib|poplib|posix|posixpath|pprint|profile|pstats|pty|pwd|py_compile|pyclbr|pydoc|queue|quopri|random|re|readline|reprlib|resource|rlcompleter|runpy` +
	`|sched|secrets|select|selectors|shelve|shlex|shutil|signal|site|smtpd|smtplib|sndhdr|socket|socketserver|spwd|sqlite3|ssl|stat|statistics|string|stringprep|struct` +
	`|subprocess|sunau|symtable|sys|sysconfig|syslog|tabnanny|tarfile|telnetlib|tempfile|termios|textwrap|threading|time|timeit|tkinter|token|tokenize|tomllib|trace|traceback` +
	`|tracemalloc|tty|turtle|types|typing|unicodedata|unittest|urllib|uu|uuid|venv|warnings|wave|weakref|webbrowser|wsgiref|xdrlib|xml|xmlrpc|zipapp|zipfile|zipimport|zlib` +
	`|zoneinfo)$`)

// movedNames are names that only some versions of these modules have ("What's New in Python").
var movedNames = regexp.MustCompile(`^(?:collections\.(?:(?:Mutable)?(?:Mapping|Sequence|Set)|Iterable|Iterator|Callable|Hashable|Sized|Container|Generator|\w+View)` +
	`|time\.clock|inspect\.(?:getargspec|formatargspec)|asyncio\.(?:coroutine|async|get_running_loop|run|create_task|to_thread|TaskGroup|timeout|Runner)|fractions\.gcd` +
	`|math\.(?:prod|perm|comb|dist|isqrt|lcm|cbrt|exp2|sumprod)|functools\.(?:cache|cached_property|singledispatchmethod)|itertools\.(?:pairwise|batched|izip|imap|ifilter)` +
	`|base64\.(?:decodestring|encodestring)|string\.(?:letters|lowercase|uppercase|maketrans|join|replace)|os\.(?:getcwdu|errno)|cgi\.escape|html\.parser\.HTMLParseError|platform\.(?:linux_distribution|dist|popen)` +
	`|ssl\.(?:wrap_socket|match_hostname|PROTOCOL_SSLv3)|locale\.format|typing\.\w+|types\.(?:\w+Type|UnionType|NoneType|EllipsisType|coroutine)|random\.(?:randbytes|jumpahead|binomialvariate)` +
	`|datetime\.UTC|unittest\.(?:makeSuite|findTestCases)|configparser\.(?:SafeConfigParser|readfp)|importlib\.(?:metadata|resources|find_loader)|pkgutil\.(?:ImpImporter|find_loader|get_loader)` +
	`|gettext\.\w+|threading\.(?:_shutdown|_time|excepthook)|sys\.(?:maxint|setcheckinterval|getcheckinterval|exc_clear)|thread\.\w+|ast\.(?:Num|Str|Bytes|NameConstant|Ellipsis|unparse)|enum\.StrEnum|hashlib\.file_digest|statistics\.(?:fmean|correlation|covariance|linear_regression))$`)

// lackingName is the name that a module lacks.
var lackingName = regexp.MustCompile(`module '[\w.]+' has no attribute '(\w+)'|cannot import name '(\w+)'`)

// shadowedStandard returns the remedies for a module of Python's standard library that lacks a name, by the file that was imported or "", and adds
// figures for them; nil for another module, and for the module itself in its folder.
func shadowedStandard(file string, figures map[string]string) []v1alpha1.Remedy {
	top, _, _ := strings.Cut(figures["module"], ".")
	if !standardModules.MatchString(top) || file != "" && agentapi.IsLibraryFile(file) {
		return nil
	}
	if name := lackingName.FindStringSubmatch(causeText(figures)); name != nil && file == "" {
		if figures["name"] = figures["module"] + "." + name[1] + name[2]; movedNames.MatchString(figures["name"]) {
			return codes.NewerStandard
		}
	}
	// A package has a folder of its own, which is what is to be renamed.
	figures["file"] = strings.TrimSuffix(file, "/__init__.py")
	if script := figures["raisedIn"]; file == "" && path.IsAbs(script) && !agentapi.IsLibraryFile(script) {
		figures["file"] = mountOfMaps.ReplaceAllString(path.Join(path.Dir(script), top+".py"), "/")
	}
	figures["module"], figures["file"] = top, cmp.Or(figures["file"], "the program's own file "+top+".py")
	return codes.ShadowedStandard
}
