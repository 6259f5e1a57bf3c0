package oncluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/job"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/profiles"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/source"
)

const testNamespace = "sweeps"

// fakeCluster is an API server whose Jobs end one index with each read.
type fakeCluster struct {
	*fake.Clientset
	t *testing.T
	// outcome is that of a job.
	outcome func(job.Job) outcome
	// unavailable is the number of reads of the Job that fail.
	unavailable int
	ended       []string
}

func newFakeCluster(t *testing.T) *fakeCluster {
	c := &fakeCluster{Clientset: fake.NewClientset(), t: t, outcome: func(j job.Job) outcome {
		return outcome{Run: &result.Run{Seed: j.Seed, Seconds: int64(10 * j.Seed)}}
	}}
	c.PrependReactor("get", "jobs", c.getJob)
	return c
}

// getJob ends the next index of a Job that was started.
func (c *fakeCluster) getJob(action k8stesting.Action) (bool, runtime.Object, error) {
	if c.unavailable > 0 {
		c.unavailable--
		return true, nil, apierrors.NewServiceUnavailable("restarting")
	}
	name := action.(k8stesting.GetAction).GetName()
	obj, err := c.Tracker().Get(batchv1.SchemeGroupVersion.WithResource("jobs"), testNamespace, name)
	if err != nil {
		return true, nil, err
	}
	found := obj.(*batchv1.Job).DeepCopy()
	if *found.Spec.Suspend {
		c.t.Error("the Job is read before it was started")
	}
	if index := len(c.ended); index < int(*found.Spec.Completions) {
		c.end(name, index, len(found.Spec.Template.Spec.Volumes[0].Projected.Sources))
		c.ended = append(c.ended, fmt.Sprint(index))
	}
	found.Status.CompletedIndexes = strings.Join(c.ended, ",")
	return true, found, nil
}

// end writes the results of an index as its pod does.
func (c *fakeCluster) end(name string, index, chunks int) {
	var input bytes.Buffer
	for chunk := range chunks {
		input.Write(c.configMap(inputName(name, chunk)).BinaryData[dataKey])
	}
	s, err := unpack(&input, c.t.TempDir())
	if err != nil {
		c.t.Fatal(err)
	}
	from, to, err := s.of(index)
	if err != nil {
		c.t.Fatal(err)
	}
	var outcomes []outcome
	for _, j := range s.Jobs[from:to] {
		outcomes = append(outcomes, c.outcome(j))
	}
	list, err := encode(outcomes, parts(s.Jobs[from:to]))
	if err != nil {
		c.t.Fatal(err)
	}
	for number := range list {
		found := c.configMap(resultName(name, index, number))
		found.Data, found.BinaryData = list[number].text, list[number].binary
		if err := c.Tracker().Update(v1.SchemeGroupVersion.WithResource("configmaps"), found, testNamespace); err != nil {
			c.t.Fatal(err)
		}
	}
}

// configMap returns a copy of a ConfigMap. Reactors must not use the client.
func (c *fakeCluster) configMap(name string) *v1.ConfigMap {
	found, err := c.Tracker().Get(v1.SchemeGroupVersion.WithResource("configmaps"), testNamespace, name)
	if err != nil {
		c.t.Fatal(err)
	}
	return found.(*v1.ConfigMap).DeepCopy()
}

// runTest runs ten jobs with at most two pods.
func (c *fakeCluster) runTest(ctx context.Context, jobs int) ([]*result.Run, error) {
	var list []job.Job
	for seed := range jobs {
		list = append(list, job.Job{
			Source: source.Spec{
				Generate: "nodes=1,pods=1",
			},
			Seed:    uint64(seed),
			Record:  seed == 0,
			Profile: profiles.Profile{Name: "default"},
		})
	}
	return New(Options{
		Client: c, Namespace: testNamespace, Image: "image", Parallelism: 2, Warn: func(message string) { c.t.Error(message) },
	}).Run(ctx, list)
}

// mustBeEmpty verifies that all objects are deleted.
func (c *fakeCluster) mustBeEmpty() {
	c.t.Helper()
	ctx := context.Background() // that of the test may be canceled
	jobs, _ := c.BatchV1().Jobs(testNamespace).List(ctx, metav1.ListOptions{})
	maps, _ := c.CoreV1().ConfigMaps(testNamespace).List(ctx, metav1.ListOptions{})
	roles, _ := c.RbacV1().Roles(testNamespace).List(ctx, metav1.ListOptions{})
	bindings, _ := c.RbacV1().RoleBindings(testNamespace).List(ctx, metav1.ListOptions{})
	accounts, _ := c.CoreV1().ServiceAccounts(testNamespace).List(ctx, metav1.ListOptions{})
	if n := len(jobs.Items) + len(maps.Items) + len(roles.Items) + len(bindings.Items) + len(accounts.Items); n > 0 {
		c.t.Errorf("%d objects remain", n)
	}
}

// TestRun verifies that runs are returned in the order of the jobs, also if the API server is not available for some time, and that the pods
// may only patch the results.
func TestRun(t *testing.T) {
	c := newFakeCluster(t)
	c.unavailable = 2
	runs, err := c.runTest(t.Context(), 19)
	if err != nil {
		t.Fatal(err)
	}
	for i, run := range runs {
		if run == nil || run.Seconds != int64(10*i) {
			t.Errorf("run %d is %+v", i, run)
		}
	}
	// 19 jobs are divided over 2*4 indexes. The first has a recorded run and 8 parts.
	var results []string
	for _, action := range c.Actions() {
		if create, ok := action.(k8stesting.CreateAction); ok && action.GetResource().Resource == "configmaps" {
			if name := create.GetObject().(*v1.ConfigMap).Name; strings.Contains(name, "-result-") {
				results = append(results, name)
			}
		}
	}
	if len(c.ended) != 8 || len(results) != 8+7 {
		t.Errorf("%d indexes, results %v", len(c.ended), results)
	}
	c.mustBeEmpty()
}

// TestRunErrors verifies that errors name what failed, and that all objects are deleted.
func TestRunErrors(t *testing.T) {
	forbidden := func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "role", errors.New("no right"))
	}
	for want, prepare := range map[string]func(*fakeCluster){
		"--on-cluster: namespace sweeps: roles": func(c *fakeCluster) { c.PrependReactor("create", "roles", forbidden) },
		"--on-cluster: namespace sweeps: jobs":  func(c *fakeCluster) { c.PrependReactor("get", "jobs", forbiddenJobs) },
		"profile default, seed 3: bad input": func(c *fakeCluster) {
			c.outcome = func(j job.Job) outcome {
				if j.Seed == 3 {
					return outcome{Error: "bad input"}
				}
				return outcome{Run: &result.Run{}}
			}
		},
		"index 1 failed 1 times: pod p: exit code 9: no memory": func(c *fakeCluster) { c.PrependReactor("get", "jobs", c.failIndex) },
		"DeadlineExceeded: too slow": func(c *fakeCluster) {
			c.PrependReactor("get", "jobs", func(k8stesting.Action) (bool, runtime.Object, error) {
				return true, &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{
					Type: batchv1.JobFailed, Status: v1.ConditionTrue, Reason: "DeadlineExceeded", Message: "too slow",
				}}}}, nil
			})
		},
	} {
		c := newFakeCluster(t)
		prepare(c)
		if _, err := c.runTest(t.Context(), 10); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		c.mustBeEmpty()
	}
}

func forbiddenJobs(k8stesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "job", errors.New("no right"))
}

// failIndex makes index 1 of a Job fail.
func (c *fakeCluster) failIndex(action k8stesting.Action) (bool, runtime.Object, error) {
	name := action.(k8stesting.GetAction).GetName()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: testNamespace, Labels: map[string]string{
			sweepLabel: name, batchv1.JobCompletionIndexAnnotation: "1",
		}},
		Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{
			State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 9, Message: "no memory\n"}},
		}}},
	}
	if err := c.Tracker().Add(pod); err != nil {
		c.t.Error(err)
	}
	return true, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: batchv1.JobStatus{FailedIndexes: new("1")}}, nil
}

// TestRunInterrupted verifies that a canceled context returns the runs that have ended, and deletes all objects.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newFakeCluster(t)
	c.outcome = func(j job.Job) outcome {
		if j.Seed == 4 {
			cancel()
		}
		return outcome{Run: &result.Run{Seed: j.Seed}}
	}
	runs, err := c.runTest(ctx, 8)
	if err != nil || len(runs) != 8 || runs[0] == nil || runs[7] != nil {
		t.Errorf("%v: %v", err, runs)
	}
	c.mustBeEmpty()
	c = newFakeCluster(t)
	if runs, err = c.runTest(
		ctx,
		2,
	); err != nil || slices.ContainsFunc(runs, func(r *result.Run) bool { return r != nil }) ||
		len(c.Actions()) > 0 {
		t.Errorf("%v: %v, %v after the interruption", err, runs, c.Actions())
	}
}

// TestWriteRetries verifies that a pod tries again to write its results if the API server is not available, and not if it may not.
func TestWriteRetries(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"unavailable": {apierrors.NewServiceUnavailable("restarting"), 3},
		"forbidden":   {apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no right")), 1},
	} {
		client, calls := fake.NewClientset(&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: testNamespace}}), 0
		client.PrependReactor("patch", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
			calls++
			return calls < 3, nil, tc.err
		})
		err := Pod{Client: client, Namespace: testNamespace}.write(t.Context(), "r", part{text: map[string]string{"a": "b"}})
		if calls != tc.want || (err == nil) != (tc.want == 3) {
			t.Errorf("%s: %d calls, error %v", name, calls, err)
		}
	}
}
