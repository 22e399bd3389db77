// Command images makes container images without a container engine and
// without a registry: from this repository's Go programs and from Debian
// packages. "images help" says how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"opendatahub.io/mpijob/hack/images/internal/program"
	"opendatahub.io/mpijob/hack/images/internal/sample"
	"opendatahub.io/mpijob/hack/images/internal/steps"
	"opendatahub.io/mpijob/hack/images/oci"
)

const usage = `Make container images as docker-archive files, which
"ctr -n k8s.io images import", "podman load" and "docker load" read.

  images program --name REFERENCE --package ./cmd/NAME --out FILE [flags]
      Compile a Go program and wrap it, alone, as an image.
  images sample NAME --out FILE [flags]
      Build a sample MPI image from Debian packages, or take it from the cache.
  images files --name REFERENCE --out FILE [flags] PATH=SOURCE...
      Wrap files and folders as an image that has nothing else, such as a bundle for OLM.
  images layout --name REFERENCE --out FOLDER ARCHIVE...
      Combine archives for several architectures as one image, in an OCI image
      layout that skopeo pushes, and print the reference with its digest.
  images list
      List the samples.

"images program -h", "images sample -h", "images files -h" and "images layout -h" list the flags.
`

// errUsage marks a mistake on the command line: exit status 2.
var errUsage = errors.New("see \"images help\"")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(2)
	default:
		_, _ = fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// run does what the arguments say. Lists and help go to stdout, steps and the
// output of tools to stderr.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) error {
	command, rest := "", []string(nil)
	if len(arguments) > 0 {
		command, rest = arguments[0], arguments[1:]
	}
	switch command {
	case "program":
		return runProgram(ctx, rest, stdout, stderr)
	case "sample":
		return runSample(ctx, rest, stdout, stderr)
	case "files":
		return runFiles(rest, stdout)
	case "layout":
		return runLayout(rest, stdout)
	case "list":
		return list(stdout)
	case "help", "-h", "--help":
		_, err := io.WriteString(stdout, usage)
		return err
	case "":
		return fmt.Errorf("no command: %w", errUsage)
	}
	return fmt.Errorf("no command %q: %w", command, errUsage)
}

func runProgram(ctx context.Context, arguments []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("images program", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	build := program.Build{}
	flags.StringVar(&build.Image.Reference, "name", "", "image `reference` with a tag, such as odh/mpijob-operator:dev")
	flags.StringVar(&build.Dir, "dir", ".", "`folder` of the Go module")
	flags.StringVar(&build.Package, "package", "", "main `package` in it, such as ./cmd/operator")
	flags.StringVar(&build.Out, "out", "", "archive `file` to write")
	flags.StringVar(&build.LDFlags, "ldflags", "", "linker `flags` besides -s -w")
	flags.StringVar(&build.Image.Path, "path", "", "`path` of the binary in the image (default /<name of the package's folder>)")
	flags.StringVar(&build.Image.User, "user", oci.DefaultUser, "`uid:gid` the image runs as")
	flags.Func("link", "symbolic link in the image, as `PATH=TARGET`, such as /bin/ssh=../mpi-agent; may be repeated", func(text string) error {
		path, target, err := keyValue(text)
		if err != nil {
			return err
		}
		if build.Image.Links == nil {
			build.Image.Links = map[string]string{}
		}
		build.Image.Links[path] = target
		return nil
	})
	flags.Func("library", "shared library in the image, as `PATH=SCRIPT`; the script of the module compiles it with $CC into the file that its argument names; may be repeated", func(text string) error {
		path, script, err := keyValue(text)
		if err != nil {
			return err
		}
		if build.Libraries == nil {
			build.Libraries = map[string]string{}
		}
		build.Libraries[path] = script
		return nil
	})
	flags.Func("folder", "empty folder in the image, as an absolute `path`; may be repeated", func(text string) error {
		build.Image.Folders = append(build.Image.Folders, text)
		return nil
	})
	flags.Func("env", "`KEY=value` in the image's environment; may be repeated", func(text string) error {
		if _, _, err := keyValue(text); err != nil {
			return err
		}
		build.Image.Env = append(build.Image.Env, text)
		return nil
	})
	flags.Func("label", "`KEY=value` label of the image; may be repeated", func(text string) error {
		key, value, err := keyValue(text)
		if err != nil {
			return err
		}
		if build.Image.Labels == nil {
			build.Image.Labels = map[string]string{}
		}
		build.Image.Labels[key] = value
		return nil
	})
	if err := parse(flags, arguments, stdout); err != nil {
		return err
	}
	// What follows the flags, usually after "--", is for the program.
	build.Image.Args = flags.Args()
	if err := required(flags, "name", "package", "out"); err != nil {
		return err
	}
	return build.Run(ctx, steps.New(stderr, time.Now), stderr)
}

func runSample(ctx context.Context, arguments []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("images sample NAME", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	builder := sample.Builder{Output: stderr}
	out := flags.String("out", "", "archive `file` to write")
	flags.StringVar(&builder.Samples, "samples", "", "`folder` images/samples (default: of the checkout around the working folder)")
	flags.StringVar(&builder.Cache, "cache", "", "`folder` of finished images (default ${XDG_CACHE_HOME:-$HOME/.cache}/mpijob/images)")
	flags.StringVar(&builder.Mirror, "mirror", "", "Debian mirror `URL` (default: the public one, with security updates)")
	flags.BoolVar(&builder.Fresh, "fresh", false, "build even if the cache has the image, for newer packages")
	name := ""
	if len(arguments) > 0 && !strings.HasPrefix(arguments[0], "-") {
		name, arguments = arguments[0], arguments[1:]
	}
	if err := parse(flags, arguments, stdout); err != nil {
		return err
	}
	if name == "" && flags.NArg() == 1 {
		name = flags.Arg(0)
	} else if flags.NArg() > 0 {
		return fmt.Errorf("one sample at a time, not also %q: %w", flags.Args(), errUsage)
	}
	if name == "" {
		return fmt.Errorf("no sample named: %w", errUsage)
	}
	if err := required(flags, "out"); err != nil {
		return err
	}
	recipe, err := sample.Find(name)
	if err != nil {
		return fmt.Errorf("%w: %w", err, errUsage)
	}
	if err := fillFolders(&builder); err != nil {
		return err
	}
	builder.Log = steps.New(stderr, time.Now)
	return builder.Build(ctx, recipe, *out)
}

func runFiles(arguments []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("images files", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	image := oci.Files{Sources: map[string]string{}, Labels: map[string]string{}}
	flags.StringVar(&image.Reference, "name", "", "image `reference` with a tag, such as odh/mpijob-operator-bundle:dev")
	out := flags.String("out", "", "archive `file` to write")
	flags.StringVar(&image.Entrypoint, "entrypoint", "", "`path` of a program in the image that containers run (default: none)")
	flags.StringVar(&image.User, "user", oci.DefaultUser, "`uid:gid` the image runs as")
	flags.Func("env", "`KEY=value` in the image's environment; may be repeated", func(text string) error {
		if _, _, err := keyValue(text); err != nil {
			return err
		}
		image.Env = append(image.Env, text)
		return nil
	})
	flags.Func("label", "`KEY=value` label of the image; may be repeated", func(text string) error {
		key, value, err := keyValue(text)
		if err != nil {
			return err
		}
		image.Labels[key] = value
		return nil
	})
	if err := parse(flags, arguments, stdout); err != nil {
		return err
	}
	if err := required(flags, "name", "out"); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return fmt.Errorf("no files named: %w", errUsage)
	}
	for _, argument := range flags.Args() {
		path, source, err := keyValue(argument)
		if err != nil {
			return fmt.Errorf("%w: %w", err, errUsage)
		}
		image.Sources[path] = source
	}
	return image.Write(*out)
}

func runLayout(arguments []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("images layout", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	name := flags.String("name", "", "image `reference` with a tag, such as quay.io/opendatahub/mpijob-operator:v0.1.0")
	out := flags.String("out", "", "`folder` to write, which must not exist")
	if err := parse(flags, arguments, stdout); err != nil {
		return err
	}
	if err := required(flags, "name", "out"); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return fmt.Errorf("no archives named: %w", errUsage)
	}
	digest, err := oci.WriteLayout(*out, *name, flags.Args())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s@%s\n", *name, digest)
	return err
}

// fillFolders sets the folders that the command line left open.
func fillFolders(builder *sample.Builder) (err error) {
	if builder.Cache == "" {
		if builder.Cache, err = sample.DefaultCache(); err != nil {
			return err
		}
	}
	if builder.Samples == "" {
		if builder.Samples, err = findSamples("."); err != nil {
			return err
		}
	}
	return nil
}

// findSamples returns images/samples of the checkout that contains start.
func findSamples(start string) (string, error) {
	start, err := filepath.Abs(start)
	if err != nil {
		return "", fmt.Errorf("working folder: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		candidate := filepath.Join(dir, "images", "samples")
		if info, err := os.Stat(candidate); err == nil && info.IsDir() {
			return candidate, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no images/samples in %s or above: run this in a checkout, or give --samples", start)
		}
	}
}

func list(stdout io.Writer) error {
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "SAMPLE\tIMAGE\tCONTENT")
	for _, s := range sample.All() {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, s.Reference, s.About)
	}
	return table.Flush()
}

// parse reads the flags; asked for help, it prints the flags to stdout.
func parse(flags *flag.FlagSet, arguments []string, stdout io.Writer) error {
	err := flags.Parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintf(stdout, "Flags of %q:\n", flags.Name())
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: %w", err, errUsage)
	}
	return nil
}

// required names all flags that are missing at once.
func required(flags *flag.FlagSet, names ...string) error {
	var missing []string
	for _, name := range names {
		if flags.Lookup(name).Value.String() == "" {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing %s: %w", strings.Join(missing, ", "), errUsage)
	}
	return nil
}

func keyValue(text string) (key, value string, err error) {
	key, value, found := strings.Cut(text, "=")
	if !found || key == "" {
		return "", "", fmt.Errorf("%q is not KEY=value", text)
	}
	return key, value, nil
}
