package diagnose

import (
	"fmt"
	"strings"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
)

// launcherDeleted reports that something else deleted a launcher's pod while its job was not to end. A pod that ends after it
// was deleted, well or by a crash, has ended because of that.
func launcherDeleted(p *input) []Finding {
	launcher := p.Launcher()
	if launcher != nil && !launcher.Deleted {
		launcher = nil
	}
	var gone []jobstate.Event
	switch {
	case p.StoppedByController():
		return nil
	case launcher == nil && p.Failed() && jobstate.LauncherHasFinished(p.Job, p.Seen), p.Job.Lifecycle.Deleting, p.PutBack(), p.StoppedByJob():
	default:
		gone = p.launchersKilled()
	}
	if launcher == nil && len(gone) == 0 {
		return nil
	}
	name := ""
	if launcher != nil {
		name = launcher.Name
	} else {
		name = gone[len(gone)-1].Name
	}
	f := p.find(codes.LauncherDeleted, nil, map[string]string{"pod": name})
	for _, event := range gone {
		f.Evidence, f.Affected = append(f.Evidence, facts.EventLine(event)), append(f.Affected, event.Name)
		f.Pod = event.Name
	}
	if launcher == nil {
		return []Finding{f}
	}
	line := fmt.Sprintf("Pod %s is being deleted.", launcher.Name)
	for _, c := range launcher.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil {
			line = fmt.Sprintf("Pod %s was deleted at %s; its container then ended with exit code %d.", launcher.Name, facts.TimeText(facts.DeletedAt(launcher.Pod)), end.ExitCode)
		}
	}
	if f.Evidence = append(f.Evidence, line); f.Pod != launcher.Name {
		f.Affected, f.Pod = append(f.Affected, launcher.Name), launcher.Name
	}
	return []Finding{f}
}

// launchersKilled are the events of launchers' pods that were ended while the workers stayed.
func (p *input) launchersKilled() []jobstate.Event {
	var gone []jobstate.Event
	for _, event := range p.Events("Pod", func(e jobstate.Event) bool { return e.Reason == "Killing" }) {
		if !strings.HasPrefix(event.Name, p.Job.LauncherName()+"-") || !p.WorkersSince(event.Last) {
			continue
		}
		if at := p.Known(event.Name); at == nil || at.DeletionTimestamp != nil && at.End() == nil {
			gone = append(gone, event)
		}
	}
	return gone
}
