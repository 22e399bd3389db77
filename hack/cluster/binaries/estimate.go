package binaries

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// serial is which part of the CPU time of a build uses only one core: the links, and packages that others wait for. make run took 16
// minutes on two cores and 9 on four, with 1,700 s of CPU time.
const serial = 1.0 / 14

// Estimate returns how long a build of so many seconds of CPU time takes on so many cores.
func Estimate(cpu, cores int) time.Duration {
	seconds := float64(cpu)/float64(max(cores, 1)) + float64(cpu)*serial
	return time.Duration(seconds * float64(time.Second))
}

// minutes describes an estimate.
func minutes(estimate time.Duration) string {
	n := int((estimate + time.Minute - 1) / time.Minute)
	if n <= 1 {
		return "a minute"
	}
	return fmt.Sprintf("%d minutes", n)
}

// firstTime describes a build of so many seconds of CPU time on this machine. The number of cores is that of the Go runtime, which
// reads the CPU limit of a container.
func firstTime(cpu int) string { return firstTimeOn(cpu, runtime.GOMAXPROCS(0)) }

func firstTimeOn(cpu, cores int) string {
	text := "compiling, first time only"
	estimate := Estimate(cpu, cores)
	if estimate < 30*time.Second {
		return text
	}
	on := "1 core"
	if cores > 1 {
		on = fmt.Sprintf("%d cores", cores)
	}
	return fmt.Sprintf("%s, takes about %s on %s", text, minutes(estimate), on)
}

// isBuilt reports whether a program is in the cache, built here or fetched.
func (b Builder) isBuilt(c component) bool {
	key, err := b.key(c)
	if err != nil {
		return false
	}
	keys := []string{key}
	if fetched, has := b.mirrored(c); has {
		keys = append(keys, fetched)
	}
	return slices.ContainsFunc(keys, func(key string) bool {
		_, err := os.Stat(filepath.Join(b.cache, key))
		return err == nil
	})
}

// announce says which programs will be compiled and how long that takes, if there are several.
func (b Builder) announce(all []component) {
	if text := b.announcement(all, runtime.GOMAXPROCS(0)); text != "" {
		b.report.Say("%s", text)
	}
}

func (b Builder) announcement(all []component, cores int) string {
	var names []string
	cpu := 0
	for _, c := range all {
		if !b.isBuilt(c) {
			names, cpu = append(names, c.name), cpu+c.cpu
		}
	}
	if len(names) < 2 {
		return ""
	}
	return fmt.Sprintf("the cache lacks %d of %d programs (%s): %s", len(names), len(all), strings.Join(names, ", "), firstTimeOn(cpu, cores))
}
