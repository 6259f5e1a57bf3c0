package doctor

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// How far the clock of the API server may be from that of this machine: load is
// judged by its age, and leases run out by the clock.
const (
	clockWarns = 5 * time.Second
	clockFails = 30 * time.Second
)

// server compares versions. A scheduler may be of the minor version of the API
// server or one older, never newer: Kubernetes' policy on version skew.
func (x *examination) server(context.Context) error {
	said := x.version.GitVersion
	theirs, err := version.ParseGeneric(said)
	if err != nil {
		return fmt.Errorf("the version of the API server: %w", err)
	}
	own, err := version.ParseGeneric(x.own)
	if err != nil {
		return fmt.Errorf("the version of Kubernetes in this program: %w", err)
	}
	switch {
	case theirs.Major() == 0:
		x.ok("the API server is a development build, %s; the scheduler is built from Kubernetes %s", said, x.own)
	case theirs.Major() != own.Major() || theirs.Minor() > own.Minor()+1:
		x.add(Warning, fmt.Sprintf("the API server is %s; plimsoll-scheduler is built from Kubernetes %s, more than one minor version older", said, x.own), "take a newer release of Plimsoll")
	case theirs.Minor() < own.Minor():
		x.add(Warning, fmt.Sprintf("the API server is %s; plimsoll-scheduler is built from Kubernetes %s, and a scheduler must not be newer than its API server", said, x.own), "take the release of Plimsoll for this version, or upgrade the control plane; slack and placement work all the same")
	default:
		x.ok("Kubernetes %s; the scheduler is built from Kubernetes %s", said, x.own)
	}
	return nil
}

// clock compares this machine's with the one in the answer of the API server,
// which tells whole seconds.
func (x *examination) clock(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, x.host+"/version", nil)
	if err != nil {
		return err
	}
	sent := time.Now()
	response, err := x.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	took := time.Since(sent)
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return fmt.Errorf("the answer has no date: %w", err)
	}
	x.compareClocks(date.Sub(sent.Add(took/2)), took)
	return nil
}

// compareClocks judges how far the API server's clock is ahead, as it was found
// with an answer that took so long.
func (x *examination) compareClocks(ahead, took time.Duration) {
	off := ahead.Abs() - took/2 - time.Second
	const fix = "set the clocks by NTP: load is judged by its age, and leases run out by the clock"
	message := fmt.Sprintf("the API server's clock is %s ahead of this machine's", ahead.Round(100*time.Millisecond))
	switch {
	case off > clockFails:
		x.add(Problem, message, fix)
	case off > clockWarns:
		x.add(Warning, message, fix)
	default:
		x.ok("this machine and the API server agree")
	}
}
