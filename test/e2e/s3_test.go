package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// machineAddress is where pods of the one-machine cluster reach the machine itself (hack/cluster/layout).
const machineAddress = "10.244.0.1"

// s3 is a server with the bucket training.
type s3 struct {
	endpoint string
	// bucket is the folder that holds the bucket's objects as files.
	bucket string
	client string
}

// startS3 builds the server and the client of test/s3 and starts the server on this machine, until the test ends.
func startS3(t *testing.T) s3 {
	t.Helper()
	onThisMachine(t)
	bin, root := t.TempDir(), t.TempDir()
	buildPrograms(t, "s3", bin, "github.com/versity/versitygw/cmd/versitygw", ".")
	server := s3{bucket: filepath.Join(root, "training"), client: filepath.Join(bin, "s3")}
	if err := os.Mkdir(server.bucket, 0o755); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", machineAddress+":0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	server.endpoint = "http://" + address
	run := exec.CommandContext(t.Context(), filepath.Join(bin, "versitygw"), "--quiet", "--port", address, "posix", root)
	run.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID=me", "ROOT_SECRET_ACCESS_KEY="+hidden)
	run.Stdout, run.Stderr = os.Stderr, os.Stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.Wait() }) // the test's context ends it
	listens(t, "the S3 server", address)
	return server
}

// buildPrograms builds packages of a module in the folder test into another folder.
func buildPrograms(t *testing.T, module, into string, packages ...string) {
	t.Helper()
	args := append([]string{"build", "-C", filepath.Join("..", module), "-ldflags", "-s -w", "-o", into}, packages...)
	build := exec.CommandContext(t.Context(), "go", args...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", strings.Join(packages, " "), err, out)
	}
}

// listens waits until a server accepts connections at an address.
func listens(t *testing.T, server, address string) {
	t.Helper()
	eventually(t, server+" answers", time.Minute, func() error {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

// as runs the client as a rank does, with what is in a data connection.
func (s s3) as(t *testing.T, connection *corev1.Secret, input string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), s.client, args...)
	command.Stdin = strings.NewReader(input)
	for name, value := range connection.StringData {
		command.Env = append(command.Env, name+"="+value)
	}
	out, err := command.CombinedOutput()
	return string(out), err
}

// throughS3 has every rank read an object and say what it is, and rank 0 write a result.
const throughS3 = `set -e; text=$(/data/s3 get input); echo "$(hostname) has read $text"; ` +
	`if [ $OMPI_COMM_WORLD_RANK = 0 ]; then echo "$text with $OMPI_COMM_WORLD_SIZE ranks" | /data/s3 put results/%s; fi`

// TestS3: ranks of both kinds of jobs read from a real S3 server and write to it, with nothing but what a data connection
// brings. The result is there when the job is gone, and who has another secret does not get it.
func TestS3(t *testing.T) {
	parallel(t, 2)
	server := startS3(t)
	to := func(namespace string) *corev1.Secret {
		secret := connection(namespace, "training-data")
		secret.StringData["AWS_S3_ENDPOINT"] = server.endpoint
		return secret
	}
	own := to("none")
	if out, err := server.as(t, own, "42 samples", "put", "input"); err != nil {
		t.Fatalf("upload the input: %v: %s", err, out)
	}
	// The volume brings the client into the image, and nothing else.
	withClient := func(t *testing.T, namespace string) {
		t.Helper()
		folder := claim(t, namespace)
		program, err := os.ReadFile(server.client)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "s3"), program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	judge := func(t *testing.T, job client.Object, printed string, hosts ...string) {
		t.Helper()
		for _, host := range hosts {
			if !strings.Contains(printed, host+" has read 42 samples") {
				t.Errorf("no rank on %s has read the input; printed was\n%s", host, printed)
			}
		}
		leaves(t, job)
		key := "results/" + job.GetName()
		want := fmt.Sprintf("42 samples with %d ranks\n", len(hosts))
		if got, err := server.as(t, own, "", "get", key); err != nil || got != want {
			t.Errorf("the result is %q (%v), want %q", got, err, want)
		}
		if data, err := os.ReadFile(filepath.Join(server.bucket, key)); err != nil || string(data) != want {
			t.Errorf("the server holds %q: %v", data, err)
		}
		other := own.DeepCopy()
		other.StringData["AWS_SECRET_ACCESS_KEY"] = "another"
		if got, err := server.as(t, other, "", "get", key); err == nil || !strings.Contains(got, "403") {
			t.Errorf("with another secret the server answers %q: %v", got, err)
		}
	}
	t.Run("MPIJob", func(t *testing.T) {
		namespace := newNamespace(t)
		withClient(t, namespace)
		create(t, to(namespace))
		job := openMPI(namespace, 2, "mpirun", "-n", "2", "--map-by", "ppr:1:node", "sh", "-c", fmt.Sprintf(throughS3, "job"))
		mountClaim(job)
		connected(job, "training-data")
		create(t, job)
		waitFor(t, job, "it succeeds", succeeded)
		printed := output(t, job)
		tellsNothing(t, "MPIJob", namespace, job.Name)
		judge(t, job, printed, "job-worker-0", "job-worker-1")
	})
	t.Run("TrainJob", func(t *testing.T) {
		namespace := newNamespace(t)
		runtimeIn(t, namespace, "mpi-openmpi")
		withClient(t, namespace)
		create(t, to(namespace))
		job := trainJob(t, namespace, "{numNodes: 3, command: [mpirun, -n, '3', sh, -c, '"+fmt.Sprintf(throughS3, "pi")+"']}", claimMounted(t))
		connected(job, "training-data")
		createTrainJob(t, job)
		ends(t, job, "Complete")
		text := printed(t, job)
		tellsNothing(t, "TrainJob", namespace, "pi")
		judge(t, job, text, "pi-launcher-0-0", "pi-node-0-0", "pi-node-0-1")
	})
}
