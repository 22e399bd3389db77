package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestNameDefaultLimits: the limit that a request exceeds may be the default of a LimitRange, which is named then, with what it allows.
func TestNameDefaultLimits(t *testing.T) {
	const detail = "\"300m\": must be less than or equal to cpu limit of 200m"
	cpu := func(amount string) corev1.ResourceList {
		if amount == "" {
			return nil
		}
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	for name, test := range map[string]struct {
		detail, own, byDefault, most, want string
	}{
		"above the maximum":   {detail, "", "200m", "200m", detail + ", which is the default of LimitRange small for containers without a limit; it allows at most 200m for each container: request at most that, or ask its administrator to raise it"},
		"below the maximum":   {detail, "", "200m", "1", detail + ", which is the default of LimitRange small for containers without a limit; set the limit of cpu, too, to at most 1"},
		"without a maximum":   {detail, "", "0.2", "", detail + ", which is the default of LimitRange small for containers without a limit; set the limit of cpu, too, or request at most 200m"},
		"the job's own limit": {detail, "200m", "200m", "1", detail},
		"another default":     {detail, "", "100m", "1", detail},
		"no LimitRange":       {detail, "", "", "", detail},
		"beyond a maximum":    {"a LimitRange of the namespace team does not allow pods of this size: maximum cpu usage per Container is 200m, but limit is 300m", "300m", "", "200m", "LimitRange small of the namespace team does not allow pods of this size: maximum cpu usage per Container is 200m, but limit is 300m"},
		"beyond that of none": {"a LimitRange of the namespace team does not allow pods of this size: maximum cpu usage per Pod is 200m", "300m", "", "200m", "a LimitRange of the namespace team does not allow pods of this size: maximum cpu usage per Pod is 200m"},
		"another error":       {"must be positive", "", "200m", "1", "must be positive"},
	} {
		template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: cpu(test.own)}}}}}
		ranges := []corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Default: cpu(test.byDefault), Max: cpu(test.most),
		}}}}}
		errs := field.ErrorList{field.Invalid(field.NewPath("requests"), field.OmitValueType{}, test.detail)}
		nameDefaultLimits(errs, template, ranges)
		if errs[0].Detail != test.want {
			t.Errorf("%s: %q, want %q", name, errs[0].Detail, test.want)
		}
	}
}
