package main

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/ko/pkg/build"
)

// archive writes an image to an OCI archive. The image has its name in the annotations that containerd, Docker and skopeo
// read.
func (i *images) archive(file, program string, image build.Result) error {
	folder, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	contents, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	names := layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": i.version,
		"io.containerd.image.name":          i.reference(program),
	})
	switch image := image.(type) {
	case v1.ImageIndex:
		err = contents.AppendIndex(image, names)
	case v1.Image:
		err = contents.AppendImage(image, names)
	default:
		err = fmt.Errorf("found a %T: must be an image or an index", image)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(i.folder, 0o755); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	if err := i.pack(out, folder); err != nil {
		return err
	}
	return out.Close()
}

// pack writes the files of a folder in the order of their names. All have the same time and mode.
func (i *images) pack(out io.Writer, folder string) error {
	archive := tar.NewWriter(out)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: info.Size(), ModTime: i.day.Time}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err = io.Copy(archive, file)
		return err
	})
	if err != nil {
		return err
	}
	return archive.Close()
}
