package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/phrase"
)

func newProfile(f *Factory) *cobra.Command {
	var output valueOutput
	c := &cobra.Command{
		Use:   "profile NAME",
		Short: "Show where the time of a job's ranks goes",
		Long: `Show where the time of a job's ranks goes, between MPI_Init and MPI_Finalize: the share in functions of MPI, the
functions with the most time, the sizes of messages, the imbalance between the ranks, and the rank that the others may wait for.
If the job runs mpirun or mpiexec more than once, it is the profile of the run that began last.

The job must have been created with --profile, or with the annotation mpi.opendatahub.io/profile. The profile is reported
every minute, after 20 minutes each time the run time has grown by 5%, and at the end. The command also works for deleted
jobs while their reports are retained.`,
		Example: `# Show where the time goes of a job created with --profile
{{name}} pi

# As JSON, in milliseconds and bytes
{{name}} pi -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			job, err := f.Find(c.Context(), args[0])
			if err != nil {
				return err
			}
			profile := job.Status().Profile
			switch {
			case profile == nil:
				return exitf(ExitNotFound, "%s: %s", job, jobs.NoProfileText(job, f.Now()))
			case output.structured():
				return output.print(f.Out, profile)
			}
			p := profilePrinter{linePrinter{to: f.Out}}
			return p.print(job, profile)
		},
	}
	output.add(c)
	return c
}

// profilePrinter prints where the time of a job's ranks went.
type profilePrinter struct{ linePrinter }

func (p *profilePrinter) print(job jobs.Job, profile *v1alpha1.Profile) error {
	p.line("%s: %s, %d %% of the time in MPI, imbalance %d %%, until %s UTC", job, phrase.Count(int(profile.Ranks), "rank"), profile.CommunicationPercent, profile.ImbalancePercent,
		profile.Until.UTC().Format(time.DateTime))
	if runs := jobs.RunsText(profile); runs != "" && profile.Since != nil {
		p.line("It is the latest of %s of MPI's launcher, and began at %s UTC.", runs, profile.Since.UTC().Format(time.DateTime))
	}
	if late := jobs.LateRankText(profile); late != "" {
		p.line("%s", phrase.Sentence(phrase.Capital(late)))
	}
	if len(profile.Calls) > 0 {
		p.line("")
		t := table{header: []string{"CALL", "COUNT", "TIME", "SHARE", "MEAN TIME", "DATA"}}
		for _, call := range profile.Calls {
			data := "-"
			if call.Bytes > 0 {
				data = jobs.BytesText(call.Bytes)
			}
			t.rows = append(t.rows, plain(
				call.Call, strconv.FormatInt(call.Count, 10), jobs.TimeText(call.Milliseconds), share(call.Milliseconds, profile.Milliseconds),
				meanTime(call), data,
			))
		}
		p.table(t)
	}
	if open := jobs.OpenCalls(profile); open > 0 {
		p.line("and %s in calls that have not returned", jobs.TimeText(open))
	}
	if rows := jobs.MessageSizeRows(profile); len(rows) > 0 {
		p.line("")
		t := table{header: []string{"MESSAGE SIZE", "COUNT", "SHARE"}}
		for _, row := range rows {
			t.rows = append(t.rows, plain(row[0], row[1], row[2]))
		}
		p.table(t)
	}
	if len(profile.PerRank) > 0 {
		p.line("")
		t := table{header: []string{"RANK", "TIME", "IN MPI", "SHARE"}}
		for _, rank := range profile.PerRank {
			t.rows = append(t.rows, plain(
				strconv.Itoa(int(rank.Rank)), jobs.TimeText(rank.Milliseconds), jobs.TimeText(rank.CommunicationMilliseconds),
				share(rank.CommunicationMilliseconds, rank.Milliseconds),
			))
		}
		p.table(t)
	}
	if more := int(profile.Ranks) - len(profile.PerRank); more > 0 {
		p.line("and %d more ranks that differ less", more)
	}
	return p.err
}

// meanTime returns the mean time of a call.
func meanTime(call v1alpha1.ProfileCall) string {
	mean := float64(call.Milliseconds) / float64(max(1, call.Count))
	if mean < 1 {
		return fmt.Sprintf("%.0f µs", 1000*mean)
	}
	return jobs.TimeText(int64(mean))
}

// share returns a part in percent of the whole.
func share(part, whole int64) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
