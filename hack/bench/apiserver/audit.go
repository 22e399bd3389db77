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

// Requests counts the requests that a user has made so far, by verb and resource such as "create pods". Watches
// count when they end. The server must have been started with Audit.
func (s *Server) Requests(user string) (Requests, error) {
	log, err := os.Open(s.auditLog())
	if errors.Is(err, os.ErrNotExist) {
		return Requests{}, nil // no request was made yet
	}
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	defer func() { _ = log.Close() }()
	return countRequests(log, user)
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

// countRequests reads an audit log, JSON objects one after another. A last one that is still being written is
// left out.
func countRequests(log io.Reader, user string) (Requests, error) {
	requests := Requests{}
	for decoder := json.NewDecoder(log); ; {
		var entry struct {
			Verb string `json:"verb"`
			User struct {
				Username string `json:"username"`
			} `json:"user"`
			Object struct {
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
			} `json:"objectRef"`
		}
		switch err := decoder.Decode(&entry); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return requests, nil
		case err != nil:
			return nil, fmt.Errorf("read audit log: %w", err)
		case entry.User.Username != user:
			continue
		}
		what := entry.Verb + " " + entry.Object.Resource
		if entry.Object.Subresource != "" {
			what += "/" + entry.Object.Subresource
		}
		requests[what]++
	}
}
