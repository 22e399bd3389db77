package records

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"

	"opendatahub.io/mpijob/internal/agent/files"
	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

// mostMessage is what a termination message holds (k8s.io/kubernetes/pkg/kubelet/kuberuntime: 4096 bytes).
const mostMessage = 4096

// WriteTermination leaves a summary where the kubelet picks it up. Where the file cannot be written the summary is
// lost, and nothing else. The container may end at any time and the file cannot be renamed: therefore one write replaces
// all of an earlier message, with spaces after a shorter one.
func WriteTermination(summary agentapi.Summary) {
	file, err := os.OpenFile(terminationFile(), os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // the kubelet reads it
	if err != nil {
		return
	}
	defer file.Close()
	message := terminationMessage(summary)
	if info, err := file.Stat(); err == nil && info.Size() > mostMessage {
		_ = file.Truncate(0)
	} else if err == nil {
		message = append(message, bytes.Repeat([]byte(" "), max(0, int(info.Size())-len(message)))...)
	}
	_, _ = file.WriteAt(message, 0)
}

// LeaveTermination writes the termination message, unless the program wrote one of its own.
func LeaveTermination(summary agentapi.Summary) {
	have, err := files.Read(terminationFile())
	if err != nil {
		return
	}
	if _, own := agentapi.ParseSummary(string(have)); own || len(have) == 0 {
		WriteTermination(summary)
	}
}

func terminationFile() string {
	return cmp.Or(os.Getenv(agentapi.EnvTermination), agentapi.TerminationFile)
}

// terminationMessage is a summary as Kubernetes keeps it, shortened until it fits. The usage gets the room that is left, and sessions what
// that leaves.
func terminationMessage(s agentapi.Summary) []byte {
	used, sessions := s.Usage, s.Sessions
	s.Activity, s.Usage, s.Sessions = nil, nil, nil
	message := shortened(s)
	if used != nil {
		s.Usage = usage.Within(usage.WithoutLatest(*used), mostMessage-len(message)-len(`"usage":,`))
		message = shortened(s)
	}
	if sessions == nil {
		return message
	}
	for n := len(sessions.List); n >= 0; n-- {
		some := *sessions
		some.List = sessions.List[:n]
		s.Sessions = &some
		if data, err := json.Marshal(s); err == nil && len(data) <= mostMessage {
			return data
		}
	}
	return message
}

// shortened is a summary as JSON, without what does not fit.
func shortened(s agentapi.Summary) []byte {
	for isCut := false; ; {
		data, err := json.Marshal(s)
		if err != nil {
			return nil
		}
		switch {
		case len(data) <= mostMessage:
			return data
		case len(s.Hosts) > 1:
			s.Hosts = s.Hosts[:len(s.Hosts)/2]
		case len(s.Ranks) > 1:
			s.Ranks = s.Ranks[:len(s.Ranks)/2]
		case !isCut:
			isCut = true
			s.Message, s.Hosts, s.Ranks = Cut(s.Message, 1024), nil, nil
		case s.Binding != nil || s.NoInterface != nil:
			s.Binding, s.NoInterface = nil, nil
		default:
			data, _ = json.Marshal(agentapi.Summary{Role: s.Role, Code: s.Code, ExitCode: s.ExitCode, Signal: s.Signal})
			return data
		}
	}
}

// Cut shortens a text to some bytes, between characters.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most]
}
