package doccheck

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestDocumentedAction expects that docs/whatif.md lists the inputs of the action for pull requests with their defaults, and
// that its example uses inputs and outputs that exist.
func TestDocumentedAction(t *testing.T) {
	read := func(file string) string {
		raw, err := os.ReadFile("../../../" + file)
		must.Succeed(t, err)
		return string(raw)
	}
	var action struct {
		Inputs, Outputs map[string]struct{ Default string }
	}
	must.Succeed(t, yaml.Unmarshal([]byte(read(".github/actions/compare/action.yaml")), &action))
	_, section, found := strings.Cut(read("docs/whatif.md"), "### Pull requests\n")
	example, table, block := strings.Cut(section, "\n```\n")
	if _, example, _ = strings.Cut(example, "```yaml\n"); !found || !block {
		t.Fatal("docs/whatif.md has no example of the action")
	}
	var steps []struct {
		Uses string
		With map[string]string
	}
	must.Succeed(t, yaml.Unmarshal([]byte(example), &steps))
	for name := range steps[0].With {
		if _, ok := action.Inputs[name]; !ok || !strings.HasPrefix(steps[0].Uses, "plimsoll-k8s/plimsoll/.github/actions/compare@v") {
			t.Errorf("the example has the input %s of %s", name, steps[0].Uses)
		}
	}
	for _, output := range regexp.MustCompile(`steps\.compare\.outputs\.([a-z]+)`).FindAllStringSubmatch(example, -1) {
		if _, ok := action.Outputs[output[1]]; !ok {
			t.Errorf("the example has the output %s", output[1])
		}
	}
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| (.*?) \\|").FindAllStringSubmatch(table, -1) {
		listed = append(listed, row[1])
		if value := action.Inputs[row[1]].Default; value != "" && row[2] != "`"+value+"`" {
			t.Errorf("the table has the default %s of %s, the action %q", row[2], row[1], value)
		}
	}
	slices.Sort(listed)
	if inputs := slices.Sorted(maps.Keys(action.Inputs)); !slices.Equal(listed, inputs) {
		t.Errorf("the table lists %v, the action has %v", listed, inputs)
	}
}
