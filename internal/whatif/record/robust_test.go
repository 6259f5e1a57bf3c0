package record

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// following is a follower whose clock the test sets.
type following struct {
	*follower
	lines []string
}

func newFollowing(folder string) *following {
	f := &following{}
	f.follower = newFollower(folder, func(line string) { f.lines = append(f.lines, line) })
	return f
}

// at records a step at a time.
func (f *following) at(t *testing.T, seconds int) {
	t.Helper()
	f.now = func() time.Time { return after(seconds) }
	must.Succeed(t, f.recover(f.step(t.Context())))
}

// recorded reads all recordings.
func (f *following) recorded(t *testing.T) (all []*recording.Recording) {
	t.Helper()
	names, err := Recordings(f.Folder)
	must.Succeed(t, err)
	for _, name := range names {
		r, err := recording.Open(name)
		must.Succeed(t, err)
		all = append(all, r)
	}
	return all
}

// TestClock sets the clock: a recording never has times before its last step, and no recording replaces another.
func TestClock(t *testing.T) {
	f := newFollowing(t.TempDir())
	must.Succeed(t, f.pods.GetStore().Add(newPod("p", "a", after(-5))))
	// 31 s is one second back: no step. 2 s is 28 s back: another recording. 0 s is the name of the first recording.
	for _, second := range []int{0, 10, 32, 31, 33, 2, 3, 0, 1, 900} {
		f.at(t, second)
	}
	must.Succeed(t, f.end())
	all := f.recorded(t)
	var spans []string
	for _, r := range all {
		spans = append(spans, fmt.Sprint(r.About.From.Sub(begin), " to ", r.About.To.Sub(begin)))
		if len(r.Pods) != 1 || r.Pods[0].Ended != recording.Never {
			t.Errorf("pods %+v", r.Pods)
		}
	}
	// 2 s, 3 s, and 0 s, 1 s: back by 3 s.
	if got := strings.Join(spans, ", "); got != "0s to 33s, 0s to 1s, 2s to 3s, 15m0s to 15m0s" {
		t.Errorf("recordings %s", got)
	}
	if missing := fmt.Sprint(all[0].About.Missing); !strings.Contains(missing,
		"the time from 2026-03-01T00:00:10Z to 2026-03-01T00:00:32Z") {
		t.Errorf("the hole of 22 s is not noted: %s", missing)
	}
}

// TestKilled leaves a recording after each number of steps, as kill -9 does, with what was written after the last commit: at most ten steps
// are lost. The next process starts another file, and both are read as one recording, with the time between as missing if it is long.
func TestKilled(t *testing.T) {
	for steps := 1; steps <= 25; steps++ {
		for _, pause := range []int{0, 20} {
			folder := t.TempDir()
			f, next := newFollowing(folder), newFollowing(folder)
			for _, f := range []*following{f, next} {
				must.Succeed(t, f.pods.GetStore().Add(newPod("p", "a", after(-5))))
			}
			for i := range steps {
				f.at(t, i)
			}
			file := f.current.file
			must.Succeed(t, errors.Join(file.SetAbout(file.About()), file.Flush(), os.Truncate(file.Path(), file.Size()-1)))
			if err := os.WriteFile(filepath.Join(folder, ".plimsoll-123"), nil, 0o600); err != nil { // between two system calls of a commit
				t.Fatal(err)
			}
			all := f.recorded(t)
			lost := steps - 1 - int(all[0].About.Seconds())
			if len(all) != 1 || lost < 0 || lost > 10 {
				t.Errorf("%d steps: %d lost in %d recordings", steps, lost, len(all))
			}
			must.Succeed(t, recording.RemoveTemporary(folder))
			next.at(t, steps+pause)
			must.Succeed(t, next.end())
			joined, err := recording.Open(folder)
			must.Succeed(t, err)
			seconds := joined.About.Seconds()
			if p := joined.Pods; len(p) != 1 || p[0].Created != -5 || p[0].Ended != recording.Never || seconds != int64(steps+pause) {
				t.Errorf("%d steps: pods %+v in %d s", steps, p, seconds)
			}
			isLong := 1+lost+pause > 2
			if noted := strings.Contains(fmt.Sprint(joined.About.Missing), "nothing was recorded"); noted != isLong {
				t.Errorf("%d steps, %d lost, %d s without a process: noted %t", steps, lost, pause, noted)
			}
			if files, err := os.ReadDir(folder); err != nil || len(files) != 2 {
				t.Errorf("%d steps: files %v, %v", steps, files, err)
			}
		}
	}
}

// TestLock locks a folder with a file of the name of the lock that is none: it is refused and nothing else is written. A process whose lock
// another one removed ends, so that two do not write to one folder.
func TestLock(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	must.Succeed(t, os.WriteFile(victim, []byte("precious"), 0o600))
	for name, target := range map[string]string{"link": victim, "dangling link": victim + "2"} {
		folder := t.TempDir()
		must.Succeed(t, os.Symlink(target, filepath.Join(folder, lockName)))
		if _, err := LockFolder(folder); err == nil {
			t.Errorf("%s: locked", name)
		}
	}
	content, err := os.ReadFile(victim)
	if _, created := os.Stat(victim + "2"); err != nil || string(content) != "precious" || created == nil {
		t.Errorf("%q, %v: a link was followed", content, err)
	}
	f := newFollowing(t.TempDir())
	f.Lock, err = LockFolder(f.Folder)
	must.Succeed(t, err)
	defer f.Lock.Close()
	must.Succeed(t, f.Lock.Truncate(3<<30))
	if _, err := LockFolder(f.Folder); err == nil || len(err.Error()) > 1<<10 {
		t.Errorf("error %v", err)
	}
	f.at(t, 0)
	must.Succeed(t, os.Remove(f.Lock.Name()))
	other, err := LockFolder(f.Folder)
	must.Succeed(t, err)
	defer other.Close()
	if err := f.step(t.Context()); err == nil || !strings.Contains(err.Error(), "it was removed or replaced") {
		t.Errorf("error %v, want that the lock is lost", err)
	}
	must.Succeed(t, f.end())
}

// TestKilledBeforeCommit kills a process before its first commit: there is no recording.
func TestKilledBeforeCommit(t *testing.T) {
	f := newFollowing(t.TempDir())
	name := filepath.Join(f.Folder, after(-30).Format(nameFormat)+suffix)
	if _, err := recording.Create(name, recording.About{From: after(-30), To: after(-30), Step: 1}); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, recording.RemoveTemporary(f.Folder))
	f.at(t, 0)
	if files, err := os.ReadDir(f.Folder); err != nil || len(files) != 1 || files[0].Name() == filepath.Base(name) {
		t.Errorf("files %v, error %v", files, err)
	}
}

// TestPseudonymsOfFolder starts a process again: all recordings of a folder have the same pseudonyms, whose key only the owner may read. A
// key that is cut off is refused.
func TestPseudonymsOfFolder(t *testing.T) {
	folder := t.TempDir()
	start := func(second int) *following {
		f := newFollowing(folder)
		f.Redact = true
		must.Succeed(t, f.pods.GetStore().Add(newPod("secret", "node-of-secret", after(-5))))
		f.now = func() time.Time { return after(second) }
		return f
	}
	for second := range 2 {
		f := start(second)
		must.Succeed(t, f.step(t.Context()))
		must.Succeed(t, f.end())
	}
	joined, err := recording.Open(folder)
	must.Succeed(t, err)
	if len(joined.Pods) != 1 || strings.Contains(fmt.Sprint(joined.Pods[0].Object), "secret") {
		t.Errorf("pods %+v, want one with pseudonyms", joined.Pods)
	}
	key := filepath.Join(folder, keyName)
	info, err := os.Stat(key)
	if must.Succeed(t, err); info.Mode() != 0o600 || info.Size() != keyBytes {
		t.Errorf("the key has mode %v and %d bytes", info.Mode(), info.Size())
	}
	must.Succeed(t, os.Truncate(key, 0))
	if err := start(2).step(t.Context()); err == nil || !strings.Contains(err.Error(), key+": found 0 bytes: must have 32") {
		t.Errorf("error %v", err)
	}
}

// TestMemoryKills records containers that were killed for their memory, once each, and none from before the recording.
func TestMemoryKills(t *testing.T) {
	f := newFollowing(t.TempDir())
	killed := func(seconds int) *v1.Pod {
		pod := newPod("p", "a", after(-5))
		pod.ResourceVersion = fmt.Sprint(seconds + 100)
		pod.Status.ContainerStatuses = []v1.ContainerStatus{{LastTerminationState: v1.ContainerState{
			Terminated: &v1.ContainerStateTerminated{Reason: "OOMKilled", FinishedAt: metav1.NewTime(after(seconds))},
		}}}
		return pod
	}
	for i, last := range []int{-3, 1, 1, 2, 3} {
		must.Succeed(t, f.pods.GetStore().Add(killed(last)))
		f.at(t, i)
	}
	must.Succeed(t, f.end())
	var want []recording.Kill
	for second := range 3 {
		want = append(want, recording.Kill{Time: after(second + 1), Namespace: "default", Pod: "p"})
	}
	if diff := cmp.Diff(want, f.recorded(t)[0].About.Kills); diff != "" {
		t.Error(diff)
	}
}

// volumeVariable makes the test binary record to a small volume. Its value is a folder.
const volumeVariable = "PLIMSOLL_SMALL_VOLUME"

// TestFullVolume records to a volume of 512 KiB that is full, in a process with its own mounts.
func TestFullVolume(t *testing.T) {
	if folder := os.Getenv(volumeVariable); folder != "" {
		recordToFullVolume(t, folder)
		return
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestFullVolume$", "-test.v")
	command.Env = append(os.Environ(), volumeVariable+"="+t.TempDir())
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestFullVolume") {
		t.Errorf("%v\n%s", err, out)
	}
}

// recordToFullVolume records while the volume is full, first with old recordings that can be removed, then without, and then with space.
func recordToFullVolume(t *testing.T, folder string) {
	must.Succeed(t, syscall.Mount("none", folder, "tmpfs", 0, "size=512k"))
	for i := range 3 {
		name := filepath.Join(folder, after(3600*(i-4)).Format(nameFormat)+suffix)
		must.Succeed(t, os.WriteFile(name, make([]byte, 60<<10), 0o600))
	}
	ballast := filepath.Join(folder, "ballast")
	fill := func() {
		file, err := os.OpenFile(ballast, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		must.Succeed(t, err)
		for err == nil {
			_, err = file.Write(make([]byte, 4<<10))
		}
		if file.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	f := newFollowing(folder)
	f.Rotate = time.Hour
	for i := range 30 {
		if i == 5 {
			fill()
		}
		pod, noise := newPod(fmt.Sprintf("p%d", i), "a", after(i)), make([]byte, 600)
		_, _ = rand.Read(noise) // never fails
		pod.Spec.NodeSelector = map[string]string{"a": hex.EncodeToString(noise)}
		must.Succeed(t, f.pods.GetStore().Add(pod))
		f.at(t, i)
	}
	log := strings.Join(f.lines, "\n")
	if n := strings.Count(log, "the volume is full: removed "); n < 1 || n > 2 || strings.Count(log, "recording "+folder) < 2 {
		t.Errorf("%d removed: %s", n, log)
	}
	for i := 30; i < 300; i++ {
		fill()
		f.at(t, i)
	}
	if log = strings.Join(f.lines, "\n"); strings.Count(log, "the volume is full: removed ") < 3 ||
		strings.Count(log, "nothing is recorded until there is space") != 1 {
		t.Errorf("log: %s", log)
	}
	must.Succeed(t, os.Remove(ballast))
	for i := 300; i < 320; i++ {
		f.at(t, i)
	}
	must.Succeed(t, f.end())
	r, err := recording.Open(folder)
	must.Succeed(t, err)
	if len(r.Pods) != 30 || !r.About.To.Equal(after(319)) || !strings.Contains(fmt.Sprint(r.About.Missing), "nothing was recorded") {
		t.Errorf("%d pods until %s, missing %v", len(r.Pods), r.About.To, r.About.Missing)
	}
}
