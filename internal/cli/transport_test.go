package cli

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// TestShareConnection: requests that start together use one connection, also after a first one that fails.
func TestShareConnection(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	get := func(c *http.Client, url string) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := c.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	for name, prepare := range map[string]func(*testing.T, *http.Client){
		"at once": func(*testing.T, *http.Client) {},
		"after a request that fails": func(t *testing.T, c *http.Client) {
			if err := get(c, "https://127.0.0.1:1"); err == nil {
				t.Error("a request to a closed port succeeded")
			}
			if err := get(c, server.URL); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			opened.Store(0)
			// Another name is another key in client-go's cache of connections.
			config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true, ServerName: map[bool]string{true: "first.example.com", false: "example.com"}[name == "at once"]}}
			shareConnection(config)
			c, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			prepare(t, c)
			var requests sync.WaitGroup
			for range 8 {
				requests.Go(func() {
					if err := get(c, server.URL); err != nil {
						t.Error(err)
					}
				})
			}
			requests.Wait()
			if n := opened.Load(); n != 1 {
				t.Errorf("8 requests opened %d connections, want 1", n)
			}
		})
	}
}
