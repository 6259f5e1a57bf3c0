package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// +kubebuilder:rbac:groups="",namespace=plimsoll-system,resources=configmaps,resourceNames=plimsoll-slack-history,verbs=get;update

const (
	// HistoryConfigMap is the name of the ConfigMap, in the namespace of the controller, that keeps the recorders over restarts.
	HistoryConfigMap = "plimsoll-slack-history"
	// savedSuffix follows the name of the policy in the keys of the ConfigMap.
	savedSuffix = ".json.gz"
	// savedVersion is the version of the format.
	savedVersion = 1
	// saveInterval is the time between two saves, saveTimeout the longest duration of one.
	saveInterval = 5 * time.Minute
	saveTimeout  = 10 * time.Second
)

// savedPool is the saved form of a recorder, as gzipped JSON. Records are columns, by the time at which the pods got their nodes.
type savedPool struct {
	Version int `json:"version"`
	// Pool is a hash of spec.pool: the records of another pool are not restored.
	Pool uint32 `json:"pool"`
	// From is recorder.from, and Saved the time of the save.
	From  uint32     `json:"from"`
	Saved uint32     `json:"saved"`
	Hours []heldHour `json:"hours"`
	// Scheduled has the differences to the record before, Waits the waits, Runs the times from the node to the end, or -1 for
	// pods that run, and Shapes the positions of the requests in Requests.
	Scheduled []uint32    `json:"scheduled"`
	Waits     []uint32    `json:"waits"`
	Runs      []int64     `json:"runs"`
	Shapes    []uint32    `json:"shapes"`
	Requests  [][2]uint32 `json:"requests"`
	// Running are the hashes of the pods that run.
	Running []uint32 `json:"running"`
}

// poolHash returns the hash of a pool.
func poolHash(pool v1alpha1.Pool) uint32 {
	text, _ := json.Marshal(pool) // has no values that cannot be encoded
	hash := fnv.New32a()
	_, _ = hash.Write(text)
	return hash.Sum32()
}

// encode returns the recorder of a pool at a time.
func (r *recorder) encode(pool uint32, now time.Time) ([]byte, error) {
	s := savedPool{Version: savedVersion, Pool: pool, From: r.from, Saved: secondsOf(now), Hours: r.Hours}
	records := slices.SortedStableFunc(slices.Values(r.records), func(a, b podRecord) int { return cmp.Compare(a.scheduled, b.scheduled) })
	shapes, before := map[[2]uint32]uint32{}, uint32(0)
	for i := range records {
		p := &records[i]
		requests := [2]uint32{p.milliCPU, p.mebibytes}
		if _, found := shapes[requests]; !found {
			shapes[requests] = uint32(len(s.Requests))
			s.Requests = append(s.Requests, requests)
		}
		run := int64(p.end) - int64(p.scheduled)
		if p.end == 0 {
			run = -1
			s.Running = append(s.Running, p.hash)
		}
		s.Scheduled, s.Waits = append(s.Scheduled, p.scheduled-before), append(s.Waits, uint32(p.wait()))
		s.Runs, s.Shapes, before = append(s.Runs, run), append(s.Shapes, shapes[requests]), p.scheduled
	}
	return kube.Compress(s)
}

// decode returns the recorder of a pool from its encoded form. It returns nil for the recorder of another pool.
func decode(data []byte, pool uint32) (*recorder, error) {
	var s savedPool
	if err := kube.Decompress(data, &s); err != nil {
		return nil, err
	}
	n := len(s.Scheduled)
	switch {
	case s.Version != savedVersion:
		return nil, fmt.Errorf("version: invalid value %d: must be %d", s.Version, savedVersion)
	case n > maxRecords:
		return nil, fmt.Errorf("scheduled: has %d pods, maximum is %d", n, maxRecords)
	case len(s.Waits) != n || len(s.Runs) != n || len(s.Shapes) != n:
		return nil, fmt.Errorf(
			"waits, runs and shapes: have %d, %d and %d values: must have %d",
			len(s.Waits),
			len(s.Runs),
			len(s.Shapes),
			n,
		)
	case len(s.Hours) > outcomeHours+1:
		return nil, fmt.Errorf("hours: has %d hours, maximum is %d", len(s.Hours), outcomeHours+1)
	case s.Pool != pool:
		return nil, nil
	}
	r := newRecorder(time.Unix(int64(s.From), 0))
	r.ended, r.Hours, r.records = s.Saved, s.Hours, make([]podRecord, n)
	at := uint64(0)
	for i := range r.records {
		at += uint64(s.Scheduled[i])
		run, isRunning := s.Runs[i], s.Runs[i] == -1
		if at > math.MaxUint32 || run < -1 || int64(at)+run > math.MaxUint32 || uint64(s.Waits[i]) > at ||
			int(s.Shapes[i]) >= len(s.Requests) ||
			isRunning && len(s.Running) == 0 {
			return nil, fmt.Errorf("pod %d: invalid values: scheduled %d, wait %d, run %d, shape %d, %d running pods left",
				i, at, s.Waits[i], run, s.Shapes[i], len(s.Running))
		}
		requests := s.Requests[s.Shapes[i]]
		p := podRecord{podID{0, uint32(at) - s.Waits[i]}, uint32(at), uint32(int64(at) + run), requests[0], requests[1]}
		if isRunning {
			p.hash, p.end, s.Running = s.Running[0], 0, s.Running[1:]
		}
		r.records[i] = p
	}
	r.reindex()
	return r, nil
}

// encodeAll returns the recorders of policies in at most limit bytes. If they need more, the largest one loses its oldest pods.
func encodeAll(recorders map[string]*recorder, pools map[string]uint32, now time.Time, limit int) (map[string][]byte, error) {
	data, sum := map[string][]byte{}, 0
	encode := func(name string) (err error) {
		sum -= len(data[name])
		data[name], err = recorders[name].encode(pools[name], now)
		sum += len(data[name])
		return err
	}
	for name := range recorders {
		if err := encode(name); err != nil {
			return nil, err
		}
	}
	for sum > limit {
		largest := slices.MaxFunc(slices.Collect(maps.Keys(data)), func(a, b string) int { return cmp.Compare(len(data[a]), len(data[b])) })
		r := recorders[largest]
		if len(r.records) == 0 {
			return nil, fmt.Errorf("%d pools without pods need %d bytes, maximum is %d", len(data), sum, limit)
		}
		r.dropOldest(len(r.records)/10 + 1)
		if err := encode(largest); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// restored returns the saved recorder of a policy, or a new one if there is none. It reads the ConfigMap once. c.mu must be
// locked.
func (c *Controller) restored(ctx context.Context, policy *v1alpha1.ResourceSlack) (*recorder, error) {
	if c.configMap.ConfigMaps != nil && c.saved == nil {
		limited, cancel := context.WithTimeout(ctx, saveTimeout)
		defer cancel()
		object, err := c.configMap.Get(limited)
		switch {
		case err == nil:
			c.saved = object.BinaryData
		case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return nil, err
		default:
			log.FromContext(ctx).Error(err, "The recorded pods of policies are lost when the controller stops")
		}
		if c.saved == nil {
			c.saved = map[string][]byte{}
		}
	}
	key := policy.Name + savedSuffix
	data, found := c.saved[key]
	if !found {
		return newRecorder(c.now()), nil
	}
	delete(c.saved, key)
	r, err := decode(data, poolHash(policy.Spec.Pool))
	if err != nil {
		log.FromContext(ctx).Error(err, "The recorded pods of a policy are invalid and are ignored", "policy", policy.Name)
	}
	if r == nil {
		return newRecorder(c.now()), nil
	}
	return r, nil
}

// keepRecorders saves the recorders every five minutes, and when ctx ends.
func (c *Controller) keepRecorders(ctx context.Context) error {
	ticker := time.NewTicker(saveInterval)
	defer ticker.Stop()
	for isRunning := true; isRunning; {
		select {
		case <-ctx.Done():
			isRunning = false
		case <-ticker.C:
		}
		if err := c.save(context.WithoutCancel(ctx)); err != nil {
			log.FromContext(ctx).Error(err, "The recorded pods of policies could not be saved")
		}
	}
	return nil
}

// save writes the recorders that changed since the last save.
func (c *Controller) save(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	recorders, pools, changed := c.copyRecorders()
	if len(changed) == 0 {
		return nil
	}
	err := c.write(ctx, recorders, pools)
	if err != nil {
		c.eachTracker(func(t *policyTracker) {
			t.recorder.changed = t.recorder.changed || slices.Contains(changed, t.recorder)
		})
	}
	return err
}

// copyRecorders returns copies of the recorders that can be encoded, the hashes of their pools, and the recorders that changed
// since the last call.
func (c *Controller) copyRecorders() (recorders map[string]*recorder, pools map[string]uint32, changed []*recorder) {
	recorders, pools = map[string]*recorder{}, map[string]uint32{}
	now := secondsOf(c.now())
	c.eachTracker(func(t *policyTracker) {
		r, name := t.recorder, t.Policy().Name
		if r.changed {
			changed = append(changed, r)
		}
		r.trim(now)
		r.changed = false
		recorders[name] = &recorder{from: r.from, records: slices.Clone(r.records), held: held{Hours: slices.Clone(r.Hours)}}
		pools[name] = poolHash(t.Policy().Spec.Pool)
	})
	return recorders, pools, changed
}

// write writes recorders to the ConfigMap. Data of policies that have no tracker yet remains.
func (c *Controller) write(ctx context.Context, recorders map[string]*recorder, pools map[string]uint32) error {
	object, err := c.configMap.Get(ctx)
	if err != nil {
		return err
	}
	var policies v1alpha1.ResourceSlackList
	if err := c.client.List(ctx, &policies); err != nil {
		return err
	}
	update, left := map[string][]byte{}, kube.MaxSaved
	for key := range object.BinaryData {
		update[key] = nil // deletes the key
	}
	for i := range policies.Items {
		key := policies.Items[i].Name + savedSuffix
		if data := object.BinaryData[key]; recorders[policies.Items[i].Name] == nil && len(data) > 0 {
			update[key], left = data, left-len(data)
		}
	}
	now := c.now()
	encoded, err := encodeAll(recorders, pools, now, left)
	if err != nil {
		return err
	}
	for name, data := range encoded {
		update[name+savedSuffix] = data
	}
	isSaved, err := c.configMap.Update(ctx, object, update, now, string(fieldOwner))
	if err == nil && !isSaved {
		err = errors.New("another client changed the ConfigMap at the same time")
	}
	return err
}
