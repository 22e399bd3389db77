package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// Definitions of LibraryMissing for libraries of which the name shows the origin.
var (
	// DriverLibraryMissing is the one for a library of the GPU driver. It may use programTemplate and gpuText. The first remedy is for pods
	// that request no GPU.
	DriverLibraryMissing = Entry{
		Code: LibraryMissing, Phase: v1alpha1.PhaseRunning, Traits: FromProgram,
		Summary: "The program cannot start: shared library {library} not found. It is part of the node's GPU driver, and only pods that request a GPU have it{gpuText}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Request a GPU for each pod in which ranks run.", Action: "{programTemplate}.spec.containers[0].resources.limits[nvidia.com/gpu]"},
			{Text: "If the pods request GPUs, let NVIDIA's container runtime start them, on clusters where it is not the default.", Action: "{programTemplate}.spec.runtimeClassName: nvidia"},
			{Text: "If the image or the pod templates set NVIDIA_VISIBLE_DEVICES or NVIDIA_DRIVER_CAPABILITIES, these must not leave out the driver.", Action: "env: NVIDIA_DRIVER_CAPABILITIES=compute,utility"},
			{Text: "Or use a build of the program for CPUs.", Action: "{programTemplate}.spec.containers[0].image"},
		},
	}
	// OtherMPILibrary is the one for a library of another MPI than the job's. It may use found and expected, the names of both.
	OtherMPILibrary = Entry{
		Code: LibraryMissing, Phase: v1alpha1.PhaseRunning, Traits: FromProgram,
		Summary: "The program cannot start: shared library {library} not found. It is part of {found}, and the job is set up for {expected}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Build the program, or mpi4py, with the image's MPI.", Action: "pip install --no-binary=mpi4py --force-reinstall mpi4py"},
			{Text: "Or use an image with {found}, and choose it in the job.", Action: "{mpiField}"},
		},
	}
	// CUDALibraryMissing is the one for a library of CUDA. It may use programTemplate.
	CUDALibraryMissing = Entry{
		Code: LibraryMissing, Phase: v1alpha1.PhaseRunning, Traits: FromProgram, Settings: []string{"LD_LIBRARY_PATH", "LD_PRELOAD"},
		Summary: "The program cannot start: shared library {library} not found{replacedText}. It is part of CUDA, which the image does not have, or in another version.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Use an image with the version of CUDA for which the program was built: the library's name has its number.", Action: "{programTemplate}.spec.containers[0].image"},
			{Text: "Or install a build of the program, or of its framework, for the CUDA of the image."},
			{Text: "If the image has the library, pass its path to all ranks.", Action: "mpirun -x LD_LIBRARY_PATH <program>"},
		},
	}
)
