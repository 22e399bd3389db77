package operator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/operator"
)

// TestKeysOfTrainJobsAreTheSites: a TrainJob has keys of the type that the administrator chose, in a Secret that goes with it.
func TestKeysOfTrainJobsAreTheSites(t *testing.T) {
	t.Parallel()
	server := newTrainerServer(t)
	server.runtime(t, "mpi")
	defer server.start(t, func(o *operator.Options) { o.KeyType = cluster.KeyRSA4096 })()
	job := trainjob.New()
	job.SetNamespace("default")
	job.SetName("train")
	job.Object["spec"] = map[string]any{"runtimeRef": map[string]any{"kind": trainjob.RuntimeKind, "name": "mpi"}, "trainer": map[string]any{"command": []any{"mpirun", "pi"}}}
	server.create(t, job)
	// To find the primes of one key takes seconds, or a minute where other tests compute.
	eventuallyWithin(t, 3*time.Minute, "the TrainJob has an RSA key", func() error {
		var secret corev1.Secret
		if err := server.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "train.ssh"}, &secret); err != nil {
			return err
		}
		key, err := ssh.ParsePrivateKey(secret.Data[corev1.SSHAuthPrivateKey])
		if err != nil {
			return err
		}
		if kind := key.PublicKey().Type(); kind != ssh.KeyAlgoRSA || !strings.HasPrefix(string(secret.Data[mpi.SSHPublicKey]), kind) || !metav1.IsControlledBy(&secret, job) {
			return fmt.Errorf("the key is of type %s, and belongs to %v", kind, secret.OwnerReferences)
		}
		return nil
	})
}
