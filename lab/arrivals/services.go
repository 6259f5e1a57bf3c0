package main

import (
	"encoding/csv"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

const (
	servicesFile = "services.csv.gz"
	servicesDays = 16
	// scale divides the requests: the most frequent ones of 64 cores and 320 GiB are 8 cores and 40 GiB.
	scale = 8
)

// services returns the recording of the instances on CPU nodes. A service is left out if fewer than turnover of its instances are created
// for each that runs on average. A service is a StatefulSet in a namespace of its own. How many instances of a service may share a node is
// left out. The days are counted from a Monday.
func services(folder string, turnover float64) (*recording.Recording, error) {
	path := filepath.Join(folder, servicesFile)
	text, err := readZipped(path)
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := &recording.Recording{About: recording.About{
		From: epoch, To: epoch.Add(servicesDays * day * time.Second),
		Sources: []string{fmt.Sprintf("Alibaba's cluster-trace-gpu-v2025, instances on CPU nodes, 1/%d of their requests", scale)},
	}}
	r.Nodes = append(r.Nodes, generate.NewNode(node, resources.Amounts{CPU: 32_000, Memory: 160 << 30}))
	column, created, running := map[string]int{}, map[string]float64{}, map[string]float64{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for i, row := range rows[1:] {
		app := strings.ReplaceAll(row[column["app_name"]], "_", "-")
		if row[column["role"]] != "CN" {
			continue
		}
		number := func(name string) float64 {
			parsed, numberErr := strconv.ParseFloat(row[column[name]], 64)
			if numberErr != nil && err == nil {
				err = fmt.Errorf("%s, line %d, %s: %w", path, i+2, name, numberErr)
			}
			return parsed
		}
		seconds := func(name string, empty int64) int64 { // empty is before the start or after the end
			if row[column[name]] == "" {
				return empty
			}
			return int64(number(name))
		}
		p := recording.Pod{Node: node, Created: seconds("creation_time", -1), Ended: seconds("deletion_time", recording.Never)}
		p.Scheduled = max(p.Created, seconds("scheduled_time", -1))
		p.Started = p.Scheduled
		owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: app}
		p.Object = newPod(app, fmt.Sprintf("%s-%d", app, i), owner, number("cpu_request")/scale, number("memory_request")/scale)
		if err != nil {
			return nil, err
		}
		if p.Ended > p.Scheduled {
			r.Pods = append(r.Pods, p)
			running[app] += float64(min(p.Ended, r.About.Seconds())-max(p.Scheduled, 0)) / float64(r.About.Seconds())
		}
		if p.Created >= 0 {
			created[app]++
		}
	}
	r.Pods = slices.DeleteFunc(r.Pods, func(p recording.Pod) bool {
		return created[p.Object.Namespace] < turnover*running[p.Object.Namespace]
	})
	return r, nil
}
