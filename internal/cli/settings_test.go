package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"opendatahub.io/mpijob/internal/jobs"
)

// TestSettingsHaveFlags: create has a flag for each setting of the table that names one, and for nothing else about a job.
func TestSettingsHaveFlags(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	c := newCreate(NewFactory(streams, time.Now))
	var flags jobFlags
	flags.add(newWait(NewFactory(streams, time.Now)), NewFactory(streams, time.Now))
	want := []string{}
	for _, group := range jobs.Settings() {
		for _, setting := range group.Settings {
			switch setting.Flag {
			case "", "NAME", "namespace": // an argument, and a flag of all commands
			default:
				want = append(want, setting.Flag)
				if flag := c.Flags().Lookup(setting.Flag); flag == nil || flag.Usage != setting.Usage() {
					t.Errorf("create has no flag --%s with the text %q", setting.Flag, setting.Usage())
				}
			}
		}
	}
	if slices.Sort(want); !slices.Equal(want, flags.names) {
		t.Errorf("the flags about a job are %v, the table has %v", flags.names, want)
	}
}

// TestCopiesHaveSettings: clone and update change every setting that create sets, by the same flags.
func TestCopiesHaveSettings(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	f := NewFactory(streams, time.Now)
	// Flags that these commands have in their own way.
	own := []string{"workers", "slots", "image", "command", "queue", "env"}
	for name, test := range map[string]struct {
		command *cobra.Command
		own     []string
	}{
		"clone":  {newClone(f), own},
		"update": {newUpdate(f), append([]string{"grace-period"}, own...)}, // of the pods that --replace ends
	} {
		for _, group := range jobs.Settings() {
			for _, setting := range group.Settings {
				flag := test.command.Flags().Lookup(setting.Flag)
				switch {
				case setting.Flag == "", setting.Flag == "NAME", setting.Flag == "namespace":
				case flag == nil:
					t.Errorf("%s has no flag --%s", name, setting.Flag)
				case slices.Contains(test.own, setting.Flag):
				case flag.Usage != setting.Usage() || copied[setting.Flag] == nil:
					t.Errorf("%s does not change --%s as create sets it", name, setting.Flag)
				}
			}
		}
	}
}
