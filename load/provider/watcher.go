package provider

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync/atomic"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/files"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/endpoint"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// Watcher reads a load-watcher service.
type Watcher struct {
	url    string
	server *endpoint.Endpoint
	// last is the last response with an ETag. If the service still has it, it is not sent again.
	last atomic.Pointer[taggedReading]
}

// taggedReading is a reading with the ETag of its response.
type taggedReading struct {
	etag    string
	reading load.Reading
}

// NewWatcher returns the source of a configuration, whose address is the URL of the service, such as
// http://load-watcher:2020.
func NewWatcher(config metricprovider.Config) (*Watcher, error) {
	server, err := endpoint.New(config, endpoint.Options{Type: metricprovider.Service, MaxBytes: wire.MaxBytes})
	if err != nil {
		return nil, err
	}
	u := server.URL
	if path.Base(u.Path) != "watcher" {
		u = u.JoinPath("watcher")
	}
	return &Watcher{url: strings.TrimSuffix(u.String(), "/"), server: server}, nil
}

// String returns the URL of the service, for messages.
func (s *Watcher) String() string { return "the load watcher at " + s.url }

// Read requests the load of all nodes. A reading that the service has not replaced since the last call is
// returned again; callers do not modify readings.
func (s *Watcher) Read(ctx context.Context) (load.Reading, error) {
	headers, last := http.Header{}, s.last.Load()
	if last != nil {
		headers.Set("If-None-Match", last.etag)
	}
	response, err := s.server.Get(ctx, s.url, headers)
	if err != nil {
		return load.Reading{}, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotModified && last != nil {
		return last.reading, nil
	}
	reading, err := wire.Decode(response.Body)
	if etag := response.Header.Get("ETag"); err == nil && etag != "" {
		s.last.Store(&taggedReading{etag, reading})
	} else {
		s.last.Store(nil)
	}
	return reading, err
}

// File reads a file in the format of package wire. Every read opens the file: write a new file and rename it, so that an incomplete file
// is never read.
type File struct {
	path string
}

// NewFile returns the source of a path.
func NewFile(path string) *File { return &File{path} }

// String returns the path of the file, for messages.
func (s *File) String() string { return "the file " + s.path }

// Read reads the file.
func (s *File) Read(context.Context) (load.Reading, error) {
	f, err := files.Open(s.path)
	if err != nil {
		return load.Reading{}, err
	}
	defer f.Close()
	reading, err := wire.Decode(files.Text(f))
	if err != nil {
		return load.Reading{}, fmt.Errorf("%s: %w", s.path, err)
	}
	return reading, nil
}
