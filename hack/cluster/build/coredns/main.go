// Command coredns is CoreDNS with only the plug-ins that a cluster's DNS
// server uses. The stock binary compiles in every cloud's SDK, which costs
// minutes and hundreds of megabytes here.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func init() {
	// The order is upstream's (core/dnsserver/zdirectives.go): it is the order
	// in which plug-ins see a request. Directives without a plug-in here would
	// be accepted in the Corefile and ignored, so none is listed.
	dnsserver.Directives = []string{
		"reload",
		"bind",
		"ready",
		"health",
		"errors",
		"log",
		"cache",
		"loadbalance",
		"kubernetes",
		"forward",
	}
}

func main() {
	coremain.Run()
}
