package certs

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
)

// WriteKubeconfig writes a kubeconfig with everything inside, so that it can
// be copied elsewhere: server is the API server's URL, ca its authority's
// name and user the name of a client certificate. A file that has this
// content already is not touched.
func (s Store) WriteKubeconfig(path, server, ca, user string) error {
	var encoded [3]string
	for i, file := range []string{s.Cert(ca), s.Cert(user), s.Key(user)} {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("kubeconfig %s: %w", path, err)
		}
		encoded[i] = base64.StdEncoding.EncodeToString(content)
	}
	content := fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: mpijob
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: %s
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: mpijob
  context:
    cluster: mpijob
    user: %s
current-context: mpijob
`, server, encoded[0], user, encoded[1], encoded[2], user)
	if now, err := os.ReadFile(path); err == nil && bytes.Equal(now, content) {
		return nil
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return nil
}
