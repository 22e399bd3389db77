package diagnose

import (
	"regexp"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/mpi"
)

var (
	// ofDriver are libraries of NVIDIA's driver, ofCUDA those of CUDA, and ofOpenMPI and ofMPICH those of MPIs: Intel MPI has the names of MPICH.
	ofDriver  = regexp.MustCompile(`^lib(?:cuda|nvidia-\w+)\.so`)
	ofCUDA    = regexp.MustCompile(`^lib(?:cudart|cudnn\w*|cublas\w*|cufft\w*|curand|cusolver\w*|cusparse\w*|cupti|nvrtc\S*|nvJitLink|nvToolsExt|nccl)\.so`)
	ofOpenMPI = regexp.MustCompile(`^lib(?:mpi(?:_\w+)?\.so\.[2-9]\d|open-(?:pal|rte)\.so)`)
	ofMPICH   = regexp.MustCompile(`^libmpi(?:ch\w*\.so|\w*\.so\.12$)`)
)

// missingLibrary returns the definition for a shared library that was not found, by its name, and adds figures for it.
func (p *input) missingLibrary(entry codes.Entry, figures map[string]string) codes.Entry {
	figures["programTemplate"] = p.field(p.ranksRole())
	library := figures["library"]
	switch {
	case ofDriver.MatchString(library):
		entry, figures["gpuText"] = codes.DriverLibraryMissing, " (the pods request none)"
		if p.Gpus(p.ranksRole()) > 0 {
			entry.Remedies, figures["gpuText"] = entry.Remedies[1:], ""
		}
	case ofCUDA.MatchString(library):
		entry = codes.CUDALibraryMissing
	case ofOpenMPI.MatchString(library) && p.Job.Implementation != mpi.OpenMPI:
		entry, figures["found"], figures["expected"] = codes.OtherMPILibrary, "Open MPI", implementation.NameOf(p.Job.Implementation)
	case ofMPICH.MatchString(library) && p.Job.Implementation == mpi.OpenMPI:
		entry, figures["found"], figures["expected"] = codes.OtherMPILibrary, "MPICH or Intel MPI", implementation.NameOf(p.Job.Implementation)
	}
	return entry
}

// ranksRole returns the role of the pods in which ranks run.
func (p *input) ranksRole() mpi.Role {
	if p.Job.Workers.Count == 0 {
		return mpi.RoleLauncher
	}
	return mpi.RoleWorker
}
