package dashboard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
)

// may reports whether the user has a right in a namespace; in all namespaces if it is empty.
func (u *user) may(ctx context.Context, verb string, resource schema.GroupResource, namespace string) (bool, error) {
	r := review{verb, resource.Group, resource.Resource, namespace}
	u.mu.Lock()
	known, found := u.reviews[r]
	u.mu.Unlock()
	if found && u.now().Sub(known.at) < reviewTTL {
		return known.allowed, nil
	}
	name, sub, _ := strings.Cut(resource.Resource, "/")
	answer, err := u.clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: resource.Group, Resource: name, Subresource: sub,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("review access: %w", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	if len(u.reviews) > 4096 {
		for old, v := range u.reviews {
			if now.Sub(v.at) >= reviewTTL {
				delete(u.reviews, old)
			}
		}
		if len(u.reviews) > 4096 {
			clear(u.reviews)
		}
	}
	u.reviews[r] = verdict{answer.Status.Allowed, now}
	return answer.Status.Allowed, nil
}

// view says which rows a user sees.
type view struct {
	// allowed are the rights to list, by resource and namespace; the empty namespace stands for all.
	allowed map[review]bool
	// partial is set if the user sees jobs without their reports.
	partial bool
}

var reportResource = resourceOf(v1alpha1.GroupVersion.WithKind("JobReport")).GroupResource()

// view returns what the user sees of jobs of some namespaces.
func (u *user) view(ctx context.Context, namespaces []string) (*view, error) {
	resources := []schema.GroupResource{reportResource}
	for _, kind := range jobs.Kinds() {
		resources = append(resources, resourceOf(kind).GroupResource())
	}
	v := &view{allowed: map[review]bool{}}
	var mu sync.Mutex
	ask := func(questions []review) error {
		errs := make([]error, len(questions))
		var all sync.WaitGroup
		gate := make(chan struct{}, parallelReviews)
		for i, r := range questions {
			all.Go(func() {
				gate <- struct{}{}
				defer func() { <-gate }()
				allowed, err := u.may(ctx, r.verb, schema.GroupResource{Group: r.group, Resource: r.resource}, r.namespace)
				mu.Lock()
				defer mu.Unlock()
				v.allowed[r], errs[i] = allowed, err
			})
		}
		all.Wait()
		return errors.Join(slices.Compact(slices.DeleteFunc(errs, func(err error) bool { return err == nil }))...)
	}
	var everywhere, here []review
	for _, resource := range resources {
		everywhere = append(everywhere, review{"list", resource.Group, resource.Resource, ""})
	}
	if err := ask(everywhere); err != nil {
		return nil, err
	}
	for _, r := range everywhere {
		if v.allowed[r] {
			continue
		}
		for _, namespace := range namespaces {
			here = append(here, review{r.verb, r.group, r.resource, namespace})
		}
	}
	if err := ask(here); err != nil {
		return nil, err
	}
	return v, nil
}

func (v *view) lists(resource schema.GroupResource, namespace string) bool {
	return v.allowed[review{"list", resource.Group, resource.Resource, ""}] || v.allowed[review{"list", resource.Group, resource.Resource, namespace}]
}

// row returns which of the rows of a job the user sees; nil for none.
func (v *view) row(kind, namespace string, full, bare *Row) *Row {
	gvk, known := jobs.ParseKind(kind)
	if !known || !v.lists(resourceOf(gvk).GroupResource(), namespace) {
		return nil
	}
	if v.lists(reportResource, namespace) {
		return full
	}
	v.partial = true
	return bare
}
