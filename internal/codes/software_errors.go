package codes

import (
	"regexp"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// softwareErrors are the kinds of errors of programs with what their image contains, how they were built, how they are configured, and with
// the number of ranks: their phrases are those of NumPy, PyTorch, the GNU linker and compilers, Julia, Perl, Hydra, W&B, X11 and Qt, git,
// mpi4py, GROMACS, HPL, OpenFOAM and LAMMPS.
var softwareErrors = []OwnError{
	{
		Name: "number of ranks", Matches: regexp.MustCompile(`no domain decomposition for \d+ ranks|Need at least \d+ processes|number of processor directories = \d+ is not equal|` +
			`(?i:number of (?:mpi )?(?:ranks|processes|processors|tasks|cpus|cores)\b.{0,40}\b(?:must|should|has to|not (?:equal|divisible|a multiple)|does not|divisible|multiple)|` +
			`not divisible by the number of (?:mpi )?(?:ranks|processes|processors|tasks)|requires? (?:exactly |at least )?\d+ (?:mpi )?(?:ranks|processes|processors|tasks)\b|` +
			`must be (?:run|started|launched) (?:with|on) (?:exactly |at least )?\d+ (?:mpi )?(?:ranks|processes|processors|tasks)\b)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The program cannot divide its input over the ranks that it has. Start as many as the message asks for; the job has slots for {ranks}.", Action: "mpirun -n N <program>"},
			{Text: "Or adapt the input to {ranks} ranks, such as its grid of processes, and divide it again."},
		},
	},
	{
		Name: "NumPy", Matches: regexp.MustCompile(`_ARRAY_API not found|compiled using NumPy 1\.x|Numpy is not available`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A package in the image was built for NumPy 1, and the image has NumPy 2. Install NumPy 1, or a newer version of the package.", Action: "pip install 'numpy<2'"},
		},
	},
	{
		Name: "static TLS", Matches: regexp.MustCompile(`cannot allocate memory in static TLS block`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Load this library before the others: import its package first, or preload it.", Action: "env: LD_PRELOAD"},
		},
	},
	{
		Name: "cuDNN", Matches: regexp.MustCompile(`cuDNN version incompatibility`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The program loads another cuDNN than that of its framework. Remove its folder from LD_LIBRARY_PATH, which the image or the job sets, or install the version that the message asks for.", Action: "env: LD_LIBRARY_PATH"},
		},
	},
	{
		Name: "build", Matches: regexp.MustCompile(`cannot find -l\S+|undefined reference to|:\d+: fatal error: \S+: No such file or directory|No rule to make target|^\S+:\d+:\d+: error: |Cannot open (?:module file|include(?:d)? file) '`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Compile the program when the image is built, with the libraries, headers and modules that it needs: packages of Debian whose names end with -dev, of Fedora with -devel.", Action: "{programTemplate}.spec.containers[0].image"},
			{Text: "Compile programs of MPI by its compilers, which know its folders.", Action: "mpicc, mpicxx, mpifort"},
		},
	},
	{
		Name: "no compiler", Matches: regexp.MustCompile(`Failed to find C compiler|No such file or directory: '(?:\S*/)?(?:gcc|g\+\+|cc|c\+\+|clang|nvcc|ninja|make|cmake)'|(?:command|unable to execute) '\S*(?:gcc|g\+\+|cc|nvcc)'(?: failed)?: No such file`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The framework compiles code while it runs, and the image has no compiler. Install one in the image, or use the variant of the image for development.", Action: "{programTemplate}.spec.containers[0].image"},
			{Text: "Or turn that off, for example torch.compile in PyTorch.", Action: "env: TORCH_COMPILE_DISABLE=1"},
		},
	},
	{
		Name: "not built in", Matches: regexp.MustCompile(`which is not enabled in this LAMMPS binary|(?i:\b(?:compiled|built) without\b)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Use an image in which the program was built with what the message names.", Action: "{programTemplate}.spec.containers[0].image"},
		},
	},
	{
		Name: "package of a language", Matches: regexp.MustCompile(`Package \S+ not found in current path|Can't locate \S+\.pm in @INC|No package metadata was found for|PackageNotFoundError|Could not find or load main class|Unable to access jarfile`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Install what the message names in the image of every pod in which ranks run. If it is installed there for another user, name its folder.", Action: "env: PYTHONPATH, JULIA_DEPOT_PATH, PERL5LIB, CLASSPATH"},
		},
	},
	{
		Name: "configuration key", Matches: regexp.MustCompile(`is not in struct|ConfigAttributeError|ConfigKeyError|MissingMandatoryValue|Could not override '|Cannot find primary config`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the key: the configuration has none of this name. With Hydra, a new one begins with +.", Action: launcherArgs},
			{Text: "If the configuration is a file, check that every pod in which a rank runs has the same one.", Action: programVolumes},
		},
	},
	{
		Name: "login of W&B", Matches: regexp.MustCompile(`api_key not configured|wandb login|WANDB_API_KEY`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Set the key in every pod in which a rank logs, from a Secret or a data connection of the job.", Action: "env: WANDB_API_KEY"},
			{Text: "Or write the logs to files, and upload them later; or do not log.", Action: "env: WANDB_MODE=offline (or disabled)"},
		},
	},
	{
		Name: "display", Matches: regexp.MustCompile(`no display name and no \$DISPLAY|(?i:(?:cannot|could not|can't|unable to|failed to) (?:open|connect to) (?:the )?(?:x )?display|could not load the qt platform plugin|bad x server connection)`),
		Remedies: []v1alpha1.Remedy{
			{Text: "Pods have no display. Let the program draw into files.", Action: "env: MPLBACKEND=Agg, QT_QPA_PLATFORM=offscreen"},
		},
	},
	{
		Name: "clone", Matches: regexp.MustCompile(`destination path '.+' already exists and is not an empty`),
		Remedies: []v1alpha1.Remedy{
			{Text: "An earlier attempt of the job, or another rank, has cloned it already. Clone into a new folder, such as an emptyDir, or only if it is missing.", Action: "test -d FOLDER/.git || git clone URL FOLDER"},
		},
	},
	{
		Name: "notebook", Matches: regexp.MustCompile(`NameError: name '(?:null|true|false)' is not defined`),
		Remedies: []v1alpha1.Remedy{
			{Text: "If the program is a notebook, convert it to a script: Python cannot run the file of a notebook, which is JSON.", Action: "jupyter nbconvert --to script NOTEBOOK.ipynb"},
			{Text: "Otherwise write None, True and False."},
		},
	},
	{
		Name: "size of a message", Matches: regexp.MustCompile(`integer \d+ does not fit in 'int'|SystemError: Negative size passed to PyBytes`),
		Remedies: []v1alpha1.Remedy{
			{Text: "A message has more than 2 GiB, or more elements than a call of MPI can count. Send it in parts; for arrays, use the methods with a capital letter, such as Bcast."},
			{Text: "mpi4py sends objects of any size by another communicator.", Action: "from mpi4py.util import pkl5; comm = pkl5.Intracomm(MPI.COMM_WORLD)"},
		},
	},
	{
		Name: "size of the command", Matches: regexp.MustCompile(`Argument list too long`),
		Remedies: []v1alpha1.Remedy{
			{Text: "The arguments and the environment together are too large. Write long lists to a file that the program reads. If envFrom adds a large ConfigMap or Secret, mount it.", Action: "{programTemplate}.spec.containers[0].envFrom"},
		},
	},
}
