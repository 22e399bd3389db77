package offline

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// readFolder reads all files of a folder, such as one of oc adm inspect or of must-gather.
func (s *Saved) readFolder(folder string) {
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			s.Problems = append(s.Problems, err.Error())
		case entry.Type().IsRegular():
			s.Problems = append(s.Problems, s.readFileOfFolder(path, entry)...)
		}
		return nil
	})
}

// readFileOfFolder reads a file of a folder if it is one of a kind that is used, and returns what is wrong with it.
func (s *Saved) readFileOfFolder(path string, entry fs.DirEntry) []string {
	switch filepath.Ext(path) {
	case ".log":
		if key := keyOf(path); key.pod != "" {
			if err := s.logs.add(key, path, false); err != nil {
				return []string{err.Error()}
			}
		}
		return nil
	case ".yaml", ".yml", ".json":
	default:
		if entry.Name() == "timestamp" {
			s.readTimestamp(path)
		}
		return nil
	}
	info, err := entry.Info()
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", path, err)}
	}
	if info.Size() > maxFile {
		return []string{fmt.Sprintf("%s: has %d bytes; at most %d are read", path, info.Size(), maxFile)}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", path, err)}
	}
	if !mentionsWanted(data) {
		return nil
	}
	return s.readObjects(path, data)
}

// readTimestamp reads when must-gather has collected a folder: a line for the start, and one for the end.
func (s *Saved) readTimestamp(path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(data)) {
		// 2026-11-26 03:00:00.123456789 +0000 UTC m=+0.1
		text, _, _ := strings.Cut(strings.TrimSpace(line), " m=")
		if at, err := time.Parse("2006-01-02 15:04:05.999999999 -0700 MST", text); err == nil && at.After(s.taken) {
			s.taken = at
		}
	}
}

var kindLine = regexp.MustCompile(`(?m)^[ \t-]*\{?[ \t]*"?kind"?:[ \t]*"?([A-Za-z]+)`)

// mentionsWanted reports whether a file may contain objects of a kind that is read: most files of a must-gather do not.
func mentionsWanted(data []byte) bool {
	const most = 64 << 10
	head := data[:min(len(data), most)]
	for _, found := range kindLine.FindAllSubmatch(head, -1) {
		name := strings.TrimSuffix(string(found[1]), "List")
		if name == "" {
			return true
		}
		for kind := range wanted {
			if kind.Kind == name {
				return true
			}
		}
	}
	return bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) // JSON on one line
}
