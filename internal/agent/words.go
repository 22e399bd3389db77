package agent

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

// outOfMemory describes processes that the kernel killed.
func outOfMemory(s agentapi.Summary) string {
	text := fmt.Sprintf("The kernel killed %d of this container's processes, which had no memory left", s.OOMKills)
	if s.MemoryLimit > 0 {
		text += " below the limit of " + mebibytes(s.MemoryLimit)
	}
	for _, rank := range s.Ranks {
		if rank.OOM {
			return fmt.Sprintf("%s; rank %d (%s) was one of them.", text, rank.Rank, rank.Program)
		}
	}
	return text + "."
}

// rankEnded describes how a rank ended.
func rankEnded(r agentapi.RankEnd) string {
	who := fmt.Sprintf("Rank %d ", r.Rank)
	if r.Program != "" {
		who += "(" + r.Program + ") "
	}
	switch {
	case r.OOM:
		return who + "was killed by the kernel for lack of memory."
	case r.Signal != 0:
		return fmt.Sprintf("%sended by signal %d (%s).", who, r.Signal, unix.SignalName(unix.Signal(r.Signal)))
	case r.ExitCode < 0:
		return who + "ended."
	}
	return fmt.Sprintf("%sended with code %d.", who, r.ExitCode)
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

// some are names as people read them.
func some(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
