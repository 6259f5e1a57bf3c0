package doccheck

import (
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestBlocksCanBePasted checks the blocks of all pages.
func TestBlocksCanBePasted(t *testing.T) {
	pages, err := Pages(project)
	must.Succeed(t, err)
	blocks := 0
	for _, page := range pages {
		for _, block := range page.Blocks() {
			blocks++
			if err := block.CheckPaste(); err != nil {
				t.Error(err)
			}
		}
	}
	if blocks < 35 {
		t.Errorf("found %d blocks, want at least 35", blocks)
	}
}

func TestCheckPaste(t *testing.T) {
	for text, want := range map[string]string{
		"    kubectl get nodes -o yaml | plimsoll score -f -\n    # a comment\n    make test ARGS='a b'": "",
		"  echo '{\"kind\": \"List\"}' | kubectl apply -f -":                                             "",
		"  kubectl apply -f - <<EOF\n  kind: List\n  EOF":                                                "unclosed here-document",
		"kubectl apply -f - <<EOF\n{kind: List}\nEOF":                                                    "not JSON",
		"kubectl apply -f - <<EOF\nkind: List\nEOF":                                                      "",
		"  echo '{kind: List}' | kubectl apply -f -":                                                     "not JSON",
		"plimsoll score -f -\n3 nodes, 2 pods":                                                           `"3" is not a known command`,
		"$ plimsoll score -f -":                                                                          `"$" is not a known command`,
		"plimsoll score -f - (or --recording FILE)":                                                      "a command can only contain",
	} {
		err := Block{Text: text}.CheckPaste()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nerror %v, want %q", text, err, want)
		}
	}
}
