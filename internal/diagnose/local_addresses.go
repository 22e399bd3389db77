package diagnose

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
)

// localHost is a name or address of the pod itself, and localAddress one with its port, as a program, a variable or a command has it.
var (
	localHost    = regexp.MustCompile(`^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?|0\.0\.0\.0)(?::(\d{1,5}))?$`)
	localAddress = regexp.MustCompile(`(?:^|[\s"'/@=(\[])(localhost|127(?:\.\d{1,3}){3}|\[::1\]|::1|0\.0\.0\.0)(?:(?:["']?\s*:|["']\s*,|["']?\s*,\s*port\s*=|["']?\s+--?p(?:ort)?[ =])\s*["']?(\d{2,5})\b)?`)
	// ofEnvironment is a variable of the environment in a line of a program, and bareName a variable of its own as an argument.
	ofEnvironment = regexp.MustCompile(`\b(?:environ(?:\.get\(|\[)|getenv\()\s*["'](\w+)["']`)
	bareName      = regexp.MustCompile(`[(,=]\s*([A-Za-z_]\w*)\s*[,)]`)
	// unassigned is the error of a connection to an address of a family that the pod does not have.
	unassigned = regexp.MustCompile(`Cannot assign requested address|EADDRNOTAVAIL`)
	// notTarget is an option or a variable whose addresses a program does not connect to, by its name: it listens there itself, or these are the hosts of
	// ranks, networks, or hosts without a proxy.
	notTarget = regexp.MustCompile(`(?i)[\w-]*(?:listen|bind|metric|serve|export|no_proxy|_if_(?:in|ex)clude)[\w-]*[\s=]+\S+|(?:^|\s)-(?:-?hosts?|H)[\s=]+\S+`)
	// ownServer is a server that a command starts itself.
	ownServer = regexp.MustCompile(`\b(?:redis-server|postgres|pg_ctl|mysqld|mongod|mlflow (?:server|ui)|http\.server|uvicorn|gunicorn|etcd|minio server|dask[ -]scheduler|ray start)\b`)
)

// servers are what usually listens at a port.
var servers = map[string]string{
	"80": "the web server", "443": "the web server", "1883": "the MQTT broker", "2181": "ZooKeeper", "2379": "etcd", "3306": "MySQL or MariaDB", "4317": "the OpenTelemetry collector",
	"4318": "the OpenTelemetry collector", "5000": "MLflow or the registry", "5432": "PostgreSQL", "5672": "RabbitMQ", "6333": "Qdrant", "6379": "Redis", "6380": "Redis", "8086": "InfluxDB",
	"8786": "Dask's scheduler", "9000": "MinIO or another S3 server", "9042": "Cassandra", "9090": "Prometheus", "9091": "the Pushgateway", "9092": "Kafka", "9200": "Elasticsearch or OpenSearch",
	"11211": "memcached", "11434": "Ollama", "19530": "Milvus", "27017": "MongoDB",
}

// localAddress returns the remedies for a connection to the pod itself that was refused, and adds figures for them; nil if the address is another one, or
// something in the pod may be about to listen there.
func (p *input) localAddress(figures map[string]string) []v1alpha1.Remedy {
	text := cmp.Or(figures["wholeError"], causeText(figures))
	// Where nothing listens on 127.0.0.1, localhost is tried as ::1, which a pod without IPv6 does not have.
	isUnassigned := unassigned.MatchString(text) && len(localAddressesIn(addressIn(causeText(figures), figures["ownSource"]))) > 0
	if !refusedConnection.MatchString(text) && !isUnassigned {
		return nil
	}
	address := p.localTarget(figures)
	if address == "" || p.runsServer(figures) {
		return nil
	}
	figures["address"] = address
	port := localHost.FindStringSubmatch(address)
	if port != nil && servers[port[1]] != "" {
		figures["meant"] = servers[port[1]]
		return codes.LocalAddress
	}
	figures["host"] = p.firstHost()
	return slices.Concat(codes.LocalAddress, codes.LocalAddressOfRank)
}

// localTarget returns the local address, with its port if that is known, to which a program could not connect: by its error, its own line, and what that has
// its values from, or else the only one in the variables and the command of the job; "" if there is none, or the error names another address.
func (p *input) localTarget(figures map[string]string) string {
	source := figures["ownSource"]
	if address := addressIn(causeText(figures), source); address != "" {
		if at, err := url.Parse(address); err == nil && at.Host != "" {
			address = at.Host
		}
		if localHost.MatchString(address) {
			return address
		}
		return ""
	}
	texts := []string{source}
	var variables []string
	for _, found := range ofEnvironment.FindAllStringSubmatch(source, -1) {
		variables = append(variables, found[1])
	}
	for _, found := range bareName.FindAllStringSubmatch(source, -1) {
		variable, text := p.assigned(found[1])
		variables, texts = append(variables, variable), append(texts, text)
	}
	for _, name := range variables {
		if _, value := p.setters(name); name != "" && len(localAddressesIn(value)) > 0 {
			figures["variable"] = name
			texts = append(texts, value)
		}
	}
	for _, text := range texts {
		if found := localAddressesIn(text); len(found) > 0 {
			return found[0]
		}
	}
	return p.onlyTarget(figures)
}

// onlyTarget returns the only local address with a port in the variables and the command of a job to which a program may connect; "" if there is none.
func (p *input) onlyTarget(figures map[string]string) string {
	settings := []string{p.LauncherCommand()}
	for _, main := range first(p.Template(p.programRole(figures)).Containers) {
		for _, variable := range main.Env {
			settings = append(settings, variable.Name+"="+variable.Value)
		}
	}
	var all []string
	for _, setting := range settings {
		all = append(all, localAddressesIn(notTarget.ReplaceAllString(setting, ""))...)
	}
	all = slices.DeleteFunc(all, func(address string) bool {
		found := localHost.FindStringSubmatch(address)
		return found == nil || found[1] == "" || strings.HasPrefix(address, "0.0.0.0")
	})
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 1 {
		return all[0]
	}
	return ""
}

// localAddressesIn returns the local addresses in a text, with their ports where it has them.
func localAddressesIn(text string) (found []string) {
	for _, at := range localAddress.FindAllStringSubmatch(text, -1) {
		address := at[1]
		if at[2] != "" {
			if strings.Contains(address, "::") {
				address = "[" + strings.Trim(address, "[]") + "]"
			}
			address += ":" + at[2]
		}
		found = append(found, address)
	}
	return found
}

// runsServer reports whether something in the pod of a program may listen: another container, or a server that the command starts.
func (p *input) runsServer(figures map[string]string) bool {
	spec := p.Template(p.programRole(figures))
	isSidecar := func(c corev1.Container) bool {
		return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	}
	return len(spec.Containers) > 1 || slices.ContainsFunc(spec.InitContainers, isSidecar) || ownServer.MatchString(p.LauncherCommand()) || ownServer.MatchString(facts.CommandOf(p.Template(mpi.RoleWorker)))
}
