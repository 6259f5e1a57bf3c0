package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/slack"
)

// maxSize is the largest size of a picture in bytes.
const maxSize = 1 << 20

// external matches what a picture must not have: scripts, and anything that is loaded.
var external = regexp.MustCompile(`(?i)<script|\son\w+=|href|url\(|@import|<image|<foreignObject|NaN|Inf\b|%!`)

// sample returns a picture with hostile names.
func sample() picture {
	const evil = `<script>"&'`
	nodes := []page.LiveNode{
		{Name: "a" + evil, Bars: []page.LiveBar{{Allocatable: "8", Request: "5", RequestFraction: .6, Limit: "14", LimitFraction: 1.75}}},
		{Name: "b", Bars: []page.LiveBar{{Allocatable: "8", Request: "4", RequestFraction: .5, Limit: "40", LimitFraction: 5}}},
	}
	loaded := []page.LiveNode{
		{Name: "a" + evil, Bars: []page.LiveBar{{Allocatable: "8", HasLoad: true, LoadMean: .7, LoadStdDev: .2}}},
		{Name: "b", Bars: []page.LiveBar{{Allocatable: "8", HasLoad: true, LoadMean: .1, LoadStdDev: .3}}},
	}
	c := comparison{"pod5", side{"default-scheduler", "b", nodes}, side{"plimsoll-limits", "a" + evil, loaded}}
	return picture{c, c, burst{3.3, 0.01, page.LiveTimeline{
		Points: []page.TimelinePoint{
			{Seconds: 0, Waiting: 4},
			{Seconds: 1, Available: 8, Waiting: 4},
			{Seconds: 3, Target: 4, Available: 8},
			{Seconds: 5, Target: 2, Available: 8, Waiting: 1},
			{Seconds: 6, Target: 2, Available: 1, Waiting: 1},
		},
		Marks: []page.TimelineMark{
			{Seconds: 1, Text: "creating a burst of 4 pods"}, {Seconds: 4, Text: "creating the same burst"},
		},
	}}}
}

// check expects that a picture is well-formed, small, and loads and executes nothing.
func check(t *testing.T, name, picture string) {
	t.Helper()
	if len(picture) > maxSize {
		t.Errorf("%s: %d bytes, want at most %d", name, len(picture), maxSize)
	}
	if found := external.FindString(picture); found != "" {
		t.Errorf("%s: found %q", name, found)
	}
	for decoder := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, want := range []string{"<title>", `class="scene scene1"`, `class="scene scene3"`, "prefers-color-scheme: dark", "prefers-reduced-motion"} {
		if !strings.Contains(picture, want) {
			t.Errorf("%s: lacks %s", name, want)
		}
	}
}

// TestDraw checks a picture of hostile names, and what it says about nodes and bursts.
func TestDraw(t *testing.T) {
	drawn := draw(sample())
	check(t, "sample", drawn)
	for want, n := range map[string]int{
		"pod5 is placed here": 4, "limits 14 of 8 CPUs (175 %)": 1, "measured load 70 % ± 20 %": 1,
		"burst: 3.30 s pending": 1, "same burst: 0.01 s": 1,
		`class="wait" x`: 2 + 1, // two periods, and the legend
	} {
		if got := strings.Count(drawn, want); got != n {
			t.Errorf("%q is in the picture %d times, want %d", want, got, n)
		}
	}
	if drawn != draw(sample()) {
		t.Error("the same input gives another picture")
	}
}

// TestPublished checks the picture in the documentation: in it, both profiles place the pods on different nodes by
// limits, and README shows it.
func TestPublished(t *testing.T) {
	published, err := os.ReadFile("../../docs/demo.svg")
	if err != nil {
		t.Fatalf("%v: run make demo-picture", err)
	}
	check(t, "docs/demo.svg", string(published))
	for _, want := range []string{"limits 14 of 8 CPUs (175 %)", "limits 9 of 8 CPUs (112 %)", "pod5 is placed here", "s pending"} {
		if !strings.Contains(string(published), want) {
			t.Errorf("docs/demo.svg lacks %q", want)
		}
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`!\[[^\]]{40,}\]\(docs/demo\.svg\)`).Match(readme) {
		t.Error("README.md does not show docs/demo.svg with an alternative text")
	}
}

// TestNewBurst checks that times of bursts are those of the results, and that a scenario without them is an error.
func TestNewBurst(t *testing.T) {
	results := []demo.Result{
		{Profile: slack.WithoutSlack, Slack: &demo.SlackStep{}},
		{Profile: slack.WithoutSlack, Slack: &demo.SlackStep{Seconds: 3}},
		{Profile: "with slack", Slack: &demo.SlackStep{Seconds: 0.5}},
	}
	b, err := newBurst(results, &page.LiveTimeline{})
	if err != nil || b.Without != 3 || b.With != 0.5 {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := newBurst(results[:2], &page.LiveTimeline{}); err == nil {
		t.Error("no error without the second burst")
	}
	if _, err := newBurst(results, nil); err == nil {
		t.Error("no error without a timeline")
	}
}
