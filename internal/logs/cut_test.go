package logs_test

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/logs"
)

// TestMaskAtCut: of a secret in which a line is cut, nothing is shown, wherever the cut is in it.
func TestMaskAtCut(t *testing.T) {
	hex := "0123456789abcdef0123456789abcdef01234567"
	for name, test := range map[string]struct{ before, secret string }{
		"the key of Databricks":     {"host dapi", hex[:32]},
		"the key of wandb":          {"wandb: login with ", hex},
		"the token of Hugging Face": {"token hf_", "abcdefghijklmnopqrstuvwxyzABCDEF"},
		"the key of OpenAI":         {"sk-", "abcdefghijklmnopqrstuvwxyz0123456789"},
		"the token of OpenShift":    {"oc login sha256~", "abcdefghijklmnopqrstuvwxyz0123456789"},
		"the password in a URL":     {"open postgres://me:", "hunter2hunter2hunter2/hunter2@db"},
		"the key of a service":      {"SG.abcdefghijklmnopqrst.", "uvwxyz0123456789uvwxyz0123456789"},
		"a password":                {"password=", "hunter2hunter2hunter2"},
	} {
		t.Run(name, func(t *testing.T) {
			const shown = 6
			for cut := shown; cut < len(test.secret); cut++ {
				line := strings.Repeat(" x", logs.MaxLine)
				line = line[:logs.MaxLine-len("…")-len(test.before)-cut-1] + " " + test.before + test.secret + " and more " + strings.Repeat("x ", 1000)
				for by, got := range map[string]string{
					"tail":   logs.Masker{}.Tail([]byte(line), 1)[0],
					"stream": logs.Masker{}.Stream(true).LineWithin(line, logs.MaxLine),
				} {
					if strings.Contains(got, test.secret[:shown]) || len(got) > logs.MaxLine {
						t.Errorf("%s, cut after %d bytes of it: %q", by, cut, got[max(0, len(got)-80):])
					}
				}
			}
		})
	}
}
