package manifest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestKeys checks the warnings about annotations and labels of Plimsoll: unknown ones, values, and kinds of objects without effect.
func TestKeys(t *testing.T) {
	const pod, deployment = "{apiVersion: v1, kind: Pod, ", "{apiVersion: apps/v1, kind: Deployment, "
	for _, tc := range []struct{ object, field, keys, want string }{
		{pod, "annotations", "plimsoll.dev/slack-biggest: ignore, example.com/a: b, plimsoll.dev/packed: x", ""},
		{pod, "annotations", "plimsoll.dev/slack-biggest: ignored", `annotation plimsoll.dev/slack-biggest: invalid value "ignored": must be ignore`},
		{pod, "annotations", "plimsoll.dev/slack-bigest: ignore", "slack-bigest: unknown; did you mean plimsoll.dev/slack-biggest?"},
		{pod, "annotations", "plimsol.dev/slack-biggest: ignore", "plimsol.dev/slack-biggest: unknown; did you mean plimsoll.dev/slack-biggest?"},
		{pod, "annotations", "plimsoll.dev/x: z", "annotation plimsoll.dev/x: unknown: must be one of plimsoll.dev/capacity-limit, "},
		{pod, "annotations", `plimsoll.dev/slack: "2"`, "has no effect on a Pod: must be on a Deployment, ReplicaSet, StatefulSet, Job"},
		{pod, "labels", "plimsoll.dev/placeholder: x, plimsoll.dev/node-group: z", ""},
		{pod, "labels", `plimsoll.dev/slack: "2"`, "label plimsoll.dev/slack: has no effect: must be an annotation"},
		{pod, "labels", "plimsoll.dev/node-grup: z", "label plimsoll.dev/node-grup: unknown; did you mean node-group?"},
		{deployment, "annotations", `plimsoll.dev/slack: "2"`, ""},
		{deployment, "annotations", "plimsoll.dev/slack-biggest: ignore", "has no effect on a Deployment: must be on a Pod"},
	} {
		text := fmt.Sprintf("%smetadata: {name: p, %s: {%s}}}", tc.object, tc.field, tc.keys)
		objects, err := Read([]string{"-"}, strings.NewReader(node+"---\n"+text))
		must.Succeed(t, err)
		var found string
		for _, warning := range objects.Warnings {
			if strings.Contains(warning, "plimsol") {
				found += warning
			}
		}
		if (found == "") != (tc.want == "") || !strings.Contains(found, tc.want) {
			t.Errorf("%s: warnings %q, want %q", text, found, tc.want)
		}
	}
}

// TestKnownKeys checks that every annotation and label that the programs name is known, so that manifests with it have no warning.
func TestKnownKeys(t *testing.T) {
	named, found := regexp.MustCompile(`"(plimsoll\.dev/[a-z-]+)"`), 0
	must.Succeed(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			if _, isAnnotation := annotations[match[1]]; !isAnnotation && isUnknown(match[1]) {
				t.Errorf("%s: %s is neither in annotations nor in otherKeys", path, match[1])
			}
		}
		return err
	}))
	if found < 15 {
		t.Errorf("found %d keys", found)
	}
}
