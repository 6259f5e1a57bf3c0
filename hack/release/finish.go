package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// checksums is the name of the file with the checksums of all others.
const checksums = "checksums.txt"

// krewFile is the name of the manifest for krew.
const krewFile = "plimsoll-krew.yaml"

// finish gives the files of the chart the time of the release, and writes the manifest for krew and the checksums of all
// files of the folder and its folders.
func (r *release) finish() error {
	if err := r.repackChart(); err != nil {
		return err
	}
	manifest, err := r.krewManifest()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.folder, krewFile), manifest, 0o644); err != nil {
		return err
	}
	var sums bytes.Buffer
	err = filepath.WalkDir(r.folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == checksums {
			return err
		}
		sum, err := checksum(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.folder, path)
		fmt.Fprintf(&sums, "%s  %s\n", sum, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.folder, checksums), sums.Bytes(), 0o644)
}

// repackChart writes the chart again: helm package gives its files the times that they have on this machine.
func (r *release) repackChart() error {
	name := filepath.Join(r.folder, cli+"-"+strings.TrimPrefix(r.version, "v")+".tgz")
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var files []file
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, file{header.Name, 0o644, text})
	}
	var chart bytes.Buffer
	if err := pack(&chart, platform{}, files, r.day); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, chart.Bytes(), 0o644)
}

func checksum(path string) (string, error) {
	content, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer content.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

//go:embed krew.yaml.tpl
var krewTemplate string

// download is the address of the files of a version.
const download = "https://github.com/plimsoll-k8s/plimsoll/releases/download/"

// krewManifest returns the manifest with which krew installs the program on the platforms of the release.
func (r *release) krewManifest() ([]byte, error) {
	type entry struct{ OS, Arch, URI, SHA256, Binary string }
	data := struct {
		Version   string
		Platforms []entry
	}{Version: r.version}
	for _, p := range r.platforms {
		name := r.archive(cli, p)
		sum, err := checksum(filepath.Join(r.folder, name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", krewFile, err)
		}
		data.Platforms = append(data.Platforms, entry{p.os, p.arch, download + r.version + "/" + name, sum, r.binary(cli, p)})
	}
	if len(data.Platforms) == 0 {
		return nil, errors.New("no platforms")
	}
	parsed, err := template.New(krewFile).Parse(krewTemplate)
	if err != nil {
		return nil, err
	}
	var manifest bytes.Buffer
	if err := parsed.Execute(&manifest, data); err != nil {
		return nil, err
	}
	return manifest.Bytes(), nil
}
