package manifests_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	"sigs.k8s.io/yaml"
)

// TestBuildOnOpenShift: the objects of the page about images have the fields of OpenShift's API of May 2024 (4.16), and the build writes the image that the page
// runs.
func TestBuildOnOpenShift(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/how-to/image.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Build it on OpenShift\n")
	_, text, hasObjects := strings.Cut(section, "```yaml\n")
	text, _, ends := strings.Cut(text, "```")
	if !found || !hasObjects || !ends {
		t.Fatal("the page has no objects for OpenShift")
	}
	documents := strings.Split(text, "---\n")
	if len(documents) != 2 {
		t.Fatalf("the page has %d objects, want an ImageStream and a BuildConfig", len(documents))
	}
	var stream imagev1.ImageStream
	if err := yaml.UnmarshalStrict([]byte(documents[0]), &stream); err != nil || stream.APIVersion != "image.openshift.io/v1" || stream.Kind != "ImageStream" {
		t.Errorf("%s %s: %v", stream.APIVersion, stream.Kind, err)
	}
	var build buildv1.BuildConfig
	if err := yaml.UnmarshalStrict([]byte(documents[1]), &build); err != nil || build.APIVersion != "build.openshift.io/v1" || build.Kind != "BuildConfig" {
		t.Errorf("%s %s: %v", build.APIVersion, build.Kind, err)
	}
	spec := build.Spec
	if spec.Source.Type != buildv1.BuildSourceBinary || spec.Source.Binary == nil {
		t.Errorf("the source is %+v, and the page sends a folder", spec.Source)
	}
	if spec.Strategy.Type != buildv1.DockerBuildStrategyType || spec.Strategy.DockerStrategy == nil || spec.Strategy.DockerStrategy.DockerfilePath != "Containerfile" {
		t.Errorf("the strategy is %+v, and the page has a Containerfile", spec.Strategy)
	}
	to := spec.Output.To
	if to == nil || to.Kind != "ImageStreamTag" || !strings.HasPrefix(to.Name, stream.Name+":") {
		t.Fatalf("the build writes to %+v, and not to ImageStream %s", to, stream.Name)
	}
	// The field with the name of the registry's route; dockerImageRepository has the one within the cluster.
	route, err := json.Marshal(imagev1.ImageStreamStatus{PublicDockerImageRepository: "route"})
	if err != nil {
		t.Fatal(err)
	}
	_, checked, hasCheck := strings.Cut(section, "image check \"$(oc get imagestream "+stream.Name+" -o jsonpath='{.status.")
	field, _, _ := strings.Cut(checked, "}")
	if !hasCheck || !strings.Contains(string(route), `"`+field+`":"route"`) {
		t.Errorf("the page checks the image by the field %q, and the route is in %s", field, route)
	}
	for _, command := range []string{"oc start-build " + build.Name + " --from-dir=.", "imagestream " + stream.Name + " ", "/" + to.Name + " --workers"} {
		if !strings.Contains(section, command) {
			t.Errorf("the page lacks %q", command)
		}
	}
}
