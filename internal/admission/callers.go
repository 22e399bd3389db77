package admission

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// The webhooks only answer the API server. It proves itself by the path that it calls: the operator writes an unguessable
// path for each webhook into the webhook configurations. Users cannot read these, but accounts with read access to the whole
// cluster can, such as OpenShift's cluster-reader and tools for GitOps: they could call the webhooks from a pod. The key of the
// paths is renewed with the certificate. Client certificates would need settings of the API server.
const (
	// callerKey is the key of the Secret that the paths are derived from, of callerKeySize bytes.
	callerKey     = "caller-key"
	callerKeySize = 32
)

// Names of the webhooks, as config/webhook has them.
const (
	jobSetWebhook    = "jobset.mpi.opendatahub.io"
	rdmaWebhook      = "rdma.mpi.opendatahub.io"
	authorsWebhook   = "authors.mpi.opendatahub.io"
	mpiJobWebhook    = "mpijob.mpi.opendatahub.io"
	trainJobWebhook  = "trainjob.mpi.opendatahub.io"
	runtimeWebhook   = "runtime.mpi.opendatahub.io"
	deletionWebhook  = "deletion.mpi.opendatahub.io"
	namespaceWebhook = "namespace.mpi.opendatahub.io"
)

// webhooks are the names of all webhooks.
var webhooks = []string{jobSetWebhook, rdmaWebhook, authorsWebhook, mpiJobWebhook, trainJobWebhook, runtimeWebhook, deletionWebhook, namespaceWebhook}

// token is the part of a webhook's path that cannot be guessed. Each webhook has its own: the API server shows the URL of
// a webhook that fails closed in its error to the user.
func token(key []byte, webhook string) string {
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(webhook))
	return hex.EncodeToString(sum.Sum(nil))
}

// Sign returns the signature of a text, which all replicas agree on; empty until the key is known. It is none of a webhook's tokens.
func (c *Certificate) Sign(text string) string {
	key := c.key.Load()
	if key == nil || len(*key) < callerKeySize {
		return ""
	}
	return token(*key, "sign\n"+text)
}

// secretPath is where a webhook is called; "" for one that is not served.
func secretPath(key []byte, webhook string) string {
	if !slices.Contains(webhooks, webhook) {
		return ""
	}
	return "/" + webhook + "/" + token(key, webhook)
}

// serve has a handler answer the calls of a webhook that come from the API server.
func serve(m manager.Manager, served *Certificate, webhook string, handler http.Handler) {
	m.GetWebhookServer().Register("/"+webhook+"/{token}", served.onlyCaller(webhook, withinBudget(handler)))
}

const (
	// requestBudget is how many bytes of requests each webhook processes at a time: one of the largest. Decoded, a job of many
	// small values takes up to sixty times its size, and the operator's memory is limited (config/manager).
	requestBudget = 3 << 20
	// minRequest is what a request counts at least: it takes memory besides its bytes.
	minRequest = 32 << 10
	// maxRequestWait is how long a request waits for its turn. It is less than the timeouts of the webhooks.
	maxRequestWait = 4 * time.Second
)

// withinBudget limits the size of all requests that a handler processes at a time, and so its memory: the API server sends
// any number of requests of up to 3 MiB. Others wait, with their bodies unread, and are refused after a while. Each webhook
// has its own budget, so that many large jobs do not delay other objects.
func withinBudget(handler http.Handler) http.Handler {
	budget := semaphore.NewWeighted(requestBudget)
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		size := request.ContentLength
		if size < 0 || size > requestBudget {
			size = requestBudget
		}
		size = max(size, minRequest)
		ctx, cancel := context.WithTimeout(request.Context(), maxRequestWait)
		defer cancel()
		if err := budget.Acquire(ctx, size); err != nil {
			http.Error(response, "too many requests at a time; try again", http.StatusServiceUnavailable)
			return
		}
		defer budget.Release(size)
		handler.ServeHTTP(response, request)
	})
}

// onlyCaller refuses requests whose path does not contain the webhook's token.
func (c *Certificate) onlyCaller(webhook string, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		key := c.key.Load()
		if key == nil || len(*key) < callerKeySize || !hmac.Equal([]byte(request.PathValue("token")), []byte(token(*key, webhook))) {
			http.NotFound(response, request)
			return
		}
		handler.ServeHTTP(response, request)
	})
}
