package cluster

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

func TestKeysFitEachOther(t *testing.T) {
	for kind, want := range map[KeyType]string{KeyP521: "ecdsa-sha2-nistp521", KeyRSA4096: "ssh-rsa"} {
		t.Run(string(kind), func(t *testing.T) {
			maker, err := NewKeys(kind)
			if err != nil {
				t.Fatal(err)
			}
			keys, err := maker.take()
			if err != nil {
				t.Fatal(err)
			}
			signer, err := ssh.ParsePrivateKey(keys.private)
			if err != nil {
				t.Fatal(err)
			}
			public, _, _, _, err := ssh.ParseAuthorizedKey(keys.public)
			if err != nil {
				t.Fatal(err)
			}
			if public.Type() != want || !bytes.Equal(public.Marshal(), signer.PublicKey().Marshal()) {
				t.Errorf("the public key is a %s and does not belong to the private one", public.Type())
			}
		})
	}
	if _, err := NewKeys("dsa"); err == nil {
		t.Error("a type of key that nobody should use was taken")
	}
}

// TestStockIsUsed: keys from the stock are handed out once each, and the stock is filled again.
func TestStockIsUsed(t *testing.T) {
	maker, err := NewKeys(KeyP521)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- maker.Start(ctx) }()
	seen := map[string]bool{}
	for range stockSize + 8 {
		keys := <-maker.ready
		if seen[string(keys.private)] {
			t.Fatal("two jobs got the same keys")
		}
		seen[string(keys.private)] = true
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestKeysAreGeneratedWhenTheSecretIsWritten: the plan and the observation of a job contain no keys.
func TestKeysAreGeneratedWhenTheSecretIsWritten(t *testing.T) {
	job := mpitest.Job(1)
	secretOf := func() plan.Plan {
		planned := plan.For(job, jobstate.Observed{}, jobstate.Judge(job, jobstate.Observed{}), plan.Settings{})
		for _, object := range planned.Base {
			if secret, is := object.(*corev1.Secret); is {
				return plan.Plan{Base: []plan.Object{secret}}
			}
		}
		t.Fatal("no Secret is planned")
		return plan.Plan{}
	}
	for name, test := range map[string]struct {
		generate func() (keyPair, error)
		wantErr  string
	}{
		"keys":    {generate: newP521},
		"no keys": {generate: func() (keyPair, error) { return keyPair{}, errors.New("generate SSH key: no entropy") }, wantErr: "write Secret pi-ssh: generate SSH key: no entropy"},
	} {
		t.Run(name, func(t *testing.T) {
			generated := 0
			api := mpitest.FakeAPI().WithIndex(&corev1.Pod{}, podsByJob, func(client.Object) []string { return nil }).Build()
			c := New(api, api, &Keys{make: func() (keyPair, error) { generated++; return test.generate() }}, clock.RealClock{})
			if seen, err := c.Observe(t.Context(), job); err != nil || seen.Secret != nil || generated > 0 {
				t.Fatalf("observing the job generates %d keys: %v", generated, err)
			}
			refusals, err := c.Apply(t.Context(), job, secretOf())
			if generated != 1 || len(refusals) > 0 {
				t.Errorf("%d keys were generated, refused: %v", generated, refusals)
			}
			var secret corev1.Secret
			found := api.Get(t.Context(), client.ObjectKey{Namespace: job.Namespace, Name: job.SecretName()}, &secret)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) || client.IgnoreNotFound(found) != nil || found == nil {
					t.Errorf("got %v, and reading the Secret %v; want %s and no Secret", err, found, test.wantErr)
				}
				return
			}
			if err != nil || found != nil {
				t.Fatalf("%v, %v", err, found)
			}
			private, err := ssh.ParsePrivateKey(secret.Data[corev1.SSHAuthPrivateKey])
			if err != nil {
				t.Fatal(err)
			}
			if public, _, _, _, err := ssh.ParseAuthorizedKey(secret.Data[mpi.SSHPublicKey]); err != nil || !bytes.Equal(public.Marshal(), private.PublicKey().Marshal()) {
				t.Errorf("the Secret's public key does not belong to its private key: %v", err)
			}
		})
	}
}
