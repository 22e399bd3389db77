package dashboard

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
)

// The values of the parameter download.
const (
	downloadText = "true"
	downloadJSON = "json"
)

// logOptions reads the options of a stream from the parameters of a URL. It returns jobs.InvalidError with all errors.
func logOptions(values url.Values) (logstream.Options, error) {
	options := logstream.Options{Container: values.Get("container"), Follow: values.Get("follow") == "true", Previous: values.Get("previous") == "true", Levels: true}
	filter := &options.Filter
	filter.Launcher = values.Get("launcher") == "true"
	var errs []jobs.FieldError
	parse := func(name string, read func(string) error) {
		if text := values.Get(name); text != "" {
			if err := read(text); err != nil {
				errs = append(errs, jobs.FieldError{Field: name, Reason: err.Error()})
			}
		}
	}
	var err error
	parse("ranks", func(text string) error { filter.Ranks, err = logstream.ParseSet(text); return err })
	parse("workers", func(text string) error { filter.Workers, err = logstream.ParseSet(text); return err })
	parse("level", func(text string) error { filter.Level, err = logs.ParseLevel(text); return err })
	parse("grep", func(text string) error {
		if len(text) > 1000 {
			return errors.New("is longer than 1000 characters")
		}
		filter.Grep, err = regexp.Compile(text)
		return err
	})
	parse("since", func(text string) error {
		options.Since, err = time.ParseDuration(text)
		if err == nil && options.Since <= 0 {
			return fmt.Errorf("%s is not allowed; use a duration such as 10m", text)
		}
		return err
	})
	parse("from", func(text string) error { options.SinceTime, err = parseTime(text); return err })
	parse("to", func(text string) error {
		if options.Until, err = parseTime(text); err == nil && options.Until.Before(options.SinceTime) {
			return errors.New("is before the start of the range")
		}
		return err
	})
	parse("tail", func(text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("%s is not allowed; use 0 or more", text)
		}
		options.Tail = &n
		return nil
	})
	parse("download", checkDownload)
	if options.Follow && options.Previous {
		errs = append(errs, jobs.FieldError{Field: "previous", Reason: "cannot be combined with follow"})
	}
	if len(errs) > 0 {
		return options, jobs.Invalid(errs...)
	}
	return options, nil
}

func checkDownload(text string) error {
	if text != downloadText && text != downloadJSON {
		return fmt.Errorf("%q is not allowed; use true for text, or json", text)
	}
	return nil
}

func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("%s is not a time; use a value such as 2026-11-21T13:00:00Z", text)
	}
	return at, nil
}
