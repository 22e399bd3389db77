package cli

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// watchReports calls a function with each record of a namespace (empty: of all) that has these labels, as it is now and
// whenever it changes, until that says that it is done, fails, or the context ends. A connection that is lost is made
// again, for a minute after the last answer: an API server that is upgraded must not end a wait of hours.
func (f *Factory) watchReports(ctx context.Context, namespace string, labels client.MatchingLabels, each func(*v1alpha1.JobReport) (done bool, err error)) error {
	c, err := f.Client()
	if err != nil {
		return err
	}
	options := []client.ListOption{client.InNamespace(namespace)}
	if len(labels) > 0 {
		options = append(options, labels)
	}
	const patience, pause = time.Minute, time.Second
	answered := f.Now()
	for {
		done, err := watchOnce(ctx, c, options, each, func() { answered = f.Now() })
		switch {
		case done, ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !passing(err), err != nil && f.Now().Sub(answered) > patience:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// passing tells whether an error may be gone in a moment.
func passing(err error) bool {
	return unreachable(err) || apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// watchOnce lists the records and watches them until the API server ends that, as it does every few minutes.
func watchOnce(ctx context.Context, c client.WithWatch, options []client.ListOption, each func(*v1alpha1.JobReport) (bool, error), answered func()) (bool, error) {
	var list v1alpha1.JobReportList
	if err := c.List(ctx, &list, options...); err != nil {
		return false, fmt.Errorf("list JobReports: %w", err)
	}
	answered()
	for i := range list.Items {
		if done, err := each(&list.Items[i]); done || err != nil {
			return done, err
		}
	}
	version := list.ResourceVersion
	watcher, err := c.Watch(ctx, &v1alpha1.JobReportList{}, append(options, fromVersion(version))...)
	if err != nil {
		return false, fmt.Errorf("watch JobReports: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		answered()
		switch event.Type {
		case watch.Error:
			return false, apierrors.FromObject(event.Object)
		case watch.Added, watch.Modified:
			if report, is := event.Object.(*v1alpha1.JobReport); is {
				if done, err := each(report); done || err != nil {
					return done, err
				}
			}
		}
	}
	return false, nil
}

// fromVersion is the option of a watch to begin after a list.
type fromVersion string

// ApplyToList implements client.ListOption.
func (v fromVersion) ApplyToList(options *client.ListOptions) {
	if options.Raw == nil {
		options.Raw = &metav1.ListOptions{}
	}
	options.Raw.ResourceVersion = string(v)
}
