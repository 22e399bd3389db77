package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/mpi"
)

// identity recognizes the operator's own requests, whatever account it has: of the cluster, or of whoever runs it outside.
type identity struct {
	review func(context.Context) (string, error)

	mu   sync.Mutex
	name string
}

// reviewTimeout is how long the API server may take to name the operator.
const reviewTimeout = 2 * time.Second

// administrators is the group that may do everything.
const administrators = "system:masters"

// newIdentity returns the identity of a manager's client. It asks the API server when the name is first needed.
func newIdentity(m manager.Manager) (*identity, error) {
	clients, err := authenticationclient.NewForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &identity{review: func(ctx context.Context) (string, error) {
		self, err := clients.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("ask for the operator's own name: %w", err)
		}
		return self.Status.UserInfo.Username, nil
	}}, nil
}

// isOwn reports whether the operator itself made a request, or an administrator in its name. Any client can choose the name of
// the field manager. It decides alone while the API server does not tell who the operator is, so that jobs do not wait.
func (i *identity) isOwn(ctx context.Context, request admission.Request) bool {
	switch {
	case fieldManager(request) != mpi.FieldManager:
		return false
	case slices.Contains(request.UserInfo.Groups, administrators):
		return true
	}
	name, err := i.username(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "the author of a change is not compared with the operator", "user", request.UserInfo.Username)
		return true
	}
	return request.UserInfo.Username == name
}

func (i *identity) username(ctx context.Context) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.name != "" {
		return i.name, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	name, err := i.review(ctx)
	i.name = name
	return name, err
}

// fieldManager returns the name with which the client of a request writes; empty if it has none.
func fieldManager(request admission.Request) string {
	var options struct {
		FieldManager string `json:"fieldManager"`
	}
	if err := json.Unmarshal(request.Options.Raw, &options); err != nil {
		return ""
	}
	return options.FieldManager
}
