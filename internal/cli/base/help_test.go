package base

import "testing"

func TestWrapHelp(t *testing.T) {
	const text = `Paragraphs are joined
and wrapped.

  a FILE   text that is wrapped
           in its column
  longer   x

- a list of items
- next`
	const want = `Paragraphs are joined and
wrapped.

  a FILE   text that is wrapped
           in its column
  longer   x

- a list of items
- next`
	if got := wrapHelp(text, 32); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
