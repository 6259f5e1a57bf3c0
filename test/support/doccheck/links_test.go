package doccheck

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// Link is a link of a page to a file of the project.
type Link struct {
	// Page and Line are the position of the link.
	Page string
	Line int
	// File is the path of the target in the project, Anchor the anchor of a heading or "".
	File, Anchor string
}

var (
	code = regexp.MustCompile("`[^`]*`")
	link = regexp.MustCompile(`\]\(([^()\s]+)(?: "[^"]*")?\)`)
)

// Links returns the links and pictures of a page, except links to other sites.
func (p Page) Links() (links []Link) {
	for _, l := range p.lines() {
		if l.kind != prose && l.kind != heading {
			continue
		}
		for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(l.text, "``"), -1) {
			if strings.Contains(found[1], "://") || strings.HasPrefix(found[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(found[1], "#")
			to := Link{Page: p.File, Line: l.number, File: p.File, Anchor: anchor}
			if file != "" {
				to.File = path.Join(path.Dir(p.File), file)
			}
			links = append(links, to)
		}
	}
	return links
}

// Anchors returns the anchors of the headings by the rules of GitHub: lower case, hyphens for spaces, only
// letters, digits, hyphens and underscores, and a number appended to duplicates.
func (p Page) Anchors() map[string]bool {
	anchors := map[string]bool{}
	for _, l := range p.lines() {
		if l.kind != heading {
			continue
		}
		slug := slugOf(l.section)
		numbered := slug
		for n := 1; anchors[numbered]; n++ {
			numbered = fmt.Sprintf("%s-%d", slug, n)
		}
		anchors[numbered] = true
	}
	return anchors
}

// slugOf returns the anchor of a heading.
func slugOf(title string) string {
	// Links are replaced by their texts.
	title = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// Broken returns an error if the target of a link in the project in a folder does not exist.
func (l Link) Broken(project string, pages []Page) error {
	if strings.HasPrefix(l.File, "..") {
		return fmt.Errorf("%s:%d: link target %s is outside the project", l.Page, l.Line, l.File)
	}
	if _, err := os.Stat(filepath.Join(project, filepath.FromSlash(l.File))); err != nil {
		return fmt.Errorf("%s:%d: link target %s does not exist", l.Page, l.Line, l.File)
	}
	if l.Anchor == "" {
		return nil
	}
	for _, page := range pages {
		if page.File == l.File && page.Anchors()[l.Anchor] {
			return nil
		}
	}
	return fmt.Errorf("%s:%d: link target %s#%s: no such heading", l.Page, l.Line, l.File, l.Anchor)
}
