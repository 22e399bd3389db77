package imagecheck

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/mpi"
)

// entry is a file of a layer: a folder if the name ends with /, a link if the content starts with "-> ", a hard link with "=> ".
type entry struct {
	name, content string
	mode          int64
	gid           int
}

func layer(t *testing.T, entries ...entry) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Gid: e.gid, Typeflag: tar.TypeReg}
		if header.Mode == 0 {
			header.Mode = 0o755
		}
		target, isLink := strings.CutPrefix(e.content, "-> ")
		original, isHardLink := strings.CutPrefix(e.content, "=> ")
		switch {
		case strings.HasSuffix(e.name, "/"):
			header.Typeflag = tar.TypeDir
		case isLink:
			header.Typeflag, header.Linkname = tar.TypeSymlink, target
		case isHardLink:
			header.Typeflag, header.Linkname = tar.TypeLink, original
		default:
			header.Size = int64(len(e.content))
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(e.content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func contents(t *testing.T, workingDir string, layers ...[]entry) *Contents {
	t.Helper()
	c := NewContents(workingDir)
	for _, entries := range layers {
		if err := c.AddLayer(layer(t, entries...)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// elf is a library or program with C strings.
func elf(texts ...string) string { return "\x7fELF\x00" + strings.Join(texts, "\x00") + "\x00" }

// debian is what images with Debian's Open MPI 4 have; its names are those of the sample image.
var debian = []entry{
	{name: "bin", content: "-> usr/bin"},
	{name: "usr/bin/sh", content: "-> dash"},
	{name: "usr/bin/dash", content: elf()},
	{name: "etc/os-release", content: "-> ../usr/lib/os-release"},
	{name: "usr/lib/os-release", content: "NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"},
	{name: "etc/alternatives/mpirun", content: "-> /usr/bin/mpirun.openmpi"},
	{name: "usr/bin/mpirun", content: "-> /etc/alternatives/mpirun"},
	{name: "usr/bin/mpirun.openmpi", content: "-> orterun"},
	{name: "usr/bin/orterun", content: elf("libopen-rte.so.40")},
	{name: "usr/bin/orted", content: elf()},
	{name: "usr/lib/x86_64-linux-gnu/libmpi.so.40", content: "-> libmpi.so.40.30.4"},
	{name: "usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4", content: elf("1.2.13", "v4.1.4", "Open MPI"), mode: 0o644},
}

var (
	mpich = []entry{
		{name: "usr/local/bin/mpiexec.hydra", content: elf("4.2.1", "127.0.0.1")},
		{name: "usr/local/bin/mpirun", content: "-> mpiexec.hydra"},
		{name: "usr/local/bin/hydra_pmi_proxy", content: elf()},
		{name: "usr/local/lib/libmpi.so.12", content: elf("0.13.99", "4.2.1")},
	}
	intel = []entry{
		{name: "opt/intel/mpi/bin/mpirun", content: "#!/bin/sh\n"},
		{name: "opt/intel/mpi/bin/mpiexec.hydra", content: elf("2021.19.0")},
		{name: "opt/intel/mpi/bin/hydra_bstrap_proxy", content: elf()},
		{name: "opt/intel/mpi/lib/libmpi.so.12", content: elf("1.3.2", "3.4a2", "2021.19.0")},
		{name: "opt/intel/mpi/lib/libmpi.so", content: "-> libmpi.so.12"},
	}
	shell = []entry{{name: "bin/sh", content: elf()}}
)

var user1000 = Config{User: "1000:1000", Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}}

func judge(t *testing.T, config Config, layers ...[]entry) Result {
	t.Helper()
	return Judge(Image{Name: "image", Platform: "linux/amd64", Platforms: []string{"linux/amd64"}, Config: config, Layers: len(layers), Contents: contents(t, config.WorkingDir, layers...)})
}

func verdicts(r Result, not ...Verdict) map[string]Verdict {
	found := map[string]Verdict{}
	for _, c := range r.Checks {
		if !slices.Contains(not, c.Verdict) {
			found[c.Check] = c.Verdict
		}
	}
	return found
}

func TestMPI(t *testing.T) {
	for name, test := range map[string]struct {
		layers []entry
		env    []string
		want   []MPI
		used   mpi.Implementation
	}{
		"Open MPI 4": {
			layers: debian, used: mpi.OpenMPI,
			want: []MPI{{mpi.OpenMPI, "Open MPI 4.1.4", "4.1.4", "libmpi.so.40", []string{"/usr/lib/x86_64-linux-gnu"}, []string{"/usr/bin/mpirun", "/usr/bin/mpirun.openmpi", "/usr/bin/orterun"}}},
		},
		"Open MPI 5, only by the name of its library": {
			layers: []entry{{name: "usr/bin/mpirun", content: elf()}, {name: "usr/bin/prted", content: elf()}, {name: "usr/lib64/libmpi.so.40.40.7", content: elf()}}, used: mpi.OpenMPI,
			want: []MPI{{mpi.OpenMPI, "Open MPI 5.0", "5.0", "libmpi.so.40", []string{"/usr/lib64"}, []string{"/usr/bin/mpirun"}}},
		},
		"Open MPI 1.10 has MPICH's number": {
			layers: []entry{{name: "usr/lib/libmpi.so.12.0.2", content: elf("1.10.2")}, {name: "usr/lib/libopen-pal.so.13", content: elf()}},
			want:   []MPI{{mpi.OpenMPI, "Open MPI 1.10.2", "1.10.2", "libmpi.so.12", []string{"/usr/lib"}, nil}},
		},
		"MPICH": {
			layers: mpich, used: mpi.MPICH,
			want: []MPI{{mpi.MPICH, "MPICH 4.2.1", "4.2.1", "libmpi.so.12", []string{"/usr/local/lib"}, []string{"/usr/local/bin/mpiexec.hydra", "/usr/local/bin/mpirun"}}},
		},
		"Intel MPI": {
			layers: intel, used: mpi.IntelMPI, env: []string{"PATH=/opt/intel/mpi/bin:/bin"},
			want: []MPI{{mpi.IntelMPI, "Intel MPI 2021.19.0", "2021.19.0", "libmpi.so.12", []string{"/opt/intel/mpi/lib"}, []string{"/opt/intel/mpi/bin/mpiexec.hydra", "/opt/intel/mpi/bin/mpirun"}}},
		},
		"a launcher that is not executable": {
			layers: []entry{{name: "usr/bin/mpirun", content: elf(), mode: 0o644}, {name: "usr/bin/orted", content: elf()}},
		},
		"none": {layers: shell},
	} {
		t.Run(name, func(t *testing.T) {
			config := user1000
			if test.env != nil {
				config.Env = test.env
			}
			r := judge(t, config, test.layers)
			if diff := cmp.Diff(test.want, r.MPI); diff != "" {
				t.Error(diff)
			}
			if r.MPIImplementation != test.used {
				t.Errorf("implementation %q, want %q", r.MPIImplementation, test.used)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	with := func(more ...entry) []entry { return more }
	for name, test := range map[string]struct {
		config Config
		layers [][]entry
		want   map[string]Verdict // those that are neither ok nor "-"
		text   string             // in what was found or a remedy
	}{
		"a good image": {config: user1000, layers: [][]entry{debian}, want: map[string]Verdict{}, text: "the loader finds libmpi.so.40 in /usr/lib/x86_64-linux-gnu"},
		"nothing":      {config: user1000, want: map[string]Verdict{"MPI": Fail, "mpirun": Fail, "Shell": Fail}, text: "neither a library nor a launcher"},
		"two MPIs":     {config: user1000, layers: [][]entry{debian, mpich}, want: map[string]Verdict{"MPI": Warn}, text: "more than one: Open MPI 4.1.4"},
		"not in the PATH": {
			config: user1000, layers: [][]entry{shell, intel}, want: map[string]Verdict{"mpirun": Fail}, text: "ENV PATH=/opt/intel/mpi/bin:$PATH",
		},
		"a library that the loader may not find": {
			config: Config{User: "1000", Env: []string{"PATH=/opt/intel/mpi/bin"}}, layers: [][]entry{shell, intel}, want: map[string]Verdict{}, text: "ENV LD_LIBRARY_PATH=/opt/intel/mpi/lib",
		},
		"a library that LD_LIBRARY_PATH names": {
			config: Config{User: "1000", Env: []string{"PATH=/opt/intel/mpi/bin", "LD_LIBRARY_PATH=/x:/opt/intel/mpi/lib"}}, layers: [][]entry{shell, intel},
			want: map[string]Verdict{}, text: "the loader finds libmpi.so.12 in /opt/intel/mpi/lib",
		},
		"a library that ld.so.conf names": {
			config: Config{User: "1000"}, layers: [][]entry{shell, mpich, with(entry{name: "etc/ld.so.conf.d/libc.conf", content: "# default\n/usr/local/lib\n"})},
			want: map[string]Verdict{}, text: "the loader finds libmpi.so.12 in /usr/local/lib",
		},
		"root":          {layers: [][]entry{debian}, want: map[string]Verdict{"User": Warn}, text: "USER 1000"},
		"UID 0":         {config: Config{User: "0:0"}, layers: [][]entry{debian}, want: map[string]Verdict{"User": Warn}},
		"a user's name": {config: Config{User: "mpiuser"}, layers: [][]entry{debian}, want: map[string]Verdict{"User": Warn}, text: `"mpiuser" is a name`},
		"a home that others cannot enter": {
			config: Config{User: "1000", WorkingDir: "/root/app"}, layers: [][]entry{debian, with(entry{name: "root/", mode: 0o700}, entry{name: "root/app/"})},
			want: map[string]Verdict{"Any user": Fail}, text: "cannot enter /root,",
		},
		"a home of the group 0": {
			config: Config{User: "1000", WorkingDir: "/app"}, layers: [][]entry{debian, with(entry{name: "app/", mode: 0o770}, entry{name: "app/train.py", mode: 0o640})},
			want: map[string]Verdict{}, text: "can be read by every user",
		},
		"unreadable files": {
			config: Config{User: "1000", WorkingDir: "/app"},
			layers: [][]entry{debian, with(entry{name: "app/a.py", mode: 0o600, gid: 1}, entry{name: "app/b.py", mode: 0o600}, entry{name: "app/c.py", mode: 0o644})},
			want:   map[string]Verdict{"Any user": Warn}, text: "2 files of the working directory cannot be read by other users, such as /app/a.py",
		},
		"unreadable files that a later layer repairs": {
			config: Config{User: "1000", WorkingDir: "/app"},
			layers: [][]entry{debian, with(entry{name: "app/a.py", mode: 0o600}), with(entry{name: "app/a.py", mode: 0o644})}, want: map[string]Verdict{},
		},
		"mpi4py of another MPI": {
			config: user1000,
			layers: [][]entry{debian, with(
				entry{name: "usr/bin/python3", content: "-> python3.11"}, entry{name: "usr/bin/python3.11", content: elf()},
				entry{name: "usr/lib/python3/dist-packages/mpi4py-4.0.3.dist-info/METADATA"},
				entry{name: "usr/lib/python3/dist-packages/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so", content: elf("libmpi.so.12", "libc.so.6")},
			)},
			want: map[string]Verdict{"MPI in Python": Fail}, text: "mpi4py was built for libmpi.so.12, which the image does not have",
		},
		"DeepSpeed without mpi4py": {
			config: user1000,
			layers: [][]entry{debian, with(
				entry{name: "usr/local/bin/python3", content: elf()}, entry{name: "usr/local/bin/deepspeed", content: "#!python"},
				entry{name: "usr/local/lib/python3.12/site-packages/deepspeed-0.16.2.dist-info/METADATA"},
			)},
			want: map[string]Verdict{"MPI in Python": Warn}, text: "deepspeed besides mpirun",
		},
		"an entrypoint": {
			config: Config{User: "1000", Entrypoint: []string{"/opt/nvidia/nvidia_entrypoint.sh"}}, layers: [][]entry{debian}, want: map[string]Verdict{}, text: "/opt/nvidia/nvidia_entrypoint.sh is not run",
		},
		"sshd": {config: user1000, layers: [][]entry{debian, with(entry{name: "usr/sbin/sshd", content: elf()})}, want: map[string]Verdict{}, text: "/usr/sbin/sshd is in the image; it is not needed"},
		"Horovod": {
			config: user1000,
			layers: [][]entry{debian, with(
				entry{name: "usr/local/bin/python", content: elf()}, entry{name: "usr/local/bin/horovodrun", content: "#!python"},
				entry{name: "usr/local/lib/python3.12/site-packages/horovod-0.28.1.dist-info/METADATA"},
				entry{name: "usr/local/lib/python3.12/site-packages/horovod/torch/mpi_lib_v2.cpython-312.so", content: elf("libmpi.so.40")},
			)},
			want: map[string]Verdict{}, text: "horovod loads libmpi.so.40",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := judge(t, test.config, test.layers...)
			if diff := cmp.Diff(test.want, verdicts(r, OK, None)); diff != "" {
				t.Errorf("%s\n%+v", diff, r.Checks)
			}
			if !strings.Contains(fmt.Sprintf("%+v", r.Checks), test.text) {
				t.Errorf("%q is not in %+v", test.text, r.Checks)
			}
			failed := false
			for _, verdict := range test.want {
				failed = failed || verdict == Fail
			}
			if r.Usable() == failed {
				t.Errorf("usable: %v", r.Usable())
			}
		})
	}
}

func TestPythonAndGPU(t *testing.T) {
	site := "usr/local/lib/python3.12/site-packages/"
	r := judge(t, Config{User: "1000", Env: []string{"CUDA_VERSION=12.8.1"}}, debian, []entry{
		{name: "usr/local/bin/python3", content: "-> python3.12"},
		{name: "usr/local/bin/python3.12", content: elf()},
		{name: site + "torch-2.8.0+cu128.dist-info/METADATA"},
		{name: site + "mpi4py-4.1.0.dist-info/METADATA"},
		{name: site + "torchvision-0.23.0.dist-info/METADATA"},
		{name: "usr/lib/python3/dist-packages/numpy-1.24.2.egg-info"},
		{name: site + "nvidia_nccl_cu12-2.26.5.dist-info/METADATA"},
		{name: site + "nvidia/cuda_runtime/lib/libcudart.so.12", content: elf()},
	})
	want := &Python{Path: "/usr/local/bin/python3", Version: "3.12", Packages: map[string]string{"torch": "2.8.0+cu128", "mpi4py": "4.1.0", "numpy": "1.24.2"}}
	if diff := cmp.Diff(want, r.Python, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".needs" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"CUDA 12.8.1", "NCCL 2.26.5"}, r.GPU); diff != "" {
		t.Error(diff)
	}
}

func TestLayers(t *testing.T) {
	// program is in the image if the name leads to it.
	for name, test := range map[string]struct {
		layers [][]entry
		find   string
		want   bool
	}{
		"a file":                             {[][]entry{{{name: "usr/bin/mpirun"}}}, "/usr/bin/mpirun", true},
		"a name with dots":                   {[][]entry{{{name: "./usr/../../../usr/bin/mpirun"}}}, "/usr/bin/mpirun", true},
		"a whiteout":                         {[][]entry{{{name: "usr/bin/mpirun"}}, {{name: "usr/bin/.wh.mpirun"}}}, "/usr/bin/mpirun", false},
		"a whiteout of a folder":             {[][]entry{{{name: "usr/bin/mpirun"}}, {{name: ".wh.usr"}}}, "/usr/bin/mpirun", false},
		"a whiteout through a link":          {[][]entry{{{name: "usr/bin/mpirun"}, {name: "bin", content: "-> usr/bin"}}, {{name: "bin/.wh.mpirun"}}}, "/usr/bin/mpirun", false},
		"a whiteout of its own layer":        {[][]entry{{{name: "usr/bin/mpirun"}, {name: "usr/bin/.wh.mpirun"}}}, "/usr/bin/mpirun", true},
		"a whiteout that names its parent":   {[][]entry{{{name: "usr/bin/mpirun"}}, {{name: "usr/bin/.wh..."}, {name: "usr/bin/.wh."}}}, "/usr/bin/mpirun", true},
		"an opaque folder":                   {[][]entry{{{name: "usr/bin/mpirun"}}, {{name: "usr/bin/.wh..wh..opq"}}}, "/usr/bin/mpirun", false},
		"an opaque folder after its content": {[][]entry{{{name: "usr/bin/sh"}}, {{name: "usr/bin/mpirun"}, {name: "usr/bin/.wh..wh..opq"}}}, "/usr/bin/mpirun", true},
		"a folder replaced by a file":        {[][]entry{{{name: "usr/bin/mpirun"}}, {{name: "usr/bin", content: "x"}}}, "/usr/bin/mpirun", false},
		"a folder replaced by a link":        {[][]entry{{{name: "usr/bin/mpirun"}}, {{name: "usr/bin", content: "-> /bin"}}}, "/usr/bin/mpirun", false},
		"a folder that is there already":     {[][]entry{{{name: "usr/bin/mpirun"}}, {{name: "usr/bin/"}}}, "/usr/bin/mpirun", true},
		"a link replaced by another file":    {[][]entry{{{name: "a", content: "-> usr/bin/mpirun"}, {name: "usr/bin/mpirun"}}, {{name: "a", content: "x"}}}, "/a", false},
		"a file below a link":                {[][]entry{{{name: "bin", content: "-> usr/bin"}}, {{name: "bin/mpirun"}}}, "/usr/bin/mpirun", true},
		"a link out of the image":            {[][]entry{{{name: "usr/bin/mpirun"}, {name: "a", content: "-> ../../../../usr/bin/mpirun"}}}, "/a", true},
		"a link to itself":                   {[][]entry{{{name: "a", content: "-> a"}, {name: "a/mpirun"}}}, "/a/mpirun", false},
		"links in a circle":                  {[][]entry{{{name: "a", content: "-> b"}, {name: "b", content: "-> a"}}}, "/a", false},
		"a hard link":                        {[][]entry{{{name: "usr/bin/mpirun"}, {name: "usr/bin/x", content: "=> usr/bin/mpirun"}}}, "/usr/bin/x", true},
		"a hard link to an unknown file":     {[][]entry{{{name: "usr/bin/mpirun", content: "=> /x"}}}, "/usr/bin/mpirun", true},
		"the root":                           {[][]entry{{{name: "usr/bin/mpirun"}}, {{name: "./"}, {name: "/", content: "-> /x"}}}, "/usr/bin/mpirun", true},
		"a name that is too deep":            {[][]entry{{{name: strings.Repeat("a/", maxDepth+1) + "mpirun"}}}, "/" + strings.Repeat("a/", maxDepth+1) + "mpirun", false},
	} {
		t.Run(name, func(t *testing.T) {
			if n := contents(t, "/", test.layers...).find(test.find, true); (n != nil && n.mode.IsRegular()) != test.want {
				t.Errorf("%s: %+v, want %v", test.find, n, test.want)
			}
		})
	}
}

func TestModesAreThoseOfTheLastLayer(t *testing.T) {
	c := contents(t, "/", []entry{{name: "app/", mode: 0o700}}, []entry{{name: "app/", mode: 0o755}})
	if got := c.find("/app", true).mode; got != fs.ModeDir|0o755 {
		t.Errorf("mode %v", got)
	}
}

func TestLimits(t *testing.T) {
	c := NewContents("/")
	c.nodes = maxNodes
	var limit *LimitError
	if err := c.AddLayer(layer(t, entry{name: "usr/bin/mpirun"})); !errors.As(err, &limit) {
		t.Errorf("too many files: %v", err)
	}
	c = NewContents("/")
	c.unpacked = maxRead
	if err := c.AddLayer(layer(t, entry{name: "usr/bin/mpirun"})); !errors.As(err, &limit) {
		t.Errorf("too many bytes: %v", err)
	}
	if err := NewContents("/").AddLayer(strings.NewReader(strings.Repeat("no tar file", 100))); err == nil {
		t.Error("text is no layer")
	}
	c = contents(t, "/", []entry{{name: "etc/os-release", content: strings.Repeat("x", maxText+1)}})
	if n := c.find("/etc/os-release", true); n == nil || n.text != "" {
		t.Errorf("a large text was kept: %+v", n)
	}
}

func TestTokensAreFoundAcrossChunks(t *testing.T) {
	for _, before := range []int{chunk - 20, chunk - 1, chunk, chunk + maxToken - 7, chunk + maxToken, 3 * chunk} {
		content := strings.Repeat("x", before) + elf("4.1.4", "4.1.4", "v5.0.7", "libmpi.so.40", "libc.so.6", "9.9.9.9.9")
		got, err := scanTokens(strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"4.1.4", "5.0.7", "libmpi.so.40"}, got); diff != "" {
			t.Errorf("%d bytes before: %s", before, diff)
		}
	}
}

// TestManyMPIs: an image that has thousands of libraries gets a result of bounded size.
func TestManyMPIs(t *testing.T) {
	var many []entry
	for n := range 300 {
		many = append(many, entry{name: fmt.Sprintf("opt/%d/lib/libmpi.so.40.40.%d", n, n), content: elf(fmt.Sprintf("5.0.%d", n))})
		many = append(many, entry{name: fmt.Sprintf("opt/%d/bin/orterun", n), content: elf()})
	}
	r := judge(t, user1000, many)
	if len(r.MPI) > maxFound || len(r.MPI[0].Launchers) > maxFound {
		t.Errorf("%d MPIs with %d launchers", len(r.MPI), len(r.MPI[0].Launchers))
	}
}
