// Package cost calculates what jobs cost by the prices that an administrator configured, before they are created and
// while they run. It is pure.
package cost

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/podspec"
)

// Key is the key of the prices in the data of their ConfigMap.
const Key = "prices.yaml"

// Prices are the prices of resources per hour. The zero value has no prices.
type Prices struct {
	// Currency is shown after amounts, such as EUR.
	Currency string `json:"currency"`
	Rates    `json:",inline"`
	// Nodes are the prices on nodes with a label. The first match applies.
	Nodes []NodePrices `json:"nodes,omitempty"`
}

// Rates are prices per hour.
type Rates struct {
	// CoreHour is the price of one CPU core.
	CoreHour float64 `json:"coreHour,omitempty"`
	// GiBHour is the price of one GiB of memory.
	GiBHour float64 `json:"gibHour,omitempty"`
	// DeviceHours are the prices of one device, by resource such as nvidia.com/gpu.
	DeviceHours map[string]float64 `json:"deviceHours,omitempty"`
}

// NodePrices are the prices on some nodes. Missing prices are those of other nodes.
type NodePrices struct {
	// Label is the label of these nodes, as key=value.
	Label string `json:"label"`
	Rates `json:",inline"`
}

// Use is an amount of reserved resources, in core hours, GiB hours and device hours.
type Use struct {
	CoreHours, GiBHours float64
	// DeviceHours is by resource; it is empty if no devices were used.
	DeviceHours map[string]float64
}

// currency matches a word that fits into the title of a column.
var currency = regexp.MustCompile(`^\p{L}{1,8}$|^\p{Sc}$`)

// Parse reads prices from the data of a ConfigMap. The error lists all problems.
func Parse(data map[string]string) (Prices, error) {
	text, found := data[Key]
	if !found {
		return Prices{}, fmt.Errorf("key %s is missing; it holds prices such as \"currency: EUR\" and \"coreHour: 0.03\"", Key)
	}
	var p Prices
	if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
		return Prices{}, fmt.Errorf("%s: %w", Key, err)
	}
	var errs []error
	if !currency.MatchString(p.Currency) {
		errs = append(errs, fmt.Errorf("%s: currency: %q must be a word of at most 8 letters, such as EUR", Key, p.Currency))
	}
	errs = append(errs, check(p.Rates, "")...)
	for i, node := range p.Nodes {
		at := fmt.Sprintf("nodes[%d].", i)
		key, value, found := strings.Cut(node.Label, "=")
		if !found || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			errs = append(errs, fmt.Errorf("%s: %slabel: %q must be a label with its value, such as node.kubernetes.io/instance-type=large", Key, at, node.Label))
		}
		errs = append(errs, check(node.Rates, at)...)
	}
	if err := errors.Join(errs...); err != nil {
		return Prices{}, err
	}
	return p, nil
}

func check(r Rates, at string) []error {
	var errs []error
	number := func(name string, value float64) {
		if value < 0 {
			errs = append(errs, fmt.Errorf("%s: %s%s: %v must be 0 or more", Key, at, name, value))
		}
	}
	number("coreHour", r.CoreHour)
	number("gibHour", r.GiBHour)
	for _, name := range slices.Sorted(maps.Keys(r.DeviceHours)) {
		if !strings.Contains(name, "/") {
			errs = append(errs, fmt.Errorf("%s: %sdeviceHours: %q must be a resource such as nvidia.com/gpu; cores and memory have coreHour and gibHour", Key, at, name))
		}
		number("deviceHours["+name+"]", r.DeviceHours[name])
	}
	return errs
}

// On returns the rates on nodes with labels. The labels are those of a node or of a pod's nodeSelector; nil if
// unknown.
func (p Prices) On(labels map[string]string) Rates {
	rates := Rates{CoreHour: p.CoreHour, GiBHour: p.GiBHour, DeviceHours: maps.Clone(p.DeviceHours)}
	for _, node := range p.Nodes {
		key, value, _ := strings.Cut(node.Label, "=")
		if have, found := labels[key]; !found || have != value {
			continue
		}
		rates.CoreHour = cmp.Or(node.CoreHour, rates.CoreHour)
		rates.GiBHour = cmp.Or(node.GiBHour, rates.GiBHour)
		if rates.DeviceHours == nil {
			rates.DeviceHours = map[string]float64{}
		}
		maps.Copy(rates.DeviceHours, node.DeviceHours)
		break
	}
	return rates
}

// Of returns the price of a use. Devices without a price are free; Unpriced lists them.
func (r Rates) Of(use Use) float64 {
	sum := use.CoreHours*r.CoreHour + use.GiBHours*r.GiBHour
	for _, name := range slices.Sorted(maps.Keys(use.DeviceHours)) {
		sum += use.DeviceHours[name] * r.DeviceHours[name]
	}
	return sum
}

// Unpriced returns the devices of a use that have no price, sorted.
func (r Rates) Unpriced(use Use) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(use.DeviceHours)) {
		if _, found := r.DeviceHours[name]; !found && use.DeviceHours[name] > 0 {
			names = append(names, name)
		}
	}
	return names
}

// ForHours returns the use of a number of pods with the same requests in a number of hours.
func ForHours(requests corev1.ResourceList, pods, hours float64) Use {
	use := Use{
		CoreHours: requests.Cpu().AsApproximateFloat64() * pods * hours,
		GiBHours:  requests.Memory().AsApproximateFloat64() / (1 << 30) * pods * hours,
	}
	for name, quantity := range requests {
		if strings.Contains(string(name), "/") {
			use.addDevice(string(name), quantity.AsApproximateFloat64()*pods*hours)
		}
	}
	return use
}

// Consumed returns the use in a job's report; nil is an empty use.
func Consumed(c *v1alpha1.Consumption) Use {
	if c == nil {
		return Use{}
	}
	const hour = 3600
	use := Use{CoreHours: float64(c.CPUCoreSeconds) / hour, GiBHours: float64(c.MemoryGiBSeconds) / hour}
	for name, seconds := range c.GPUSeconds {
		use.addDevice(name, float64(seconds)/hour)
	}
	return use
}

// Between returns the use in a job's report in a period, from a time until another one; a zero time is no limit. Uses of
// consecutive periods add up to that of the whole. A report without steps is of an earlier version: its use is spread evenly
// over the time from start on, and isEstimate is set if only a part of it is counted. If start is zero, all of it is counted
// at its end.
func Between(c *v1alpha1.Consumption, start, from, until time.Time) (use Use, isEstimate bool) {
	if c == nil {
		return Use{}, false
	}
	steps := make([]v1alpha1.ConsumptionStep, 0, len(c.Steps)+2)
	if len(c.Steps) == 0 {
		if start.IsZero() || start.After(c.Until.Time) {
			start = c.Until.Time
		}
		steps = append(steps, v1alpha1.ConsumptionStep{Time: metav1.NewTime(start)})
		isEstimate = from.After(start) && from.Before(c.Until.Time) || !until.IsZero() && until.After(start) && until.Before(c.Until.Time)
	}
	steps = append(append(steps, c.Steps...), v1alpha1.ConsumptionStep{Time: c.Until, CPUCoreSeconds: c.CPUCoreSeconds, MemoryGiBSeconds: c.MemoryGiBSeconds, GPUSeconds: c.GPUSeconds})
	use = usedUntil(steps, until)
	if !from.IsZero() {
		use = use.minus(usedUntil(steps, from))
	}
	return use, isEstimate
}

// usedUntil returns the use up to a time; a zero time is no limit.
func usedUntil(steps []v1alpha1.ConsumptionStep, when time.Time) Use {
	use := func(step v1alpha1.ConsumptionStep) Use {
		return Consumed(&v1alpha1.Consumption{CPUCoreSeconds: step.CPUCoreSeconds, MemoryGiBSeconds: step.MemoryGiBSeconds, GPUSeconds: step.GPUSeconds})
	}
	last := steps[len(steps)-1]
	if when.IsZero() || !when.Before(last.Time.Time) {
		return use(last)
	}
	next := slices.IndexFunc(steps, func(step v1alpha1.ConsumptionStep) bool { return step.Time.After(when) })
	if next == 0 {
		return Use{}
	}
	a, b := steps[next-1], steps[next]
	share := float64(when.Sub(a.Time.Time)) / float64(b.Time.Sub(a.Time.Time))
	before := use(a)
	grown := use(b).minus(before)
	sum := Use{CoreHours: before.CoreHours + share*grown.CoreHours, GiBHours: before.GiBHours + share*grown.GiBHours}
	for name, hours := range grown.DeviceHours {
		sum.addDevice(name, before.DeviceHours[name]+share*hours)
	}
	return sum
}

// minus returns a use without an earlier part of it.
func (u Use) minus(part Use) Use {
	rest := Use{CoreHours: u.CoreHours - part.CoreHours, GiBHours: u.GiBHours - part.GiBHours}
	for name, hours := range u.DeviceHours {
		rest.addDevice(name, hours-part.DeviceHours[name])
	}
	return rest
}

// IsNone reports whether nothing was used.
func (u Use) IsNone() bool {
	for _, hours := range u.DeviceHours {
		if hours > 0 {
			return false
		}
	}
	return u.CoreHours <= 0 && u.GiBHours <= 0
}

// Plus returns the sum of two uses.
func (u Use) Plus(other Use) Use {
	sum := Use{CoreHours: u.CoreHours + other.CoreHours, GiBHours: u.GiBHours + other.GiBHours}
	for _, from := range []Use{u, other} {
		for name, hours := range from.DeviceHours {
			sum.addDevice(name, hours)
		}
	}
	return sum
}

func (u *Use) addDevice(name string, hours float64) {
	if u.DeviceHours == nil {
		u.DeviceHours = map[string]float64{}
	}
	u.DeviceHours[name] += hours
}

// GPUHours returns the hours of all GPUs (podspec.IsGPU).
func (u Use) GPUHours() float64 {
	var sum float64
	for _, name := range slices.Sorted(maps.Keys(u.DeviceHours)) {
		if podspec.IsGPU(corev1.ResourceName(name)) {
			sum += u.DeviceHours[name]
		}
	}
	return sum
}

// Amount formats an amount with its currency, such as "12.50 EUR".
func (p Prices) Amount(sum float64) string {
	return fmt.Sprintf("%.2f %s", sum, p.Currency)
}
