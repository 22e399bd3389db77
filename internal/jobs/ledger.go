package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/cost"
	"opendatahub.io/mpijob/internal/mpi"
)

// DeletedReports is the name of the lines of usage that sum up jobs whose reports were deleted.
const DeletedReports = "(deleted reports)"

// operatorNamespace is where the operator keeps the sums of deleted reports.
const operatorNamespace = pricesNamespace

// ledgers are the sums of deleted reports, by namespace.
type ledgers map[string][]cost.Ledger

// ledgers reads the sums of deleted reports of namespaces; an empty name is all. Users who may not read them get none, and false. Damaged
// ones are omitted.
func (c *Client) ledgers(ctx context.Context, namespaces []string) (found ledgers, readable bool, omitted []Omission, err error) {
	found = ledgers{}
	for _, namespace := range namespaces {
		options := []client.ListOption{client.InNamespace(operatorNamespace), client.HasLabels{mpi.LabelUsageOf}}
		if namespace != "" {
			options[1] = client.MatchingLabels{mpi.LabelUsageOf: namespace}
		}
		var list corev1.ConfigMapList
		switch err := c.api.List(ctx, &list, options...); {
		case apierrors.IsForbidden(err):
			return nil, false, nil, nil
		case err != nil:
			return nil, false, nil, fmt.Errorf("read the sums of deleted reports: %w", err)
		}
		for i := range list.Items {
			config := &list.Items[i]
			sums, err := cost.ParseLedger(config.Data)
			if err == nil && config.Data[cost.UnreadableKey] != "" {
				err = fmt.Errorf("%s could not be read; correct it or delete it", cost.UnreadableKey)
			}
			if err != nil {
				omitted = append(omitted, Omission{Kind: "ConfigMap", Err: fmt.Errorf("read ConfigMap %s/%s: %w", config.Namespace, config.Name, err)})
			}
			of := config.Labels[mpi.LabelUsageOf]
			found[of] = append(found[of], sums)
		}
	}
	return found, true, omitted, nil
}

// deletedUntil returns until when reports of namespaces were deleted; zero if none were, or if it is unknown.
func (c *Client) deletedUntil(ctx context.Context, namespaces []string) (latest time.Time, err error) {
	var config corev1.ConfigMap
	switch err := c.api.Get(ctx, types.NamespacedName{Namespace: operatorNamespace, Name: cost.DeletedReportsName}, &config); {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return latest, nil
	case err != nil:
		return latest, fmt.Errorf("read until when reports were deleted: %w", err)
	}
	see := func(text string) {
		if until := cost.DeletedUntil(text); until.After(latest) {
			latest = until
		}
	}
	for _, namespace := range namespaces {
		if namespace == "" {
			for _, text := range config.Data {
				see(text)
			}
			continue
		}
		see(config.Data[cost.NamespaceKey(namespace)])
	}
	return latest, nil
}

// counts reports whether a report is part of the sums: it is about to be deleted.
func (l ledgers) counts(job Job) bool {
	return slices.ContainsFunc(l[job.Namespace], func(sums cost.Ledger) bool { return slices.Contains(sums.Counted, string(job.Report.UID)) })
}

// lines returns the usage of the jobs of deleted reports in a period, by namespace, user and queue, and by the label of the query.
func (l ledgers) lines(q UsageQuery, prices priceList) (lines []UsageLine) {
	for namespace, months := range l {
		for _, line := range sumMonths(namespace, months, q) {
			if p, priced := prices.byNamespace[namespace]; priced {
				amount := p.On(nil).Of(line.use)
				line.Cost, line.Currency = &amount, p.Currency
			}
			line.setHours()
			lines = append(lines, *line)
		}
	}
	slices.SortFunc(lines, func(a, b UsageLine) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.CreatedBy, b.CreatedBy), strings.Compare(a.Queue, b.Queue), strings.Compare(a.Label, b.Label))
	})
	return lines
}

// sumMonths returns the sums of a namespace in the period of a query, by user, queue and the label of the query.
func sumMonths(namespace string, months []cost.Ledger, q UsageQuery) map[[3]string]*UsageLine {
	sums := map[[3]string]*UsageLine{}
	for _, month := range months {
		for _, day := range month.Lines {
			use, jobs := day.Between(q.Since, q.Until)
			used, measured := day.UsedBetween(q.Since, q.Until)
			if use.IsNone() && jobs == 0 && used == (cost.Used{}) {
				continue
			}
			label := ""
			if q.By == GroupLabel {
				label = day.Label(q.Label)
			}
			key := [3]string{day.User, day.Queue, label}
			if sums[key] == nil {
				sums[key] = &UsageLine{Namespace: namespace, Job: DeletedReports, CreatedBy: day.User, Queue: day.Queue, Label: label}
			}
			*sums[key] = sums[key].Plus(UsageLine{
				Jobs: jobs, Measured: measured, UsedCoreHours: used.CoreHours, UsedGiBHours: used.GiBHours, UsedGPUHours: used.GPUHours, use: use,
			})
		}
	}
	return sums
}
