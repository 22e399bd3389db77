package admission

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// The webhooks only answer the API server. It proves itself by the path that it calls: the operator writes an unguessable
// path for each webhook into the webhook configurations, which only cluster administrators can read. Client certificates
// would need settings of the API server.
const (
	// callerKey is the key of the Secret that the paths are derived from, of callerKeySize bytes.
	callerKey     = "caller-key"
	callerKeySize = 32
)

// Names of the webhooks, as config/webhook has them.
const (
	jobSetWebhook    = "jobset.mpi.opendatahub.io"
	authorsWebhook   = "authors.mpi.opendatahub.io"
	mpiJobWebhook    = "mpijob.mpi.opendatahub.io"
	trainJobWebhook  = "trainjob.mpi.opendatahub.io"
	runtimeWebhook   = "runtime.mpi.opendatahub.io"
	deletionWebhook  = "deletion.mpi.opendatahub.io"
	namespaceWebhook = "namespace.mpi.opendatahub.io"
)

// webhooks are the names of all webhooks.
var webhooks = []string{jobSetWebhook, authorsWebhook, mpiJobWebhook, trainJobWebhook, runtimeWebhook, deletionWebhook, namespaceWebhook}

// token is the part of a webhook's path that cannot be guessed. Each webhook has its own: the API server shows the URL of
// a webhook that fails closed in its error to the user.
func token(key []byte, webhook string) string {
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(webhook))
	return hex.EncodeToString(sum.Sum(nil))
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
	m.GetWebhookServer().Register("/"+webhook+"/{token}", served.onlyCaller(webhook, handler))
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
