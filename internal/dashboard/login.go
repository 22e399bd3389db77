package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/version"
)

// Me is the user who is logged in.
type Me struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Program is how the command line is called in the commands that pages show.
	Program string `json:"program"`
	// CanLogOut is set if the dashboard holds the login, and not a proxy.
	CanLogOut bool `json:"canLogOut"`
	// CreateAnywhere is set if the user may create MPIJobs in all namespaces.
	CreateAnywhere bool `json:"createAnywhere"`
}

// Login is a login with a bearer token.
type Login struct {
	Token string `json:"token"`
}

// maxToken is the length of a token that fits a cookie.
const maxToken = 3800

// logIn keeps a token in a cookie that no script can read, if the API server accepts the token.
func (s *Server) logIn(w http.ResponseWriter, r *http.Request) {
	var login Login
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 8<<10)).Decode(&login); err != nil {
		writeProblem(w, http.StatusUnprocessableEntity, Problem{Code: "Invalid", Message: "the request is not a login"})
		return
	}
	token := strings.TrimSpace(login.Token)
	if len(token) > maxToken || !bearer.MatchString(token) {
		writeProblem(w, http.StatusUnprocessableEntity, Problem{Code: "Invalid", Message: "this is not a token; copy the whole output of oc whoami --show-token"})
		return
	}
	user, err := s.users.find(r.Context(), token)
	if err == nil {
		_, err = user.identify(r.Context())
	}
	switch {
	case apierrors.IsUnauthorized(err):
		writeProblem(w, http.StatusUnauthorized, Problem{Code: "Unauthorized", Message: "the cluster does not accept this token; it may have expired"})
		return
	case err != nil:
		writeError(w, r, err)
		return
	}
	http.SetCookie(w, loginCookie(token))
	w.WriteHeader(http.StatusNoContent)
}

// logOut removes the cookie, and the token at the API server if it is one of OpenShift's logins.
func (s *Server) logOut(w http.ResponseWriter, r *http.Request) {
	cookie := loginCookie("")
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
	result := ActionResult{"LoggedOut", "You are logged out."}
	if credential, found := credentialOf(r, s.options.TrustProxy); found && credential.ours {
		result.Message += " " + s.users.revoke(r.Context(), credential.token)
	}
	writeJSON(w, http.StatusOK, result)
}

// revoke deletes a token at the API server. It returns the result as a sentence.
func (u *users) revoke(ctx context.Context, token string) string {
	u.forget(sha256.Sum256([]byte(token)))
	// The name of an OAuthAccessToken is the hash of what follows the prefix (github.com/openshift/oauth-apiserver).
	const prefix = "sha256~"
	secret, is := strings.CutPrefix(token, prefix)
	if !is {
		return "The token stays valid until it expires: the cluster cannot revoke this type of token."
	}
	hash := sha256.Sum256([]byte(secret))
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	select {
	case u.gate <- struct{}{}:
		defer func() { <-u.gate }()
		request := u.verifier.RESTClient().Delete().AbsPath("/apis/oauth.openshift.io/v1/oauthaccesstokens", prefix+base64.RawURLEncoding.EncodeToString(hash[:]))
		err := request.SetHeader("Authorization", "Bearer "+token).MaxRetries(0).Do(ctx).Error()
		if err == nil || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) && !jobs.IsNotInstalled(err) {
			return "Your token is not valid any more."
		}
	default:
	}
	return "Your token could not be deleted and is valid until it expires; to delete it, log in with oc and that token, and run oc logout."
}

func loginCookie(token string) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: token, Path: "/", HttpOnly: true, Secure: true, SameSite: http.SameSiteStrictMode}
}

// me returns who is logged in.
func (s *Server) me(c *call) (any, error) {
	name, err := c.identify(c.ctx)
	if err != nil {
		return nil, err
	}
	everywhere, err := c.may(c.ctx, "create", resourceOf(jobs.Kinds()[0]).GroupResource(), "")
	if err != nil {
		return nil, fmt.Errorf("read rights: %w", err)
	}
	credential, _ := credentialOf(c.Request, s.options.TrustProxy)
	return Me{Name: name, Version: version.Get().Version, Program: s.options.Program, CanLogOut: credential.ours, CreateAnywhere: everywhere}, nil
}
