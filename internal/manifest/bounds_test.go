package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestReadAliasBomb checks that a few lines of YAML that expand to billions of values are rejected.
func TestReadAliasBomb(t *testing.T) {
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
			t.Errorf("%s: error %v, want one about aliasing that names the file", name, err)
		}
	}
}

// second returns its second argument.
func second[T any](_ T, err error) error { return err }

// TestReadLimitsFiles checks that files above the limit are rejected and not truncated.
func TestReadLimitsFiles(t *testing.T) {
	limit := maxFileBytes
	t.Cleanup(func() { maxFileBytes = limit })
	maxFileBytes = 1 << 20
	large := node + "# " + strings.Repeat("x", 1<<20)
	if _, err := Read([]string{"-"}, strings.NewReader(large)); err == nil ||
		!strings.HasPrefix(err.Error(), "standard input: exceeds the limit of 1 MiB: use a snapshot") {
		t.Errorf("error %v, want that standard input exceeds the limit", err)
	}
	if _, err := Buffer(strings.NewReader(large)); err == nil ||
		!strings.HasPrefix(err.Error(), "standard input: exceeds the limit of 1 MiB: use a snapshot") {
		t.Errorf("error %v, want that standard input exceeds the limit", err)
	}
	fits := node + "# " + strings.Repeat("x", 1<<20-len(node)-2)
	if _, err := Read([]string{"-"}, strings.NewReader(fits)); err != nil {
		t.Error(err)
	}
	if content, err := Buffer(strings.NewReader(fits)); err != nil || string(content) != fits {
		t.Errorf("%d bytes, %v", len(content), err)
	}
}

// TestReadDuplicates checks that names must be unique for all kinds. An object that is in two files, with the same content or UID, is read
// once.
func TestReadDuplicates(t *testing.T) {
	for kind, head := range map[string]string{
		"persistentvolume p":              "apiVersion: v1\nkind: PersistentVolume\n",
		"persistentvolumeclaim default/p": "apiVersion: v1\nkind: PersistentVolumeClaim\n",
		"service default/p":               "apiVersion: v1\nkind: Service\n", "priorityclass p": "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n",
		"daemonset default/p": "apiVersion: apps/v1\nkind: DaemonSet\n",
	} {
		read := func(metadata ...string) (*Objects, error) {
			content := node
			for _, fields := range metadata {
				content += "---\n" + head + "metadata: {name: p" + fields + "}\n"
			}
			return Read([]string{"-"}, strings.NewReader(content))
		}
		_, err := read("", ", labels: {a: b}")
		want := fmt.Sprintf("standard input, document 3: duplicate %s, first defined in standard input, document 2", kind)
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		for second, warnings := range map[string]int{"": 0, ", labels: {a: b}": 1} {
			objects, err := read(", uid: u", ", uid: u"+second)
			must.Succeed(t, err)
			if len(objects.Others)+len(objects.Workloads) != 1 ||
				strings.Count(fmt.Sprint(objects.Warnings), "is ignored") != warnings {
				t.Errorf("%s: %+v, want one object and %d warnings", kind, objects, warnings)
			}
		}
	}
}

// TestReadNestedLists checks that Lists in Lists are read up to a depth and rejected beyond it, at once.
func TestReadNestedLists(t *testing.T) {
	nested := func(depth int, inner string) string {
		return strings.Repeat(`{"apiVersion":"v1","kind":"List","items":[`, depth) + inner + strings.Repeat("]}", depth)
	}
	object := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`
	if read, err := Read([]string{"-"}, strings.NewReader(nested(maxNesting, object))); err != nil || len(read.Nodes) != 1 {
		t.Errorf("%d Lists: %v", maxNesting, err)
	}
	placement := `{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement","metadata":{"name":"a"}}`
	if read, err := ReadHub([]string{"-"}, strings.NewReader(nested(maxNesting, placement))); err != nil || len(read.Placements) != 1 {
		t.Errorf("%d Lists of a hub: %v", maxNesting, err)
	}
	for _, depth := range []int{maxNesting + 1, 2000} {
		for name, err := range map[string]error{
			"objects": second(Read([]string{"-"}, strings.NewReader(nested(depth, object)))),
			"hub":     second(ReadHub([]string{"-"}, strings.NewReader(nested(depth, placement)))),
		} {
			if err == nil || !strings.HasSuffix(err.Error(), "found more than 3 Lists in each other: must have at most 3") {
				t.Errorf("%s in %d Lists: error %.200v", name, depth, err)
			}
		}
	}
}
