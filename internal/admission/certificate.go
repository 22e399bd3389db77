package admission

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Names of what the webhook needs, as config/webhook has them.
const (
	webhookService     = "mpijob-webhook"
	metricsService     = "mpijob-operator-metrics"
	webhookSecret      = "mpijob-webhook-certificate"
	validatingWebhooks = "mpijob-validating"
	mutatingWebhooks   = "mpijob-mutating"
)

// Keys of the Secret for the certificate of /metrics, which the ServiceMonitor of config/prometheus verifies by its authority.
const (
	metricsCertificate = "metrics.crt"
	metricsPrivateKey  = "metrics.key"
	metricsAuthority   = "metrics-ca.crt"
)

// renewBefore is how long before its end a certificate is replaced. One lives for a year.
const renewBefore = 60 * 24 * time.Hour

// Certificate is the TLS certificates of webhooks and metrics, and the key of the webhooks' callers (see secretPath), in memory.
// They come from a Secret that the replicas share, and not from a mounted file: the kubelet takes up to a minute or two to show
// a changed Secret.
type Certificate struct {
	current atomic.Pointer[tls.Certificate]
	metrics atomic.Pointer[tls.Certificate]
	key     atomic.Pointer[[]byte]
}

var errNoCertificate = errors.New("the webhook has no certificate yet")

// Get returns the current certificate to the TLS server; it is an error before there is one.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := c.current.Load(); current != nil {
		return current, nil
	}
	return nil, errNoCertificate
}

// GetForMetrics is Get for /metrics.
func (c *Certificate) GetForMetrics(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := c.metrics.Load(); current != nil {
		return current, nil
	}
	return nil, errNoCertificate
}

// IsReady reports whether there is a certificate.
func (c *Certificate) IsReady() bool { return c.current.Load() != nil }

// Expiries returns when the certificates expire, by what they are for: webhook and metrics.
func (c *Certificate) Expiries() map[string]time.Time {
	expiries := map[string]time.Time{}
	for name, pair := range map[string]*tls.Certificate{"webhook": c.current.Load(), "metrics": c.metrics.Load()} {
		if pair != nil && pair.Leaf != nil {
			expiries[name] = pair.Leaf.NotAfter
		}
	}
	return expiries
}

// certificateKeeper makes the certificate, renews it, and tells the API server to trust it. Every replica has
// one: they all serve.
type certificateKeeper struct {
	certificate *Certificate
	client      client.Client
	live        client.Reader
	namespace   string
	// withoutWebhooks is set if only the certificate of metrics is served: there are no webhooks for the API server to trust.
	withoutWebhooks bool
}

// AddCertificate makes and renews the certificate of metrics for an operator without webhooks.
func AddCertificate(m manager.Manager, served *Certificate, namespace string) error {
	keeper := &certificateKeeper{certificate: served, client: m.GetClient(), live: m.GetAPIReader(), namespace: namespace, withoutWebhooks: true}
	if err := m.Add(keeper); err != nil {
		return fmt.Errorf("add certificate keeper: %w", err)
	}
	return nil
}

// NeedLeaderElection is false: replicas that do not lead serve webhooks too.
func (*certificateKeeper) NeedLeaderElection() bool { return false }

// Start keeps the certificate until the context ends: it looks each minute, after an error sooner.
func (k *certificateKeeper) Start(ctx context.Context) error {
	const interval = time.Minute
	soon := wait.Backoff{Duration: time.Second, Factor: 2, Steps: math.MaxInt, Cap: interval}
	retries := soon
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		pause := interval
		if err := k.keep(ctx); err == nil {
			retries = soon
		} else if pause = retries.Step(); ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "webhook certificate not in order; trying again", "after", pause)
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
	metrics, err := tls.X509KeyPair(secret.Data[metricsCertificate], secret.Data[metricsPrivateKey])
	if err != nil {
		return fmt.Errorf("read certificate for metrics in Secret %s: %w", secret.Name, err)
	}
	key := secret.Data[callerKey]
	k.certificate.key.Store(&key)
	k.certificate.metrics.Store(&metrics)
	k.certificate.current.Store(&pair)
	if k.withoutWebhooks {
		return nil
	}
	ca := authorityOf(secret.Data[corev1.TLSCertKey])
	return errors.Join(
		patchTrust(ctx, k, validatingWebhooks, &admissionv1.ValidatingWebhookConfiguration{}, ca, key),
		patchTrust(ctx, k, mutatingWebhooks, &admissionv1.MutatingWebhookConfiguration{}, ca, key),
	)
}

// secret returns the Secret with certificates that are good for a while, making or renewing them if need be. The key of callers
// is renewed with the webhooks' certificate: replicas read both at the same time.
func (k *certificateKeeper) secret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := k.live.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: webhookSecret}, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read Secret %s: %w", webhookSecret, err)
	}
	missing := err != nil
	now := time.Now()
	fresh, freshMetrics := isFresh(secret.Data[corev1.TLSCertKey], now), isFresh(secret.Data[metricsCertificate], now)
	hasKey := len(secret.Data[callerKey]) >= callerKeySize
	if fresh && freshMetrics && hasKey {
		return secret, nil
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	if !fresh {
		if secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], err = k.newCertificate(webhookService); err != nil {
			return nil, err
		}
	}
	if !fresh || !hasKey {
		key := make([]byte, callerKeySize)
		_, _ = rand.Read(key) // it never fails
		secret.Data[callerKey] = key
	}
	if !freshMetrics {
		if secret.Data[metricsCertificate], secret.Data[metricsPrivateKey], err = k.newCertificate(metricsService); err != nil {
			return nil, err
		}
		secret.Data[metricsAuthority] = authorityOf(secret.Data[metricsCertificate])
	}
	secret.Namespace, secret.Name, secret.Type = k.namespace, webhookSecret, corev1.SecretTypeTLS
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

// newCertificate returns a new certificate for a Service, with its authority, and its private key.
func (k *certificateKeeper) newCertificate(service string) (chain, key []byte, err error) {
	host := service + "." + k.namespace + ".svc"
	if chain, key, err = cert.GenerateSelfSignedCertKey(host, nil, []string{host}); err != nil {
		return nil, nil, fmt.Errorf("make certificate of %s: %w", host, err)
	}
	return chain, key, nil
}

// copied is an object whose copy is of its own type.
type copied[T any] interface {
	client.Object
	DeepCopy() T
}

// patchTrust has the API server accept the certificate's authority for all webhooks of a configuration, which is read into an
// empty one, and call them at the secret paths.
func patchTrust[T copied[T]](ctx context.Context, k *certificateKeeper, name string, have T, ca, key []byte) error {
	if err := k.live.Get(ctx, client.ObjectKey{Name: name}, have); err != nil {
		return fmt.Errorf("read %T %s: %w", have, name, err)
	}
	want, same := have.DeepCopy(), true
	for webhook, config := range clientConfigs(want) {
		same = same && bytes.Equal(config.CABundle, ca)
		config.CABundle = ca
		if path := secretPath(key, webhook); config.Service != nil && path != "" {
			same = same && ptr.Deref(config.Service.Path, "") == path
			config.Service.Path = &path
		}
	}
	if same {
		return nil
	}
	patch := client.MergeFromWithOptions(have, client.MergeFromWithOptimisticLock{})
	if err := k.client.Patch(ctx, want, patch, client.DisableReadYourWritesConsistency); err != nil {
		return fmt.Errorf("write %T %s: %w", have, name, err)
	}
	return nil
}

// clientConfigs are how the webhooks of a configuration of either kind are called, by their names.
func clientConfigs(configuration client.Object) map[string]*admissionv1.WebhookClientConfig {
	all := map[string]*admissionv1.WebhookClientConfig{}
	switch c := configuration.(type) {
	case *admissionv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			all[c.Webhooks[i].Name] = &c.Webhooks[i].ClientConfig
		}
	case *admissionv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			all[c.Webhooks[i].Name] = &c.Webhooks[i].ClientConfig
		}
	}
	return all
}

// authorityOf is the last certificate of a chain, the one that signed the others.
func authorityOf(chain []byte) []byte {
	var last []byte
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		last = pem.EncodeToMemory(block)
	}
	return last
}

// isFresh reports whether the first certificate of a chain is good for longer than renewBefore.
func isFresh(chain []byte, now time.Time) bool {
	block, _ := pem.Decode(chain)
	if block == nil {
		return false
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	return err == nil && now.Add(renewBefore).Before(leaf.NotAfter)
}
