package manifest

import (
	"fmt"
	"strings"
	"testing"
)

// A few lines of YAML that stand for billions of values are refused.
func TestReadBombs(t *testing.T) {
	var aliases strings.Builder
	aliases.WriteString("apiVersion: v1\nkind: Node\na: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c <= 'k'; c++ {
		fmt.Fprintf(&aliases, "%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), c-1)
	}
	path := write(t, "bomb.yaml", aliases.String())
	for name, err := range map[string]error{
		"objects": second(Read([]string{path}, nil)),
		"hub":     second(ReadHub([]string{path}, nil)),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), path+", document 1: ") || !strings.Contains(err.Error(), "excessive aliasing") {
			t.Errorf("%s: error %v, want one of the aliases, that names the file", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// What is too large is told, and not cut off.
func TestReadIsBounded(t *testing.T) {
	bound := maxFileBytes
	t.Cleanup(func() { maxFileBytes = bound })
	maxFileBytes = 1 << 20
	large := node + "# " + strings.Repeat("x", 1<<20)
	if _, err := Read([]string{"-"}, strings.NewReader(large)); err == nil || err.Error() != "standard input: larger than 1 MiB, want at most that" {
		t.Errorf("error %v, want that standard input is too large", err)
	}
	fits := node + "# " + strings.Repeat("x", 1<<20-len(node)-2)
	if _, err := Read([]string{"-"}, strings.NewReader(fits)); err != nil {
		t.Error(err)
	}
}

// Every object has its name alone, also those that pods only refer to.
func TestReadTwice(t *testing.T) {
	for kind, head := range map[string]string{
		"persistentvolume p": "apiVersion: v1\nkind: PersistentVolume\n", "persistentvolumeclaim default/p": "apiVersion: v1\nkind: PersistentVolumeClaim\n",
		"service default/p": "apiVersion: v1\nkind: Service\n", "priorityclass p": "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n",
		"daemonset default/p": "apiVersion: apps/v1\nkind: DaemonSet\n",
	} {
		one := head + "metadata: {name: p}\n---\n"
		_, err := Read([]string{"-"}, strings.NewReader(node+"---\n"+one+one))
		want := fmt.Sprintf("standard input, document 3: %s is there twice, first in standard input, document 2", kind)
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
