package imagecheck

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// Python is the interpreter that the PATH finds, and the packages that matter to jobs.
type Python struct {
	Path string `json:"path"`
	// Version has two numbers, such as 3.12; it may be empty.
	Version string `json:"version,omitempty"`
	// Packages maps names to versions. They may be those of other interpreters of the image.
	Packages map[string]string `json:"packages"`
	// needs are the MPI libraries that mpi4py can load, and horovod those of Horovod.
	needs map[string][]string
}

// packages are the names that are looked for.
var packages = []string{"torch", "tensorflow", "jax", "horovod", "deepspeed", "mpi4py", "numpy"}

// packageFile is the name of a folder or file of a package's metadata. Names may have any case, and - for _.
var packageFile = regexp.MustCompile(`^([A-Za-z0-9_.-]+?)-([0-9][A-Za-z0-9.+!_]*)(-py[0-9.]+)?\.(dist|egg)-info$`)

// findPython returns the interpreter, or nil if the PATH has none.
func findPython(i inspected) *Python {
	p := &Python{Packages: map[string]string{}, needs: map[string][]string{}}
	for _, name := range []string{"python3", "python"} {
		if p.Path = i.inPath(name); p.Path != "" {
			break
		}
	}
	if p.Path == "" {
		return nil
	}
	_, file := i.Contents.walkTo(p.Path, true)
	p.Version = strings.TrimPrefix(path.Base(file), "python")
	if !pythonName.MatchString(path.Base(file)) {
		p.Version = ""
	}
	i.Contents.each("/", func(name string, n *node) {
		if found := packageFile.FindStringSubmatch(path.Base(name)); found != nil {
			if key := strings.ToLower(found[1]); slices.Contains(packages, key) && p.Packages[key] == "" {
				p.Packages[key] = found[2]
			}
		}
		if mpiModule.MatchString(name) {
			owner := "mpi4py"
			if strings.Contains(name, "/horovod/") {
				owner = "horovod"
			}
			p.needs[owner] = append(p.needs[owner], libraries(n.tokens)...)
		}
	})
	return p
}

// libraries returns the tokens that are names of libraries.
func libraries(tokens []string) []string {
	return slices.DeleteFunc(slices.Clone(tokens), func(token string) bool { return !strings.HasPrefix(token, "lib") })
}

func (i inspected) checkPython() Check {
	if i.python == nil {
		return Check{Check: "Python", Verdict: None, Found: "no python3 in the PATH; only programs in Python need it"}
	}
	text := i.python.Path
	if i.python.Version != "" {
		text = "Python " + i.python.Version + " (" + text + ")"
	}
	var with []string
	for _, name := range packages {
		if version := i.python.Packages[name]; version != "" {
			with = append(with, name+" "+phrase.Limit(version, 30))
		}
	}
	if len(with) > 0 {
		text += ", " + strings.Join(with, ", ")
	}
	return Check{Check: "Python", Verdict: OK, Found: text}
}

// checkMPI4Py checks that mpi4py and Horovod load the image's MPI, and that DeepSpeed has mpi4py.
func (i inspected) checkMPI4Py() Check {
	c := Check{Check: "MPI in Python"}
	if i.python == nil {
		return c
	}
	for _, name := range []string{"mpi4py", "horovod"} {
		needs := i.python.needs[name]
		if i.python.Packages[name] == "" || len(needs) == 0 || i.used == "" {
			continue
		}
		if !slices.ContainsFunc(needs, i.hasLibrary) {
			return Check{
				c.Check, Fail, name + " was built for " + strings.Join(union(nil, needs), " or ") + ", which the image does not have",
				"Build " + name + " against the image's MPI: pip install --no-cache-dir --no-binary=" + name + " " + name,
			}
		}
		c.Verdict, c.Found = OK, name+" loads "+i.library()
	}
	if i.python.Packages["deepspeed"] != "" && i.python.Packages["mpi4py"] == "" {
		return Check{c.Check, Warn, "DeepSpeed without mpi4py: it does not find its ranks when mpirun starts them", "Install mpi4py after the MPI and a compiler: pip install --no-cache-dir mpi4py"}
	}
	return c
}

// library returns the MPI library of the launcher, such as libmpi.so.40.
func (i inspected) library() string {
	for _, one := range i.mpi {
		if one.Implementation == i.used && one.ABI != "" {
			return one.ABI
		}
	}
	return "the image's MPI"
}

// hasLibrary reports whether the image has the library of MPI with this name. MPICH's has two names.
func (i inspected) hasLibrary(name string) bool {
	return slices.ContainsFunc(i.mpi, func(one MPI) bool {
		return one.ABI != "" && (one.ABI == name || one.Implementation != mpi.OpenMPI && name == "libmpich.so.12")
	})
}
