package cli

import (
	"slices"
	"testing"
	"time"

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
