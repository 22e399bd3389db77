package diagnose

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
)

// bashOnly are builtins of bash that POSIX's shell has not; the manual of bash lists them.
var bashOnly = map[string]bool{
	"[[": true, "source": true, "function": true, "let": true, "declare": true, "typeset": true, "shopt": true, "mapfile": true, "readarray": true,
	"pushd": true, "popd": true, "dirs": true, "select": true, "enable": true, "builtin": true, "disown": true, "compgen": true, "complete": true,
}

var (
	// batchCommands start programs, or submit jobs, in batch systems: Slurm, PBS, LSF, Grid Engine, PALS and Flux.
	batchCommands = map[string]bool{
		"srun": true, "sbatch": true, "salloc": true, "qsub": true, "bsub": true, "jsrun": true, "lrun": true, "aprun": true, "ibrun": true, "flux": true,
	}
	// moduleCommands are those of environment modules and of Lmod.
	moduleCommands = map[string]bool{"module": true, "ml": true}
	// mpiLaunchers are the launchers of MPI.
	mpiLaunchers = map[string]bool{"mpirun": true, "mpiexec": true, "mpiexec.hydra": true, "orterun": true, "prterun": true}
	// mpiFolders are where packages install MPI, outside PATH: those of RHEL and Fedora, and Intel's.
	mpiFolders = map[mpi.Implementation]string{mpi.OpenMPI: "/usr/lib64/openmpi", mpi.MPICH: "/usr/lib64/mpich", mpi.IntelMPI: "/opt/intel/oneapi/mpi/latest"}
)

// missingProgram returns the definition for a program that was not found, by its name and place.
func (p *input) missingProgram(entry codes.Entry, pods []facts.Pod, values map[string]string) codes.Entry {
	if values["program"] == "" {
		// There is nothing to look for by a command.
		entry.Remedies = slices.Clone(entry.Remedies)
		entry.Remedies[0].Action = ""
		return entry
	}
	if known := p.valueAsProgram(values); known != nil {
		return *known
	}
	if mpi.IsCopied(values["program"]) {
		return codes.CopiedCharacter
	}
	inLauncher := values["where"] == "the launcher"
	if isWorker := len(pods) > 0 && pods[0].Role == mpi.RoleWorker; isWorker && path.Base(values["program"]) == "sshd" {
		return codes.ServerMissing
	}
	switch name := values["program"]; {
	case bashOnly[name]:
		return codes.ShellBuiltin
	case batchCommands[name]:
		return codes.BatchCommand
	case moduleCommands[name]:
		return codes.ModulesMissing
	}
	if own := p.whosePath(entry, values); own.Summary != entry.Summary {
		return own
	}
	if file, volume, mounted := p.mountedProgram(values["program"]); file != "" && !inLauncher {
		values["program"], values["volume"], values["mounted"], values["programTemplate"] = file, volume, mounted, p.field(mpi.RoleWorker)
		return codes.ModeWithoutExecution
	}
	if volume := p.launchersVolume(values["program"]); volume != "" && !inLauncher {
		values["volume"] = volume
		return codes.ProgramOnlyInLauncher
	}
	if p.isMountedOver(inLauncher, values) {
		if path.IsAbs(values["program"]) && !programFolders.MatchString(values["folder"]) {
			return codes.ProgramNotOnVolume
		}
		return codes.ProgramHidden
	}
	if name := values["program"]; name == "python" || name == "pip" {
		return codes.NumberedPython
	}
	if mpiLaunchers[values["program"]] {
		values["folder"] = cmp.Or(mpiFolders[p.Job.Implementation], mpiFolders[mpi.OpenMPI])
		return codes.MPIRunMissing
	}
	if inLauncher {
		return codes.ProgramMissingInLauncher
	}
	return entry
}

// valueAsProgram returns the definition for a program that is a value of an option, by the launcher's command, and adds figures for that; nil if it
// is not.
func (p *input) valueAsProgram(values map[string]string) *codes.Entry {
	for _, taken := range mpi.ValuesTaken(p.LauncherCommand()) {
		if taken.Program != values["program"] {
			continue
		}
		values["option"], values["meant"] = quotedText(taken.Option), quotedText(taken.Meant)
		_, variable, _ := strings.Cut(taken.Option, " ")
		if isSet := facts.SetsVariable(p.Template(mpi.RoleLauncher), variable) || setElsewhere.MatchString(variable); taken.Meant != "" && !isSet {
			entry := codes.ValueAsProgram
			if mpi.IsNumber(taken.Program) {
				entry.Remedies = entry.Remedies[:1]
			}
			return &entry
		}
	}
	if mpi.IsNumber(values["program"]) {
		return &codes.NumberAsProgram
	}
	return nil
}

// missingAfterModules returns the line about a program that a shell did not find after the command of environment modules, without which it
// mostly continues, and puts that program into the figures; nil if there is none.
func (p *input) missingAfterModules(figures map[string]string) (line []string) {
	if !moduleCommands[figures["program"]] {
		return nil
	}
	for _, pod := range p.Pods {
		for _, text := range slices.Backward(pod.Log.Lines) {
			if program := notFoundAt(text); program != "" && !moduleCommands[program] {
				figures["program"] = program
				return []string{facts.LogLine(pod, text)}
			}
		}
	}
	return nil
}

// whosePath returns the definition for a program that is looked for in a PATH that is not the image's, or the one given. The
// pod template decides before data connections.
func (p *input) whosePath(entry codes.Entry, values map[string]string) codes.Entry {
	if values["program"] == "" || strings.Contains(values["program"], "/") {
		return entry
	}
	main := p.Template(mpi.Role(values["role"])).Containers
	switch {
	case len(main) > 0 && slices.ContainsFunc(main[0].Env, func(env corev1.EnvVar) bool { return env.Name == "PATH" }):
		values["source"], values["reference"] = "the pod template", values["field"]+".spec.containers[0].env"
	case len(p.Evidence.PathFrom) > 0:
		values["source"], values["reference"] = fmt.Sprintf("data connection %q", p.Evidence.PathFrom[len(p.Evidence.PathFrom)-1]), mpi.ConnectionsPath.String()
	default:
		return entry
	}
	return codes.PathReplaced
}

// programFolders are folders in which images have the programs of their PATH, or folders above these.
var programFolders = regexp.MustCompile(`^/(?:usr|usr/local|opt|opt/conda)$|/s?bin$`)

// isMountedOver reports whether a volume is mounted where a program was looked for and not found, in the launcher or else in the workers,
// and adds figures for that. A program without a folder is looked for in those of PATH.
func (p *input) isMountedOver(inLauncher bool, values map[string]string) bool {
	role, program := mpi.RoleWorker, values["program"]
	if inLauncher || p.Job.Workers.Count == 0 {
		role = mpi.RoleLauncher
	}
	spec := p.Template(role)
	if len(spec.Containers) == 0 {
		return false
	}
	for _, mount := range spec.Containers[0].VolumeMounts {
		at := path.Clean(mount.MountPath)
		hides := path.IsAbs(program) && program != at && mpi.Contains(at, program) || !strings.Contains(program, "/") && mount.SubPath == "" && programFolders.MatchString(at)
		if !hides {
			continue
		}
		values["volume"], values["folder"], values["programTemplate"] = mount.Name, at, p.field(role)
		values["mounted"] = asAside(facts.SourceOf(spec, mount.Name))
		return true
	}
	return false
}

// mountedProgram returns the path at which the workers mount a file of the name of a program without a folder, its volume, and what is on that
// with its mode, if the mode does not allow to execute it: such files in PATH are not found. Empty if there is none.
func (p *input) mountedProgram(program string) (file, volume, mounted string) {
	main := p.Template(mpi.RoleWorker).Containers
	if len(main) == 0 || program == "" || strings.Contains(program, "/") {
		return "", "", ""
	}
	for _, mount := range main[0].VolumeMounts {
		at := path.Clean(mount.MountPath)
		if mount.SubPath == "" || path.Base(at) != program || !programFolders.MatchString(path.Dir(at)) {
			continue
		}
		if volume, mounted = p.withoutExecution(at); volume != "" {
			return at, volume, mounted
		}
	}
	return "", "", ""
}
