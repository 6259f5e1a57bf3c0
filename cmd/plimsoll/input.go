package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/snapshot"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/file"
)

// input is where the objects come from that a command is about: manifests or a
// snapshot.
type input struct {
	files    []string
	snapshot string
}

// add adds the flags. what the manifests are of is for people.
func (i *input) add(cmd *cobra.Command, what string) {
	flags := cmd.Flags()
	flags.StringArrayVarP(&i.files, "filename", "f", nil, "file or folder with manifests"+what+", - for standard input; may be repeated")
	flags.StringVar(&i.snapshot, "snapshot", "", "a snapshot of a cluster, as plimsoll snapshot writes it")
	_ = cmd.MarkFlagFilename("snapshot", "tar.gz", "tgz")
}

// validate makes sure that there is one of the two.
func (i *input) validate(what string) error {
	switch {
	case len(i.files) == 0 && i.snapshot == "":
		return fmt.Errorf("--filename: nothing given, want files or folders with manifests of %s, or a --snapshot", what)
	case len(i.files) > 0 && i.snapshot != "":
		return errors.New("--filename, --snapshot: want one of them")
	}
	return nil
}

// situation is a cluster as a scheduler knows it, at an instant.
type situation struct {
	objects *manifest.Objects
	// load is nil where nothing is known.
	load *load.Reading
	now  time.Time
}

// instant is the flags that say how busy nodes are, and as of when.
type instant struct{ load, now string }

func (i *instant) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&i.load, "load", "", "a file with the nodes' load, as a load watcher sends it (default that of the snapshot)")
	flags.StringVar(&i.now, "now", "", "the time at which the age of the load is judged, as in 2026-11-21T12:00:00Z (default that of the snapshot, or the present)")
	_ = cmd.MarkFlagFilename("load", "json")
}

// time returns the time that the flags give, or else another.
func (i *instant) time(otherwise time.Time) (time.Time, error) {
	if i.now == "" {
		return otherwise, nil
	}
	now, err := time.Parse(time.RFC3339, i.now)
	if err != nil {
		return now, fmt.Errorf("--now: found %q, want a time like 2026-11-21T12:00:00Z", i.now)
	}
	return now, nil
}

// read reads everything.
func (i *input) read(ctx context.Context, in io.Reader, at instant, warn func(string)) (*situation, error) {
	s := &situation{}
	now, err := at.time(time.Now())
	if err != nil {
		return nil, err
	}
	if i.snapshot == "" {
		s.now = now
		if s.objects, err = manifest.Read(i.files, in); err != nil {
			return nil, err
		}
	} else if err := s.readSnapshot(i.snapshot, at); err != nil {
		return nil, err
	}
	for _, warning := range s.objects.Warnings {
		warn(warning)
	}
	where := i.snapshot
	if at.load != "" {
		where = at.load
		reading, err := file.New(at.load).Read(ctx)
		if err != nil {
			return nil, err
		}
		s.load = &reading
	}
	return s, s.judgeLoad(where, warn)
}

func (s *situation) readSnapshot(path string, at instant) error {
	read, err := snapshot.Open(path)
	if err != nil {
		return fmt.Errorf("--snapshot: %w", err)
	}
	if s.objects, err = read.Cluster(); err != nil {
		return fmt.Errorf("--snapshot: %s: %w", path, err)
	}
	s.load = read.Load
	otherwise := read.About.Time
	if s.load != nil && s.load.Time.After(otherwise) {
		otherwise = s.load.Time // which is read last
	}
	s.now, err = at.time(otherwise)
	return err
}

// judgeLoad says what is wrong with the load, if there is one.
func (s *situation) judgeLoad(where string, warn func(string)) error {
	if s.load == nil {
		return nil
	}
	if s.load.Rejected > 0 {
		warn(fmt.Sprintf("%s: %d values are no sensible percentages and are left out", where, s.load.Rejected))
	}
	age := s.now.Sub(s.load.Time)
	if age < -load.MaxAhead {
		return fmt.Errorf("%s: timestamp: the load is of %s, %s after the time it is judged at (--now)",
			where, s.load.Time.UTC().Format(time.RFC3339), -age.Round(time.Second))
	}
	if age > config.DefaultMaxLoadAge {
		warn(fmt.Sprintf("%s: the load is %s old; unless maxLoadAge allows it, nodes are judged by limits only", where, age.Round(time.Second)))
	}
	return nil
}

// warnings returns what prints warnings.
func warnings(out io.Writer) func(string) {
	return func(message string) {
		fmt.Fprintln(out, "plimsoll: warning:", strings.ReplaceAll(message, "\n", "; "))
	}
}
