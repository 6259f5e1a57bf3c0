package realnodes

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
)

// Image is the image of the program work, which all containers run.
const Image = "localhost/work:1"

// imageNames are the names of the image. Sandboxes of pods and placeholders of Plimsoll run it, too.
var imageNames = []string{Image, "localhost/pause:1", "registry.k8s.io/pause:3.10"}

// writeImage writes an archive with an image whose only file is a program, for users other than root.
func writeImage(path, program string) error {
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	layer, err := archive(file{"work", 0o755, binary})
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/work"}, "User": "65535:65535", "Env": []string{"PATH=/"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": imageNames, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	whole, err := archive(file{"manifest.json", 0o644, manifest}, file{"config.json", 0o644, config}, file{"layer.tar", 0o644, layer})
	if err != nil {
		return err
	}
	return os.WriteFile(path, whole, 0o644)
}

// file is a file of an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

func archive(files ...file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
