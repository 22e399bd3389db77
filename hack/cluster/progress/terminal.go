package progress

import (
	"os"

	"golang.org/x/sys/unix"
)

// windowWidth is the number of columns of the terminal behind file, or 0 if
// there is none. A terminal that does not know its size counts as 80 wide.
func windowWidth(file *os.File) int {
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	if size.Col == 0 {
		return 80
	}
	return int(size.Col)
}
