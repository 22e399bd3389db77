module opendatahub.io/mpijob/hack/cluster

go 1.26.0

require (
	github.com/spf13/cobra v1.10.2
	golang.org/x/sys v0.47.0
	opendatahub.io/mpijob/hack/images v0.0.0
)

require (
	github.com/google/go-containerregistry v0.22.1 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/spf13/pflag v1.0.10 // indirect
)

replace opendatahub.io/mpijob/hack/images => ../images
