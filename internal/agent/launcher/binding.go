package launcher

import (
	"bytes"
	"debug/elf"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agent/files"
	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/mpirun"
	"opendatahub.io/mpijob/internal/agent/ranks"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// bindEnv returns the environment in which MPI binds the ranks of a command or leaves them unbound by default, and what was decided. What the
// user sets decides (mpirun.UserBinding). Ranks are bound where each has a core that its pod may own; whether the pod does is decided by its
// worker (worker.bindEnv). All others are not bound: each pod has its own daemon, and all daemons of a node would bind their ranks to
// the same cores.
func bindEnv(env, command []string, hosts hostfile.Hosts) ([]string, agentapi.Binding) {
	by, asks := mpirun.UserBinding(env, ranks.Parameters(environ.Get(env, "HOME")), append(scriptsOf(command), strings.Join(command, " "))...)
	by = records.Cut(by, agentapi.MaxBoundBy)
	if asks {
		return env, agentapi.Binding{Policy: agentapi.BindUser, By: by}
	}
	if by != "" {
		return mpirun.WithoutBinding(env), agentapi.Binding{Policy: agentapi.BindUser, By: by}
	}
	policy := policyFor(environ.Get(env, agentapi.EnvCores), hosts)
	prrte := false
	if policy == agentapi.BindCore {
		var isFound bool
		if prrte, isFound = letsWorkersDecide(command[0]); isFound && !prrte {
			policy = agentapi.BindVersion
		}
	}
	if policy != agentapi.BindCore {
		return mpirun.WithoutBinding(env), agentapi.Binding{Policy: policy}
	}
	return environ.Set(mpirun.WithBinding(env, prrte), agentapi.EnvBind, string(policy)), agentapi.Binding{Policy: policy}
}

// policyFor returns whether ranks may be bound. cores is how many each worker may own (agentapi.EnvCores).
func policyFor(cores string, hosts hostfile.Hosts) agentapi.BindingPolicy {
	each, err := strconv.ParseInt(cores, 10, 32)
	if err != nil || each < 1 || hosts.Others == 0 || hosts.OwnSlots > 0 {
		return agentapi.BindShared
	}
	policy := agentapi.BindCore
	for _, slots := range hosts.SlotsOf {
		switch {
		case slots > int32(each):
			return agentapi.BindShared
		case slots < int32(each):
			policy = agentapi.BindSeveral
		}
	}
	return policy
}

// letsWorkersDecide reports whether the PRRTE of Open MPI 5 leaves it to its daemons to bind ranks, as version 3 does, and whether there is
// one: next to the MPI launcher, if the command is one, or in PATH.
func letsWorkersDecide(command string) (is, isFound bool) {
	path, err := exec.LookPath("prterun")
	if launcher, found := exec.LookPath(command); found == nil && mpirun.IsLauncher(command) {
		if beside, found := exec.LookPath(filepath.Join(filepath.Dir(launcher), "prterun")); found == nil {
			path, err = beside, nil
		}
	}
	if err != nil {
		return false, false
	}
	file, err := elf.Open(path)
	if err != nil {
		return false, true
	}
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	return err == nil && slices.Contains(libraries, "libprrte.so.3"), true
}

// scriptsOf returns the beginnings of the scripts that a command names: they may call mpirun.
func scriptsOf(command []string) []string {
	const mostWords, most = 256, 64 << 10
	words := strings.Fields(strings.Join(command, " "))
	var texts []string
	for i, word := range words[:min(len(words), mostWords)] {
		word = strings.Trim(word, `'";`)
		if strings.HasPrefix(word, "-") || mpirun.IsLauncher(word) {
			continue
		}
		if i == 0 {
			if path, err := exec.LookPath(word); err == nil {
				word = path
			}
		}
		file, err := files.Open(word)
		if err != nil {
			continue
		}
		text, _ := io.ReadAll(io.LimitReader(file, most))
		_ = file.Close()
		// Programs contain a byte 0.
		if !bytes.ContainsRune(text, 0) {
			texts = append(texts, string(text))
		}
	}
	return texts
}
