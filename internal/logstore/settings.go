package logstore

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Settings describe the bucket, and how much of logs is kept in it.
type Settings struct {
	// Bucket is the name of the bucket. If it is empty, no complete logs are kept.
	Bucket string
	// Prefix begins the key of every object, and is not empty. All objects with it belong to the operator, which deletes those that are too old.
	Prefix string
	// Endpoint is the URL of the S3 server; empty: that of AWS in the region. PublicEndpoint is the URL by which users reach it; empty: the
	// same.
	Endpoint, PublicEndpoint string
	Region                   string
	// Credentials is a folder with the files AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, which are read for each request, and with ca.crt
	// if the server has a certificate of an own CA.
	Credentials string
	// Retention is how long the logs of a job are kept after its end.
	Retention time.Duration
	// MaxBytes is how many bytes of the text of its logs are kept of a job.
	MaxBytes int64
}

// Limits of the retention and of a job's text: signed addresses are valid for a week at most, and an index has at most logs.MaxIndex bytes.
const (
	minRetention = time.Minute
	maxRetention = 7 * 24 * time.Hour
	maxJobBytes  = 4 << 30
)

// IsOn reports whether complete logs are kept.
func (s Settings) IsOn() bool { return s.Bucket != "" }

// Check returns what is wrong with the settings, by the names of the operator's flags.
func (s Settings) Check() error {
	if !s.IsOn() {
		return nil
	}
	var wrong []error
	check := func(isRight bool, format string, args ...any) {
		if !isRight {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	check(!strings.Contains(s.Bucket, "/"), "--log-bucket: %q is not the name of a bucket; set the URL of the server with --log-bucket-endpoint", s.Bucket)
	check(strings.HasSuffix(s.Prefix, "/") && !strings.HasPrefix(s.Prefix, "/"), "--log-bucket-prefix: %q is not allowed; use a name that ends with a slash and does not begin with one, such as mpijob-logs/", s.Prefix)
	for _, endpoint := range [][2]string{{"endpoint", s.Endpoint}, {"public-endpoint", s.PublicEndpoint}} {
		parsed, err := url.Parse(endpoint[1])
		check(endpoint[1] == "" || err == nil && (parsed.Scheme == "https" || parsed.Scheme == "http") && parsed.Host != "" && parsed.User == nil && parsed.RawQuery == "",
			"--log-bucket-%s: %q is not the URL of a server; use a value such as https://s3.example.com", endpoint[0], endpoint[1])
	}
	check(s.Region != "", "--log-bucket-region: it must not be empty")
	check(s.Retention >= minRetention && s.Retention <= maxRetention, "--log-bucket-retention: %s is not allowed; use %s to %s", s.Retention, minRetention, maxRetention)
	check(s.MaxBytes >= partText && s.MaxBytes <= maxJobBytes, "--log-bucket-job-bytes: %d is not allowed; use %d to %d", s.MaxBytes, partText, int64(maxJobBytes))
	return errors.Join(wrong...)
}
