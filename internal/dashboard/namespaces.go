package dashboard

import (
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"opendatahub.io/mpijob/internal/jobs"
)

// Namespaces are those that the user can select.
type Namespaces struct {
	Namespaces []Namespace `json:"namespaces"`
	// Complete is unset if the user may not list namespaces: those with visible jobs are then listed, and others can be typed.
	Complete bool `json:"complete"`
}

// Namespace is a namespace, a project of OpenShift.
type Namespace struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	CanCreate   bool   `json:"canCreate"`
}

var projects = schema.GroupVersionKind{Group: "project.openshift.io", Version: "v1", Kind: "ProjectList"}

// namespaces returns the namespaces that the user can select: those that the user may list, else the projects of OpenShift,
// else those with jobs that the user sees.
func (s *Server) namespaces(c *call) (any, error) {
	found := Namespaces{Namespaces: []Namespace{}, Complete: true}
	names := &metav1.PartialObjectMetadataList{}
	names.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	err := c.api.List(c.ctx, names)
	if apierrors.IsForbidden(err) {
		names.SetGroupVersionKind(projects)
		err = c.api.List(c.ctx, names)
	}
	switch {
	case err == nil:
		for i := range names.Items {
			found.Namespaces = append(found.Namespaces, Namespace{Name: names.Items[i].Name, DisplayName: names.Items[i].Annotations["openshift.io/display-name"]})
		}
	case apierrors.IsForbidden(err) || jobs.IsNotInstalled(err):
		found.Complete = false
		visible, _, _, err := s.visible(c.ctx, c.user)
		if err != nil {
			return nil, err
		}
		set := map[string]bool{}
		for _, row := range visible {
			set[row.Namespace] = true
		}
		for _, name := range keys(set) {
			found.Namespaces = append(found.Namespaces, Namespace{Name: name})
		}
	default:
		return nil, err
	}
	return found, c.addCreate(found.Namespaces)
}

// addCreate sets in which namespaces the user may create MPIJobs.
func (c *call) addCreate(namespaces []Namespace) error {
	mpiJobs := resourceOf(jobs.Kinds()[0]).GroupResource()
	everywhere, err := c.may(c.ctx, "create", mpiJobs, "")
	if err != nil {
		return err
	}
	errs := make([]error, len(namespaces))
	gate := make(chan struct{}, parallelReviews)
	var all sync.WaitGroup
	for i := range namespaces {
		if namespaces[i].CanCreate = everywhere; everywhere {
			continue
		}
		all.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			namespaces[i].CanCreate, errs[i] = c.may(c.ctx, "create", mpiJobs, namespaces[i].Name)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
