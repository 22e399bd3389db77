module opendatahub.io/mpijob/hack/cluster/build/pause

go 1.26.0

toolchain go1.26.10
