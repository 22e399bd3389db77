package compute

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Figures that containers measure while the programs run, after the ranks have settled.
const (
	// cpuSeconds is the CPU time of all containers.
	cpuSeconds = "cpu"
	// agentShare is the share of it that the agents take, in percent. The programs by which MPI's daemons are started are not part of it.
	agentShare = "agent-cpu"
)

const (
	// longest is how long a program may take; then it is ended.
	longest = 75 * time.Second
	// limit is how long a job may take.
	limit = 8 * time.Minute
)

// endedLine is what is printed of a program that took too long.
func endedLine(program int) string { return fmt.Sprintf("program %d was ended", program) }

// script returns the command of a pod or a launcher, for sh: the programs of a group, one after the other, between two looks at the CPU time. options
// are those of mpirun.
func script(g group, options []string) string {
	mpirun := strings.Join(append([]string{"mpirun"}, options...), " ") + " -n " + strconv.Itoa(g.ranks) + " sh -ec "
	// One rank of each container suffices.
	inRanks := func(when string) string { return "if [ $OMPI_COMM_WORLD_LOCAL_RANK = 0 ]; then " + look(when) + "; fi" }
	lines := []string{mpirun + quote("sleep "+settle+"; "+inRanks(atBegin)), look(atBegin)}
	for i, p := range g.programs {
		lines = append(
			lines,
			fmt.Sprintf("code=0; timeout %.0f %s || code=$?", longest.Seconds(), mpirun+quote("cd $(mktemp -d); "+p.command)),
			fmt.Sprintf("case $code in 0) ;; 124) echo %s ;; *) exit $code ;; esac", quote(endedLine(i))),
		)
	}
	return strings.Join(append(lines, look(atEnd), mpirun+quote(inRanks(atEnd))), "\n")
}

// quote returns a text as one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// When a container looks at the CPU time.
const (
	atBegin = "begin"
	atEnd   = "end"
)

// look returns a command that prints the CPU time of the container and that of its agent in nanoseconds. The agent is the first process of the
// container. The container's cgroup is one of version 2 or 1.
func look(when string) string {
	return "read -r host </proc/sys/kernel/hostname; read -r first </proc/1/comm; agent=0; " +
		`if [ "$first" = mpi-agent ]; then for thread in /proc/1/task/*; do ` +
		`if read -r ns others <$thread/schedstat; then agent=$((agent+ns)); fi; done; fi; ` +
		`total=$(sed -n 's/^usage_usec \(.*\)/\1000/p' /sys/fs/cgroup/cpu.stat 2>/dev/null || true); ` +
		`if [ -z "$total" ]; then total=$(cat /sys/fs/cgroup/cpuacct/cpuacct.usage 2>/dev/null || true); fi; ` +
		`echo "use ` + when + ` $host ${total:-0} $agent"`
}

var lookLine = regexp.MustCompile(`(?m)^use (begin|end) (\S+) (\d+) (\d+)$`)

// use is CPU time in seconds.
type use struct{ total, agents float64 }

// readUse returns the CPU time between the two looks of all containers. A container that is looked at twice counts once.
func readUse(text string) use {
	begins, ends := map[string]use{}, map[string]use{}
	for _, line := range lookLine.FindAllStringSubmatch(text, -1) {
		total, _ := strconv.ParseFloat(line[3], 64)
		agent, _ := strconv.ParseFloat(line[4], 64)
		at := begins
		if line[1] == atEnd {
			at = ends
		}
		at[line[2]] = use{total / 1e9, agent / 1e9}
	}
	var sum use
	for host, end := range ends {
		if begin, known := begins[host]; known {
			sum.total += end.total - begin.total
			sum.agents += end.agents - begin.agents
		}
	}
	return sum
}
