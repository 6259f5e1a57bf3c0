// Package must ends a test at the first step that fails.
package must

// TB is a test, a benchmark, a fuzz test or a property.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Succeed ends the test with err unless it is nil.
func Succeed(t TB, err error) {
	if err != nil {
		t.Helper() // not before: Helper would slow benchmarks
		t.Fatal(err)
	}
}
