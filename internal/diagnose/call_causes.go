package diagnose

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
)

// callCause is ownCause for what the program's own line shows of the call that failed.
func (p *input) callCause(kind string, figures map[string]string) []v1alpha1.Remedy {
	switch kind {
	case "object as a buffer":
		return objectAsBuffer(figures)
	case "count of a buffer":
		if found := callOfBuffers.FindStringSubmatch(figures["ownSource"]); found != nil && figures["call"] == "" {
			figures["call"] = quotedText(found[1] + "." + found[2])
		}
	case "locale":
		return p.missingLocale(figures)
	case "network":
		return p.localAddress(figures)
	case "archive", "text", "array file", "decoding":
		return p.binaryData(kind, figures)
	}
	return nil
}

// callOfBuffers is a call of a method of mpi4py that sends memory, with its communicator and its first argument if that is a name.
var callOfBuffers = regexp.MustCompile(`((?:\w+\.)*\w+(?:\(\))?)\.((?:Bcast|Send|[SRB]send|Recv|Sendrecv(?:_replace)?|Gatherv?|Scatterv?|Allgatherv?|Alltoall[vw]?|Reduce|Allreduce|Exscan|Scan)|I(?:bcast|[srb]?send|recv|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|reduce|allreduce|exscan|scan))\((?:\s*(?:buf\s*=\s*)?([A-Za-z_]\w*)\s*[,)])?`)

// methodOfObjects returns the method of mpi4py that does with objects what another one does with memory. Of calls that return at once, only those that
// send or receive have one.
func methodOfObjects(name string) string {
	name = strings.TrimSuffix(name, "_replace")
	if base := strings.TrimPrefix(name, "I"); base != name && !strings.HasSuffix(base, "send") && base != "recv" {
		name = base
	}
	if strings.HasSuffix(name, "rv") || strings.HasSuffix(name, "lv") || strings.HasSuffix(name, "lw") {
		name = name[:len(name)-1]
	}
	return strings.ToLower(name)
}

// objectAsBuffer returns the remedies for an object in place of memory, with the method for objects, and adds figures for them; nil if the line of the call
// is unknown.
func objectAsBuffer(figures map[string]string) []v1alpha1.Remedy {
	for line := range strings.Lines(figures["ownSource"]) {
		line = strings.TrimSpace(line)
		found := callOfBuffers.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		of, name, argument := found[1], found[2], found[3]
		method := methodOfObjects(name)
		figures["call"], figures["called"] = quotedText(name), method
		figures["script"] = quotedText("value = " + of + "." + method + "(...)")
		switch rewritten := strings.Replace(line, "."+name+"(", "."+method+"(", 1); {
		case strings.HasSuffix(method, "send"):
			figures["script"] = quotedText(rewritten)
		case method == "bcast" && argument != "" && strings.HasPrefix(line, of):
			figures["script"] = quotedText(argument + " = " + rewritten)
		case method == "recv":
			figures["script"] = quotedText(cmp.Or(argument, "value") + " = " + of + ".recv(source=...)")
		}
		return codes.ObjectAsBuffer
	}
	return nil
}

var (
	// setLocale is a call that names a locale, as a text, as a pair, or by a variable.
	setLocale = regexp.MustCompile(`\bsetlocale\(\s*[\w.]+\s*,\s*(?:locale\s*=\s*)?(?:["']([^"']*)["']|\(\s*["'](\w+)["']\s*,\s*["']([\w-]+)["']|([A-Za-z_]\w*)\s*\))`)
	// fullLocale is a language and a country with a character set.
	fullLocale = regexp.MustCompile(`^(\w+)\.([\w-]+)$`)
)

// missingLocale returns the remedies for a locale that the image does not have, by where its name comes from, and adds figures for them; nil if that is
// unknown.
func (p *input) missingLocale(figures map[string]string) []v1alpha1.Remedy {
	found := setLocale.FindStringSubmatch(figures["ownSource"])
	if found == nil {
		return nil
	}
	name, isText := found[1], found[4] == ""
	if found[2] != "" {
		name = found[2] + "." + found[3]
	}
	if !isText {
		if _, name = p.assigned(found[4]); name == "" {
			return nil
		}
	}
	if name == "" {
		for _, variable := range []string{"LC_ALL", "LC_NUMERIC", "LC_TIME", "LANG"} {
			if _, value := p.setters(variable); value != "" {
				figures["setting"] = " (" + variable + "=" + quotedText(value) + ")"
				break
			}
		}
		return codes.LocaleOfEnvironment
	}
	figures["name"] = quotedText(name)
	remedies := slices.Clone(codes.MissingLocale)
	if parts := fullLocale.FindStringSubmatch(name); parts != nil {
		remedies[0].Action = strings.Replace(remedies[0].Action, "LANGUAGE_COUNTRY -f UTF-8", parts[1]+" -f "+parts[2], 1)
	}
	return remedies
}

// binaryData returns the remedies for an archive or another file that is not text on a ConfigMap, before those of its kind, and adds figures for them; nil if
// it is on none.
func (p *input) binaryData(kind string, figures map[string]string) []v1alpha1.Remedy {
	file := figures["file"]
	spec := p.Template(p.programRole(figures))
	mount := facts.MountOf(spec, file)
	if mount == nil || !path.IsAbs(file) || kind != "archive" && !binaryFile.MatchString(file) {
		return nil
	}
	object := facts.SourceOf(spec, mount.Name)
	if !strings.HasPrefix(object, "ConfigMap ") {
		return nil
	}
	figures["mounted"], figures["key"] = object, path.Base(file)
	of := slices.IndexFunc(codes.OwnErrors, func(k codes.OwnError) bool { return k.Name == kind })
	return slices.Concat(codes.BinaryData, codes.OwnErrors[of].Remedies)
}

// binaryFile is a file that is not text, by its name.
var binaryFile = regexp.MustCompile(`\.(?:t?gz|tgz|bz2|xz|zst|zip|tar|whl|npy|npz|pkl|pickle|pt|pth|h5|hdf5|parquet|png|jpe?g|onnx|safetensors|db|sqlite3?)$`)
