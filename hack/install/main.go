// Command install makes what administrators install the operator with: a Helm chart, and a bundle for OLM.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/hack/install/bundle"
	"opendatahub.io/mpijob/hack/install/chart"
	"opendatahub.io/mpijob/hack/install/manifests"
)

const usage = `Make what administrators install the operator with.

  install [--root FOLDER] generate
      Write the generated files of the Helm chart, and the runtimes that programs contain, from the manifests in config/.
  install [--root FOLDER] [--partial] package VERSION RELEASE EPOCH
      Write the chart's package into the folder RELEASE, with the images of its file images.txt and the time EPOCH in seconds. With
      --partial, it only has the runtimes of these images.
  install [--root FOLDER] bundle VERSION RELEASE EPOCH FOLDER
      Write the bundle for OLM into FOLDER, and the two files olm-admission*.yaml next to it, with the same images and time.
  install compare VERSION RELEASE
      Compare the package with the manifests in the folder RELEASE, and fail if they install different objects.
`

func main() {
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	root := flag.String("root", "../..", "Folder of the repository")
	partial := flag.Bool("partial", false, "Accept a release without the images of some runtimes")
	flag.Parse()
	if err := run(*root, *partial, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}

func run(root string, partial bool, args []string) error {
	source := filepath.Join(root, "charts", "mpijob-operator")
	switch {
	case len(args) == 1 && args[0] == "generate":
		return errors.Join(chart.Write(root, source), manifests.WriteRuntimes(root))
	case len(args) == 4 && args[0] == "package":
		return pack(source, args[1], args[2], args[3], partial)
	case len(args) == 5 && args[0] == "bundle":
		return writeBundle(root, args[1], args[2], args[3], args[4])
	case len(args) == 3 && args[0] == "compare":
		lines, err := chart.CompareRelease(args[2], args[1])
		if err == nil && len(lines) > 0 {
			err = errors.New("the chart and the manifests differ:\n" + strings.Join(lines, "\n"))
		}
		return err
	}
	return fmt.Errorf("%q is no command\n%s", strings.Join(args, " "), usage)
}

func pack(source, version, release, epoch string, partial bool) error {
	images, modified, err := read(release, epoch)
	if err != nil {
		return err
	}
	_, err = chart.Package(source, version, images, partial, modified, release)
	return err
}

func writeBundle(root, version, release, epoch, folder string) error {
	images, modified, err := read(release, epoch)
	if err != nil {
		return err
	}
	made := bundle.Release{Version: version, Created: modified}
	for _, image := range images {
		switch {
		case strings.Contains(image, "/mpijob-operator:"):
			made.Operator = image
		case strings.Contains(image, "/mpijob-agent:"):
			made.Agent = image
		default:
			made.Others = append(made.Others, image)
		}
	}
	if made.Operator == "" || made.Agent == "" {
		return fmt.Errorf("%s/images.txt has no image of the operator or of the agent", release)
	}
	return bundle.Write(root, folder, made)
}

// read returns the images of a release and its time.
func read(release, epoch string) ([]string, time.Time, error) {
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("the time %q is no number of seconds", epoch)
	}
	images, err := os.ReadFile(filepath.Join(release, "images.txt")) //nolint:gosec // the caller's own folder
	return strings.Fields(string(images)), time.Unix(seconds, 0), err
}
