package dashboard

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
)

const (
	// maxUsers is how many users have clients at once. The one that was idle for longest makes room for another.
	maxUsers = 500
	// maxReviews is how many unknown tokens are verified at once.
	maxReviews = 64
	// maxRequests and maxUserRequests limit how many requests are in work at once, without streams.
	maxRequests, maxUserRequests = 512, 64
	// maxBodies and maxUserBodies limit the bodies of requests in work, in bytes. Decoding takes several times as much memory.
	maxBodies, maxUserBodies = 32 << 20, 2 * maxBody
	// maxStreams and maxUserStreams limit how many streams are open at once.
	maxStreams, maxUserStreams = 4000, 40
	// maxLogs and maxUserLogs limit the logs of pods that are read at once: each takes up to 160 KiB for what is under way.
	maxLogs, maxUserLogs = 2000, 1100
	// completeLogsWeight is how many logs of pods the complete logs of a job count as: with their index, 16 MiB.
	completeLogsWeight = 100
	// maxLogLines limits the bytes of lines that wait to be sent, and maxLogWindow what the API server sends of a log in advance.
	maxLogLines, maxLogWindow = 96 << 20, 64 << 10
)

// limiter limits how much is in use at once: in total, and by each user. The service accounts of a namespace are one user,
// because who may create one may create any number.
type limiter struct {
	what        string
	total, each int64

	mu     sync.Mutex
	used   int64
	byUser map[string]int64
}

func newLimiter(what string, total, each int64) *limiter {
	return &limiter{what: what, total: total, each: each, byUser: map[string]int64{}}
}

// acquire takes an amount for a user until release is called. It fails with busyError instead of waiting.
func (l *limiter) acquire(user string, amount int64) (release func(), err error) {
	user = limitedAs(user)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.byUser[user]+amount > l.each:
		return nil, &busyError{status: http.StatusTooManyRequests, message: fmt.Sprintf("you have too many %s at once; close pages that you do not need, or try again in a few seconds", l.what)}
	case l.used+amount > l.total:
		return nil, &busyError{status: http.StatusServiceUnavailable, message: fmt.Sprintf("the dashboard has too many %s at once; it continues in a few seconds", l.what)}
	}
	l.used += amount
	l.byUser[user] += amount
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.used -= amount
		if l.byUser[user] -= amount; l.byUser[user] == 0 {
			delete(l.byUser, user)
		}
	}, nil
}

// limitedAs returns what a user is limited as: service accounts as their namespace.
func limitedAs(user string) string {
	if account, is := strings.CutPrefix(user, serviceAccountPrefix); is {
		namespace, _, _ := strings.Cut(account, ":")
		return serviceAccountPrefix + namespace
	}
	return user
}

// serviceAccountPrefix begins the names of service accounts, which continue with NAMESPACE:NAME.
const serviceAccountPrefix = "system:serviceaccount:"

// busyError is a request that is refused because too much is in use. It may be repeated after some seconds.
type busyError struct {
	status  int
	message string
}

func (e *busyError) Error() string { return e.message }

// retryAfter is the value of the header Retry-After of requests that are refused, in seconds.
const retryAfter = "5"

const (
	// maxYAML is the maximum size of a job in YAML. As a string of JSON it is at most twice as large, apart from control
	// characters, which YAML does not allow.
	maxYAML   = 1 << 20
	maxBody   = 2*maxYAML + 64<<10
	maxHeader = 64 << 10
)
