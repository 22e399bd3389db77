package mpitest

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Origin is where a component of the cluster, such as the kubelet or JobSet, declares what it reports of pods and jobs.
type Origin struct {
	// Module is the path of its Go module, and Folders are in it.
	Module  string
	Folders []string
	// Named selects the constants and errors whose texts it reports, by their names; nil for none.
	Named *regexp.Regexp
	// Events adds the reasons with which it calls an event recorder, and Types what its methods Type return.
	Events, Types bool
	// Statuses adds the texts of the statuses of the scheduler's plugins. A text that is put together has the verbs of package fmt.
	Statuses bool
	// Condition adds the reasons of the pod conditions of this type.
	Condition string
}

// versions are where the repository states the version of a component.
var versions = map[string]struct{ file, pattern string }{
	"k8s.io/kubernetes":              {"hack/cluster/layout/layout.go", `KubernetesVersion = "(v[^"]+)"`},
	"k8s.io/cri-api":                 {"hack/cluster/layout/layout.go", `KubernetesVersion = "(v[^"]+)"`},
	"k8s.io/api":                     {"hack/cluster/layout/layout.go", `KubernetesVersion = "(v[^"]+)"`},
	"sigs.k8s.io/jobset":             {"hack/cluster/addon/trainer.go", `jobSet\("(v[^"]+)"\)`},
	"github.com/kubeflow/trainer/v2": {"hack/cluster/addon/trainer.go", `trainerManager\("(v[^"]+)"\)`},
	"sigs.k8s.io/kueue":              {"hack/cluster/addon/kueue.go", `Version: "(v[^"]+)"`},
}

// Reported returns what the component reports, sorted. It parses the source of the version that the tests' cluster runs, and
// downloads it if the module cache does not have it.
func (o Origin) Reported(t *testing.T) []string {
	t.Helper()
	root := o.download(t)
	found := map[string]bool{}
	for _, folder := range o.Folders {
		parsed := parse(t, filepath.Join(root, folder))
		for _, text := range parsed.texts {
			if o.Named != nil && o.Named.MatchString(text.name) {
				found[text.value] = true
			}
		}
		for _, text := range parsed.used(o) {
			found[text] = true
		}
	}
	delete(found, "")
	list := make([]string, 0, len(found))
	for text := range found {
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

// download returns the folder with the module's source.
func (o Origin) download(t *testing.T) string {
	t.Helper()
	at := versions[o.Module]
	text, err := os.ReadFile(filepath.Join("..", "..", at.file))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(at.pattern).FindStringSubmatch(string(text))
	if version == nil {
		t.Fatalf("%s states no version of %s", at.file, o.Module)
	}
	number := version[1]
	if strings.HasPrefix(o.Module, "k8s.io/") && o.Module != "k8s.io/kubernetes" {
		// The modules of Kubernetes' parts are called v0.x.y.
		number = "v0" + strings.TrimPrefix(number, "v1")
	}
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", o.Module+"@"+number)
	command.Dir, command.Env = t.TempDir(), append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	output, err := command.Output()
	var got struct{ Dir, Error string }
	if json.Unmarshal(output, &got) != nil || got.Dir == "" {
		t.Fatalf("cannot download %s: %v %s", o.Module, err, got.Error)
	}
	return got.Dir
}

// goSource is the parsed Go code of a folder with its subfolders, without tests.
type goSource struct {
	files []*ast.File
	texts []goText
}

// goText is the value of a constant, or the text of an error in a variable.
type goText struct{ name, value string }

func parse(t *testing.T, folder string) goSource {
	t.Helper()
	var parsed goSource
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testing/") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed.files = append(parsed.files, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range parsed.files {
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, is := node.(*ast.ValueSpec); is {
				for i, name := range spec.Names {
					if i < len(spec.Values) && literal(spec.Values[i]) != "" {
						parsed.texts = append(parsed.texts, goText{name.Name, literal(spec.Values[i])})
					}
				}
			}
			return true
		})
	}
	return parsed
}

// reasonOfEvent matches the reason of an event, and no format of a message.
var reasonOfEvent = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)

// used returns what the code passes to event recorders and statuses, returns from methods Type, and writes into conditions, as the origin selects.
func (s goSource) used(o Origin) (found []string) {
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.CallExpr:
				found = append(found, s.passed(node, o)...)
			case *ast.FuncDecl:
				if o.Types && node.Name.Name == "Type" {
					found = append(found, s.result(node))
				}
			case *ast.CompositeLit:
				found = append(found, s.written(fieldsOf(node), o)...)
			}
			return true
		})
	}
	return found
}

// passed returns what a call passes to an event recorder or a status.
func (s goSource) passed(call *ast.CallExpr, o Origin) (found []string) {
	switch {
	case o.Events && isRecording(call):
		return s.reasons(call)
	case o.Statuses && slices.Contains([]string{"NewStatus", "AppendReason"}, nameOf(call.Fun)):
		for _, argument := range call.Args {
			found = append(found, s.textOf(argument))
		}
	}
	return found
}

// written returns the reason in the fields of a condition, or of what a status is made of.
func (s goSource) written(fields map[string]ast.Expr, o Origin) []string {
	switch {
	case o.Condition != "" && nameOf(fields["Type"]) == o.Condition:
		return []string{s.valueOf(fields["Reason"])}
	case o.Statuses:
		return []string{s.textOf(fields["Reason"]), s.textOf(fields["reason"])}
	}
	return nil
}

// textOf returns the value of a literal or a constant, or the format of a text that is put together.
func (s goSource) textOf(expression ast.Expr) string {
	if call, is := expression.(*ast.CallExpr); is && nameOf(call.Fun) == "Sprintf" && len(call.Args) > 0 {
		expression = call.Args[0]
	}
	return s.valueOf(expression)
}

// reasons returns the arguments of a call of an event recorder that can be the reason.
func (s goSource) reasons(call *ast.CallExpr) (found []string) {
	for _, argument := range call.Args {
		if text := s.valueOf(argument); reasonOfEvent.MatchString(text) && text != "Normal" && text != "Warning" {
			found = append(found, text)
		}
	}
	return found
}

// result returns the value that a method returns if that is all that it does, and "" otherwise.
func (s goSource) result(method *ast.FuncDecl) string {
	if method.Recv == nil || method.Body == nil || len(method.Body.List) != 1 {
		return ""
	}
	if result, is := method.Body.List[0].(*ast.ReturnStmt); is && len(result.Results) == 1 {
		return s.valueOf(result.Results[0])
	}
	return ""
}

func isRecording(call *ast.CallExpr) bool {
	function, is := call.Fun.(*ast.SelectorExpr)
	return is && slices.Contains([]string{"Event", "Eventf", "AnnotatedEventf"}, function.Sel.Name)
}

func fieldsOf(of *ast.CompositeLit) map[string]ast.Expr {
	fields := map[string]ast.Expr{}
	for _, element := range of.Elts {
		if pair, is := element.(*ast.KeyValueExpr); is {
			fields[nameOf(pair.Key)] = pair.Value
		}
	}
	return fields
}

// nameOf returns the name of a constant, of this or another package.
func nameOf(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.Ident:
		return expression.Name
	case *ast.SelectorExpr:
		return expression.Sel.Name
	}
	return ""
}

// valueOf returns the value of a literal, or of a constant of these files; for a constant of others, its name.
func (s goSource) valueOf(expression ast.Expr) string {
	if text := literal(expression); text != "" {
		return text
	}
	name := nameOf(expression)
	if i := slices.IndexFunc(s.texts, func(text goText) bool { return text.name == name }); i >= 0 {
		return s.texts[i].value
	}
	if reason, is := strings.CutPrefix(name, "PodReason"); is {
		return reason
	}
	return ""
}

// literal returns a string, also one in errors.New; "" for other expressions.
func literal(expression ast.Expr) string {
	if call, is := expression.(*ast.CallExpr); is && len(call.Args) == 1 && nameOf(call.Fun) == "New" {
		expression = call.Args[0]
	}
	if text, is := expression.(*ast.BasicLit); is && text.Kind == token.STRING {
		value, err := strconv.Unquote(text.Value)
		if err == nil {
			return value
		}
	}
	return ""
}
