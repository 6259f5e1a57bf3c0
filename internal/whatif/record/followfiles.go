package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"github.com/plimsoll-k8s/plimsoll/internal/files"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// start starts a recording, and removes the oldest.
func (f *follower) start(ctx context.Context, now time.Time) error {
	key, err := f.key()
	if err != nil {
		return err
	}
	now = now.UTC().Truncate(time.Second)
	var missing notes
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
		missing.add("objects other than nodes and pods", "they could not be read: "+why)
	}
	about.Kubernetes, missing = cluster.About.Kubernetes, append(missing, cluster.About.Missing...)
	about.HasAutoscalers = cluster.About.HasAutoscalers
	if f.Usage == nil {
		missing.add("usage of pods", "no source of usage is configured")
	}
	name := f.newName(now)
	if f.Started != nil {
		f.Started(name)
	}
	file, err := recording.Create(name, about)
	if err != nil {
		return err
	}
	f.current = newFollowRecorder(file, key, f.clock)
	f.current.notes = missing
	if err := errors.Join(f.current.objects(cluster.Objects), f.current.commit()); err != nil {
		return err
	}
	f.Log("recording " + name)
	return f.prune()
}

// keyName is the name of the file with the key of the pseudonyms in a folder.
const keyName = "key"

// key returns the key of the pseudonyms, which all recordings of a folder share, nil if names are kept. It creates the key if there is
// none.
func (f *follower) key() ([]byte, error) {
	if !f.Redact {
		return nil, nil
	}
	path := filepath.Join(f.Folder, keyName)
	key, err := files.Read(path, 2*keyBytes)
	if errors.Is(err, fs.ErrNotExist) {
		key = newKey(true)
		err = recording.ReplaceFile(path, key)
	}
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("%s: found %d bytes: must have %d: remove it to start with other pseudonyms", path, len(key), keyBytes)
	}
	return key, err
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

// Lock is a locked folder.
type Lock struct {
	*fileutil.LockedFile
}

// LockFolder creates a folder if it does not exist, and locks it until the lock is closed or the process ends. The error names the process
// that has locked it. It follows no link: a link to another file could be in a folder that others can write to.
func LockFolder(folder string) (*Lock, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(folder, lockName)
	if created, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err == nil {
		created.Close()
	}
	file, err := fileutil.TryLockFile(path, os.O_RDWR, 0)
	if errors.Is(err, fileutil.ErrLocked) {
		holder, _ := files.Read(path, 1<<10) // on Windows, a locked file cannot be read
		return nil, fmt.Errorf("%s: %s: stop it, or use another directory", folder, cmp.Or(string(holder), "another process writes to it"))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be locked: %w", folder, err)
	}
	lock := &Lock{file}
	if err := lock.Check(); err != nil {
		file.Close()
		return nil, err
	}
	host, _ := os.Hostname()
	holder := fmt.Sprintf("process %d on %s has written to it since %s", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))
	_ = file.Truncate(0)
	_, _ = file.WriteAt([]byte(holder), 0) // the volume may be full
	return lock, nil
}

// Check returns an error if the file of the lock is no longer the locked one, so that another process could write to the folder, or no
// regular file.
func (l *Lock) Check() error {
	locked, err := l.Stat()
	if err != nil {
		return err
	}
	if found, err := os.Lstat(l.Name()); err != nil || !os.SameFile(found, locked) || !found.Mode().IsRegular() {
		return fmt.Errorf("%s: must be the file that this process has locked, and no link: it was removed or replaced", l.Name())
	}
	return nil
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
			if err := os.Remove(name); err != nil {
				return err
			}
			f.Log("removed " + name)
		}
	}
	return nil
}
