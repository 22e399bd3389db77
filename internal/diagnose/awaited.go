package diagnose

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/mpi"
)

// nameChild adds the failed child process to the figures for which a rank waits that makes no progress, and returns its lines; nil if the launcher's
// log shows none.
func (p *input) nameChild(text string, launcher facts.Pod, figures map[string]string) []string {
	lines := launcher.Log.Lines
	found, name := loglines.ChildFailed(lines)
	if found == nil {
		return nil
	}
	waiting := waitForChildren(text, lines)
	switch {
	case found.Rank != "" && !slices.Contains(waiting, found.Rank), len(waiting) == 0:
		return nil
	case found.Rank != "":
		waiting = []string{found.Rank}
	}
	of := "one of the ranks"
	if len(waiting) == 1 {
		of = "rank " + waiting[0]
		figures["rank"] = waiting[0]
	}
	own := map[string]string{"rank": figures["rank"]}
	words := p.addError(launcher, found, own)
	for _, name := range []string{"errorText", "wholeError", "causeText", "placeText", "ownSource", "raisedIn"} {
		figures[name] = own[name]
	}
	figures["child"], figures["childOf"] = quotedText(name), of
	return words
}

var (
	// childAwaited is a line of Python that waits for another process: a queue, a pipe, a lock, an event or its end.
	childAwaited = regexp.MustCompile(`\.(?:get|put|join|recv|recv_bytes|wait|acquire|poll)\(`)
	// pipeAwaited is a rank that the kernel shows to wait for a pipe, as multiprocessing uses them.
	pipeAwaited = regexp.MustCompile(`; rank (\d+) waits for input from a pipe(?:;|$)`)
)

// waitForChildren returns the ranks that wait, and not in MPI: at a line that can wait for a process, or for a pipe.
func waitForChildren(text string, lines []string) (ranks []string) {
	d := doingsIn(text)
	for _, at := range placesIn(lines) {
		if !childAwaited.MatchString(at.source) || isReceive(at.source) || at.pauses() {
			continue
		}
		for _, rank := range numbersIn(andMore.ReplaceAllString(at.ranks, "")) {
			if slices.Contains(d.ranks[agentapi.Sleeping], rank) || slices.Contains(d.ranks[agentapi.Blocked], rank) {
				ranks = append(ranks, strconv.Itoa(rank))
			}
		}
	}
	if pipe := pipeAwaited.FindStringSubmatch(text); pipe != nil && !slices.Contains(ranks, pipe[1]) {
		ranks = append(ranks, pipe[1])
	}
	return ranks
}

// childEntry returns the definition for a rank that waits for a child process that has failed.
func (p *input) childEntry(code codes.Code, figures map[string]string) codes.Entry {
	entry := codes.ChildFailed
	entry.Code = code
	figures["stall"] = lower(figures["ranksNow"]) + " idle"
	if code == codes.RanksWaiting {
		figures["stall"] = "all " + figures["ranksNow"] + " wait"
	}
	if codes.OwnErrorOf(figures["wholeError"]) != nil {
		own := p.ownError(codes.Lookup(codes.ApplicationFailed), figures)
		entry.Remedies = slices.Concat(entry.Remedies[:1], own.Remedies[:min(1, len(own.Remedies))], entry.Remedies[1:])
	}
	return entry
}

// lockAwaited is a rank that waits for a file's lock, and the rank that holds it, if that runs in the same container.
var lockAwaited = regexp.MustCompile(`; rank (\d+) waits for the lock of (.+?)(?:` + strings.ReplaceAll(agentapi.LockHolder, "%d", `(\d+)`) + `)?(?:;|$)`)

// lockRemedies returns the first remedies for a rank that waits for a file's lock, and adds figures for them; nil if none does.
func lockRemedies(text string, lines []string, figures map[string]string) []v1alpha1.Remedy {
	found := lockAwaited.FindStringSubmatch(text)
	if found == nil {
		return nil
	}
	figures["option"], figures["file"] = found[1], found[2]
	holder := found[3]
	if holder == "" || holder == found[1] {
		return codes.LockAwaited
	}
	figures["holder"] = holder
	for _, at := range placesIn(lines) {
		if slices.Contains(strings.Split(strings.TrimPrefix(strings.TrimPrefix(at.ranks, "ranks "), "rank "), ", "), holder) && at.where() != "" {
			figures["holderPlace"] = " at " + at.where()
		}
	}
	sentence := "Rank " + holder + " holds this lock, and waits itself" + figures["holderPlace"] + "."
	figures["alone"], figures["reason"] = sentence, sentence
	return codes.LockHeld
}

// receive is a call in a line of code that waits for a message: of MPI's C interface, of mpi4py, or of PyTorch. Sockets have such a method, too.
var receive = regexp.MustCompile(`\bMPI_M?[Rr]ecv\(|\.M?Recv\(|(?i:\b\w*(?:comm|world|cart|graph)\w*)\.m?recv\(|\bdist(?:ributed)?\.recv\(`)

func isReceive(source string) bool { return receive.MatchString(source) }

// hashedText matches a call of Python's hash.
var hashedText = regexp.MustCompile(`(?:^|[^\w.])hash\(`)

// receiveRemedies returns the first remedies if each rank of a job waits for a message, and adds figures; nil if one does something else.
func receiveRemedies(text string, lines []string, command string, figures map[string]string) []v1alpha1.Remedy {
	shown, d := 0, doingsIn(text)
	all := placesIn(lines)
	for _, at := range all {
		if !isReceive(at.source) || at.pauses() {
			return nil
		}
		shown += len(numbersIn(andMore.ReplaceAllString(at.ranks, "")))
	}
	if len(all) == 0 || d.cut || shown != len(d.listed()) || len(d.ranks[agentapi.Sleeping]) > 0 {
		return nil
	}
	figures["alone"] = "Each rank waits for a message that no rank has sent."
	if hashedText.MatchString(command) || slices.ContainsFunc(all, func(at place) bool { return hashedText.MatchString(at.source) }) {
		return slices.Concat(codes.HashedTag, codes.AllReceive)
	}
	return codes.AllReceive
}

var (
	// looksForFile is a part of a program or script that looks for a file.
	looksForFile = regexp.MustCompile(`\b(?:path\.exists|path\.isfile|path\.isdir|is_file|is_dir|listdir|scandir|i?glob|os\.stat|os\.access)\(|\.exists\(|\[\[? +(?:! +)?-[defrs] |\btest +(?:! +)?-[defrs] |\binotifywait\b`)
	// waitsInLog is a line in which a program writes that it waits.
	waitsInLog = regexp.MustCompile(`(?i)\bwait(?:s|ing)?\b`)
)

// separateFolder adds an emptyDir to the figures that several pods of a job mount at the same path, each one of its own, and reports whether the program
// probably waits for a file there: it looks for files, and its code or its output names one in this folder.
func (p *input) separateFolder(figures map[string]string) bool {
	var sources []string
	for _, at := range placesIn(p.Launcher().Log.Lines) {
		sources = append(sources, at.shown)
	}
	code := strings.Join(append(sources, p.LauncherCommand()), "\n")
	volumes := p.separateFolders()
	for _, folder := range slices.Sorted(maps.Keys(volumes)) {
		volume := volumes[folder]
		inFolder := regexp.MustCompile(`(?:^|[^\w./-])` + regexp.QuoteMeta(folder) + `/`)
		waits := func(line string) bool {
			return waitsInLog.MatchString(line) && inFolder.MatchString(line) && !strings.HasPrefix(strings.TrimSpace(line), agentapi.StallPrefix) && !strings.HasPrefix(strings.TrimSpace(line), agentapi.StackPrefix)
		}
		if inFolder.MatchString(code) && looksForFile.MatchString(code) || slices.ContainsFunc(p.Launcher().Log.Lines, waits) {
			figures["folder"], figures["volume"] = folder, volume
			return true
		}
	}
	return false
}

// separateFolders returns the paths at which more than one pod of a job mounts an emptyDir, with the names of the volumes.
func (p *input) separateFolders() map[string]string {
	pods, volumes := map[string]int{}, map[string]string{}
	for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
		count := 1
		if role == mpi.RoleWorker {
			count = int(p.Job.Workers.Count)
		}
		spec := p.Template(role)
		for _, main := range first(spec.Containers) {
			for _, mount := range main.VolumeMounts {
				isEmpty := func(v corev1.Volume) bool { return v.Name == mount.Name && v.EmptyDir != nil }
				if folder := path.Clean(mount.MountPath); slices.ContainsFunc(spec.Volumes, isEmpty) && folder != "/dev/shm" {
					pods[folder], volumes[folder] = pods[folder]+count, mount.Name
				}
			}
		}
	}
	for folder, count := range pods {
		if count < 2 {
			delete(volumes, folder)
		}
	}
	return volumes
}
