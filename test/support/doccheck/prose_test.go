package doccheck

import (
	"regexp"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const (
	// maxWords is the number of words above which a sentence is long, maxLong the number of long sentences in all pages.
	maxWords, maxLong = 35, 20
	// maxPagesWords is the number of words in docs, without the generated pages of the command line.
	maxPagesWords = 34_000
)

var (
	item   = regexp.MustCompile(`^ *(?:[-*]|\d+\.) +`)
	linked = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	// sentenceEnd matches the end of a sentence. A period within a word or a number, or before a lower-case letter, is none.
	sentenceEnd = regexp.MustCompile(`[.!?:][)"*]*\s+(?:[A-Z("*\d` + "`" + `]|$)`)
)

// sentences returns the sentences in the paragraphs, items of lists and cells of tables of a page.
func (p Page) sentences() (all []string) {
	var paragraph strings.Builder
	end := func() {
		text := strings.TrimSpace(paragraph.String()) + " "
		from := 0
		for _, at := range sentenceEnd.FindAllStringIndex(text, -1) {
			all, from = append(all, text[from:at[0]+1]), at[0]+1
		}
		if rest := strings.TrimSpace(text[from:]); rest != "" {
			all = append(all, rest)
		}
		paragraph.Reset()
	}
	for _, l := range p.lines() {
		text := linked.ReplaceAllString(l.text, "$1")
		switch {
		case l.kind != prose || strings.TrimSpace(text) == "":
			end()
		case strings.HasPrefix(strings.TrimSpace(text), "|"):
			for cell := range strings.SplitSeq(text, "|") {
				paragraph.WriteString(cell)
				end()
			}
		default:
			if item.MatchString(text) {
				end()
			}
			paragraph.WriteString(" " + text)
		}
	}
	end()
	return all
}

// TestLongSentences expects that few sentences of the pages are long, and lists them.
func TestLongSentences(t *testing.T) {
	pages, err := Pages(project)
	must.Succeed(t, err)
	var long []string
	for _, page := range pages {
		if strings.HasPrefix(page.File, "docs/cli/") {
			continue
		}
		for _, sentence := range page.sentences() {
			if len(strings.Fields(sentence)) > maxWords {
				long = append(long, page.File+": "+strings.Join(strings.Fields(sentence), " "))
			}
		}
	}
	if len(long) > maxLong {
		t.Errorf("%d sentences have more than %d words, at most %d may:\n%s", len(long), maxWords, maxLong, strings.Join(long, "\n"))
	}
}

// TestPagesAreShort expects that the pages in docs do not grow beyond what a reader can read.
func TestPagesAreShort(t *testing.T) {
	pages, err := Pages(project)
	must.Succeed(t, err)
	words := 0
	for _, page := range pages {
		if strings.HasPrefix(page.File, "docs/") && !strings.HasPrefix(page.File, "docs/cli/") {
			words += len(strings.Fields(page.Text))
		}
	}
	if words > maxPagesWords {
		t.Errorf("docs has %d words, at most %d are permitted", words, maxPagesWords)
	}
}

// TestCommandsInLists expects that commands in items of lists are indented as the documentation site needs it: Markdown of GitHub has a block
// from 7 spaces, the site from 8, and shows fewer as a sentence.
func TestCommandsInLists(t *testing.T) {
	pages, err := Pages(project)
	must.Succeed(t, err)
	for _, page := range pages {
		for _, l := range page.lines() {
			spaces := len(l.text) - len(strings.TrimLeft(l.text, " "))
			if l.kind == indented && spaces > 4 && spaces < 8 && starts.MatchString(strings.TrimSpace(l.text)) {
				previous := strings.TrimRight(strings.Split(page.Text, "\n")[l.number-2], " ")
				if previous == "" || !strings.HasSuffix(previous, "\\") {
					t.Errorf("%s:%d: a command in a list with %d spaces, want at least 8", page.File, l.number, spaces)
				}
			}
		}
	}
}
