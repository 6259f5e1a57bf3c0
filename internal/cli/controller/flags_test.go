package controller

import (
	"strings"
	"testing"
)

// TestPlaceholderNamespace checks the values of --placeholder-namespace: none, or a namespace other than the
// namespace of the controller.
func TestPlaceholderNamespace(t *testing.T) {
	for value, valid := range map[string]bool{"": true, "placeholders": true, "plimsoll-system": false, "A_b": false} {
		o := options{namespace: "plimsoll-system", adopt: "all", podNamespace: value}
		err := o.complete()
		if (err == nil) != valid ||
			err != nil && !strings.HasPrefix(err.Error(), `--placeholder-namespace: invalid value "`+value+`": must be`) {
			t.Errorf("%q: %v", value, err)
		}
	}
}
