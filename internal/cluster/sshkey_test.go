package cluster

import (
	"bytes"
	"context"
	"testing"

	"golang.org/x/crypto/ssh"

	"opendatahub.io/mpijob/internal/mpi"
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
			signer, err := ssh.ParsePrivateKey(keys.Private)
			if err != nil {
				t.Fatal(err)
			}
			public, _, _, _, err := ssh.ParseAuthorizedKey(keys.Public)
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
	maker := &Keys{make: newP521, ready: make(chan *mpi.Keys, 2)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- maker.Start(ctx) }()
	seen := map[string]bool{}
	for range 8 {
		keys := <-maker.ready
		if seen[string(keys.Private)] {
			t.Fatal("two jobs got the same keys")
		}
		seen[string(keys.Private)] = true
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
