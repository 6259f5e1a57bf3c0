// Package doccheck parses the documentation for tests that check its links against files and headings,
// and its command lines against the programs.
package doccheck

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Page is a Markdown page.
type Page struct {
	// File is the slash-separated path in the project.
	File string
	// Text is the content.
	Text string
}

// Pages returns the pages of the project in a folder: the README and all pages in docs and charts.
func Pages(project string) ([]Page, error) {
	root := os.DirFS(project)
	readme, err := fs.ReadFile(root, "README.md")
	if err != nil {
		return nil, fmt.Errorf("reading the README of the project in %s: %w", project, err)
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

// line is a line of a page and its context.
type line struct {
	number int
	text   string
	kind   kind
	// info is the info string of the fenced block, such as "yaml".
	info string
	// section is the heading above the line.
	section string
}

// kind is the kind of a line.
type kind int

const (
	prose    kind = iota
	heading       // # text
	fenced        // between fences
	indented      // by four spaces, after an empty line
	fence         // the fence itself
)

// lines returns the lines of the page. A block that is not closed ends with the page.
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

// title returns the text of a heading, or "" if the line is not a heading.
func title(text string) string {
	marks := len(text) - len(strings.TrimLeft(text, "#"))
	if rest, ok := strings.CutPrefix(text[marks:], " "); ok && 1 <= marks && marks <= 6 {
		return strings.TrimSpace(rest)
	}
	return ""
}
