package nvidia

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

// Limits of what the process prints.
const (
	maxDevices = 128
	maxLine    = 1024
	maxReason  = 200
)

// Unknown is a figure of a device that its driver does not have, and noName the name of such a device.
const (
	Unknown = -1
	noName  = "-"
)

// Device is a GPU, or a part of one that the driver shares out (MIG), of which only the memory is known.
type Device struct {
	// Minor is the number in the name of the device file, and UUID the name of the device, noName if it is unknown.
	Minor int
	UUID  string
	// Busy is the share of time, in thousandths, in which the GPU computed since the time before, and MemoryBusy that in which its memory was
	// read or written in the last moment.
	Busy, MemoryBusy int64
	// Used and Memory are in MiB.
	Used, Memory int64
	// Power is in thousandths of a watt, and Temperature in degrees Celsius.
	Power, Temperature int64
	// Slowed is a set of reasons why the GPU runs slower than it could.
	Slowed int64
	// Errors is the number of errors of its memory that could not be corrected, since the driver was loaded.
	Errors int64
	// Lost is set if the driver cannot reach the device.
	Lost bool
}

// slowed are the reasons of NVML that slow a GPU down against its load: its limit of power, heat, and its power supply
// (nvmlClocksThrottleReason*).
const slowed = 0x4 | 0x8 | 0x20 | 0x40 | 0x80

// parse reads the lines of an answer.
func parse(lines *bufio.Reader) (devices []Device, err error) {
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, errors.New("the process that reads them prints a line of more than " + strconv.Itoa(maxLine) + " bytes")
		} else if err != nil {
			return nil, err
		}
		kind, rest, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		switch {
		case kind == "end" && rest == "":
			return devices, nil
		case kind == "error":
			return nil, errors.New(printable(rest))
		case len(devices) == maxDevices:
			return nil, fmt.Errorf("the process that reads them names more than %d devices", maxDevices)
		}
		d, ok := parseDevice(strings.Fields(rest))
		if kind != "gpu" || !ok {
			return nil, fmt.Errorf("the process that reads them prints %q", printable(string(line)))
		}
		devices = append(devices, d)
	}
}

// parseDevice reads the fields of a line of a device. Figures that no device has are unknown.
func parseDevice(fields []string) (d Device, ok bool) {
	const most = 1 << 24
	lost := 0
	for i, field := range []struct {
		into *int64
		most int64
	}{
		{&d.Busy, 1000},
		{&d.MemoryBusy, 1000},
		{&d.Used, most},
		{&d.Memory, most},
		{&d.Power, most},
		{&d.Temperature, 1000},
		{&d.Slowed, 1 << 40},
		{&d.Errors, 1 << 40},
	} {
		const before = 2
		if len(fields) != before+9 {
			return d, false
		}
		n, err := strconv.ParseInt(fields[before+i], 10, 64)
		if err != nil || n < 0 || n > field.most {
			n = Unknown
		}
		*field.into = n
	}
	var errs [2]error
	d.Minor, errs[0] = strconv.Atoi(fields[0])
	lost, errs[1] = strconv.Atoi(fields[10])
	d.UUID, d.Lost = printable(fields[1]), lost != 0
	return d, errors.Join(errs[:]...) == nil
}

// printable returns the start of a text, with a space for each byte that is no printable character of ASCII.
func printable(text string) string {
	text = text[:min(len(text), maxReason)]
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, text))
}

// BusyByNumber returns the share of time, in thousandths, in which each GPU computed, by the number of its device file. Parts of GPUs, of which it is
// unknown, and devices that are lost have none.
func BusyByNumber(devices []Device) map[int]int64 {
	busy := map[int]int64{}
	for _, d := range devices {
		if d.Busy != Unknown && !d.Lost && d.Minor >= 0 {
			busy[d.Minor] = d.Busy
		}
	}
	return busy
}

// Add adds devices to what was read of a container.
func Add(devices []Device, r *usage.Reading) {
	add := func(metric agentapi.Metric, value, limit int64) {
		r.Gauges[metric] += value
		r.Limits[metric] += limit
	}
	for _, d := range devices {
		if r.GPUs == nil {
			r.GPUs = &usage.GPUs{}
		}
		if d.Busy != Unknown {
			add(agentapi.MetricGPU, d.Busy, 1000)
		}
		if d.Used != Unknown && d.Memory != Unknown {
			add(agentapi.MetricGPUMemory, d.Used, d.Memory)
		}
		r.GPUs.Power += max(d.Power, 0)
		r.GPUs.Temperature = max(r.GPUs.Temperature, d.Temperature)
		r.GPUs.Errors += max(d.Errors, 0)
		if d.Slowed != Unknown && d.Slowed&slowed != 0 {
			r.GPUs.Slowed++
		}
		if d.Lost {
			r.GPUs.Lost++
		}
	}
}
