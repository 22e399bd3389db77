// Package files reads files that users name.
package files

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// mostOfFile bounds files that variables name: keys, and messages of a container's end.
const mostOfFile = 1 << 20

// Read reads a file whose path is that of a variable, at most 1 MiB. Users set variables: it refuses what is not a file, such as
// /dev/zero, which has no end.
func Read(path string) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, mostOfFile+1))
	if err == nil && len(data) > mostOfFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, mostOfFile)
	}
	return data, err
}

// Open opens a regular file in whose place a program may have made something else, such as a FIFO without a writer.
func Open(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return file, nil
}
