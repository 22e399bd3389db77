package rootfs

import "testing"

func TestParseManifest(t *testing.T) {
	got, err := parseManifest([]byte(`[{"Config":"sha256:abc","RepoTags":["odh/sample:dev"],"Layers":["layer.tar.gz"]}]`))
	if err != nil || got.Config != "sha256:abc" || got.RepoTags[0] != "odh/sample:dev" || got.Layers[0] != "layer.tar.gz" {
		t.Errorf("got %+v and %v", got, err)
	}
	for name, text := range map[string]string{
		"no image":   `[]`,
		"two layers": `[{"Config":"sha256:abc","RepoTags":["odh/sample:dev"],"Layers":["a","b"]}]`,
		"no name":    `[{"Config":"sha256:abc","RepoTags":[],"Layers":["a"]}]`,
		"no JSON":    `manifest`,
	} {
		if _, err := parseManifest([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
