package main

// dashboard is the description of a dashboard.
type dashboard struct {
	name, title, description string
	variables                []variable
	rows                     []row
}

// variable is a choice of the user: the values that a label of a metric has.
type variable struct {
	name, title, metric, label string
	// many allows several values, or all.
	many bool
}

type row struct {
	title  string
	panels []panel
}

type kind int

const (
	lines kind = iota
	figure
	table
)

type unit int

const (
	number unit = iota
	seconds
	share
	hours
	bytesUnit
)

type panel struct {
	title, description string
	kind               kind
	unit               unit
	queries            []query
}

type query struct{ expr, legend string }

// one returns a panel with one query.
func one(title, description string, k kind, u unit, expr, legend string) panel {
	return panel{title: title, description: description, kind: k, unit: u, queries: []query{{expr, legend}}}
}

// dashboards returns all dashboards.
func dashboards() []dashboard {
	return []dashboard{clusterDashboard(), projectDashboard(), jobDashboard(), queueDashboard()}
}

var projects = variable{name: "namespace", title: "Project", metric: "mpijob_jobs_created_total", label: "namespace", many: true}

func clusterDashboard() dashboard {
	return dashboard{
		name: "mpijob-cluster", title: "MPI jobs / Cluster", description: "All MPIJobs and TrainJobs with MPI of the cluster, and the operator.",
		rows: []row{
			{"Jobs", []panel{
				one("Running", "Jobs whose launcher and all of whose workers run.", figure, number, `sum(mpijob_jobs_running)`, ""),
				one("Queued", "Jobs that wait in a queue or for capacity.", figure, number, `sum(mpijob_jobs_queued)`, ""),
				one("Failed in the last hour", "", figure, number, `sum(namespace_kind:mpijob_jobs_failed:increase1h)`, ""),
				one("Succeeded in the last hour", "", figure, number, `sum(namespace_kind:mpijob_jobs_succeeded:increase1h)`, ""),
				one("Running jobs by kind", "", lines, number, `sum by (kind) (mpijob_jobs_running)`, "{{kind}}"),
				one("Created jobs per hour", "", lines, number, `sum by (kind) (increase(mpijob_jobs_created_total[1h]))`, "{{kind}}"),
				one("Failures by cause", "Failed jobs per hour, by the code of the first finding.", lines, number, `topk(10, sum by (code) (increase(mpijob_failures_total[1h])) > 0)`, "{{code}}"),
				one("Findings of unfinished jobs", "What jobs have that have not ended, by code.", lines, number, `sum by (code) (mpijob_findings)`, "{{code}}"),
			}},
			{"Start", []panel{
				{title: "Time to start, 90th percentile", description: "From creation until all pods had a node, and until all pods ran.", unit: seconds, queries: []query{
					{`cluster:mpijob_gang_wait_seconds:p90_1d`, "placed"}, {`cluster:mpijob_start_seconds:p90_1d`, "running"},
				}},
				{title: "MPI start, 90th percentile", description: "Connections from the launcher to all workers, and the start of MPI on the slowest worker.", unit: seconds, queries: []query{
					{`histogram_quantile(0.9, sum by (le) (increase(mpijob_connect_seconds_bucket[1d])))`, "connect"},
					{`histogram_quantile(0.9, sum by (le) (increase(mpijob_mpi_init_seconds_bucket[1d])))`, "MPI init"},
				}},
			}},
			{"Reserved resources", []panel{
				one("GPU hours of the last day", "Requested devices multiplied by time, of the ten largest projects.", lines, hours, `topk(10, namespace_resource:mpijob_gpu_hours:increase1d)`, "{{namespace}} {{resource}}"),
				one("Core hours of the last day", "Requested CPU cores multiplied by time, of the ten largest projects.", lines, hours, `topk(10, namespace:mpijob_cpu_core_hours:increase1d)`, "{{namespace}}"),
			}},
			{"Operator", []panel{
				one("Failed reconciles per hour", "", lines, number, `sum by (controller) (increase(controller_runtime_reconcile_errors_total{job="mpijob-operator-metrics"}[1h]))`, "{{controller}}"),
				one("Jobs that wait for a reconcile", "", lines, number, `sum by (name) (workqueue_depth{job="mpijob-operator-metrics"})`, "{{name}}"),
				one("Webhook latency, 90th percentile", "After 5 s, the API server admits jobs without validation.", lines, seconds, `webhook:controller_runtime_webhook_latency_seconds:p90_5m`, "{{webhook}}"),
				one("Time until certificates expire", "The operator renews them 60 days before.", lines, seconds, `min by (certificate) (mpijob_certificate_expiry_timestamp_seconds) - time()`, "{{certificate}}"),
				one("Failed writes of JobReports per hour", "", lines, number, `sum(increase(mpijob_report_write_errors_total[1h]))`, "failed"),
				one("Deleted JobReports per hour", "Reports that were deleted because of a limit.", lines, number, `sum by (limit) (increase(mpijob_reports_deleted_total[1h]))`, "{{limit}}"),
			}},
		},
	}
}

func projectDashboard() dashboard {
	return dashboard{
		name: "mpijob-project", title: "MPI jobs / Project", description: "The jobs, reserved resources and quotas of projects.",
		variables: []variable{projects},
		rows: []row{
			{"Jobs", []panel{
				one("Running", "", figure, number, `sum(mpijob_jobs_running{namespace=~"$namespace"})`, ""),
				one("Queued", "", figure, number, `sum(mpijob_jobs_queued{namespace=~"$namespace"})`, ""),
				one("Failed in the last hour", "", figure, number, `sum(namespace_kind:mpijob_jobs_failed:increase1h{namespace=~"$namespace"})`, ""),
				one("Deleted before their end in the last day", "", figure, number, `sum(increase(mpijob_jobs_deleted_total{namespace=~"$namespace"}[1d]))`, ""),
				{title: "Results per hour", queries: []query{
					{`sum(namespace_kind:mpijob_jobs_succeeded:increase1h{namespace=~"$namespace"})`, "succeeded"},
					{`sum(namespace_kind:mpijob_jobs_failed:increase1h{namespace=~"$namespace"})`, "failed"},
				}},
				one("Median duration of the last day", "From creation to the end, waiting included.", lines, seconds, `namespace_kind:mpijob_job_duration_seconds:p50_1d{namespace=~"$namespace"}`, "{{namespace}} {{kind}}"),
				one("Findings of unfinished jobs", "", lines, number, `sum by (namespace, code) (mpijob_findings{namespace=~"$namespace"})`, "{{namespace}} {{code}}"),
				one("Used share of slots", "Slots on which ranks started, of the slots of all workers.", lines, share, `sum by (namespace) (mpijob_slots_found{namespace=~"$namespace"}) / sum by (namespace) (mpijob_slots_expected{namespace=~"$namespace"})`, "{{namespace}}"),
				one("Jobs", "Unfinished jobs, and those that ended within the last hour.", table, number, `mpijob_info{namespace=~"$namespace"}`, "{{kind}} {{name}} {{phase}}"),
			}},
			{"Reserved resources", []panel{
				one("GPU hours of the last day", "Requested devices multiplied by time.", lines, hours, `namespace_resource:mpijob_gpu_hours:increase1d{namespace=~"$namespace"}`, "{{namespace}} {{resource}}"),
				one("Core hours of the last day", "Requested CPU cores multiplied by time.", lines, hours, `namespace:mpijob_cpu_core_hours:increase1d{namespace=~"$namespace"}`, "{{namespace}}"),
				one("Memory, GiB hours of the last day", "Requested memory multiplied by time.", lines, hours, `sum by (namespace) (increase(mpijob_memory_gib_seconds_total{namespace=~"$namespace"}[1d])) / 3600`, "{{namespace}}"),
				one("Used share of quotas", "", lines, share, `max by (namespace, quota, resource) (mpijob_quota_used_ratio{namespace=~"$namespace"})`, "{{namespace}} {{quota}} {{resource}}"),
			}},
		},
	}
}

func jobDashboard() dashboard {
	const pods = `{namespace="$namespace", pod=~"$name-(launcher|worker|node).*"}`
	return dashboard{
		name: "mpijob-job", title: "MPI jobs / Job", description: "One job: its phase, and what the agents of its pods report, if Prometheus scrapes them (docs/metrics.md).",
		variables: []variable{
			{name: "namespace", title: "Project", metric: "mpijob_info", label: "namespace"},
			{name: "name", title: "Job", metric: `mpijob_info{namespace="$namespace"}`, label: "name"},
		},
		rows: []row{
			{"Job", []panel{
				one("Phase", "", lines, number, `max by (phase) (mpijob_info{namespace="$namespace", name="$name"})`, "{{phase}}"),
				one("Ranks that run", "", lines, number, `sum by (pod) (mpi_agent_ranks_running`+pods+`)`, "{{pod}}"),
			}},
			{"MPI", []panel{
				{title: "Hosts", description: "Hosts of the hostfile, and those that the launcher reached.", queries: []query{
					{`max(mpi_agent_hosts_expected` + pods + `)`, "expected"}, {`max(mpi_agent_hosts_reached` + pods + `)`, "reached"},
				}},
				{title: "Start", description: "How long connections to all hosts and the start of MPI took.", unit: seconds, queries: []query{
					{`max(mpi_agent_connect_seconds` + pods + `)`, "connect"}, {`max(mpi_agent_init_seconds` + pods + `)`, "MPI init"},
				}},
				one("Failed ranks", "", lines, number, `sum by (pod) (mpi_agent_ranks_failed_total`+pods+`)`, "{{pod}}"),
				one("Refused connections", "Connections that did not prove that they belong to the job.", lines, number, `sum by (pod) (mpi_agent_connections_refused_total`+pods+`)`, "{{pod}}"),
			}},
			{"Use", []panel{
				one("CPU cores", "", lines, number, `sum by (pod) (rate(mpi_agent_cpu_seconds_total`+pods+`[5m]))`, "{{pod}}"),
				one("CPU cores, share of the limit", "", lines, share, `sum by (pod) (rate(mpi_agent_cpu_seconds_total`+pods+`[5m])) / (max by (pod) (mpi_agent_cpu_limit_cores`+pods+`) > 0)`, "{{pod}}"),
				one("Throttled", "Share of the time that processes needed a CPU in which the CPU limit stopped them.", lines, share, `sum by (pod) (rate(mpi_agent_cpu_throttled_seconds_total`+pods+`[5m])) / (sum by (pod) (rate(mpi_agent_cpu_throttled_seconds_total`+pods+`[5m])) + sum by (pod) (rate(mpi_agent_cpu_seconds_total`+pods+`[5m])) > 0)`, "{{pod}}"),
				one("GPUs that are busy", "Of AMD and NVIDIA.", lines, number, `sum by (pod) (mpi_agent_gpus_busy`+pods+`)`, "{{pod}}"),
				one("GPU memory", "Of AMD and NVIDIA.", lines, bytesUnit, `sum by (pod) (mpi_agent_gpu_memory_used_bytes`+pods+`)`, "{{pod}}"),
				one("Network, bytes per second", "Received and sent. With hostNetwork, that of the node.", lines, bytesUnit, `sum by (pod) (rate(mpi_agent_network_bytes_total`+pods+`[5m]))`, "{{pod}}"),
				one("Disks, bytes per second", "Read and written.", lines, bytesUnit, `sum by (pod) (rate(mpi_agent_io_bytes_total`+pods+`[5m]))`, "{{pod}}"),
				{title: "Waiting", description: "Share of time in which a process waited, of the pod that waits most.", unit: share, queries: []query{
					{`max(rate(mpi_agent_cpu_pressure_seconds_total` + pods + `[5m]))`, "for a CPU"},
					{`max(rate(mpi_agent_memory_pressure_seconds_total` + pods + `[5m]))`, "for memory"},
					{`max(rate(mpi_agent_io_pressure_seconds_total` + pods + `[5m]))`, "for disks"},
				}},
			}},
			{"Memory", []panel{
				one("Working set", "Memory in use, without cached files that the kernel can drop.", lines, bytesUnit, `max by (pod) (mpi_agent_memory_working_set_bytes`+pods+`)`, "{{pod}}"),
				one("Most memory used", "", lines, bytesUnit, `max by (pod) (mpi_agent_memory_peak_bytes`+pods+`)`, "{{pod}}"),
				one("Most memory used, share of the limit", "", lines, share, `max by (pod) (mpi_agent_memory_peak_bytes`+pods+`) / (max by (pod) (mpi_agent_memory_limit_bytes`+pods+`) > 0)`, "{{pod}}"),
				one("Processes killed for lack of memory", "", lines, number, `sum by (pod) (mpi_agent_oom_kills_total`+pods+`)`, "{{pod}}"),
			}},
		},
	}
}

func queueDashboard() dashboard {
	const of = `{namespace=~"$namespace", queue=~"$queue"}`
	return dashboard{
		name: "mpijob-queue", title: "MPI jobs / Queue", description: "The jobs that wait, in queues of Kueue and for capacity.",
		variables: []variable{
			projects,
			{name: "queue", title: "Queue", metric: `mpijob_queue_waiting_jobs{namespace=~"$namespace"}`, label: "queue", many: true},
		},
		rows: []row{
			{"Queues", []panel{
				one("Waiting jobs", "", figure, number, `sum(mpijob_queue_waiting_jobs`+of+`)`, ""),
				one("Longest wait", "", figure, seconds, `max(mpijob_queue_oldest_wait_seconds`+of+`)`, ""),
				one("Waiting jobs by queue", "", lines, number, `sum by (namespace, queue) (mpijob_queue_waiting_jobs`+of+`)`, "{{namespace}} {{queue}}"),
				one("Longest wait by queue", "", lines, seconds, `max by (namespace, queue) (mpijob_queue_oldest_wait_seconds`+of+`)`, "{{namespace}} {{queue}}"),
				one("Admissions per hour", "", lines, number, `sum by (namespace, queue) (increase(mpijob_queue_admissions_total`+of+`[1h]))`, "{{namespace}} {{queue}}"),
			}},
			{"Capacity", []panel{
				one("Jobs that wait for capacity or in a queue", "", lines, number, `sum by (namespace, kind) (mpijob_jobs_queued{namespace=~"$namespace"})`, "{{namespace}} {{kind}}"),
				one("Wait until all pods had a node, 90th percentile", "Of the whole cluster.", lines, seconds, `cluster:mpijob_gang_wait_seconds:p90_1d`, "90th percentile"),
				one("Used share of quotas", "", lines, share, `max by (namespace, quota, resource) (mpijob_quota_used_ratio{namespace=~"$namespace"})`, "{{namespace}} {{quota}} {{resource}}"),
			}},
		},
	}
}
