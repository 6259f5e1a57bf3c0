package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
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

// savedPool is the saved form of a recorder, as gzipped JSON.
type savedPool struct {
	Version int `json:"version"`
	// Pool is spec.pool: the records of another pool are not restored.
	Pool v1alpha1.Pool `json:"pool"`
	// From is recorder.from, and Saved the time of the save.
	From  uint32     `json:"from"`
	Saved uint32     `json:"saved"`
	Hours []heldHour `json:"hours"`
	// Pods have the difference of the time at which the pod got its node to the pod before, the wait, the time from the node to
	// the end plus one, or 0 for a pod that runs, the requests, the hash of a pod that runs, and the seconds of scheduling gates.
	Pods [][7]uint32 `json:"pods"`
}

// encode returns the recorder of a pool at a time in at most limit bytes. If it needs more, it drops the oldest pods, and if none of the
// remaining pods has ended, all pods: a new tracker finds the pods that run.
func (r *recorder) encode(pool v1alpha1.Pool, now time.Time, limit int) (data []byte, err error) {
	slices.SortStableFunc(r.records, func(a, b podRecord) int { return cmp.Compare(a.scheduled, b.scheduled) })
	for {
		s := savedPool{Version: savedVersion, Pool: pool, From: r.from, Saved: secondsOf(now), Hours: r.Hours}
		before := uint32(0)
		for _, p := range r.records {
			row := [7]uint32{p.scheduled - before, uint32(p.wait()), p.end - p.scheduled + 1, p.milliCPU, p.mebibytes, 0, p.gated}
			if p.end == 0 {
				row[2], row[5] = 0, p.hash
			}
			s.Pods, before = append(s.Pods, row), p.scheduled
		}
		if data, err = kube.Compress(s); err != nil || len(data) <= limit {
			return data, err
		}
		n := len(r.records)
		if n == 0 {
			return nil, fmt.Errorf("records without pods need %d bytes, maximum is %d", len(data), limit)
		}
		if excess := n - n*limit*9/len(data)/10; !r.dropOldest(excess) {
			r.records = nil
		}
	}
}

// decode returns the recorder of a pool from its encoded form. It returns nil for the recorder of another pool.
func decode(data []byte, pool v1alpha1.Pool) (*recorder, error) {
	var s savedPool
	if err := kube.Decompress(data, &s); err != nil {
		return nil, err
	}
	switch {
	case s.Version != savedVersion:
		return nil, fmt.Errorf("version: invalid value %d: must be %d", s.Version, savedVersion)
	case len(s.Pods) > maxRecords || len(s.Hours) > outcomeHours+1:
		return nil, fmt.Errorf("has %d pods and %d hours, maximum is %d and %d", len(s.Pods), len(s.Hours), maxRecords, outcomeHours+1)
	case !equality.Semantic.DeepEqual(s.Pool, pool):
		return nil, nil
	}
	r := newRecorder(time.Unix(int64(s.From), 0))
	r.ended, r.Hours = s.Saved, s.Hours
	at := uint64(0)
	for i, row := range s.Pods {
		at += uint64(row[0])
		end := at + uint64(row[2]) - 1
		if row[2] == 0 {
			end = 0
		}
		if max(at, end) > math.MaxUint32 || uint64(row[1])+uint64(row[6]) > at {
			return nil, fmt.Errorf("pods[%d]: invalid values %v: scheduled at %d, must be after the wait and before %d", i, row, at,
				uint32(math.MaxUint32))
		}
		r.records = append(r.records, podRecord{
			podID: podID{row[5], uint32(at) - row[1] - row[6]}, gated: row[6], scheduled: uint32(at), end: uint32(end),
			milliCPU: row[3], mebibytes: row[4],
		})
	}
	r.reindex()
	return r, nil
}

// readSaved reads the saved recorders. It is a source of the controller: no policy is reconciled until it returns.
func (c *Controller) readSaved(ctx context.Context, _ queue) error {
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		limited, cancel := context.WithTimeout(ctx, saveTimeout)
		defer cancel()
		object, err := c.configMap.Get(limited)
		switch {
		case err == nil:
			c.saved = object.BinaryData
		case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
			log.FromContext(ctx).Error(err, "The recorded pods of policies are lost when the controller stops")
		default:
			log.FromContext(ctx).Error(err, "The recorded pods of policies could not be read")
			return false, nil
		}
		return true, nil
	})
}

// restored returns the saved recorder of a policy, or a new one if there is none. c.mu must be locked.
func (c *Controller) restored(ctx context.Context, policy *v1alpha1.ResourceSlack) *recorder {
	if data, found := c.saved[policy.Name+savedSuffix]; found {
		r, err := decode(data, policy.Spec.Pool)
		if err != nil {
			log.FromContext(ctx).Error(err, "The recorded pods of a policy are invalid and are ignored", "policy", policy.Name)
		}
		if r != nil {
			return r
		}
	}
	return newRecorder(c.now())
}

// keepRecorders saves the recorders every five minutes, and when ctx ends.
func (c *Controller) keepRecorders(ctx context.Context) error {
	save := func(ctx context.Context) {
		if err := c.save(context.WithoutCancel(ctx)); err != nil {
			log.FromContext(ctx).Error(err, "The recorded pods of policies could not be saved")
		}
	}
	wait.UntilWithContext(ctx, save, saveInterval)
	save(ctx)
	return nil
}

// save writes the recorders if one has changed since the last save. The policies share the size of the ConfigMap equally. Data of
// policies that have no tracker yet remains if it is not larger than their share. A policy whose recorder cannot be saved does not
// affect other policies.
func (c *Controller) save(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	isChanged, trackers := false, map[string]*policyTracker{}
	c.eachTracker(func(t *policyTracker) {
		isChanged = isChanged || t.recorder.changed
		trackers[t.Policy().Name] = t
	})
	if !isChanged {
		return nil
	}
	object, err := c.configMap.Get(ctx)
	if err != nil {
		return err
	}
	var policies v1alpha1.ResourceSlackList
	if err := c.client.List(ctx, &policies); err != nil {
		return err
	}
	data, now := map[string][]byte{}, c.now()
	for key := range object.BinaryData {
		data[key] = nil // unless the policy exists
	}
	var failures []error
	for i := range policies.Items {
		name, limit := policies.Items[i].Name, kube.MaxSaved/len(policies.Items)
		key := name + savedSuffix
		if t := trackers[name]; t != nil {
			if data[key], err = c.encode(t, now, limit); err != nil {
				failures = append(failures, fmt.Errorf("policy %s: %w", name, err))
			}
		} else if saved := object.BinaryData[key]; len(saved) <= limit {
			data[key] = saved
		}
	}
	isSaved, err := c.configMap.Update(ctx, object, data, now, string(fieldOwner))
	if err != nil || !isSaved {
		c.eachTracker(func(t *policyTracker) { t.recorder.changed = true })
	}
	return errors.Join(append(failures, err)...)
}

// encode returns the recorder of a policy. Events of pods do not wait for it.
func (c *Controller) encode(t *policyTracker, now time.Time, limit int) ([]byte, error) {
	c.mu.Lock()
	t.recorder.trim(secondsOf(now))
	t.recorder.changed = false
	r, pool := t.recorder.clone(), t.Policy().Spec.Pool
	c.mu.Unlock()
	return r.encode(pool, now, limit)
}
