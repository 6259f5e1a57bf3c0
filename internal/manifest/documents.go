package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/files"
)

// maxFileBytes is the largest size of a file, which takes about four times as much memory. Tests lower it.
var maxFileBytes int64 = 256 << 20

// maxNesting is the largest number of Lists around an object. Every List is decoded with its
// complete content: without a bound, the time grows with the square of the depth.
const maxNesting = 3

var errNesting = fmt.Errorf("found more than %d Lists in each other: must have at most %d", maxNesting, maxNesting)

// extensions has the extensions of the files that are read from a folder.
var extensions = []string{".yaml", ".yml", ".json"}

// Source calls each for every document in order and stops at the first error. where is the location of
// the document for errors.
type Source func(each func(where string, document []byte) error) error

// Files returns the documents in files and, recursively, in folders, in order. "-" is standard input. Locations and
// errors name the file and the number of the document in it. Empty documents are skipped.
func Files(paths []string, stdin io.Reader) Source {
	return func(each func(where string, document []byte) error) error {
		for i, path := range paths {
			var err error
			if path == "-" {
				in := bufio.NewReader(stdin)
				if _, empty := in.Peek(1); empty != nil && slices.Contains(paths[:i], "-") {
					return errors.New("--filename: found - twice: standard input can be read once")
				} else if errors.Is(empty, io.EOF) {
					return errors.New("standard input is empty: must have manifests; did the command before the pipe fail?")
				}
				err = stream("standard input", in, each)
			} else {
				err = fileOrFolder(path, each)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// errSize is the error of a file that is too large.
func errSize(name string) error {
	return fmt.Errorf("%s: exceeds the limit of %d MiB: use a snapshot (plimsoll snapshot) of a large cluster", name, maxFileBytes>>20)
}

// Buffer returns the content of a stream that is read more than once, up to the largest size of a file.
func Buffer(in io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err == nil && int64(len(content)) > maxFileBytes {
		err = errSize("standard input")
	}
	return content, err
}

// fileOrFolder reads the documents of a file, or of all files in a folder.
func fileOrFolder(path string, each func(string, []byte) error) error {
	info, err := os.Stat(path)
	if err != nil && strings.Contains(path, "://") {
		return fmt.Errorf("%s: URLs are not read: pass the content to standard input, as in curl -s URL | plimsoll ... -f -", path)
	}
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && info.Size() == 0 {
		return fmt.Errorf("%s: found an empty file: must have manifests", path)
	}
	if !info.IsDir() {
		return file(path, each)
	}
	found := false
	err = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains(extensions, strings.ToLower(filepath.Ext(path))) {
			return err
		}
		found = true
		return file(path, each)
	})
	if err == nil && !found {
		return fmt.Errorf("%s: no files ending in %s", path, strings.Join(extensions, ", "))
	}
	return err
}

// file reads the documents of a file.
func file(path string, each func(string, []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return stream(path, f, each)
}

// stream reads the documents of a stream.
func stream(name string, in io.Reader, each func(string, []byte) error) error {
	bounded := &io.LimitedReader{R: in, N: maxFileBytes + 1}
	text := bufio.NewReader(files.Text(bounded))
	if start, _ := text.Peek(2); string(start) == "\x1f\x8b" {
		return fmt.Errorf("%s: found a file in gzip: must have manifests; --recording reads snapshots and recordings", name)
	}
	documents := yaml.NewYAMLReader(text)
	for i := 1; ; i++ {
		document, err := documents.Read()
		if bounded.N <= 0 {
			return errSize(name)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		where := fmt.Sprintf("%s, document %d", name, i)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if len(bytes.TrimSpace(dropComments(document))) == 0 {
			continue
		}
		for _, value := range split(document) {
			if err := each(where, value); err != nil {
				return fmt.Errorf("%s: %w", where, err)
			}
		}
	}
}

// dropComments returns a document without lines of comments and separators.
func dropComments(document []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(document) {
		if trimmed := bytes.TrimSpace(line); !bytes.HasPrefix(trimmed, []byte("#")) && !bytes.Equal(trimmed, []byte("---")) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// Open reads a file in a format. Errors name the file. It must be a regular file, since other files, such as pipes, may never end.
func Open[T any](name string, read func(io.Reader) (T, error)) (content T, err error) {
	file, err := files.Open(name)
	if err != nil {
		return content, err
	}
	defer file.Close()
	if content, err = read(file); err != nil {
		return content, fmt.Errorf("%s: %w", name, err)
	}
	return content, nil
}
