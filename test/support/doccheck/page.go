// Package doccheck reads the pages that users read, so that tests can hold
// them against what there is: links against files and headings, command lines
// against the programs that they start.
package doccheck

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Page is a page in Markdown.
type Page struct {
	// File is its path in the project, with slashes.
	File string
	// Text is all of it.
	Text string
}

// Pages returns the pages of the project in a folder: the README, and all of docs
// and of charts.
func Pages(project string) ([]Page, error) {
	root := os.DirFS(project)
	readme, err := fs.ReadFile(root, "README.md")
	if err != nil {
		return nil, fmt.Errorf("%s is not the project's folder: %w", project, err)
	}
	pages := []Page{{"README.md", string(readme)}}
	for _, folder := range []string{"docs", "charts"} {
		err := fs.WalkDir(root, folder, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || path.Ext(file) != ".md" {
				return err
			}
			text, err := fs.ReadFile(root, file)
			pages = append(pages, Page{file, string(text)})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// line is a line of a page, and what it is part of.
type line struct {
	number int
	text   string
	kind   kind
	// info is what stands behind the fence of a block, such as "yaml".
	info string
	// section is the heading that it is under.
	section string
}

type kind int

const (
	prose    kind = iota
	heading       // # text
	fenced        // between fences
	indented      // by four spaces, after an empty line
	fence         // the fence itself
)

// lines returns the lines of the page. A block that is not closed ends with the
// page, as it does for readers.
func (p Page) lines() (lines []line) {
	section, info, inside := "", "", ""
	before := line{}
	for i, text := range strings.Split(p.Text, "\n") {
		l := line{number: i + 1, text: text, section: section}
		trimmed := strings.TrimSpace(text)
		switch {
		case inside != "":
			l.kind, l.info = fenced, info
			if trimmed == inside {
				l.kind, inside = fence, ""
			}
		case strings.HasPrefix(trimmed, "```"):
			l.kind = fence
			info = strings.TrimLeft(trimmed, "`")
			inside = strings.TrimSuffix(trimmed, info)
		case strings.HasPrefix(text, "    ") && (before.kind == indented || strings.TrimSpace(before.text) == ""):
			l.kind = indented
		case trimmed == "" && before.kind == indented:
			l.kind = indented
		case title(text) != "":
			l.kind, section = heading, title(text)
			l.section = section
		}
		lines, before = append(lines, l), l
	}
	return lines
}

// title returns the text of a heading, "" if the line is none.
func title(text string) string {
	marks := len(text) - len(strings.TrimLeft(text, "#"))
	if rest, ok := strings.CutPrefix(text[marks:], " "); ok && 1 <= marks && marks <= 6 {
		return strings.TrimSpace(rest)
	}
	return ""
}
