package logs_test

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/logs"
)

const (
	jwt  = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJlLW9mLXRva2Vu"
	body = "MIIEpAIBAAKCAQEA1c7+9z5Pad7OejecsQ0buSo3Y2Lk1Zk9mD3Lw6r0X2yq4v5T"
)

func TestMaskHidesSecrets(t *testing.T) {
	tests := map[string]struct{ line, secret string }{
		"bearer":               {"Authorization: Bearer abcdef1234567890", "abcdef1234567890"},
		"bearer alone":         {"got header bearer abcdef1234567890", "abcdef1234567890"},
		"basic":                {`{"Authorization": "Basic dXNlcjpzZWNyZXQ="}`, "dXNlcjpzZWNyZXQ="},
		"aws signature":        {"Authorization: AWS4-HMAC-SHA256 Credential=AKIA/x, SignedHeaders=host, Signature=fe5f80f77d5fa3be", "fe5f80f77d5fa3be"},
		"jwt":                  {"token is " + jwt + ", as you see", jwt},
		"password":             {"password=hunter2", "hunter2"},
		"password of digits":   {"DB_PASSWORD=12345678", "12345678"},
		"password with colon":  {"password: hunter2", "hunter2"},
		"password in json":     {`{"user": "me", "password": "hun\"ter2", "host": "db"}`, `ter2`},
		"password in python":   {`{'user': 'me', 'password': 'hunter2'}`, "hunter2"},
		"nested json":          {`{"body": "{\"password\": \"hunter2\"}"}`, "hunter2"},
		"flag":                 {"python train.py --password hunter2 --epochs 3", "hunter2"},
		"flag in quotes":       {`train --api-key "very secret key" --epochs 3`, "very secret key"},
		"flag with equals":     {"train --hf-token=abcdefgh", "abcdefgh"},
		"pwd":                  {"Server=db;Uid=me;Pwd=hunter2;", "hunter2"},
		"url":                  {"connecting to postgres://me:hunter2@db:5432/x", "hunter2"},
		"url without user":     {"redis://:hunter2@cache:6379", "hunter2"},
		"git url":              {"Cloning https://ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@github.com/a/b", "ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
		"signed url":           {"GET https://x.blob.core.windows.net/a?sv=2024&sig=abc%2Fdef%3D&se=1", "abc%2Fdef%3D"},
		"presigned s3":         {"https://s3/x?X-Amz-Credential=AKIDEXAMPLE&X-Amz-Signature=fe5f80f77d5f", "fe5f80f77d5f"},
		"aws key":              {"using AKIAIOSFODNN7EXAMPLE now", "AKIAIOSFODNN7EXAMPLE"},
		"aws secret":           {"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"},
		"aws credentials":      {"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"},
		"hugging face":         {"HF_TOKEN is hf_abcdefghijklmnopqrstuvwxyzABCDEF", "hf_abcdefghij"},
		"github":               {"remote: ghs_abcdefghijklmnopqrstuvwxyz0123456789", "ghs_abcdef"},
		"github fine grained":  {"github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz", "github_pat_11"},
		"gitlab":               {"glpat-abcdefghij0123456789", "glpat-abc"},
		"openai":               {"key sk-proj-abcdefghijklmnopqrstuvwx", "abcdefghijklmnop"},
		"google":               {"key=AIzaSyA1234567890abcdefghijklmnopqrstuv", "AIzaSy"},
		"slack":                {"xoxb-123456789012-abcdefghijkl", "xoxb-1234"},
		"openshift":            {"oc login --token sha256~abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG", "sha256~abc"},
		"wandb":                {"wandb: login with 0123456789abcdef0123456789abcdef01234567", "0123456789abcdef"},
		"environment":          {"export MY_SERVICE_API_KEY='abc def'", "abc def"},
		"yaml":                 {"  clientSecret: s3cr3tvalue", "s3cr3tvalue"},
		"tagged by mpirun":     {"[1,3]<stderr>: api_key=abcdef", "abcdef"},
		"aws configure":        {"+ aws configure set aws_secret_access_key wJalrXUtnFEMIbPxRfiCY --profile x", "wJalrXUtnFEMIbPxRfiCY"},
		"aws session token":    {"aws --profile x configure set profile.x.aws_session_token FwoGZXIvYXdzEXAMPLE", "FwoGZXIvYXdzEXAMPLE"},
		"xml":                  {"<user>me</user><password>hunter2</password>", "hunter2"},
		"xml with a prefix":    {`<wsse:Password Type="text">hunter2</wsse:Password>`, "hunter2"},
		"curl":                 {"+ curl -u me:hunter2 https://x", "hunter2"},
		"no blank after colon": {"password:hunter2x", "hunter2x"},
		"password with commas": {"password=a,b;c&hunter2", "hunter2"},
		"password with quotes": {`password=a"hunter2`, "hunter2"},
		"password in brackets": {`"password": "[hunter2]"`, "hunter2"},
		"prefixed name":        {"PGPASSWORD=hunter2", "hunter2"},
		"camel case":           {`"dbPassword":"hunter2"`, "hunter2"},
		"camel case token":     {"hfToken: a1b2c3d4", "a1b2c3d4"},
		"bytes of python":      {"password=b'hunter2'", "hunter2"},
		"quotes in quotes":     {`sh -c "export TOKEN=\'a1b2c3d4\'"`, "a1b2c3d4"},
		"list of arguments":    {`args: ["--password", "hunter2"]`, "hunter2"},
		"arguments of python":  {`['train', '--token', 'a1b2c3d4']`, "a1b2c3d4"},
		"flag with a dash":     {"--password -hunter2", "hunter2"},
		"number that is a key": {`{"secret": 12345678}`, "12345678"},
		"azure storage":        {"AccountName=a;AccountKey=YWJjZGVm/Zw==;EndpointSuffix=core", "YWJjZGVm"},
		"azure shared access":  {"SharedAccessKey=YWJjZGVmZw==", "YWJjZGVm"},
		"azure secret":         {"abc8Q~abcdefghijklmnopqrstuvwxyz0123456", "abcdefghij"},
		"signing key":          {"SIGNING_KEY: a1b2c3d4", "a1b2c3d4"},
		"header":               {`-H "X-API-KEY:a1b2c3d4"`, "a1b2c3d4"},
		"digest":               {`Authorization: Digest username="me", response="6629fae49393a05397450978507c4ef1"`, "6629fae4"},
		"cookie":               {"Set-Cookie: session=a1b2c3d4; Path=/", "a1b2c3d4"},
		"docker login":         {"docker login -u me -p hunter2", "hunter2"},
		"docker config":        {`{"auths":{"quay.io":{"auth":"bWU6aHVudGVyMmh1bnRlcg=="}}}`, "bWU6aHVudGVy"},
		"netrc":                {"machine h login me password hunter", "hunter"},
		"sshpass":              {"sshpass -p hunter2 ssh host", "hunter2"},
		"mysql":                {"mysql -uroot -phunter2 db", "hunter2"},
		"database with slash":  {"postgres://me:hun/ter2@db/x", "ter2"},
		"key of a query":       {"https://maps/x?key=a1b2c3d4e5f6g7h8i9", "a1b2c3d4"},
		"slack hook":           {"https://hooks.slack.com/services/T0/B0/a1b2c3d4", "a1b2c3d4"},
		"nvidia":               {"nvapi-abcdefghijklmnopqrstuvwxyz", "abcdefghij"},
		"vault":                {"using hvs.abcdefghijklmnopqrstuvwxyz now", "abcdefghij"},
		"databricks":           {"dapi0123456789abcdef0123456789abcdef", "0123456789abcdef"},
		"stripe":               {"sk_live_abcdefghijklmnopqrstuvwxyz", "abcdefghij"},
		"sentence":             {"the password is hunter2", "hunter2"},
		"dockerfile":           {"ENV API_KEY a1b2c3d4", "a1b2c3d4"},
		"cut url":              {"postgres://me:hunter2…", "hunter2"},
		"cut key":              {"hf_abcdef…", "abcdef"},
		"credentials":          {"CREDS=me:pw123456", "pw123456"},
		"own credentials":      {"MY_CREDS=me:pw123456", "pw123456"},
		"credentials in JSON":  {`{"aws_cred": "me:pw123456"}`, "pw123456"},
		"key of a service":     {"KAGGLE_KEY=0123456789abcdef0123456789abcdef", "0123456789abcdef"},
		"short key":            {"MY_KEY=pw123456", "pw123456"},
		"key as a flag":        {"train --kaggle-key a1b2c3d4e5 --epochs 3", "a1b2c3d4e5"},
		"key on one line":      {`key: "-----BEGIN RSA PRIVATE KEY-----\n` + body + `\n-----END RSA PRIVATE KEY-----\n"`, body},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := logs.Masker{}.Line(test.line)
			if strings.Contains(got, test.secret) {
				t.Errorf("the secret shows: %q", got)
			}
			if !strings.Contains(got, logs.Masked) {
				t.Errorf("it does not show that something is masked: %q", got)
			}
			if again := (logs.Masker{}).Line(got); again != got {
				t.Errorf("masking again changes %q to %q", got, again)
			}
		})
	}
}

func TestMaskLeavesTheRest(t *testing.T) {
	for _, line := range []string{
		"epoch=3 step=1200 loss=0.123 tokens=51200 max_tokens=4096 tokens_per_second: 1234.5",
		`{"epoch": 3, "token": 5, "loss": 0.25}`,
		`tokenizer_config: {"pad_token": "<pad>", "mask_token": "[MASK]", "unk_token": "<unk>"}`,
		"pad_token=<pad> eos_token: </s>",
		"Loading tokenizer from /models/llama/tokenizer.json",
		`secret "s3-credentials" not found`,
		`MountVolume.SetUp failed for volume "hf-token" : secret "huggingface-token" not found`,
		`MountVolume.SetUp failed for volume "api-key" : configmap "keys" not found`,
		`MountVolume.SetUp failed for volume "credentials" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client`,
		`MountVolume.SetUp failed for volume "credentials" : rpc error: code = Unknown`,
		"ssh: connect to host pi-worker-0.pi.ns.svc port 2222: Connection refused",
		"me@pi-worker-0: Permission denied (publickey,password).",
		"KeyError: 'password'",
		"image quay.io/team/train@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"http://localhost:8080/path?x=1 and https://github.com/a/b",
		"commit 0123456789abcdef0123456789abcdef01234567",
		"PWD=/workspace/train",
		"File \"/app/train.py\", line 41, in load_keys",
		"sort_key=name primary keys: 3",
		"SORT_KEY=created_at CACHE_KEY=run-2026-01 PUBLIC_KEY=MCowBQYDK2VwAyEA1234 --partition-key user_id_2",
		"LABEL_KEY=topology.kubernetes.io/zone DATA_KEY=features STEP_KEY=12345678 LAST_KEY=1234567890",
		"SSL_KEY_FILE=/etc/tls/tls2.key KEY_FILE=/keys/a1b2c3d4 TLS_KEY=/etc/tls1/tls.key MODEL_KEY=models/v12/weights",
		"rng_key=Array([0, 42], dtype=uint32) missing_key: encoder.layers.12.weight my_key=$(cat /run/k1) my_key=${K1234567}",
		"CREDS=/var/run/secrets/creds.json sacred: me1234567 creds: ok",
		"mpirun -np 8 --hostfile /etc/mpi/hostfile -x LD_LIBRARY_PATH python train.py",
		"no password is needed; keys are made by the operator",
		"SyntaxError: unexpected token: identifier",
		"Authorization: denied by policy",
		"password: None token=None secret=null",
		"docker run -u 1000:1000 image",
		"credentials: ok, secret: pi-ssh",
		"GOOGLE_APPLICATION_CREDENTIALS=/var/run/secrets/gcp.json --token-file /x --num-tokens 5",
		"password=${DB_PASSWORD} token=$(HF_TOKEN)",
		"task-scheduler-with-a-long-name-here basic understanding of the bearer of bad news",
		"next_token=17 image_token=<image> bos_token: <|endoftext|>",
		"forward_pass=0.3s bypass=1 token classification: ner",
		"password authentication failed for user",
		"docker://registry:5000/team/train@sha256:0123456789abcdef s3://bucket/key git@github.com:a/b.git",
		"",
	} {
		if got := (logs.Masker{}).Line(line); got != line {
			t.Errorf("%q became %q", line, got)
		}
	}
}

func TestMaskKeysOverSeveralLines(t *testing.T) {
	key := []string{"-----BEGIN OPENSSH PRIVATE KEY-----", body, body[:32] + "==", "-----END OPENSSH PRIVATE KEY-----"}
	whole := append(append([]string{"reading the key"}, key...), "epoch=1")
	tests := map[string]struct {
		lines []string
		shown string
	}{
		"whole":                   {whole, "reading the key"},
		"end only":                {whole[2:], "epoch=1"},
		"begin only":              {append(append([]string{}, whole[:3]...), "epoch=1 of a program whose key was cut"), "whose key was cut"},
		"tagged":                  {[]string{"[1,0]<stdout>: -----BEGIN RSA PRIVATE KEY-----", "[1,0]<stdout>: " + body, "[1,0]<stdout>: -----END RSA PRIVATE KEY-----", "epoch=1"}, "epoch=1"},
		"between ranks":           {[]string{"[1,0]<stdout>:-----BEGIN RSA PRIVATE KEY-----", "[1,1]<stdout>:epoch 3 is done", "[1,0]<stdout>:" + body, "[1,0]<stdout>:-----END RSA PRIVATE KEY-----"}, "epoch 3 is done"},
		"of two ranks":            {[]string{"[1,0]<stdout>:-----BEGIN RSA PRIVATE KEY-----", "[1,1]<stdout>:-----BEGIN RSA PRIVATE KEY-----", "[1,0]<stdout>:" + body, "[1,0]<stdout>:-----END RSA PRIVATE KEY-----", "[1,1]<stdout>:" + body, "[1,1]<stdout>:-----END RSA PRIVATE KEY-----", "epoch=1"}, "epoch=1"},
		"one without an end":      {[]string{"-----BEGIN PRIVATE KEY-----", body, "-----BEGIN PRIVATE KEY-----", body, "-----END PRIVATE KEY-----", "epoch 1 is done"}, "epoch 1 is done"},
		"end only, between ranks": {[]string{body, "epoch 3 is done", body, "-----END PRIVATE KEY-----"}, "epoch 3 is done"},
		"in a program":            {[]string{`"-----BEGIN PRIVATE KEY-----\n" +`, `"` + body + `\n" +`, `"-----END PRIVATE KEY-----"; go()`}, "go()"},
		"logged":                  {[]string{"10:00 INFO -----BEGIN PRIVATE KEY-----", "10:00 INFO " + body, "10:00 INFO -----END PRIVATE KEY-----"}, "10:00 INFO"},
		"one after another":       {[]string{"-----BEGIN PRIVATE KEY-----", body, "-----END PRIVATE KEY----------BEGIN PRIVATE KEY-----", body, "-----END PRIVATE KEY-----", "epoch=1"}, "epoch=1"},
		"old headers":             {[]string{"-----BEGIN RSA PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,AB", "", body, "-----END RSA PRIVATE KEY-----", "epoch=1"}, "epoch=1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(logs.Masker{}.Lines(test.lines), "\n")
			if strings.Contains(got, body[:32]) {
				t.Errorf("the key shows:\n%s", got)
			}
			if !strings.Contains(got, test.shown) {
				t.Errorf("%q is masked too:\n%s", test.shown, got)
			}
		})
	}
}

func TestMaskWithPatternsOfOnesOwn(t *testing.T) {
	masker, err := logs.NewMasker([]string{`badge (\d+)`, `INTERNAL-\w+`})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := masker.Line("badge 4711 of INTERNAL-abc, badge 42"), "badge **** of ****, badge ****"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, err = logs.NewMasker([]string{"(", "fine", "[z-a]", "x*"})
	for _, wrong := range []string{`"("`, `"[z-a]"`, `"x*"`} {
		if err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("the pattern %s, which is none, gives %v", wrong, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "fine") {
		t.Errorf("a pattern that is one gives %v", err)
	}
}

func FuzzMask(f *testing.F) {
	f.Add("password: ", "hunter2x")
	f.Add("-----BEGIN RSA PRIVATE KEY-----\n", "abc")
	f.Add(`{"token": "`, `\"`)
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "S3cretValueOfTheTest"
		lines := strings.Split(before+"\npassword="+secret+" "+after, "\n")
		got := logs.Masker{}.Lines(lines)
		if len(got) != len(lines) {
			t.Fatalf("%d lines became %d", len(lines), len(got))
		}
		if strings.Contains(strings.Join(got, "\n"), secret) {
			t.Errorf("the secret shows: %q", got)
		}
	})
}
