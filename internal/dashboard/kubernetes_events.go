package dashboard

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/jobs"
)

// Events are the Kubernetes events of a job and its objects, oldest first.
type Events struct {
	Events []Event `json:"events"`
}

// Event is a Kubernetes event.
type Event struct {
	Time    time.Time `json:"time"`
	Warning bool      `json:"warning"`
	Reason  string    `json:"reason"`
	Object  string    `json:"object"`
	Message string    `json:"message"`
	Count   int32     `json:"count"`
}

// events returns the Kubernetes events of a job and its objects, oldest first.
func (s *Server) events(c *call) (any, error) {
	job, err := c.findOrUID()
	if err != nil {
		return nil, err
	}
	found := Events{Events: []Event{}}
	var page corev1.EventList
	err = jobs.EachPage(c.ctx, c.api, &page, job.Namespace, nil, func() {
		for i := range page.Items {
			event := &page.Items[i]
			if !job.HasEvent(event) {
				continue
			}
			found.Events = append(found.Events, Event{
				Time: jobs.LastSeen(event).UTC(), Warning: event.Type == corev1.EventTypeWarning, Reason: event.Reason, Count: max(1, event.Count),
				Object: strings.ToLower(event.InvolvedObject.Kind) + "/" + event.InvolvedObject.Name, Message: event.Message,
			})
		}
	})
	slices.SortStableFunc(found.Events, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return found, err
}
