// The command line, a plug-in of kubectl and, as oc-odh-mpijob, of oc.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"opendatahub.io/mpijob/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	code := cli.Main(ctx, os.Args, streams, time.Now)
	stop()
	os.Exit(code)
}
