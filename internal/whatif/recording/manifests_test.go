package recording

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
)

// TestRescheduled verifies that pods arrive in the order of their creation, and that pods bound to
// their node stay.
func TestRescheduled(t *testing.T) {
	pod := func(name, node string, created int64, owner string) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default",
			CreationTimestamp: metav1.NewTime(time.Unix(created, 0)),
		}, Spec: v1.PodSpec{NodeName: node}}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: "o", Controller: new(true)}}
		}
		return p
	}
	mirror := pod("mirror", "a", 1, "")
	mirror.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"}
	chosen := pod("chosen", "a", 1, "ReplicaSet")
	chosen.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:nodeName":{}}}`)}}
	objects := &manifest.Objects{
		Nodes: []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}},
		Running: []*v1.Pod{
			pod("late", "a", 30, "ReplicaSet"), pod("daemon", "a", 1, "DaemonSet"), pod("static", "a", 1, "Node"), mirror, chosen,
			pod("early", "a", 10, ""),
		},
		Pending: []*v1.Pod{pod("waits", "", 20, ""), pod("waits-too", "", 10, "")},
	}
	for _, tc := range []struct {
		rate int
		want string
	}{
		{-1, "daemon@a static@a mirror@a chosen@a early+0 waits-too+900 waits+1800 late+2700"}, // over an hour
		{0, "daemon@a static@a mirror@a chosen@a early+0 waits-too+0 waits+0 late+0"},
		{1, "daemon@a static@a mirror@a chosen@a early+0 waits-too+1 waits+2 late+3"},
		{2, "daemon@a static@a mirror@a chosen@a early+0 waits-too+0 waits+1 late+1"},
	} {
		in := Source{Reschedule: true, Pack: tc.rate}.FromManifests(objects)
		var got []string
		for _, p := range in.Pods {
			if node := p.Object.Spec.NodeName; node != "" {
				got = append(got, p.Object.Name+"@"+node)
			} else {
				got = append(got, fmt.Sprintf("%s+%d", p.Object.Name, p.Arrival))
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("rate %d: %q, want %q", tc.rate, got, tc.want)
		}
		if !slices.ContainsFunc(in.Assumptions, func(text string) bool {
			return strings.HasPrefix(
				text,
				"2 of 6 running pods are removed from their nodes (all but 4 of DaemonSets, mirror pods and pods created on a node) "+
					"and arrive again, together with 2 pending pods",
			)
		}) {
			t.Errorf("rate %d: assumptions %q", tc.rate, in.Assumptions)
		}
	}
	if objects.Running[0].Spec.NodeName != "a" {
		t.Error("the input objects have changed")
	}
}
