package dashboard

import "net/http"

// protect refuses requests that pages of other sites make with the login of a user (cross-site request forgery, CSRF).
func protect(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusForbidden, Problem{Code: "Forbidden", Message: "requests from pages of other sites are not allowed"})
	}))
	return protection.Handler(next)
}
