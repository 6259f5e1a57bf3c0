package snapshot

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// Usage describes the usage of pods.
type Usage struct {
	Source        string    `json:"source"`
	Time          time.Time `json:"time"`
	WindowSeconds float64   `json:"windowSeconds"`
	Pods          int       `json:"pods"`
}

// SetUsage sets the usage of pods and its description.
func (s *Snapshot) SetUsage(reading load.PodReading) {
	reading.Time = reading.Time.UTC().Truncate(time.Second)
	s.Usage = &reading
	s.About.Usage = &Usage{
		Source: reading.Source, Time: reading.Time, WindowSeconds: reading.Window.Seconds(), Pods: len(reading.Pods),
	}
}

// encodeUsage returns usage.json, with a pod per line.
func encodeUsage(reading *load.PodReading) ([]byte, error) {
	out := []byte(`{"pods":[`)
	for i, pod := range reading.Pods {
		line, err := json.Marshal(pod)
		if err != nil {
			return nil, fmt.Errorf("usage of pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, '\n'), line...)
	}
	return append(out, "\n]}\n"...), nil
}

// maxUsage is the largest size of usage.json: names have at most 63 and 253 characters.
const maxUsage = load.MaxPods * 512

// readUsage reads usage.json. The description has the source and the time.
func (s *Snapshot) readUsage(in io.Reader) error {
	limited := &io.LimitedReader{R: in, N: maxUsage + 1}
	var content struct {
		Pods []load.PodUsage `json:"pods"`
	}
	err := json.NewDecoder(limited).Decode(&content)
	switch {
	case limited.N <= 0:
		return fmt.Errorf("exceeds the limit of %s", mebibytes(maxUsage))
	case err != nil:
		return err
	case len(content.Pods) > load.MaxPods:
		return fmt.Errorf("found %d pods: must have at most %d", len(content.Pods), load.MaxPods)
	}
	seen := make(map[string]bool, len(content.Pods))
	for i, pod := range content.Pods {
		name := pod.Namespace + "/" + pod.Name
		switch {
		case !pod.Valid():
			return fmt.Errorf("pods[%d]: invalid usage of %v millicores and %v bytes: must not be negative", i, pod.CPU, pod.Memory)
		case seen[name]:
			return fmt.Errorf("pods[%d]: duplicate pod %s", i, name)
		}
		seen[name] = true
	}
	s.Usage = &load.PodReading{Pods: content.Pods}
	return nil
}

// checkUsage completes the usage from the description.
func (s *Snapshot) checkUsage() error {
	about := s.About.Usage
	switch {
	case about == nil && s.Usage == nil:
		return nil
	case about == nil:
		return fmt.Errorf("%s: not described in %s", usageFile, aboutFile)
	case s.Usage == nil:
		return fmt.Errorf("%s: missing, but %s describes it", usageFile, aboutFile)
	case about.Pods != len(s.Usage.Pods):
		return fmt.Errorf("%s: found %d pods, %s lists %d", usageFile, len(s.Usage.Pods), aboutFile, about.Pods)
	}
	s.Usage.Source, s.Usage.Time = about.Source, about.Time
	s.Usage.Window = time.Duration(about.WindowSeconds * float64(time.Second))
	return nil
}

// redactUsage returns the usage with pseudonyms.
func (p *pseudonyms) redactUsage(reading *load.PodReading) load.PodReading {
	redacted := *reading
	redacted.Pods = make([]load.PodUsage, len(reading.Pods))
	for i, pod := range reading.Pods {
		pod.Namespace, pod.Name = p.name("namespace", pod.Namespace), p.name("pod", pod.Name)
		redacted.Pods[i] = pod
	}
	return redacted
}
