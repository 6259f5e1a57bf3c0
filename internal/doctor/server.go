package doctor

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/emulation"
)

// Differences between the clocks of the API server and of this machine that are reported.
const (
	clockWarning = 5 * time.Second
	clockProblem = 30 * time.Second
)

// checkVersion checks that the scheduler supports the version of the API server, and names the version that it emulates.
func (e *examination) checkVersion(context.Context) error {
	server := emulation.ServerVersion(&e.version)
	emulated, supported, err := emulation.For(server)
	switch {
	case err != nil:
		return err
	case !supported:
		e.add(Warning, fmt.Sprintf("the API server has version %s; plimsoll-scheduler, which is kube-scheduler %s, supports %s",
			server, e.kubernetesVersion, emulation.Supported()),
			"install the release of Plimsoll for this version, or upgrade the control plane; slack and placement are not affected")
	case emulated.LessThan(emulation.Built()):
		e.ok("Kubernetes %s; the scheduler is kube-scheduler %s and emulates %s", server, e.kubernetesVersion, emulated)
	default:
		e.ok("Kubernetes %s; the scheduler is kube-scheduler %s", server, e.kubernetesVersion)
	}
	return nil
}

// checkClock compares the clock of this machine with the date in a response of the API server, which has
// a precision of one second.
func (e *examination) checkClock(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.host+"/version", nil)
	if err != nil {
		return err
	}
	sent := time.Now()
	response, err := e.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	elapsed := time.Since(sent)
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return fmt.Errorf("the response has no valid date: %w", err)
	}
	e.compareClocks(date.Sub(sent.Add(elapsed/2)), elapsed)
	return nil
}

// compareClocks checks by how much the clock of the API server is ahead, measured by a request that took
// elapsed. Half of that and the precision of the date are the uncertainty of the measurement.
func (e *examination) compareClocks(ahead, elapsed time.Duration) {
	difference := ahead.Abs() - elapsed/2 - time.Second
	const fix = "synchronize the clocks with NTP: load expires by its age, and leases by time"
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	message := fmt.Sprintf("the API server's clock is %s %s this machine's", ahead.Abs().Round(100*time.Millisecond), direction)
	switch {
	case difference > clockProblem:
		e.add(Problem, message, fix)
	case difference > clockWarning:
		e.add(Warning, message, fix)
	default:
		e.ok("the clocks of this machine and the API server agree")
	}
}
