package launcher

import (
	"bytes"
	"io"
	"os/exec"
	"strings"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agent/files"
	"opendatahub.io/mpijob/internal/agent/mpirun"
	"opendatahub.io/mpijob/internal/agent/ranks"
)

// unboundEnv returns the environment in which MPI leaves the ranks of a command unbound, unless the user asks for binding
// (mpirun.WithoutBinding). Each pod has its own daemon, and all daemons of a node would bind their ranks to the same cores.
func unboundEnv(env, command []string) []string {
	return mpirun.WithoutBinding(env, ranks.Parameters(environ.Get(env, "HOME")), append(scriptsOf(command), strings.Join(command, " "))...)
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
