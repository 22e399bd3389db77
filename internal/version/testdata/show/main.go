// Show prints how it was built, for TestFIPSModule.
package main

import (
	"fmt"

	"opendatahub.io/mpijob/internal/version"
)

func main() { fmt.Println(version.Get()) }
