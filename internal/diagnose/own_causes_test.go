package diagnose_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestFirstRemedies: the first remedy for a program's error follows from what the error names, and no remedy from what it does not.
func TestFirstRemedies(t *testing.T) {
	t.Parallel()
	proxied := func(env ...string) func(*scene) {
		return func(s *scene) {
			for i := 0; i < len(env); i += 2 {
				main := &s.job.Workers.Template.Spec.Containers[0]
				main.Env = append(main.Env, corev1.EnvVar{Name: env[i], Value: env[i+1]})
			}
		}
	}
	beside := func(volume corev1.VolumeSource, initial bool) func(*scene) {
		return func(s *scene) {
			spec := &s.job.Workers.Template.Spec
			mounts := []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
			spec.Volumes, spec.Containers[0].VolumeMounts = []corev1.Volume{{Name: "v", VolumeSource: volume}}, mounts
			if other := (corev1.Container{Name: "ship", VolumeMounts: mounts}); initial {
				other.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
				spec.InitContainers = []corev1.Container{other}
			} else {
				spec.Containers = append(spec.Containers, other)
			}
		}
	}
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	program := func(text string) func(*scene) {
		return func(s *scene) {
			s.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "python3", "-c", text}
		}
	}
	const proxy = "http://proxy.corp:3128"
	const noFile = "[1,1]<stderr>:FileNotFoundError: [Errno 2] No such file or directory: '/v/train.txt'"
	const divided = "[1,1]<stderr>:ZeroDivisionError: division by zero"
	const urllib3 = "requests.exceptions.ConnectionError: HTTPConnectionPool(host='data.internal', port=80): Max retries exceeded with url: / (Caused by "
	for name, test := range map[string]struct {
		log         string
		change      func(*scene)
		want, never string
	}{
		"a name before the words":              {"RuntimeError: SCRATCH environment variable is not set", nil, "Set SCRATCH: no pod template sets SCRATCH", "Set is"},
		"HOME":                                 {"RuntimeError: HOME environment variable is not set", nil, "Set HOME: ", " is, "},
		"a name in small letters":              {"RuntimeError: hf_token environment variable was not found", nil, "Set hf_token: ", " was:"},
		"a name in quotation marks":            {"RuntimeError: environment variable 'scratch' is not set", nil, "Set scratch: ", ""},
		"a name after the words":               {"RuntimeError: a required environment variable is missing: DATA_DIR", nil, "Set DATA_DIR: ", "required:"},
		"a name after all":                     {"RuntimeError: Missing required environment variable: DATA_DIR", nil, "Set DATA_DIR: ", ""},
		"several names":                        {"RuntimeError: the following environment variables are not set: DATA_DIR, B", nil, "Set DATA_DIR: ", "following"},
		"no name":                              {"RuntimeError: the environment variable is not set", nil, "", "Set "},
		"no name, in capitals":                 {"RuntimeError: ENVIRONMENT VARIABLE IS NOT SET", nil, "", "Set IS"},
		"a setting":                            {"RuntimeError: BATCH_SIZE is not set in config.yaml", nil, "", "BATCH_SIZE"},
		"a setting or a variable":              {"RuntimeError: BATCH_SIZE is not set", nil, "If BATCH_SIZE is an environment variable, set it", "Set BATCH_SIZE"},
		"a key of a section":                   {"RuntimeError: train.BATCH_SIZE is not set", nil, "", "BATCH_SIZE"},
		"a variable of CMake":                  {"RuntimeError: CMAKE_CXX_COMPILER not set, after EnableLanguage", nil, "", "CMAKE_CXX_COMPILER"},
		"a name of Python":                     {"NameError: name 'MAX_LEN' is not defined", nil, "", "MAX_LEN is an"},
		"another name before it":               {"RuntimeError: HTTP_STATUS is 500 because DATA_DIR is not set", nil, "If DATA_DIR is an environment variable", "HTTP_STATUS"},
		"the launcher has unknown variables":   {"[1,1]<stderr>:KeyError: 'DATA_DIR'", func(s *scene) { s.job.Launcher.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{}} }, "If DATA_DIR is an environment variable, set it in both pod templates. Open MPI passes", "no pod template sets"},
		"a host that curl names":               {"curl: (6) Could not resolve host: data.internal", proxied("http_proxy", proxy), "Correct the host's name", "the proxy"},
		"a proxy that curl names":              {"curl: (5) Could not resolve proxy: proxy.corp", proxied("http_proxy", proxy), "Check proxy.corp,", ""},
		"a host that urllib3 names":            {urllib3 + "NameResolutionError(\"<x>: Failed to resolve 'data.internal' ([Errno -2] Name or service not known)\"))", proxied("http_proxy", proxy, "NO_PROXY", ".internal"), "Correct the host's name", "the proxy"},
		"a proxy that urllib3 names":           {urllib3 + "ProxyError('Unable to connect to proxy', NameResolutionError(\"<x>: Failed to resolve 'proxy.corp' ([Errno -2] Name or service not known)\")))", proxied("http_proxy", proxy), "Check proxy.corp,", ""},
		"a host that Go names":                 {"error: Get \"http://data.internal/\": dial tcp: lookup data.internal on 10.96.0.10:53: no such host", proxied("http_proxy", proxy), "Correct the host's name", "the proxy"},
		"a proxy with an address":              {"urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>", proxied("http_proxy", "http://10.0.0.5:3128"), "Correct the host's name", "the proxy"},
		"a proxy with an address of IPv6":      {"urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>", proxied("http_proxy", "http://[::1]:3128"), "Correct the host's name", "the proxy"},
		"one of the proxies has a name":        {"urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>", proxied("http_proxy", "http://[::1]:3128", "https_proxy", proxy), "Check proxy.corp, the proxy that https_proxy names", ""},
		"an address that leaves out the proxy": {"Traceback (most recent call last):\n  File \"/a.py\", line 1, in <module>\n    urlopen(\"http://data.internal/x\")\nurllib.error.URLError: <urlopen error [Errno -2] Name or service not known>", proxied("http_proxy", proxy, "no_proxy", "localhost,.internal"), "Correct the host's name", "the proxy"},
		"an address of the proxy":              {"Traceback (most recent call last):\n  File \"/a.py\", line 1, in <module>\n    urlopen(\"http://data.example/x\")\nurllib.error.URLError: <urlopen error [Errno -2] Name or service not known>", proxied("http_proxy", proxy, "no_proxy", "localhost,.internal"), "Check proxy.corp,", ""},
		"a claim with a sidecar":               {noFile, beside(claim, true), "Check the path of /v/train.txt", "restartPolicy"},
		"a claim with a container":             {noFile, beside(claim, false), "Check the path of /v/train.txt", "init container"},
		"an emptyDir with a sidecar":           {noFile, beside(empty, true), "If init container ship writes /v/train.txt and then ends, remove its restartPolicy", ""},
		"an emptyDir with a container":         {noFile, beside(empty, false), "If container ship writes /v/train.txt, do that in an init container", ""},
		"a sum of MPI":                         {divided, program("comm.reduce(a)"), "Check how the program divides", ""},
		"a sum of functools":                   {divided, program("functools.reduce(f, a); np.add.reduce(a); tf.reduce(a)"), "Check how the program divides", "MPI_Reduce"},
		"an index and a sum":                   {"[1,1]<stderr>:IndexError: list index out of range", program("lib.MPI_Reduce(a, b)"), "Check how the program divides", "MPI_Reduce"},
		"a message that is too long":           {"[1,1]<stderr>:[w:1] *** An error occurred in MPI_Waitall\n[1,1]<stderr>:[w:1] *** MPI_ERR_TRUNCATE: message truncated", nil, "Make the buffer of the receive at least as long", "on all ranks"},
		"a message of MPICH":                   {"Fatal error in internal_Recv: Message truncated, error stack:", mpiOf(mpi.MPICH), "Make the buffer of the receive at least as long", "on all ranks"},
		"a collective call":                    {"[w:1] *** An error occurred in MPI_Allgatherv\n[w:1] *** MPI_ERR_TRUNCATE: message truncated", nil, "Give MPI_Allgatherv the same count and datatype on all ranks", "Probe"},
	} {
		if test.change == nil {
			test.change = func(*scene) {}
		}
		found := failed(1, test.log).with(test.change).findings()
		if len(found) == 0 || len(found[0].Remedies) == 0 || !strings.HasPrefix(found[0].Remedies[0].Text, test.want) {
			t.Errorf("%s: found %+v", name, found)
			continue
		}
		for _, r := range found[0].Remedies {
			if test.never != "" && strings.Contains(r.Text+r.Action, test.never) {
				t.Errorf("%s: %q contains %q", name, r.Text, test.never)
			}
		}
	}
}

func mpiOf(of mpi.Implementation) func(*scene) { return func(s *scene) { s.job.Implementation = of } }

// TestVariablesOfInterfaces: a remedy names the variables by which the job's MPI selects an interface.
func TestVariablesOfInterfaces(t *testing.T) {
	t.Parallel()
	const log = "[mpiexec@pi-launcher] HYDU_sock_get_iface_ip (lib/utils/sock.c:451): unable to find interface ib0"
	for of, want := range map[mpi.Implementation]string{
		mpi.MPICH:    "env: HYDRA_IFACE, FI_TCP_IFACE, NCCL_SOCKET_IFNAME",
		mpi.IntelMPI: "env: I_MPI_HYDRA_IFACE, FI_TCP_IFACE, NCCL_SOCKET_IFNAME",
	} {
		found := failed(1, log, func(j *mpi.Job) { j.Implementation = of }).findings()
		if len(found) == 0 || !slices.ContainsFunc(found[0].Remedies, func(r v1alpha1.Remedy) bool { return strings.HasPrefix(r.Action, want) }) {
			t.Errorf("%s: found %+v", of, found)
		}
	}
}
