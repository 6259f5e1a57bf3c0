package manifest

import (
	"fmt"
	"io"
	"os"
)

// Open reads a file in a format. Errors name the file. It must be a regular file, since other files, such as pipes, may never end.
func Open[T any](name string, read func(io.Reader) (T, error)) (content T, err error) {
	file, err := os.Open(name)
	if err != nil {
		return content, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return content, fmt.Errorf("%s: not a regular file", name)
	}
	if content, err = read(file); err != nil {
		return content, fmt.Errorf("%s: %w", name, err)
	}
	return content, nil
}
