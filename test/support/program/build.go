package program

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// modulePath is the module of the project.
const modulePath = "module github.com/plimsoll-k8s/plimsoll\n"

// project is the folder of the project, found when the process starts: tests may change their folder.
var project, errProject = findProject()

// findProject returns the folder of the project.
func findProject() (string, error) {
	folder, err := os.Getwd()
	for err == nil {
		if raw, readErr := os.ReadFile(filepath.Join(folder, "go.mod")); readErr == nil && bytes.HasPrefix(raw, []byte(modulePath)) {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			err = fmt.Errorf("no folder above has a go.mod that begins with %q", modulePath)
		}
		folder = filepath.Dir(folder)
	}
	return "", err
}

// File returns the path of a file or folder of the project.
func File(t testing.TB, name string) string {
	t.Helper()
	must.Succeed(t, errProject)
	return filepath.Join(project, name)
}

// built has the functions that build the programs of this process once, by name.
var built sync.Map

// Path returns the path of a program of the project.
func Path(t testing.TB, name string) string {
	t.Helper()
	return Build(t, name, ".", "./cmd/"+name)
}

// Build returns the path of a program of a package in a module of the project. All programs of all tests are in one folder, bin/test, and
// are built without the tables for debuggers, which are a third of a program. Go does not link a program again that is up to date.
func Build(t testing.TB, name, module, pkg string) string {
	t.Helper()
	path, folder := File(t, "bin/test/"+name), File(t, module)
	build, _ := built.LoadOrStore(name, sync.OnceValue(func() error {
		return locked(path, func() error {
			command := exec.Command("go", "build", "-C", folder, "-ldflags=-s -w", "-o", path, pkg)
			if out, err := command.CombinedOutput(); err != nil {
				return fmt.Errorf("building %s in %s: %w\n%s", pkg, module, err, out)
			}
			return nil
		})
	}))
	must.Succeed(t, build.(func() error)())
	return path
}

// locked calls a function while no other process does so for the same file, whose folder it creates.
func locked(path string, call func() error) error {
	folder, name := filepath.Split(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(folder, "."+name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return call()
}
