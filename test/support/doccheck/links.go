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

// Link is a reference of a page to something in the project.
type Link struct {
	// Page and Line are where it stands.
	Page string
	Line int
	// File is what it leads to, as a path in the project; Anchor the heading there,
	// "" for none.
	File, Anchor string
}

var (
	code = regexp.MustCompile("`[^`]*`")
	link = regexp.MustCompile(`\]\(([^()\s]+)(?: "[^"]*")?\)`)
)

// Links returns the links and pictures of a page, but for those that lead out of
// the project.
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

// Anchors are what links to the headings of a page end in, by the rules of GitHub:
// small letters, hyphens for spaces, nothing else but letters, digits, hyphens and
// underscores, and a number behind what is there already.
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

func slugOf(title string) string {
	// What is shown of a link is its text.
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

// Broken returns what is wrong with a link in the project in a folder, whose pages
// are given; nil if nothing is.
func (l Link) Broken(project string, pages []Page) error {
	if strings.HasPrefix(l.File, "..") {
		return fmt.Errorf("%s:%d: a link leads out of the project: %s", l.Page, l.Line, l.File)
	}
	if _, err := os.Stat(filepath.Join(project, filepath.FromSlash(l.File))); err != nil {
		return fmt.Errorf("%s:%d: a link leads to %s, which is not there", l.Page, l.Line, l.File)
	}
	if l.Anchor == "" {
		return nil
	}
	for _, page := range pages {
		if page.File == l.File && page.Anchors()[l.Anchor] {
			return nil
		}
	}
	return fmt.Errorf("%s:%d: a link leads to %s#%s, and there is no such heading", l.Page, l.Line, l.File, l.Anchor)
}
