package setup

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgress(t *testing.T) { synctest.Test(t, testProgress) }

func testProgress(t *testing.T) {
	var p Progress
	if err := p.Check(nil); err != nil {
		t.Errorf("without steps: %v", err)
	}
	endFirst := p.Begin("deciding placement ns/first")
	<-time.After(20 * time.Second)
	endSecond := p.Begin("deciding placement ns/second")
	if err := p.Check(nil); err != nil {
		t.Errorf("after 20 s: %v", err)
	}
	<-time.After(20 * time.Second)
	if err := p.Check(nil); err == nil || !strings.Contains(err.Error(), "no progress: deciding placement ns/first for 40s") {
		t.Errorf("after 40 s: %v", err)
	}
	endFirst()
	if err := p.Check(nil); err != nil {
		t.Errorf("the second step takes 20 s: %v", err)
	}
	<-time.After(20 * time.Second)
	if err := p.Check(nil); err == nil || !strings.Contains(err.Error(), "ns/second") {
		t.Errorf("the second step takes 40 s: %v", err)
	}
	endSecond()
	<-time.After(time.Minute)
	if err := p.Check(nil); err != nil {
		t.Errorf("after the steps: %v", err)
	}
}
