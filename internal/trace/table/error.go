package table

import "fmt"

// Error is an invalid value in a file, or an error of reading it.
type Error struct {
	File string
	// Line is counted from 1. It is 0 if the error is about the file, and Column is empty if it is
	// about the line.
	Line   int
	Column string
	// Found is the invalid value, Allowed describes valid ones.
	Found, Allowed string
	// Err is the error of reading.
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
	if e.Column != "" {
		return fmt.Sprintf("%s: invalid value %s: must be %s", where, e.Found, e.Allowed)
	}
	return fmt.Sprintf("%s: found %s: must have %s", where, e.Found, e.Allowed)
}

// TooMany returns the error of a row that exceeds a number of objects.
func TooMany(r *Reader, objects string, limit int) *Error {
	return &Error{
		File: r.file, Line: r.line, Found: fmt.Sprintf("more than %d %s", limit, objects), Allowed: fmt.Sprintf("at most %d", limit),
	}
}

// Unwrap returns the error of reading.
func (e *Error) Unwrap() error { return e.Err }

// quote quotes a value and truncates it if it is long.
func quote(text string) string {
	const length = 60
	if len(text) > length {
		text = text[:length] + "..."
	}
	return fmt.Sprintf("%q", text)
}
