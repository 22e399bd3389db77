package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
)

// MissingQueue is a queue that a job names and that does not exist.
type MissingQueue struct {
	Name, Namespace string
	// Others are the queues that the namespace has, sorted.
	Others []string
}

// String returns a sentence, such as "namespace team has no queue gpuu, so the job waits until there is one; the queues of the
// namespace: cpu, gpu".
func (q MissingQueue) String() string {
	text := fmt.Sprintf("namespace %s has no queue %s, so the job waits until there is one", q.Namespace, q.Name)
	if len(q.Others) == 0 {
		return text
	}
	return text + "; the queues of the namespace: " + strings.Join(q.Others, ", ")
}

// FindMissingQueue returns the queue of a job that does not exist yet, if the queue does not exist in the job's namespace; nil if
// it does, the job names none, Kueue is not installed, or the user may not read queues.
func (c *Client) FindMissingQueue(ctx context.Context, job *unstructured.Unstructured) (*MissingQueue, error) {
	missing := MissingQueue{Name: job.GetLabels()[mpi.LabelQueue], Namespace: job.GetNamespace()}
	if missing.Name == "" {
		return nil, nil
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kueue.LocalQueueListKind)
	if err := c.api.List(ctx, &list, client.InNamespace(missing.Namespace)); err != nil {
		if IsNotInstalled(err) || apierrors.IsForbidden(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list queues: %w", err)
	}
	for _, queue := range list.Items {
		if queue.GetName() == missing.Name {
			return nil, nil
		}
		missing.Others = append(missing.Others, queue.GetName())
	}
	slices.SortFunc(missing.Others, strings.Compare)
	return &missing, nil
}
