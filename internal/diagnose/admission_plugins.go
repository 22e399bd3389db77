package diagnose

import (
	"regexp"
	"strings"

	"opendatahub.io/mpijob/internal/codes"
)

// pluginRefusals are what the admission plugins of Kubernetes report of a pod that they reject (k8s.io/kubernetes/plugin/pkg/admission and
// pkg/quota/v1/evaluator/core). Named groups are figures. Pod Security, quotas that are used up and webhooks have codes of their own.
var pluginRefusals = []struct {
	pattern *regexp.Regexp
	entry   *codes.Entry
}{
	{regexp.MustCompile(`error looking up service account [^:]+: serviceaccount "(?P<name>[^"]+)" not found`), &codes.ServiceAccountMissing},
	{regexp.MustCompile(`no PriorityClass with name (?P<name>\S+) was found`), &codes.PriorityClassMissing},
	{regexp.MustCompile(`RuntimeClass "(?P<name>[^"]+)" not found`), &codes.RuntimeClassMissing},
	{regexp.MustCompile(`runtimeClass\.scheduling\.nodeSelector\[(?P<name>[^\]]+)\] = `), &codes.RuntimeClassElsewhere},
	{regexp.MustCompile(`maximum (?P<resource>\S+) usage per (?P<unit>\w+) is (?P<most>[^\s,]+), but (?P<why>request|limit) is (?P<asked>[\w.]+)`), &codes.AboveLimitRange},
	{regexp.MustCompile(`minimum (?P<resource>\S+) usage per (?P<unit>\w+) is (?P<most>[^\s,]+), but (?P<why>request|limit) is (?P<asked>[\w.]+)`), &codes.BelowLimitRange},
	{regexp.MustCompile(`(?:minimum|maximum) (?P<resource>\S+) usage per (?P<unit>\w+) is \S+ +No (?P<why>request|limit) is specified`), &codes.WithoutResources},
	{regexp.MustCompile(`(?P<resource>[\w./-]+) max limit to request ratio per (?P<unit>\w+) is (?P<most>[^\s,]+), but `), &codes.AboveRequestRatio},
	{regexp.MustCompile(`failed quota: (?P<name>[^\s:]+): must specify (?P<resource>[\w./-]+(?: for: [\w.,-]+)?(?:[;,] ?[\w./-]+(?: for: [\w.,-]+)?)*)`), &codes.QuotaNeedsResources},
	{regexp.MustCompile(`pod node label selector (?:labels )?conflicts? with its namespace`), &codes.NamespaceSelectsNodes},
	{regexp.MustCompile(`pod tolerations \(.*\) conflict with its \w+ `), &codes.TolerationsNotAllowed},
	{regexp.MustCompile(`referencing secret\.secretName="(?P<secret>[^"]+)" is not allowed because service account (?P<name>\S+) does not`), &codes.SecretNotOfAccount},
	{regexp.MustCompile(`PodAntiAffinity\.RequiredDuringScheduling has TopologyKey \S+ but only key`), &codes.AffinityNotAllowed},
}

// ofContainers are the containers that lack a resource, and betweenResources separates resources in the messages of quotas.
var ofContainers, betweenResources = regexp.MustCompile(` for: [\w.,-]+`), regexp.MustCompile(`[;,] ?`)

// ofPlugin returns the definition of what an admission plugin of Kubernetes reports of a pod, and adds figures for it; nil if no plugin
// wrote the message.
func ofPlugin(message string, figures map[string]string) *codes.Entry {
	for _, known := range pluginRefusals {
		groups := known.pattern.FindStringSubmatch(message)
		if groups == nil {
			continue
		}
		for i, name := range known.pattern.SubexpNames() {
			if name != "" {
				figures[name] = groups[i]
			}
		}
		if known.entry == &codes.QuotaNeedsResources {
			figures["resource"] = strings.Join(betweenResources.Split(ofContainers.ReplaceAllString(figures["resource"], ""), -1), ", ")
		}
		return known.entry
	}
	return nil
}
