package program

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Usage has the resident memory in bytes and the number of goroutines of a program.
type Usage struct{ Memory, Goroutines float64 }

// String returns the usage in the form "51 MiB, 93 goroutines".
func (u Usage) String() string {
	return fmt.Sprintf("%.0f MiB, %.0f goroutines", u.Memory/(1<<20), u.Goroutines)
}

// ReadUsage reads the usage of a program from its metrics.
func ReadUsage(ctx context.Context, client *http.Client, url string) (u Usage, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return u, err
	}
	response, err := client.Do(request)
	if err != nil {
		return u, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		value, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
		case name == "process_resident_memory_bytes":
			u.Memory = value
		case name == "go_goroutines":
			u.Goroutines = value
		}
	}
	if u.Memory == 0 || u.Goroutines == 0 {
		return u, fmt.Errorf("%s: status %s, no metrics of the process", url, response.Status)
	}
	return u, lines.Err()
}
