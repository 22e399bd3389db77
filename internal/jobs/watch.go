package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// WatchReports calls a function with each report of a namespace (empty: all) as it is now and after each change, until the
// function is done or fails, or the context ends. It reconnects for a minute after the last response: an upgrade of the API
// server must not end a wait of hours.
func (c *Client) WatchReports(ctx context.Context, namespace string, each func(*v1alpha1.JobReport) (done bool, err error)) error {
	return c.watchReports(ctx, []client.ListOption{client.InNamespace(namespace)}, each)
}

// WatchJob calls a function with the job's report as WatchReports does.
func (c *Client) WatchJob(ctx context.Context, job Job, each func(*v1alpha1.JobReport) (done bool, err error)) error {
	labels := client.MatchingLabels(mpi.Job{Name: job.Name, Kind: job.Kind}.ReportLabels())
	return c.watchReports(ctx, []client.ListOption{client.InNamespace(job.Namespace), labels}, func(report *v1alpha1.JobReport) (bool, error) {
		if report.Spec.JobRef.UID != job.UID {
			return false, nil
		}
		return each(report)
	})
}

func (c *Client) watchReports(ctx context.Context, options []client.ListOption, each func(*v1alpha1.JobReport) (bool, error)) error {
	const maxSilence, retryInterval = time.Minute, time.Second
	lastResponse := c.now()
	for {
		done, err := c.watchOnce(ctx, options, each, func() { lastResponse = c.now() })
		switch {
		case done, ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !IsTransient(err), err != nil && c.now().Sub(lastResponse) > maxSilence:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryInterval):
		}
	}
}

// watchOnce lists the reports and watches them until the API server closes the watch, as it does every few minutes.
func (c *Client) watchOnce(ctx context.Context, options []client.ListOption, each func(*v1alpha1.JobReport) (bool, error), responded func()) (bool, error) {
	var list v1alpha1.JobReportList
	if err := c.api.List(ctx, &list, options...); err != nil {
		return false, fmt.Errorf("list JobReports: %w", err)
	}
	responded()
	for i := range list.Items {
		if done, err := each(&list.Items[i]); done || err != nil {
			return done, err
		}
	}
	watcher, err := c.api.Watch(ctx, &v1alpha1.JobReportList{}, append(slices.Clone(options), FromResourceVersion(list.ResourceVersion))...)
	if err != nil {
		return false, fmt.Errorf("watch JobReports: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		responded()
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

// FromResourceVersion starts a watch after a list of that resource version.
type FromResourceVersion string

// ApplyToList implements client.ListOption.
func (v FromResourceVersion) ApplyToList(options *client.ListOptions) {
	if options.Raw == nil {
		options.Raw = &metav1.ListOptions{}
	}
	options.Raw.ResourceVersion = string(v)
}
