package dashboard

import (
	linked "container/list"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
)

const (
	// reviewTTL is how long the result of an access review is used.
	reviewTTL = 10 * time.Second
	// nameTTL is how long a token counts as valid after the API server accepted it.
	nameTTL = 30 * time.Second
	// verifyTimeout limits how long the API server may take to accept a token.
	verifyTimeout = 5 * time.Second
	// idleTTL is how long the clients of a user are kept.
	idleTTL = 10 * time.Minute
	// parallelReviews is the maximum number of access reviews of a request that run at once.
	parallelReviews = 16
)

// resourceOf returns the resource of a kind.
func resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	return kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
}

// users holds the clients of the users of the last minutes. There is no other state: a user is whom the API server takes a
// token for.
type users struct {
	// anonymous reaches the API server without credentials.
	anonymous *rest.Config
	// logs is the same for reading logs.
	logs   *rest.Config
	mapper meta.RESTMapper
	scheme *runtime.Scheme
	now    func() time.Time
	// isAway reports whether the API server is known not to answer.
	isAway func() bool
	// verifier verifies unknown tokens, as many at once as gate has room for, and each only once.
	verifier authenticationclient.AuthenticationV1Interface
	gate     chan struct{}
	verifies singleflight.Group

	mu     sync.Mutex
	byHash map[[sha256.Size]byte]*linked.Element
	// recent holds the entries of byHash, the one that was used last first.
	recent *linked.List
}

func newUsers(config *rest.Config, mapper meta.RESTMapper, now func() time.Time) (*users, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("make scheme: %w", err)
	}
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.UserAgent = "mpijob-dashboard"
	anonymous.QPS = -1
	anonymous.WarningHandlerWithContext = warnings{}
	logs, err := logsConfig(anonymous)
	if err != nil {
		return nil, err
	}
	verifier, err := authenticationclient.NewForConfig(anonymous)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &users{
		anonymous: anonymous, logs: logs, mapper: mapper, scheme: scheme, now: now, verifier: verifier, gate: make(chan struct{}, maxReviews),
		byHash: map[[sha256.Size]byte]*linked.Element{}, recent: linked.New(),
	}, nil
}

// logsConfig returns a configuration for reading logs: of each, the API server sends little in advance. By default that is up to
// 4 MiB for each log that a slow client does not take.
func logsConfig(config *rest.Config) (*rest.Config, error) {
	logs := rest.CopyConfig(config)
	secure, errTLS := rest.TLSConfigFor(logs)
	// An address without a scheme gets it from the settings of TLS, which the transport takes over.
	host, _, errHost := rest.DefaultServerUrlFor(logs)
	if err := errors.Join(errTLS, errHost); err != nil {
		return nil, fmt.Errorf("make HTTP client: %w", err)
	}
	logs.Host = host.String()
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: secure, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: maxLogWindow},
	}
	if logs.Proxy != nil {
		transport.Proxy = logs.Proxy
	}
	transport.DialContext = logs.Dial
	logs.Transport, logs.TLSClientConfig, logs.Dial, logs.Proxy = utilnet.SetTransportDefaults(transport), rest.TLSClientConfig{}, nil, nil
	return logs, nil
}

// user is a token and the clients that act with it.
type user struct {
	hash      [sha256.Size]byte
	api       client.WithWatch
	clientset kubernetes.Interface
	logs      typedcore.CoreV1Interface
	jobs      *jobs.Client
	now       func() time.Time

	mu       sync.Mutex
	lastUsed time.Time
	// name was returned by the API server at verified.
	name     string
	verified time.Time
	reviews  map[review]verdict
	// histories are those of the namespaces in which the user is about to create jobs.
	histories map[string]history
	// pasts are what jobs of these namespaces have used.
	pasts map[string]pastChoices
}

type history struct {
	jobs.History
	at time.Time
}

// review is a question to the API server.
type review struct{ verb, group, resource, namespace string }

type verdict struct {
	allowed bool
	at      time.Time
}

// find returns the user of a token that the API server accepts. Nothing is kept of other tokens.
func (u *users) find(ctx context.Context, token string) (*user, error) {
	hash := sha256.Sum256([]byte(token))
	if found := u.known(hash); found != nil {
		if u.isAway() {
			return found, nil
		}
		err := found.verify(ctx)
		if apierrors.IsUnauthorized(err) {
			u.forget(hash)
		}
		return found, err
	}
	// The requests of a page arrive at the same time.
	found, err, _ := u.verifies.Do(string(hash[:]), func() (any, error) {
		select {
		case u.gate <- struct{}{}:
			defer func() { <-u.gate }()
		default:
			return nil, &busyError{status: http.StatusServiceUnavailable, message: "too many logins are verified at once; try again in a few seconds"}
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyTimeout)
		defer cancel()
		self := &authenticationv1.SelfSubjectReview{}
		request := u.verifier.RESTClient().Post().Resource("selfsubjectreviews").SetHeader("Authorization", "Bearer "+token)
		if err := request.Body(self).Do(ctx).Into(self); err != nil {
			return nil, fmt.Errorf("identify user: %w", err)
		}
		found, err := u.newUser(token)
		if err != nil {
			return nil, err
		}
		found.hash, found.name, found.verified = hash, self.Status.UserInfo.Username, found.lastUsed
		u.add(found)
		return found, nil
	})
	if err != nil {
		return nil, err
	}
	return found.(*user), nil //nolint:forcetypeassert // the function returns one
}

// known returns the user of a token that was accepted before; nil if there is none.
func (u *users) known(hash [sha256.Size]byte) *user {
	now := u.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	for last := u.recent.Back(); last != nil; last = u.recent.Back() {
		oldest := last.Value.(*user) //nolint:forcetypeassert // the list has no other values
		if oldest.idleSince(now) <= idleTTL {
			break
		}
		u.remove(last)
	}
	element, known := u.byHash[hash]
	if !known {
		return nil
	}
	u.recent.MoveToFront(element)
	found := element.Value.(*user) //nolint:forcetypeassert // as above
	found.touch(now)
	return found
}

// add keeps the user of a token.
func (u *users) add(found *user) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if before, known := u.byHash[found.hash]; known {
		u.remove(before)
	}
	for u.recent.Len() >= maxUsers {
		u.remove(u.recent.Back())
	}
	u.byHash[found.hash] = u.recent.PushFront(found)
}

func (u *users) forget(hash [sha256.Size]byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if element, known := u.byHash[hash]; known {
		u.remove(element)
	}
}

func (u *users) remove(element *linked.Element) {
	delete(u.byHash, u.recent.Remove(element).(*user).hash) //nolint:forcetypeassert // as above
}

// newUser returns a user with the clients that act with a token.
func (u *users) newUser(token string) (*user, error) {
	config := rest.CopyConfig(u.anonymous)
	config.BearerToken = token
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make HTTP client: %w", err)
	}
	api, err := client.NewWithWatch(config, client.Options{HTTPClient: httpClient, Scheme: u.scheme, Mapper: u.mapper, FieldOwner: "mpijob-dashboard"})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	clientset, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	logs := rest.CopyConfig(u.logs)
	logs.BearerToken = token
	readsLogs, err := typedcore.NewForConfig(logs)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &user{api: api, clientset: clientset, logs: readsLogs, jobs: jobs.NewClient(api, clientset.Discovery(), u.now), now: u.now, lastUsed: u.now(), reviews: map[review]verdict{}}, nil
}

func (u *user) idleSince(now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Sub(u.lastUsed)
}

func (u *user) touch(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lastUsed = now
}

// named returns the name of the user, which was verified at some time.
func (u *user) named() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.name
}

// verify fails if the API server does not accept the token any more. While the API server does not answer, what the dashboard
// itself knows is still shown to users whom it accepted before.
func (u *user) verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	if _, err := u.identify(ctx); apierrors.IsUnauthorized(err) {
		return err
	}
	return nil
}

// identify returns the name of the user. It fails if the API server does not accept the token.
func (u *user) identify(ctx context.Context) (string, error) {
	u.mu.Lock()
	name, age := u.name, u.now().Sub(u.verified)
	u.mu.Unlock()
	if name != "" && age < nameTTL {
		return name, nil
	}
	self, err := u.clientset.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("identify user: %w", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.name, u.verified = self.Status.UserInfo.Username, u.now()
	return u.name, nil
}
