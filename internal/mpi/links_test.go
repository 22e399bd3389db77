package mpi_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestParseLinks: only pages of the web are links, without credentials, and an error says what to write instead.
func TestParseLinks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text, wrong string
		want        []mpi.Link
	}{
		"none": {},
		"two": {
			text: "TensorBoard=https://tb.example.com/?run={name}\n MLflow=http://mlflow.example.com/#/experiments/7 ",
			want: []mpi.Link{{Title: "TensorBoard", Template: "https://tb.example.com/?run={name}"}, {Title: "MLflow", Template: "http://mlflow.example.com/#/experiments/7"}},
		},
		"a script":              {text: "TensorBoard=javascript:alert(1)", wrong: "start it with https://"},
		"a script with a host":  {text: "TensorBoard=javascript://example.com/%0aalert(1)", wrong: "start it with https://"},
		"data":                  {text: "TensorBoard=data:text/html,x", wrong: "start it with https://"},
		"no host":               {text: "TensorBoard=https:///run", wrong: "start it with https://"},
		"no title":              {text: "https://tb.example.com/?a=b", wrong: "write TITLE=URL"},
		"a title with a tag":    {text: "<b>=https://tb.example.com", wrong: "write TITLE=URL"},
		"a long title":          {text: strings.Repeat("x", 21) + "=https://tb.example.com", wrong: "at most 20"},
		"a password":            {text: "TensorBoard=https://me:secret@tb.example.com", wrong: "user name or password"},
		"a user by placeholder": {text: "TensorBoard=https://{name}@tb.example.com", wrong: "user name or password"},
		"an unknown field":      {text: "TensorBoard=https://tb.example.com/{pod}", wrong: "unknown placeholder {pod}"},
		"twice":                 {text: "a=https://x.example.com A=https://y.example.com", wrong: "is there twice"},
		"too many":              {text: "a=https://x b=https://x c=https://x d=https://x e=https://x", wrong: "at most 4"},
		"too long":              {text: "a=https://" + strings.Repeat("x", 600), wrong: "use at most 512"},
	} {
		links, err := mpi.ParseLinks(test.text)
		if test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) || test.wrong == "" && err != nil {
			t.Errorf("%s: the error is %v, want %q", name, err, test.wrong)
		}
		if diff := cmp.Diff(test.want, links); diff != "" {
			t.Errorf("%s: the links differ (-want +got):\n%s", name, diff)
		}
	}
}
