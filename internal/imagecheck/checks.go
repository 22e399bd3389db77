package imagecheck

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

func (i inspected) checkPlatform() Check {
	text := i.Platform
	if i.os != "" {
		text += ", " + i.os
	}
	var others []string
	for _, platform := range i.Platforms {
		if platform != i.Platform {
			others = append(others, platform)
		}
	}
	if len(others) > 0 {
		text += "; also for " + strings.Join(others, ", ")
	}
	return Check{Check: "Platform", Verdict: OK, Found: text}
}

func (i inspected) checkSize() Check {
	return Check{Check: "Size", Verdict: OK, Found: fmt.Sprintf("%s in %s, %s unpacked", Size(i.Compressed), phrase.Count(i.Layers, "layer"), Size(i.Contents.Unpacked()))}
}

func (i inspected) checkMPI() Check {
	c := Check{Check: "MPI", Verdict: OK}
	var names []string
	for _, one := range i.mpi {
		names = append(names, describe(one))
	}
	switch len(names) {
	case 0:
		return Check{c.Check, Fail, "no MPI was found: neither a library nor a launcher", "Install an MPI, for example openmpi-bin on Debian or openmpi on Red Hat"}
	case 1:
		c.Found = names[0]
	default:
		c.Verdict, c.Found = Warn, "more than one: "+strings.Join(names, "; ")
		c.Remedy = "Keep one, that of the program: with two, mpirun starts ranks that use the other's library, and each is rank 0 of 1"
	}
	return c
}

// describe returns the name of an MPI and where it is.
func describe(one MPI) string {
	if len(one.Folders) == 0 {
		return one.Name + " without a library"
	}
	abi := ""
	if one.ABI != "" {
		abi = one.ABI + " in "
	}
	return one.Name + " (" + abi + strings.Join(one.Folders[:min(len(one.Folders), 3)], ", ") + ")"
}

func (i inspected) checkLauncher() Check {
	c := Check{Check: "mpirun", Verdict: OK}
	if i.launcher == "" {
		c.Verdict, c.Found = Fail, "neither mpirun nor mpiexec is in the PATH"
		for _, one := range i.mpi {
			if len(one.Launchers) > 0 {
				c.Found += "; it is " + one.Launchers[0]
				c.Remedy = "Add a line to the Containerfile: ENV PATH=" + path.Dir(one.Launchers[0]) + ":$PATH"
				return c
			}
		}
		c.Remedy = "Install the MPI's launcher. Packages of libraries do not contain it: on Debian it is in openmpi-bin or mpich"
		return c
	}
	c.Found = i.launcher
	switch {
	case i.used == "":
		c.Verdict, c.Found = Warn, c.Found+" of an unknown MPI"
		c.Remedy = "Set mpiImplementation to the one that it is compatible with: " + implementations()
		return c
	case i.used != mpi.OpenMPI:
		c.Found += fmt.Sprintf(" of %s: jobs need mpiImplementation %s", implementationNames[i.used], i.used)
	default:
		c.Found += fmt.Sprintf(" of %s, the default of mpiImplementation", implementationNames[i.used])
	}
	if len(i.mpi) > 0 && !slices.ContainsFunc(i.mpi, func(one MPI) bool { return one.Implementation == i.used && len(one.Folders) > 0 }) {
		c.Verdict, c.Remedy = Warn, "Programs need a library of the same MPI, unless it is part of them: install it"
	}
	return c
}

// implementations lists the values of mpiImplementation.
func implementations() string {
	var values []string
	for _, value := range mpi.Implementations {
		values = append(values, string(value))
	}
	return strings.Join(values, ", ")
}

// standardFolders are where the loader looks for libraries (ld.so(8)), with those of Debian and Ubuntu for each platform.
var standardFolders = regexp.MustCompile(`^(/usr)?/lib(64)?(/[a-z0-9_]+-linux-gnu)?$`)

// checkLibraries checks that the loader finds the library of the launcher's MPI.
func (i inspected) checkLibraries() Check {
	c := Check{Check: "Libraries"}
	searched := i.searchedFolders()
	for _, one := range i.mpi {
		if one.Implementation != i.used || len(one.Folders) == 0 || one.ABI == "" {
			continue
		}
		if folder := i.folderOf(one.ABI, searched); folder != "" {
			return Check{Check: c.Check, Verdict: OK, Found: "the loader finds " + one.ABI + " in " + folder}
		}
		if c.Found == "" {
			c.Verdict, c.Found = None, fmt.Sprintf("the loader does not search %s: programs find %s only if their rpath names the folder", one.Folders[0], one.ABI)
			c.Remedy = "If a rank reports that " + one.ABI + " cannot be opened: ENV LD_LIBRARY_PATH=" + one.Folders[0]
		}
	}
	return c
}

// folderOf returns the first of the folders that has a library, or "".
func (i inspected) folderOf(library string, folders []string) string {
	for _, folder := range folders {
		if file := i.Contents.find(folder+"/"+library, true); file != nil && !file.isDir() {
			return folder
		}
	}
	return ""
}

// searchedFolders returns where the loader looks for libraries.
func (i inspected) searchedFolders() []string {
	var folders []string
	value, _ := i.Config.variable("LD_LIBRARY_PATH")
	folders = append(folders, strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ';' })...)
	for _, file := range []string{"/etc/ld.so.conf", "/etc/ld.so.conf.d"} {
		add := func(n *node) {
			for line := range strings.Lines(n.text) {
				if line = strings.TrimSpace(line); strings.HasPrefix(line, "/") {
					folders = append(folders, line)
				}
			}
		}
		if n := i.Contents.find(file, true); n != nil {
			add(n)
		}
		i.Contents.each(file, func(_ string, n *node) { add(n) })
	}
	for _, one := range i.mpi {
		for _, folder := range one.Folders {
			if standardFolders.MatchString(folder) {
				folders = append(folders, folder)
			}
		}
	}
	return append(folders, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}

func (i inspected) checkShell() Check {
	if file := i.Contents.find("/bin/sh", true); file == nil || file.isDir() {
		return Check{"Shell", Fail, "/bin/sh does not exist: MPI starts the processes of other hosts by it", "Use a base image with a shell, or install one"}
	}
	return Check{Check: "Shell", Verdict: OK, Found: "/bin/sh exists"}
}

func (i inspected) checkUser() Check {
	const remedy = "Add a line to the Containerfile: USER 1000"
	user, _, _ := strings.Cut(i.Config.User, ":")
	switch id, err := strconv.ParseUint(user, 10, 32); {
	case user == "", user == "root", err == nil && id == 0:
		return Check{"User", Warn, "root: namespaces that only admit restricted pods refuse it, unless the job sets runAsUser (OpenShift does)", remedy}
	case err != nil:
		return Check{"User", Warn, fmt.Sprintf("%q is a name: the kubelet does not start it with runAsNonRoot, because it cannot know that it is not root", user), remedy}
	}
	return Check{Check: "User", Verdict: OK, Found: i.Config.User + ", numeric and not root"}
}

// checkFiles checks that a user whom the image does not know can use the working directory.
func (i inspected) checkFiles() Check {
	c := Check{Check: "Any user", Verdict: OK, Found: "the files of the working directory can be read by every user"}
	folder := clean(i.Config.WorkingDir)
	if folder == "/" {
		c.Verdict, c.Found = None, "the working directory is /; the files of programs elsewhere are not checked"
		return c
	}
	remedy := fmt.Sprintf("Add a line to the Containerfile: RUN chgrp -R 0 %s && chmod -R g=u %s", folder, folder)
	for at := folder; at != "/"; at = path.Dir(at) {
		if n := i.Contents.find(at, true); n != nil && n.mode&0o001 == 0 && (n.gid != 0 || n.mode&0o010 == 0) {
			return Check{c.Check, Fail, fmt.Sprintf("other users cannot enter %s, on the way to the working directory %s", at, folder), remedy}
		}
	}
	first, count := "", 0
	i.Contents.each(folder, func(name string, n *node) {
		if n.mode.IsRegular() && !isReadable(n.mode, n.gid) {
			if count++; first == "" {
				first = name
			}
		}
	})
	if count > 0 {
		return Check{c.Check, Warn, fmt.Sprintf("%s of the working directory cannot be read by other users, such as %s", phrase.Count(count, "file"), first), remedy}
	}
	return c
}

func (i inspected) checkEntrypoint() Check {
	if len(i.Config.Entrypoint) == 0 {
		return Check{Check: "Entrypoint", Verdict: OK, Found: "none"}
	}
	return Check{
		"Entrypoint", None, phrase.Limit(phrase.QuoteCommand(i.Config.Entrypoint), 100) + " is not run: the command of a job replaces it, and on workers the agent does",
		"If it sets variables that the program needs, set them in the Containerfile by ENV, or call it in the job's command",
	}
}

func (i inspected) checkSSH() Check {
	c := Check{Check: "SSH", Verdict: OK, Found: "not in the image, and not needed: the agent starts ranks"}
	for _, name := range []string{"/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"} {
		if i.Contents.find(name, false) != nil {
			c.Found = name + " is in the image; it is not needed, and not run unless a job asks for it"
			break
		}
	}
	return c
}

func (i inspected) checkPrograms() Check {
	var found []string
	for _, name := range []string{"horovodrun", "deepspeed"} {
		if at := i.inPath(name); at != "" {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return Check{}
	}
	c := Check{Check: "Launchers", Verdict: OK, Found: strings.Join(found, " and ") + " besides mpirun"}
	if slices.Contains(found, "horovodrun") {
		c.Remedy = "horovodrun needs --hostfile /etc/mpi/hostfile; mpirun needs no flag"
	}
	return c
}

func (i inspected) checkGPU() Check {
	if len(i.gpu) == 0 {
		return Check{Check: "GPU", Verdict: None, Found: "neither CUDA nor ROCm; only programs for GPUs need it"}
	}
	return Check{Check: "GPU", Verdict: OK, Found: strings.Join(i.gpu, ", ")}
}

var (
	cudaLibrary = regexp.MustCompile(`^libcudart\.so\.(\d+)(?:\.(\d+))?`)
	ncclLibrary = regexp.MustCompile(`^libnccl\.so\.(\d+\.\d+(?:\.\d+)?)$`)
	cudaPackage = regexp.MustCompile(`^nvidia_cuda_runtime(?:_cu\d+)?-(\d+\.\d+)[0-9.]*\.dist-info$`)
	ncclPackage = regexp.MustCompile(`^nvidia_nccl_cu\d+-(\d+\.\d+(?:\.\d+)?)\.dist-info$`)
	rocmFolder  = regexp.MustCompile(`^/opt/rocm-(\d+\.\d+(?:\.\d+)?)$`)
	plainNumber = regexp.MustCompile(`^\d+(\.\d+)*`)
)

// findGPU returns what an image has for GPUs, with versions as far as they are known.
func findGPU(i inspected) []string {
	cuda, _ := i.Config.variable("CUDA_VERSION")
	cuda = plainNumber.FindString(cuda)
	nccl, rocm := "", ""
	hasCUDA, hasNCCL, hasROCm := cuda != "", false, false
	more := func(known *string, value string) {
		if len(value) > len(*known) {
			*known = value
		}
	}
	i.Contents.each("/", func(name string, _ *node) {
		base := path.Base(name)
		if m := cudaLibrary.FindStringSubmatch(base); m != nil {
			hasCUDA = true
			more(&cuda, strings.TrimSuffix(m[1]+"."+m[2], "."))
		} else if m := cudaPackage.FindStringSubmatch(base); m != nil {
			hasCUDA = true
			more(&cuda, m[1])
		} else if m := ncclPackage.FindStringSubmatch(base); m != nil {
			hasNCCL = true
			more(&nccl, m[1])
		} else if m := ncclLibrary.FindStringSubmatch(base); m != nil {
			hasNCCL = true
			more(&nccl, m[1])
		} else if m := rocmFolder.FindStringSubmatch(name); m != nil {
			rocm = m[1]
		}
		hasROCm = hasROCm || strings.HasPrefix(base, "libamdhip64.so")
	})
	var found []string
	for _, one := range []struct {
		has           bool
		name, version string
	}{{hasCUDA, "CUDA", cuda}, {hasNCCL, "NCCL", nccl}, {hasROCm, "ROCm", rocm}} {
		if one.has {
			found = append(found, strings.TrimSpace(one.name+" "+one.version))
		}
	}
	return found
}
