// Package files reads files that configurations name, and those that a process has written before: regular files only, as others may never
// end, and of a bounded size. Links are followed: Kubernetes mounts Secrets and ConfigMaps as links.
package files

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Open opens a regular file for reading.
func Open(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // does not wait for a writer of a pipe
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	return file, nil
}

// Text returns a reader of text in UTF-8. Text in another Unicode encoding must begin with its byte order mark, as PowerShell writes it.
func Text(in io.Reader) io.Reader { return transform.NewReader(in, unicode.BOMOverride(transform.Nop)) }

// MaxSecret is the size of the largest file with credentials or certificates, as of a Secret.
const MaxSecret = 1 << 20

// Read returns the content of a regular file of at most a number of bytes.
func Read(name string, most int64) ([]byte, error) {
	file, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(raw)) > most {
		return nil, fmt.Errorf("%s: found more than %d bytes: must have at most that", name, most)
	}
	return raw, err
}
