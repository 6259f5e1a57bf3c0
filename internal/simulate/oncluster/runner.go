// Package oncluster runs the jobs of a what-if in the pods of an Indexed Job, and returns the same runs as package job does.
//
// The input is in ConfigMaps that are mounted into the pods. The results are in ConfigMaps as well: they exist, empty, before the Job
// starts, and a Role permits its pods to patch those and nothing else. A shared disk is not needed. Logs would need no Role, but are
// lost with a node, rotated, and copied to where a cluster collects logs; the termination message of a pod has 4 KiB at most.
//
// All objects are owned by the Job. They are deleted at the end and if the context is canceled; the garbage collector of the cluster
// deletes them with the Job if this process ends before.
package oncluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/job"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// DefaultRetries is the number of retries of the command line.
const DefaultRetries = 3

// MaxParallelism is the largest number of pods at the same time.
const MaxParallelism = 1000

const (
	// indexesPerPod is how many indexes there are for each pod that can run at the same time. With more, the pods end at about the same
	// time; with fewer, less time is spent on starting pods.
	indexesPerPod = 4
	// pollInterval is the time between two reads of the Job. A Job that cannot be read for maxOutage is given up.
	pollInterval = 500 * time.Millisecond
	maxOutage    = 5 * time.Minute
	// requests is how many requests are sent at the same time.
	requests = 8
	// cleanupTimeout bounds the deletion of the objects.
	cleanupTimeout = 30 * time.Second
)

// Options describe where jobs run.
type Options struct {
	Client    kubernetes.Interface
	Namespace string
	// Image has this program as its entry point, in the same Version.
	Image, Version string
	// Parallelism is the number of pods at the same time, from 1 to MaxParallelism.
	Parallelism int
	// Retries is how often an index is started again after a failure of its pod. Disruptions such as evictions do not count.
	Retries int
	// Progress is called with the number of jobs that have ended, unless it is nil.
	Progress func(done int)
	// Warn is called with failures that the result does not depend on.
	Warn func(message string)
}

// Runner runs jobs in a cluster.
type Runner struct{ options Options }

// New returns a runner.
func New(o Options) *Runner { return &Runner{o} }

// run is the state of one sweep.
type run struct {
	Options
	sweep sweep
	job   *batchv1.Job
	// objects delete the objects of the sweep, without the Job and its pods.
	objects []func(ctx context.Context) error
	// collected are the indexes whose results were read.
	collected map[int]bool
	runs      []*result.Run
}

// Run implements job.Runner. If ctx is canceled, runs of indexes that had not ended are nil.
func (r *Runner) Run(ctx context.Context, jobs []job.Job) ([]*result.Run, error) {
	s := &run{Options: r.options, runs: make([]*result.Run, len(jobs)), collected: map[int]bool{}}
	if len(jobs) == 0 || ctx.Err() != nil {
		return s.runs, nil
	}
	s.sweep = sweep{Version: r.options.Version, Jobs: jobs, Starts: divide(len(jobs), min(len(jobs), indexesPerPod*r.options.Parallelism))}
	chunks, err := pack(s.sweep)
	if err != nil {
		return nil, err
	}
	defer s.cleanUp(context.WithoutCancel(ctx))
	if err := s.create(ctx, chunks); err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("--on-cluster: namespace %s: %w", s.Namespace, err)
	}
	if err := s.await(ctx); err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("--on-cluster: namespace %s: %w", s.Namespace, err)
	}
	return s.runs, nil
}

// indexes returns the number of indexes.
func (s *run) indexes() int { return len(s.sweep.Starts) - 1 }

// create creates the Job and its objects, and starts it.
func (s *run) create(ctx context.Context, chunks [][]byte) (err error) {
	name := "plimsoll-" + rand.String(8)
	s.job, err = s.Client.BatchV1().Jobs(s.Namespace).Create(ctx, newJob(name, s.Options, s.indexes(), len(chunks)), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	var results []string
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(requests)
	for i, chunk := range chunks {
		s.createConfigMap(groupCtx, group, inputName(name, i), map[string][]byte{dataKey: chunk})
	}
	for index := range s.indexes() {
		for number := range parts(s.jobsOf(index)) {
			results = append(results, resultName(name, index, number))
			s.createConfigMap(groupCtx, group, resultName(name, index, number), nil)
		}
	}
	s.createRights(groupCtx, group, results)
	if err := group.Wait(); err != nil {
		return err
	}
	start := []byte(`{"spec":{"suspend":false}}`)
	_, err = s.Client.BatchV1().Jobs(s.Namespace).Patch(ctx, name, types.MergePatchType, start, metav1.PatchOptions{})
	return err
}

// jobsOf returns the jobs of an index.
func (s *run) jobsOf(index int) []job.Job {
	return s.sweep.Jobs[s.sweep.Starts[index]:s.sweep.Starts[index+1]]
}

// createConfigMap creates a ConfigMap.
func (s *run) createConfigMap(ctx context.Context, group *errgroup.Group, name string, data map[string][]byte) {
	client := s.Client.CoreV1().ConfigMaps(s.Namespace)
	s.objects = append(s.objects, func(ctx context.Context) error { return client.Delete(ctx, name, metav1.DeleteOptions{}) })
	group.Go(func() error {
		_, err := client.Create(ctx, &v1.ConfigMap{ObjectMeta: ownedBy(s.job, name), BinaryData: data}, metav1.CreateOptions{})
		return err
	})
}

// createRights creates the service account of the pods and its rights.
func (s *run) createRights(ctx context.Context, group *errgroup.Group, results []string) {
	name, meta := s.job.Name, ownedBy(s.job, s.job.Name)
	accounts, rights := s.Client.CoreV1().ServiceAccounts(s.Namespace), s.Client.RbacV1()
	s.objects = append(s.objects,
		func(ctx context.Context) error {
			return rights.RoleBindings(s.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
		},
		func(ctx context.Context) error {
			return rights.Roles(s.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
		},
		func(ctx context.Context) error { return accounts.Delete(ctx, name, metav1.DeleteOptions{}) },
	)
	group.Go(func() error {
		_, err := accounts.Create(ctx, &v1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
		return err
	})
	group.Go(func() error {
		// A binding can be created only after its Role.
		role := &rbacv1.Role{ObjectMeta: meta, Rules: podRules(results)}
		if _, err := rights.Roles(s.Namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
			return err
		}
		_, err := rights.RoleBindings(s.Namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: name}},
		}, metav1.CreateOptions{})
		return err
	})
}

// await reads results as indexes end, until all have ended.
func (s *run) await(ctx context.Context) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	lastRead := time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		ended, err := s.poll(ctx)
		switch {
		case err == nil && ended:
			return nil
		case err == nil:
			lastRead = time.Now()
		case isPermanent(err) || time.Since(lastRead) > maxOutage:
			return err
		}
	}
}

// permanentError is an error that another attempt cannot resolve.
type permanentError struct{ error }

// Unwrap returns the error.
func (e permanentError) Unwrap() error { return e.error }

// isPermanent reports whether an error is not one of a server that is unavailable.
func isPermanent(err error) bool {
	if _, ok := errors.AsType[permanentError](err); ok {
		return true
	}
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err)
}

// poll reads the Job and the results of the indexes that have ended. It reports whether all have.
func (s *run) poll(ctx context.Context) (ended bool, err error) {
	current, err := s.Client.BatchV1().Jobs(s.Namespace).Get(ctx, s.job.Name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	if failed := parseIndexes(orEmpty(current.Status.FailedIndexes)); len(failed) > 0 {
		return false, permanentError{fmt.Errorf("job %s: index %d failed %d times: %s",
			s.job.Name, failed[0], s.Retries+1, s.reason(ctx, failed[0]))}
	}
	for _, condition := range current.Status.Conditions {
		if condition.Type == batchv1.JobFailed && condition.Status == v1.ConditionTrue {
			return false, permanentError{fmt.Errorf("job %s: %s: %s", s.job.Name, condition.Reason, condition.Message)}
		}
	}
	for _, index := range parseIndexes(current.Status.CompletedIndexes) {
		if index >= s.indexes() || s.collected[index] {
			continue
		}
		if err := s.collect(ctx, index); err != nil {
			return false, err
		}
	}
	return len(s.collected) == s.indexes(), nil
}

// orEmpty returns a text, empty if it is nil.
func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// collect reads the results of an index.
func (s *run) collect(ctx context.Context, index int) error {
	jobs := s.jobsOf(index)
	var list []part
	for count := 1; len(list) < count; {
		found, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Get(ctx, resultName(s.job.Name, index, len(list)), metav1.GetOptions{})
		if err != nil {
			return err
		}
		list = append(list, part{found.Data, found.BinaryData})
		if count, err = countParts(list[0], parts(jobs)); err != nil {
			return permanentError{fmt.Errorf("result of index %d: %w", index, err)}
		}
	}
	outcomes, err := decode(list)
	if err == nil && len(outcomes) != len(jobs) {
		err = fmt.Errorf("found %d runs, must be %d", len(outcomes), len(jobs))
	}
	if err != nil {
		return permanentError{fmt.Errorf("result of index %d: %w", index, err)}
	}
	for i, o := range outcomes {
		if o.Error != "" {
			return permanentError{fmt.Errorf("profile %s, seed %d: %s", jobs[i].Profile.Name, jobs[i].Seed, o.Error)}
		}
		s.runs[s.sweep.Starts[index]+i] = o.Run
	}
	s.collected[index] = true
	if s.Progress != nil {
		done := 0
		for index := range s.collected {
			done += len(s.jobsOf(index))
		}
		s.Progress(done)
	}
	return nil
}

// reason returns why the pods of an index failed, as their status states.
func (s *run) reason(ctx context.Context, index int) string {
	pods, err := s.Client.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: fmt.Sprintf("%s=%s,%s=%d", sweepLabel, s.job.Name, batchv1.JobCompletionIndexAnnotation, index),
	})
	if err != nil {
		return err.Error()
	}
	for i := range pods.Items {
		for _, status := range pods.Items[i].Status.ContainerStatuses {
			if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
				return fmt.Sprintf("pod %s: exit code %d: %s", pods.Items[i].Name, ended.ExitCode, strings.TrimSpace(ended.Message))
			}
		}
	}
	return "its pods do not state why"
}

// cleanUp deletes the Job first, since the garbage collector deletes everything that it owns, and then the other objects.
func (s *run) cleanUp(ctx context.Context) {
	if s.job == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	background := metav1.DeletePropagationBackground
	err := s.Client.BatchV1().Jobs(s.Namespace).Delete(ctx, s.job.Name, metav1.DeleteOptions{PropagationPolicy: &background})
	group := errgroup.Group{}
	group.SetLimit(requests)
	group.Go(func() error {
		return s.Client.CoreV1().Pods(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{
			LabelSelector: sweepLabel + "=" + s.job.Name,
		})
	})
	for _, remove := range s.objects {
		group.Go(func() error {
			if err := remove(ctx); !apierrors.IsNotFound(err) {
				return err
			}
			return nil
		})
	}
	if err = errors.Join(err, group.Wait()); err != nil {
		s.Warn(fmt.Sprintf("job %s in namespace %s and what belongs to it could not be deleted: %v", s.job.Name, s.Namespace, err))
	}
}

// patchOf returns the merge patch that writes a part to its ConfigMap.
func patchOf(p part) ([]byte, error) {
	return json.Marshal(map[string]any{"data": p.text, "binaryData": p.binary})
}
