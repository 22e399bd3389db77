package diagnose

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/phrase"
)

// TestLogsAreWordsOfCommands: whatever a log contains in place of hosts, programs, libraries and files, a shell splits the commands of
// the remedies into the words that their authors wrote, and executes nothing in them.
func TestLogsAreWordsOfCommands(t *testing.T) {
	t.Parallel()
	commands := 0
	for _, kind := range []string{mpi.KindMPIJob, mpi.KindTrainJob} {
		for _, implemented := range mpi.Implementations {
			job := mpitest.Job(2, func(j *mpi.Job) { j.Kind, j.Implementation = kind, implemented })
			for _, symptom := range implementation.For(implemented).Symptoms() {
				all := shownCommands(job, symptom, "token")
				each := len(all)
				commands += each
				for _, value := range mpitest.Hostile {
					all = append(all, shownCommands(job, symptom, value)...)
				}
				if len(all) != each*(1+len(mpitest.Hostile)) {
					t.Errorf("%s: the number of commands depends on the log: %q", symptom.Code, all)
				}
				if each == 0 || slices.Equal(all[:each], all[each:2*each]) {
					// No command contains a value.
					continue
				}
				called := mpitest.RunInShell(t, all...)
				for i := each; i < len(all); i++ {
					value, want := mpitest.Hostile[i/each-1], map[string][]string{}
					for program, words := range called[i%each] {
						for _, word := range words {
							want[program] = append(want[program], strings.ReplaceAll(word, "token", value))
						}
					}
					if len(called[i]) != len(want) || phrase.OneLine(value) == value && !maps.EqualFunc(want, called[i], slices.Equal) {
						t.Errorf("%s: %s calls %q, want %q", symptom.Code, all[i], called[i], want)
					}
				}
			}
		}
	}
	if commands == 0 {
		t.Error("no remedy of a symptom is a command")
	}
}

// shownCommands returns the commands of the remedies of a symptom whose figures all have one value.
func shownCommands(job mpi.Job, symptom implementation.Symptom, value string) (commands []string) {
	figures := map[string]string{}
	for _, name := range []string{"host", "program", "library", "file", "device", "uid", "slots", "size", "port", "option", "interface", "component", "reason"} {
		figures[name] = value
	}
	launcher := mpitest.LauncherPod(job, 0, corev1.PodFailed, mpitest.Exited(1, "Error"))
	p := &input{facts.New(job, jobstate.Observed{LauncherPods: []*corev1.Pod{launcher}, Workers: mpitest.Workers(job, corev1.PodRunning)}, jobstate.Evidence{}, jobstate.Outcome{})}
	found := p.order([]Finding{p.signFinding(facts.Sign{Symptom: symptom, Pods: p.Pods[:1], Line: value, Figures: figures})})
	for _, remedy := range found[0].Remedies {
		if codes.IsCommand(remedy.Action) && !strings.HasPrefix(remedy.Action, "until ") && !strings.HasPrefix(remedy.Action, "echo ") && !strings.HasPrefix(remedy.Action, "sh") && !strings.HasPrefix(remedy.Action, "ssh-keygen") {
			commands = append(commands, remedy.Action)
		}
	}
	return commands
}

// TestHostsOfOthersAreNotInCommands: a log names only pods of the job in commands.
func TestHostsOfOthersAreNotInCommands(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(2)
	for host, want := range map[string]string{"pi-worker-1.pi.ns.svc": "pi-worker-1", "other-worker-1": "pi-worker-0", "--kubeconfig=/tmp/x": "pi-worker-0"} {
		p := &input{facts.New(job, jobstate.Observed{Workers: mpitest.Workers(job, corev1.PodRunning)}, jobstate.Evidence{}, jobstate.Outcome{})}
		f := p.signFinding(facts.Sign{Symptom: implementation.Symptom{Code: codes.ProgramMissing}, Pods: p.Pods[:1], Figures: map[string]string{"host": host, "program": "train"}})
		if got := f.Remedies[0].Action; got != `kubectl -n ns exec `+want+` -- sh -c 'command -v -- "$0" || ls -l -- "$0"' train` {
			t.Errorf("%s: %s", host, got)
		}
	}
}
