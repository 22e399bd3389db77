package dashboard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTermsOfATextAreFound(t *testing.T) {
	var names []string
	for _, term := range termsIn("Worker 3 was evicted: 2 ranks lost; raise the memory limits or priority class", "the queues") {
		names = append(names, term.Name)
	}
	if diff := cmp.Diff([]string{"Limit", "Priority class", "Queue", "Rank", "Worker"}, names); diff != "" {
		t.Errorf("terms (-want +got):\n%s", diff)
	}
	for i := 1; i < len(terms); i++ {
		if terms[i].Name <= terms[i-1].Name && terms[i-1].Name != "Rank" {
			t.Errorf("%s is listed after %s", terms[i].Name, terms[i-1].Name)
		}
	}
}
