package recording

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestCountObjects(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 0, "{}": 1, `{"a":{"b":[{},{}]}}`: 4, `{"{":"{\"{"}`: 1, `["\\",{}]`: 1, `"\\\"{"`: 0, "": 0, `"`: 0,
	} {
		if got := countObjects([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// TestDecodedMemory checks that decoded objects take at most 1 KiB for each JSON object, so that limits.structs
// bounds the memory of a snapshot. It decodes the largest objects, and lists of the largest empty structs.
func TestDecodedMemory(t *testing.T) {
	const maxPerObject = 1 << 10
	// object returns an object with a spec, and its name, in three JSON objects or more.
	object := func(version, kind, spec string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"n%%d","namespace":"x"},"spec":%s}`, version, kind, spec)
	}
	empty := func(n int) string { return strings.Repeat("{},", n-1) + "{}" }
	template := func(spec string) string { return `{"selector":{},"template":{"spec":` + spec + `}}` }
	for name, tc := range map[string]struct {
		kind, item string
	}{
		"pods":       {"Pod", object("v1", "Pod", `{}`)},
		"containers": {"Pod", object("v1", "Pod", `{"containers":[`+empty(5000)+`]}`)},
		"volumes":    {"Pod", object("v1", "Pod", `{"volumes":[`+empty(5000)+`]}`)},
		"claim templates": {
			"StatefulSet", object("apps/v1", "StatefulSet", `{"selector":{},"template":{},"volumeClaimTemplates":[`+empty(2000)+`]}`),
		},
		"anti-affinity": {
			"Pod", object("v1", "Pod",
				`{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[`+empty(5000)+`]}}}`),
		},
		"tolerations": {"Pod", object("v1", "Pod", `{"tolerations":[`+empty(5000)+`]}`)},
		"nodes":       {"Node", object("v1", "Node", `{}`)},
		"taints":      {"Node", object("v1", "Node", `{"taints":[`+empty(5000)+`]}`)},
		"deployments": {"Deployment", object("apps/v1", "Deployment", `{"selector":{},"template":{}}`)},
		"templates":   {"ReplicaSet", object("apps/v1", "ReplicaSet", template(`{"containers":[`+empty(5000)+`]}`))},
		"services":    {"Service", object("v1", "Service", `{}`)},
		"volume":      {"PersistentVolume", object("v1", "PersistentVolume", `{}`)},
		"claims":      {"PersistentVolumeClaim", object("v1", "PersistentVolumeClaim", `{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(kinds.All, func(k *kinds.Kind) bool { return k.Kind == tc.kind })
			objects := []kinds.Object{{Kind: kinds.Of("", "Node"), JSON: []byte(fmt.Sprintf(object("v1", "Node", `{}`), 0))}}
			count := int64(0)
			for count < 20_000 {
				item := []byte(fmt.Sprintf(tc.item, len(objects)))
				objects, count = append(objects, kinds.Object{Kind: kinds.All[i], JSON: item}), count+countObjects(item)
			}
			s := NewSnapshot(time.Unix(1_800_000_000, 0), "", objects, nil)
			before := measure.Heap()
			decoded, err := s.Cluster()
			must.Succeed(t, err)
			each := (measure.Heap() - before) / count
			runtime.KeepAlive(decoded)
			runtime.KeepAlive(s)
			t.Logf("%d bytes for each of %d JSON objects in %d objects", each, count, len(objects))
			if each > maxPerObject {
				t.Errorf("%d bytes for each JSON object, want at most %d", each, maxPerObject)
			}
		})
	}
}
