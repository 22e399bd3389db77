package diagnose

import (
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/phrase"
)

// blockingSend is a call in a line of code that may wait until its message is received: of MPI's C interface, of mpi4py, or of PyTorch.
var blockingSend = regexp.MustCompile(`\bMPI_[SR]?[Ss]end\(|\.(?:Send|[SR]send)\(|(?i:\b\w*(?:comm|world|cart|graph)\w*)\.s?send\(|\bdist(?:ributed)?\.send\(`)

// A message is what a line of a program waits to send or to receive.
const (
	sendsMessage    = "a send"
	receivesMessage = "a receive"
)

// message returns which of the two a place is; "" if neither.
func (at place) message() string {
	switch {
	case at.ended, at.pauses():
		return ""
	case blockingSend.MatchString(at.source):
		return sendsMessage
	case isReceive(at.source):
		return receivesMessage
	}
	return ""
}

// ownWait is a call that waits for something of the rank's own process, and not for another rank.
type ownWait struct {
	source *regexp.Regexp
	// what completes a sentence such as "rank 1 waits for ...".
	what     string
	remedies []v1alpha1.Remedy
	// mayBeRank is set if what it waits for can come from another rank.
	mayBeRank bool
}

// ownWaits are the calls of Python that wait for threads, processes and connections of the program. The first that matches counts.
var ownWaits = []ownWait{
	{source: childCall, what: "a process that it has started", remedies: codes.ChildProcess},
	{source: regexp.MustCompile(`\b\w*(?i:proc|child|worker)\w*\.wait\(|\bos\.wait`), what: "a process that it has started", remedies: codes.ChildProcess},
	// A text and os.path have such a method with arguments.
	{source: regexp.MustCompile(`[\w\])]\.join\(\s*(?:timeout\s*=\s*)?[\d.]*\s*\)`), what: "the end of its own thread or process", remedies: codes.JoinedChild},
	{source: regexp.MustCompile(`[\w\])]\.get\(\s*(?:(?:block|timeout)\s*=[^,()]*)?\)`), what: "an item or a result of its own thread or process", remedies: codes.EmptyQueue},
	{source: regexp.MustCompile(`\.result\(|\bas_completed\(|[pP]ool\w*\.(?:map|starmap|apply)\(|[eE]xecutor\w*\.map\(`), what: "the results of its own pool", remedies: codes.PoolAwaited},
	// Requests of MPI have such a method, too, and names such as recv_ready.
	{source: regexp.MustCompile(`\b(?:\w*(?i:event|condition|barrier)\w*|(?:\w+_)?cond)\.wait\(`), what: "an event of its own threads", remedies: codes.EventAwaited},
	{source: takenLock, what: "a lock of its own threads", remedies: codes.ThreadLock},
	{source: regexp.MustCompile(`(?:^|[^\w.])input\(|\bsys\.stdin\b`), what: "input", remedies: codes.InputAwaited},
	{source: regexp.MustCompile(`\.accept\(`), what: "a connection to its port", remedies: codes.ConnectionAwaited, mayBeRank: true},
}

// poolOfMPI is a pool whose processes are other ranks.
var poolOfMPI = regexp.MustCompile(`mpi4py\.futures|MPIPoolExecutor|MPICommExecutor`)

// ownWait returns what a place waits for in its own process; nil if that is unknown, or it is a call of MPI.
func (at place) ownWait() *ownWait {
	// The workers of a pool of mpi4py are other ranks.
	if at.ended || at.pauses() || at.message() != "" || at.collective() != "" || at.isIn("/mpi4py/futures/") {
		return nil
	}
	for i := range ownWaits {
		if ownWaits[i].source.MatchString(at.source) {
			return &ownWaits[i]
		}
	}
	if anyWait.MatchString(at.source) && at.isIn("/threading.py:") {
		return &eventWait
	}
	return nil
}

// anyWait is a call that waits for something; eventWait is what it waits for if it is a call of Python's threading.
var (
	anyWait   = regexp.MustCompile(`\w\.wait\(`)
	eventWait = ownWait{source: anyWait, what: "an event of its own threads", remedies: codes.EventAwaited}
)

// isIn reports whether one of the calls of a place is in a file, of which a part of the path is given.
func (at place) isIn(file string) bool {
	return slices.ContainsFunc(at.calls, func(call string) bool { return strings.Contains(call, file) })
}

// ownWaitRemedies returns the first remedies if ranks wait for something of their own process, by the line in which they are and what the kernel shows: all
// of them, or those for which the others wait. It adds figures for them, and returns nil otherwise.
func ownWaitRemedies(text string, lines []string, command string, figures map[string]string) []v1alpha1.Remedy {
	d := doingsIn(text)
	outside := slices.Concat(d.ranks[agentapi.Sleeping], d.ranks[agentapi.Blocked])
	all := placesIn(lines)
	var found *ownWait
	ranks := ""
	for _, at := range all {
		wait := at.ownWait()
		numbers := numbersIn(andMore.ReplaceAllString(at.ranks, ""))
		isOutside := len(numbers) > 0 && !slices.ContainsFunc(numbers, func(rank int) bool { return !slices.Contains(outside, rank) })
		switch {
		case wait == nil || !isOutside:
		case found != nil && found.what != wait.what:
			return nil
		default:
			found, ranks = wait, at.ranks
		}
	}
	if found == nil || poolOfMPI.MatchString(command) {
		return nil
	}
	what, others := found.what+", not for another rank", "; the others wait for "+verbOf(ranks, "it", "them")+"."
	if found.mayBeRank {
		what = found.what
	}
	sentence := "Each rank waits for " + what + "."
	if len(all) > 1 {
		sentence = strings.ReplaceAll(phrase.Capital(ranks)+verbOf(ranks, " waits", " wait")+" for "+what+others, " wait for a process that it has", " wait for processes that they have")
	}
	remedies := found.remedies
	if found.source == takenLock && nameOwnLock(all, figures) {
		sentence = strings.Replace(sentence, " for a lock of its own threads, not for another rank", " for a lock that it may hold itself, and not in MPI", 1)
		remedies = slices.Concat(remedies, codes.OwnLock)
	}
	figures["alone"], figures["reason"] = sentence, sentence
	return remedies
}

// verbOf returns the form of a verb for one rank or several.
func verbOf(ranks, one, several string) string {
	if strings.HasPrefix(ranks, "ranks") {
		return several
	}
	return one
}

var (
	// messageCall is a call that sends or receives, of an object, and peer the other rank in it: a number, or the program's own rank in a communicator.
	messageCall = regexp.MustCompile(`((?:\w+\.)*\w+)\.(?i:[rs]?send|m?recv)\(`)
	peer        = regexp.MustCompile(`\b(?:dest|source|dst|src)\s*=\s*(?:(\d+)|((?:\w+\.)*\w+)\.(?:rank|Get_rank\(\)))\s*[,)]`)
	// worldOnly are communicators that all ranks of the job are in, with the numbers of the job.
	worldOnly = regexp.MustCompile(`^(?:comm|(?:\w+\.)*COMM_WORLD)$`)
)

// isToItself reports whether a place sends to its own rank, or receives from it. A variable named rank can be one of a loop over the others.
func (at place) isToItself() bool {
	calls, found := messageCall.FindAllStringSubmatch(at.source, 2), peer.FindStringSubmatch(at.source)
	if at.message() == "" || len(calls) != 1 || found == nil {
		return false
	}
	of := calls[0][1]
	return found[2] == of || worldOnly.MatchString(of) && at.ranks == "rank "+found[1]
}

// messageRemedies returns the first remedies for ranks of which some wait in a send or a receive, by what the others do, and adds figures; nil if all
// receive, one does something else than to call MPI, or the agent did not show all.
func messageRemedies(text string, lines []string, figures map[string]string) []v1alpha1.Remedy {
	shown, d := 0, doingsIn(text)
	all := placesIn(lines)
	of := map[string]int{}
	for _, at := range all {
		kind := at.message()
		if kind == "" && at.collective() != "" && !at.ended {
			kind = "a collective call"
		}
		of[kind]++
		shown += len(numbersIn(andMore.ReplaceAllString(at.ranks, "")))
	}
	if len(all) == 0 || of[""] > 0 || d.cut || shown != len(d.listed()) || len(d.ranks[agentapi.Sleeping]) > 0 {
		return nil
	}
	if i := slices.IndexFunc(all, place.isToItself); i >= 0 {
		figures["first"], figures["firstPlace"] = all[i].ranks, all[i].where()
		figures["alone"] = phrase.Capital(all[i].ranks) + verbOf(all[i].ranks, " waits for itself: the other rank of ", " wait for themselves: the other rank of ") + all[i].message() + " is the own one."
		return codes.MessageToItself
	}
	switch len(all) {
	case of[sendsMessage]:
		figures["alone"] = "All ranks are in a send, and none receives: a long message is sent only when its receive has begun."
		return codes.AllSend
	case of[receivesMessage], of["a collective call"]:
		return nil
	}
	return apartInMessages(all, figures)
}

// apartInMessages is messageRemedies for ranks that do not all do the same.
func apartInMessages(all []place, figures map[string]string) []v1alpha1.Remedy {
	i := slices.IndexFunc(all, func(at place) bool { return at.message() != "" })
	other := slices.IndexFunc(all, func(at place) bool { return at.message() != all[i].message() })
	if other < 0 {
		return nil
	}
	one, two := all[i], all[other]
	figures["first"], figures["firstPlace"], figures["second"], figures["secondPlace"] = one.ranks, one.where(), two.ranks, two.where()
	is := verbOf(one.ranks, " is", " are") + " in " + one.message()
	if call := two.collective(); call != "" && two.message() == "" {
		figures["secondCall"] = call
		figures["alone"] = phrase.Capital(one.ranks) + is + ", and " + two.ranks + verbOf(two.ranks, " has", " have") + " gone on to " + call + " without the matching call."
		return codes.MessageWithoutMatch
	}
	figures["alone"] = phrase.Capital(one.ranks) + is + " and " + two.ranks + verbOf(two.ranks, " is", " are") + " in " + two.message() + ", and the two do not match."
	return codes.MessagesApart
}
