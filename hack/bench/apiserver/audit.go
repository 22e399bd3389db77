package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// auditPolicy has one line written per answered request of a service account. Leases are left out: they are
// renewed by the clock, whatever jobs there are.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  resources: [{group: coordination.k8s.io}]
- level: Metadata
  userGroups: [system:serviceaccounts]
- level: None
`

func (s *Server) auditLog() string { return filepath.Join(s.folder, "audit.log") }

// Answered is a request of a user that has been answered.
type Answered struct {
	// What is the verb and the resource, such as "create pods", Namespace that of the object.
	What, Namespace string
	// Received and At are when the API server received the request and answered it.
	Received, At time.Time
}

// Answered returns the requests that a user has made so far, in the order of the answers. The server must have been started with Audit.
func (s *Server) Answered(user string) ([]Answered, error) {
	var all []Answered
	err := s.readAudit(func(log io.Reader) error {
		return eachRequest(log, user, func(a Answered) { all = append(all, a) })
	})
	return all, err
}

// Requests counts the requests that a user has made so far, by verb and resource such as "create pods". Watches
// count when they end. The server must have been started with Audit.
func (s *Server) Requests(user string) (requests Requests, err error) {
	requests = Requests{}
	err = s.readAudit(func(log io.Reader) error {
		requests, err = countRequests(log, user)
		return err
	})
	return requests, err
}

// readAudit reads the audit log. There is none before the first request.
func (s *Server) readAudit(read func(io.Reader) error) error {
	log, err := os.Open(s.auditLog())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	defer func() { _ = log.Close() }()
	return read(log)
}

// Requests are numbers of requests by verb and resource.
type Requests map[string]int

// Total is the number of all requests.
func (r Requests) Total() int {
	total := 0
	for _, n := range r {
		total += n
	}
	return total
}

// Since is what has been added to an earlier count.
func (r Requests) Since(earlier Requests) Requests {
	added := Requests{}
	for _, what := range slices.Sorted(maps.Keys(r)) {
		if n := r[what] - earlier[what]; n > 0 {
			added[what] = n
		}
	}
	return added
}

// countRequests counts the requests of a user in an audit log.
func countRequests(log io.Reader, user string) (Requests, error) {
	requests := Requests{}
	err := eachRequest(log, user, func(a Answered) { requests[a.What]++ })
	if err != nil {
		return nil, err
	}
	return requests, nil
}

// eachRequest reads an audit log, JSON objects one after another. A last one that is still being written is
// left out.
func eachRequest(log io.Reader, user string, each func(Answered)) error {
	for decoder := json.NewDecoder(log); ; {
		var entry struct {
			Verb string `json:"verb"`
			User struct {
				Username string `json:"username"`
			} `json:"user"`
			Object struct {
				Namespace   string `json:"namespace"`
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
			} `json:"objectRef"`
			Received time.Time `json:"requestReceivedTimestamp"`
			At       time.Time `json:"stageTimestamp"`
		}
		switch err := decoder.Decode(&entry); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("read audit log: %w", err)
		case entry.User.Username != user:
			continue
		}
		what := entry.Verb + " " + entry.Object.Resource
		if entry.Object.Subresource != "" {
			what += "/" + entry.Object.Subresource
		}
		each(Answered{What: what, Namespace: entry.Object.Namespace, Received: entry.Received, At: entry.At})
	}
}
