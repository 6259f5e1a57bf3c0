package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// domain is the domain of the annotations and labels of Plimsoll.
const domain = "plimsoll.dev/"

// annotations are the annotations that users set, with the kinds of objects that may have them and a check of their values, nil for
// values that are checked where they are used.
var annotations = map[string]struct {
	kinds []string
	check func(text string) error
}{
	v1alpha1.AnnotationSlack: {[]string{"Deployment", "ReplicaSet", "StatefulSet", "Job"}, nil},
	v1alpha1.AnnotationBiggest: {[]string{"Pod"}, func(text string) error {
		if text != v1alpha1.BiggestIgnore {
			return fmt.Errorf("invalid value %q: must be %s", text, v1alpha1.BiggestIgnore)
		}
		return nil
	}},
	capacityv1alpha1.AnnotationPrice: {[]string{"Node", "NodePool"}, func(text string) error {
		_, err := capacityv1alpha1.ParsePrice(text)
		return err
	}},
	capacityv1alpha1.AnnotationLimit: {[]string{"ManagedCluster"}, fleet.CheckLimit},
	v1beta1.AnnotationWorkload:       {[]string{"Placement"}, nil},
	v1beta1.AnnotationReplicas:       {[]string{"PlacementDecision"}, nil},
}

// otherKeys are annotations and labels without the domain that programs set, and labels that users set.
var otherKeys = strings.Fields("gpu-model node-group owner packed placeholder placeholder-group placeholder-hash probe history-saved " +
	"rollout run-for")

// knownAnnotations are the keys of annotations, sorted.
var knownAnnotations = slices.Sorted(maps.Keys(annotations))

// keyProblems returns the problems of the annotations and labels of Plimsoll of an object of a kind, sorted.
func keyProblems(kind string, meta metav1.Object) (problems []string) {
	add := func(word, key string, err error) {
		problems = append(problems, fmt.Sprintf("%s %s: %v", word, key, err))
	}
	for key, value := range meta.GetAnnotations() {
		a, isKnown := annotations[key]
		switch {
		case isKnown && !slices.Contains(a.kinds, kind):
			add("annotation", key, fmt.Errorf("has no effect on a %s: must be on a %s", kind, strings.Join(a.kinds, ", ")))
		case isKnown && a.check != nil:
			if err := a.check(value); err != nil {
				add("annotation", key, err)
			}
		case !isKnown && isUnknown(key):
			hint := format.Suggestion(key, knownAnnotations)
			if hint == "" {
				hint = ": must be one of " + strings.Join(knownAnnotations, ", ")
			}
			add("annotation", key, errors.New("unknown"+hint))
		}
	}
	for key := range meta.GetLabels() {
		if _, isAnnotation := annotations[key]; isAnnotation {
			add("label", key, errors.New("has no effect: must be an annotation"))
		} else if isUnknown(key) {
			add("label", key, errors.New("unknown"+format.Suggestion(strings.TrimPrefix(key, domain), otherKeys)))
		}
	}
	slices.Sort(problems)
	return problems
}

// isUnknown reports whether a key is of the domain, or of one that is spelled almost like it, and not known.
func isUnknown(key string) bool {
	if name, isOwn := strings.CutPrefix(key, domain); isOwn {
		return !slices.Contains(otherKeys, name)
	}
	// Names whose lengths differ by more than 3 are not similar: most keys are excluded without computing a distance.
	slash := strings.Index(key, "/")
	return max(len(domain)-1-slash, slash-len(domain)+1) <= 3 && format.Suggestion(key[:slash+1], []string{domain}) != ""
}
