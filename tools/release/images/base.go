package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificates is the file in which Go finds the certificates of public authorities.
const certificates = "etc/ssl/certs/ca-certificates.crt"

// baseImages returns the image on which all others are based, for each platform: it has the certificates of public
// authorities and nothing else, and its user is not root.
func baseImages(platforms []string, day v1.Time) (v1.ImageIndex, error) {
	layer, err := certificateLayer(day)
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		system, architecture, _ := strings.Cut(p, "/")
		scratch := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
		image, err := mutate.ConfigFile(scratch, &v1.ConfigFile{
			OS: system, Architecture: architecture, Created: day, Config: v1.Config{User: "65532:65532"},
		})
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: layer, History: v1.History{Created: day, CreatedBy: "images", Comment: "certificates of public authorities"},
		})
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: system, Architecture: architecture},
		}})
	}
	return index, nil
}

// certificateLayer returns a layer with the certificates of the authorities that Mozilla trusts. An authority whose
// trust is limited in a way that such a file cannot state is left out.
func certificateLayer(day v1.Time) (v1.Layer, error) {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	header := &tar.Header{Name: certificates, Mode: 0o444, Size: int64(text.Len()), ModTime: day.Time}
	if err := archive.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := archive.Write(text.Bytes()); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}
