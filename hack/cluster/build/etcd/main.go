// Command etcd is the etcd server at the version the cluster pins. A module
// of our own, because etcd's server module cannot be installed by path: its
// main package lies in the module above it, which replaces its siblings.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
