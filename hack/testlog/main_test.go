package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestPrintResults expects the output of failed tests and of builds only, and the slowest first.
func TestPrintResults(t *testing.T) {
	const log = `{"Action":"build-output","ImportPath":"p","Output":"p.go:1: undefined: x\n"}
not JSON
{"Action":"output","Package":"a","Test":"TestGood","Output":"quiet\n"}
{"Action":"pass","Package":"a","Test":"TestGood","Elapsed":1}
{"Action":"output","Package":"a","Test":"TestBad/sub","Output":"got 1, want 2\n"}
{"Action":"fail","Package":"a","Test":"TestBad/sub","Elapsed":2}
{"Action":"fail","Package":"a","Test":"TestBad","Elapsed":3}
{"Action":"output","Package":"a","Output":"FAIL\ta\n"}
{"Action":"fail","Package":"a","Elapsed":4}
{"Action":"skip","Package":"none"}
{"Action":"pass","Package":"b","Elapsed":5}`
	var out, durations, slowest bytes.Buffer
	must.Succeed(t, printResults(&out, &durations, strings.NewReader(log)))
	if want := "p.go:1: undefined: x\nnot JSON\ngot 1, want 2\nFAIL\ta\nok  \tb\t5.0s\n"; out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", &out, want)
	}
	must.Succeed(t, printSlowest(&slowest, &durations))
	if want := "    5.0s  b \n    4.0s  a \n\n    3.0s  a TestBad\n    1.0s  a TestGood\n\n"; slowest.String() != want {
		t.Errorf("slowest\n%q\nwant\n%q", &slowest, want)
	}
}
