// Package collector tests that a real OpenTelemetry Collector accepts the operator's traces.
package collector
