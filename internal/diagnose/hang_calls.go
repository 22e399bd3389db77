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
	case at.ended:
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
}

// ownWaits are the calls of Python that wait for threads, processes and connections of the program. The first that matches counts.
var ownWaits = []ownWait{
	{childCall, "a process that it has started", codes.ChildProcess},
	{regexp.MustCompile(`\b\w*(?i:proc|child|worker)\w*\.wait\(|\bos\.wait`), "a process that it has started", codes.ChildProcess},
	// A text and os.path have such a method with arguments.
	{regexp.MustCompile(`[\w\])]\.join\(\s*(?:timeout\s*=\s*)?[\d.]*\s*\)`), "the end of its own thread or process", codes.JoinedChild},
	{regexp.MustCompile(`[\w\])]\.get\(\s*(?:(?:block|timeout)\s*=[^,()]*)?\)`), "an item or a result of its own thread or process", codes.EmptyQueue},
	{regexp.MustCompile(`\.result\(|\bas_completed\(|[pP]ool\w*\.(?:map|starmap|apply)\(|[eE]xecutor\w*\.map\(`), "the results of its own pool", codes.PoolAwaited},
	{regexp.MustCompile(`\b\w*(?i:event|condition|cond|barrier|ready|done|stop|started|finished)\w*\.wait\(`), "an event of its own threads", codes.EventAwaited},
	{regexp.MustCompile(`\.acquire\(|^with \w*(?i:lock|mutex|semaphore)\w*:`), "a lock of its own threads", codes.ThreadLock},
	{regexp.MustCompile(`(?:^|[^\w.])input\(|\bsys\.stdin\b`), "input", codes.InputAwaited},
	{regexp.MustCompile(`\.accept\(`), "a connection to its port", codes.ConnectionAwaited},
}

// poolOfMPI is a pool whose processes are other ranks.
var poolOfMPI = regexp.MustCompile(`mpi4py\.futures|MPIPoolExecutor|MPICommExecutor`)

// ownWait returns what a place waits for in its own process; nil if that is unknown, or it is a call of MPI.
func (at place) ownWait() *ownWait {
	if at.ended || at.message() != "" || at.collective() != "" {
		return nil
	}
	for i := range ownWaits {
		if ownWaits[i].source.MatchString(at.source) {
			return &ownWaits[i]
		}
	}
	return nil
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
	sentence := phrase.Capital(ranks) + verbOf(ranks, " waits", " wait") + " for " + found.what
	if len(all) == 1 {
		sentence = "Each rank waits for " + found.what + ", not for another rank."
	} else {
		sentence = strings.ReplaceAll(sentence, " wait for a process that it has", " wait for processes that they have") + ", not for another rank; the others wait for " + verbOf(ranks, "it", "them") + "."
	}
	figures["alone"], figures["reason"] = sentence, sentence
	return found.remedies
}

// verbOf returns the form of a verb for one rank or several.
func verbOf(ranks, one, several string) string {
	if strings.HasPrefix(ranks, "ranks") {
		return several
	}
	return one
}

// peer is the other rank in a line that sends or receives: a number, or the program's own rank.
var peer = regexp.MustCompile(`\b(?:dest|source|dst|src)\s*=\s*(\d+|(?:\w+\.)?(?:rank|Get_rank\(\)))\s*[,)]`)

// isToItself reports whether a place sends to its own rank, or receives from it.
func (at place) isToItself() bool {
	found := peer.FindStringSubmatch(at.source)
	if at.message() == "" || found == nil {
		return false
	}
	return strings.HasSuffix(found[1], "rank") || strings.HasSuffix(found[1], "Get_rank()") || at.ranks == "rank "+found[1]
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
