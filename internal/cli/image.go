package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/internal/doctor"
	"opendatahub.io/mpijob/internal/imagecheck"
	"opendatahub.io/mpijob/internal/imagecheck/source"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

func newImage(f *Factory) *cobra.Command {
	c := &cobra.Command{
		Use:   "image",
		Short: "Check images for MPI jobs",
		Long:  "Check images for MPI jobs.",
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newImageCheck(f))
	return c
}

type imageCheckOptions struct {
	*Factory
	archive  string
	platform string
	output   valueOutput
}

func newImageCheck(f *Factory) *cobra.Command {
	o := &imageCheckOptions{Factory: f}
	c := &cobra.Command{
		Use:   "check (IMAGE | --archive FILE)",
		Short: "Check whether an image can run MPI jobs",
		Long: `Check whether an image can run MPI jobs, and which --implementation they need: the MPI and its version, mpirun, the shell,
the user, Python and its packages, CUDA. The image is read from its registry with your credentials (podman login or docker
login), or from a file, and is not run. No cluster is needed. Layers are read as a stream and not stored.

Each line is ok, warn (works with restrictions), fail (jobs do not run until this is fixed), or "-" (optional, or not known
without running the image). The exit code is 1 if a check fails.`,
		Example: `# Check an image of a registry
{{name}} quay.io/me/train:1

# Check the image for another platform
{{name}} quay.io/me/train:1 --platform linux/arm64

# Check an image before it is pushed: podman save -o train.tar quay.io/me/train:1
{{name}} --archive train.tar

# Print the result as JSON
{{name}} quay.io/me/train:1 -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	c.Flags().StringVar(&o.archive, "archive", "", "Archive of podman save or docker save, or folder with an OCI layout, to check instead of IMAGE")
	c.Flags().StringVar(&o.platform, "platform", "", "Platform to check of a multi-platform image (default: linux/amd64, or the only one)")
	_ = c.RegisterFlagCompletionFunc("platform", cobra.FixedCompletions([]string{"linux/amd64", "linux/arm64", "linux/ppc64le", "linux/s390x"}, cobra.ShellCompDirectiveNoFileComp))
	o.output.add(c)
	return c
}

func (o *imageCheckOptions) run(ctx context.Context, args []string) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	if (len(args) == 0) == (o.archive == "") {
		return usagef("set either IMAGE or --archive FILE")
	}
	image, err := o.read(ctx, args)
	if err != nil {
		return err
	}
	result := imagecheck.Judge(image)
	if o.output.structured() {
		err = o.output.print(o.Out, result)
	} else {
		err = o.printResult(o.Out, result)
	}
	if err == nil && !result.Usable() {
		return silently(ExitError)
	}
	return err
}

// read reads the image. On a terminal, it shows the progress.
func (o *imageCheckOptions) read(ctx context.Context, args []string) (imagecheck.Image, error) {
	options := source.Options{Platform: o.platform}
	if onTerminal(o.ErrOut) {
		progress := o.newProgress()
		defer progress.end()
		options.Progress = func(layer, layers int, bytes int64) {
			progress.show("", fmt.Sprintf("Reading layer %d of %d (%s)", layer, layers, imagecheck.Size(bytes)))
		}
	}
	if o.archive != "" {
		return source.FromArchive(ctx, filepath.Clean(o.archive), options)
	}
	image, err := source.FromRegistry(ctx, args[0], options)
	if refused, is := errors.AsType[*source.RefusedError](err); is {
		switch refused.Status {
		case http.StatusUnauthorized, http.StatusForbidden:
			return image, exitf(ExitError, "%w; run podman login %s if the image is private", err, refused.Registry)
		case http.StatusNotFound:
			return image, exitf(ExitNotFound, "%s does not exist in %s", args[0], refused.Registry)
		}
	}
	if err != nil && jobs.IsUnreachable(err) {
		// Not wrapped: it would be reported as an error of the cluster's connection.
		return image, exitf(ExitError, "cannot reach the registry of %s: %v", args[0], innermost(err))
	}
	return image, err
}

// printResult prints a line for each check, and whether jobs can use the image.
func (o *imageCheckOptions) printResult(to io.Writer, result imagecheck.Result) error {
	p := &linePrinter{to: to}
	failed, warnings := 0, 0
	for _, c := range result.Checks {
		switch c.Verdict {
		case imagecheck.Fail:
			failed++
		case imagecheck.Warn:
			warnings++
		}
		p.check(doctor.Result{Check: c.Check, Verdict: doctor.Verdict(c.Verdict), Found: c.Found, Remedy: c.Remedy})
	}
	p.line("")
	summary, tint := "Jobs can use this image", green
	switch {
	case failed > 0:
		summary, tint = fmt.Sprintf("%d of %s failed: jobs cannot use this image", failed, phrase.Count(len(result.Checks), "check")), red
	case warnings > 0:
		summary, tint = fmt.Sprintf("Jobs can use this image, with %s", phrase.Count(warnings, "warning")), yellow
	}
	if failed == 0 && result.MPIImplementation != "" && result.MPIImplementation != mpi.OpenMPI {
		summary += fmt.Sprintf(", with --implementation %s", result.MPIImplementation)
	}
	p.line("%s", paintOn(to, tint, summary+"."))
	if failed == 0 && o.archive == "" {
		p.line("%s", strings.TrimSpace(o.createCommand(result)))
	}
	return p.err
}

// createCommand returns the command that runs a job with the image.
func (o *imageCheckOptions) createCommand(result imagecheck.Result) string {
	flags := ""
	if result.MPIImplementation != "" && result.MPIImplementation != mpi.OpenMPI {
		flags = " --implementation " + string(result.MPIImplementation)
	}
	return fmt.Sprintf("%s create NAME --image %s%s --workers 2 --command hostname --logs", o.name, phrase.QuoteWord(result.Image), flags)
}
