package diagnose

import (
	"strings"
	"testing"
)

func TestURLIn(t *testing.T) {
	t.Parallel()
	const pool = `requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='files.example.com', port=443): Max retries exceeded with url: /data/train.tgz?key=abc (Caused by ConnectTimeoutError())`
	for _, test := range []struct{ name, lines, address, want string }{
		{"an address alone", "downloading http://data.example.com:8080/a.csv ...", "10.0.0.7:8080", "http://data.example.com:8080/a.csv"},
		{"the usual port", "GET https://data.example.com/a.csv.", "10.0.0.7:443", "https://data.example.com/a.csv"},
		{"another port", "see https://docs.example.com", "10.0.0.7:80", ""},
		{"another name", "http://b.example.com/y", "a.example.com:80", ""},
		{"the same name", "http://a.example.com/y", "a.example.com:80", "http://a.example.com/y"},
		{"another address", "http://10.0.0.8:8080/y", "10.0.0.7:8080", ""},
		{"one before another address", "http://data.example.com:8080/x\nhttp://10.0.0.8:8080/y", "10.0.0.7:8080", "http://data.example.com:8080/x"},
		{"the same address", "http://10.0.0.7:8080/y", "10.0.0.7:8080", "http://10.0.0.7:8080/y"},
		{"the same address of IPv6", "http://[fd00:0::7]:8080/y", "[fd00::7]:8080", "http://[fd00:0::7]:8080/y"},
		{"another address of IPv6", "http://[fd00::8]:8080/y", "[fd00::7]:8080", ""},
		{"an address for a name", "http://10.0.0.8/y", "a.example.com:80", ""},
		{"the last one", "http://a.example.com/x\nhttp://b.example.com/y", "10.0.0.7:80", "http://b.example.com/y"},
		{"one before another port", "http://a.example.com/x\nhttps://docs.example.com", "10.0.0.7:80", "http://a.example.com/x"},
		{"a pool of connections", pool, "10.0.0.7:443", "https://files.example.com/data/train.tgz"},
		{"a pool without an address", pool, "", "https://files.example.com/data/train.tgz"},
		{"credentials", "fetching 'http://me:secret@data.example.com/a?token=secret#x'", "10.0.0.7:80", "http://data.example.com/a"},
		{"a long path", "http://data.example.com/" + strings.Repeat("x", 200), "10.0.0.7:80", "http://data.example.com"},
		{"none", "epoch 1\nhttp://", "10.0.0.7:80", ""},
		{"the agent's own", "mpi-agent: no progress: http://a.example.com/x", "10.0.0.7:80", ""},
	} {
		if got := urlIn(strings.Split(test.lines, "\n"), test.address); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
