package facts

import (
	"fmt"
	"strings"

	"opendatahub.io/mpijob/internal/jobstate"
)

// Events are some of those about a kind of object.
func (f *Facts) Events(kind string, match func(jobstate.Event) bool) []jobstate.Event {
	var found []jobstate.Event
	for _, event := range f.Evidence.Events {
		if event.Kind == kind && match(event) {
			found = append(found, event)
		}
	}
	return found
}

// EventLine is an event as evidence.
func EventLine(e jobstate.Event) string {
	text := fmt.Sprintf("Event %s of %s %s: %s", e.Reason, strings.ToLower(e.Kind), e.Name, strings.TrimSpace(e.Message))
	if e.Count > 1 {
		text += fmt.Sprintf(" (%d times)", e.Count)
	}
	return text
}
