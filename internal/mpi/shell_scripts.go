package mpi

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxScript is how long a script may be in bytes, and maxBrackets how many brackets it may open, so that it is parsed: the parser and
	// what reads its result call themselves for each level of nesting.
	maxScript   = 64 << 10
	maxBrackets = 4000
	// maxRead is how many bytes of a script and of those within it are parsed, since each is parsed by itself. Each counts as costOfParsing more.
	maxRead       = 2 * maxScript
	costOfParsing = 1 << 10
	// maxReaders is how many programs after a launcher in its pipes are read, and maxLaunches how many calls are kept, of which the last is one: real
	// scripts have fewer.
	maxReaders, maxLaunches = 20, 200
)

var (
	// wrappers are programs that run the command in their arguments, as it is.
	wrappers = []string{"time", "env", "stdbuf", "nice", "ionice", "nohup", "timeout", "setsid", "numactl", "taskset", "tini", "dumb-init"}
	// mentions are programs and builtins that do not run the program in their arguments.
	mentions = []string{
		"[", "alias", "apk", "apt", "apt-get", "awk", "cat", "cd", "chmod", "cp", "dnf", "echo", "export", "file", "find", "grep", "hash", "kill", "killall", "ldd",
		"ln", "ls", "man", "mv", "pgrep", "pip", "pkill", "printf", "readlink", "readonly", "rm", "rpm", "sed", "set", "test", "type", "ulimit", "umask", "unset", "whereis",
		"which", "yum",
	}
	// informs are options with which a launcher of MPI prints something about itself, and starts no ranks.
	informs = []string{"--version", "-version", "-V", "--help", "-help", "-h", "-info", "--info"}
	// readsAll are programs that read all of their input before they end, so that no program after them in a pipe ends those before.
	readsAll = []string{"sort", "tac", "tail", "wc"}
	// waits are commands that wait for others, or for a time.
	waits = []string{"wait", "fg", "sleep", "tail"}
	// endsEarly matches an option of grep with which it does not read all of its input.
	endsEarly = regexp.MustCompile(`^-(?:[chilnorsvwxyzEFGHILPRUZ]*([qm])\w*|(-quiet|-silent|-max-count)(?:=.*)?)$`)
)

// shellScript is what a script of a shell does with the launchers of MPI.
type shellScript struct {
	text     string
	file     *syntax.File
	launches []launch
	// functions are those of its functions that start ranks.
	functions []string
	// awaits are where it waits for commands in the background.
	awaits []uint
	// readsStatus is set if it reads the exit codes of all programs in a pipe.
	readsStatus bool
	// left is how many bytes of the scripts in it may still be parsed.
	left *int
}

// launch is a call of a launcher of MPI, or of a function that has one.
type launch struct {
	// args are the words of the command, and words those after the launcher, without quotation marks.
	args  []*syntax.Word
	words []string
	surroundings
}

// surroundings are what a command is a part of.
type surroundings struct {
	// readers are the commands that read its output through pipes; nil if there is none.
	readers *readers
	// isLost is set if its exit code is not that of such a pipe.
	isLost bool
	// endOfBackground is where the command in the background ends that it is a part of; 0 if it is in the foreground.
	endOfBackground uint
	// failsInPipes is whether the shell's option pipefail is set.
	failsInPipes *bool
}

// readers are a command that reads from a pipe, and those that read what that writes.
type readers struct {
	command *syntax.Stmt
	next    *readers
}

// before returns the readers with others after them, and at most so many if there are others.
func (r *readers) before(others *readers, most int) *readers {
	if others == nil {
		return r
	}
	if r == nil {
		return others
	}
	if most <= 1 {
		return &readers{command: r.command}
	}
	return &readers{r.command, r.next.before(others, most-1)}
}

// inSubshell returns the surroundings for a command whose options do not stay.
func (s surroundings) inSubshell() surroundings {
	s.failsInPipes = new(*s.failsInPipes)
	return s
}

// parseScript reads a script; nil if a shell would not, or if it is too long to be read.
func parseScript(script Script) *shellScript { return parseWithin(script, new(maxRead)) }

// parseWithin is parseScript for a script of which so many bytes are left to be parsed, with those within it.
func parseWithin(script Script, left *int) *shellScript {
	text := script.Text
	if len(text) > min(maxScript, *left) || strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "`") > maxBrackets {
		return nil
	}
	*left -= len(text) + costOfParsing
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	s := &shellScript{text: text, file: file, left: left}
	s.functions = s.functionsWithRanks()
	s.readIn(file, surroundings{failsInPipes: new(script.FailsInPipes)})
	return s
}

// functionsWithRanks returns the functions of a script in which it calls a launcher of MPI.
func (s *shellScript) functionsWithRanks() (names []string) {
	var functions []*syntax.FuncDecl
	var calls []uint
	syntax.Walk(s.file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.FuncDecl:
			functions = append(functions, node)
		case *syntax.CallExpr:
			// Most scripts have no function.
			if len(functions) > 0 && launcherIn(s.wordsOf(node)) >= 0 {
				calls = append(calls, node.Pos().Offset())
			}
		}
		return true
	})
	slices.Sort(calls)
	for _, function := range functions {
		if at, _ := slices.BinarySearch(calls, function.Pos().Offset()); at < len(calls) && calls[at] < function.End().Offset() {
			names = append(names, function.Name.Value)
		}
	}
	return names
}

// readIn reads all commands in a part of a script.
func (s *shellScript) readIn(part syntax.Node, in surroundings) {
	syntax.Walk(part, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Stmt:
			s.read(node, in)
			return false
		case *syntax.CmdSubst, *syntax.ProcSubst:
			if node == part {
				return true
			}
			// Its output is read by what it is a part of.
			inner := in.inSubshell()
			inner.readers, inner.isLost = nil, false
			s.readIn(node, inner)
			return false
		case *syntax.ParamExp:
			if node.Param == nil {
				break
			}
			switch node.Param.Value {
			case "!":
				s.awaits = append(s.awaits, node.Pos().Offset())
			case "PIPESTATUS", "pipestatus":
				s.readsStatus = true
			}
		}
		return true
	})
}

// read reads a command.
func (s *shellScript) read(command *syntax.Stmt, in surroundings) {
	if command.Background {
		in = in.inSubshell()
		in.endOfBackground = command.End().Offset()
	}
	for _, redirect := range command.Redirs {
		s.readIn(redirect, in)
	}
	switch of := command.Cmd.(type) {
	case nil:
	case *syntax.BinaryCmd:
		if of.Op != syntax.Pipe && of.Op != syntax.PipeAll {
			s.read(of.X, in)
			s.read(of.Y, in)
			return
		}
		before := in.inSubshell()
		before.readers = &readers{of.Y, in.readers}
		before.isLost = in.isLost || !*in.failsInPipes
		s.read(of.X, before)
		s.read(of.Y, in.inSubshell())
	case *syntax.Subshell:
		s.readIn(of, in.inSubshell())
	case *syntax.FuncDecl:
		s.readIn(of, surroundings{failsInPipes: in.failsInPipes})
	case *syntax.CallExpr:
		s.readCall(of, in)
		s.readIn(of, in)
	default:
		if _, is := of.(*syntax.WhileClause); is {
			s.awaits = append(s.awaits, command.Pos().Offset())
		}
		s.readIn(of, in)
	}
}

// readCall reads a simple command.
func (s *shellScript) readCall(call *syntax.CallExpr, in surroundings) {
	words := s.wordsOf(call)
	if len(words) == 0 {
		return
	}
	if on, is := setsPipefail(words); is {
		*in.failsInPipes = on
	}
	if slices.Contains(waits, words[0]) {
		s.awaits = append(s.awaits, call.Pos().Offset())
	}
	if at := launcherIn(words); at >= 0 {
		s.add(launch{call.Args, words[at+1:], in})
		return
	}
	if slices.Contains(s.functions, words[0]) {
		s.add(launch{surroundings: in})
		return
	}
	script, is := scriptIn(words)
	if !is {
		return
	}
	inner := parseWithin(script, s.left)
	if inner == nil {
		return
	}
	for _, one := range inner.launches {
		one.readers = one.readers.before(in.readers, maxReaders)
		one.isLost = !inner.readsStatus && one.isLost || in.isLost
		// Whether the inner script waits for what it has in the background is its own matter.
		one.endOfBackground = in.endOfBackground
		s.add(one)
	}
}

// add adds a call of a launcher, in place of the last if there are many.
func (s *shellScript) add(one launch) {
	s.launches = append(s.launches[:min(len(s.launches), maxLaunches-1)], one)
}

// wordsOf returns the words of a command without quotation marks. A word that the shell has to complete is as it is written.
func (s *shellScript) wordsOf(call *syntax.CallExpr) (words []string) {
	for _, word := range call.Args {
		text, isPlain := plain(word.Parts)
		if !isPlain {
			text = s.text[word.Pos().Offset():word.End().Offset()]
		}
		words = append(words, text)
	}
	return words
}

// plain returns the text of a word without quotation marks. isPlain is false if the shell has to complete it.
func plain(parts []syntax.WordPart) (text string, isPlain bool) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text += part.Value
		case *syntax.SglQuoted:
			text += part.Value
		case *syntax.DblQuoted:
			inner, is := plain(part.Parts)
			if !is {
				return "", false
			}
			text += inner
		default:
			return "", false
		}
	}
	return text, true
}

// launcherIn returns which of the words of a command is the launcher of MPI that it calls; -1 if it calls none.
func launcherIn(words []string) int {
	if len(words) == 0 || slices.Contains(mentions, path.Base(words[0])) || words[0] == "command" && len(words) > 1 && strings.HasPrefix(words[1], "-") {
		return -1
	}
	at := slices.IndexFunc(words, isLauncher)
	if at < 0 || at+1 == len(words) || slices.Contains(informs, words[at+1]) {
		return -1
	}
	isValue := at > 0 && strings.HasPrefix(words[at-1], "--") && words[at-1] != "--" && !slices.Contains(wrappers, path.Base(words[0]))
	if isValue || runsOnce.MatchString(path.Base(words[0])) {
		// It is an argument of another program.
		return -1
	}
	return at
}

func isLauncher(word string) bool {
	return slices.Contains(Launchers, path.Base(word)) && !strings.ContainsAny(word, " \t\n=")
}

// scriptIn returns the script that the words of a command have a shell run, also by a program such as time.
func scriptIn(words []string) (script Script, is bool) {
	at := 0
	if words[0] == "exec" || slices.Contains(wrappers, path.Base(words[0])) {
		at = max(slices.IndexFunc(words, isShell), 0)
	}
	return ScriptOf(words[at:])
}

// setsPipefail reports whether a command changes the option of its shell by which a pipe fails with any of its programs, and to what.
func setsPipefail(words []string) (on, is bool) {
	const option = "pipefail"
	switch words[0] {
	case "set":
		for rest := words[1:]; len(rest) > 0 && isShellOption(rest[0]); {
			var set []string
			isOn := rest[0][0] == '-'
			set, rest = takeShellOption(append([]string{"-" + rest[0][1:]}, rest[1:]...))
			if slices.Contains(set, option) {
				on, is = isOn, true
			}
		}
	case "shopt":
		flags := strings.Join(slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !isShellOption(word) }), "")
		is = strings.Contains(flags, "o") && strings.ContainsAny(flags, "su") && slices.Contains(words, option)
		on = is && strings.Contains(flags, "s")
	case "setopt", "unsetopt":
		is = slices.ContainsFunc(words[1:], func(word string) bool { return strings.ReplaceAll(strings.ToLower(word), "_", "") == option })
		on = is && words[0] == "setopt"
	}
	return on, is
}

// launchesOf returns the calls of MPI's launchers by the words of a container's command, each as the words after the launcher, or by
// its script, if it has one and that can be read.
func launchesOf(words []string, script *shellScript) (all [][]string) {
	if script != nil {
		for _, one := range script.launches {
			all = append(all, one.words)
		}
		return all
	}
	if at := launcherIn(words); at >= 0 && !slices.ContainsFunc(words[:at], isShell) {
		return [][]string{words[at+1:]}
	}
	return nil
}

// endsInBackground reports whether the last command of a script starts ranks in the background.
func (s *shellScript) endsInBackground() bool {
	commands := s.file.Stmts
	if len(s.launches) == 0 || len(commands) == 0 {
		return false
	}
	last := commands[len(commands)-1]
	return last.Background && s.launches[len(s.launches)-1].endOfBackground == last.End().Offset()
}

// isAwaited reports whether a script waits for its last call of a launcher, or may do so: those before may be for its time only.
func (s *shellScript) isAwaited() bool {
	if len(s.launches) == 0 {
		return true
	}
	end := s.launches[len(s.launches)-1].endOfBackground
	return end == 0 || slices.ContainsFunc(s.awaits, func(at uint) bool { return at >= end })
}

// losesExitCode reports whether a pipe loses the exit code of a launcher.
func (s *shellScript) losesExitCode() bool {
	return !s.readsStatus && slices.ContainsFunc(s.launches, func(one launch) bool { return one.isLost })
}

// breakingReader returns the program that closes a pipe to which a launcher writes before that has ended; "" if there is none.
func (s *shellScript) breakingReader() string {
	for _, one := range s.launches {
		for reader, n := one.readers, 0; reader != nil && n < maxReaders; reader, n = reader.next, n+1 {
			call, is := reader.command.Cmd.(*syntax.CallExpr)
			if !is || len(call.Args) == 0 {
				continue
			}
			name := path.Base(call.Args[0].Lit())
			if slices.Contains(readsAll, name) {
				break
			}
			if name == "head" {
				return name
			}
			if option := earlyEnd(call.Args[1:]); strings.HasSuffix(name, "grep") && option != "" {
				return name + " " + option
			}
		}
	}
	return ""
}

// earlyEnd returns the option among the arguments of grep with which it does not read all of its input; "" if there is none.
func earlyEnd(arguments []*syntax.Word) string {
	for _, word := range arguments {
		if found := endsEarly.FindStringSubmatch(word.Lit()); found != nil {
			return "-" + found[1] + found[2]
		}
	}
	return ""
}
