package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// open continues the last recording. If it is finished, has another step or is too old, open starts a new recording.
func (f *follower) open(ctx context.Context, now time.Time) error {
	names, err := Recordings(f.Folder)
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(names) {
		if !recording.Unfinished(name) {
			continue
		}
		if continued, err := f.resume(name, now); err != nil || continued {
			return err
		}
	}
	if err := f.start(ctx, now); err != nil {
		return err
	}
	return f.prune()
}

// resume continues a recording. If it is too old or has other options, resume finishes it and returns false.
func (f *follower) resume(name string, now time.Time) (bool, error) {
	s := &state{}
	file, err := recording.Continue(name, s)
	switch {
	case isFull(err):
		return false, err
	case errors.Is(err, recording.ErrNotCommitted):
		return false, recording.Discard(name)
	case err != nil:
		f.Log(fmt.Sprintf("not continued: %v", err))
		err = os.Remove(name + recording.StateSuffix)
		f.Finished(name)
		return false, err
	}
	about := file.About()
	same := about.Step == int(f.Step.Seconds()) && about.Redacted == f.Redact && s.Pods != nil && s.Nodes != nil
	f.current = newFollowRecorder(file, s, f.clock)
	if !same || f.complete(now) {
		return false, f.finish()
	}
	f.Log("continuing " + name)
	return true, nil
}

// start starts a recording.
func (f *follower) start(ctx context.Context, now time.Time) error {
	now = now.UTC().Truncate(time.Second)
	s := &state{
		Key: newKey(f.Redact), Pods: map[string]followObject{}, Nodes: map[string]followObject{}, Last: now.Unix(),
	}
	about := recording.About{From: now, To: now, Step: int(f.Step.Seconds()), Redacted: f.Redact, Sources: []string{"the API server"}}
	if f.Usage != nil {
		about.Sources = append(about.Sources, f.source())
	}
	cluster, err := f.Objects(ctx)
	if err != nil {
		cluster = &Cluster{Recording: &recording.Recording{}}
		why := err.Error()
		if f.Redact {
			why = withoutText
		}
		s.Notes.add("objects other than nodes and pods", "they could not be read: "+why)
	}
	about.Kubernetes, s.Notes = cluster.About.Kubernetes, append(s.Notes, cluster.About.Missing...)
	if f.Usage == nil {
		s.Notes.add("usage of pods", "no source of usage is configured")
	}
	name := f.newName(now)
	file, err := recording.Create(name, about)
	if err != nil {
		return err
	}
	f.current = newFollowRecorder(file, s, f.clock)
	if err := f.current.objects(cluster.Objects); err != nil {
		return err
	}
	f.Log("recording " + name)
	return f.current.commit()
}

// newName returns the name of a recording that starts at a time, or the next second without a recording if the clock was set back.
func (f *follower) newName(at time.Time) string {
	for ; ; at = at.Add(time.Second) {
		name := filepath.Join(f.Folder, at.Format(nameFormat)+suffix)
		if _, err := os.Stat(name); err != nil {
			return name
		}
	}
}

// source returns the name of the source of usage, without its address if names are replaced.
func (f *follower) source() string {
	if f.Redact {
		return "a source of the usage of pods"
	}
	return f.Usage.String()
}

// lockName is the name of the file that the process that writes to a folder has locked.
const lockName = "writer"

// LockFolder creates a folder if it does not exist, and locks it until the file that it returns is closed or the process ends. The error
// names the process that has locked it.
func LockFolder(folder string) (*fileutil.LockedFile, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(folder, lockName)
	file, err := fileutil.TryLockFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		holder, _ := os.ReadFile(path) // on Windows, a locked file cannot be read
		return nil, fmt.Errorf("%s: %s: stop it, or use another directory", folder, cmp.Or(string(holder), "another process writes to it"))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be locked: %w", folder, err)
	}
	host, _ := os.Hostname()
	holder := fmt.Sprintf("process %d on %s has written to it since %s", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
	_ = file.Truncate(0)
	_, _ = file.WriteAt([]byte(holder), 0) // the volume may be full
	return file, nil
}

// Recordings returns the names of the recordings that Follow wrote to a folder, in the order of time.
func Recordings(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		stem, ok := strings.CutSuffix(entry.Name(), suffix)
		if _, err := time.Parse(nameFormat, stem); ok && err == nil {
			names = append(names, filepath.Join(folder, entry.Name()))
		}
	}
	return names, err
}

// StartOf returns the time at which a recording of Follow started, from its name.
func StartOf(name string) time.Time {
	at, _ := time.Parse(nameFormat, strings.TrimSuffix(filepath.Base(name), suffix))
	return at
}

// prune removes the oldest recordings until all together take at most half of MaxBytes: the current recording may take the other half.
func (f *follower) prune() error {
	names, err := Recordings(f.Folder)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, name := range slices.Backward(names) {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if total += info.Size(); total > f.MaxBytes/2 && name != f.current.file.Path() {
			if err := recording.Discard(name); err != nil {
				return err
			}
			f.Log("removed " + name)
		}
	}
	return nil
}
