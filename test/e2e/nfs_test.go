package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// nfs is an NFS server on this machine that exports the folders below root.
type nfs struct{ program, root, port string }

// buildNFS builds the server and the client of test/nfs, and gives the client to the nodes as /sbin/mount.nfs until the test ends: kernels
// of small machines have none. The machine itself does not get it, since each node has mounts of its own. It returns the server's path.
func buildNFS(t *testing.T) (server string) {
	t.Helper()
	onThisMachine(t)
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("SKIPPED: the NFS client of the tests needs FUSE: %v", err)
	}
	bin, helpers := t.TempDir(), t.TempDir()
	buildPrograms(t, "nfs", bin, "./server", "./mount")
	if err := os.Rename(filepath.Join(bin, "mount"), filepath.Join(helpers, "mount.nfs")); err != nil {
		t.Fatal(err)
	}
	giveNodes(t, helpers)
	return filepath.Join(bin, "server")
}

// start starts the server, until the test ends.
func (s nfs) start(t *testing.T) (stop func()) {
	t.Helper()
	address := net.JoinHostPort(machineAddress, s.port)
	run := exec.Command(s.program, address, s.root) //nolint:gosec // the test has built it
	run.Stdout, run.Stderr = os.Stderr, os.Stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { _ = run.Process.Kill(); _ = run.Wait() })
	t.Cleanup(stop)
	listens(t, "the NFS server", address)
	return stop
}

// giveNodes has the nodes of this machine find the programs of a folder in /sbin, until the test ends.
func giveNodes(t *testing.T, folder string) {
	t.Helper()
	sbin, err := filepath.EvalSymlinks("/sbin")
	if err != nil {
		t.Fatal(err)
	}
	records, err := filepath.Glob(filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "run", "*-kubelet.json"))
	if err != nil || len(records) == 0 {
		t.Fatalf("the cluster has no records of kubelets: %v", err)
	}
	for _, record := range records {
		text, err := os.ReadFile(record) //nolint:gosec // a file of the cluster
		if err != nil {
			t.Fatal(err)
		}
		var kubelet struct{ Identity struct{ PID int } }
		if err := json.Unmarshal(text, &kubelet); err != nil {
			t.Fatal(err)
		}
		within := []string{"nsenter", "--mount", "--target", strconv.Itoa(kubelet.Identity.PID)}
		mount := append(within, "mount", "-t", "overlay", "-o", "ro,lowerdir="+folder+":"+sbin, "mpijob-tests", sbin)
		if out, err := exec.CommandContext(t.Context(), mount[0], mount[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", strings.Join(mount, " "), err, out)
		}
		t.Cleanup(func() {
			unmount := append(within, "umount", "--lazy", sbin)
			if out, err := exec.Command(unmount[0], unmount[1:]...).CombinedOutput(); err != nil { //nolint:gosec // as above
				t.Errorf("%s: %v: %s", strings.Join(unmount, " "), err, out)
			}
		})
	}
}

// export makes a folder with data that the server exports, as an administrator does who gives it to a team.
func (s nfs) export(t *testing.T, name string, mode os.FileMode) (folder string) {
	t.Helper()
	folder = filepath.Join(s.root, name)
	err := errors.Join(os.Mkdir(folder, 0o755), os.Chown(folder, nfsUser, 0), os.Chmod(folder, mode), os.WriteFile(filepath.Join(folder, "input"), []byte("42 samples"), 0o644)) //nolint:gosec // all ranks read it
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// nfsUser is the user of the jobs, as OpenShift picks them.
const nfsUser = 1000650000

// source is a volume of the server.
func (nfs) source(path string) *corev1.NFSVolumeSource {
	return &corev1.NFSVolumeSource{Server: machineAddress, Path: path}
}

// throughNFS has each of two ranks read its data, write a result, wait for that of the other, and print it and the type of its mount.
const throughNFS = `set -e; me=$OMPI_COMM_WORLD_RANK; other=$((1 - me))
echo "$(cat /data/input) by rank $me as $(id -u)" >$OUTPUT_DIR/rank-$me.part
mv $OUTPUT_DIR/rank-$me.part $OUTPUT_DIR/rank-$me
until [ -e $OUTPUT_DIR/rank-$other ]; do sleep 0.2; done
echo "$(hostname) has read: $(cat $OUTPUT_DIR/rank-$other) from $(grep " $OUTPUT_DIR " /proc/mounts | cut -d ' ' -f 1)"`

// results compares what two ranks have written to a folder of the server, and said of each other's, when their job is gone.
func (s nfs) results(t *testing.T, folder, printed, share string, hosts ...string) {
	t.Helper()
	for rank, host := range hosts {
		own, other := fmt.Sprintf("42 samples by rank %d as %d", rank, nfsUser), fmt.Sprintf("42 samples by rank %d as %d", 1-rank, nfsUser)
		if want := fmt.Sprintf("%s has read: %s from %s:%s", host, other, machineAddress, share); !strings.Contains(printed, want) {
			t.Errorf("rank %d has not printed %q but\n%s", rank, want, printed)
		}
		if text, err := os.ReadFile(filepath.Join(folder, fmt.Sprintf("rank-%d", rank))); err != nil || string(text) != own+"\n" {
			t.Errorf("the server has %q (%v) of rank %d, want %q", text, err, rank, own)
		}
	}
}

// TestNFS: ranks of both kinds of jobs read from an NFS server and write to it. If a share cannot be used, the report explains why.
func TestNFS(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("kubectl-odh-mpijob"); err != nil {
		t.Skip("SKIPPED: kubectl-odh-mpijob is not in PATH; make e2e puts it there")
	}
	program := buildNFS(t)
	t.Run("results", func(t *testing.T) {
		parallel(t, 2)
		server := nfs{program, t.TempDir(), "2049"} // pods name no port
		server.start(t)
		seats(t, nfsSeat, 1, 1)
		t.Run("MPIJob", server.mpiJob)
		t.Run("TrainJob", server.trainJob)
		t.Run("MPIJob without a claim", server.mpiJobsPods)
		t.Run("TrainJob without a claim", server.trainJobsPods)
	})
	t.Run("failures", func(t *testing.T) {
		parallel(t, 2)
		listener, err := net.Listen("tcp", machineAddress+":0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		_ = listener.Close()
		server := nfs{program, t.TempDir(), port}
		stop := server.start(t)
		t.Run("shares", server.failures)
		t.Run("away", func(t *testing.T) { server.away(t, stop) })
	})
}

// nfsSeat is a resource of which each node has one, so that the two ranks of a job are on two nodes.
const nfsSeat = "example.com/seat-nfs"

// claimed makes a namespace with a claim for a folder that the server exports.
func (s nfs) claimed(t *testing.T, name string) (namespace, folder string) {
	t.Helper()
	namespace, folder = newNamespace(t), s.export(t, name, 0o777)
	claimOf(t, namespace, corev1.PersistentVolumeSource{NFS: s.source("/" + name)})
	return namespace, folder
}

// creates are the flags of a job with data on a claim, on which a node makes a folder for its results.
func creates(more ...string) []string {
	return slices.Concat([]string{
		"create", "train", "--workers", "2", "--gpu", "1", "--gpu-resource", nfsSeat, "--memory", "128Mi",
		"--volume", "data:/data:ro", "--output-dir", "data:/results", "--logs",
	}, more, []string{"--", "sh", "-c", throughNFS})
}

func (s nfs) mpiJob(t *testing.T) {
	namespace, folder := s.claimed(t, "mpijob")
	shell{t, namespace}.run(0, []string{"mpijob/train: Succeeded"}, creates("--image", image, "--run-as-user", strconv.Itoa(nfsUser))...)
	job := &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train"}}
	text := output(t, job)
	leaves(t, job)
	s.results(t, filepath.Join(folder, "train"), text, "/mpijob", "train-worker-0", "train-worker-1")
}

func (s nfs) trainJob(t *testing.T) {
	namespace, folder := s.claimed(t, "trainjob")
	runtimeIn(t, namespace, "mpi-openmpi", "runAsUser: 1000\n", fmt.Sprintf("runAsUser: %d\n", nfsUser))
	shell{t, namespace}.awaitRuntime("create", "train", "--runtime", "mpi", "--workers", "2", "--dry-run=server", "--", "true")
	shell{t, namespace}.run(0, []string{"trainjob/train: Succeeded"}, creates("--runtime", "mpi")...)
	job := trainjob.New()
	job.SetNamespace(namespace)
	job.SetName("train")
	text := printed(t, job)
	leaves(t, job)
	s.results(t, filepath.Join(folder, "train"), text, "/trainjob", "train-launcher-0-0", "train-node-0-0")
}

// inVolume is throughNFS with results on the volume itself. Its folder belongs to the user of the ranks, and a node's root user must not
// write there. The pods name the NFS server, which Pod Security's restricted profile does not admit.
const inVolume = "export OUTPUT_DIR=/data; " + throughNFS

func (s nfs) mpiJobsPods(t *testing.T) {
	folder := s.export(t, "mpijob-pods", 0o700)
	job := openMPI(openNamespace(t), 2, "mpirun", "-n", "2", "--map-by", "ppr:1:node", "sh", "-c", inVolume)
	asks(nfsSeat, "1")(t, job)
	mounts(kubeflow.MPIReplicaTypeWorker, corev1.VolumeSource{NFS: s.source("/mpijob-pods")})(t, job)
	create(t, job)
	waitFor(t, job, "it succeeds", succeeded)
	text := output(t, job)
	leaves(t, job)
	s.results(t, folder, text, "/mpijob-pods", "job-worker-0", "job-worker-1")
}

func (s nfs) trainJobsPods(t *testing.T) {
	folder := s.export(t, "trainjob-pods", 0o700)
	namespace := openNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi", "runAsUser: 1000\n", fmt.Sprintf("runAsUser: %d\n", nfsUser))
	trainer := fmt.Sprintf("{numNodes: 2, resourcesPerNode: {limits: {%s: 1}}, command: [mpirun, -n, '2', sh, -c, %q]}", nfsSeat, inVolume)
	job := trainJob(t, namespace, trainer, podsPatched(t, fmt.Sprintf(
		"spec: {volumes: [{name: data, nfs: {server: %s, path: /trainjob-pods}}], containers: [{name: node, volumeMounts: [{name: data, mountPath: /data}]}]}", machineAddress)))
	createTrainJob(t, job)
	ends(t, job, "Complete")
	text := printed(t, job)
	leaves(t, job)
	s.results(t, folder, text, "/trainjob-pods", "pi-launcher-0-0", "pi-node-0-0")
}

// failures has shares explained that cannot be mounted, and one on which the server does not let a node make the folder for results.
func (s nfs) failures(t *testing.T) {
	folder := s.export(t, "team", 0o700)
	namespaces := map[string]string{}
	tries := map[string]struct {
		source corev1.NFSVolumeSource
		code   codes.Code
		wants  []string
	}{
		"path": {
			*s.source("/none"), codes.MountFailed,
			[]string{"cannot mount " + machineAddress + ":/none: the server has no such path.", "1. Correct the path of the volume."},
		},
		"server": {
			corev1.NFSVolumeSource{Server: "127.0.0.1", Path: "/team"},
			codes.MountFailed,
			[]string{"cannot mount 127.0.0.1:/team: the server refuses the connection.", "1. Check that the server runs"},
		},
		"right": {
			*s.source("/team"), codes.ContainerCreateFailed,
			[]string{"cannot start: folder right cannot be created or opened on volume ", " (claim data).", "1. Nodes create the folder of a subPath as root"},
		},
	}
	for name, try := range tries {
		namespaces[name] = newNamespace(t)
		claimOf(t, namespaces[name], corev1.PersistentVolumeSource{NFS: &try.source}, "port="+s.port)
		shell{t, namespaces[name]}.run(0, []string{"mpijob/" + name + " created"}, "create", name, "--workers", "1", "--image", image, "--cpu", "50m", "--memory", "128Mi", "--run-as-user", strconv.Itoa(nfsUser),
			"--output-dir", "data:/results", "--", "sh", "-c", "id -u >$OUTPUT_DIR/user")
	}
	for name, try := range tries {
		reported(t, kubeflow.Kind, namespaces[name], name, "the report names the cause of "+name, func(status v1alpha1.JobReportStatus) error {
			if len(status.Findings) == 0 || status.Findings[0].Code != try.code {
				return fmt.Errorf("findings are %+v", status.Findings)
			}
			return nil
		})
		shell{t, namespaces[name]}.run(0, try.wants, "describe", name)
	}
	// With a folder that the user of the ranks has made, and that others can reach, the job goes on.
	own := filepath.Join(folder, "right")
	if err := errors.Join(os.Mkdir(own, 0o755), os.Chown(own, nfsUser, 0), os.Chmod(folder, 0o755)); err != nil { //nolint:gosec // as the finding demands
		t.Fatal(err)
	}
	shell{t, namespaces["right"]}.run(0, []string{"mpijob/right: Succeeded"}, "wait", "right", "--timeout", "4m")
	if text, err := os.ReadFile(filepath.Join(own, "user")); err != nil || string(text) != strconv.Itoa(nfsUser)+"\n" {
		t.Errorf("the result is %q: %v", text, err)
	}
	for name, namespace := range namespaces {
		leaves(t, &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
}

// reads has ranks read a file again and again, until rank 0 finds another.
const reads = `import os, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
while not comm.bcast(os.path.exists("/data/stop")):
    with open("/data/input") as f:
        print("rank", comm.Get_rank(), "has read", f.read(), flush=True)
    time.sleep(0.2)`

// away has ranks reported that wait for a server which is away. They go on when it is there again.
func (s nfs) away(t *testing.T, stop func()) {
	folder, namespace := s.export(t, "away", 0o755), newNamespace(t)
	claimOf(t, namespace, corev1.PersistentVolumeSource{NFS: s.source("/away")}, "port="+s.port)
	c := shell{t, namespace}
	c.run(0, nil, "create", "train", "--workers", "2", "--image", image, "--cpu", "50m", "--memory", "128Mi", "--run-as-user", strconv.Itoa(nfsUser), "--volume", "data:/data:ro", "--", "python3", "-c", reads)
	c.run(0, []string{"Running"}, "wait", "train", "--for", "phase=Running", "--timeout", "4m")
	eventually(t, "ranks have read", time.Minute, func() error {
		if text := output(t, &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train"}}); strings.Count(text, "has read") < 10 {
			return fmt.Errorf("the output is %q", text)
		}
		return nil
	})
	stop()
	// A rank that waits for its files is reported after two minutes: it may write a large one.
	eventuallyAfter(t, "the report says what the ranks wait for", 2*time.Minute, time.Minute, func() error {
		report := reportOf(t, kubeflow.Kind, namespace, "train")
		if report == nil || len(report.Status.Findings) == 0 || report.Status.Findings[0].Code != codes.RanksWaiting || !strings.Contains(report.Status.Findings[0].Summary, "waits for a file server") {
			return fmt.Errorf("the report is %+v", report)
		}
		return nil
	})
	c.run(0, []string{"RanksWaiting: All 2 ranks wait", "waits for a file server", "whether the volume's server answers"}, "describe", "train")
	s.start(t)
	if err := os.WriteFile(filepath.Join(folder, "stop"), nil, 0o644); err != nil { //nolint:gosec // ranks of another user look for it
		t.Fatal(err)
	}
	c.run(0, []string{"mpijob/train: Succeeded"}, "wait", "train", "--timeout", "4m")
	leaves(t, &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train"}})
}
