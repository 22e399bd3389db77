// Package cost says what jobs cost by the prices that an administrator has written down: a job that is about to be
// created, and what a job has held so far. All of it is pure.
package cost

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// Key is the key of the ConfigMap's data that holds the prices.
const Key = "prices.yaml"

// Prices are what an hour of each resource costs. The zero value has none.
type Prices struct {
	// Currency is shown behind amounts, such as EUR.
	Currency string `json:"currency"`
	Rates    `json:",inline"`
	// Nodes are prices on nodes with a label. Of several that match the first counts.
	Nodes []NodePrices `json:"nodes,omitempty"`
}

// Rates are prices for an hour each.
type Rates struct {
	// CoreHour is for one core of CPU.
	CoreHour float64 `json:"coreHour,omitempty"`
	// GiBHour is for one GiB of memory.
	GiBHour float64 `json:"gibHour,omitempty"`
	// DeviceHours are for one device, by resource such as nvidia.com/gpu.
	DeviceHours map[string]float64 `json:"deviceHours,omitempty"`
}

// NodePrices are the prices on some nodes. What they leave out costs what it costs elsewhere.
type NodePrices struct {
	// Label is what these nodes have, as key=value.
	Label string `json:"label"`
	Rates `json:",inline"`
}

// Use is what was held, in hours of one core, one GiB and one device.
type Use struct {
	CoreHours, GiBHours float64
	// DeviceHours are by resource; empty where there are no devices.
	DeviceHours map[string]float64
}

// currency is a word that a column can have as its title.
var currency = regexp.MustCompile(`^\p{L}{1,8}$|^\p{Sc}$`)

// Parse reads prices from the data of a ConfigMap, with all that is wrong in one error.
func Parse(data map[string]string) (Prices, error) {
	text, found := data[Key]
	if !found {
		return Prices{}, fmt.Errorf("there is no key %s; it holds prices such as \"currency: EUR\" and \"coreHour: 0.03\"", Key)
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

// On are the rates on nodes with labels. Labels are those of the nodes, or those that a pod asks for by its
// nodeSelector; nil where they are not known.
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

// Of is what a use costs. Devices without a price cost nothing; Unpriced names them.
func (r Rates) Of(use Use) float64 {
	sum := use.CoreHours*r.CoreHour + use.GiBHours*r.GiBHour
	for _, name := range slices.Sorted(maps.Keys(use.DeviceHours)) {
		sum += use.DeviceHours[name] * r.DeviceHours[name]
	}
	return sum
}

// Unpriced are the devices of a use that have no price, sorted.
func (r Rates) Unpriced(use Use) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(use.DeviceHours)) {
		if _, found := r.DeviceHours[name]; !found && use.DeviceHours[name] > 0 {
			names = append(names, name)
		}
	}
	return names
}

// ForHours is what so many pods with the same requests use in so many hours.
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

// Consumed is what a job has held so far by its report; nil is nothing.
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

// Plus is both uses together.
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

// GPUHours are the hours of all GPUs. A device counts as one if "gpu" is in its name, as Kubeflow Trainer counts them.
func (u Use) GPUHours() float64 {
	var sum float64
	for _, name := range slices.Sorted(maps.Keys(u.DeviceHours)) {
		if strings.Contains(strings.ToLower(name), "gpu") {
			sum += u.DeviceHours[name]
		}
	}
	return sum
}

// Amount is a sum of money with its currency, such as "12.50 EUR".
func (p Prices) Amount(sum float64) string {
	return fmt.Sprintf("%.2f %s", sum, p.Currency)
}
