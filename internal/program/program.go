// Package program contains what the operator and the dashboard have in common as programs: the flags --log-level and
// --version, logs in JSON, and how they exit.
package program

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"opendatahub.io/mpijob/internal/version"
)

// Main adds the common flags to those of the command line, parses them, and calls run with the handler of the log, which
// controller-runtime and client-go already use. If run fails, Main prints the error after the program's name, and exits
// with 1.
func Main(name string, run func(slog.Handler) error) {
	if err := start(flag.CommandLine, os.Args[1:], os.Stdout, run); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func start(flags *flag.FlagSet, args []string, stdout io.Writer, run func(slog.Handler) error) error {
	var level slog.Level
	flags.TextVar(&level, "log-level", slog.LevelInfo, "Minimum level of log lines: debug, info, warn or error")
	printVersion := flags.Bool("version", false, "Print the version and exit")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *printVersion {
		_, err := fmt.Fprintln(stdout, version.Get())
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; every setting is a flag, see --help", flags.Arg(0))
	}
	handler := slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: nameSource})
	logger := logr.FromSlogHandler(handler)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return run(handler)
}

// nameSource replaces what a controller watches by its name: JSON cannot hold the object.
func nameSource(_ []string, attr slog.Attr) slog.Attr {
	if named, is := attr.Value.Any().(fmt.Stringer); is && attr.Key == "source" {
		return slog.String(attr.Key, named.String())
	}
	return attr
}
