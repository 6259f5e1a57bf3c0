// Command licenses writes the license texts and notices of the modules that a program is built from, Go
// and this project included, to standard output. The images contain this text.
//
//	go run ./hack/licenses ./cmd/load-watcher
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: licenses PACKAGE, such as licenses ./cmd/load-watcher")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// run writes the texts of a program. A module without a license text is an error.
func run(program string, out io.Writer) error {
	modules, err := modulesOf(program)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(out)
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		if err := modules[name].write(buffered, name); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// module is a module of a program.
type module struct {
	root string
	// folders are the directories of the packages that the program uses.
	folders []string
}

// format is the output of go list for a package: its module, and its directory.
const format = `{{if .Standard}}Go {{end}}{{with .Module}}{{.Path}} {{.Version}}{{end}}	` +
	`{{if .Standard}}{{.Root}}{{end}}{{with .Module}}{{.Dir}}{{end}}	{{.Dir}}`

// modulesOf returns the modules of a program by name and version.
func modulesOf(program string) (map[string]*module, error) {
	var stderr bytes.Buffer
	list := exec.Command("go", "list", "-deps", "-f", format, program)
	list.Stderr = &stderr
	printed, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	modules := map[string]*module{}
	for line := range strings.Lines(string(printed)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 || fields[1] == "" {
			return nil, fmt.Errorf("go list printed %q: must be a module, its directory and that of a package", line)
		}
		name := strings.TrimSpace(fields[0])
		if modules[name] == nil {
			modules[name] = &module{root: fields[1]}
		}
		modules[name].folders = append(modules[name].folders, fields[2])
	}
	return modules, nil
}

// text matches the names of files with a license or a notice, patent grants included.
var text = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-_.].*)?$`)

// license matches the names of the files of which each module has at least one.
var license = regexp.MustCompile(`(?i)^(licen[cs]e|copying)`)

// write writes the texts at the root of the module and in the directories of its packages.
func (m *module) write(out io.Writer, name string) error {
	folders := map[string]bool{m.root: true}
	for _, folder := range m.folders {
		for ; strings.HasPrefix(folder, m.root+string(filepath.Separator)); folder = filepath.Dir(folder) {
			folders[folder] = true
		}
	}
	licensed := false
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.IsDir() || !text.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" {
				continue
			}
			licensed = licensed || license.MatchString(entry.Name())
			if err := m.writeFile(out, name, filepath.Join(folder, entry.Name())); err != nil {
				return err
			}
		}
	}
	if !licensed {
		return errors.New(name + ": found no license text")
	}
	return nil
}

func (m *module) writeFile(out io.Writer, name, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(m.root, file)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "==== %s: %s\n\n%s\n\n", name, filepath.ToSlash(relative), bytes.TrimSpace(content))
	return err
}
