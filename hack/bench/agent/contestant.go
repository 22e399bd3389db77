package agent

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/hack/bench/agent/host"
)

// Names of the contestants, as in the report.
const (
	Ours = "ours"
	// Before is the agent of an earlier commit.
	Before  = "before"
	OpenSSH = "openssh"
	Floor   = "floor"
)

// contestant is a way to start programs on hosts.
type contestant struct {
	name string
	// rsh is what MPI starts with a host's name and a command.
	rsh string
	// idle is a command that does nothing on a host.
	idle []string
	// launch comes before mpirun.
	launch []string
	// serve is what a worker runs at an address; nil: there are no workers.
	serve func(address string) []string
	// files and shared are on each host.
	files  map[string]host.File
	shared map[string]string
	// own are folders that each host has of its own.
	own []string
	// env is added to the environment of mpirun.
	env []string
	// verdict returns what a launcher printed at last about the cause of its end; nil: all that it printed.
	verdict func(printed string) string
}

// agentFolder is where pods have the agent; see internal/agentapi.
const agentFolder = "/opt/mpi-agent"

// withAgent starts programs by the agent that is installed in a folder, as in a job of our operator's.
func withAgent(name string, k Key, installed string) contestant {
	return contestant{
		name: name, rsh: agentFolder + "/bin/ssh", launch: []string{agentFolder + "/mpi-agent", "launch", "--"},
		idle: []string{agentFolder + "/mpi-agent", "version"},
		serve: func(address string) []string {
			return []string{agentFolder + "/mpi-agent", "serve", address + ":2222", address + ":2223"}
		},
		files:  map[string]host.File{"/etc/mpi-agent/ssh-privatekey": {Content: k.Private, Mode: 0o444}},
		shared: map[string]string{agentFolder: installed},
		// As in pods: the files in which the rsh's of a host leave what they know.
		own:     []string{agentFolder + "/run"},
		verdict: lastOfAgent,
	}
}

// lastOfAgent is the last line that an agent printed.
func lastOfAgent(printed string) (last string) {
	for line := range strings.Lines(printed) {
		if strings.HasPrefix(line, "mpi-agent:") {
			last = strings.TrimSpace(line)
		}
	}
	return last
}

// openSSH starts programs by the OpenSSH of the sample image and with its settings. The image's script around ssh,
// which waits for hosts that have no name yet, is left out: it costs time.
func openSSH(k Key) contestant {
	const folder = "/root/.ssh/"
	return contestant{
		name: OpenSSH, rsh: "/usr/bin/ssh", idle: []string{"/usr/bin/ssh", "-V"},
		serve: func(address string) []string {
			return []string{"/usr/local/bin/sshd-user", "-D", "-e", "-o", "ListenAddress=" + address}
		},
		files: map[string]host.File{
			folder + "id_rsa":          {Content: k.Private, Mode: 0o600},
			folder + "id_rsa.pub":      {Content: k.Public + "\n", Mode: 0o644},
			folder + "authorized_keys": {Content: k.Public + "\n", Mode: 0o644},
			folder + "known_hosts":     {Content: "* " + k.Public + "\n", Mode: 0o644},
		},
		// As our operator and mpi-operator set it for sshd: ssh tries ten times, once a second.
		env: []string{"OMPI_MCA_plm_rsh_args=-o ConnectionAttempts=10"},
	}
}

// mostRanks is how many workers a case of mpirun has at most.
const mostRanks = 256

// floor starts programs next to the launcher, which measures the cost of MPI itself. Each daemon has a folder for temporary
// files of its own, to avoid conflicts, and a session of its own, to get its share of a busy machine.
func floor() contestant {
	const script = `#!/bin/sh
[ "$1" != -x ] || shift
TMPDIR=/tmp/$1
export TMPDIR
shift
exec setsid --wait /bin/sh -c "$*"
`
	files := map[string]host.File{"/usr/local/bin/floor": {Content: script, Mode: 0o755}}
	for n := range mostRanks {
		files[path.Join("/tmp", worker(n), "here")] = host.File{Mode: 0o644}
	}
	return contestant{name: Floor, rsh: "/usr/local/bin/floor", files: files}
}

// worker is the name of a host.
func worker(n int) string { return "worker-" + strconv.Itoa(n) }

// worker is the address of a host, and launcher that of the launcher.
func (l link) worker(n int) string { return fmt.Sprintf("%s.0.%d.%d", l.first(), 1+n/250, 1+n%250) }
func (l link) launcher() string    { return l.first() + ".0.0.1" }

// first is the first number of all addresses.
func (l link) first() string {
	if l == (link{}) {
		return "127"
	}
	return "10"
}

// environment is that of every host.
var environment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8"}

// mpi is the environment of mpirun, as our operator gives it to launchers (internal/implementation); the same for all but the
// program that reaches hosts.
func (c contestant) mpi() []string {
	return append([]string{
		"OMPI_MCA_orte_keep_fqdn_hostnames=true",
		"OMPI_MCA_orte_default_hostfile=" + hostfile,
		"OMPI_MCA_orte_set_default_slots=1",
		"OMPI_MCA_orte_leave_session_attached=true",
		"OMPI_MCA_plm_rsh_num_concurrent=100000",
		"OMPI_ALLOW_RUN_AS_ROOT=1",
		"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"OMPI_MCA_plm_rsh_agent=" + c.rsh,
	}, c.env...)
}

const hostfile = "/etc/mpi/hostfile"

// hostFiles are the files of a host of a job of so many workers.
func (c contestant) hostFiles(workers int, l link) map[string]host.File {
	names, hosts := "127.0.0.1 localhost\n"+l.launcher()+" launcher\n", ""
	for n := range workers {
		names += l.worker(n) + " " + worker(n) + "\n"
		hosts += worker(n) + " slots=1\n"
	}
	files := maps.Clone(c.files)
	files["/etc/hosts"] = host.File{Content: names, Mode: 0o644}
	files[hostfile] = host.File{Content: hosts, Mode: 0o644}
	return files
}

// Key is that of a job, in the forms that OpenSSH reads.
type Key struct{ Private, Public string }

// NewKey returns a key of the type that operators put into the Secret of a job.
func NewKey() (Key, error) {
	pair, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("make a key: %w", err)
	}
	private, err := x509.MarshalECPrivateKey(pair)
	if err != nil {
		return Key{}, fmt.Errorf("make a key: %w", err)
	}
	point, err := pair.PublicKey.Bytes()
	if err != nil {
		return Key{}, fmt.Errorf("make a key: %w", err)
	}
	// RFC 5656, 3.1: each part after its length.
	const kind, curve = "ecdsa-sha2-nistp521", "nistp521"
	var public []byte
	for _, part := range [][]byte{[]byte(kind), []byte(curve), point} {
		public = append(binary.BigEndian.AppendUint32(public, uint32(len(part))), part...)
	}
	return Key{
		Private: string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})),
		Public:  kind + " " + base64.StdEncoding.EncodeToString(public),
	}, nil
}
