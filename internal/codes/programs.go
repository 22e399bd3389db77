package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// lookForProgram is a command that looks for a program in a running pod: in its PATH, and else as a file.
const lookForProgram = `kubectl -n {namespace} exec {hostPod} -- sh -c 'command -v -- "$0" || ls -l -- "$0"' {program|PROGRAM}`

// ProgramMissingInLauncher is the definition of ProgramMissing for a program of the launcher's own command.
var ProgramMissingInLauncher = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "Program {program} not found in the image of the launcher.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Correct the program's name or folder in the launcher's command.", Action: launcherArgs, Rerun: true, Changes: changeCommand},
		{Text: "Or use an image that contains the program. The launcher's is {launcherImage|set in its pod template}.", Action: "{launcherTemplate}.spec.containers[0].image"},
		{Text: "Use the same image for the launcher and the workers.", Action: BothImages},
	},
}

// ServerMissing is the definition of ProgramMissing for a worker whose command starts an OpenSSH server that its image does not have.
var ServerMissing = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: the command of the workers starts {program}, which is not in their image. The agent needs no sshd.",
	Remedies: []v1alpha1.Remedy{
		letAgentStart("Remove the command of the workers, and let the agent start the ranks."),
		{Text: "Or install an OpenSSH server in the workers' image.", Action: "apt-get install openssh-server, or dnf install openssh-server"},
	},
}

// ShellBuiltin is the definition of ProgramMissing for a command that bash has and the shell of the script has not.
var ShellBuiltin = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "The script calls {program}, which is no program: bash has it, but the shell that runs the script has not. In most images, sh is not bash.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Run the script by bash, if the image has it.", Action: runByBash},
		{Text: "Or write it without what only bash has: \". FILE\" instead of source, \"[\" instead of \"[[\", no arrays."},
	},
}

// BatchCommand is the definition of ProgramMissing for a command of a batch system.
var BatchCommand = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "The command calls {program}, a command of a batch system, which pods do not have.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Call mpirun in its place. It starts the ranks in the job's pods.", Action: "mpirun -n {ranks} <program>"},
		{Text: "Set in the job what a batch script requests: the number of workers, their slots and their resources.", Action: "{workersField}, {slotsField}"},
	},
}

// ModulesMissing is the definition of ProgramMissing for the command of environment modules.
var ModulesMissing = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "The script calls {program}, the command of environment modules, which the image does not have.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Remove the lines that call {program}: programs are found in the image's own PATH.", Action: launcherArgs},
		{Text: "If the image lacks what they load, use one that contains it.", Action: "{launcherTemplate}.spec.containers[0].image"},
	},
}

// MPIRunMissing is the definition of ProgramMissing for MPI's launcher. It may use folder, that in which packages install the MPI of the job.
var MPIRunMissing = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "MPI's launcher {program} not found in the PATH of {where|the launcher}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "If the image has MPI, call it by its path: some packages, such as those of RHEL, UBI and Fedora, install it outside PATH.", Action: "{folder}/bin/{program} <program>"},
		{Text: "Or set PATH in the image, for the workers, too.", Action: "ENV PATH={folder}/bin:$PATH LD_LIBRARY_PATH={folder}/lib"},
		{Text: "If the image has no MPI, use one that has it, for launcher and workers.", Action: "{launcherTemplate}.spec.containers[0].image"},
	},
}

// NumberedPython is the definition of ProgramMissing for a name of Python that only some images have.
var NumberedPython = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "Program {program} not found in the image of {where|the launcher or a worker}. Many images have {program}3 only.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Call {program}3.", Action: launcherArgs, Rerun: true, Changes: changeCommand},
		{Text: "If the image has that neither, use one with Python in launcher and workers.", Action: BothImages},
	},
}

// PathReplaced is the definition of ProgramMissing for a container whose PATH is not that of its image.
var PathReplaced = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "Program {program} not found in the PATH of {where|the launcher or a worker}: {source} sets PATH in place of the image's.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Remove PATH there. Programs are then found in the PATH of the image.", Action: "{reference}"},
		{Text: "Or add the folders of the image's PATH, with that of MPI."},
	},
}

// NumberAsProgram is the definition of ProgramMissing for a program that is a number.
var NumberAsProgram = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "MPI took {program}, a number, as the program: {option|an option before it} has more values than it takes, or lacks one and took the next option as its value.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Check the values of each option: -genv of MPICH and Intel MPI takes a name and a value, and -x of Open MPI takes NAME=VALUE.", Action: launcherArgs},
	},
}

// ValueAsProgram is the definition of ProgramMissing for a word that follows -x NAME of Open MPI. It may use option, and meant, the option with
// that word.
var ValueAsProgram = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "MPI took {program} as the program: it follows {option}, which ends before it.",
	Remedies: []v1alpha1.Remedy{
		{Text: "If {program} is the value, write {meant}: -x takes one word, NAME=VALUE. With the name alone it passes on a variable of the launcher.", Action: launcherArgs, Rerun: true, Changes: changeCommand},
		{Text: "If {program} is the program, check its name and folder in the workers' image.", Action: "{workerTemplate}.spec.containers[0].image"},
	},
}

// CopiedCharacter is the definition of ProgramMissing for an option that begins with a typographic character, which MPI's launcher takes as
// the program.
var CopiedCharacter = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "MPI took {program} as the program: it begins with a typographic character in place of - or a straight quotation mark, as in text that was copied from a document or web page.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Write - in place of each typographic dash, and straight quotation marks: {program} was copied from a document or web page.", Action: launcherArgs},
	},
}

// ProgramHidden is the definition of ProgramMissing for a program in a folder at which a volume is mounted.
var ProgramHidden = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "Program {program} not found in {where|the launcher or a worker}: volume {volume}{mounted} is mounted at {folder} and hides what the image has there.",
	Remedies: []v1alpha1.Remedy{
		{Text: "If the program is in the image, mount the volume at a folder of its own.", Action: "{programTemplate}.spec.containers[0].volumeMounts"},
		{Text: "To add single files to a folder of the image, mount each with subPath.", Action: "volumeMounts: [{name: {volume}, mountPath: {folder}/FILE, subPath: FILE}]"},
		{Text: "If the program is on the volume, check its name there.", Action: "kubectl -n {namespace} exec {hostPod} -- ls -l {folder}"},
	},
}

// ProgramOnlyInLauncher is the definition of ProgramMissing for a program on a volume that only the launcher mounts.
var ProgramOnlyInLauncher = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "Program {program} not found in {where|a worker}: it is on volume {volume}, which only the launcher mounts.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Mount volume {volume} in the workers as well: ranks start there.", Action: "{workerTemplate}.spec.containers[0].volumeMounts"},
		{Text: "Or use an image that contains the program.", Action: "{workerTemplate}.spec.containers[0].image"},
	},
}

// ProgramNotOnVolume is the definition of ProgramMissing for a program whose path is on a volume.
var ProgramNotOnVolume = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "Program {program} not found in {where|the launcher or a worker}, or not executable: its path is on volume {volume}{mounted}, which is mounted at {folder}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Check its name and mode there. Files of a ConfigMap cannot be executed unless the volume has defaultMode: 0755.", Action: "kubectl -n {namespace} exec {hostPod} -- ls -lL {folder}"},
		{Text: "Start a script by its interpreter, which needs neither the mode nor a first line.", Action: "mpirun sh {program|SCRIPT}"},
		{Text: "If the program is in the image, mount the volume at another folder: it hides what the image has there.", Action: "{programTemplate}.spec.containers[0].volumeMounts"},
	},
}

// CommandWithNUL is the definition of ProgramMissing for a command that no kernel starts.
var CommandWithNUL = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: the command contains a NUL character, with which no program can be started.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Remove the character from the command and its arguments.", Action: "{field}.spec.containers[0].command"},
	},
}

// CommandNotStarted is the definition of ProgramMissing for a command that exists.
var CommandNotStarted = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "The launcher's command {program} exists, but cannot be started: {reason}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Start a script by its interpreter, which needs neither the mode nor a first line.", Action: "command: [sh, {program}]"},
		{Text: "Or make the file executable: by chmod +x in the image, or by defaultMode: 0755 of a ConfigMap's volume."},
		{Text: "Check the image's CPU architecture and, of a script, the interpreter that its first line names."},
	},
}

// RankNotStarted is the definition of ProgramMissing for a rank's program that exists.
var RankNotStarted = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "Program {program|of the ranks} exists in the image of {where|a worker}, but cannot be started: {reason}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Start a script by its interpreter, which needs neither the mode nor a first line.", Action: "mpirun sh {program|SCRIPT}"},
		{Text: "Make the file executable: by chmod +x in the image, or by defaultMode: 0755 of a ConfigMap's volume."},
		{Text: "If it is a binary, build it for the CPU of the nodes.", Action: "kubectl get nodes -L kubernetes.io/arch"},
	},
}

// ProgramNotAccessible is the definition of ProgramMissing for a program of which MPI does not say whether it exists: Open MPI 5 has
// the same message for a file that is missing and for one that is not executable (help-prte-odls-default.txt).
var ProgramNotAccessible = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "Program {program|of the mpirun command} is not in the image of {where|the launcher or a worker}, or is not executable.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Check its name, folder and mode, also in the workers' image, where ranks start.", Action: lookForProgram},
		{Text: "Start a script by its interpreter, which needs neither the mode nor a first line.", Action: "mpirun sh {program|SCRIPT}"},
		{Text: "Use the same image for the launcher and the workers.", Action: BothImages},
	},
}

// ModeWithoutExecution is the definition of ProgramMissing for a program on a volume whose mode does not allow to execute it.
var ModeWithoutExecution = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "Program {program} cannot be started: it is on volume {volume}, {mounted}, which does not allow to execute its files.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Start a script by its interpreter, which needs neither the mode nor a first line.", Action: "mpirun sh {program|SCRIPT}"},
		{Text: "Or make the files of the volume executable.", Action: "{programTemplate}.spec.volumes: defaultMode: 0755"},
	},
}

// InterpreterMissing is the definition of ProgramMissing for a script whose first line names an interpreter that does not exist.
var InterpreterMissing = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "Script {program} exists, but cannot be started: {reason}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Correct the first line of the script: it must name a program of the image by its full path. /usr/bin/env finds a program in PATH.", Action: "#!/usr/bin/env python3"},
		{Text: "Or use an image that contains the interpreter.", Action: "{field}.spec.containers[0].image"},
	},
}

// CommandInOneWord is the definition of ProgramMissing for a command that is written as one word with spaces.
var CommandInOneWord = Entry{
	Code: ProgramMissing, Phase: v1alpha1.PhaseRunning,
	Summary: "The launcher's command {program} is one word, and no program has this name.",
	Remedies: []v1alpha1.Remedy{
		{
			Text: "Write each word of the command as an element of the list.", Action: "command: {words}",
			Rerun: true, Changes: set("{launcherTemplate}.spec.containers[0].command", "{words}"),
		},
	},
}
