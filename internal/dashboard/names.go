package dashboard

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"opendatahub.io/mpijob/internal/jobs"
)

// objectName matches names that objects of Kubernetes can have. It is wider than the rules of each kind, which the API server
// checks; clients refuse other names before they send a request, with errors that do not tell whose fault it is.
var objectName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,252})$`)

// checkNames returns an error if the URL of a request names an object that cannot exist: by the placeholders of the route, or
// by the parameters that name namespaces and jobs. The kind of a job is left to its parser.
func checkNames(r *http.Request, path string) error {
	for segment := range strings.SplitSeq(path, "/") {
		placeholder, is := strings.CutPrefix(segment, "{")
		if !is {
			continue
		}
		placeholder = strings.TrimSuffix(placeholder, "}")
		if value := r.PathValue(placeholder); placeholder != "kind" && !objectName.MatchString(value) {
			return &badNameError{placeholder, value}
		}
	}
	values := r.URL.Query()
	var errs []jobs.FieldError
	for _, name := range list(values, "namespace") {
		if !objectName.MatchString(name) {
			errs = append(errs, jobs.FieldError{Field: "namespace", Value: name, Reason: nameRule})
		}
	}
	for _, reference := range list(values, "job") {
		if _, name, qualified := strings.Cut(reference, "/"); qualified && !objectName.MatchString(name) {
			errs = append(errs, jobs.FieldError{Field: "job", Value: reference, Reason: "is not KIND/NAME: the name " + nameRule})
		}
	}
	if len(errs) > 0 {
		return jobs.Invalid(errs...)
	}
	return nil
}

const nameRule = "cannot exist; names have up to 253 lowercase letters, digits, - and . and start with a letter or digit"

// badNameError is a placeholder of a URL with a name that no object can have.
type badNameError struct{ placeholder, value string }

func (e *badNameError) Error() string {
	const longest = 300
	value := e.value
	if len(value) > longest {
		value = value[:longest] + "..."
	}
	return fmt.Sprintf("the %s %q %s", e.placeholder, value, nameRule)
}

// refusedName matches the error of client-go about a name that cannot be part of a path. The bodies of requests are not
// checked by checkNames.
var refusedName = regexp.MustCompile(`invalid (namespace|resource name) "`)
