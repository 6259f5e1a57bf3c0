package table

import "fmt"

// Error is something wrong in a file.
type Error struct {
	File string
	// Line from 1, or 0 where it is about the whole file; Column by its name, or
	// empty where it is about the whole line.
	Line   int
	Column string
	// Found is what is there, Allowed what may be.
	Found, Allowed string
	// Err is the error of reading, if that is what went wrong.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	where := e.File
	if e.Line > 0 {
		where += fmt.Sprintf(", line %d", e.Line)
	}
	if e.Column != "" {
		where += ", column " + e.Column
	}
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", where, e.Err)
	}
	return fmt.Sprintf("%s: found %s, allowed: %s", where, e.Found, e.Allowed)
}

// Unwrap returns the error of reading.
func (e *Error) Unwrap() error { return e.Err }

// quote makes what was found fit to be shown.
func quote(text string) string {
	const most = 60
	if len(text) > most {
		text = text[:most] + "..."
	}
	return fmt.Sprintf("%q", text)
}
