package operator

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Names of what the webhook needs, as config/webhook has them.
const (
	webhookService       = "mpijob-webhook"
	webhookSecret        = "mpijob-webhook-certificate"
	webhookConfiguration = "mpijob-validating"
)

// renewBefore is how long before its end a certificate is replaced. One lives for a year.
const renewBefore = 60 * 24 * time.Hour

// certificate is the webhook's TLS certificate, in memory. It comes from a Secret that the replicas share, and
// not from a mounted file: the kubelet takes up to a minute or two to show a changed Secret.
type certificate struct {
	current atomic.Pointer[tls.Certificate]
}

var errNoCertificate = errors.New("the webhook has no certificate yet")

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := c.current.Load(); current != nil {
		return current, nil
	}
	return nil, errNoCertificate
}

func (c *certificate) ready() bool { return c.current.Load() != nil }

// certificateKeeper makes the certificate, renews it, and tells the API server to trust it. Every replica has
// one: they all serve.
type certificateKeeper struct {
	certificate *certificate
	client      client.Client
	live        client.Reader
	namespace   string
}

// NeedLeaderElection is false: replicas that do not lead serve webhooks too.
func (*certificateKeeper) NeedLeaderElection() bool { return false }

// Start keeps the certificate until the context ends.
func (k *certificateKeeper) Start(ctx context.Context) error {
	pause := time.Second
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := k.keep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "webhook certificate not in order; trying again", "after", pause)
		} else {
			pause = time.Minute
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}, 0)
	return nil
}

func (k *certificateKeeper) keep(ctx context.Context) error {
	secret, err := k.secret(ctx)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("read certificate in Secret %s: %w", secret.Name, err)
	}
	k.certificate.current.Store(&pair)
	ca := authority(secret.Data[corev1.TLSCertKey])
	return errors.Join(k.trust(ctx, ca), k.trustMutating(ctx, ca))
}

// secret returns the Secret with a certificate that is good for a while, making or renewing it if need be.
func (k *certificateKeeper) secret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := k.live.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: webhookSecret}, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read Secret %s: %w", webhookSecret, err)
	}
	missing := err != nil
	if !missing && fresh(secret.Data[corev1.TLSCertKey], time.Now()) {
		return secret, nil
	}
	host := webhookService + "." + k.namespace + ".svc"
	chain, key, err := cert.GenerateSelfSignedCertKey(host, nil, []string{host})
	if err != nil {
		return nil, fmt.Errorf("make webhook certificate: %w", err)
	}
	secret.Namespace, secret.Name, secret.Type = k.namespace, webhookSecret, corev1.SecretTypeTLS
	secret.Data = map[string][]byte{corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: key}
	if missing {
		err = k.client.Create(ctx, secret, client.DisableReadYourWritesConsistency)
	} else {
		err = k.client.Update(ctx, secret, client.DisableReadYourWritesConsistency)
	}
	if err != nil {
		// Another replica was faster, or it is worth another try: either way the Secret is read again.
		return nil, fmt.Errorf("write Secret %s: %w", webhookSecret, err)
	}
	return secret, nil
}

// trust has the API server accept the certificate's authority.
func (k *certificateKeeper) trust(ctx context.Context, ca []byte) error {
	have := &admissionv1.ValidatingWebhookConfiguration{}
	if err := k.live.Get(ctx, client.ObjectKey{Name: webhookConfiguration}, have); err != nil {
		return fmt.Errorf("read ValidatingWebhookConfiguration %s: %w", webhookConfiguration, err)
	}
	want := have.DeepCopy()
	same := true
	for i := range want.Webhooks {
		same = same && bytes.Equal(want.Webhooks[i].ClientConfig.CABundle, ca)
		want.Webhooks[i].ClientConfig.CABundle = ca
	}
	if same {
		return nil
	}
	patch := client.MergeFromWithOptions(have, client.MergeFromWithOptimisticLock{})
	if err := k.client.Patch(ctx, want, patch, client.DisableReadYourWritesConsistency); err != nil {
		return fmt.Errorf("write ValidatingWebhookConfiguration %s: %w", webhookConfiguration, err)
	}
	return nil
}

// authority is the last certificate of a chain, the one that signed the others.
func authority(chain []byte) []byte {
	var last []byte
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		last = pem.EncodeToMemory(block)
	}
	return last
}

// fresh tells whether the first certificate of a chain is good for longer than renewBefore.
func fresh(chain []byte, now time.Time) bool {
	block, _ := pem.Decode(chain)
	if block == nil {
		return false
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	return err == nil && now.Add(renewBefore).Before(leaf.NotAfter)
}
