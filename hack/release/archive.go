package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// writeArchives builds all programs for all platforms, and writes an archive and a bill of materials of each.
func (r *release) writeArchives(ctx context.Context) error {
	if err := os.MkdirAll(r.folder, 0o755); err != nil {
		return err
	}
	stage, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(stage) }()
	// The tools run on this machine and read what is built for others.
	licenses, sbom := filepath.Join(stage, "licenses"), filepath.Join(stage, "sbom")
	if _, err := output(ctx, nil, "go", "build", "-o", licenses, "./hack/licenses"); err != nil {
		return err
	}
	if _, err := output(ctx, nil, "go", "build", "-C", "tools/release", "-o", sbom, "./sbom"); err != nil {
		return err
	}
	for _, p := range r.platforms {
		for _, program := range r.programsOf(p) {
			binary := filepath.Join(stage, r.binary(program, p))
			if err := r.build(ctx, program, p, binary); err != nil {
				return err
			}
			texts, err := output(ctx, p.environment(), licenses, "./cmd/"+program)
			if err != nil {
				return err
			}
			if err := r.writeArchive(program, p, binary, texts); err != nil {
				return err
			}
			bill, err := output(ctx, nil, sbom, binary, r.version, r.date)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(r.folder, r.bill(program, p)), bill, 0o644); err != nil {
				return err
			}
			if err := os.Remove(binary); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeArchive writes the archive of a program with its license texts.
func (r *release) writeArchive(program string, p platform, binary string, texts []byte) error {
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	files := []file{{"LICENSE", 0o644, license}, {"LICENSES", 0o644, texts}, {filepath.Base(binary), 0o755, content}}
	name := r.archive(program, p)
	var archive bytes.Buffer
	if err := pack(&archive, p, files, r.day); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintf(r.progress, "%s, %d MiB\n", name, archive.Len()>>20)
	return os.WriteFile(filepath.Join(r.folder, name), archive.Bytes(), 0o644)
}

// binary returns the name of a program's file.
func (r *release) binary(program string, p platform) string {
	if p.os == "windows" {
		return program + ".exe"
	}
	return program
}

// base returns the name of a program's files in the release, without their extension.
func (r *release) base(program string, p platform) string {
	return strings.Join([]string{program, r.version, p.os, p.arch}, "_")
}

// archive returns the name of a program's archive.
func (r *release) archive(program string, p platform) string {
	if p.os == "windows" {
		return r.base(program, p) + ".zip"
	}
	return r.base(program, p) + ".tar.gz"
}

// bill returns the name of a program's bill of materials.
func (r *release) bill(program string, p platform) string { return r.base(program, p) + ".spdx.json" }

// build builds a program as make build does.
func (r *release) build(ctx context.Context, program string, p platform, binary string) error {
	_, err := output(ctx, p.environment(), "make", "--no-print-directory", "bin/"+program, "BINARY="+binary,
		"VERSION="+r.version, "COMMIT="+r.commit, "DATE="+r.date)
	if err != nil {
		return fmt.Errorf("building %s for %s: %w", program, p, err)
	}
	return nil
}

// output runs a command with more environment variables and returns what it writes to standard output.
func output(ctx context.Context, environment []string, name string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %v: %w", name, arguments, err)
	}
	return out, nil
}

// file is a file of an archive.
type file struct {
	name    string
	mode    os.FileMode
	content []byte
}

// pack writes an archive: a zip archive for Windows, a compressed tar archive for all others. All files have the same time.
func pack(out io.Writer, p platform, files []file, day time.Time) error {
	if p.os == "windows" {
		return packZip(out, files, day)
	}
	compressed := gzip.NewWriter(out)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: day, Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

func packZip(out io.Writer, files []file, day time.Time) error {
	archive := zip.NewWriter(out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: day}
		header.SetMode(f.mode)
		entry, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}
