package base

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
)

// NewFile is a file that a command writes, completely or not at all, or none without a path.
type NewFile struct {
	// Flag that names the file, for error messages.
	Flag string
	Path string
	// Force replaces an existing file.
	Force bool
	Mode  fs.FileMode
}

// CheckFileName returns an error for the name of a new file or directory that is a format of --output in other commands.
func CheckFileName(flag, path string) error {
	if slices.Contains([]string{"-", "name", "html", FormatTable, FormatWide, FormatJSON, FormatYAML, FormatMarkdown}, path) {
		return fmt.Errorf("%s: invalid value %q: must be the name of a file, not a format or -; ./%s is a file", flag, path, path)
	}
	return nil
}

// isInput reports whether an existing file is one that the other flags or the arguments of a command name, its kubeconfig, its standard
// input, or one that is read from a folder that they name.
func (f NewFile) isInput(existing fs.FileInfo, cmd *cobra.Command) bool {
	names := append(clientcmd.NewDefaultClientConfigLoadingRules().Precedence, cmd.Flags().Args()...)
	var folders []string
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		values, extensions := []string{flag.Value.String()}, []string{".yaml", ".yml", ".json"}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if flag.Name == "recording" {
			extensions = []string{".gz"}
		}
		for _, value := range values {
			before, _, _ := strings.Cut(value, ",") // a recording can have options
			if "--"+flag.Name != f.Flag {
				names = append(names, value, before)
			}
			if slices.Contains(extensions, strings.ToLower(filepath.Ext(f.Path))) {
				folders = append(folders, before)
			}
		}
	})
	isSame := func(name string, with fs.FileInfo) bool {
		info, err := os.Stat(name)
		if name == "-" {
			info, err = os.Stdin.Stat()
		}
		return err == nil && os.SameFile(info, with)
	}
	path, err := filepath.Abs(f.Path)
	for err == nil && len(folders) > 0 && filepath.Dir(path) != path {
		path = filepath.Dir(path)
		if info, err := os.Stat(path); err == nil && slices.ContainsFunc(folders, func(name string) bool { return isSame(name, info) }) {
			return true
		}
	}
	return slices.ContainsFunc(names, func(name string) bool { return isSame(name, existing) })
}

// Check returns an error if the file cannot be written, or is an input of the command. Commands call it before they compute
// the content, which may take long.
func (f NewFile) Check(cmd *cobra.Command) error {
	if f.Path == "" {
		return nil
	}
	if err := CheckFileName(f.Flag, f.Path); err != nil {
		return err
	}
	folder := filepath.Dir(f.Path)
	if info, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: folder %s does not exist: create it first", f.Flag, folder)
	} else if err != nil {
		return fmt.Errorf("%s: %w", f.Flag, err)
	} else if !info.IsDir() {
		return fmt.Errorf("%s: %s is not a directory", f.Flag, folder)
	}
	switch existing, err := os.Stat(f.Path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", f.Flag, err)
	case !existing.Mode().IsRegular():
		return fmt.Errorf("%s: %s is not a regular file", f.Flag, f.Path)
	case f.isInput(existing, cmd):
		return fmt.Errorf("%s: %s is also an input: must be another file", f.Flag, f.Path)
	case !f.Force:
		return fmt.Errorf("%s: %s already exists; --force replaces it", f.Flag, f.Path)
	}
	return nil
}

// Write writes the content to a temporary file in the same directory and renames it when it is
// complete.
func (f NewFile) Write(content func(io.Writer) error) (err error) {
	if f.Path == "" {
		return nil
	}
	file, err := os.CreateTemp(filepath.Dir(f.Path), ".plimsoll-*")
	if path, ok := errors.AsType[*fs.PathError](err); ok { // of a name that nobody gave
		return fmt.Errorf("%s: %s: %w in %s", f.Flag, f.Path, path.Err, filepath.Dir(f.Path))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Flag, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // the first error is the one to report
			err = fmt.Errorf("%s: %w", f.Flag, err)
		}
	}()
	err = cmp.Or(content(file), file.Chmod(f.Mode), file.Close())
	if err != nil {
		return err
	}
	if f.Force {
		return os.Rename(file.Name(), f.Path)
	}
	// Unlike a rename, a link does not replace a file created in the meantime. Not every file
	// system supports links.
	switch err := os.Link(file.Name(), f.Path); {
	case err == nil:
		return os.Remove(file.Name())
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s was created in the meantime", f.Path)
	}
	return os.Rename(file.Name(), f.Path)
}
