package oncluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/job"
)

// IndexVariable is the environment variable of a pod with its index.
const IndexVariable = "JOB_COMPLETION_INDEX"

// chunkFile is the name of a part of the input in the volume.
func chunkFile(chunk int) string { return fmt.Sprintf("chunk-%03d", chunk) }

// Pod runs the jobs of one index, in a pod of the Job.
type Pod struct {
	Client kubernetes.Interface
	// Namespace and Sweep, the name of the Job, are those of the pod. Version is that of this program.
	Namespace, Sweep, Version string
	// Input is the directory with the parts of the input, Work a directory for its files.
	Input, Work string
	Index       int
	// Pool runs one job at a time.
	Pool job.Pool
}

// Run runs the jobs and writes their results. An error is worth another attempt.
func (p Pod) Run(ctx context.Context) error {
	jobs, err := p.jobs()
	if err != nil {
		return err
	}
	outcomes := make([]outcome, len(jobs))
	for i := range jobs {
		runs, err := p.Pool.Run(ctx, jobs[i:i+1])
		if ctx.Err() != nil {
			return ctx.Err() // the run is not complete
		}
		var failed *job.Error
		switch {
		case err == nil:
			outcomes[i].Run = runs[0]
		case errors.As(err, &failed):
			outcomes[i].Error = failed.Message
		default:
			return err
		}
	}
	list, err := encode(outcomes, parts(jobs))
	if err != nil {
		return err
	}
	for number, content := range slices.Backward(list) { // the first part, which has the checksum, is the last
		if err := p.write(ctx, resultName(p.Sweep, p.Index, number), content); err != nil {
			return err
		}
	}
	return nil
}

// jobs reads the input and returns the jobs of the index.
func (p Pod) jobs() ([]job.Job, error) {
	names, err := filepath.Glob(filepath.Join(p.Input, "chunk-*"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("--input: %s: found no part of the input", p.Input)
	}
	var chunks []io.Reader
	for _, name := range names { // in the order of their numbers
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		chunks = append(chunks, file)
	}
	s, err := unpack(io.MultiReader(chunks...), p.Work)
	if err != nil {
		return nil, err
	}
	if s.Version != p.Version {
		return nil, fmt.Errorf("--image: has version %s: must have that of the command, %s", p.Version, s.Version)
	}
	from, to, err := s.of(p.Index)
	if err != nil {
		return nil, err
	}
	return s.Jobs[from:to], nil
}

// write writes a part of the results. It tries again if the API server is not available.
func (p Pod) write(ctx context.Context, name string, content part) error {
	patch, err := patchOf(content)
	if err != nil {
		return err
	}
	isTemporary := func(err error) bool {
		return ctx.Err() == nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err)
	}
	return retry.OnError(retry.DefaultBackoff, isTemporary, func() error {
		_, err := p.Client.CoreV1().ConfigMaps(p.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}
