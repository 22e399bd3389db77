// Command etcd is the etcd server at the version the cluster pins. It is a
// separate module, because etcd's server module cannot be installed by path:
// its main package is in the parent module, which replaces its siblings.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
