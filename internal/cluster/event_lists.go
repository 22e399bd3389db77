package cluster

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// eventListUse is how long a list of events is used, as a multiple of the time that it took to read: reading events takes at
	// most a tenth of the time, however many jobs are diagnosed.
	eventListUse = 10
	// maxEventListUse is the longest time that a list is used.
	maxEventListUse = 15 * time.Second
)

// eventLists are the events of namespaces. All jobs of a namespace that are diagnosed at about the same time use the same list:
// the API server has no index of events, so that the events of one object cost it as much as those of all objects, and a
// thousand jobs that wait for slow pods would each read them again and again.
type eventLists struct {
	mu sync.Mutex
	of map[string]*eventList
}

// eventList are the events of the objects of a namespace, except those of the operator.
type eventList struct {
	// read is closed when the list was read; the other fields are only valid then.
	read     chan struct{}
	byObject map[types.UID][]corev1.Event
	// complete is false if some events were not read, and interrupted is true if the context of the job that read them ended.
	complete, interrupted bool
}

// in returns the events of a namespace. They may be as old as the time that a list is used. If the context ends before they
// are read, the list has none.
func (l *eventLists) in(ctx context.Context, g *Gatherer, namespace string) *eventList {
	l.mu.Lock()
	list, shared := l.of[namespace]
	if !shared {
		list = &eventList{read: make(chan struct{}), byObject: map[types.UID][]corev1.Event{}}
		if l.of == nil {
			l.of = map[string]*eventList{}
		}
		l.of[namespace] = list
	}
	l.mu.Unlock()
	if shared {
		select {
		case <-list.read:
		case <-ctx.Done():
			return &eventList{}
		}
		if list.interrupted {
			return l.in(ctx, g, namespace)
		}
		return list
	}
	start := g.clock.Now()
	list.complete = g.eachEvent(ctx, namespace, nil, func(e *corev1.Event) {
		if isOfOthers(e) {
			list.byObject[e.InvolvedObject.UID] = append(list.byObject[e.InvolvedObject.UID], trimmed(e))
		}
	})
	list.interrupted = ctx.Err() != nil
	if use := min(eventListUse*g.clock.Since(start), maxEventListUse); use > 0 && !list.interrupted {
		time.AfterFunc(use, func() { l.drop(namespace, list) })
	} else {
		l.drop(namespace, list)
	}
	close(list.read)
	return list
}

func (l *eventLists) drop(namespace string, list *eventList) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[namespace] == list {
		delete(l.of, namespace)
	}
}

// trimmed returns an event with only the fields that are read.
func trimmed(e *corev1.Event) corev1.Event {
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{CreationTimestamp: e.CreationTimestamp},
		InvolvedObject: corev1.ObjectReference{Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name},
		Type:           e.Type, Reason: e.Reason, Message: e.Message, Count: e.Count, LastTimestamp: e.LastTimestamp, EventTime: e.EventTime, Series: e.Series,
	}
}
