package imagecheck

import (
	"errors"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
)

// daemons are the programs by which implementations are distinguished; see launcherOf.
var daemons = []string{"orted", "prted", "prte", "hydra_pmi_proxy", "hydra_bstrap_proxy"}

// programs are the other programs whose presence is checked.
var programs = []string{"sh", "bash", "ssh", "sshd", "deepspeed", "python", "python3", "busybox", "dash"}

var (
	mpiLibrary  = regexp.MustCompile(`^lib(mpi|mpich|mpi_abi)\.so(\.\d+)*$`)
	gpuLibrary  = regexp.MustCompile(`^lib(cudart|nccl|amdhip64|rccl)\.so(\.\d+)*$`)
	mpiVariant  = regexp.MustCompile(`^mpi(run|exec)\.\w+$`)
	pythonName  = regexp.MustCompile(`^python3\.\d+$`)
	mpiModule   = regexp.MustCompile(`/(mpi4py/MPI\.[^/]*|horovod/\w+/mpi_lib[^/]*)\.so$`)
	openMPIPart = regexp.MustCompile(`^libopen-(pal|rte)\.so(\.\d+)*$`)
)

// isMPILauncher reports whether a file is an MPI launcher, by its name.
func isMPILauncher(base string) bool {
	return base != "horovodrun" && slices.Contains(mpi.Launchers, base) || mpiVariant.MatchString(base)
}

// isKept reports whether a regular file with this name matters to the checks.
func isKept(name string) bool {
	base := path.Base(name)
	return isText(name) || hasTokens(name) || slices.Contains(mpi.Launchers, base) || slices.Contains(daemons, base) || slices.Contains(programs, base) ||
		gpuLibrary.MatchString(base) || pythonName.MatchString(base) || isMetadata(name)
}

// isMetadata reports whether a file shows that a Python package is installed, by its folder or its own name.
func isMetadata(name string) bool {
	folder, base := path.Split(name)
	return base == "METADATA" && strings.HasSuffix(folder, ".dist-info/") || base == "PKG-INFO" && strings.HasSuffix(folder, ".egg-info/") ||
		strings.HasSuffix(base, ".egg-info")
}

// isText reports whether the text of a file is kept.
func isText(name string) bool {
	return slices.Contains([]string{"/etc/os-release", "/usr/lib/os-release", "/etc/ld.so.conf", "/opt/rocm/.info/version"}, name) ||
		path.Dir(name) == "/etc/ld.so.conf.d"
}

// hasTokens reports whether a file is searched for tokens: versions, and libraries that it needs.
func hasTokens(name string) bool {
	base := path.Base(name)
	return mpiLibrary.MatchString(base) || openMPIPart.MatchString(base) || isMPILauncher(base) || mpiModule.MatchString(name)
}

// token is a C string that consists of a version, or of the name of an MPI library. Libraries contain their version this way,
// and the names of the libraries that they need (ELF, DT_NEEDED). Before it, there is a zero byte or the start of a chunk.
var token = regexp.MustCompile(`\x00v?(\d{1,4}(?:\.\d{1,3}){1,2}(?:(?:rc|a|b|p)\d{1,2})?|lib(?:mpi|mpich|mpi_abi)\.so\.\d{1,3})\x00`)

const (
	chunk     = 64 << 10
	maxToken  = 64
	maxTokens = 16
)

// scanTokens returns the first distinct tokens of a file.
func scanTokens(content io.Reader) ([]string, error) {
	var tokens []string
	buffer := make([]byte, 0, chunk+maxToken)
	for len(tokens) < maxTokens {
		n, err := io.ReadFull(content, buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		// Two strings in a row share the zero byte between them.
		for at := 0; ; {
			found := token.FindSubmatchIndex(buffer[at:])
			if found == nil {
				break
			}
			text := string(buffer[at+found[2] : at+found[3]])
			if !slices.Contains(tokens, text) && len(tokens) < maxTokens {
				tokens = append(tokens, text)
			}
			at += found[1] - 1
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		buffer = append(buffer[:0], buffer[len(buffer)-maxToken:]...)
	}
	return tokens, nil
}
