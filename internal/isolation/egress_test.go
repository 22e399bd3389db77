package isolation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/isolation"
	"opendatahub.io/mpijob/internal/mpi"
)

func TestParseEgress(t *testing.T) {
	tcp := func(e isolation.Egress, first, last int32) isolation.Egress {
		e.Port, e.EndPort, e.Protocol = first, last, corev1.ProtocolTCP
		return e
	}
	tests := map[string]struct {
		text string
		want []isolation.Egress
		errs []string
	}{
		"nothing":          {text: " , "},
		"a port":           {text: "2049", want: []isolation.Egress{tcp(isolation.Egress{}, 2049, 2049)}},
		"ports":            {text: "9000-9010", want: []isolation.Egress{tcp(isolation.Egress{}, 9000, 9010)}},
		"another protocol": {text: "514/UDP", want: []isolation.Egress{{Port: 514, EndPort: 514, Protocol: corev1.ProtocolUDP}}},
		"an address":       {text: "10.0.0.7:2049", want: []isolation.Egress{tcp(isolation.Egress{CIDR: "10.0.0.7/32"}, 2049, 2049)}},
		"a range":          {text: "10.0.0.0/8:111/udp", want: []isolation.Egress{{CIDR: "10.0.0.0/8", Port: 111, EndPort: 111, Protocol: corev1.ProtocolUDP}}},
		"IPv6":             {text: "[fd00::/8]:443,[fd00::7]:80", want: []isolation.Egress{tcp(isolation.Egress{CIDR: "fd00::/8"}, 443, 443), tcp(isolation.Egress{CIDR: "fd00::7/128"}, 80, 80)}},
		"all ports":        {text: "10.0.0.7,fd00::/8,[fd00::7],namespace/minio", want: []isolation.Egress{{CIDR: "10.0.0.7/32"}, {CIDR: "fd00::/8"}, {CIDR: "fd00::7/128"}, {Namespace: "minio"}}},
		"a namespace":      {text: "namespace/minio:9000", want: []isolation.Egress{tcp(isolation.Egress{Namespace: "minio"}, 9000, 9000)}},
		"what is right stays": {
			text: "0, 2049, 70000, 9-8, 80/http, https, 10.0.0.1/8:443, 10.0.0.300:80, namespace/A:1, namespace/:1, [fd00::7]443, 10.0.0.7:, -1, example.com:443",
			want: []isolation.Egress{tcp(isolation.Egress{}, 2049, 2049)},
			errs: []string{
				`"0": must have a port`, `"70000": must have a port`, `"9-8": must have a port`, `"80/http": must have tcp`, `"https": must have a port`,
				`"10.0.0.1/8:443": must have a range`, `"10.0.0.300:80": must have an address`, `"namespace/A:1": must name a namespace`,
				`"namespace/:1": must name a namespace`, `"[fd00::7]443": must have an address`, `"10.0.0.7:": must have a port`, `"-1": must have a port`,
				`"example.com:443": must have an address`,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, errs := isolation.ParseEgress(test.text)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("entries differ (-want +got):\n%s", diff)
			}
			if len(errs) != len(test.errs) {
				t.Fatalf("%d errors, want %d: %v", len(errs), len(test.errs), errs)
			}
			for i, err := range errs {
				if !strings.HasPrefix(err.Error(), test.errs[i]) {
					t.Errorf("error %d is %q, want %q…", i, err, test.errs[i])
				}
			}
		})
	}
}

// TestCheckEgress: an IPv6 address whose last group may be meant as a port is refused when it is written, and keeps its meaning
// where it was admitted.
func TestCheckEgress(t *testing.T) {
	for text, ambiguous := range map[string]bool{
		"fd00::1:2049": true, "10.0.0.0/8, 2001:db8::10:443": true, "::1:80": true,
		"[fd00::1]:2049": false, "[fd00::1:2049]": false, "fd00::7": false, "::1": false, "fd00::a:b": false, "2001:db8:0:0:0:0:0:443": false,
		"fd00::/8": false, "10.0.0.7:2049": false, "2049": false, "namespace/minio:9000": false, "fd00::1:99999": false,
	} {
		errs := isolation.CheckEgress(map[string]string{mpi.AnnotationAllowEgress: text})
		if _, wrong := isolation.ParseEgress(text); (len(errs) > len(wrong)) != ambiguous {
			t.Errorf("%s: %v", text, errs)
		}
	}
	errs := isolation.CheckEgress(map[string]string{mpi.AnnotationAllowEgress: "fd00::1:2049"})
	if want := `"fd00::1:2049": is ambiguous: write [fd00::1]:2049 for port 2049 of fd00::1, or [fd00::1:2049] for all ports of that address`; len(errs) != 1 || errs[0].Detail != want {
		t.Errorf("errors are %v", errs)
	}
}
