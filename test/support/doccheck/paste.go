package doccheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// tools are the commands that blocks may have in addition to Programs and shell built-ins.
var tools = []string{"curl", "lab/run.sh", "echo", "git", "go", "jq", "ln", "sed", "sleep", "source"}

// Block is a block of shell commands in a page.
type Block struct {
	// Page and Line are the position of the first line.
	Page string
	Line int
	// Text is the block with its indentation.
	Text string
}

// Blocks returns the blocks of a page that have a command of one of Programs, except for console blocks,
// which show prompts and output.
func (p Page) Blocks() (blocks []Block) {
	var text []string
	isShell, first := false, 0
	end := func() {
		if isShell {
			blocks = append(blocks, Block{p.File, first, strings.Join(text, "\n")})
		}
		text, isShell = nil, false
	}
	for _, l := range p.lines() {
		if l.kind != indented && l.kind != fenced || !p.isShell(l) || l.info == "console" {
			end()
			continue
		}
		if len(text) == 0 {
			first = l.number
		}
		text = append(text, l.text)
		isShell = isShell || starts.MatchString(strings.TrimSpace(l.text))
	}
	end()
	return blocks
}

// CheckPaste returns an error unless the block can be pasted into bash as it is, with its indentation:
// each line is a command, all here-documents end, and text for kubectl that starts with { is JSON,
// because kubectl 1.32 does not read it as YAML.
func (b Block) CheckPaste() error {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(b.Text), "")
	if err != nil {
		return fmt.Errorf("%s:%d: %w\n%s", b.Page, b.Line, err, b.Text)
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		if err == nil {
			err = checkNode(node)
		}
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("%s:%d: %w\n%s", b.Page, b.Line, err, b.Text)
	}
	return nil
}

// checkNode checks a command and the text in a quotation.
func checkNode(node syntax.Node) error {
	switch node := node.(type) {
	case *syntax.CallExpr:
		if len(node.Args) == 0 {
			return nil
		}
		if name := node.Args[0].Lit(); !slices.Contains(Programs, name) && !slices.Contains(tools, name) && name != "command" {
			return fmt.Errorf("%q is not a known command", name)
		}
	case *syntax.SglQuoted:
		return checkObject(node.Value)
	case *syntax.Redirect:
		if node.Hdoc != nil {
			return checkObject(node.Hdoc.Lit())
		}
	}
	return nil
}

// checkObject returns an error if a text looks like JSON and is not.
func checkObject(text string) error {
	if strings.HasPrefix(strings.TrimSpace(text), "{") && !json.Valid([]byte(text)) {
		return fmt.Errorf("%s: starts with { and is not JSON", text)
	}
	return nil
}
