package cli

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/cost"
	"opendatahub.io/mpijob/internal/jobs"
)

// usageColumns are the columns of the table of usage.
type usageColumns struct {
	// by is what the lines are summed up by, and label the key of the label.
	by, label        string
	namespaces, wide bool
	// priced, measured and devices are set by printUsage, from the lines.
	priced, measured bool
	devices          []string
}

func (u usageColumns) header() []string {
	var header []string
	if u.namespaces {
		header = append(header, "NAMESPACE")
	}
	switch u.by {
	case jobs.GroupJob:
		header = append(header, "JOB", "KIND", "PHASE")
	case jobs.GroupUser:
		header = append(header, "USER", "JOBS")
	case jobs.GroupQueue:
		header = append(header, "QUEUE", "JOBS")
	case jobs.GroupLabel:
		header = append(header, strings.ToUpper(u.label), "JOBS")
	default:
		header = append(header, "JOBS")
	}
	header = append(header, "GPU-HOURS", "CORE-HOURS", "GIB-HOURS")
	if u.measured {
		header = append(header, "USED-GPU", "USED-CORE", "USED-GIB")
	}
	if u.wide {
		header = append(header, u.devices...)
		if u.by == jobs.GroupJob {
			header = append(header, "BY")
		}
	}
	if u.priced {
		header = append(header, "COST")
	}
	return header
}

func (u usageColumns) row(l jobs.UsageLine) []cell {
	var words []string
	if u.namespaces {
		words = append(words, l.Namespace)
	}
	switch u.by {
	case jobs.GroupJob:
		words = append(words, l.Job, cmp.Or(l.Kind, "-"), cmp.Or(l.Phase, "-"))
	case jobs.GroupUser:
		words = append(words, cmp.Or(l.CreatedBy, "-"), strconv.Itoa(l.Jobs))
	case jobs.GroupQueue:
		words = append(words, cmp.Or(l.Queue, "-"), strconv.Itoa(l.Jobs))
	case jobs.GroupLabel:
		words = append(words, cmp.Or(l.Label, "-"), strconv.Itoa(l.Jobs))
	default:
		words = append(words, strconv.Itoa(l.Jobs))
	}
	words = append(words, jobs.HoursText(l.GPUHours), jobs.HoursText(l.CoreHours), jobs.HoursText(l.GiBHours))
	if u.measured {
		words = append(words, usedText(l.UsedGPUHours), usedText(l.UsedCoreHours), usedText(l.UsedGiBHours))
	}
	if u.wide {
		for _, name := range u.devices {
			words = append(words, jobs.HoursText(l.DeviceHours[name]))
		}
		if u.by == jobs.GroupJob {
			words = append(words, cmp.Or(l.CreatedBy, "-"))
		}
	}
	if u.priced {
		words = append(words, costText(l))
	}
	return plain(words...)
}

// printUsage prints a row for each line, and the total of several lines unless headers are not wanted.
func printUsage(to io.Writer, lines []jobs.UsageLine, columns usageColumns, headers bool) error {
	columns.devices = devicesOf(lines)
	currencies := map[string]bool{}
	all := jobs.UsageLine{}
	for _, line := range lines {
		all = all.Plus(line)
		if line.Cost != nil {
			currencies[line.Currency] = true
		}
	}
	columns.priced, columns.measured = len(currencies) > 0, all.Measured > 0
	t := table{header: columns.header()}
	for _, line := range lines {
		t.rows = append(t.rows, columns.row(line))
	}
	if len(lines) > 1 && headers {
		if len(currencies) > 1 {
			all.Cost = nil // a sum of several currencies has no meaning
		}
		all.Namespace, all.Job, all.Kind = "all", "all", fmt.Sprintf("%d jobs", all.Jobs)
		all.Queue, all.Label, all.CreatedBy = "all", "all", map[bool]string{true: "all", false: ""}[columns.by == jobs.GroupUser]
		cells := columns.row(all)
		for i := range cells {
			cells[i].colour = bold
		}
		t.rows = append(t.rows, cells)
	}
	return t.write(to, "", headers)
}

// devicesOf returns the names of all devices, sorted.
func devicesOf(lines []jobs.UsageLine) []string {
	var names []string
	for _, line := range lines {
		names = append(names, slices.Collect(maps.Keys(line.DeviceHours))...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// usedText returns measured hours; "-" if they are unknown.
func usedText(hours *float64) string {
	if hours == nil {
		return "-"
	}
	return jobs.HoursText(*hours)
}

func costText(l jobs.UsageLine) string {
	if l.Cost == nil {
		return "-"
	}
	return cost.Prices{Currency: l.Currency}.Amount(*l.Cost)
}

// printUsageCSV prints a record for each line, with the values of users escaped for spreadsheets.
func printUsageCSV(to io.Writer, lines []jobs.UsageLine, headers bool) error {
	devices := devicesOf(lines)
	w := csv.NewWriter(to)
	if headers {
		header := append([]string{"namespace", "job", "kind", "phase", "createdBy", "queue", "label", "jobs", "gpuHours", "coreHours", "gibHours", "measured", "usedGpuHours", "usedCoreHours", "usedGibHours"}, devices...)
		if err := w.Write(append(header, "cost", "currency")); err != nil {
			return err
		}
	}
	figure := func(f float64) string { return strconv.FormatFloat(f, 'f', 4, 64) }
	known := func(f *float64) string {
		if f == nil {
			return ""
		}
		return figure(*f)
	}
	for _, l := range lines {
		record := []string{l.Namespace, l.Job, l.Kind, l.Phase, escapeFormula(l.CreatedBy), l.Queue, l.Label, strconv.Itoa(l.Jobs), figure(l.GPUHours), figure(l.CoreHours), figure(l.GiBHours)}
		record = append(record, strconv.Itoa(l.Measured), known(l.UsedGPUHours), known(l.UsedCoreHours), known(l.UsedGiBHours))
		for _, name := range devices {
			record = append(record, figure(l.DeviceHours[name]))
		}
		if err := w.Write(append(record, known(l.Cost), l.Currency)); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// escapeFormula prevents spreadsheets from reading a text as a formula.
func escapeFormula(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
