"""Patterns of secrets, levels and progress in logs, from internal/logs.

Run `make sdk-generate` to update this file; do not edit it.
"""

SECRET_WORDS = ('key', 'id', 'word', 'wd', 'pass', 'phrase', 'passcode', 'string', 'secret', 'token', 'auth', 'authorization', 'credential', 'credentials', 'cred', 'creds', 'sas')
NOTHING = ('', 'none', 'null', 'nil', '<nil>', 'undefined', 'unset', 'empty', 'true', 'false', 'yes', 'no', 'required', 'missing', 'invalid', 'expired', 'incorrect', 'ok', 'redacted', '[redacted]', '<redacted>', 'hidden')
ENDINGS = 8
LONGEST_KEY = 400
PATTERNS = {
    'modelToken': '(?i)(?:^|[_.-])(?:bos|eos|pad|unk|mask|cls|sep|image|start|stop|end|special|next|first|last|prev|new|per)[_-]?token$',
    'weakName': '(?i)(?:auth|authorization|sas|cred(?:ential)?s?|_pass|-pass)$',
    'pathName': '(?i)(?:token|cred(?:ential)?s?|auth|(?:private|ssh|client|signing|api|license)[_.-]?key)$',
    'numberName': '(?i)(?:token|cred(?:ential)?s?|auth|sas|pass)$',
    'isNumber': '^[-+]?\\d[\\d.,_:]*(?:[eE][-+]?\\d+)?[a-z%]{0,3}[,;)\\]}]*$',
    'isPath': '^(?:~|\\.{1,2})?(?:/[\\w.-]+)+/?$',
    'isVariable': '^\\$(?:\\{[^}]*\\}|\\([\\w.]+\\)|[A-Z_][A-Z0-9_]*)$',
    'isMark': '^(?:<\\|?/?[A-Za-z_]{0,16}\\|?>|\\[[A-Z_]{1,16}\\])[,;)\\]}]*$',
    'wordsOnly': '^[A-Za-z]?[a-z-]*[.,;:!?)]*$',
    'plainKey': '(?i)(?:^|[_.-])(?:public|pub|sort|order|primary|foreign|partition|cache|group|hash|range|row|column|col|index|idx|object|label|taint|node|topology|metric|join|lookup|unique|config|dict|map|image|text|input|output|prompt|feature|target|dataset|rng|prng|random|state|event|dedup|idempotency|routing|shard|tag|field|json|hot|job|run|task|step|worker|pod|trace|span|batch|s3|file|path)[_-]key$',
    'isKey': '^[^\\s.()\\[\\]{}:,<>$]{8,}$',
    'hasLetter': '[A-Za-z]',
    'hasDigit': '[0-9]',
    'beginsPath': '^(?:[a-z_-]*|~)/',
    'keyBegin': '-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----',
    'keyEnd': '-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----',
    'keyLine': '^\\s*(?:\\[[^\\]]*\\](?:<\\w+>)?:?\\s*)?(?:[A-Za-z0-9+/=]+|(?:Proc-Type|DEK-Info|Version|Comment): .*)\\s*$',
    'keyPart': '(?:[A-Za-z0-9+/]{32,}={0,2}|[A-Za-z0-9+/]{2,}={1,2}(?P<after>["\'\\\\\\s]|$))',
    'fullKeyLine': '^\\s*(?:\\[[^\\]]*\\](?:<\\w+>)?:?\\s*)?[A-Za-z0-9+/]{60,80}={0,2}\\s*$',
    'hexOnly': '^\\s*(?:[0-9a-f]+|[0-9A-F]+)\\s*$',
    'rankTag': '^\\[(?:[^\\],]*,)?(?:MPI_COMM_WORLD,)?(\\d+)\\](?:<\\w+>)?:? ?',
    'pair': "(?:^|[\\s,;|(\\[{])'?([A-Za-z_]+)'?\\s?[=:]\\s?([-+]?(?:\\d[\\d,._]*(?:[eE][-+]?\\d+)?(?:/\\d+)?%?|nan|NaN|inf|Infinity))(?:$|[\\s,;|)\\]}])",
    'inWords': '(?:^|[\\s,;|(\\[{])(?:([Ee]poch):?\\s+\\[?(\\d+(?:/\\d+)?)|([Ll]oss|[Aa]ccuracy|[Aa]cc)\\s+(\\d+\\.\\d+(?:[eE][-+]?\\d+)?))(?:$|[\\s,;|:)\\]}])',
    'klogHead': '^[IWEF]\\d{4} \\d\\d:\\d\\d',
    'declared': '(?i)\\b(?:level|levelname|log_level|severity|lvl)["\']?\\s*[=:]\\s*["\']?([a-z]+)',
}
PROGRESS_NAMES = {'epoch': 'epoch', 'step': 'step', 'global_step': 'step', 'iteration': 'step', 'loss': 'loss', 'train_loss': 'loss', 'accuracy': 'accuracy', 'acc': 'accuracy', 'progress': 'progress'}
LEVELS = ('', 'debug', 'info', 'warning', 'error')
DECLARED_LEVELS = {'trace': 'debug', 'debug': 'debug', 'info': 'info', 'notice': 'info', 'warn': 'warning', 'warning': 'warning', 'error': 'error', 'err': 'error', 'fatal': 'error', 'critical': 'error', 'panic': 'error'}
LEVEL_TAGS = {'TRACE': 'debug', 'DEBUG': 'debug', 'INFO': 'info', 'NOTICE': 'info', 'WARN': 'warning', 'WARNING': 'warning', 'ERROR': 'error', 'FATAL': 'error', 'CRITICAL': 'error', 'SEVERE': 'error'}
LEVEL_SIGNS = {'Warning': 'warning', 'warning': 'warning', 'Error': 'error', 'Exception': 'error', 'Traceback': 'error', 'fatal': 'error', 'Fatal': 'error', 'panic': 'error', 'TERMINATION': 'error', 'ABORT': 'error', 'MPI_ABORT': 'error', 'SIGSEGV': 'error', 'SIGABRT': 'error', 'SIGKILL': 'error', 'SIGBUS': 'error', 'SIGILL': 'error', 'Segmentation': 'error'}
LEVEL_PHRASES = ('mpirun noticed', 'exited with non-zero status', 'error: ', 'error]', 'Permission denied', 'Connection refused', 'command not found', 'No such file or directory')
# The hint, the pattern, and what is no secret although it matches.
RULES = [
    (('eyj',), '\\beyJ[\\w-]{6,}\\.[\\w-]{4,}(?:\\.[\\w-]*)*', None),
    (('authorization',), '(?i)\\bauthorization\\\\?["\']?\\s*[:=]\\s*\\\\?["\']?(?:bearer|basic|token|negotiate|apikey)\\s+(?P<secret>[^\\s"\'\\\\]+[^"\'\\\\]*)', None),
    (('authorization',), '(?i)\\bauthorization\\\\?["\']?\\s*[:=]\\s*\\\\?["\']?(?:digest|oauth|hawk|aws4-hmac-sha256)\\s+(?P<secret>.+)', None),
    (('bearer',), '(?i)\\bbearer\\s+(?P<secret>[\\w.~+/=-]{8,})', 'prose'),
    (('cookie',), '(?i)\\bcookie2?\\\\?["\']?:\\s*(?P<secret>.+)', None),
    (('://',), '(?i)\\b(?:postgres\\w*|mysql|mariadb|mongodb|redis|rediss|amqps?)(?:\\+\\w+)?://(?P<secret>[^\\s"\'<>]+)@', None),
    (('://',), '(?i)\\b[a-z][a-z0-9+.-]*://(?P<secret>[^/\\s"\'<>@]*:[^/\\s"\'<>]*)(?:@|…$)', None),
    (('://',), '(?i)\\b(?:https?|git)://(?P<secret>[\\w.~-]{20,})@', None),
    (('sig=', 'signature=', 'sas=', 'credential=', 'security-token='), '(?i)[?&;](?:sig|signature|sas|x-(?:amz|goog)-(?:signature|credential|security-token))=(?P<secret>[^&\\s"\'#]+)', None),
    (('?key=', '&key=', '?code=', '&code='), '(?i)[?&](?:key|code)=(?P<secret>[^&\\s"\'#]{16,})', None),
    (('hooks.',), '(?i)\\bhooks\\.[\\w.-]+/(?:services|workflows|triggers)/(?P<secret>[^\\s"\']+)', None),
    (('akia', 'asia'), '\\b(?:AKIA|ASIA)[A-Z0-9]{8,}', None),
    (('ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_', 'glpat-', 'hf_', 'sk_', 'rk_', 'npm_', 'pypi-', 'nvapi-', 'dckr_', 'dop_v1_', 'r8_', 'api_org_'), '\\b(?:gh[pousr]_|github_pat_|glpat-|hf_|api_org_|npm_|pypi-|nvapi-|dckr_[a-z]+_|dop_v1_|r8_|[sr]k_(?:live|test)_)(?:[\\w-]{16,}|[\\w-]*…$)', None),
    (('sk-',), '\\bsk-[\\w-]{20,}', None),
    (('aiza', 'ya29.', 'gocspx', 'hvs.', 'sg.'), '\\b(?:AIza[\\w-]{20,}|ya29\\.[\\w.-]{20,}|GOCSPX-[\\w-]{16,}|hv[sb]\\.[\\w-]{16,}|SG\\.[\\w-]{16,}\\.[\\w-]{16,})', None),
    (('xox', 'xapp'), '\\b(?:xox[abeoprs]|xapp)-[\\w-]{10,}', None),
    (('dapi',), '\\bdapi[0-9a-f]{32}', None),
    (('q~',), '[\\w~.-]{3}\\dQ~[\\w~.-]{30,}', None),
    (('sha256~',), '\\bsha256~[\\w-]{20,}', None),
    (('wandb',), '(?i)\\bwandb[\\w .:=/-]{0,40}?\\b(?P<secret>[0-9a-f]{40})\\b', None),
    ('hasSetting', '(?i)(?P<name>(?:pass(?:word|wd|phrase|code)|pwd|(?:ssh|db|[_-])pass|secret|token|credentials?|creds|(?:\\b|[_-])cred|auth(?:orization)?|sas|connection[_-]?string|(?:api|access|secret|private|account|storage|shared|encryption|signing|master|license|ssh|subscription|service|session|hmac|client|webhook|deploy|signature)[_.-]?(?:access[_.-]?)?key(?:[_.-]?id)?|secret[_-]?id))(?P<set>\\\\?["\']?\\s*(?:=>|:=|==?|:)\\s*)(?:\\\\["\'](?P<secret1>[^"\'\\\\]*)|[bfru]?"(?P<secret2>(?:[^"\\\\]|\\\\.)*)|[bfru]?\'(?P<secret3>(?:[^\'\\\\]|\\\\.)*)|(?P<secret4>[^\\s"\'\\\\]\\S*))', 'setting'),
    ('hasFlag', '(?i)(?:^|[\\s"\'\\[,])--?[\\w.-]*?(?P<name>(?:pass(?:word|wd|phrase|code)|pwd|(?:ssh|db|[_-])pass|secret|token|credentials?|creds|(?:\\b|[_-])cred|auth(?:orization)?|sas|connection[_-]?string|(?:api|access|secret|private|account|storage|shared|encryption|signing|master|license|ssh|subscription|service|session|hmac|client|webhook|deploy|signature)[_.-]?(?:access[_.-]?)?key(?:[_.-]?id)?|secret[_-]?id))(?P<set>\\\\?["\']?(?:\\s*,\\s*|\\s+))(?:\\\\["\'](?P<secret1>[^"\'\\\\]*)|[bfru]?"(?P<secret2>(?:[^"\\\\]|\\\\.)*)|[bfru]?\'(?P<secret3>(?:[^\'\\\\]|\\\\.)*)|(?P<secret4>[^\\s"\'\\\\]\\S*))', 'argument'),
    (('_key', '-key'), '(?i)(?P<name>[_-]key)(?P<set>\\\\?["\']?\\s*(?:=>|:=|==?|:)\\s*)(?:\\\\["\'](?P<secret1>[^"\'\\\\]*)|[bfru]?"(?P<secret2>(?:[^"\\\\]|\\\\.)*)|[bfru]?\'(?P<secret3>(?:[^\'\\\\]|\\\\.)*)|(?P<secret4>[^\\s"\'\\\\]\\S*))', 'key'),
    (('_key', '-key'), '(?i)(?:^|[\\s"\'\\[,])--?[\\w.-]*?(?P<name>[_-]key)(?P<set>\\\\?["\']?(?:\\s*,\\s*|\\s+))(?:\\\\["\'](?P<secret1>[^"\'\\\\]*)|[bfru]?"(?P<secret2>(?:[^"\\\\]|\\\\.)*)|[bfru]?\'(?P<secret3>(?:[^\'\\\\]|\\\\.)*)|(?P<secret4>[^\\s"\'\\\\]\\S*))', 'key'),
    (('env ',), '(?i)(?:^|\\s)ENV\\s+[\\w.-]*?(?P<name>(?:pass(?:word|wd|phrase|code)|pwd|(?:ssh|db|[_-])pass|secret|token|credentials?|creds|(?:\\b|[_-])cred|auth(?:orization)?|sas|connection[_-]?string|(?:api|access|secret|private|account|storage|shared|encryption|signing|master|license|ssh|subscription|service|session|hmac|client|webhook|deploy|signature)[_.-]?(?:access[_.-]?)?key(?:[_.-]?id)?|secret[_-]?id))(?P<set>\\s+)(?:\\\\["\'](?P<secret1>[^"\'\\\\]*)|[bfru]?"(?P<secret2>(?:[^"\\\\]|\\\\.)*)|[bfru]?\'(?P<secret3>(?:[^\'\\\\]|\\\\.)*)|(?P<secret4>[^\\s"\'\\\\]\\S*))', 'setting'),
    (('d is', 'd was', 'phrase is', 'phrase was', 'secret is', 'secret was', 'token is', 'token was', 'key is', 'key was'), '(?i)(?:password|passphrase|secret|token|key) (?:is|was):? ["\'`]?(?P<secret>[^\\s"\'`]{4,})', 'prose or number'),
    (('passw',), '(?i)(?:^|\\s)passw(?:ord|d)\\s+(?P<secret>\\S*\\d\\S*)', None),
    (('login',), '(?i)\\blogin\\s+\\S+\\s+password\\s+(?P<secret>\\S+)', None),
    (('login',), '\\blogin\\b.*?\\s-p[\\s=]*(?P<secret>\\S+)', None),
    (('configure',), '\\baws\\b.*?\\bconfigure\\s+set\\s+\\S*(?:secret|token|key|password)\\S*\\s+["\']?(?P<secret>[^\\s"\']+)', None),
    (('</',), '(?i)<(?:[\\w.-]+:)?[\\w.-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)[\\w.-]*(?:\\s[^<>]*)?>(?P<secret>[^<>]+)</', None),
    (('sshpass',), '\\bsshpass\\s+-p\\s*(?P<secret>\\S+)', None),
    (('mysql', 'mariadb'), '\\b(?:mysql|mariadb)\\w*\\s.*?-p(?P<secret>[^\\s-]\\S*)', None),
    (('-u', '--user'), '(?:^|\\s)(?:-u|--user)(?:\\s+|=)["\']?[^:\\s"\']+:(?P<secret>[^\\s"\']+)', 'number'),
]
