package admission

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

const mpijobOperator = "system:serviceaccount:mpijob-system:mpijob-operator"

// named is the identity of an operator with a name, or whose name cannot be found out.
func named(name string, err error) *identity {
	return &identity{review: func(context.Context) (string, error) { return name, err }}
}

// TestOnlyTheOperatorOpensGates: a user who may change JobSets, and calls himself the operator, does not get past the queue.
func TestOnlyTheOperatorOpensGates(t *testing.T) {
	before, _, _ := jobSetOf(t)
	before.SetAnnotations(map[string]string{mpi.AnnotationImplementation: "OpenMPI", mpi.AnnotationGate: mpi.GateClosed})
	before.Object["spec"].(map[string]any)["suspend"] = true
	after := before.DeepCopy()
	after.SetAnnotations(map[string]string{mpi.AnnotationImplementation: "OpenMPI", mpi.AnnotationGate: mpi.GateOpen})
	after.Object["spec"].(map[string]any)["suspend"] = false
	for name, test := range map[string]struct {
		operator *identity
		manager  string
		user     authenticationv1.UserInfo
		opens    bool
	}{
		"the operator":                      {named(mpijobOperator, nil), mpi.FieldManager, authenticationv1.UserInfo{Username: mpijobOperator}, true},
		"the operator, outside":             {named("ada", nil), mpi.FieldManager, authenticationv1.UserInfo{Username: "ada"}, true},
		"its administrator":                 {named(mpijobOperator, nil), mpi.FieldManager, authenticationv1.UserInfo{Username: "root", Groups: []string{"system:masters"}}, true},
		"Trainer":                           {named(mpijobOperator, nil), "trainer", authenticationv1.UserInfo{Username: "trainer"}, false},
		"a user of its name":                {named(mpijobOperator, nil), mpi.FieldManager, authenticationv1.UserInfo{Username: "eve", Groups: []string{"system:authenticated"}}, false},
		"an account of its name":            {named(mpijobOperator, nil), mpi.FieldManager, authenticationv1.UserInfo{Username: "system:serviceaccount:eve:mpijob-operator"}, false},
		"the operator by another program":   {named(mpijobOperator, nil), "kubectl", authenticationv1.UserInfo{Username: mpijobOperator}, false},
		"the operator's account is unknown": {named("", errors.New("no answer")), mpi.FieldManager, authenticationv1.UserInfo{Username: mpijobOperator}, true},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := json.Marshal(map[string]string{"fieldManager": test.manager})
			if err != nil {
				t.Fatal(err)
			}
			answer := ask(t, plan.Settings{}, noGangs{}, test.operator, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, Object: rawOf(t, after), OldObject: rawOf(t, before), Options: k8sruntime.RawExtension{Raw: options}, UserInfo: test.user,
			}})
			patch, err := json.Marshal(answer.Patches)
			if err != nil || !answer.Allowed {
				t.Fatalf("the answer is %+v (%v)", answer, err)
			}
			if opens := !strings.Contains(string(patch), "closed"); opens != test.opens {
				t.Errorf("the patch is %s; opens the gate: %v, want %v", patch, opens, test.opens)
			}
		})
	}
}
