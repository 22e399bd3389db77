// Package nfs tests the NFS server and the NFS client of the end-to-end tests with each other.
package nfs
