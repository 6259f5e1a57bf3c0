package whatif

import (
	"fmt"
	"html/template"
	"strings"
)

// drawing is an SVG in the making. Sizes and places are numbers of ours; texts are
// escaped here and nowhere else.
type drawing struct{ strings.Builder }

// newDrawing begins a picture that says what it shows to those who cannot see it.
func newDrawing(width, height float64, title, description string) *drawing {
	d := &drawing{}
	d.f(`<svg viewBox="0 0 %v %v" width="%v" height="%v" role="img"><title>%v</title>`, width, height, width, height, title)
	if description != "" {
		d.f(`<desc>%v</desc>`, description)
	}
	return d
}

// f adds markup. Every number is made finite and short, every text escaped.
func (d *drawing) f(format string, arguments ...any) {
	for i, argument := range arguments {
		switch v := argument.(type) {
		case float64:
			arguments[i] = coordinate(v)
		case string:
			arguments[i] = template.HTMLEscapeString(v)
		default:
		}
	}
	fmt.Fprintf(&d.Builder, format, arguments...)
}

// end ends the picture.
func (d *drawing) end() template.HTML {
	d.WriteString(`</svg>`)
	return template.HTML(d.String()) // all that is not ours was escaped
}

// curve draws values over time as a line that goes from point to point.
func (d *drawing) curve(class string, x, y scale, values []float64) {
	if len(values) == 0 {
		return
	}
	d.f(`<path class="%v" d="`, class)
	for i, v := range values {
		command := "L"
		if i == 0 {
			command = "M"
		}
		d.f("%v%v %v", command, x.at(float64(i)), y.at(v))
	}
	d.WriteString(`"/>`)
}
