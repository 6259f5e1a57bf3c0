package recording

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
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
		{0, "daemon@a static@a mirror@a chosen@a early+0 waits-too+900 waits+1800 late+2700"}, // over an hour
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

// TestGroupsOfManifests verifies that the pods of two rollouts of a Deployment are in one group.
func TestGroupsOfManifests(t *testing.T) {
	pod := func(name, owner, hash string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: owner, UID: "same", Controller: new(true)}},
		}}
	}
	in := Source{}.FromManifests(
		&manifest.Objects{Pending: []*v1.Pod{pod("a", "web-1", "1"), pod("b", "web-2", "2"), pod("c", "db-1", "1")}},
	)
	if a, b, c := in.Pods[0].Group, in.Pods[1].Group, in.Pods[2].Group; a != b || a == c {
		t.Errorf("groups %d, %d and %d", a, b, c)
	}
}
