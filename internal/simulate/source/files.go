package source

import (
	"path/filepath"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/spec"
)

// Relocated returns the specification with every file and directory replaced by what rename returns, so that it can be read where the
// files have other names. Standard input is part of the specification and is not renamed.
func (s Spec) Relocated(rename func(path string) (string, error)) (Spec, error) {
	var first error
	renamed := func(path string) string {
		if path == "" || first != nil {
			return path
		}
		to, err := rename(path)
		first = err
		return to
	}
	files := make([]string, len(s.Files))
	for i, file := range s.Files {
		files[i] = file
		if file != "-" {
			files[i] = renamed(file)
		}
	}
	if s.Files != nil {
		s.Files = files
	}
	s.Snapshot = renamed(s.Snapshot)
	recording, options, hasOptions := strings.Cut(s.Recording, ",")
	if s.Recording = renamed(recording); hasOptions {
		s.Recording += "," + options
	}
	switch kind, rest := spec.Cut(s.Trace); kind {
	case "openb":
		nodes, rest, _ := strings.Cut(rest, ",")
		pods, options, found := strings.Cut(rest, ",")
		s.Trace = kind + ":" + renamed(nodes) + "," + renamed(pods)
		if found {
			s.Trace += "," + options
		}
	case "alibaba2018":
		dir, options, found := strings.Cut(rest, ",")
		s.Trace = kind + ":" + renamed(filepath.Clean(dir))
		if found {
			s.Trace += "," + options
		}
	}
	return s, first
}
