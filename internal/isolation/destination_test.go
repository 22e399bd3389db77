package isolation_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/isolation"
)

var home = isolation.Home{Namespace: "team", ClusterDomain: "corp.local", OperatorNamespace: "mpijob-system"}

// TestEndpoints: what the policy of a job allows for an endpoint, and what it does not allow tenants to open.
func TestEndpoints(t *testing.T) {
	const (
		node    = "the address is one of the node, the network or the cloud itself"
		control = "is one of the cluster's control plane"
		cluster = "belongs to the cluster"
		name    = "has a host that is neither a DNS name nor an address"
	)
	selects := func(target int32) *isolation.Service { return &isolation.Service{Selects: true, TargetPort: target} }
	tests := map[string]struct {
		service   *isolation.Service
		want, err string
	}{
		// What is allowed.
		"http://minio.storage.svc:9000":                          {want: "namespace/storage:9000"},
		"http://minio.storage.svc:80":                            {selects(9000), "namespace/storage:9000", ""},
		"http://minio.storage.svc":                               {selects(0), "namespace/storage:80", ""},
		"https://minio.storage.svc":                              {selects(9443), "namespace/storage:9443", ""},
		"https://s3.storage.svc:9000":                            {selects(6443), "", ""},
		"http://minio.storage.svc.cluster.local.:9000/path?a=b#": {want: "namespace/storage:9000"},
		"HTTP://MinIO.Storage.svc.corp.local:9000":               {want: "namespace/storage:9000"},
		"minio.storage.svc:9000":                                 {want: "namespace/storage:9000"},
		"http://minio-0.minio.storage.svc:9000":                  {want: "namespace/storage:9000"},
		"http://minio.storage:9000":                              {selects(9000), "namespace/storage:9000", ""},
		"http://example.com:9000":                                {want: "namespace/com:9000,9000"},
		"http://unread.storage:9000":                             {want: "namespace/storage:9000,9000"},
		"http://unread.storage:2379":                             {want: "namespace/storage:2379"},
		"https://unread.storage":                                 {},
		"  http://s3.example.com:9000\n":                         {want: "9000"},
		"http://s3.example.com":                                  {want: "80"},
		"http://10.0.0.7:9000":                                   {want: "10.0.0.7/32:9000"},
		"http://[::ffff:10.0.0.7]:9000":                          {want: "10.0.0.7/32:9000"},
		"http://[fd00::7]:9000":                                  {want: "[fd00::7/128]:9000"},
		"http://user:hunter2@db.tools.svc:5432":                  {want: "namespace/tools:5432"},
		"http://ext.storage.svc:9000":                            {&isolation.Service{ExternalName: "s3.example.com"}, "9000", ""},
		"http://alias.team.svc:9000":                             {&isolation.Service{ExternalName: "minio.storage.svc.cluster.local"}, "namespace/storage:9000", ""},
		"http://outside.storage.svc:80":                          {&isolation.Service{TargetPort: 9000}, "9000", ""},
		"http://outside:80":                                      {&isolation.Service{TargetPort: 9000}, "9000", ""},
		// What all jobs may connect to.
		"https://s3.example.com":               {},
		"https://10.0.0.7:6443":                {},
		"https://s3.openshift-storage.svc":     {selects(6443), "", ""},
		"http://minio:9000":                    {},
		"http://minio.team:9000":               {},
		"http://minio.team.svc:80":             {selects(9000), "", ""},
		"http://kubernetes.default.svc:443":    {},
		"http://minio.team.svc.corp.local:900": {},
		// What names no host.
		"":                     {err: "names no host"},
		"s3://bucket/key":      {err: "names no host"},
		"pvc://claim/path":     {err: "names no host"},
		"minio.storage.svc":    {err: "names no host"},
		"http://:9000":         {err: "names no host"},
		"mailto:a@example.com": {err: "names no host"},
		// What a tenant may not open, in every spelling.
		"http://169.254.169.254":                    {err: node},
		"https://169.254.169.254":                   {err: node},
		"http://[::ffff:169.254.169.254]":           {err: node},
		"http://[::ffff:a9fe:a9fe]:80":              {err: node},
		"http://[::169.254.169.254]":                {err: node},
		"http://[64:ff9b::a9fe:a9fe]":               {err: node},
		"http://[64:ff9b:1::a9fe:a9fe]":             {err: node},
		"http://[2002:a9fe:a9fe::]":                 {err: node},
		"http://[fe80::1]:80":                       {err: node},
		"http://[fe80::1%25eth0]:80":                {err: "zone"},
		"http://[fd00:ec2::254]":                    {err: node},
		"http://168.63.129.16":                      {err: node},
		"http://100.100.100.200":                    {err: node},
		"http://127.0.0.1:2379":                     {err: node},
		"http://[::1]:80":                           {err: node},
		"http://localhost:9000":                     {err: node},
		"http://a.localhost.:9000":                  {err: node},
		"http://0.0.0.0:9000":                       {err: node},
		"http://0.1.2.3:9000":                       {err: node},
		"http://[::]:9000":                          {err: node},
		"http://224.0.0.1:9000":                     {err: node},
		"http://255.255.255.255:9000":               {err: node},
		"http://[ff02::1]:9000":                     {err: node},
		"http://2852039166":                         {err: name},
		"http://0xa9fea9fe":                         {err: name},
		"http://127.1:9000":                         {err: name},
		"http://0251.0376.0251.0376":                {err: name},
		"http://a.0x1:9000":                         {err: name},
		"http://169.254.169.254.:80":                {err: name},
		"http://minio_1.storage.svc:9000":           {err: name},
		"http://ⓜinio.storage.svc:9000":             {err: name},
		"http://a..b:9000":                          {err: name},
		"http://minio.storage.svc:0":                {err: "has a port"},
		"http://minio.storage.svc:65536":            {err: "has a port"},
		"http://minio.storage.svc:99999999999999":   {err: "has a port"},
		"http://minio.storage.svc:-1":               {err: "is no URL"},
		"http://minio.storage.svc:9000;22":          {err: "is no URL"},
		"http://minio.storage.svc:9000,namespace/x": {err: "is no URL"},
		"http://a b:9000":                           {err: "is no URL"},
		"http://%31%32:9000":                        {err: "is no URL"},
		"http://etcd.kube-system.svc:9000":          {err: cluster},
		"http://etcd.kube-system:9000":              {err: cluster},
		"http://api.openshift-apiserver.svc:8443":   {err: cluster},
		"http://rgw.openshift-storage.svc:80":       {selects(8080), "", cluster},
		"http://operator.mpijob-system.svc:8081":    {err: cluster},
		"http://node.kube-system.svc:9000":          {&isolation.Service{}, "", cluster},
		"http://alias.storage.svc:9000":             {&isolation.Service{ExternalName: "etcd.kube-system.svc"}, "", cluster},
		"http://local.team.svc:9000":                {&isolation.Service{ExternalName: "localhost"}, "", node},
		"http://10.0.0.1:10250":                     {err: control},
		"http://etcd.example.com:2379":              {err: control},
		"http://selfmade.team.svc:80":               {&isolation.Service{TargetPort: 10250}, "", control},
		"http://etcd:2379":                          {&isolation.Service{ExternalName: "etcd.example.com"}, "", control},
		"http://" + strings.Repeat("a", 3000):       {err: "longer than"},
	}
	for text, test := range tests {
		t.Run(text[:min(len(text), 60)], func(t *testing.T) {
			d, err := isolation.ParseDestination(text, home)
			var entries []isolation.Egress
			if err == nil {
				entries, err = d.EgressFor(test.service, home)
			}
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("%v, %v, want the error %q", entries, err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := isolation.Endpoints{"data": entries}
			if want := "data=" + test.want; got.String() != want {
				t.Errorf("it allows %q, want %q", got, want)
			}
			if diff := cmp.Diff(got.String(), isolation.ParseEndpoints(got.String(), home).String()); diff != "" {
				t.Errorf("the annotation is read otherwise (-written +read):\n%s", diff)
			}
			if strings.Contains(d.String(), "hunter2") {
				t.Errorf("it shows the password: %s", d)
			}
		})
	}
}

// TestEndpointsOfConnections: only hosts and ports are taken from Secrets.
func TestEndpointsOfConnections(t *testing.T) {
	found := isolation.EndpointsOf("data", map[string][]byte{
		"AWS_SECRET_ACCESS_KEY": []byte("http://a.b.svc:1"),
		"AWS_S3_ENDPOINT":       []byte("http://me:hunter2@minio.storage.svc:9000/hunter2?hunter2#hunter2"),
		"AWS_ENDPOINT_URL":      []byte("http://hunter2 :9000"),
		"URI":                   []byte("s3://hunter2/hunter2"),
	}, home)
	var got []string
	for _, endpoint := range found {
		got = append(got, endpoint.Key+" "+endpoint.String())
		if text := endpoint.RefusalWarning(nil, home, nil); strings.Contains(text, "hunter2") {
			t.Errorf("a value is shown: %s", text)
		}
	}
	if diff := cmp.Diff([]string{"AWS_S3_ENDPOINT minio.storage.svc:9000", "AWS_ENDPOINT_URL :0"}, got); diff != "" {
		t.Errorf("the endpoints differ (-want +got):\n%s", diff)
	}
}

// TestRefusedEndpoints: the warning names what would allow the endpoint, unless it is one that nobody should allow.
func TestRefusedEndpoints(t *testing.T) {
	allowed, _ := isolation.ParseEgress("namespace/openshift-monitoring:9090,10.0.0.9:10250")
	for text, test := range map[string]struct {
		service *isolation.Service
		want    string
	}{
		"http://rgw.openshift-storage.svc:80":      {&isolation.Service{Selects: true, TargetPort: 8080}, "add namespace/openshift-storage:80, with the port of its pods, to"},
		"http://etcd.kube-system:9000":             {nil, "add namespace/kube-system:9000, with the port of its pods, to"},
		"http://10.0.0.1:10250":                    {nil, "port 10250 is one of the cluster's control plane; to use it, ask an administrator to add 10.0.0.1/32:10250 to"},
		"http://169.254.169.254":                   {nil, "because the address is one of the node, the network or the cloud itself"},
		"http://10.0.0.9:10250":                    {},
		"http://prom.openshift-monitoring.svc:900": {service: &isolation.Service{Selects: true, TargetPort: 9090}},
		"http://localhost:9000":                    {nil, "the endpoint localhost:9000 is a loopback address"},
		"http://127.0.0.1:2379":                    {nil, "the endpoint 127.0.0.1:2379 is a loopback address"},
		"http://[::1]:2379":                        {nil, "the endpoint [::1]:2379 is a loopback address"},
		"http://[::1]":                             {nil, "the endpoint [::1]:80 is a loopback address"},
		"http://local:9000":                        {&isolation.Service{ExternalName: "localhost"}, "the endpoint local:9000 is a loopback address"},
		"http://minio.storage:2379":                {},
		"http://minio.storage.svc:9000":            {},
		"http://a b:9000":                          {nil, "the endpoint is no URL; the job's NetworkPolicy is not changed for it"},
	} {
		found := isolation.EndpointsOf("data", map[string][]byte{"URI": []byte(text)}, home)
		if got := found[0].RefusalWarning(test.service, home, allowed); !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
			t.Errorf("%s: the warning is %q, want %q", text, got, test.want)
		}
	}
}

// TestEndpointsWrittenByHand: an annotation of a policy that a user has changed opens nothing that no endpoint opens.
func TestEndpointsWrittenByHand(t *testing.T) {
	text := "a=namespace/storage:9000,namespace/storage,9000-9010,0.0.0.0/0:80,169.254.169.254:80,10.0.0.7:9000;b=namespace/kube-system:80,2379,[fe80::1]:80,514/udp,10.0.0.0/8;c=;nonsense;d=9000,9000"
	want := "a=namespace/storage:9000,10.0.0.7/32:9000;b=;c=;d=9000"
	got := isolation.ParseEndpoints(text, home)
	if got.String() != want {
		t.Errorf("it is read as %q, want %q", got, want)
	}
	if all := got.All(); len(all) != 3 {
		t.Errorf("it has the destinations %v", all)
	}
}
