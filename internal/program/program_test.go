package program

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/version"
)

func TestStart(t *testing.T) {
	failed := errors.New("failed")
	for name, test := range map[string]struct {
		args    []string
		runs    bool
		enabled slog.Level // the lowest level that is logged
		stdout  string
		err     string
	}{
		"no flags":         {runs: true, enabled: slog.LevelInfo, err: "failed"},
		"a level":          {args: []string{"--log-level=warn", "--mine=x"}, runs: true, enabled: slog.LevelWarn, err: "failed"},
		"an unknown level": {args: []string{"--log-level=loud"}, err: `invalid value "loud"`},
		"an argument":      {args: []string{"--mine=x", "y"}, err: `unexpected argument "y"`},
		"the version":      {args: []string{"--version"}, stdout: version.Get().Version},
	} {
		t.Run(name, func(t *testing.T) {
			flags := flag.NewFlagSet("test", flag.ContinueOnError)
			flags.SetOutput(io.Discard)
			flags.String("mine", "", "")
			var stdout bytes.Buffer
			ran := false
			err := start(flags, test.args, &stdout, func(handler slog.Handler) error {
				ran = true
				if !handler.Enabled(context.Background(), test.enabled) || handler.Enabled(context.Background(), test.enabled-1) {
					t.Errorf("lines are not logged from %s on", test.enabled)
				}
				return failed
			})
			if ran != test.runs {
				t.Errorf("it runs: %v", ran)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error is %v, want %q", err, test.err)
			}
			if !strings.Contains(stdout.String(), test.stdout) || (test.stdout == "") != (stdout.Len() == 0) {
				t.Errorf("it prints %q", stdout.String())
			}
		})
	}
}

// source cannot be encoded as JSON, like the sources of controllers.
type source struct{ Block chan int }

func (source) String() string { return "kind source: *v1.Pod" }

func TestSourcesAreLoggedByName(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: nameSource}))
	log.Info("Starting EventSource", "source", source{}, "other", "x")
	if want := `"source":"kind source: *v1.Pod","other":"x"`; !strings.Contains(out.String(), want) {
		t.Errorf("%s, want %s", out.String(), want)
	}
}
