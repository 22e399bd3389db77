package offline

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// logKey identifies a log. Namespace and container are empty if the file does not tell them.
type logKey struct {
	namespace, pod, container string
	previous                  bool
}

// logFiles are the files of logs.
type logFiles map[logKey]string

// add adds a file. A file that the user named replaces one that was found.
func (l logFiles) add(key logKey, path string, named bool) error {
	if key.pod == "" {
		return fmt.Errorf("%s: the name does not begin with that of a pod; use --log POD=%s", path, path)
	}
	if named {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("log of %s: %w", key.pod, err)
		}
		_ = file.Close()
	}
	if _, known := l[key]; !known || named {
		l[key] = path
	}
	return nil
}

// keyOf returns what a log is of, by its path: .../namespaces/NS/pods/POD/CONTAINER/CONTAINER/logs/current.log or previous.log, as
// oc adm inspect writes it, POD.log, POD_CONTAINER.log or POD-previous.log.
func keyOf(path string) logKey {
	parts := strings.Split(filepath.ToSlash(path), "/")
	name := strings.TrimSuffix(parts[len(parts)-1], ".log")
	if n := len(parts); n >= 8 && parts[n-2] == "logs" && parts[n-6] == "pods" && parts[n-8] == "namespaces" {
		return logKey{namespace: parts[n-7], pod: parts[n-5], container: parts[n-4], previous: strings.HasPrefix(name, "previous")}
	}
	name, previous := strings.CutSuffix(name, "-previous")
	pod, container, _ := strings.Cut(name, "_")
	return logKey{pod: pod, container: container, previous: previous}
}

// find returns the file with the log of a run; "" if there is none.
func (l logFiles) find(key logKey) string {
	for _, known := range []logKey{key, {pod: key.pod, container: key.container, previous: key.previous}, {pod: key.pod, previous: key.previous}} {
		if path, has := l[known]; has {
			return path
		}
	}
	return ""
}

// has reports whether there is a log of a pod.
func (l logFiles) has(namespace, pod string) bool {
	for key := range l {
		if key.pod == pod && (key.namespace == "" || key.namespace == namespace) {
			return true
		}
	}
	return false
}

// latest returns the latest of a time and those of the last lines.
func (l logFiles) latest(latest time.Time) time.Time {
	for _, path := range l {
		data, err := readEnd(path, 64<<10)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(data) {
			stamp, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
			if at, err := time.Parse(time.RFC3339Nano, string(stamp)); err == nil && at.After(latest) {
				latest = at
			}
		}
	}
	return latest
}

// readEnd reads the last bytes of a file, from the start of a line: of a secret in a line whose beginning is missing, the rest would not be
// recognized.
func readEnd(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	defer file.Close()
	isCut := false
	if info, err := file.Stat(); err == nil && info.Size() > most {
		// With the byte before them: a line may begin there.
		if _, err := file.Seek(-most-1, io.SeekEnd); err != nil {
			return nil, err //nolint:wrapcheck // as above
		}
		isCut = true
	}
	data, err := io.ReadAll(file)
	if _, lines, found := bytes.Cut(data, []byte("\n")); isCut && found {
		data = lines
	}
	return data, err //nolint:wrapcheck // as above
}

// logServer answers requests for logs.
type logServer struct {
	logFiles
	// waits reports whether a container waits to be started again: the API server then sends its previous log without being asked for it.
	waits func(namespace, pod, container string) bool
}

// getter returns what reads logs as the API server would send them.
func (l logServer) getter() (typedcore.PodsGetter, error) {
	server, err := typedcore.NewForConfigAndClient(&rest.Config{Host: "http://files.invalid"}, &http.Client{Transport: l})
	if err != nil {
		return nil, fmt.Errorf("set up reading logs: %w", err)
	}
	return server, nil
}

// RoundTrip answers a request for a log: GET /api/v1/namespaces/NS/pods/POD/log.
func (l logServer) RoundTrip(request *http.Request) (*http.Response, error) {
	parts := strings.Split(request.URL.Path, "/")
	query := request.URL.Query()
	answer := func(code int, body []byte) (*http.Response, error) {
		return &http.Response{
			StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
			Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	}
	at := slices.Index(parts, "namespaces")
	if at < 0 || len(parts) != at+5 || parts[at+2] != "pods" || parts[at+4] != "log" {
		return answer(http.StatusNotFound, nil)
	}
	key := logKey{namespace: parts[at+1], pod: parts[at+3], container: query.Get("container"), previous: query.Get("previous") == "true"}
	path := l.find(key)
	if path == "" && key.previous && l.waits(key.namespace, key.pod, key.container) {
		key.previous = false
		path = l.find(key)
	}
	if path == "" {
		return answer(http.StatusNotFound, nil)
	}
	const most = 2 << 20 // more than is kept of a log
	data, err := readEnd(path, most)
	if err != nil {
		return answer(http.StatusNotFound, nil)
	}
	return answer(http.StatusOK, data)
}
