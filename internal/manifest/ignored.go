package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// Ignored counts the objects of kinds that are not read.
type Ignored struct {
	counts map[schema.GroupKind]int
}

// Add counts an object.
func (i *Ignored) Add(kind schema.GroupKind) {
	if i.counts == nil {
		i.counts = map[schema.GroupKind]int{}
	}
	i.counts[kind]++
}

// maxKinds is the number of kinds that String lists.
const maxKinds = 10

// String returns the counts, such as "ignored: 3 Rollout, 1 ConfigMap", the largest first; "" if nothing
// was ignored. A kind is printed with its group if another kind with the name is read.
func (i *Ignored) String() string {
	if len(i.counts) == 0 {
		return ""
	}
	return "ignored: " + i.list()
}

// list returns the counts.
func (i *Ignored) list() string {
	order := slices.SortedFunc(maps.Keys(i.counts), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(i.counts[b], i.counts[a]), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group))
	})
	var texts []string
	for _, kind := range order {
		name := kind.Kind
		if own := append(kinds[name], hubKinds[name]...); len(own) > 0 && !slices.ContainsFunc(own, func(version string) bool {
			return schema.FromAPIVersionAndKind(version, name).Group == kind.Group
		}) {
			name = kind.String()
		}
		texts = append(texts, fmt.Sprintf("%d %s", i.counts[kind], name))
	}
	return format.Abbreviate(texts, maxKinds, ", ")
}

// maxRefused is the number of warnings in the error of RefuseWarnings.
const maxRefused = 5

// RefuseWarnings returns the warnings about input that is ignored as an error of the flag --strict, nil if
// there are none.
func RefuseWarnings(warnings []string) error {
	if len(warnings) == 0 {
		return nil
	}
	return errors.New("--strict: " + format.Abbreviate(warnings, maxRefused, "; "))
}
