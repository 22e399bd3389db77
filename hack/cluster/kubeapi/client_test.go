package kubeapi

import (
	"errors"
	"fmt"
	"testing"
)

func TestDenied(t *testing.T) {
	tests := map[string]struct {
		err  error
		want bool
	}{
		"no":             {&StatusError{403, `admission webhook "v.example.com" denied the request: no such runtime`}, true},
		"no, wrapped":    {fmt.Errorf("create: %w", &StatusError{403, `admission webhook "v.example.com" denied the request: no`}), true},
		"no answer":      {&StatusError{500, `Internal error occurred: failed calling webhook "v.example.com": connection refused`}, false},
		"forbidden":      {&StatusError{403, `jobs is forbidden: User "x" cannot create resource`}, false},
		"no API server":  {errors.New("connection refused"), false},
		"it is accepted": {nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Denied(test.err); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
