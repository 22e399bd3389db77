package dashboard

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// Output is where a job can store results.
type Output struct {
	// Title is the kind of storage with its name, Where the folder or the address there.
	Title string `json:"title"`
	Where string `json:"where"`
	// Named is set if the job names it as the place of its results.
	Named bool `json:"named,omitempty"`
	// Command copies or lists the results.
	Command string `json:"command"`
}

// outputVariable is the variable with the folder for results, as the command line and the SDK set it.
const outputVariable = "OUTPUT_DIR"

// storage is what the specification of a job contains about its storage, wherever its kind keeps pod templates.
type storage struct {
	claims map[string]string // by the names of volumes
	mounts []mount
	folder string // the value of outputVariable
	image  string
	texts  []string // commands and arguments
}

type mount struct {
	volume, path, subPath string
	readOnly              bool
}

// outputsOf returns where a job can store results: the folder that it names, other claims that it can write to, and its data
// connections. It does not read claims or Secrets.
func outputsOf(job jobs.Job) []Output {
	outputs := []Output{}
	if job.Object == nil {
		return outputs
	}
	found := storage{claims: map[string]string{}}
	found.read(job.Object.Object["spec"])
	found.image = cmp.Or(job.Summary().Image, found.image)
	for _, m := range found.mounts {
		claim := found.claims[m.volume]
		if claim == "" || m.readOnly {
			continue
		}
		inClaim, named := m.subPath, false
		if rest, within := strings.CutPrefix(found.folder+"/", strings.TrimSuffix(m.path, "/")+"/"); found.folder != "" && within {
			named, inClaim = true, path.Join(m.subPath, rest)
		}
		where := "Folder " + cmp.Or(strings.Trim(path.Clean("/"+inClaim), "/"), "/") + " of the claim; in the pods " + cmp.Or(map[bool]string{true: found.folder}[named], m.path)
		output := Output{Title: "PersistentVolumeClaim " + claim, Where: where, Named: named, Command: copyCommand(job, claim, inClaim, found.image)}
		if !slices.ContainsFunc(outputs, func(other Output) bool { return other.Title == output.Title && other.Where == output.Where }) {
			outputs = append(outputs, output)
		}
	}
	addresses := s3Addresses(found.texts)
	for name := range strings.SplitSeq(job.Object.GetAnnotations()[mpi.AnnotationConnections], ",") {
		if name = strings.TrimSpace(name); name != "" {
			where := "The bucket of the connection"
			if len(addresses) > 0 {
				where = "The command names " + strings.Join(addresses, ", ")
			}
			outputs = append(outputs, Output{Title: "Data connection " + name, Where: where, Command: listCommand(job.Namespace, path.Base(name))})
		}
	}
	slices.SortStableFunc(outputs, func(a, b Output) int {
		return map[bool]int{true: 0, false: 1}[a.Named] - map[bool]int{true: 0, false: 1}[b.Named]
	})
	return outputs
}

// read collects what a part of a specification contains about storage.
func (s *storage) read(part any) {
	for _, item := range asList(part) {
		s.read(item)
	}
	fields, is := part.(map[string]any)
	if !is {
		return
	}
	s.readFields(fields)
	for _, name := range keys(fields) {
		s.read(fields[name])
	}
}

// readFields collects what an object in a specification contains: a volume, a mount, a variable or a container.
func (s *storage) readFields(fields map[string]any) {
	text := func(name string) string { value, _ := fields[name].(string); return value }
	if claim, is := fields["persistentVolumeClaim"].(map[string]any); is {
		s.claims[text("name")], _ = claim["claimName"].(string)
	}
	if text("mountPath") != "" && text("subPathExpr") == "" {
		readOnly, _ := fields["readOnly"].(bool)
		s.mounts = append(s.mounts, mount{text("name"), text("mountPath"), text("subPath"), readOnly})
	}
	if text("name") == outputVariable {
		s.folder = cmp.Or(s.folder, text("value"))
	}
	s.image = cmp.Or(s.image, text("image"))
	for _, word := range slices.Concat(asList(fields["command"]), asList(fields["args"])) {
		if text, is := word.(string); is {
			s.texts = append(s.texts, text)
		}
	}
}

func asList(value any) []any {
	items, _ := value.([]any)
	return items
}

// s3Addresses returns the addresses of S3 in the texts of a command, at most three.
func s3Addresses(texts []string) []string {
	var found []string
	for _, text := range texts {
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&()<>,=", r) }) {
			if strings.HasPrefix(word, "s3://") && !slices.Contains(found, word) && len(found) < 3 {
				found = append(found, phrase.Limit(word, 200))
			}
		}
	}
	return found
}

// copyCommand returns the commands that copy a folder of a claim to the current folder, by a pod with the image of the job.
func copyCommand(job jobs.Job, claim, folder, image string) string {
	name := job.Name + "-results"
	overrides, err := json.Marshal(map[string]any{"spec": map[string]any{
		"volumes": []any{map[string]any{"name": "results", "persistentVolumeClaim": map[string]any{"claimName": claim, "readOnly": true}}},
		"containers": []any{map[string]any{
			"name": name, "image": image, "command": []string{"sleep", "3600"},
			"volumeMounts": []any{map[string]any{"name": "results", "mountPath": "/results", "readOnly": true}},
			"resources":    map[string]any{"requests": map[string]string{"cpu": "50m", "memory": "64Mi"}, "limits": map[string]string{"memory": "256Mi"}},
			"securityContext": map[string]any{
				"allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": map[string]any{"drop": []string{"ALL"}}, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
			},
		}},
	}})
	if err != nil {
		return ""
	}
	lines := [][]string{
		{"kubectl", "-n", job.Namespace, "run", name, "--restart=Never", "--image", image, "--overrides", string(overrides)},
		{"kubectl", "-n", job.Namespace, "wait", "--for=condition=Ready", "pod/" + name, "--timeout=5m"},
		{"kubectl", "-n", job.Namespace, "cp", name + ":" + path.Join("/results", path.Clean("/"+folder)), job.Name + "-results"},
		{"kubectl", "-n", job.Namespace, "delete", "pod", name},
	}
	var commands []string
	for _, words := range lines {
		commands = append(commands, phrase.QuoteCommand(words))
	}
	return strings.Join(commands, "\n")
}

// listCommand returns the commands that list the bucket of a data connection. They read the keys of its Secret into variables of
// one command, and do not print them.
func listCommand(namespace, secret string) string {
	read := phrase.QuoteCommand([]string{"kubectl", "-n", namespace, "get", "secret", secret})
	return "key() { " + read + ` -o jsonpath="{.data.$1}" | base64 -d; }` + "\n" +
		`AWS_ACCESS_KEY_ID="$(key AWS_ACCESS_KEY_ID)" AWS_SECRET_ACCESS_KEY="$(key AWS_SECRET_ACCESS_KEY)" AWS_DEFAULT_REGION="$(key AWS_DEFAULT_REGION)" \` + "\n" +
		`  aws --endpoint-url "$(key AWS_S3_ENDPOINT)" s3 ls --recursive "s3://$(key AWS_S3_BUCKET)/"`
}
