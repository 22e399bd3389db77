package logstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
)

// TestKeys: a key contains what is to be known of its lines, and keys are in the order of runs and lines.
func TestKeys(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 10, 0, 0, 123, time.UTC)
	first := part{run: runID{"team", "uid-1", "pi-launcher-x", "uid-2", 0}, number: 1, first: at, last: at.Add(time.Second), lines: 7, text: 900}
	second, restarted := first, first
	second.number, second.cut = 12, true
	restarted.run.restarts = 1
	var keys []string
	for _, p := range []part{first, second, restarted} {
		key := p.key("logs/")
		keys = append(keys, key)
		if got, is := parsePart("logs/", key); !is || got != p {
			t.Errorf("%s is read as %+v, %v", key, got, is)
		}
		if !strings.HasPrefix(key, "logs/team/uid-1/") || first.run.jobID().prefix("logs/") != "logs/team/uid-1/" {
			t.Errorf("the key %s is not below its job", key)
		}
		if job, is := jobOf("logs/", key); !is || job != (jobID{"team", "uid-1"}) {
			t.Errorf("%s is of %v, %v", key, job, is)
		}
	}
	if !slices.IsSorted(keys) {
		t.Errorf("the keys are not in order: %v", keys)
	}
	if _, is := jobOf("logs/", "logs/team/uid-1/index.json"); !is {
		t.Error("the index is of no job")
	}
	for _, other := range []string{"", "logs/", "logs/x", "logs/team/uid-1/index.json", "other/" + keys[0], keys[0] + "x", strings.Replace(keys[0], "_7_", "_x_", 1), strings.Replace(keys[0], "/0000/", "/", 1)} {
		if p, is := parsePart("logs/", other); is {
			t.Errorf("%q is read as %+v", other, p)
		}
	}
	for _, other := range []string{"", "logs/", "logs/readme.txt", "logs/team/notes/readme.txt", "models/team/uid-1/index.json", "logs/team/uid-1/data/train.csv.gz", "logs/team/uid-1/data/index.json", "logs/index.json", "logs///index.json"} {
		if _, is := jobOf("logs/", other); is {
			t.Errorf("%q is an object of the operator", other)
		}
	}
}

// TestPack: a packed part contains its lines, and how far the log was read.
func TestPack(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	var lines builder
	var read logstream.Resume
	for i := range 3 {
		read.IsNew(at.Add(time.Duration(i) * time.Second))
		lines.add(logs.PodLine{Pod: "w", Time: at.Add(time.Duration(i) * time.Second), Text: "line"})
	}
	got := lines.pack(runID{pod: "w"}, 4, true, read)
	if p := got.part; p.number != 4 || p.lines != 3 || !p.cut || !p.first.Equal(at) || !p.last.Equal(at.Add(2*time.Second)) || lines.lines != 0 {
		t.Errorf("the part is %+v", p)
	}
	again, err := resumed(got.properties)
	if err != nil || !again.Newest.Equal(read.Newest) || again.From() != read.From() || again.Last != read.Last || again.Before != read.Before {
		t.Errorf("the log was read to %+v, want %+v: %v", again, read, err)
	}
	if _, err := resumed(map[string]string{}); err == nil {
		t.Error("an object without properties is no part")
	}
}

// TestSettings: wrong settings are refused by the names of their flags.
func TestSettings(t *testing.T) {
	t.Parallel()
	right := Settings{Bucket: "logs", Prefix: "a/b/", Endpoint: "https://s3.example.com", Region: "eu", Retention: 24 * time.Hour, MaxBytes: 1 << 30}
	for name, test := range map[string]struct {
		change func(*Settings)
		wrong  string
	}{
		"right":              {func(*Settings) {}, ""},
		"none":               {func(s *Settings) { *s = Settings{} }, ""},
		"no prefix":          {func(s *Settings) { s.Prefix = "" }, "--log-bucket-prefix:"},
		"too many bytes":     {func(s *Settings) { s.MaxBytes = 4<<30 + 1 }, "--log-bucket-job-bytes: 4294967297 is not allowed; use 524288 to 4294967296"},
		"AWS":                {func(s *Settings) { s.Endpoint = "" }, ""},
		"a URL as bucket":    {func(s *Settings) { s.Bucket = "s3://logs" }, "--log-bucket:"},
		"prefix, no slash":   {func(s *Settings) { s.Prefix = "logs" }, "--log-bucket-prefix:"},
		"prefix from root":   {func(s *Settings) { s.Prefix = "/logs/" }, "--log-bucket-prefix:"},
		"no URL":             {func(s *Settings) { s.Endpoint = "s3.example.com" }, "--log-bucket-endpoint:"},
		"a URL with a user":  {func(s *Settings) { s.PublicEndpoint = "https://me:pw@s3.example.com" }, "--log-bucket-public-endpoint:"},
		"no region":          {func(s *Settings) { s.Region = "" }, "--log-bucket-region:"},
		"too long a time":    {func(s *Settings) { s.Retention = 169 * time.Hour }, "--log-bucket-retention: 169h0m0s is not allowed; use 1m0s to 168h0m0s"},
		"too short a time":   {func(s *Settings) { s.Retention = 0 }, "--log-bucket-retention:"},
		"too few bytes":      {func(s *Settings) { s.MaxBytes = 1 }, "--log-bucket-job-bytes:"},
		"several are wrong":  {func(s *Settings) { s.MaxBytes, s.Region = 1, "" }, "--log-bucket-region:"},
		"a query in the URL": {func(s *Settings) { s.Endpoint += "/?x=1" }, "--log-bucket-endpoint:"},
	} {
		settings := right
		test.change(&settings)
		err := settings.Check()
		if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s: %v, want %q", name, err, test.wrong)
		}
	}
}
